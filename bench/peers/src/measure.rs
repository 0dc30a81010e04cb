//! Measurement in turns: on a shared machine only figures of the same minutes are comparable.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::clock;

/// Work of one contender on a number of blocks, each prepared before it is timed.
pub(crate) trait Work {
    /// Prepares one block; not timed. `pattern` seeds the losses, and never repeats.
    fn prepare(&mut self, block: usize, pattern: u64);
    /// Processes one block through the public interface; timed.
    fn run(&mut self, block: usize);
    /// Returns whether the last run's result on the block is correct; not timed.
    fn is_right(&mut self, block: usize) -> bool;
}

/// Work with its name.
pub(crate) type Contender<'a> = (String, Box<dyn Work + 'a>);

/// Duration of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Number of turns of every contender.
    pub(crate) rounds: usize,
    /// Minimum measured time per turn.
    pub(crate) turn: Duration,
}

/// Time of one contender per block.
#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// Best time of a block in each round, in microseconds.
    pub(crate) rounds_us: Vec<f64>,
}

impl Timing {
    /// Returns the times divided by `parts`, for a block of that many parts.
    pub(crate) fn divided_by(mut self, parts: f64) -> Timing {
        self.rounds_us.iter_mut().for_each(|us| *us /= parts);
        self
    }

    /// Returns the best time of all rounds in microseconds, which is nearly that of an idle
    /// machine.
    pub(crate) fn best_us(&self) -> f64 {
        self.rounds_us.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the median of the rounds' best times, in microseconds.
    pub(crate) fn median_us(&self) -> f64 {
        median(self.rounds_us.clone())
    }

    /// Returns the median over the rounds of the speedup relative to `other`: above 1 if this is
    /// faster.
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

/// Measures all contenders in turns, and verifies the results of each turn's last pass.
///
/// A turn starts with an untimed pass, because the others have just used the caches.
///
/// # Errors
/// If a result is wrong: all figures of such a run are worthless.
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
            // All contenders see the same losses, for as many passes as they complete.
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
