//! The registry: every table and figure of the papers that the lab measures again.

use anyhow::Result;

use crate::outcome::Outcome;
use crate::{ground_vehicles, remote_driving, serialization, streaming};

/// Is one table or figure of a paper, and how to measure it.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Names it on the command line and as a folder: lower-case letters, digits and hyphens.
    pub key: &'static str,
    /// Says in one line what is measured.
    pub title: &'static str,
    /// Names paper and place, `[LTE] Table II`; the word in brackets stands in docs/papers.md.
    pub source: &'static str,
    /// Measures. An `Err` means that nothing could be measured; a result that differs from the
    /// paper's is an outcome like any other.
    pub run: fn(&Run<'_>) -> Result<Outcome>,
}

/// Is how an experiment is to be run, and who hears how far it is.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Seconds instead of minutes, with tolerances to match.
    pub quick: bool,
    /// From which every random number comes: the same seed gives the same outcome, but for timings.
    pub seed: u64,
    progress: &'a dyn Fn(Progress<'_>),
}

/// Is how far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Parts done, at most `total`.
    pub done: u64,
    /// Parts in all.
    pub total: u64,
    /// Names the part that comes next.
    pub what: &'a str,
}

impl<'a> Run<'a> {
    /// A run that tells `progress` how far it is.
    pub fn new(quick: bool, seed: u64, progress: &'a dyn Fn(Progress<'_>)) -> Self {
        Self { quick, seed, progress }
    }

    /// A run that tells nobody.
    pub fn silent(quick: bool, seed: u64) -> Run<'static> {
        Run { quick, seed, progress: &|_| {} }
    }

    /// Says that `done` of `total` parts are over and `what` comes next; cheap, but not for inner
    /// loops.
    pub fn progress(&self, done: u64, total: u64, what: &str) {
        (self.progress)(Progress { done, total, what });
    }

    /// Returns what a quick run takes, or what a full one does.
    pub fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}

/// Returns every experiment, paper by paper, in the order of the papers.
pub fn all() -> impl Iterator<Item = &'static Experiment> {
    PAPERS.iter().copied().flatten()
}

/// Returns the experiment of that key.
pub fn find(key: &str) -> Option<&'static Experiment> {
    all().find(|experiment| experiment.key == key)
}

/// Returns the keys that look like a mistyped one, the nearest first.
pub fn near(key: &str) -> Vec<&'static str> {
    let mut near: Vec<(usize, &str)> = all()
        .map(|experiment| (distance(key, experiment.key), experiment.key))
        .filter(|(distance, known)| *distance <= 3 || (key.len() >= 3 && known.contains(key)))
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, key)| key).take(NEAR_MAX).collect()
}

/// Counts the characters to insert, remove or replace between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, a) in a.chars().enumerate() {
        let mut diagonal = above[0];
        above[0] = row + 1;
        for (column, b) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = above[column + 1];
            above[column + 1] = replaced.min(diagonal + 1).min(above[column] + 1);
        }
    }
    above[b.len()]
}

/// The papers, one file each.
const PAPERS: &[&[Experiment]] = &[
    remote_driving::EXPERIMENTS,
    ground_vehicles::EXPERIMENTS,
    streaming::EXPERIMENTS,
    serialization::EXPERIMENTS,
];

/// More would hide the one that was meant.
const NEAR_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_name_folders() {
        let mut keys: Vec<&str> = all().map(|experiment| experiment.key).collect();
        assert!(keys.iter().all(|key| crate::outcome::is_name(key)), "{keys:?}");
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count, "{keys:?}");
    }

    #[test]
    fn every_source_stands_among_the_papers() {
        let papers = include_str!("../../../docs/papers.md");
        for Experiment { key, source, .. } in all() {
            let paper = source.split_inclusive(']').next().unwrap();
            assert!(paper.starts_with('['), "{key}: {source}");
            assert!(papers.contains(&format!("| {paper} |")), "{key}: {paper} is not in papers.md");
        }
    }

    #[test]
    fn a_mistyped_key_finds_its_neighbours() {
        for Experiment { key, .. } in all() {
            assert_eq!(near(key).first(), Some(key));
            assert!(near(&key[1..]).contains(key), "{key}");
        }
        assert!(near("something-else-entirely").is_empty());
    }

    #[test]
    fn distance_counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("lte-table2", "lte-table-2"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("same", "same"), 0);
    }
}
