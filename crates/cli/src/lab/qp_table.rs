//! `tautline lab qp-table`.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tautline_lab::experiment::{Progress, Run};

use super::progress::Line;

/// Create the look-up table from a slice's size to its quantizers, by cycling quantizers over a
/// clip
///
/// The table is CSV: bytes of a slice, quantizer of I slices, quantizer of P slices.
#[derive(Debug, Args)]
pub(crate) struct QpTable {
    /// Video file to measure; requires ffmpeg
    #[arg(long, value_name = "FILE")]
    clip: PathBuf,
    /// Number of its pictures to code at every pair of quantizers
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=600))]
    pictures: u16,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "qp-table.csv")]
    out: PathBuf,
}

impl QpTable {
    /// Codes the clip at every pair of quantizers and writes the table.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let line = Line::new("qp-table");
        let progress = |progress: Progress<'_>| line.show(progress);
        let run = Run::new(false, 1, &progress);
        let table = tautline_lab::papers::qp_table(&run, &self.clip, usize::from(self.pictures));
        line.clear();
        let table = table?;
        let file = self.out.display();
        std::fs::write(&self.out, table.to_csv())
            .with_context(|| format!("cannot write {file}"))?;
        tell!("{file} ({} sizes)", table.entries().count());
        Ok(())
    }
}
