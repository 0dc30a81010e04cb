//! The definition of an experiment: a key, a place in a paper, and a function from a [`Run`] to an
//! [`Outcome`].
//!
//! Every experiment depends on this module, and this module on none of them: `papers` lists them.

mod outcome;
mod row;
mod table;

use anyhow::Result;

pub use outcome::{Findings, Measurement, Outcome, Skipped};
pub use row::{Row, Tolerance, Verdict};
pub use table::{Cell, Table};

/// One table or figure of a paper, and how to measure it.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Name of the experiment on the command line and as a folder: lower-case letters, digits and
    /// hyphens.
    pub key: &'static str,
    /// One line that describes the measurement.
    pub title: &'static str,
    /// Paper and place, such as `[LTE] Table II`; the key in brackets is defined in docs/papers.md.
    pub source: &'static str,
    /// Isolation from other experiments during a run.
    pub isolation: Isolation,
    /// Mutation of the product that the experiment must detect, or the reason why there is none.
    pub mutation: Mutation,
    /// The measurement. An `Err` means that it failed. A result that differs from the paper's is a
    /// normal outcome, and so is a skipped measurement that lacks a prerequisite.
    pub run: fn(&Run<'_>) -> Result<Outcome>,
}

/// Use of the machine by an experiment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// Runs next to other experiments, which share the machine's processors.
    Shared,
    /// Measures time by the machine's clock, and therefore runs alone.
    Alone,
    /// Runs alone, with processes of `tautline`. Skipped in a program that is not `tautline`, such
    /// as a test.
    Processes,
}

/// Change of the product that turns a row red, which `make mutate` verifies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    /// Name of the mutation in xtask/mutations.toml.
    Named(&'static str),
    /// Reason why no mutation can turn a row red.
    Spared(&'static str),
}

/// Parameters of an experiment's run, and the receiver of its progress.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// True to run for seconds instead of minutes, with matching tolerances.
    pub quick: bool,
    /// Seed of every random number: the same seed yields the same outcome, except for timings.
    pub seed: u64,
    progress: &'a dyn Fn(Progress<'_>),
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Parts done, at most `total`.
    pub done: u64,
    /// Total number of parts.
    pub total: u64,
    /// Name of the part that is next.
    pub what: &'a str,
}

impl Experiment {
    /// Returns whether the experiment must run alone: it measures time by the machine's clock, or
    /// starts processes of `tautline`.
    pub fn is_timed(&self) -> bool {
        self.isolation != Isolation::Shared
    }
}

impl<'a> Run<'a> {
    /// Creates a run that reports to `progress`.
    pub fn new(quick: bool, seed: u64, progress: &'a dyn Fn(Progress<'_>)) -> Self {
        Self { quick, seed, progress }
    }

    /// Creates a run that reports nothing.
    pub fn silent(quick: bool, seed: u64) -> Run<'static> {
        Run { quick, seed, progress: &|_| {} }
    }

    /// Reports that `done` of `total` parts are done and `what` is next; cheap, but not for inner
    /// loops.
    pub fn progress(&self, done: u64, total: u64, what: &str) {
        (self.progress)(Progress { done, total, what });
    }

    /// Returns `quick` in a quick run, `full` in any other.
    pub fn choose<T>(&self, quick: T, full: T) -> T {
        if self.quick { quick } else { full }
    }
}
