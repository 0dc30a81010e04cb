//! Tables on standard output.

use std::io::{Write as _, stdout};

/// Prints a table with its head, each column as wide as its widest cell; the columns whose indices
/// are in `right` are right-aligned.
pub(super) fn print<const COLUMNS: usize>(
    heads: &[&str; COLUMNS],
    lines: Vec<[String; COLUMNS]>,
    right: &[usize],
) -> anyhow::Result<()> {
    let lines: Vec<[String; COLUMNS]> =
        std::iter::once(heads.map(str::to_owned)).chain(lines).collect();
    let mut out = stdout().lock();
    for line in &lines {
        let mut text = String::new();
        for (column, cell) in line.iter().enumerate() {
            let widths = lines.iter().map(|line| line[column].chars().count());
            let pad = " ".repeat(widths.max().unwrap_or(0) - cell.chars().count());
            text += &if right.contains(&column) {
                format!("{pad}{cell}  ")
            } else {
                format!("{cell}{pad}  ")
            };
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}
