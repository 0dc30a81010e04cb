//! `cargo xtask tidy --counts`: the size of the house and of its prose, to be compared over time.

use std::process::Command;

use anyhow::{Context, Result};

use crate::prose;
use crate::source::{Language, Source};

/// Prints the counts, one on each line: lines of Rust, words of docs, fragments, long lines, and
/// long names of tests.
///
/// # Errors
/// If git fails, or a generated file cannot be read.
pub(crate) fn run(sources: &[Source]) -> Result<()> {
    let by_hand = rust_lines(sources.iter().filter(|source| source.language == Language::Rust));
    let words = |within: &str| {
        let pages = sources.iter().filter(|source| source.path.starts_with(within));
        let pages = pages.filter(|source| source.language == Language::Markdown);
        let words = |text: &str| text.split_whitespace().filter(|word| is_word(word)).count();
        pages.map(|page| words(&page.text)).sum::<usize>()
    };
    let fragments: usize = sources.iter().map(|source| prose::fragments(source).len()).sum();
    let long = sources.iter().map(|source| prose::long_lines(source).len()).sum::<usize>();
    let names: usize = sources.iter().map(|source| prose::long_names(source).len()).sum();
    let rows = [
        ("lines of Rust, written by hand", by_hand),
        ("lines of Rust, generated", generated_lines()?),
        ("words in docs/", words("docs/")),
        ("words in docs/decisions/ of these", words("docs/decisions/")),
        ("sentences without a main clause", fragments),
        ("lines of prose over 100 columns", long),
        ("names of tests over 60 characters", names),
    ];
    for (what, count) in rows {
        println!("{count:>8}  {what}");
    }
    Ok(())
}

/// Returns whether a word of Markdown has a letter or digit, unlike the strokes of tables and
/// diagrams.
fn is_word(word: &str) -> bool {
    word.contains(char::is_alphanumeric)
}

fn rust_lines<'a>(sources: impl Iterator<Item = &'a Source>) -> usize {
    sources.map(|source| source.text.lines().count()).sum()
}

/// Returns the number of lines of the committed Rust that generators wrote.
fn generated_lines() -> Result<usize> {
    let files = Command::new("git").args(["ls-files", "*.rs"]).output()?;
    let files = String::from_utf8(files.stdout).context("git ls-files")?;
    let generated = files.lines().filter(|path| crate::source::is_generated(path));
    let lines = generated.map(|path| {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
        Ok(text.lines().count())
    });
    lines.sum()
}
