//! The lab's experiments and the mutation that each must detect, as their files state it.

use crate::source::Source;

/// An experiment of the lab.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Experiment {
    /// Key that selects it in `tautline lab run`.
    pub(super) key: String,
    /// Name of its mutation; `None` if its file states a reason for having none.
    pub(super) mutation: Option<String>,
    /// Path of the file that declares it, from the repository's root.
    pub(super) file: String,
}

/// Returns the experiments declared below the lab's `papers`.
pub(super) fn of(sources: &[Source]) -> Vec<Experiment> {
    let files = sources.iter().filter(|source| source.path.starts_with(PAPERS));
    let declared = files.flat_map(|source| {
        let bodies = source.text.split(DECLARATION).skip(1);
        let bodies = bodies.filter_map(|rest| Some(rest.split_once("\n};")?.0));
        bodies.filter_map(|body| experiment(body, &source.path))
    });
    declared.collect()
}

fn experiment(body: &str, file: &str) -> Option<Experiment> {
    let field = |name: &str| body.lines().find_map(|line| line.trim().strip_prefix(name));
    let key = field("key: \"")?.strip_suffix("\",")?;
    let named = field("mutation: Mutation::Named(\"").and_then(|rest| rest.strip_suffix("\"),"));
    let mutation = named.map(str::to_owned);
    Some(Experiment { key: key.to_owned(), mutation, file: file.to_owned() })
}

const PAPERS: &str = "crates/lab/src/papers/";
const DECLARATION: &str = ": Experiment = Experiment {\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experiments_are_found_with_their_mutations() {
        let text = "pub(crate) const FIVE: Experiment = Experiment {\n    key: \"lte-fig-5\",\n    \
                    mutation: Mutation::Named(\"five\"),\n    run,\n};\n\n\
                    const SIX: Experiment = Experiment {\n    key: \"lte-fig-6\",\n    \
                    mutation: SPARED,\n    run,\n};\n";
        let of_papers = "crates/lab/src/papers/lte/five.rs";
        let sources = [of_papers, "crates/lab/src/experiment.rs"].map(|at| Source::new(at, text));
        let found: Vec<_> = of(&sources).into_iter().map(|one| (one.key, one.mutation)).collect();
        let expected =
            [("lte-fig-5".to_owned(), Some("five".to_owned())), ("lte-fig-6".to_owned(), None)];
        assert_eq!(found, expected);
    }
}
