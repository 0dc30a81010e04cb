//! The list of mutations, and what makes it a sound one.

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::source::Source;

/// What xtask/mutations.toml holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    #[serde(rename = "mutation")]
    pub(super) mutations: Vec<Mutation>,
    pub(super) spared: Vec<Spared>,
}

/// One constant of the product, changed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutation {
    /// Its name on the command line and as a folder.
    pub(super) name: String,
    /// What the change does, in words.
    pub(super) what: String,
    /// From the repository's root.
    pub(super) file: String,
    /// Part of a line, which stands in the file once.
    pub(super) from: String,
    /// What is put in its place.
    pub(super) to: String,
    /// Experiments that run this code and must notice.
    pub(super) turns_red: Vec<String>,
    /// The build that it shares with mutations of which these experiments run nothing; none: its own.
    pub(super) build: Option<String>,
}

/// Experiments without a mutation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spared {
    pub(super) experiments: Vec<String>,
    /// Why nothing of the product's can turn them red.
    pub(super) reason: String,
}

impl List {
    /// # Errors
    /// When the text is not of this form.
    pub(super) fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context(FILE)
    }
}

/// Names mutations that cannot be made: of a line that is gone or stands twice, of the lab itself, of more than
/// a line.
pub(crate) fn faults(list: &Source, sources: &[Source]) -> Vec<String> {
    let parsed = match List::parse(&list.text) {
        Ok(parsed) => parsed,
        Err(error) => return vec![format!("{error:#}")],
    };
    let mut faults = Vec::new();
    for mutation in &parsed.mutations {
        let Mutation { name, file, from, to, turns_red, what, build } = mutation;
        let mut fault = |words: String| faults.push(format!("{}: {name}: {words}", list.path));
        match sources.iter().find(|source| source.path == *file) {
            None => fault(format!("there is no {file}")),
            Some(source) => match source.text.matches(from.as_str()).count() {
                1 => {}
                count => fault(format!("{from:?} stands {count} times in {file}, not once")),
            },
        }
        if !file.starts_with("crates/") || file.starts_with("crates/lab/") {
            fault(format!("{file} is no code of the product"));
        }
        if from == to || from.contains('\n') || to.contains('\n') {
            fault("a mutation changes something, within one line".to_owned());
        }
        if turns_red.is_empty() || what.is_empty() {
            fault("it says what it does, and which experiments must notice".to_owned());
        }
        let others = || parsed.mutations.iter().filter(|other| !std::ptr::eq(*other, mutation));
        if others().any(|other| other.name == *name) {
            fault("another has its name".to_owned());
        }
        let shares = |other: &&Mutation| build.is_some() && other.build == *build;
        for other in others().filter(shares) {
            if other.file == *file || other.turns_red.iter().any(|key| turns_red.contains(key)) {
                fault(format!("it cannot share a build with {}", other.name));
            }
        }
    }
    faults
}

/// The list, from the repository's root.
pub(crate) const FILE: &str = "xtask/mutations.toml";

#[cfg(test)]
mod tests {
    use super::*;

    fn found(change: impl Fn(&str) -> String) -> Vec<String> {
        let text = change(
            "[[mutation]]\nname = \"five\"\nwhat = \"four for five\"\nfile = \"crates/fec/src/five.rs\"\n\
             from = \"FIVE: u32 = 5\"\nto = \"FIVE: u32 = 4\"\nturns_red = [\"lte-fig-5\"]\n\
             [[spared]]\nexperiments = [\"lte-fig-6\"]\nreason = \"a drawing\"\n",
        );
        let list = Source::new(FILE, text);
        let code =
            Source::new("crates/fec/src/five.rs", "const FIVE: u32 = 5;\nconst SIX: u32 = 6;\n");
        let of_lab = Source::new("crates/lab/src/five.rs", "const FIVE: u32 = 5;\n");
        faults(&list, &[code, of_lab])
    }

    #[test]
    fn a_mutation_of_a_line_that_stands_once_in_the_product_is_sound() {
        assert_eq!(found(str::to_owned), [""; 0]);
    }

    #[test]
    fn mutations_that_share_a_build_share_no_file_and_no_experiment() {
        let six = "[[mutation]]\nname = \"six\"\nwhat = \"seven for six\"\nfile = \"crates/fec/src/six.rs\"\n\
                   from = \"6\"\nto = \"7\"\nbuild = \"a\"\nturns_red = [\"lte-fig-6\"]\n";
        let told = |six: &str| {
            let all = found(|text| text.replacen("turns_red", "build = \"a\"\nturns_red", 1) + six);
            all.iter().filter(|fault| fault.contains("cannot share a build")).count()
        };
        assert_eq!(told(six), 0);
        assert_eq!(told(&six.replace("six.rs", "five.rs")), 2);
        assert_eq!(told(&six.replace("lte-fig-6", "lte-fig-5")), 2);
        assert_eq!(told(&six.replace("six.rs", "five.rs").replace("\"a\"", "\"b\"")), 0);
    }

    #[test]
    fn mutations_that_cannot_be_made_are_named() {
        for (right, wrong, told) in [
            ("FIVE: u32 = 5", "SEVEN: u32 = 7", "stands 0 times in crates/fec/src/five.rs"),
            ("FIVE: u32 = 5", ": u32 = ", "stands 2 times"),
            ("five.rs", "six.rs", "there is no crates/fec/src/six.rs"),
            ("crates/fec", "crates/lab", "crates/lab/src/five.rs is no code of the product"),
            ("u32 = 4", "u32 = 5", "changes something"),
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
