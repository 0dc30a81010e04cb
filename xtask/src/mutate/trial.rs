//! One build, and one experiment run by it.

use std::fmt;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::tree::Tree;

/// What came of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Outcome {
    /// Every judged row is within its tolerance.
    Within,
    /// These rows are out.
    Out(Vec<String>),
    /// It ended otherwise: the last that it said.
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within => f.write_str("within"),
            Self::Out(rows) => write!(f, "{} out, {}", rows.len(), rows[0]),
            Self::Failed(words) => write!(f, "failed, {words}"),
        }
    }
}

/// Builds the binary with the lab, as the tree stands.
///
/// # Errors
/// When it does not compile.
pub(super) fn build(tree: &Tree, name: &str) -> Result<()> {
    let results = tree.results(name);
    fs::create_dir_all(&results)?;
    let log = results.join("build.log");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--locked", "--package", "tautline", "--features", "quorum"])
        .current_dir(tree.root())
        .env("CARGO_TARGET_DIR", tree.build())
        .stderr(File::create(&log)?)
        .status()
        .context("cargo build")?;
    ensure!(status.success(), "{name} does not build: {}", log.display());
    Ok(())
}

/// Runs an experiment quickly, by what was built last.
///
/// # Errors
/// When it cannot be started, or its rows cannot be read.
pub(super) fn measure(tree: &Tree, name: &str, key: &str) -> Result<Outcome> {
    let results = tree.results(name);
    let rows = results.join(key).join("rows.csv");
    // What an earlier run left is none of this one's.
    if rows.exists() {
        fs::remove_file(&rows)?;
    }
    let log = results.join(format!("{key}.log"));
    let status = Command::new("timeout")
        .args(["--kill-after=5", SECONDS_MAX])
        .arg(tree.build().join("debug/tautline"))
        .args(["lab", "run", key, "--quick", "--out"])
        .arg(&results)
        .stdout(File::create(results.join(format!("{key}.txt")))?)
        .stderr(File::create(&log)?)
        .status()
        .context("timeout, of coreutils")?;
    if status.success() {
        return Ok(Outcome::Within);
    }
    if status.code() == Some(TIMED_OUT) {
        return Ok(Outcome::Failed(format!("no end after {SECONDS_MAX} s")));
    }
    if rows.exists() {
        let out = out_of_tolerance(&rows)?;
        if !out.is_empty() {
            return Ok(Outcome::Out(out));
        }
    }
    let said = fs::read_to_string(&log)?;
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    Ok(Outcome::Failed(last.unwrap_or("without a word").trim().to_owned()))
}

/// Returns the quantities of a `rows.csv` that are out of their tolerance.
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

/// Several times what the slowest takes: a mutation may keep one from ever ending.
const SECONDS_MAX: &str = "600";
/// As coreutils' timeout says it.
const TIMED_OUT: i32 = 124;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_out_are_told_by_their_quantity() {
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
