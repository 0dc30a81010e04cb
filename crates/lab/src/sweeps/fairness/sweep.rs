//! All pairings on all bottlenecks, over several seeds.

use anyhow::Result;
use tautline_units::Duration;

use super::bottleneck::Bottleneck;
use super::measure::{self, Measures};
use super::pairing::Pairing;
use super::shared::Shared;
use crate::experiment::Progress;
use crate::workers;

/// Parameters of a sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The links.
    pub bottlenecks: Vec<Bottleneck>,
    /// The flows next to a session; those that this build lacks are skipped.
    pub pairings: Vec<Pairing>,
    /// The first seed.
    pub first_seed: u64,
    /// Number of seeds, from the first on.
    pub seeds: u64,
    /// Duration of each run, warm-up of 20 s included.
    pub length: Duration,
    /// Number of parallel runs; the results do not depend on it.
    pub threads: usize,
}

/// One run of a sweep, with its results.
#[derive(Clone, Debug)]
pub struct Found {
    /// The link.
    pub bottleneck: Bottleneck,
    /// The flow next to the session.
    pub pairing: Pairing,
    /// The run's seed.
    pub seed: u64,
    /// Measures of the run.
    pub measures: Measures,
}

impl Sweep {
    /// Performs all runs; the result is in order of bottleneck, pairing and seed.
    ///
    /// # Errors
    /// The error of the first run that failed.
    pub fn run(&self, progress: &dyn Fn(Progress<'_>)) -> Result<Vec<Found>> {
        let mut jobs = Vec::new();
        for bottleneck in &self.bottlenecks {
            for pairing in self.pairings.iter().filter(|pairing| pairing.missing().is_none()) {
                let seeds = (self.first_seed..).take(self.seeds as usize);
                jobs.extend(seeds.map(|seed| Shared {
                    bottleneck,
                    pairing: *pairing,
                    length: self.length,
                    seed,
                }));
            }
        }
        let told = |done: usize, made: &Found| {
            let what = format!("{} {}", made.bottleneck.name, made.pairing);
            progress(Progress { done: done as u64, total: jobs.len() as u64, what: &what });
        };
        workers::each(self.threads, &jobs, make, told)
    }
}

fn make(job: &Shared<'_>) -> Result<Found> {
    let trail = job.run()?;
    Ok(Found {
        bottleneck: job.bottleneck.clone(),
        pairing: job.pairing,
        seed: job.seed,
        measures: measure::of(&trail, job.bottleneck, job.length),
    })
}
