//! `cargo xtask tidy`: the house rules that no other tool checks.
//!
//! The arrows between crates are those of ARCHITECTURE.md, no source file is over 800 lines, and
//! there is no `mod.rs`.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

fn main() -> ExitCode {
    let checked = match std::env::args().nth(1).as_deref() {
        Some("tidy") => tidy(),
        _ => Err(anyhow::anyhow!("usage: cargo xtask tidy")),
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
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let files = Command::new("git").args(["ls-files", "-co", "--exclude-standard"]).output()?;
    let files = String::from_utf8(files.stdout)?;
    let mut faults = arrow_faults(&metadata)?;
    faults.extend(files.lines().filter_map(file_fault));
    if faults.is_empty() {
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// Names every arrow between crates that [`ARROWS`] does not allow.
fn arrow_faults(metadata: &serde_json::Value) -> Result<Vec<String>> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let mut faults = Vec::new();
    for package in packages {
        let name = room(package["name"].as_str().context("a package without a name")?);
        let Some(allowed) = ARROWS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to) else {
            faults.push(format!("crate {name} has no entry in xtask's ARROWS"));
            continue;
        };
        for dependency in package["dependencies"].as_array().context("no dependencies")? {
            let Some(to) = dependency["name"].as_str().filter(|d| d.starts_with("tautline")) else {
                continue;
            };
            let for_tests = dependency["kind"].as_str() == Some("dev");
            if !for_tests && !allowed.contains(&room(to)) {
                faults.push(format!("{name} may not depend on {}: see ARCHITECTURE.md", room(to)));
            }
        }
    }
    Ok(faults)
}

/// Says what is wrong with a file, if something is.
fn file_fault(file: &str) -> Option<String> {
    let path = Path::new(file);
    let code = path.extension().is_some_and(|extension| extension == "rs" || extension == "ts");
    if !code || file.contains("generated") || file.starts_with("console/src/message/") {
        return None;
    }
    if path.file_name().is_some_and(|name| name == "mod.rs") {
        return Some(format!("{file}: write foo.rs beside foo/ instead of foo/mod.rs"));
    }
    let lines = std::fs::read_to_string(path).ok()?.lines().count();
    (lines > LINES_MAX).then(|| format!("{file}: {lines} lines, over {LINES_MAX}: it is two nouns"))
}

fn room(package: &str) -> &str {
    package.strip_prefix("tautline-").unwrap_or(package)
}

const LINES_MAX: usize = 800;

/// Which room may use which.
const ARROWS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("fec", &[]),
    ("message", &["units"]),
    ("transport", &["units", "fec"]),
    ("video", &["units"]),
    ("sim", &["units"]),
    ("testtrack", &["units", "message", "video"]),
    ("net", &["units", "message", "transport", "sim"]),
    ("quorum", &["units", "message"]),
    ("vehicle", &["units", "net", "transport", "video", "message", "testtrack"]),
    ("operator", &["units", "net", "transport", "video", "message"]),
    ("switchboard", &["units", "net", "transport", "message"]),
    (
        "lab",
        &[
            "units",
            "fec",
            "message",
            "quorum",
            "transport",
            "sim",
            "net",
            "operator",
            "vehicle",
            "video",
            "testtrack",
        ],
    ),
    (
        "tautline",
        &[
            "units",
            "fec",
            "message",
            "transport",
            "video",
            "sim",
            "testtrack",
            "net",
            "vehicle",
            "operator",
            "switchboard",
            "quorum",
            "lab",
        ],
    ),
    ("xtask", &[]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forbidden_arrow_is_named() {
        let metadata = serde_json::json!({"packages": [
            {"name": "tautline-fec", "dependencies": [{"name": "tautline-net", "kind": null}]},
            {"name": "tautline-video", "dependencies": [{"name": "tautline-units", "kind": null}]},
        ]});
        let faults = arrow_faults(&metadata).unwrap();
        assert_eq!(faults, ["fec may not depend on net: see ARCHITECTURE.md"]);
    }
}
