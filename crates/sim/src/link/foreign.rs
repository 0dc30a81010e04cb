use std::fmt;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use super::config::Config;
use super::{bbr, cubic};

/// Another's flow in the link's queue: bulk data that always has something to send.
///
/// The link moves it from one thing that happens to the next and takes packets from it as long as it may send.
pub(super) trait Foreign: fmt::Debug + Send + Sync {
    /// Returns when something happens next; `None`: never again.
    fn next_at(&self) -> Option<u64>;

    /// Takes what is known by `at`.
    fn advance(&mut self, at: u64);

    /// Returns whether a packet of [`PACKET_BYTES`] may leave at `at`.
    fn may_send(&self, at: u64) -> bool;

    /// Notes a packet of `at` that leaves the queue at `departure`, or that was dropped when the packet before
    /// it leaves then.
    fn on_sent(&mut self, at: u64, departure: u64, arrived: bool);
}

/// Returns the flows of a link, whose random numbers come from `rng`.
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

/// Returns the flow to which something happens first, and when, if that is by `now`.
pub(super) fn first(
    flows: &mut [Box<dyn Foreign>],
    now: u64,
) -> Option<(u64, &mut Box<dyn Foreign>)> {
    let due = flows.iter_mut().filter_map(|flow| Some((flow.next_at()?, flow)));
    due.filter(|(at, _)| *at <= now).min_by_key(|(at, _)| *at)
}

/// Returns nanoseconds.
pub(super) fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

/// A full packet of TCP, IP's header included.
pub(super) const PACKET_BYTES: u64 = 1_500;
/// [RFC6928].
pub(super) const WINDOW_FIRST: f64 = 10.0;
