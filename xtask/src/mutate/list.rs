//! The list of mutations, and its validation.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::source::Source;

/// Content of xtask/mutations.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    #[serde(rename = "mutation")]
    pub(super) mutations: Vec<Mutation>,
    pub(super) spared: Vec<Spared>,
}

/// Replacement of one expression of the product by another.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutation {
    /// Its name on the command line and as a folder.
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
    /// Experiments that run this code and must detect the change.
    pub(super) turns_red: Vec<String>,
}

impl Mutation {
    /// Returns the text that occurs once in the file.
    pub(super) fn place(&self) -> &str {
        self.place.as_deref().unwrap_or(&self.from)
    }
}

/// Experiments without a mutation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spared {
    pub(super) experiments: Vec<String>,
    /// Reason why no change of the product can turn them red.
    pub(super) reason: String,
}

impl List {
    /// # Errors
    /// If the text does not have this form.
    pub(super) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context(FILE)
    }
}

/// Lists invalid mutations: of a missing or repeated line, of the lab itself, or of more than one
/// line.
pub(crate) fn faults(list: &Source, sources: &[Source]) -> Vec<String> {
    let parsed = match List::parse(&list.text) {
        Ok(parsed) => parsed,
        Err(error) => return vec![format!("{error:#}")],
    };
    let mut faults = Vec::new();
    for mutation in &parsed.mutations {
        let Mutation { name, file, from, to, turns_red, what, place: _ } = mutation;
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
        if turns_red.is_empty() || what.is_empty() {
            fault("it says what it does, and which experiments must notice".to_owned());
        }
        let others = || parsed.mutations.iter().filter(|other| !std::ptr::eq(*other, mutation));
        if others().any(|other| other.name == *name) {
            fault("another has its name".to_owned());
        }
        if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
            fault("a name is of lower-case letters and hyphens".to_owned());
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
             place = \"let five = 5;\"\nfrom = \"5\"\nto = \"4\"\nturns_red = [\"lte-fig-5\"]\n\
             [[spared]]\nexperiments = [\"lte-fig-6\"]\nreason = \"a drawing\"\n",
        );
        let list = Source::new(FILE, text);
        let code = Source::new(
            "crates/fec/src/five.rs",
            "let five = 5;\nlet six = 6;\nlet one = 7 - 6;\n",
        );
        let of_lab = Source::new("crates/lab/src/five.rs", "let five = 5;\n");
        faults(&list, &[code, of_lab])
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
            ("\"lte-fig-5\"", "", "which experiments must notice"),
            ("turns_red", "turns_green", "unknown field"),
        ] {
            let told_of = found(|text| text.replacen(right, wrong, 1));
            assert!(told_of.iter().any(|fault| fault.contains(told)), "{told}: {told_of:?}");
        }
        let twice = found(|text| {
            let (mutation, _) = text.split_once("[[spared]]").unwrap();
            format!("{mutation}{text}")
        });
        assert!(twice.iter().any(|fault| fault.contains("another has its name")), "{twice:?}");
    }
}
