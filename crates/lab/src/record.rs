//! Files of a run: writing and reading.
//!
//! ```text
//! OUT/<key>/result.json    everything but tables and pictures; a skipped one has only this file
//! OUT/<key>/rows.csv       the rows with their verdicts
//! OUT/<key>/<table>.csv    the numbers
//! OUT/<key>/<plot>.svg     the pictures
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fmt, fs};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::experiment::{
    Experiment, Findings, Measurement, Outcome, Row, Run, Skipped, Table, Verdict,
};
use crate::machine::{self, Machine};
use crate::notation::is_name;
use crate::plot::Plot;

/// One experiment's result, as stored in `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`Experiment::key`].
    pub key: String,
    /// [`Experiment::title`].
    pub title: String,
    /// [`Experiment::source`].
    pub source: String,
    /// True if it was a quick run.
    pub quick: bool,
    /// Seed of the run's random numbers.
    pub seed: u64,
    /// The version of Tautline that ran, and how it was built.
    pub version: String,
    /// Origin of the figures, with the machine that measured them.
    pub origin: Origin,
    /// Duration of the run by the clock in s, whatever the number of processors.
    #[serde(default)]
    pub seconds: f64,
    /// [`Findings::rows`].
    pub rows: Vec<Row>,
    /// [`Findings::notes`].
    pub notes: Vec<String>,
    /// Names of the tables' CSV files, without `.csv`.
    pub tables: Vec<String>,
    /// Captions of the tables that are shown in the report, by name.
    #[serde(default)]
    pub captions: BTreeMap<String, String>,
    /// The plots: names and captions of the SVG files.
    pub plots: Vec<Picture>,
}

/// The origin of a record's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Origin {
    /// Measured by this run.
    Measured {
        /// Machine that performed the run.
        machine: Machine,
    },
    /// Read from a committed measurement.
    Committed(Measurement),
    /// Nothing was measured.
    Skipped(Skipped),
}

/// One SVG file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The file's name without `.svg`.
    pub name: String,
    /// The caption of the picture.
    pub title: String,
}

impl Record {
    /// Writes an outcome into `<out>/<key>/`, and replaces an earlier one; `took` is the duration
    /// of the run.
    ///
    /// # Errors
    /// If a file cannot be written, the findings lack rows, tables or plots, or a plot is empty.
    pub fn write(
        out: &Path,
        experiment: &Experiment,
        run: &Run<'_>,
        outcome: Outcome,
        took: Duration,
    ) -> Result<Record> {
        let folder = out.join(experiment.key);
        create(&folder)?;
        let (origin, findings) = match outcome {
            Outcome::Measured(findings) => {
                (Origin::Measured { machine: Machine::here() }, Some(findings))
            }
            Outcome::Committed(measurement, findings) => {
                (Origin::Committed(measurement), Some(findings))
            }
            Outcome::Skipped(skipped) => (Origin::Skipped(skipped), None),
        };
        if let Some(findings) = &findings {
            write_findings(&folder, findings).context(experiment.key)?;
        }
        let findings = findings.unwrap_or_default();
        let picture =
            |plot: &Plot| Picture { name: plot.name().to_owned(), title: plot.title().to_owned() };
        let captions = findings
            .tables
            .iter()
            .filter_map(|table| Some((table.name().to_owned(), table.caption()?.to_owned())));
        let record = Record {
            key: experiment.key.to_owned(),
            title: experiment.title.to_owned(),
            source: experiment.source.to_owned(),
            quick: run.quick,
            seed: run.seed,
            version: machine::version(),
            origin,
            seconds: took.as_secs_f64(),
            tables: findings.tables.iter().map(|table| table.name().to_owned()).collect(),
            captions: captions.collect(),
            plots: findings.plots.iter().map(picture).collect(),
            rows: findings.rows,
            notes: findings.notes,
        };
        write(&folder.join(RESULT), &(serde_json::to_string_pretty(&record)? + "\n"))?;
        Ok(record)
    }

    /// Reads the record of an earlier run from `<out>/<key>/`; `None` if there is none.
    ///
    /// # Errors
    /// If the record's file cannot be read, or is not a valid record.
    pub fn read(out: &Path, key: &str) -> Result<Option<Record>> {
        let file = file(out, key);
        if !file.exists() {
            return Ok(None);
        }
        let parse = || -> Result<Record> {
            let record: Record = serde_json::from_str(&fs::read_to_string(&file)?)?;
            let names = record.tables.iter().chain(record.plots.iter().map(|plot| &plot.name));
            for name in names.chain([&record.key]) {
                ensure!(is_name(name), "{name:?} is no name of a file here");
            }
            Ok(record)
        };
        parse().map(Some).with_context(|| format!("cannot read {}", file.display()))
    }

    /// Returns the command that reproduces this record; for a committed measurement, the one that
    /// measured it.
    pub fn command(&self) -> String {
        if let Origin::Committed(measurement) = &self.origin {
            return measurement.command.clone();
        }
        let quick = if self.quick { " --quick" } else { "" };
        format!("tautline lab run {}{quick} --seed {}", self.key, self.seed)
    }

    /// Returns a summary: the number of rows within tolerance, or the reason why none is judged.
    pub fn summary(&self) -> String {
        match &self.origin {
            Origin::Measured { .. } => self.held(),
            Origin::Committed(measurement) if self.judged().next().is_some() => {
                format!("{}, read, of {}", self.held(), measurement.date)
            }
            Origin::Committed(measurement) => format!("read, of {}", measurement.date),
            Origin::Skipped(_) => "skipped".to_owned(),
        }
    }

    fn held(&self) -> String {
        let judged = self.judged().count();
        format!("{} of {judged} within", judged - self.out_of_tolerance().count())
    }

    /// Returns the rows that are judged.
    pub fn judged(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.verdict() != Verdict::Shown)
    }

    /// Returns the rows that are out of their tolerance.
    pub fn out_of_tolerance(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.verdict() == Verdict::Out)
    }
}

/// Writes the origin as sentences for the report.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Measured { machine } => write!(f, "Measured on {machine}."),
            Self::Committed(Measurement { file, command, machine, date, is_reproducible }) => {
                let judged = match is_reproducible {
                    true => "Any machine measures the same.",
                    false => "Not judged.",
                };
                write!(
                    f,
                    "Read from {file}, which `{command}` measured on {date}: {machine}. {judged}"
                )
            }
            Self::Skipped(Skipped { missing, remedy }) => write!(f, "Skipped: {missing}. {remedy}"),
        }
    }
}

/// Returns the path of an experiment's record in a folder of results.
pub fn file(out: &Path, key: &str) -> PathBuf {
    out.join(key).join(RESULT)
}

/// Creates a folder if necessary, and checks that it is writable.
///
/// # Errors
/// If it cannot be created or written.
pub fn create(folder: &Path) -> Result<()> {
    let cannot = || format!("cannot write into {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    tempfile::tempfile_in(folder).with_context(cannot)?;
    Ok(())
}

/// Writes each table as `<name>.csv` into a folder.
///
/// # Errors
/// If a file cannot be written.
pub fn write_tables(folder: &Path, tables: &[Table]) -> Result<()> {
    let mut tables = tables.iter();
    tables.try_for_each(|table| {
        write(&folder.join(table.name()).with_extension("csv"), &table.to_csv())
    })
}

/// Draws each plot as `<name>.svg` into a folder.
///
/// # Errors
/// If a plot is empty, or a file cannot be written.
pub fn write_plots(folder: &Path, plots: &[Plot]) -> Result<()> {
    let mut plots = plots.iter();
    plots.try_for_each(|plot| {
        write(&folder.join(plot.name()).with_extension("svg"), &plot.to_svg()?)
    })
}

fn write_findings(folder: &Path, findings: &Findings) -> Result<()> {
    let Findings { tables, plots, rows, .. } = findings;
    ensure!(!rows.is_empty(), "no rows");
    ensure!(!tables.is_empty(), "no tables");
    ensure!(!plots.is_empty(), "no plots");
    write_tables(folder, tables)?;
    write_plots(folder, plots)?;
    write(&folder.join("rows.csv"), &rows_table(rows).to_csv())
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn rows_table(rows: &[Row]) -> Table {
    let columns = [
        "quantity",
        "unit",
        "published",
        "reference",
        "asked",
        "measured",
        "tolerance",
        "why_that_wide",
        "verdict",
        "note",
    ];
    let mut table = Table::new("rows", columns);
    for row in rows {
        table.push([
            row.quantity.as_str().into(),
            row.unit.as_str().into(),
            row.published.into(),
            row.reference.into(),
            row.asked.into(),
            row.measured.into(),
            row.tolerance.to_string().into(),
            row.reason.as_str().into(),
            row.verdict().name().into(),
            row.note.as_str().into(),
        ]);
    }
    table
}

const RESULT: &str = "result.json";
