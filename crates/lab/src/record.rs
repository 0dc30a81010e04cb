//! What a run leaves in its folder, and how it is read again.
//!
//! ```text
//! OUT/<key>/result.json    everything but tables and pictures
//! OUT/<key>/rows.csv       the judged rows
//! OUT/<key>/<table>.csv    the numbers
//! OUT/<key>/<plot>.svg     the pictures
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Outcome, Row, Run, Table, Verdict};
use crate::machine;
use crate::notation::is_name;
use crate::plot::Plot;

/// One experiment's result as it stands in `result.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`Experiment::key`].
    pub key: String,
    /// [`Experiment::title`].
    pub title: String,
    /// [`Experiment::source`].
    pub source: String,
    /// Whether it was a quick run.
    pub quick: bool,
    /// The seed of the run.
    pub seed: u64,
    /// The version of Tautline that ran, and how it was built.
    pub version: String,
    /// The processor that ran it.
    pub processor: String,
    /// [`Outcome::rows`].
    pub rows: Vec<Row>,
    /// [`Outcome::notes`].
    pub notes: Vec<String>,
    /// The names of the CSV files, without `.csv`.
    pub tables: Vec<String>,
    /// Words above the tables that stand in the report, by their names.
    #[serde(default)]
    pub captions: BTreeMap<String, String>,
    /// The pictures.
    pub plots: Vec<Picture>,
}

/// One SVG file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The file's name without `.svg`.
    pub name: String,
    /// The words above the picture.
    pub title: String,
}

impl Record {
    /// Writes an outcome into `<out>/<key>/`, in the place of an earlier one.
    ///
    /// # Errors
    /// When a file cannot be written, or the outcome lacks rows, tables or plots.
    pub fn write(
        out: &Path,
        experiment: &Experiment,
        run: &Run<'_>,
        outcome: Outcome,
    ) -> Result<Record> {
        let key = experiment.key;
        ensure!(!outcome.rows.is_empty(), "{key} gave no rows");
        ensure!(!outcome.tables.is_empty(), "{key} gave no tables");
        ensure!(!outcome.plots.is_empty(), "{key} gave no plots");
        let folder = out.join(key);
        create(&folder)?;
        write_tables(&folder, &outcome.tables)?;
        write_plots(&folder, &outcome.plots)?;
        write(&folder.join("rows.csv"), &rows_table(&outcome.rows).to_csv())?;
        let picture =
            |plot: &Plot| Picture { name: plot.name().to_owned(), title: plot.title().to_owned() };
        let captions = outcome
            .tables
            .iter()
            .filter_map(|table| Some((table.name().to_owned(), table.caption()?.to_owned())));
        let record = Record {
            key: key.to_owned(),
            title: experiment.title.to_owned(),
            source: experiment.source.to_owned(),
            quick: run.quick,
            seed: run.seed,
            version: machine::version(),
            processor: machine::processor(),
            tables: outcome.tables.iter().map(|table| table.name().to_owned()).collect(),
            captions: captions.collect(),
            plots: outcome.plots.iter().map(picture).collect(),
            rows: outcome.rows,
            notes: outcome.notes,
        };
        write(&folder.join(RESULT), &(serde_json::to_string_pretty(&record)? + "\n"))?;
        Ok(record)
    }

    /// Reads what an earlier run left in `<out>/<key>/`; `None` if there is nothing.
    ///
    /// # Errors
    /// When there is something, but no record.
    pub fn read(out: &Path, key: &str) -> Result<Option<Record>> {
        let file = out.join(key).join(RESULT);
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

    /// Returns the command that makes this record again.
    pub fn command(&self) -> String {
        let quick = if self.quick { " --quick" } else { "" };
        format!("tautline lab run {}{quick} --seed {}", self.key, self.seed)
    }

    /// Returns the rows that are out of their tolerance.
    pub fn out_of_tolerance(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.verdict() == Verdict::Out)
    }
}

/// Makes sure that a folder is there and can be written to.
///
/// # Errors
/// When it cannot be.
pub fn create(folder: &Path) -> Result<()> {
    let cannot = || format!("cannot write into {}", folder.display());
    fs::create_dir_all(folder).with_context(cannot)?;
    tempfile::tempfile_in(folder).with_context(cannot)?;
    Ok(())
}

/// Writes each table as `<name>.csv` into a folder.
///
/// # Errors
/// When a file cannot be written.
pub fn write_tables(folder: &Path, tables: &[Table]) -> Result<()> {
    let mut tables = tables.iter();
    tables.try_for_each(|table| {
        write(&folder.join(table.name()).with_extension("csv"), &table.to_csv())
    })
}

/// Draws each plot as `<name>.svg` into a folder.
///
/// # Errors
/// When a plot has nothing to draw, or a file cannot be written.
pub fn write_plots(folder: &Path, plots: &[Plot]) -> Result<()> {
    let mut plots = plots.iter();
    plots.try_for_each(|plot| {
        write(&folder.join(plot.name()).with_extension("svg"), &plot.to_svg()?)
    })
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn rows_table(rows: &[Row]) -> Table {
    let columns =
        ["quantity", "unit", "published", "reference", "measured", "tolerance", "verdict", "note"];
    let mut table = Table::new("rows", columns);
    for row in rows {
        table.push([
            row.quantity.as_str().into(),
            row.unit.as_str().into(),
            row.published.into(),
            row.reference.into(),
            row.measured.into(),
            row.tolerance.to_string().into(),
            row.verdict().name().into(),
            row.note.as_str().into(),
        ]);
    }
    table
}

const RESULT: &str = "result.json";
