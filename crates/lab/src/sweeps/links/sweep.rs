//! Every combo on every set, case, deadline and seed.

use anyhow::Result;
use tautline_units::{Bitrate, Duration};

use super::case::Case;
use super::combo::Combo;
use super::drive::Drive;
use super::measure::Measures;
use super::set::Set;
use crate::experiment::Progress;
use crate::workers;

/// What to compare, on what, and for how long.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The ways of sending.
    pub combos: Vec<Combo>,
    /// The links.
    pub sets: Vec<Set>,
    /// The troubles.
    pub cases: Vec<Case>,
    /// One way, from hand-over to delivery.
    pub deadlines: Vec<Duration>,
    /// The first seed; each has offsets into the recordings of its own.
    pub first_seed: u64,
    /// How many seeds, from the first on.
    pub seeds: u64,
    /// Of each run, the warm-up included.
    pub length: Duration,
    /// [`Drive::units_per_second`].
    pub units_per_second: u64,
    /// [`Drive::rate_max`].
    pub rate_max: Bitrate,
    /// How many runs are made at a time; the results do not depend on it.
    pub threads: usize,
}

/// One run's place in a sweep, with what it showed.
#[derive(Clone, Debug)]
pub struct Found {
    /// [`Set::name`].
    pub set: String,
    /// Which trouble.
    pub case: Case,
    /// One way.
    pub deadline: Duration,
    /// [`Combo::name`].
    pub combo: String,
    /// The link that was used alone, by name.
    pub alone: Option<String>,
    /// The run's seed.
    pub seed: u64,
    /// What it showed.
    pub measures: Measures,
}

/// One run to be made.
struct Job<'a> {
    set: &'a Set,
    case: Case,
    deadline: Duration,
    combo: &'a Combo,
    alone: Option<usize>,
    seed: u64,
}

impl Sweep {
    /// Returns how many runs this is.
    pub fn run_count(&self) -> usize {
        self.jobs().len()
    }

    /// Makes all runs; the result is in order of set, case, deadline, combo, link alone and seed.
    ///
    /// # Errors
    /// That of the first run that could not be made.
    pub fn run(&self, progress: &dyn Fn(Progress<'_>)) -> Result<Vec<Found>> {
        let jobs = self.jobs();
        let told = |done: usize, made: &Found| {
            let what = format!("{} {} {}", made.set, made.case, made.combo);
            progress(Progress { done: done as u64, total: jobs.len() as u64, what: &what });
        };
        workers::each(self.threads, &jobs, |job| self.make(job), told)
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        let mut jobs = Vec::new();
        let seeds = || (self.first_seed..).take(self.seeds as usize);
        for set in &self.sets {
            for case in self.cases.iter().copied() {
                for deadline in self.deadlines.iter().copied() {
                    for combo in &self.combos {
                        let links = (0..set.len()).map(Some).filter(|_| combo.alone);
                        for alone in [None].into_iter().chain(links) {
                            jobs.extend(seeds().map(|seed| Job {
                                set,
                                case,
                                deadline,
                                combo,
                                alone,
                                seed,
                            }));
                        }
                    }
                }
            }
        }
        jobs
    }

    fn make(&self, job: &Job<'_>) -> Result<Found> {
        let Job { set, case, deadline, combo, alone, seed } = *job;
        let mut drive = Drive::new(set.pairs(seed), combo.transport(), seed);
        drive.only = alone;
        drive.deadline = deadline;
        drive.units_per_second = self.units_per_second;
        drive.rate_max = self.rate_max;
        drive.length = self.length;
        case.befall(&mut drive);
        Ok(Found {
            set: set.name.clone(),
            case,
            deadline,
            combo: combo.name.clone(),
            alone: alone.and_then(|at| set.link_names().nth(at)).map(str::to_owned),
            seed,
            measures: drive.run()?,
        })
    }
}
