//! What an experiment gives: tables, plots, and rows that are judged.

use super::row::Row;
use super::table::Table;
use crate::plot::Plot;

/// What one experiment found.
///
/// All three lists must have something in them: every experiment gives its numbers as CSV, its
/// picture as SVG, and says how it compares.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Every number behind the plots, as CSV files.
    pub tables: Vec<Table>,
    /// The figures, as SVG files.
    pub plots: Vec<Plot>,
    /// Published against measured, with a verdict each.
    pub rows: Vec<Row>,
    /// What a reader must know: conditions, machine, where the paper errs. One sentence or two each.
    pub notes: Vec<String>,
}
