use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::StandardNormal;

/// A stationary Ornstein-Uhlenbeck process of mean 0 and standard deviation 1, on a grid of time.
///
/// The value is constant within one step. The path depends on the seed alone, not on the query
/// times. The exception is a leap of more than [`STEPS_MAX`] steps, which starts it afresh.
#[derive(Debug)]
pub(super) struct Wander {
    rng: ChaCha8Rng,
    step: u64,
    decay: f64,
    kick: f64,
    value: f64,
    grid: VecDeque<f64>,
    grid_start: u64,
}

/// Maximum steps computed one by one: eleven minutes of 10 ms. A longer leap starts afresh.
const STEPS_MAX: u64 = 1 << 16;

impl Wander {
    /// Returns a process with time constant `tau_nanos`, constant within `step_nanos` (above 0).
    pub(super) fn new(tau_nanos: u64, step_nanos: u64, mut rng: ChaCha8Rng) -> Self {
        let decay = (-(step_nanos as f64) / tau_nanos as f64).exp();
        let value = rng.sample::<f64, _>(StandardNormal);
        Self {
            rng,
            step: step_nanos,
            decay,
            kick: (1.0 - decay * decay).sqrt(),
            value,
            grid: VecDeque::from([value]),
            grid_start: 0,
        }
    }

    /// Returns the value at `at`, and the instant until which it holds, both times in ns.
    pub(super) fn at(&mut self, at: u64) -> (f64, u64) {
        let mut index = at.saturating_sub(self.grid_start) / self.step;
        if index.saturating_sub(self.grid.len() as u64) > STEPS_MAX {
            self.value = self.rng.sample(StandardNormal);
            self.grid.clear();
            self.grid.push_back(self.value);
            self.grid_start = at - at % self.step;
            index = 0;
        }
        while self.grid.len() as u64 <= index {
            let noise: f64 = self.rng.sample(StandardNormal);
            self.value = self.value * self.decay + self.kick * noise;
            self.grid.push_back(self.value);
        }
        let until = self.grid_start.saturating_add((index + 1).saturating_mul(self.step));
        (self.grid[index as usize], until)
    }

    /// Discards values from before `now` (ns), except the newest; no later query is earlier.
    pub(super) fn forget_before(&mut self, now: u64) {
        while self.grid.len() > 1 && self.grid_start.saturating_add(self.step) <= now {
            self.grid.pop_front();
            self.grid_start += self.step;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    fn wander(seed: u64) -> Wander {
        Wander::new(80_000_000, 10_000_000, ChaCha8Rng::seed_from_u64(seed))
    }

    #[test]
    fn the_path_does_not_depend_on_when_it_is_looked_at() {
        let (mut often, mut once) = (wander(1), wander(1));
        for millis in 0..5_000 {
            often.at(millis * 1_000_000);
            often.forget_before(millis * 1_000_000);
        }
        assert_eq!(often.at(5_000_000_000), once.at(5_000_000_000));
    }

    #[test]
    fn it_is_standard_normal_with_its_time_constant() {
        let mut wander = wander(2);
        let values: Vec<f64> = (0..200_000_u64)
            .map(|step| {
                wander.forget_before(step * 10_000_000);
                wander.at(step * 10_000_000).0
            })
            .collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let product = |lag: usize| {
            let pairs = values.iter().zip(&values[lag..]);
            pairs.map(|(a, b)| a * b).sum::<f64>() / (values.len() - lag) as f64
        };
        assert!(mean.abs() < 0.03, "mean {mean}");
        assert!((product(0) - 1.0).abs() < 0.03, "variance {}", product(0));
        assert!((product(8) - (-1.0_f64).exp()).abs() < 0.03, "one tau {}", product(8));
    }

    #[test]
    fn a_leap_to_the_clocks_end_is_short_work() {
        let mut wander = wander(3);
        let (value, until) = wander.at(u64::MAX);
        assert!(value.is_finite());
        assert!(until >= u64::MAX - 10_000_000);
        wander.at(0);
    }
}
