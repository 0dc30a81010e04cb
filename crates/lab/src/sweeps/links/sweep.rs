//! All combos on all sets, cases, deadlines and seeds.

use anyhow::Result;
use tautline_units::{Bitrate, Duration};

use super::case::Case;
use super::combo::Combo;
use super::drive::Drive;
use super::measure::Measures;
use super::set::Set;
use crate::experiment::Progress;
use crate::workers;

/// Parameters of a sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The combinations to compare.
    pub combos: Vec<Combo>,
    /// The links.
    pub sets: Vec<Set>,
    /// The impairments.
    pub cases: Vec<Case>,
    /// Deadlines, one way from sending to delivery.
    pub deadlines: Vec<Duration>,
    /// The first seed; each has its own offsets into the recordings.
    pub first_seed: u64,
    /// Number of seeds, from the first on.
    pub seeds: u64,
    /// Duration of each run, warm-up included.
    pub length: Duration,
    /// [`Drive::units_per_second`].
    pub units_per_second: u64,
    /// [`Drive::rate_max`].
    pub rate_max: Bitrate,
    /// Number of parallel runs; the results do not depend on it.
    pub threads: usize,
}

/// One run of a sweep, with its results.
#[derive(Clone, Debug)]
pub struct Found {
    /// [`Set::name`].
    pub set: String,
    /// The impairment.
    pub case: Case,
    /// Deadline, one way.
    pub deadline: Duration,
    /// [`Combo::name`].
    pub combo: String,
    /// Name of the single link used; `None` if all were used.
    pub alone: Option<String>,
    /// The run's seed.
    pub seed: u64,
    /// Measures of the run.
    pub measures: Measures,
}

/// One run to perform.
struct Job<'a> {
    set: &'a Set,
    case: Case,
    deadline: Duration,
    combo: &'a Combo,
    alone: Option<usize>,
    seed: u64,
}

impl Sweep {
    /// Returns the number of runs.
    pub fn run_count(&self) -> usize {
        self.jobs().len()
    }

    /// Performs all runs; the result is in order of set, case, deadline, combo, single link and
    /// seed.
    ///
    /// # Errors
    /// The error of the first run that failed.
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
