//! `cargo xtask frames` writes the guard's frames, and what other languages and the docs have of
//! them, from one description ([`frames`]).
//!
//! `cargo xtask mutate` checks that the lab's experiments notice a changed constant ([`mutate`]).
//!
//! `cargo xtask parsers` lists every function that takes foreign bytes, and its tests
//! ([`parsers`]).
//!
//! `cargo xtask tidy --counts` prints the size of the code and of its prose ([`counts`]).
//!
//! `cargo xtask tidy`: the house rules that no other tool checks.
//!
//! - The arrows between crates are those of the table in ARCHITECTURE.md ([`arrows`]).
//! - No file is in a circle of imports ([`circles`]).
//! - Files that `cargo xtask frames` writes are up to date ([`frames`]).
//! - No source file is over 800 lines, and there is no `mod.rs` ([`files`]).
//! - Sockets, clocks, threads and unsafe code stand only where ARCHITECTURE.md allows them
//!   ([`invariants`]).
//! - Docs of types begin with a noun phrase, those of functions with a verb; they cite only sources
//!   that docs/papers.md has ([`docs`]).
//! - Comments and pages have no sentence without a main clause and no line over 100 columns;
//!   tests have names of at most 60 characters ([`prose`]).
//! - A crate's docs are tested, unless they have no example ([`examples`]).
//! - Every public function that takes bytes has a fuzz target or a property test ([`parsers`]).
//! - Tests that docs/safety.md names exist ([`safety`]).
//! - Every change that xtask/mutations.toml lists can be made ([`mutate`]).
//! - Links, source files and pages of docs that a page names exist, and docs/SUMMARY.md lists every
//!   page ([`links`]).
//! - Words that docs/glossary.md refuses are in no name and in no text ([`words`]).

mod arrows;
mod circles;
mod counts;
mod docs;
mod examples;
mod files;
mod frames;
mod invariants;
mod links;
mod mutate;
mod parsers;
mod prose;
mod safety;
mod source;
mod words;

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let checked = match arguments.split_first() {
        Some((command, [])) if command == "tidy" => tidy(),
        Some((command, [counts])) if command == "tidy" && counts == "--counts" => {
            source::all().and_then(|sources| counts::run(&sources))
        }
        Some((command, [])) if command == "parsers" => {
            source::all().and_then(|sources| parsers::run(&sources))
        }
        Some((command, [])) if command == "frames" => frames::run(),
        Some((command, wanted)) if command == "mutate" => mutate::run(wanted),
        _ => Err(anyhow::anyhow!(
            "usage: cargo xtask tidy [--counts], frames, parsers, or mutate [NAME or KEY ..]"
        )),
    };
    match checked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn tidy() -> Result<()> {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .context("cargo metadata")?;
    let metadata = serde_json::from_slice(&metadata.stdout).context("cargo metadata")?;
    let sources = source::all()?;
    let text_of = |path: &str| {
        let found = sources.iter().find(|source| source.path == path);
        found.map(|source| source.text.as_str()).with_context(|| format!("there is no {path}"))
    };
    let keys = docs::keys(text_of("docs/papers.md")?);
    let refused = words::refused(text_of("docs/glossary.md")?);
    let allowed = arrows::allowed(text_of("ARCHITECTURE.md")?)?;
    let mut faults = arrows::faults(&metadata, &allowed)?;
    faults.extend(examples::faults(&metadata, &sources)?);
    faults.extend(frames::faults()?);
    faults.extend(circles::faults(&sources));
    faults.extend(parsers::faults(&sources)?);
    faults.extend(links::faults(&sources, &source::paths()?));
    for source in &sources {
        faults.extend(files::faults(source));
        faults.extend(invariants::faults(source));
        faults.extend(docs::faults(source, &keys));
        faults.extend(words::faults(source, &refused));
        faults.extend(prose::faults(source));
        if source.path == mutate::FILE {
            faults.extend(mutate::faults(source, &sources));
        }
        if source.path == "docs/safety.md" {
            faults.extend(safety::faults(source, &sources));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}
