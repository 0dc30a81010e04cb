use std::sync::{Mutex, PoisonError};

use tautline_units::ByteCount;
use tautline_video::avc::{Planner, Toll};

/// A plan that shares each picture's bytes out among its strips, and what losses cost any of them, for all encoders
/// that take them in turn.
#[derive(Debug)]
pub struct Plan {
    strips: u64,
    shares: Mutex<Shares>,
}

#[derive(Debug)]
struct Shares {
    planner: Planner,
    toll: Toll,
    /// The picture that is shared out.
    picture: Option<u32>,
    /// What it may take, as last told.
    budget: ByteCount,
}

impl Plan {
    /// Makes a plan for pictures of `strips` strips (at least one), that gives equal shares until
    /// it knows better.
    pub fn new(strips: usize) -> Self {
        let planner = Planner::new(strips, CEILING);
        Self {
            strips: strips.max(1) as u64,
            shares: Mutex::new(Shares {
                planner,
                toll: Toll::new(strips),
                picture: None,
                budget: ByteCount::ZERO,
            }),
        }
    }

    /// Returns the share of a strip that is coded next, of a picture that may take `budget`.
    ///
    /// A budget that has changed since the picture began holds for the rest of it.
    ///
    /// # Panics
    /// If there is no such strip.
    pub fn give(&self, picture: u32, strip: usize, budget: ByteCount) -> ByteCount {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        match shares.picture {
            Some(current) if current == picture => {
                let before = shares.budget;
                if budget != before {
                    shares.planner.change(before, budget);
                }
            }
            // The other encoder is at the next picture already.
            Some(current) if current.wrapping_sub(picture) < 1 << 31 => {
                return self.equal(budget);
            }
            Some(_) | None => {
                shares.picture = Some(picture);
                shares.planner.begin(budget);
            }
        }
        shares.budget = budget;
        shares.planner.give(strip)
    }

    /// Returns the share of a strip of a picture that may take `budget`, if all are alike.
    pub fn equal(&self, budget: ByteCount) -> ByteCount {
        ByteCount::new(budget.get() / self.strips)
    }

    /// Returns what a picture like the last would take at a quantizer; nothing before a strip told its weight.
    pub fn bytes_at(&self, quantizer: f64) -> ByteCount {
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.planner.bytes_at(quantizer)
    }

    /// Takes note of a slice that is coded next, and, if it recovers from a loss or one was told that needed no recovery, of
    /// how many pictures of its strip were corrupt or would have been; returns whether losses are many.
    pub fn note_recovery(&self, corrupt: Option<u64>) -> bool {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.toll.note(corrupt);
        shares.toll.is_high()
    }

    /// Takes back what a strip did not take of its share, and notes its
    /// [weight](tautline_video::avc::StripEncoder::weight).
    pub fn done(&self, picture: u32, strip: usize, [given, taken]: [ByteCount; 2], weight: f64) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        // What an earlier picture left is gone with it.
        let given = if shares.picture == Some(picture) { given } else { taken };
        shares.planner.done(strip, given, taken, weight);
    }
}

/// What a strip may take at most, in equal shares: it is sent for so much longer than the others.
const CEILING: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(count: u64) -> ByteCount {
        ByteCount::new(count)
    }

    #[test]
    fn a_new_budget_holds_from_the_next_strip_on() {
        let plan = Plan::new(6);
        for strip in 0..3 {
            assert_eq!(plan.give(0, strip, bytes(6_000)), bytes(1_000));
            plan.done(0, strip, [bytes(1_000); 2], 1.0);
        }
        for strip in 3..6 {
            assert_eq!(plan.give(0, strip, bytes(1_200)), bytes(200));
        }
        assert_eq!(plan.give(1, 0, bytes(12_000)), bytes(2_000));
    }

    #[test]
    fn two_encoders_share_one_picture_after_the_other() {
        let plan = Plan::new(6);
        let weights = [1e4, 2e4, 3e4, 2e4, 1e4, 3e4];
        for (strip, weight) in weights.into_iter().enumerate() {
            plan.done(0, strip, [bytes(0); 2], weight);
        }
        // One is ahead of the other by a strip.
        let shares = [1, 0, 3, 2, 5].map(|strip| plan.give(7, strip, bytes(12_000)).get());
        assert_eq!(shares, [2_000, 1_000, 2_000, 3_000, 3_000]);
        assert_eq!(plan.give(8, 0, bytes(12_000)), bytes(1_000));
        // And late with the last of the picture before.
        assert_eq!(plan.give(7, 4, bytes(12_000)), bytes(2_000));
        plan.done(7, 4, [bytes(2_000), bytes(10)], 1e4);
        assert_eq!(plan.give(8, 1, bytes(12_000)), bytes(2_000));
    }
}
