//! Residual loss of a block code without feedback.

use super::link::chain;

/// A block built up to its current size, with the distribution of its losses on a link.
///
/// Erasures follow [`chain`], and any k packets are assumed to suffice. The result is exact: the
/// number of losses among source packets, and then among repair packets, is tracked slot by slot.
pub(super) struct BlockLosses {
    /// Probability of an erasure after a received packet, and after an erased one.
    after: [f64; 2],
    sources: Losses,
    /// Losses of repair packets: first if the last source packet is received, then if it is lost.
    repairs: [Losses; 2],
}

/// Probability of each number of losses: first if the last packet is received, then if it is lost.
struct Losses([Vec<f64>; 2]);

impl BlockLosses {
    /// Creates a block without packets.
    pub(super) fn new(erasure_rate: f64, burst: f64) -> BlockLosses {
        BlockLosses {
            after: chain(erasure_rate, burst),
            sources: Losses([vec![1.0 - erasure_rate], vec![erasure_rate]]),
            repairs: [Losses([vec![1.0], vec![0.0]]), Losses([vec![0.0], vec![1.0]])],
        }
    }

    /// Adds source and repair packets. O((k + n) x added).
    pub(super) fn grow(&mut self, source_count: usize, repair_count: usize) {
        for _ in 0..source_count {
            self.sources.add_packet(self.after);
        }
        for _ in 0..repair_count {
            self.repairs.iter_mut().for_each(|losses| losses.add_packet(self.after));
        }
    }

    /// Returns the number of source packets: k.
    pub(super) fn source_count(&self) -> usize {
        self.sources.0[0].len() - 1
    }

    /// Returns the number of repair packets: n - k.
    pub(super) fn repair_count(&self) -> usize {
        self.repairs[0].0[0].len() - 1
    }

    /// Returns the share of source packets that stay lost: those lost in a block that loses more
    /// packets than it has repair packets. O(n).
    pub(super) fn residual(&self) -> f64 {
        let mut lost = 0.0;
        for (probabilities, repairs) in self.sources.0.iter().zip(&self.repairs) {
            let more = repairs.tail();
            for (count, probability) in probabilities.iter().enumerate().skip(1) {
                let spare = self.repair_count().checked_sub(count);
                let fails = spare.map_or(1.0, |spare| more[spare]);
                lost += count as f64 * probability * fails;
            }
        }
        lost / self.source_count() as f64
    }
}

impl Losses {
    fn add_packet(&mut self, after: [f64; 2]) {
        let [came, lost] = &mut self.0;
        came.push(0.0);
        lost.push(0.0);
        for count in (0..came.len()).rev() {
            let now = came[count] * (1.0 - after[0]) + lost[count] * (1.0 - after[1]);
            lost[count] = match count.checked_sub(1) {
                Some(less) => came[less] * after[0] + lost[less] * after[1],
                None => 0.0,
            };
            came[count] = now;
        }
    }

    /// Returns, for each number from 0 on, the probability of more losses than that.
    fn tail(&self) -> Vec<f64> {
        let mut tail = vec![0.0; self.0[0].len()];
        for count in (1..tail.len()).rev() {
            tail[count - 1] = tail[count] + self.0[0][count] + self.0[1][count];
        }
        tail
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_losses_give_the_binomial_formula() {
        // A packet stays lost if it and at least n - k of the other n - 1 are lost: n = 3, k = 2.
        let e: f64 = 0.1;
        let expected = e * (1.0 - (1.0 - e).powi(2));
        assert!((residual(2, 1, e, 1.0) - expected).abs() < 1e-15);
        // Without repair packets every lost packet stays lost.
        for burst in [1.0, 4.0] {
            assert!((residual(7, 0, e, burst) - e).abs() < 1e-15);
        }
    }

    #[test]
    fn a_block_grown_in_steps_is_the_same_block() {
        let mut block = BlockLosses::new(0.07, 3.0);
        for _ in 0..5 {
            block.grow(4, 1);
        }
        assert_eq!((block.source_count(), block.repair_count()), (20, 5));
        assert_eq!(block.residual(), residual(20, 5, 0.07, 3.0));
    }

    #[test]
    fn bursts_leave_more_lost() {
        let at = |burst| residual(20, 5, 0.05, burst);
        assert!(at(1.0) < at(2.0) && at(2.0) < at(4.0));
    }

    fn residual(source_count: usize, repair_count: usize, erasure_rate: f64, burst: f64) -> f64 {
        let mut block = BlockLosses::new(erasure_rate, burst);
        block.grow(source_count, repair_count);
        block.residual()
    }
}
