//! The paper's third argument, implemented: three computers that can steer agree on one that does.

#[cfg(feature = "quorum")]
mod failover;
#[cfg(feature = "quorum")]
mod trial;

use crate::experiment::{Experiment, Isolation, Mutation};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "timing-leader",
    title: "Three redundant steering computers, of which one acts",
    source: "[TIMING] Significance arguments",
    isolation: Isolation::Alone,
    mutation: Mutation::Named("lease"),
    run,
};

#[cfg(feature = "quorum")]
use failover::run;

#[cfg(not(feature = "quorum"))]
fn run(_: &crate::experiment::Run<'_>) -> anyhow::Result<crate::experiment::Outcome> {
    Ok(crate::experiment::Outcome::skipped(
        "elections by Raft are not in this binary",
        "Build it with `cargo build --release --package tautline --features quorum`.",
    ))
}
