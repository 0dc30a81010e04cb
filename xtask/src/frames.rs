//! The guard's frames: one description in TOML, and what `cargo xtask frames` writes from it.

mod book;
mod c;
mod docs;
mod python;
mod rust;
mod typescript;

use anyhow::{Context, Result};

use book::{Book, FILE};

/// Writes every file, or part of a file, that comes from [`FILE`].
///
/// # Errors
/// If the description is invalid, or a file cannot be read or written.
pub(crate) fn run() -> Result<()> {
    for (path, text) in outputs()? {
        std::fs::write(path, text).context(path)?;
    }
    Ok(())
}

/// Lists the files that differ from what the description says.
///
/// # Errors
/// If the description is invalid, or a file cannot be read.
pub(crate) fn faults() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (path, text) in outputs()? {
        if std::fs::read_to_string(path).context(path)? != text {
            faults.push(format!("{path}: differs from {FILE}: run `cargo xtask frames`"));
        }
    }
    Ok(faults)
}

/// Returns the path and the whole text of each file.
fn outputs() -> Result<Vec<(&'static str, String)>> {
    let text = std::fs::read_to_string(FILE).context(FILE)?;
    let book = Book::read(&text).context(FILE)?;
    let present = |path: &'static str| std::fs::read_to_string(path).context(path);
    Ok(vec![
        (rust::PATH, rust::layout(&book)?),
        (typescript::PATH, typescript::status(&book)?),
        (docs::PATH, docs::tables(&book, &present(docs::PATH)?)?),
        (python::PATH, python::layouts(&book, &present(python::PATH)?)?),
        (c::HEADER_PATH, c::header(&book, &present(c::HEADER_PATH)?)?),
        (c::SOURCE_PATH, c::source(&book, &present(c::SOURCE_PATH)?)?),
    ])
}
