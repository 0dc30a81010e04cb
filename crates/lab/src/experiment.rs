//! What an experiment is: a key, a place in a paper, and a function from a [`Run`] to an [`Outcome`].
//!
//! Every experiment stands on this, and this knows none of them: `papers` lists them.

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
    /// Its name on the command line and as a folder: lower-case letters, digits and hyphens.
    pub key: &'static str,
    /// One line: what is measured.
    pub title: &'static str,
    /// Paper and place, `[LTE] Table II`; the word in brackets stands in docs/papers.md.
    pub source: &'static str,
    /// The measurement. An `Err` means that it failed; a result that differs from the paper's is an
    /// outcome like any other, and so is one that was skipped because something is missing.
    pub run: fn(&Run<'_>) -> Result<Outcome>,
}

/// The way an experiment is to be run, and who hears how far it is.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// Seconds instead of minutes, with tolerances to match.
    pub quick: bool,
    /// From which every random number comes: the same seed gives the same outcome, but for timings.
    pub seed: u64,
    progress: &'a dyn Fn(Progress<'_>),
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Parts done, at most `total`.
    pub done: u64,
    /// Parts in all.
    pub total: u64,
    /// The part that comes next.
    pub what: &'a str,
}

impl<'a> Run<'a> {
    /// Returns a run that tells `progress` how far it is.
    pub fn new(quick: bool, seed: u64, progress: &'a dyn Fn(Progress<'_>)) -> Self {
        Self { quick, seed, progress }
    }

    /// Returns a run that tells nobody.
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
