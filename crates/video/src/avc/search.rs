//! Motion search: predictors, a diamond over full samples, then half and quarter samples.

use super::kernel::Kernel;
use super::plane::Block;
use super::reference::{Area, Reference};
use super::vector::{Vector, Window};

/// A vector and its cost: the sum of absolute differences plus the vector's bits weighted by
/// lambda.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) vector: Vector,
    pub(super) cost: u32,
}

/// Motion search of one part of a macroblock.
#[derive(Clone, Copy)]
pub(super) struct Search<'a, K> {
    pub(super) kernel: K,
    pub(super) reference: Reference<'a>,
    pub(super) source: Block<'a>,
    pub(super) area: Area,
    pub(super) window: Window,
    /// Predicted vector; the difference from it is coded.
    pub(super) predicted: Vector,
    /// Cost of a bit, in sixteenths.
    pub(super) lambda: u32,
}

impl<K: Kernel> Search<'_, K> {
    /// Returns the best vector found by steps from the best of `candidates` and the zero vector.
    ///
    /// `None` if the window permits neither the zero vector nor any candidate.
    pub(super) fn run(&self, candidates: &[Vector]) -> Option<Found> {
        let whole = self.whole(candidates)?;
        Some(self.refine(whole))
    }

    /// Returns the vector's cost; `None` if the window does not permit the vector.
    fn cost(&self, vector: Vector) -> Option<u32> {
        let Area { x, y, width, height } = self.area;
        if !self.window.permits([x, y], [width as i32, height as i32], vector) {
            return None;
        }
        let sad = self.reference.sad(self.kernel, self.source, self.area, vector);
        Some(sad + self.price(vector.bits(self.predicted)))
    }

    fn price(&self, bits: u32) -> u32 {
        (self.lambda * bits) >> 4
    }

    /// Returns the best of a vector and its four neighbours at `step` quarters of a sample.
    fn around(&self, best: Found, step: i16) -> Found {
        let Area { x, y, width, height } = self.area;
        let centre = best.vector;
        let vectors = centre.around(step);
        let mut found = best;
        let mut consider = |vector: Vector, cost: u32| {
            if cost < found.cost {
                found = Found { vector, cost };
            }
        };
        if self.window.permits_around([x, y], [width as i32, height as i32], centre) {
            let sads = self.reference.sad_four(self.kernel, self.source, self.area, vectors);
            let bits = centre.bits_around(step, self.predicted);
            for ((vector, sad), bits) in vectors.into_iter().zip(sads).zip(bits) {
                consider(vector, sad + self.price(bits));
            }
        } else {
            for vector in vectors {
                if let Some(cost) = self.cost(vector) {
                    consider(vector, cost);
                }
            }
        }
        found
    }

    fn whole(&self, candidates: &[Vector]) -> Option<Found> {
        let mut best: Option<Found> = None;
        let mut consider = |vector: Vector| {
            let cost = self.cost(vector);
            if let Some(cost) = cost.filter(|&cost| best.is_none_or(|best| cost < best.cost)) {
                best = Some(Found { vector, cost });
            }
        };
        consider(Vector::default());
        for (index, candidate) in candidates.iter().enumerate() {
            let vector = candidate.rounded();
            let seen = candidates[..index].iter().any(|earlier| earlier.rounded() == vector);
            if vector != Vector::default() && !seen {
                consider(vector);
            }
        }
        Some(self.walk(best?, 4, WHOLE_WALK))
    }

    /// Moves to the best vector `step` quarters away until none is better, for at most `most`
    /// steps.
    fn walk(&self, mut best: Found, step: i16, most: usize) -> Found {
        for _ in 0..most {
            let next = self.around(best, step);
            if next.vector == best.vector {
                break;
            }
            best = next;
        }
        best
    }

    fn refine(&self, whole: Found) -> Found {
        let mut best = whole;
        // The predicted vector costs no bits.
        if self.predicted != whole.vector
            && let Some(cost) = self.cost(self.predicted).filter(|&cost| cost < best.cost)
        {
            best = Found { vector: self.predicted, cost };
        }
        self.walk(self.walk(best, 2, HALF_WALK), 1, QUARTER_WALK)
    }
}

/// Maximum number of steps of a full sample in one search; [`HALF_WALK`] and [`QUARTER_WALK`] are
/// those of half and quarter samples.
const WHOLE_WALK: usize = 16;
const HALF_WALK: usize = 1;
const QUARTER_WALK: usize = 2;
