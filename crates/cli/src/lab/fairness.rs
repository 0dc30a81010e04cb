//! `tautline lab fairness`: how rate control shares a link.

use std::path::PathBuf;

use clap::Args;
use tautline_lab::record;
use tautline_lab::sweeps::fairness::bottleneck::Bottleneck;
use tautline_lab::sweeps::fairness::pairing::Pairing;
use tautline_lab::sweeps::fairness::summary::{self, Line};
use tautline_lab::sweeps::fairness::sweep::Sweep;
use tautline_units::Duration;

use super::links::chosen;
use super::{progress, table};

/// Share one link among a session and another flow: another session, CUBIC, BBR, libwebrtc's GCC
///
/// In virtual time, over links of 10 Mbit/s and 15 ms each way and of 3 Mbit/s and 30 ms, with drop-tail queues of .5,
/// 1, 4 and 16 bandwidth-delay products. The session's media always fills its budget; a unit is in time within 100 ms.
/// Prints for each pairing the median of all seeds, with least and most in brackets where they differ, and judges
/// nothing. Leaves every run, the summary and shares by the second as CSV, and a plot for each link, in a folder.
#[derive(Debug, Args)]
pub(crate) struct Fairness {
    /// Seeds, from the first on
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 10,
        default_value_if("quick", "true", "2"),
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    first_seed: u64,
    /// Length of each run in virtual seconds, the warm-up of 20 s included
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 80,
        default_value_if("quick", "true", "40"),
        value_parser = clap::value_parser!(u64).range(25..)
    )]
    seconds: u64,
    /// Only these links, by rate and the time in which a full queue drains: 10mbps-15ms
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    link: Vec<String>,
    /// Only beside these: tautline, tautline-10s-later, tautline-farther, cubic, bbr, gcc
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    beside: Vec<String>,
    /// Take 2 seeds of 40 s, unless told otherwise
    #[arg(long)]
    quick: bool,
    /// Runs at a time
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    threads: usize,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER", default_value = "lab/fairness")]
    out: PathBuf,
}

impl Fairness {
    /// Makes all runs, writes and prints what they showed.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let sweep = Sweep {
            bottlenecks: chosen("link", Bottleneck::all(), &self.link, |link| &link.name)?,
            pairings: chosen("beside", Pairing::ALL.to_vec(), &self.beside, |it| it.name())?,
            first_seed: self.first_seed,
            seeds: self.seeds,
            length: Duration::from_secs(self.seconds),
            threads: self.threads,
        };
        record::create(&self.out)?;
        let line = progress::Line::new("fairness");
        let found = sweep.run(&|progress| line.show(progress))?;
        line.clear();
        let lines = summary::of(&sweep, &found);
        let tables = [
            summary::runs_table(&found),
            summary::summary_table(&lines),
            summary::seconds_table(&found),
        ];
        record::write_tables(&self.out, &tables)?;
        record::write_plots(&self.out, &summary::plots(&found))?;
        let right: Vec<usize> = (2..summary::HEADS.len() - 1).collect();
        table::print(&summary::HEADS, lines.iter().map(Line::cells).collect(), &right)?;
        tell!("{} runs\n{}", found.len(), self.out.display());
        Ok(())
    }
}
