//! Stored outcomes of experiments, valid while the product's code is unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::list::Mutation;
use super::tree::Tree;
use super::trial::Outcome;

/// Outcomes, written to disk after each experiment.
#[derive(Debug)]
pub(super) struct Kept {
    file: PathBuf,
    record: Record,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    /// [`Tree::name`] of the code that ran.
    tree: String,
    /// Outcomes of the unchanged code, by key of the experiment.
    baseline: BTreeMap<String, Outcome>,
    /// Outcomes under a mutation, by [`name`].
    mutated: BTreeMap<String, Outcome>,
}

impl Kept {
    /// Reads the stored outcomes of this code. It discards those of other code, those of unchanged
    /// experiments that were not within tolerance, and skipped ones, so that they are measured
    /// again.
    ///
    /// # Errors
    /// If the file exists and is unreadable or malformed.
    pub(super) fn of(tree: &Tree) -> Result<Self> {
        let file = tree.kept();
        let mut record = Record::default();
        if file.exists() {
            record = serde_json::from_str(&fs::read_to_string(&file)?)
                .with_context(|| format!("{} is none of ours: remove it", file.display()))?;
        }
        if record.tree != tree.name {
            record = Record { tree: tree.name.clone(), ..Record::default() };
        }
        // An outcome out of tolerance may be due to a busy machine, and is measured again.
        record.baseline.retain(|_, outcome| *outcome == Outcome::Within);
        record.mutated.retain(|_, outcome| !matches!(outcome, Outcome::Skipped(_)));
        Ok(Self { file, record })
    }

    /// Returns the stored outcome of an unchanged experiment.
    pub(super) fn baseline(&self, key: &str) -> Option<&Outcome> {
        self.record.baseline.get(key)
    }

    /// Returns the stored outcome of an experiment under a mutation.
    pub(super) fn mutated(&self, mutation: &Mutation, key: &str) -> Option<&Outcome> {
        self.record.mutated.get(&name(mutation, key))
    }

    /// Stores the outcome of an unchanged experiment, and writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn keep_baseline(&mut self, key: &str, outcome: Outcome) -> Result<()> {
        self.record.baseline.insert(key.to_owned(), outcome);
        self.write()
    }

    /// Stores the outcome of an experiment under a mutation, and writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn keep_mutated(
        &mut self,
        mutation: &Mutation,
        key: &str,
        outcome: Outcome,
    ) -> Result<()> {
        self.record.mutated.insert(name(mutation, key), outcome);
        self.write()
    }

    fn write(&self) -> Result<()> {
        let text = serde_json::to_string_pretty(&self.record)? + "\n";
        // Write atomically: the process may be killed at any moment.
        let new = self.file.with_extension("new");
        fs::write(&new, text)?;
        fs::rename(&new, &self.file).with_context(|| self.file.display().to_string())
    }
}

/// Returns a key that includes the change itself, so that another change of the same name has
/// another key.
fn name(mutation: &Mutation, key: &str) -> String {
    let Mutation { file, from, to, .. } = mutation;
    format!("{key}: {file}: {}: {from} -> {to}", mutation.place())
}
