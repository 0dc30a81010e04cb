use tautline_units::ByteCount;

use super::rate_control::OCTAVE;

/// Planner that shares a picture's budget among its strips so that all have about the same
/// quantizer.
///
/// Bytes depend on the quantizer in the same way in all strips. Equal quantizers therefore mean
/// shares in proportion to the size of each strip's last slice at a common quantizer: its
/// [weight](super::StripEncoder::weight). No strip gets more than its ceiling.
#[derive(Clone, PartialEq, Debug)]
pub struct Planner {
    weights: Vec<f64>,
    /// Most that a strip gets, as a multiple of an equal share.
    ceiling: f64,
    equal: f64,
    /// Bytes of this picture not yet assigned to a strip, including those that strips returned.
    left: f64,
    /// For each strip, true until it has received its share of this picture.
    open: Vec<bool>,
}

impl Planner {
    /// Creates a planner for `strips` strips, none of which gets more than `ceiling` equal shares.
    /// A number of strips or a ceiling below one counts as one.
    pub fn new(strips: usize, ceiling: f64) -> Self {
        let ceiling = ceiling.max(1.0);
        let strips = strips.max(1);
        let (weights, open) = (vec![1.0; strips], vec![true; strips]);
        Self { weights, ceiling, equal: 0.0, left: 0.0, open }
    }

    /// Begins a picture with the budget `budget`.
    pub fn begin(&mut self, budget: ByteCount) {
        self.left = budget.get() as f64;
        self.equal = self.left / self.weights.len() as f64;
        self.open.fill(true);
    }

    /// Changes the picture's budget from `from`, its last value, to `to`, by scaling what is left
    /// for the strips that have not received their share yet; after a budget of zero, all of `to`
    /// is left.
    pub fn change(&mut self, from: ByteCount, to: ByteCount) {
        if from == ByteCount::ZERO {
            self.left = to.get() as f64;
        } else {
            self.left *= to.get() as f64 / from.get() as f64;
        }
        self.equal = to.get() as f64 / self.weights.len() as f64;
    }

    /// Returns the bytes for a strip that is coded next: its share by weight of what is left, from
    /// a tenth of an equal share to the ceiling. Strips come in any order, each once per picture.
    ///
    /// # Panics
    /// If there is no such strip.
    pub fn give(&mut self, strip: usize) -> ByteCount {
        self.open[strip] = false;
        let others = || self.weights.iter().zip(&self.open).filter(|(_, open)| **open);
        let rest = others().fold(self.weights[strip], |sum, (weight, _)| sum + weight);
        let after = others().count() as f64;
        // The strips after this one keep at least their minimum.
        let most = (self.left - after * LEAST * self.equal).min(self.ceiling * self.equal);
        let share = (self.left * self.weights[strip] / rest).max(LEAST * self.equal);
        let given = share.min(most.max(LEAST * self.equal)).max(0.0).floor();
        self.left -= given;
        ByteCount::new(given as u64)
    }

    /// Returns the size that a picture like the last one would have at this quantizer; zero before
    /// the first weight is recorded.
    pub fn bytes_at(&self, quantizer: f64) -> ByteCount {
        let bits = self.weights.iter().sum::<f64>() * (-quantizer / OCTAVE).exp2();
        ByteCount::new((bits / 8.0) as u64)
    }

    /// Returns a strip's unused bytes, `given - taken`, to the picture's budget, and records its
    /// weight unless that is not finite.
    ///
    /// Excess bytes (as of an IDR) are not subtracted from the others.
    pub fn done(&mut self, strip: usize, given: ByteCount, taken: ByteCount, weight: f64) {
        self.left += given.get().saturating_sub(taken.get()) as f64;
        if let Some(known) = self.weights.get_mut(strip).filter(|_| weight.is_finite()) {
            *known = weight.max(1.0);
        }
    }
}

/// Least budget of a strip, as a share of an equal one: a change in a strip cannot be predicted.
const LEAST: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(planner: &mut Planner, weights: &[f64], budget: u64) -> Vec<u64> {
        planner.begin(ByteCount::new(budget));
        let strips = 0..weights.len();
        strips
            .map(|strip| {
                let given = planner.give(strip);
                planner.done(strip, given, given, weights[strip]);
                given.get()
            })
            .collect()
    }

    #[test]
    fn shares_are_as_the_weights_up_to_the_ceiling() {
        let mut planner = Planner::new(4, 2.0);
        let weights = [1e4, 2e4, 3e4, 2e4];
        assert_eq!(picture(&mut planner, &weights, 8_000), [2_000; 4]);
        assert_eq!(picture(&mut planner, &weights, 8_000), [1_000, 2_000, 3_000, 2_000]);
        let weights = [9e4, 1e3, 1e3, 1e3];
        picture(&mut planner, &weights, 8_000);
        let shares = picture(&mut planner, &weights, 8_000);
        assert_eq!(shares[0], 4_000);
        assert!(shares.iter().sum::<u64>() <= 8_000);
    }

    #[test]
    fn no_budget_or_weight_breaks_it() {
        let mut planner = Planner::new(3, f64::NAN);
        for budget in [0, 1, u64::MAX] {
            for weights in [[f64::NAN; 3], [0.0; 3], [f64::INFINITY, 1e300, -1.0]] {
                let shares = picture(&mut planner, &weights, budget);
                assert!(shares.iter().all(|share| *share <= budget));
            }
        }
    }
}
