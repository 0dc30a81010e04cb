use tautline_units::ByteCount;

/// Shares a picture's budget among its strips so that all have about one quantizer.
///
/// Bytes fall alike with the quantizer in all strips, so one quantizer for all means shares in
/// proportion to what each strip's last slice would have taken at one quantizer: its
/// [weight](super::StripEncoder::weight). No strip gets more than its ceiling.
#[derive(Clone, PartialEq, Debug)]
pub struct Planner {
    weights: Vec<f64>,
    /// A strip's ceiling, in equal shares.
    ceiling: f64,
    equal: f64,
    /// Bytes of this picture that no strip has been given or taken.
    left: f64,
}

impl Planner {
    /// A planner for `strips` strips (at least one), each of which gets at most `ceiling` (at least
    /// one) equal shares.
    pub fn new(strips: usize, ceiling: f64) -> Self {
        let ceiling = ceiling.max(1.0);
        Self { weights: vec![1.0; strips.max(1)], ceiling, equal: 0.0, left: 0.0 }
    }

    /// Begins a picture that may take `budget`.
    pub fn begin(&mut self, budget: ByteCount) {
        self.left = budget.get() as f64;
        self.equal = self.left / self.weights.len() as f64;
    }

    /// The budget of a strip, which is coded next; strips come in order.
    ///
    /// # Panics
    /// If there is no such strip.
    pub fn give(&mut self, strip: usize) -> ByteCount {
        let rest: f64 = self.weights[strip..].iter().sum();
        let after = (self.weights.len() - strip - 1) as f64;
        // Those after it keep at least their least.
        let most = (self.left - after * LEAST * self.equal).min(self.ceiling * self.equal);
        let share = (self.left * self.weights[strip] / rest).max(LEAST * self.equal);
        let given = share.min(most.max(LEAST * self.equal)).max(0.0).floor();
        self.left -= given;
        ByteCount::new(given as u64)
    }

    /// Takes back what a strip did not take of what it was given, and notes its weight.
    ///
    /// What it took beyond (as an IDR may) is not taken from the others.
    pub fn done(&mut self, strip: usize, given: ByteCount, taken: ByteCount, weight: f64) {
        self.left += given.get().saturating_sub(taken.get()) as f64;
        if let Some(known) = self.weights.get_mut(strip).filter(|_| weight.is_finite()) {
            *known = weight.max(1.0);
        }
    }
}

/// The least that a strip gets, in equal shares: what changes is not foreseen.
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
