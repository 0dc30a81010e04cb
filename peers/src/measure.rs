//! Takes turns: on a shared machine only figures of the same minutes can be compared.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::clock;

/// One contender's work on a number of blocks of data, each prepared before it is timed.
pub(crate) trait Work {
    /// Prepares one block; not timed. `pattern` seeds what is lost: no pattern comes twice.
    fn prepare(&mut self, block: usize, pattern: u64);
    /// Does the work on one block, from the interface that a user has; timed.
    fn run(&mut self, block: usize);
    /// Returns whether the last run's result on the block is right; not timed.
    fn is_right(&mut self, block: usize) -> bool;
}

/// Some work and its name.
pub(crate) type Contender<'a> = (String, Box<dyn Work + 'a>);

/// The effort of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Turns that every contender takes, one after the other.
    pub(crate) rounds: usize,
    /// Time measured in one turn, at least.
    pub(crate) turn: Duration,
}

/// What one contender needed for one block.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// Best of each round, microseconds.
    pub(crate) rounds_us: Vec<f64>,
}

impl Timing {
    /// Returns the time of one of so many equal parts.
    pub(crate) fn divided_by(mut self, parts: f64) -> Timing {
        self.rounds_us.iter_mut().for_each(|us| *us /= parts);
        self
    }

    /// Returns the best of all rounds: what the code needs when nobody else is on the machine.
    pub(crate) fn best_us(&self) -> f64 {
        self.rounds_us.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the median of the rounds' bests.
    pub(crate) fn median_us(&self) -> f64 {
        median(self.rounds_us.clone())
    }

    /// Returns the median over the rounds of how many times faster this was than `other`.
    pub(crate) fn median_ratio_to(&self, other: &Timing) -> f64 {
        median(
            self.rounds_us.iter().zip(&other.rounds_us).map(|(own, other)| other / own).collect(),
        )
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures all contenders in turns; every result of every turn's last pass is verified.
///
/// A turn starts with an unmeasured pass, because the others have just used the caches.
///
/// # Errors
/// When a result is wrong: no figure of such a run is worth anything.
pub(crate) fn in_turns(
    contenders: &mut [Contender<'_>],
    block_count: usize,
    effort: Effort,
) -> Result<Vec<Timing>> {
    let mut timings = vec![Timing { rounds_us: Vec::new() }; contenders.len()];
    let mut pattern = 0;
    for _ in 0..effort.rounds {
        let first_pattern = pattern;
        for ((name, work), timing) in contenders.iter_mut().zip(&mut timings) {
            // All contenders meet the same losses, as far as they get.
            let mut turn = Turn { pattern: first_pattern, block_count };
            turn.pass(work.as_mut());
            let mut best = Duration::MAX;
            let mut measured = Duration::ZERO;
            while measured < effort.turn {
                let pass = turn.pass(work.as_mut());
                best = best.min(pass);
                measured += pass;
            }
            let right = (0..block_count).all(|block| work.is_right(block));
            ensure!(right, "{name} gave wrong bytes");
            timing.rounds_us.push(best.as_secs_f64() * 1e6 / block_count as f64);
            pattern = pattern.max(turn.pattern);
        }
    }
    Ok(timings)
}

struct Turn {
    pattern: u64,
    block_count: usize,
}

impl Turn {
    fn pass(&mut self, work: &mut dyn Work) -> Duration {
        for block in 0..self.block_count {
            work.prepare(block, self.pattern);
            self.pattern += 1;
        }
        clock::time(|| (0..self.block_count).for_each(|block| work.run(block)))
    }
}
