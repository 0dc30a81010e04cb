use std::collections::VecDeque;
use std::time::Duration;

use super::Taken;

/// Newest steps, kept in case a stop follows. The first step always has a snapshot.
#[derive(Debug, Default)]
pub(super) struct Ring {
    steps: VecDeque<Taken>,
}

impl Ring {
    /// Adds a step, unless the ring is empty and the step has no snapshot. Drops the oldest steps,
    /// up to the next snapshot, while that one is at least `span` old or there are too many steps.
    pub(super) fn push(&mut self, taken: Taken, span: Duration) {
        if self.steps.is_empty() && taken.before.is_none() {
            return;
        }
        let now = taken.step.at;
        self.steps.push_back(taken);
        while let Some(next) = self.next_snapshot() {
            let is_needed = now.since(self.steps[next].step.at) < span;
            if is_needed && self.steps.len() <= STEPS_MAX {
                break;
            }
            self.steps.drain(..next);
        }
    }

    /// Removes and returns all steps, the oldest first.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Taken> {
        self.steps.drain(..)
    }

    pub(super) fn clear(&mut self) {
        self.steps.clear();
    }

    /// Returns the index of the first step after the oldest that has a snapshot; `None` if none
    /// has.
    fn next_snapshot(&self) -> Option<usize> {
        let mut steps = self.steps.iter().enumerate().skip(1);
        steps.find(|(_, taken)| taken.before.is_some()).map(|(place, _)| place)
    }
}

/// Number of steps above which the oldest are dropped, if there is a second snapshot: twice those
/// of two minutes and a snapshot's interval, for steps that come early.
const STEPS_MAX: usize = 25_000;
