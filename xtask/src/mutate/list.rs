//! The list of mutations, and its validation.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::experiments::{self, Experiment};
use crate::source::Source;

/// Content of xtask/mutations.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    #[serde(rename = "mutation")]
    pub(super) mutations: Vec<Mutation>,
}

/// Replacement of one expression of the product by another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutation {
    /// Its name on the command line and of its results folder, of lower-case letters and hyphens.
    pub(super) name: String,
    /// Description of the change.
    pub(super) what: String,
    /// Path from the repository's root.
    pub(super) file: String,
    /// Part of a line that occurs once in the file and contains `from` once; `None` for `from`
    /// itself.
    pub(super) place: Option<String>,
    /// An expression that is evaluated at run time.
    pub(super) from: String,
    /// The replacement, of the same type.
    pub(super) to: String,
}

impl Mutation {
    /// Returns the text that occurs once in the file and contains `from`.
    pub(super) fn place(&self) -> &str {
        self.place.as_deref().unwrap_or(&self.from)
    }
}

impl List {
    /// Parses the text of [`FILE`].
    ///
    /// # Errors
    /// If the text does not have this form.
    pub(super) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context(FILE)
    }
}

/// Lists invalid mutations and their faults: the place is not in the file exactly once, is no code
/// of the product, or spans lines; the name is wrong, repeated, or of no experiment; or nothing
/// changes. It also lists experiments whose mutation is missing.
pub(crate) fn faults(list: &Source, sources: &[Source]) -> Vec<String> {
    let parsed = match List::parse(&list.text) {
        Ok(parsed) => parsed,
        Err(error) => return vec![format!("{error:#}")],
    };
    let experiments = experiments::of(sources);
    let mut faults = Vec::new();
    for mutation in &parsed.mutations {
        let Mutation { name, file, from, to, what, place: _ } = mutation;
        let place = mutation.place();
        let mut fault = |words: String| faults.push(format!("{}: {name}: {words}", list.path));
        match sources.iter().find(|source| source.path == *file) {
            None => fault(format!("there is no {file}")),
            Some(source) => match source.text.matches(place).count() {
                1 => {}
                count => fault(format!("{place:?} stands {count} times in {file}, not once")),
            },
        }
        match place.matches(from.as_str()).count() {
            1 => {}
            count => fault(format!("{from:?} stands {count} times in {place:?}, not once")),
        }
        let is_experiment = file.starts_with("crates/lab/") && !file.starts_with(MEASURED_OF_LAB);
        if !file.starts_with("crates/") || is_experiment {
            fault(format!("{file} is no code of the product"));
        }
        if from == to || place.contains('\n') || to.contains('\n') {
            fault("a mutation changes something, within one line".to_owned());
        }
        if what.is_empty() {
            fault("it says what it does".to_owned());
        }
        if !experiments.iter().any(|one| one.mutation.as_ref() == Some(name)) {
            fault("no experiment names it".to_owned());
        }
        let others = || parsed.mutations.iter().filter(|other| !std::ptr::eq(*other, mutation));
        if others().any(|other| other.name == *name) {
            fault("another has its name".to_owned());
        }
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
            fault("a name is of lower-case letters and hyphens".to_owned());
        }
    }
    for Experiment { key, mutation, file } in &experiments {
        let Some(name) = mutation else { continue };
        if !parsed.mutations.iter().any(|one| one.name == *name) {
            faults.push(format!("{file}: {key}: {} has no mutation {name}", list.path));
        }
    }
    faults
}

/// The list, from the repository's root.
pub(crate) const FILE: &str = "xtask/mutations.toml";

/// The module of the lab that is code under test, not an experiment.
const MEASURED_OF_LAB: &str = "crates/lab/src/quorum/";

#[cfg(test)]
mod tests {
    use super::*;

    fn found(change: impl Fn(&str) -> String) -> Vec<String> {
        let text = change(
            "[[mutation]]\nname = \"five\"\nwhat = \"four for five\"\nfile = \"crates/fec/src/five.rs\"\n\
             place = \"let five = 5;\"\nfrom = \"5\"\nto = \"4\"\n",
        );
        let list = Source::new(FILE, text);
        let code = Source::new(
            "crates/fec/src/five.rs",
            "let five = 5;\nlet six = 6;\nlet one = 7 - 6;\n",
        );
        let of_lab = Source::new("crates/lab/src/five.rs", "let five = 5;\n");
        let experiment = Source::new(
            "crates/lab/src/papers/five.rs",
            "const FIVE: Experiment = Experiment {\n    key: \"lte-fig-5\",\n    \
             mutation: Mutation::Named(\"five\"),\n};\n",
        );
        faults(&list, &[code, of_lab, experiment])
    }

    #[test]
    fn a_mutation_of_an_expression_that_occurs_once_is_valid() {
        assert_eq!(found(str::to_owned), [""; 0]);
        assert_eq!(found(|text| text.replacen("place = \"let five = 5;\"\n", "", 1)), [""; 0]);
    }

    #[test]
    fn mutations_that_cannot_be_made_are_named() {
        for (right, wrong, told) in [
            ("let five = 5;", "let seven = 5;", "stands 0 times in crates/fec/src/five.rs"),
            ("let five = 5;", "let ", "stands 3 times in crates/fec"),
            ("from = \"5\"", "from = \"6\"", "\"6\" stands 0 times in \"let five = 5;\""),
            ("five.rs", "six.rs", "there is no crates/fec/src/six.rs"),
            ("crates/fec", "crates/lab", "crates/lab/src/five.rs is no code of the product"),
            ("to = \"4\"", "to = \"5\"", "changes something"),
            ("name = \"five\"", "name = \"five 5\"", "lower-case"),
            ("name = \"five\"", "name = \"six\"", "six: no experiment names it"),
            ("name = \"five\"", "name = \"six\"", "toml has no mutation five"),
            ("four for five", "", "it says what it does"),
            ("what", "why", "unknown field"),
        ] {
            let told_of = found(|text| text.replacen(right, wrong, 1));
            assert!(told_of.iter().any(|fault| fault.contains(told)), "{told}: {told_of:?}");
        }
        let twice = found(|text| format!("{text}{text}"));
        assert!(twice.iter().any(|fault| fault.contains("another has its name")), "{twice:?}");
    }
}
