//! Doc examples must run: a crate disables its doctests only while it has none.

use anyhow::{Context, Result};

use crate::source::{Language, Source};

/// Lists crates with a doc example that no test runs. It also lists crates that have no example but
/// whose doctests are enabled, because running them takes seconds.
///
/// # Errors
/// If `metadata` is not in the form of `cargo metadata`.
pub(crate) fn faults(metadata: &serde_json::Value, sources: &[Source]) -> Result<Vec<String>> {
    let root = metadata["workspace_root"].as_str().context("no root")?;
    let mut faults = Vec::new();
    for package in metadata["packages"].as_array().context("no packages")? {
        let manifest = package["manifest_path"].as_str().context("no manifest")?;
        let manifest = manifest.strip_prefix(root).unwrap_or(manifest).trim_start_matches('/');
        let folder = manifest.trim_end_matches("Cargo.toml");
        let within = |source: &&Source| {
            source.path.strip_prefix(folder).is_some_and(|p| p.starts_with("src/"))
        };
        let has_examples = sources.iter().filter(within).any(has_example);
        let targets = package["targets"].as_array().context("no targets")?;
        for library in targets.iter().filter(|target| target["kind"][0] == "lib") {
            match (library["doctest"] == true, has_examples) {
                (false, true) => {
                    faults.push(format!("{manifest}: `doctest = false` hides an example"))
                }
                (true, false) => faults.push(format!("{manifest}: no examples: `doctest = false`")),
                (true, true) | (false, false) => {}
            }
        }
    }
    Ok(faults)
}

/// Returns whether docs in Rust contain a compiled example.
fn has_example(source: &Source) -> bool {
    if source.language != Language::Rust {
        return false;
    }
    let docs = source.text.lines().filter_map(|line| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim_start)
    });
    let fences = docs.filter_map(|doc| doc.strip_prefix("```"));
    // Every second fence closes the one before it.
    fences
        .step_by(2)
        .any(|language| language.split(',').all(|word| COMPILED.contains(&word.trim())))
}

/// Attributes after the fence of a compiled example.
const COMPILED: [&str; 5] = ["", "rust", "no_run", "should_panic", "compile_fail"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_that_no_test_runs_and_tests_of_none_are_named() {
        let metadata = |doctest: bool| {
            serde_json::json!({"workspace_root": "/house", "packages": [{
                "manifest_path": "/house/crates/fec/Cargo.toml",
                "targets": [{"kind": ["lib"], "doctest": doctest}, {"kind": ["test"], "doctest": false}],
            }]})
        };
        let found = |doctest, text: &str| {
            let source = Source::new("crates/fec/src/block.rs", text);
            faults(&metadata(doctest), &[source]).unwrap()
        };
        let example = "/// A block:\n///\n/// ```\n/// let a = 1;\n/// ```\nstruct A;\n";
        assert_eq!(found(true, example), [""; 0]);
        let hidden = ["crates/fec/Cargo.toml: `doctest = false` hides an example"];
        assert_eq!(found(false, example), hidden);
        assert_eq!(found(false, "//! ```no_run\n//! ```\n"), hidden);
        let text = "/// ```text\n/// 0 1\n/// ```\nstruct A;\n// ```\n";
        assert_eq!(found(false, text), [""; 0]);
        assert_eq!(found(true, text), ["crates/fec/Cargo.toml: no examples: `doctest = false`"]);
    }
}
