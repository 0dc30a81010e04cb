//! Flows of other senders in a link's queue.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::config::Config;
use super::foreign::Foreign;
use super::{bbr, cubic};

/// Returns the cross traffic of a link, with random numbers from `rng`.
pub(super) fn of(config: &Config, mut rng: ChaCha8Rng) -> Vec<Box<dyn Foreign>> {
    let mut flows: Vec<Box<dyn Foreign>> = Vec::new();
    if let Some(cubic) = &config.cubic {
        flows.push(Box::new(cubic::Flow::new(cubic)));
    }
    for bbr in &config.bbr {
        flows.push(Box::new(bbr::Flow::new(bbr, ChaCha8Rng::from_rng(&mut rng))));
    }
    flows
}

/// Returns the time of the earliest event up to `now` (ns), and its flow; `None` if there is none.
pub(super) fn first(
    flows: &mut [Box<dyn Foreign>],
    now: u64,
) -> Option<(u64, &mut Box<dyn Foreign>)> {
    let due = flows.iter_mut().filter_map(|flow| Some((flow.next_at()?, flow)));
    due.filter(|(at, _)| *at <= now).min_by_key(|(at, _)| *at)
}
