//! Text tables in columns.

use std::fmt::{self, Display, Formatter};

/// A table whose first column is text and whose others are right-aligned.
#[derive(Default)]
pub(crate) struct Table {
    title: String,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(title: impl Into<String>) -> Table {
        Table { title: title.into(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, name: &str, cells: impl IntoIterator<Item = String>) {
        self.rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
}

impl Display for Table {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut widths = Vec::new();
        for row in &self.rows {
            widths.resize(row.len().max(widths.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        writeln!(formatter, "{}", self.title)?;
        for row in &self.rows {
            write!(formatter, "  {:<width$}", row[0], width = widths[0])?;
            for (cell, width) in row[1..].iter().zip(&widths[1..]) {
                write!(formatter, "  {cell:>width$}")?;
            }
            writeln!(formatter)?;
        }
        Ok(())
    }
}

/// Formats a number with three significant digits, but with all digits before the decimal point and
/// at most three after it.
pub(crate) fn figure(value: f64) -> String {
    let decimals = match value.abs() {
        value if value >= 100.0 => 0,
        value if value >= 10.0 => 1,
        value if value >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}
