//! `cargo xtask mutate`: checks that the lab's bars detect faults.
//!
//! Every experiment of `tautline lab` runs unchanged, and again with one expression of the product
//! changed. With the change, a row must turn red, or the experiment must fail. The changes are
//! listed in xtask/mutations.toml ([`list`]). One build in a separate checkout contains all of them
//! ([`tree`]), and a variable selects one for each run ([`trial`]). Outcomes are stored ([`kept`]),
//! so that an interrupted run can resume.

mod experiments;
mod kept;
mod list;
mod table;
mod tree;
mod trial;

use anyhow::{Context, Result, bail, ensure};

use experiments::Experiment;
use kept::Kept;
pub(crate) use list::{FILE, faults};
use list::{List, Mutation};
use tree::Tree;
use trial::Outcome;

use crate::source;

/// Runs the mutations whose names or experiments are in `wanted`, or all; prints the rows that each
/// turned red.
///
/// # Errors
/// If an unchanged experiment is out of tolerance, failed or was skipped, or if a mutation did not
/// turn one of its experiments red. A skipped experiment did not turn red.
pub(crate) fn run(wanted: &[String]) -> Result<()> {
    let list = List::parse(&std::fs::read_to_string(FILE).context(FILE)?)?;
    let experiments = experiments::of(&source::all()?);
    let chosen = chosen(&list, &experiments, wanted)?;
    let tree = Tree::check_out(&list.mutations)?;
    let mut kept = Kept::of(&tree)?;
    println!("building {} mutations into one binary ..", list.mutations.len());
    trial::build(&tree)?;
    as_it_stands(&chosen, &tree, &mut kept)?;
    for (done, mutation) in chosen.iter().enumerate() {
        println!("{} of {} mutations:", done + 1, chosen.len());
        mutated(mutation, &tree, &mut kept)?;
    }
    let mut lines = Vec::new();
    for Chosen { mutation, experiments } in &chosen {
        lines.extend(experiments.iter().filter_map(|key| {
            let (baseline, mutated) = (kept.baseline(key)?, kept.mutated(mutation, key)?);
            Some(table::Line { experiment: key, mutation, baseline, mutated })
        }));
    }
    println!("\n{}", table::of(&lines));
    let named = |line: &table::Line<'_>| format!("{} ({})", line.experiment, line.mutation.name);
    let those = |is: &dyn Fn(&table::Line<'_>) -> bool| {
        lines.iter().filter(|line| is(line)).map(named).collect::<Vec<_>>().join(", ")
    };
    let out = those(&|line| *line.baseline != Outcome::Within);
    let survived = those(&|line| matches!(line.mutated, Outcome::Within | Outcome::Skipped(_)));
    ensure!(out.is_empty(), "out as it stands: {out}");
    ensure!(survived.is_empty(), "not noticed: {survived}");
    println!("{} times an experiment was turned red by a mutation, of as many", lines.len());
    Ok(())
}

/// A mutation, and the selected ones of its experiments.
struct Chosen<'a> {
    mutation: &'a Mutation,
    experiments: Vec<&'a str>,
}

/// Runs the chosen experiments that have no stored outcome, unchanged, and stores their outcomes.
fn as_it_stands(chosen: &[Chosen<'_>], tree: &Tree, kept: &mut Kept) -> Result<()> {
    let all = chosen.iter().flat_map(|chosen| &chosen.experiments);
    let mut missing: Vec<&str> = all.copied().filter(|key| kept.baseline(key).is_none()).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    println!("as it stands, {} experiments ..", missing.len());
    for (key, outcome) in missing.iter().zip(trial::measure(tree, None, &missing)?) {
        println!("  {key}: {outcome}");
        kept.keep_baseline(key, outcome)?;
    }
    Ok(())
}

/// Runs those of a mutation's experiments that have no stored outcome, and stores their outcomes.
fn mutated(chosen: &Chosen<'_>, tree: &Tree, kept: &mut Kept) -> Result<()> {
    let Chosen { mutation, experiments } = chosen;
    println!("  {}: {}", mutation.name, mutation.what);
    let is_missing = |key: &&str| kept.mutated(mutation, key).is_none();
    let missing: Vec<&str> = experiments.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    for (key, outcome) in missing.iter().zip(trial::measure(tree, Some(&mutation.name), &missing)?)
    {
        println!("  {key}: {outcome}");
        kept.keep_mutated(mutation, key, outcome)?;
    }
    Ok(())
}

/// Returns the mutations and experiments that `wanted` names, or all if it is empty. The name of a
/// mutation selects all its experiments.
///
/// # Errors
/// If a word is neither a mutation nor an experiment, or is an experiment without a mutation.
fn chosen<'a>(
    list: &'a List,
    experiments: &'a [Experiment],
    wanted: &[String],
) -> Result<Vec<Chosen<'a>>> {
    for word in wanted {
        if list.mutations.iter().any(|mutation| mutation.name == *word) {
            continue;
        }
        match experiments.iter().find(|experiment| experiment.key == *word) {
            Some(Experiment { mutation: Some(_), .. }) => {}
            Some(Experiment { mutation: None, file, .. }) => {
                bail!("{word} has no mutation, for the reason in {file}")
            }
            None => bail!("there is neither a mutation nor an experiment {word}"),
        }
    }
    let of = |mutation: &'a Mutation| {
        let all = wanted.is_empty() || wanted.contains(&mutation.name);
        let is_its = |one: &&Experiment| one.mutation.as_ref() == Some(&mutation.name);
        let keys = experiments.iter().filter(is_its).map(|one| &one.key);
        let wanted = keys.filter(|key| all || wanted.contains(key));
        Chosen { mutation, experiments: wanted.map(String::as_str).collect() }
    };
    Ok(list.mutations.iter().map(of).filter(|chosen| !chosen.experiments.is_empty()).collect())
}
