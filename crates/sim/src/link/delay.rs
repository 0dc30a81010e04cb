use std::sync::Arc;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::config::{Config, Retransmission};
use super::wander::Wander;
use crate::Error;
use crate::recording::Recording;

/// Delay of a packet after it has left the queue.
#[derive(Debug)]
pub(super) struct Delay {
    base: u64,
    recorded: Option<Recorded>,
    jitter: Option<(f64, Wander)>,
    retransmission: Option<Retransmission>,
    rng: ChaCha8Rng,
}

/// A direction's share of recorded round trips.
#[derive(Debug)]
struct Recorded {
    recording: Arc<Recording>,
    start: u64,
    share: f64,
}

/// Maximum retransmission rounds of one packet; after them it is delivered.
const ROUNDS_MAX: u32 = 16;

impl Delay {
    pub(super) fn new(
        config: &Config,
        jitter_rng: ChaCha8Rng,
        rng: ChaCha8Rng,
    ) -> Result<Self, Error> {
        let jitter = config.jitter.filter(|jitter| jitter.sigma_ms > 0.0).map(|jitter| {
            let tau = jitter.tau_ms * 1e6;
            // A fiftieth of the time constant: one step changes the value by much less than the
            // deviation.
            let step = (tau / 50.0).clamp(1e6, 20e6) as u64;
            (jitter.sigma_ms * 1e6, Wander::new(tau as u64, step, jitter_rng))
        });
        let recorded = match &config.recording {
            Some(replay) => Some(Recorded {
                recording: Arc::clone(replay.loaded()?),
                start: replay.start_nanos(),
                share: replay.share,
            }),
            None => None,
        };
        let base = (config.delay_ms * 1e6).round() as u64;
        Ok(Self { base, recorded, jitter, retransmission: config.retransmission, rng })
    }

    /// Returns the delay in nanoseconds of a packet that leaves the queue at `departure`.
    pub(super) fn of_next(&mut self, departure: u64) -> u64 {
        let jitter = match &mut self.jitter {
            Some((sigma, wander)) => (*sigma * wander.at(departure).0.abs()) as u64,
            None => 0,
        };
        let rounds = match self.retransmission {
            Some(round) => {
                let again = || self.rng.random_bool(round.probability);
                let rounds = std::iter::repeat_with(again).take_while(|again| *again);
                rounds.take(ROUNDS_MAX as usize).count() as u64 * (round.delay_ms * 1e6) as u64
            }
            None => 0,
        };
        let recorded = self.recorded.as_ref().map_or(0, |recorded| {
            let rtt = recorded.recording.rtt_at(departure.saturating_add(recorded.start));
            (rtt as f64 * recorded.share) as u64
        });
        self.base + recorded + jitter + rounds
    }

    /// Discards jitter from before `now` (ns); no later query is earlier.
    pub(super) fn forget_before(&mut self, now: u64) {
        if let Some((_, wander)) = &mut self.jitter {
            wander.forget_before(now);
        }
    }
}
