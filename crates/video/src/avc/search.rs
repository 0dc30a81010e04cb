//! Motion search: predictors, a diamond over whole samples, then halves and quarters.

use super::kernel::Kernel;
use super::plane::Block;
use super::reference::{Area, Reference};
use super::vector::{Vector, Window};

/// A vector found and what it costs: its distortion and, at the given lambda, its bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Found {
    pub(super) vector: Vector,
    pub(super) cost: u32,
}

/// What a search looks for and where.
#[derive(Clone, Copy)]
pub(super) struct Search<'a, K> {
    pub(super) kernel: K,
    pub(super) reference: Reference<'a>,
    pub(super) source: Block<'a>,
    pub(super) area: Area,
    pub(super) window: Window,
    /// The vector from which the difference is coded.
    pub(super) predicted: Vector,
    /// The cost of a bit, sixteenths.
    pub(super) lambda: u32,
}

impl<K: Kernel> Search<'_, K> {
    /// The best vector that a walk from `candidates` finds.
    ///
    /// `None` if the window permits not even standing still and no candidate.
    pub(super) fn run(&self, candidates: &[Vector]) -> Option<Found> {
        let whole = self.whole(candidates)?;
        Some(self.refine(whole))
    }

    /// The vector's cost, or none where it must not point.
    fn cost(&self, vector: Vector) -> Option<u32> {
        let Area { x, y, width, height } = self.area;
        if !self.window.permits([x, y], [width as i32, height as i32], vector) {
            return None;
        }
        let sad = self.reference.sad(self.kernel, self.source, self.area, vector);
        Some(sad + self.price(vector))
    }

    fn price(&self, vector: Vector) -> u32 {
        (self.lambda * vector.bits(self.predicted)) >> 4
    }

    /// The cost of a vector of whole samples.
    fn whole_cost(&self, vector: Vector) -> Option<u32> {
        let Area { x, y, width, height } = self.area;
        if !self.window.permits([x, y], [width as i32, height as i32], vector) {
            return None;
        }
        let (x, y) = (x + i32::from(vector.x >> 2), y + i32::from(vector.y >> 2));
        let block = self.reference.frame.luma.from(x, y);
        Some(self.kernel.sad(width, height, self.source, block) + self.price(vector))
    }

    fn whole(&self, candidates: &[Vector]) -> Option<Found> {
        let mut best: Option<Found> = None;
        let mut consider = |vector: Vector| {
            let Some(cost) = self.whole_cost(vector) else { return false };
            let better = best.is_none_or(|best| cost < best.cost);
            if better {
                best = Some(Found { vector, cost });
            }
            better
        };
        consider(Vector::default());
        for (index, candidate) in candidates.iter().enumerate() {
            let vector = candidate.rounded();
            let seen = candidates[..index].iter().any(|earlier| earlier.rounded() == vector);
            if vector != Vector::default() && !seen {
                consider(vector);
            }
        }
        let mut best = best?;
        let mut from = None;
        for _ in 0..WALK {
            let centre = best.vector;
            for (direction, (x, y)) in AROUND.into_iter().enumerate() {
                // Where the walk came from has been seen.
                if from == Some(direction) {
                    continue;
                }
                let vector = centre.moved(4 * x, 4 * y);
                if let Some(cost) = self.whole_cost(vector).filter(|&cost| cost < best.cost) {
                    best = Found { vector, cost };
                }
            }
            if best.vector == centre {
                break;
            }
            from = AROUND.iter().position(|&(x, y)| best.vector.moved(4 * x, 4 * y) == centre);
        }
        Some(best)
    }

    fn refine(&self, whole: Found) -> Found {
        let mut best = whole;
        // The predicted vector costs no bits.
        if self.predicted != whole.vector
            && let Some(cost) = self.cost(self.predicted).filter(|&cost| cost < best.cost)
        {
            best = Found { vector: self.predicted, cost };
        }
        for (step, walk) in [(2, HALF_WALK), (1, QUARTER_WALK)] {
            for _ in 0..walk {
                let centre = best.vector;
                for (x, y) in AROUND {
                    let vector = centre.moved(step * x, step * y);
                    if let Some(cost) = self.cost(vector).filter(|&cost| cost < best.cost) {
                        best = Found { vector, cost };
                    }
                }
                if best.vector == centre {
                    break;
                }
            }
        }
        best
    }
}

/// The points of the small diamond; each is opposite to the one at its index with the last bit
/// turned.
const AROUND: [(i16, i16); 4] = [(0, -1), (0, 1), (-1, 0), (1, 0)];
/// Steps of whole samples at most.
const WALK: usize = 16;
/// Steps of half samples and of quarters.
const HALF_WALK: usize = 1;
const QUARTER_WALK: usize = 1;
