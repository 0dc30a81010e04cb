use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::config::{BurstLoss, Config};

/// Losses of single packets, independent and in bursts.
#[derive(Debug)]
pub(super) struct Loss {
    rng: ChaCha8Rng,
    independent: f64,
    burst: Option<BurstLoss>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    Bad,
}

impl Loss {
    pub(super) fn new(config: &Config, mut rng: ChaCha8Rng) -> Self {
        let burst = config.burst_loss;
        let bad_share = burst.map_or(0.0, |b| b.enter / (b.enter + b.leave));
        let state = if rng.random_bool(bad_share) { State::Bad } else { State::Good };
        Self { rng, independent: config.loss, burst, state }
    }

    /// Returns whether the next packet is lost.
    pub(super) fn takes_next(&mut self) -> bool {
        let lost_alone = self.independent > 0.0 && self.rng.random_bool(self.independent);
        let Some(burst) = self.burst else { return lost_alone };
        self.state = match self.state {
            State::Good if self.rng.random_bool(burst.enter) => State::Bad,
            State::Bad if self.rng.random_bool(burst.leave) => State::Good,
            same @ (State::Good | State::Bad) => same,
        };
        let lost_in_burst = self.state == State::Bad && self.rng.random_bool(burst.loss);
        lost_alone || lost_in_burst
    }
}
