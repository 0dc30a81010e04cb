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

/// Share one link between a session and another flow: another session, CUBIC, BBR, libwebrtc's GCC
///
/// Runs in virtual time over links of 10 Mbit/s with 15 ms each way, and of 3 Mbit/s with 30 ms.
/// They have drop-tail queues of 0.5, 1, 4 and 16 bandwidth-delay products. The session's media
/// always fills its budget; a unit is on time within 100 ms. Prints the median over all seeds for
/// each pairing, with minimum and maximum in brackets where they differ, without a verdict. Writes
/// every run, the summary and shares per second as CSV, and a plot per link, into a folder.
#[derive(Debug, Args)]
pub(crate) struct Fairness {
    /// Number of seeds, counted from the first
    #[arg(
        long,
        value_name = "COUNT",
        default_value_t = 10,
        default_value_if("quick", "true", "2"),
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    seeds: u64,
    /// First seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    first_seed: u64,
    /// Length of each run in virtual seconds, including the warm-up of 20 s
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 80,
        default_value_if("quick", "true", "40"),
        value_parser = clap::value_parser!(u64).range(25..)
    )]
    seconds: u64,
    /// Only these links, by rate and drain time of a full queue, such as 10mbps-15ms
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    link: Vec<String>,
    /// Only with these competing flows: tautline, tautline-10s-later, tautline-farther, cubic, bbr,
    /// gcc
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    beside: Vec<String>,
    /// Use 2 seeds of 40 s, unless set otherwise
    #[arg(long)]
    quick: bool,
    /// Number of parallel runs
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    threads: usize,
    /// Folder for the results
    #[arg(long, value_name = "FOLDER", default_value = "lab/fairness")]
    out: PathBuf,
}

impl Fairness {
    /// Runs all pairings over all links, writes the results and prints the summary.
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
