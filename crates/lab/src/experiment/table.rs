//! Tables of numbers, as CSV.

use crate::notation::is_name;

/// A table of numbers, written as a CSV file whose first line has the column names.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    name: String,
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
    caption: Option<String>,
}

/// One field of a [`Table`]; `into()` creates it from numbers and text.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A quantity in the unit of its column; NaN is an empty field.
    Number(f64),
    /// A count.
    Count(u64),
}

impl Table {
    /// Creates an empty table that becomes `<name>.csv`; column names include the unit, `delay_ms`.
    ///
    /// # Panics
    /// If the name contains anything but lower-case letters, digits and hyphens.
    pub fn new<const COLUMNS: usize>(name: &str, columns: [&str; COLUMNS]) -> Self {
        assert!(is_name(name), "{name:?} cannot name a file");
        let columns = columns.map(str::to_owned).into();
        Self { name: name.to_owned(), columns, rows: Vec::new(), caption: None }
    }

    /// Shows the table in the report as well, with this caption: for small tables that a reader
    /// needs first.
    #[must_use]
    pub fn shown(mut self, caption: &str) -> Self {
        self.caption = Some(caption.to_owned());
        self
    }

    /// Adds one line.
    ///
    /// # Panics
    /// If the number of cells differs from the number of columns.
    pub fn push<const COLUMNS: usize>(&mut self, cells: [Cell; COLUMNS]) {
        assert_eq!(cells.len(), self.columns.len(), "table {}", self.name);
        self.rows.push(cells.into());
    }

    /// Returns the file's name without `.csv`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the caption in the report, if the table is shown there.
    pub fn caption(&self) -> Option<&str> {
        self.caption.as_deref()
    }

    /// Returns the number of lines below the header.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the table as CSV (RFC 4180, with plain line feeds), its header included.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let lines = self.rows.iter().map(|row| row.iter().map(Cell::to_field).collect());
        for line in std::iter::once(self.columns.clone()).chain(lines) {
            writer.write_record(&line).expect("a vector takes lines of one length");
        }
        let bytes = writer.into_inner().expect("a vector takes all");
        String::from_utf8(bytes).expect("fields are UTF-8")
    }
}

impl Cell {
    fn to_field(&self) -> String {
        match self {
            Cell::Text(text) => text.clone(),
            Cell::Number(number) if number.is_nan() => String::new(),
            Cell::Number(number) => number.to_string(),
            Cell::Count(count) => count.to_string(),
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Cell::Number(number)
    }
}

impl From<Option<f64>> for Cell {
    fn from(number: Option<f64>) -> Self {
        Cell::Number(number.unwrap_or(f64::NAN))
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Cell::Count(count)
    }
}

impl From<usize> for Cell {
    fn from(count: usize) -> Self {
        Cell::Count(count as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_field_comes_back_from_the_csv() {
        let words = ["plain", "with, comma", "with \"quotes\"", "two\nlines", "", " spaces "];
        let mut table = Table::new("words", ["number", "word_of_it"]);
        for word in words {
            table.push([0.1.into(), word.into()]);
        }
        let csv = table.to_csv();
        let mut reader = csv::Reader::from_reader(csv.as_bytes());
        assert_eq!(reader.headers().unwrap(), ["number", "word_of_it"].as_slice());
        let read: Vec<String> =
            reader.records().map(|record| record.unwrap()[1].to_owned()).collect();
        assert_eq!(read, words);
    }

    #[test]
    fn numbers_keep_every_digit() {
        let mut table = Table::new("numbers", ["a", "b", "c"]);
        table.push([(1.0 / 3.0).into(), 7_usize.into(), f64::NAN.into()]);
        assert_eq!(table.to_csv(), "a,b,c\n0.3333333333333333,7,\n");
    }
}
