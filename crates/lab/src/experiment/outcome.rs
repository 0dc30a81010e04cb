//! Results of an experiment, and their origin.

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::row::{Row, Tolerance};
use super::table::Table;
use crate::machine::Machine;
use crate::plot::Plot;

/// Outcome of one experiment.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Measured by this run on this machine; the rows are judged.
    Measured(Findings),
    /// Read from a committed measurement, possibly of another machine: shown, and judged only if
    /// every machine measures the same.
    Committed(Measurement, Findings),
    /// Not measured, because a prerequisite is missing.
    Skipped(Skipped),
}

/// Findings of one experiment.
///
/// `tables`, `plots` and `rows` must be non-empty: every experiment provides its numbers as CSV,
/// its picture as SVG, and a comparison.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Every number behind the plots, as CSV files.
    pub tables: Vec<Table>,
    /// The figures, as SVG files.
    pub plots: Vec<Plot>,
    /// Comparisons of published and measured values, with a verdict each.
    pub rows: Vec<Row>,
    /// Information for the reader: conditions, machine, errors of the paper. One or two sentences
    /// each.
    pub notes: Vec<String>,
}

/// A committed measurement: its file and its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// Path of the file with the measurement, from the repository's root.
    pub file: String,
    /// Command that repeats the measurement.
    pub command: String,
    /// The machine that measured.
    pub machine: Machine,
    /// The day of the measurement, `2026-11-22`.
    pub date: String,
    /// True if any machine measures the same, to the byte, as in virtual time: then its rows are
    /// judged.
    #[serde(default)]
    pub is_reproducible: bool,
}

impl Measurement {
    /// Returns the origin and the lines of a committed table, marked as not reproducible. `made` is
    /// JSON with a machine and a date, and `table` is CSV with a header.
    ///
    /// # Errors
    /// If either is malformed.
    pub(crate) fn read<T: DeserializeOwned>(
        file: &str,
        command: &str,
        made: &str,
        table: &str,
    ) -> Result<(Self, Vec<T>)> {
        #[derive(Deserialize)]
        struct Made {
            machine: Machine,
            date: String,
        }
        let Made { machine, date } = serde_json::from_str(made)
            .with_context(|| format!("the note next to {file} names no machine"))?;
        let (file, command) = (file.to_owned(), command.to_owned());
        let lines = csv::Reader::from_reader(table.as_bytes()).into_deserialize().collect();
        let lines: Result<_, csv::Error> = lines;
        let lines = lines.with_context(|| format!("{file} has a line that is none"))?;
        Ok((Self { file, command, machine, date, is_reproducible: false }, lines))
    }

    /// Marks the measurement as the same on any machine.
    pub(crate) fn reproducible(self) -> Self {
        Self { is_reproducible: true, ..self }
    }
}

/// The reason why nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The missing prerequisite.
    pub missing: String,
    /// Instructions to obtain the missing prerequisite.
    pub remedy: String,
}

impl Outcome {
    /// Returns the findings of a committed measurement. Unless it is reproducible, their rows lose
    /// their tolerances: the measurement of another machine on another day does not judge this run.
    pub fn committed(measurement: Measurement, mut findings: Findings) -> Self {
        if !measurement.is_reproducible {
            for row in &mut findings.rows {
                (row.tolerance, row.reason) = (Tolerance::None, String::new());
            }
        }
        Self::Committed(measurement, findings)
    }

    /// Returns the outcome of an experiment that lacks a prerequisite.
    pub fn skipped(missing: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Skipped(Skipped { missing: missing.into(), remedy: remedy.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Verdict;

    #[test]
    fn only_reproducible_committed_measurements_are_judged() {
        let measurement = Measurement {
            file: "figures.csv".to_owned(),
            command: "make figures".to_owned(),
            machine: Machine::here(),
            date: "2026-11-22".to_owned(),
            is_reproducible: false,
        };
        let rows = vec![
            Row::new("worse than published", "ms", 9.0).published(1.0).at_most(1.0),
            Row::new("as published", "ms", 1.0).published(1.0).within(0.1),
        ];
        let findings = Findings { rows, ..Findings::default() };
        let verdicts = |measurement: Measurement| {
            let outcome = Outcome::committed(measurement, findings.clone());
            let Outcome::Committed(_, findings) = outcome else { panic!("committed") };
            [0, 1].map(|at: usize| findings.rows[at].verdict())
        };
        assert_eq!(verdicts(measurement.clone()), [Verdict::Shown; 2]);
        assert_eq!(verdicts(measurement.reproducible()), [Verdict::Out, Verdict::Within]);
    }
}
