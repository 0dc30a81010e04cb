//! Model that selects the quantizer for a slice of the target size.
//!
//! [LTE], section IV.B, looks the quantizer up in a table of mean sizes. Sizes vary around such a
//! table by a factor of 2.7 (99th percentile). This model replaces the table and learns from each
//! slice.

mod activity;

use tautline_units::ByteCount;

pub(crate) use activity::Activity;

use crate::Picture;

/// The size model of one strip.
///
/// The bytes of a predicted slice, beyond a fixed part, are modelled as
/// `2^(level + change - qp / 6 - (qp - last qp) / 10)`: they halve every six quantizers. They fall
/// faster at the first slice of a new quantizer, whose prediction still has the old one. `change`
/// is measured on the source before coding; `level` follows the resulting sizes. Slices of 1280x720
/// drives at 1000 and 4000 bytes then have a 99th percentile of 1.5 to 1.6 budgets. Means over 30
/// slices are at most 5 % above the budget, and below it only where QP 16 is reached.
#[derive(Clone, Debug)]
pub(crate) struct Quantizer {
    /// log2 of the bytes of a predicted slice at QP 0 for a change of 1: first for a moving strip,
    /// then for a still one. The two are independent.
    levels: [f64; 2],
    /// True while the strip is still; selects its level in `levels`.
    still: bool,
    /// log2 of the factor by which the change since the last picture multiplies the bytes.
    change: f64,
    /// Ratio of the bytes of the last intra slice to those predicted from its activity.
    intra_scale: f64,
    /// Bytes coded in excess of the budgets so far, limited to -2 to 8 budgets.
    debt: f64,
    last_qp: i32,
    macroblocks: f64,
    /// Every 16th luma pixel of the last picture; empty before the first.
    samples: Vec<u8>,
}

impl Quantizer {
    /// Returns the initial model of a strip.
    pub(crate) fn new(width: usize, height: usize) -> Self {
        let macroblocks = (width / 16 * (height / 16)) as f64;
        Self {
            levels: [(macroblocks * FIRST_BYTES_A_MACROBLOCK).log2(); 2],
            still: false,
            change: 0.0,
            intra_scale: 1.0,
            debt: 0.0,
            last_qp: 30,
            macroblocks,
            samples: Vec::new(),
        }
    }

    /// Measures how much the strip that is to be coded next has changed since the last picture; the
    /// first counts as unchanged.
    ///
    /// Compares every 16th pixel with the last picture's: 10,240 pixels of a strip of 1280x128.
    pub(crate) fn look_at(&mut self, picture: &Picture) {
        let rows = picture.luma().chunks_exact(picture.width()).skip(1).step_by(4);
        let samples: Vec<u8> = rows.flat_map(|row| row[1..].iter().step_by(4).copied()).collect();
        let sum: u64 =
            self.samples.iter().zip(&samples).map(|(&a, &b)| u64::from(a.abs_diff(b))).sum();
        let mean = sum as f64 / samples.len() as f64;
        self.still = mean < STILL;
        self.change = CHANGE_WEIGHT * (mean + CHANGE_FLOOR).log2();
        self.samples = samples;
    }

    /// Returns the quantizer for a predicted slice of about `budget`, corrected by the debt; at
    /// most [`FINER_STEP`] finer than the last slice's.
    pub(crate) fn for_predicted(&self, budget: ByteCount) -> i32 {
        let target = (self.target(budget) - self.fixed()).max(1.0).log2();
        let miss = |qp: i32| (self.level() + self.change - self.fall(qp) - target).abs();
        // Finer quantizers are approached in steps: a slice that adds all the detail at once would
        // be far too large, and could not be coded again.
        (QP_MIN.max(self.last_qp - FINER_STEP)..=QP_MAX)
            .min_by(|&a, &b| miss(a).total_cmp(&miss(b)))
            .unwrap_or(QP_MAX)
    }

    /// Updates the model with a predicted slice; an unexpectedly small one has a limited effect.
    pub(crate) fn predicted_done(&mut self, qp: i32, size: ByteCount) {
        let bytes = (size.get() as f64 - self.fixed()).max(1.0);
        let surprise = bytes.log2() + self.fall(qp) - self.change - self.level();
        // A repeated picture produces a tiny slice and says little about the next.
        self.levels[usize::from(self.still)] += LEARNING * surprise.max(-1.0);
    }

    /// Returns the finest quantizer for an IDR slice of at most [`INTRA_BUDGETS`] budgets; the
    /// coarsest if none is fine enough.
    pub(crate) fn for_intra(&self, activity: &Activity, budget: ByteCount) -> i32 {
        let allowed = budget.get() as f64 * INTRA_BUDGETS / self.intra_scale;
        (QP_MIN..QP_MAX).find(|&qp| activity.bytes(qp) <= allowed).unwrap_or(QP_MAX)
    }

    /// Updates the model with an IDR slice. Returns a coarser quantizer to code it again if the
    /// slice is more than a quarter too large; `None` if it is not, or there is none.
    pub(crate) fn intra_done(
        &mut self,
        activity: &Activity,
        qp: i32,
        size: ByteCount,
        budget: ByteCount,
    ) -> Option<i32> {
        self.intra_scale = (size.get() as f64 / activity.bytes(qp)).clamp(0.1, 10.0);
        let too_large = size.get() as f64 > budget.get() as f64 * INTRA_BUDGETS * 1.25;
        let higher = self.for_intra(activity, budget);
        (too_large && higher > qp).then_some(higher)
    }

    /// Records the quantizer of a slice that is sent, and adds its excess over the budget to the
    /// debt, which later slices pay back. A smaller slice reduces the debt, which stays within -2
    /// to 8 budgets.
    pub(crate) fn slice_done(&mut self, qp: i32, size: ByteCount, budget: ByteCount) {
        self.last_qp = qp;
        let budget = budget.get() as f64;
        // Credit is limited, so that a quiet strip cannot burst; the excess of an IDR is paid back.
        self.debt = (self.debt + size.get() as f64 - budget).clamp(-2.0 * budget, 8.0 * budget);
    }

    fn level(&self) -> f64 {
        self.levels[usize::from(self.still)]
    }

    /// Returns the target in bytes: the budget minus a share of the debt, within 0.5 to 1.2
    /// budgets.
    fn target(&self, budget: ByteCount) -> f64 {
        let budget = budget.get() as f64;
        (budget - self.debt / PAYBACK_SLICES).clamp(0.5 * budget, 1.2 * budget)
    }

    /// Returns by how many octaves a predicted slice is smaller at `qp` than at QP 0.
    fn fall(&self, qp: i32) -> f64 {
        let step = (qp - self.last_qp).clamp(-FINER_STEP, FINER_STEP);
        f64::from(qp) / 6.0 + f64::from(step) / 10.0
    }

    /// Returns the bytes of a predicted slice that do not depend on its quantizer: headers and runs
    /// of skipped macroblocks.
    fn fixed(&self) -> f64 {
        8.0 + self.macroblocks / 64.0
    }
}

/// Size of an IDR slice in budgets: with only one, its quantizer would be about ten steps coarser
/// than its neighbours', visible as a blink.
const INTRA_BUDGETS: f64 = 3.0;
/// Finest quantizer: finer ones make no visible difference (about 48 dB) and would cause bursts
/// when the strip moves.
const QP_MIN: i32 = 16;
const QP_MAX: i32 = 51;
/// Largest step to a finer quantizer from one slice to the next: a factor of about four in bytes.
const FINER_STEP: i32 = 6;
/// Share of a predicted slice's error, in octaves, by which its level in the model is corrected.
const LEARNING: f64 = 0.5;
/// Number of slices over which a debt is paid back.
const PAYBACK_SLICES: f64 = 10.0;
/// Exponent with which the bytes of a predicted slice grow with the mean change of its pixels.
const CHANGE_WEIGHT: f64 = 0.7;
/// Mean change, in luma steps, that is added to each measured one.
const CHANGE_FLOOR: f64 = 0.25;
/// Mean change below which a strip is still, in luma steps: below a camera's noise.
const STILL: f64 = 0.5;
const FIRST_BYTES_A_MACROBLOCK: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn settled(bytes: impl Fn(i32) -> f64, budget: u64) -> Vec<u64> {
        let mut quantizer = Quantizer::new(1280, 128);
        let budget = ByteCount::new(budget);
        let mut sizes = Vec::new();
        for _ in 0..60 {
            let qp = quantizer.for_predicted(budget);
            let size = ByteCount::new(bytes(qp) as u64);
            quantizer.predicted_done(qp, size);
            quantizer.slice_done(qp, size, budget);
            sizes.push(size.get());
        }
        sizes
    }

    #[test]
    fn sizes_settle_at_the_budget_for_any_slope() {
        for octave in [4.0, 6.0, 9.0] {
            let sizes = settled(|qp| 100_000.0 * (-f64::from(qp) / octave).exp2(), 3_000);
            let mean = sizes[30..].iter().sum::<u64>() as f64 / 30.0;
            assert!((mean / 3_000.0 - 1.0).abs() < 0.05, "octave {octave}: {mean}");
        }
    }

    #[test]
    fn an_impossible_budget_ends_at_the_coarsest_quantizer() {
        let mut quantizer = Quantizer::new(1280, 128);
        for budget in [ByteCount::ZERO, ByteCount::new(1)] {
            assert_eq!(quantizer.for_predicted(budget), 51);
            quantizer.predicted_done(51, ByteCount::new(500));
            quantizer.slice_done(51, ByteCount::new(500), budget);
        }
        let quantizer = Quantizer::new(1280, 128);
        let huge = quantizer.for_predicted(ByteCount::new(u64::MAX));
        assert!((QP_MIN..=30).contains(&huge));
    }

    #[test]
    fn a_flat_strip_has_no_activity() {
        let activity = Activity::of(&Picture::new(64, 32).unwrap());
        assert_eq!(activity.bytes(QP_MIN), activity.bytes(QP_MAX));
    }
}
