//! Consistency of xtask/mutations.toml, which `make mutate` reads, with the registry.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use serde::Deserialize;
use tautline_lab::papers;

#[test]
fn every_experiment_has_a_mutation_or_a_reason_why_it_has_none() {
    assert_eq!(faults(LIST), Vec::<String>::new());
}

#[test]
fn missing_and_unknown_experiments_in_the_list_are_faults() {
    let without = faults(&LIST.replace("\"timing-leader\"", "\"timing-loader\""));
    assert_eq!(
        without,
        ["timing-leader has neither a mutation nor a reason", "timing-loader is no experiment"]
    );
    let both = "\n[[spared]]\nexperiments = [\"timing-leader\"]\nreason = \"none\"\n";
    assert_eq!(faults(&(LIST.to_owned() + both)), ["timing-leader has a mutation and a reason"]);
    let mute = "\n[[spared]]\nexperiments = []\nreason = \"\"\n";
    assert_eq!(faults(&(LIST.to_owned() + mute)), ["experiments are spared without a reason"]);
}

#[derive(Deserialize)]
struct List {
    mutation: Vec<Mutation>,
    spared: Vec<Spared>,
}

#[derive(Deserialize)]
struct Mutation {
    turns_red: Vec<String>,
}

#[derive(Deserialize)]
struct Spared {
    experiments: Vec<String>,
    reason: String,
}

fn faults(list: &str) -> Vec<String> {
    let List { mutation, spared } = toml::from_str(list).unwrap();
    let mutated: Vec<&String> = mutation.iter().flat_map(|one| &one.turns_red).collect();
    let excused: Vec<&String> = spared.iter().flat_map(|one| &one.experiments).collect();
    let mut faults = Vec::new();
    for key in papers::all().map(|experiment| experiment.key) {
        let has = |list: &[&String]| list.iter().any(|listed| *listed == key);
        match (has(&mutated), has(&excused)) {
            (true, false) | (false, true) => {}
            (true, true) => faults.push(format!("{key} has a mutation and a reason")),
            (false, false) => faults.push(format!("{key} has neither a mutation nor a reason")),
        }
    }
    let unknown = mutated.iter().chain(&excused).filter(|key| papers::find(key).is_none());
    faults.extend(unknown.map(|key| format!("{key} is no experiment")));
    if spared.iter().any(|one| one.reason.is_empty()) {
        faults.push("experiments are spared without a reason".to_owned());
    }
    faults
}

const LIST: &str = include_str!("../../../xtask/mutations.toml");
