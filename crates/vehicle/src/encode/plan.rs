use std::sync::{Mutex, PoisonError};

use tautline_units::ByteCount;
use tautline_video::avc::{LossCost, Planner};

/// Allocation of each picture's bytes to its strips, and the cost of losses, shared by all
/// encoders.
#[derive(Debug)]
pub struct Plan {
    strips: u64,
    shares: Mutex<Shares>,
}

#[derive(Debug)]
struct Shares {
    planner: Planner,
    toll: LossCost,
    /// Number of the current picture, the newest that an encoder has begun; `None` before the
    /// first.
    picture: Option<u32>,
    /// Size last allowed for the current picture, all strips together.
    budget: ByteCount,
}

impl Plan {
    /// Creates a plan for pictures of `strips` strips (at least one), with equal shares until
    /// weights are known.
    pub fn new(strips: usize) -> Self {
        let planner = Planner::new(strips, CEILING);
        Self {
            strips: strips.max(1) as u64,
            shares: Mutex::new(Shares {
                planner,
                toll: LossCost::new(strips),
                picture: None,
                budget: ByteCount::ZERO,
            }),
        }
    }

    /// Returns the share of the strip coded next, in a picture of size `budget`; an equal share if
    /// another encoder has already begun a later picture.
    ///
    /// A budget that changes within a picture applies to the rest of it.
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
            // The other encoder is already at the next picture.
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

    /// Returns a strip's share of `budget` if all strips are alike.
    pub fn equal(&self, budget: ByteCount) -> ByteCount {
        ByteCount::new(budget.get() / self.strips)
    }

    /// Returns the size that a picture like the last one would have at this quantizer; zero before
    /// the first weight.
    pub fn bytes_at(&self, quantizer: f64) -> ByteCount {
        let shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.planner.bytes_at(quantizer)
    }

    /// Records the slice coded next for the cost of losses. `corrupt` is `None` unless the slice
    /// recovers from a loss or a reported loss needed no recovery; then it is the number of
    /// pictures that the loss corrupted, or would have corrupted. Returns whether losses are
    /// frequent.
    pub fn note_recovery(&self, corrupt: Option<u64>) -> bool {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares.toll.note(corrupt);
        shares.toll.is_high()
    }

    /// Gives the unused part of a strip's share back to the plan, unless another picture has begun,
    /// and records the strip's [weight](tautline_video::avc::StripEncoder::weight).
    pub fn done(&self, picture: u32, strip: usize, [given, taken]: [ByteCount; 2], weight: f64) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        // The remainder of an earlier picture is discarded.
        let given = if shares.picture == Some(picture) { given } else { taken };
        shares.planner.done(strip, given, taken, weight);
    }
}

/// Upper bound of a strip's share as a multiple of an equal share; sending it takes twice as long
/// as the others.
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
        // One encoder is ahead by a strip.
        let shares = [1, 0, 3, 2, 5].map(|strip| plan.give(7, strip, bytes(12_000)).get());
        assert_eq!(shares, [2_000, 1_000, 2_000, 3_000, 3_000]);
        assert_eq!(plan.give(8, 0, bytes(12_000)), bytes(1_000));
        // And late with the last strip of the previous picture.
        assert_eq!(plan.give(7, 4, bytes(12_000)), bytes(2_000));
        plan.done(7, 4, [bytes(2_000), bytes(10)], 1e4);
        assert_eq!(plan.give(8, 1, bytes(12_000)), bytes(2_000));
    }
}
