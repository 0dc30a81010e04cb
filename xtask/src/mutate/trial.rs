//! The build, and the experiments run with it.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::tree::{CHOSEN, Tree};

/// Outcome of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// Every judged row is within its tolerance.
    Within,
    /// Names of the rows that are out of tolerance, at least one.
    Out(Vec<String>),
    /// The last line of output of an experiment that failed or timed out.
    Failed(String),
    /// The missing prerequisites of a skipped experiment, which is neither within tolerance nor
    /// out.
    Skipped(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within => f.write_str("within"),
            Self::Out(rows) => write!(f, "{} out, {}", rows.len(), rows[0]),
            Self::Failed(words) => write!(f, "failed, {words}"),
            Self::Skipped(missing) => write!(f, "SKIPPED, it lacks {missing}"),
        }
    }
}

/// Builds the binary with the lab and every mutation.
///
/// # Errors
/// If it does not compile.
pub(super) fn build(tree: &Tree) -> Result<()> {
    let results = tree.results(AS_IT_STANDS);
    fs::create_dir_all(&results)?;
    let log = results.join("build.log");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--package", "tautline", "--features", "quorum"])
        .current_dir(tree.root())
        .env("CARGO_TARGET_DIR", tree.build())
        .stderr(File::create(&log)?)
        .status()
        .context("cargo build")?;
    ensure!(status.success(), "the mutations do not build: {}", log.display());
    Ok(())
}

/// Runs experiments in quick mode, with a mutation or unchanged: together, as `tautline lab run`
/// does, then alone those that did not finish. The outcomes are in the order of `keys`.
///
/// # Errors
/// If a process cannot be started, or a record cannot be read.
pub(super) fn measure(tree: &Tree, chosen: Option<&str>, keys: &[&str]) -> Result<Vec<Outcome>> {
    let results = tree.results(chosen.unwrap_or(AS_IT_STANDS));
    fs::create_dir_all(&results)?;
    for key in keys {
        // Unchanged runs resume from stored results that are within tolerance; a mutation's runs
        // are few.
        let goes_on = chosen.is_none()
            && is_of_this_build(tree, &results, key)
            && outcome_of(&results, key)? == Some(Outcome::Within);
        let left = results.join(key);
        if left.exists() && !goes_on {
            fs::remove_dir_all(left)?;
        }
    }
    let mut words = run(tree, &results, chosen, keys)?;
    let mut outcomes = Vec::new();
    for key in keys {
        let mut outcome = outcome_of(&results, key)?;
        if outcome.is_none() && keys.len() > 1 {
            words = run(tree, &results, chosen, &[key])?;
            outcome = outcome_of(&results, key)?;
        }
        outcomes.push(outcome.unwrap_or_else(|| Outcome::Failed(words.clone())));
    }
    Ok(outcomes)
}

/// Runs experiments in one process, and returns its last line of output or that it timed out.
fn run(tree: &Tree, results: &Path, chosen: Option<&str>, keys: &[&str]) -> Result<String> {
    let log = results.join(format!("{}.log", keys.first().context("no experiments")?));
    let seconds_max = SECONDS_MAX + SECONDS_MORE * (keys.len() - 1);
    let status = Command::new("timeout")
        .args(["--kill-after=5", &seconds_max.to_string()])
        .arg(binary(tree))
        .args(["lab", "run"])
        .args(keys)
        .args(["--quick", "--resume", "--out"])
        .arg(results)
        .env_remove(CHOSEN)
        .envs(chosen.map(|name| (CHOSEN, name)))
        .stdout(File::create(log.with_extension("txt"))?)
        .stderr(File::create(&log)?)
        .status()
        .context("timeout, of coreutils")?;
    if status.code() == Some(TIMED_OUT) {
        return Ok(format!("no end after {seconds_max} s"));
    }
    Ok(last_words(&fs::read_to_string(&log)?).to_owned())
}

/// Returns the message of the first panic in a process's output, or else the last line that is not
/// blank.
fn last_words(said: &str) -> &str {
    let mut lines = said.lines();
    let of_panic = lines.find(|line| line.contains(" panicked at ")).and_then(|_| lines.next());
    let last = || said.lines().rev().find(|line| !line.trim().is_empty());
    of_panic.or_else(last).unwrap_or("without a word").trim()
}

/// Returns whether an experiment has a record, and it is newer than the binary.
fn is_of_this_build(tree: &Tree, results: &Path, key: &str) -> bool {
    let made_at = |file: &Path| file.metadata().and_then(|file| file.modified()).ok();
    let record = made_at(&results.join(key).join(RECORD));
    record.is_some_and(|record| made_at(&binary(tree)).is_some_and(|binary| binary < record))
}

fn binary(tree: &Tree) -> PathBuf {
    tree.build().join("debug/tautline")
}

/// Returns the outcome in an experiment's record; `None` if there is no record.
fn outcome_of(results: &Path, key: &str) -> Result<Option<Outcome>> {
    if !results.join(key).join(RECORD).exists() {
        return Ok(None);
    }
    let record = fs::read_to_string(results.join(key).join(RECORD))?;
    let record: Record = serde_json::from_str(&record).with_context(|| key.to_owned())?;
    if record.origin.outcome == "skipped" {
        return Ok(Some(Outcome::Skipped(record.origin.missing.unwrap_or_default())));
    }
    let out = out_of_tolerance(&results.join(key).join("rows.csv"))?;
    Ok(Some(if out.is_empty() { Outcome::Within } else { Outcome::Out(out) }))
}

/// The part of a lab record that is used here.
#[derive(Deserialize)]
struct Record {
    origin: Origin,
}

#[derive(Deserialize)]
struct Origin {
    outcome: String,
    missing: Option<String>,
}

/// Returns the quantities in a `rows.csv` that are out of tolerance.
fn out_of_tolerance(rows: &Path) -> Result<Vec<String>> {
    let mut reader = csv::Reader::from_path(rows)?;
    let head = reader.headers()?.clone();
    let column = |name: &str| {
        let place = head.iter().position(|column| column == name);
        place.with_context(|| format!("{} has no column {name}", rows.display()))
    };
    let (quantity, verdict) = (column("quantity")?, column("verdict")?);
    let mut out = Vec::new();
    for line in reader.records() {
        let line = line?;
        if &line[verdict] == "OUT" {
            out.push(line[quantity].to_owned());
        }
    }
    Ok(out)
}

/// Name of the file that an experiment writes last.
const RECORD: &str = "result.json";
/// Name of the results folder of the unchanged code.
const AS_IT_STANDS: &str = "as-it-stands";
/// Timeout of a run's first experiment in seconds, several times that of the slowest: a mutation
/// may prevent one from ending.
const SECONDS_MAX: usize = 600;
/// Additional seconds for each further experiment of a run.
const SECONDS_MORE: usize = 60;
/// Exit code of coreutils' timeout.
const TIMED_OUT: i32 = 124;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_panic_are_its_message() {
        let panic = "lte-fig-5: 5 %\nthread '<unnamed>' panicked at src/five.rs:5:5:\nfive is no six\nnote: run with\n";
        assert_eq!(last_words(panic), "five is no six");
        assert_eq!(last_words("lte-fig-5: 5 %\ntautline: no link\n\n"), "tautline: no link");
        assert_eq!(last_words(""), "without a word");
    }

    #[test]
    fn a_record_says_what_came_of_an_experiment() {
        let folder = std::env::temp_dir().join(format!("tautline-record-{}", std::process::id()));
        let leave = |key: &str, origin: &str, rows: &str| {
            fs::create_dir_all(folder.join(key)).unwrap();
            fs::write(folder.join(key).join(RECORD), format!("{{\"origin\": {origin}}}")).unwrap();
            fs::write(folder.join(key).join("rows.csv"), rows).unwrap();
        };
        let measured = "{\"outcome\": \"measured\", \"machine\": {}}";
        leave("lte-fig-5", measured, "quantity,verdict\nmean,within\n");
        leave("lte-fig-6", measured, "quantity,verdict\nmean,OUT\n");
        leave("lte-fig-7", "{\"outcome\": \"skipped\", \"missing\": \"ffmpeg\"}", "");
        for (key, outcome) in [
            ("lte-fig-5", Some(Outcome::Within)),
            ("lte-fig-6", Some(Outcome::Out(vec!["mean".to_owned()]))),
            ("lte-fig-7", Some(Outcome::Skipped("ffmpeg".to_owned()))),
            ("lte-fig-8", None),
        ] {
            assert_eq!(outcome_of(&folder, key).unwrap(), outcome, "{key}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn rows_out_of_tolerance_are_named_by_quantity() {
        let folder = std::env::temp_dir().join(format!("tautline-mutate-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("rows.csv");
        let text =
            "quantity,unit,verdict,note\n\"delay, p95\",ms,OUT,\nmean,ms,within,OUT\nmost,,-,\n";
        fs::write(&file, text).unwrap();
        assert_eq!(out_of_tolerance(&file).unwrap(), ["delay, p95"]);
        fs::write(&file, "quantity,unit\nmean,ms\n").unwrap();
        let told = out_of_tolerance(&file).unwrap_err().to_string();
        assert!(told.ends_with("has no column verdict"), "{told}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
