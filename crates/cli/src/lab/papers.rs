//! `tautline lab list`, `run` and `report`: the tables and figures of the papers.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use tautline_lab::experiment::{self, Experiment, Row};
use tautline_lab::notation::number;
use tautline_lab::record::{self, Origin, Record};
use tautline_lab::{papers, report, workers};
use tautline_net::clock::Clock;
use tautline_units::Instant;

use super::progress::Line;
use super::table::print;

/// List the papers' tables and figures that can be reproduced, with the result of each last run
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    folder: Folder,
}

/// Reproduce tables and figures of the papers, and judge the results
///
/// Every experiment writes its numbers as CSV, its plots as SVG, and its rows of published and
/// measured values into a folder of its own. The exit status is an error if a measured row is out
/// of tolerance or an experiment failed, after everything is written.
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Experiments to run: keys as printed by `tautline lab list`, a paper by the beginning of its
    /// keys, or `all`
    #[arg(value_name = "KEY", required = true)]
    keys: Vec<String>,
    /// Take seconds instead of minutes, with wide tolerances
    #[arg(long)]
    quick: bool,
    /// Seed of every random number; the same seed gives the same results, except for timings
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Reuse the results of this binary and seed in the folder, to continue an interrupted run
    #[arg(long)]
    resume: bool,
    #[command(flatten)]
    folder: Folder,
}

/// Create one page with all results of a folder, published against measured, with the plots
///
/// The page is report.html in that folder, and self-contained.
#[derive(Debug, Args)]
pub(crate) struct Report {
    #[command(flatten)]
    folder: Folder,
}

#[derive(Debug, Args)]
struct Folder {
    /// Folder of results, with one folder per experiment
    #[arg(long, value_name = "FOLDER", default_value = "lab")]
    out: PathBuf,
}

impl List {
    /// Prints all experiments, each with the result of its last run in the folder.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let lines = papers::all().map(|Experiment { key, source, title, .. }| {
            let record = Record::read(&self.folder.out, key)?;
            let last = record.map_or_else(|| "-".to_owned(), |record| record.summary());
            anyhow::Ok([(*key).to_owned(), (*source).to_owned(), last, (*title).to_owned()])
        });
        let lines = lines.collect::<Result<_, _>>()?;
        print(&["key", "source", "last run", "what is measured"], lines, &[])
    }
}

impl Run {
    /// Runs the chosen experiments, and prints and judges their rows. Fails at once for an unknown
    /// key, and at the end if an experiment failed or a row is out of tolerance.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let experiments = chosen(&self.keys)?;
        record::create(&self.folder.out)?;
        let (clock, total) = (Clock::start(), experiments.len());
        // Experiments that measure time run alone on the machine, after the others, which share its
        // processors.
        let (timed, others): (Vec<_>, Vec<_>) =
            experiments.into_iter().partition(|experiment| experiment.is_timed());
        let (mut out, mut failed, mut before, mut printed) = (Vec::new(), Vec::new(), 0, Ok(()));
        for (threads, experiments) in [(workers::count(), others), (1, timed)] {
            let told = |done: usize, made: &anyhow::Result<Made>| {
                if total > 1 {
                    let _ = write!(std::io::stdout(), "{} of {total}, ", before + done);
                }
                let made = match made {
                    Ok(made) => made,
                    Err(error) => {
                        tell!("{error:#}\n");
                        return failed.push(format!("{error:#}"));
                    }
                };
                if printed.is_ok() {
                    printed = made.print(&self.folder.out);
                }
                // Committed results are shown, but are not judged.
                if matches!(made.record.origin, Origin::Measured { .. }) {
                    let rows = made.record.out_of_tolerance();
                    out.extend(rows.map(|row| format!("{}: {}", made.record.key, row.quantity)));
                }
            };
            // A failed experiment does not stop the others.
            workers::each(threads, &experiments, |experiment| Ok(self.make(experiment)), told)?;
            before += experiments.len();
        }
        printed?;
        if total > 1 {
            let took = clock.now().since(Instant::ZERO).as_secs_f64();
            tell!("{total} experiments, {took:.0} s");
        }
        let wrong = [("failed", failed), ("out of tolerance", out)];
        let wrong = wrong.into_iter().filter(|(_, which)| !which.is_empty());
        let wrong: Vec<String> =
            wrong.map(|(what, which)| format!("{what}: {}", which.join("; "))).collect();
        if !wrong.is_empty() {
            bail!("{}", wrong.join("\n"));
        }
        Ok(())
    }

    /// Returns the result of an experiment that `--resume` reuses, if any; otherwise, and always
    /// without `--resume`, runs the experiment and writes its result to the folder.
    fn make(&self, experiment: &Experiment) -> anyhow::Result<Made> {
        if let Some(record) = self.left(experiment)? {
            return Ok(Made { record, is_left: true });
        }
        let (line, clock) = (Line::new(experiment.key), Clock::start());
        let progress = |progress: experiment::Progress<'_>| line.show(progress);
        let run = experiment::Run::new(self.quick, self.seed, &progress);
        let outcome = (experiment.run)(&run);
        line.clear();
        let (outcome, took) = (outcome.context(experiment.key)?, clock.now().since(Instant::ZERO));
        let record = Record::write(&self.folder.out, experiment, &run, outcome, took)?;
        Ok(Made { record, is_left: false })
    }

    /// Returns the result that `--resume` reuses: of the same seed and kind of run, younger than
    /// this binary, and not skipped. `None` otherwise.
    fn left(&self, experiment: &Experiment) -> anyhow::Result<Option<Record>> {
        if !self.resume {
            return Ok(None);
        }
        let record = Record::read(&self.folder.out, experiment.key)?;
        let Some(record) = record.filter(|it| (it.quick, it.seed) == (self.quick, self.seed))
        else {
            return Ok(None);
        };
        let made_at = |file: &Path| std::fs::metadata(file).and_then(|file| file.modified());
        let binary = std::env::current_exe().and_then(|file| made_at(&file));
        let left_at = made_at(&record::file(&self.folder.out, experiment.key));
        let is_younger = left_at.context("the record is gone")? > binary.context("no binary")?;
        // A missing requirement may be available by now.
        let is_skipped = matches!(record.origin, Origin::Skipped(_));
        Ok(Some(record).filter(|_| is_younger && !is_skipped))
    }
}

/// Record of one experiment's results, run now or reused from the folder.
struct Made {
    record: Record,
    /// True if the record is reused from an earlier run.
    is_left: bool,
}

impl Made {
    fn print(&self, out: &Path) -> anyhow::Result<()> {
        let Record { key, title, source, origin, rows, seconds, .. } = &self.record;
        if self.is_left {
            tell!("{key}: {}, taken over", self.record.summary());
            return Ok(());
        }
        tell!("{key}: {title} ({source})");
        if !matches!(origin, Origin::Measured { .. }) {
            tell!("{origin}");
        }
        if !rows.is_empty() {
            print(&HEADS, rows.iter().map(cells).collect(), &[2, 3, 4, 5])?;
        }
        tell!("{}, {seconds:.1} s\n", out.join(key).display());
        Ok(())
    }
}

impl Report {
    /// Writes the page of all results and prints its path.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let records = report::write(&self.folder.out, papers::all())?;
        let file = self.folder.out.join(report::FILE);
        tell!("{} ({} experiments)", file.display(), records.len());
        Ok(())
    }
}

/// Returns the experiments with these keys, or of papers with these names, each once, in the order
/// of the registry. Fails for an unknown key.
fn chosen(keys: &[String]) -> anyhow::Result<Vec<&'static Experiment>> {
    for key in keys.iter().filter(|key| *key != ALL) {
        if papers::find(key).is_some() || papers::all().any(|one| is_of(one, key)) {
            continue;
        }
        match papers::near(key).as_slice() {
            [] => bail!("there is no experiment {key}; `tautline lab list` lists them"),
            near => bail!("there is no experiment {key}; near it are {}", near.join(", ")),
        }
    }
    let wanted = |experiment: &&Experiment| {
        keys.iter().any(|k| k == ALL || k == experiment.key || is_of(experiment, k))
    };
    Ok(papers::all().filter(wanted).collect())
}

/// Returns whether an experiment's key begins with a paper's, as `car-table-1` does with `car`.
fn is_of(experiment: &Experiment, paper: &str) -> bool {
    experiment.key.split_once('-').is_some_and(|(before, _)| before == paper)
}

fn cells(row: &Row) -> [String; HEADS.len()] {
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    [
        row.quantity.clone(),
        row.unit.clone(),
        optional(row.published),
        optional(row.reference),
        optional(row.asked),
        number(row.measured),
        row.tolerance.to_string(),
        row.verdict().name().to_owned(),
    ]
}

const HEADS: [&str; 8] =
    ["quantity", "unit", "published", "reference", "asked", "measured", "may be", "verdict"];

/// Word on the command line that stands for all keys.
const ALL: &str = "all";
