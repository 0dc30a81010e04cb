//! `cargo xtask mutate`: whether the lab's bars bite.
//!
//! Every experiment of `tautline lab` is run as it stands, and again with one constant of the product
//! changed: then a row must turn red, or the experiment must fail. The changes stand in
//! xtask/mutations.toml ([`list`]). They are made in a checkout of its own ([`tree`]), built and run
//! ([`trial`]); what came of each is kept ([`kept`]), so that a run that was stopped goes on. Those that
//! share a build by the list are built alone when they are asked for by name.

mod kept;
mod list;
mod table;
mod tree;
mod trial;

use anyhow::{Context, Result, bail, ensure};

use kept::Kept;
pub(crate) use list::{FILE, faults};
use list::{List, Mutation};
use tree::Tree;
use trial::Outcome;

/// Runs the mutations whose names, or whose experiments, are among `wanted`, or all; says what each turned
/// red.
///
/// # Errors
/// When an experiment is out as it stands, or a mutation turned one of its experiments not red.
pub(crate) fn run(wanted: &[String]) -> Result<()> {
    let list = List::parse(&std::fs::read_to_string(FILE).context(FILE)?)?;
    let chosen = chosen(&list, wanted)?;
    let tree = Tree::check_out()?;
    let mut kept = Kept::of(&tree)?;
    as_it_stands(&chosen, &tree, &mut kept)?;
    let builds = builds(&chosen);
    for (done, build) in builds.iter().enumerate() {
        println!("{} of {} builds:", done + 1, builds.len());
        mutated(build, &tree, &mut kept)?;
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
    let survived = those(&|line| *line.mutated == Outcome::Within);
    ensure!(out.is_empty(), "out as it stands: {out}");
    ensure!(survived.is_empty(), "not noticed: {survived}");
    println!("{} times an experiment was turned red by a mutation, of as many", lines.len());
    Ok(())
}

/// A mutation, and those of its experiments that are wanted.
struct Chosen<'a> {
    mutation: &'a Mutation,
    experiments: Vec<&'a str>,
}

/// Runs every experiment of which nothing is kept, unchanged.
fn as_it_stands(chosen: &[Chosen<'_>], tree: &Tree, kept: &mut Kept) -> Result<()> {
    let all = chosen.iter().flat_map(|chosen| &chosen.experiments);
    let mut missing: Vec<&str> = all.copied().filter(|key| kept.baseline(key).is_none()).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    println!("as it stands, {} experiments: building ..", missing.len());
    trial::build(tree, BASELINE)?;
    for key in missing {
        let outcome = trial::measure(tree, BASELINE, key)?;
        println!("  {key}: {outcome}");
        kept.keep_baseline(key, outcome)?;
    }
    Ok(())
}

/// Makes the mutations of one build, and runs those of their experiments of which nothing is kept.
fn mutated(build: &[&Chosen<'_>], tree: &Tree, kept: &mut Kept) -> Result<()> {
    for Chosen { mutation, .. } in build {
        println!("  {}: {}", mutation.name, mutation.what);
    }
    let is_kept = |chosen: &&Chosen<'_>| {
        chosen.experiments.iter().all(|key| kept.mutated(chosen.mutation, key).is_some())
    };
    if build.iter().copied().all(|chosen| is_kept(&chosen)) {
        return Ok(());
    }
    let name =
        build.iter().map(|chosen| chosen.mutation.name.as_str()).collect::<Vec<_>>().join("+");
    println!("  building ..");
    build.iter().try_for_each(|chosen| tree.apply(chosen.mutation))?;
    let built = trial::build(tree, &name);
    // What was built is what runs: the files are put back before anything can stop this.
    build.iter().try_for_each(|chosen| tree.undo(chosen.mutation))?;
    built?;
    for Chosen { mutation, experiments } in build {
        for key in experiments {
            if kept.mutated(mutation, key).is_none() {
                let outcome = trial::measure(tree, &name, key)?;
                println!("  {key}: {outcome}");
                kept.keep_mutated(mutation, key, outcome)?;
            }
        }
    }
    Ok(())
}

/// Returns what is built together.
fn builds<'a>(chosen: &'a [Chosen<'a>]) -> Vec<Vec<&'a Chosen<'a>>> {
    let mut builds: Vec<Vec<&Chosen<'_>>> = Vec::new();
    for one in chosen {
        let joins = |build: &&mut Vec<&Chosen<'_>>| {
            one.mutation.build.is_some() && build[0].mutation.build == one.mutation.build
        };
        match builds.iter_mut().find(joins) {
            Some(build) => build.push(one),
            None => builds.push(vec![one]),
        }
    }
    builds
}

/// Returns the mutations that are wanted, each with those of its experiments that are.
fn chosen<'a>(list: &'a List, wanted: &[String]) -> Result<Vec<Chosen<'a>>> {
    for word in wanted {
        let is_its = |m: &Mutation| m.name == *word || m.turns_red.contains(word);
        if list.mutations.iter().any(is_its) {
            continue;
        }
        match list.spared.iter().find(|spared| spared.experiments.contains(word)) {
            Some(spared) => bail!("{word} has no mutation: {}", spared.reason),
            None => bail!("{FILE} has neither a mutation nor an experiment {word}"),
        }
    }
    let of = |mutation: &'a Mutation| {
        let all = wanted.is_empty() || wanted.contains(&mutation.name);
        let wanted = mutation.turns_red.iter().filter(|key| all || wanted.contains(key));
        Chosen { mutation, experiments: wanted.map(String::as_str).collect() }
    };
    Ok(list.mutations.iter().map(of).filter(|chosen| !chosen.experiments.is_empty()).collect())
}

/// The name of what is not mutated.
const BASELINE: &str = "as-it-stands";
