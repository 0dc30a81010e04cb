use std::collections::VecDeque;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_transport::Route;

use super::nobody;

/// Probability of each fault per datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// Probability that a datagram is lost, outside bursts.
    pub loss: f64,
    /// Probability that a burst of losses starts with a datagram; it lasts five in the mean.
    pub burst: f64,
    /// Probability that up to three bits of a datagram flip; one such datagram in three is
    /// truncated as well.
    pub corruption: f64,
    /// Probability that a datagram arrives twice in a row, and a third time much later.
    pub duplication: f64,
    /// Probability that a datagram is held back; once more than [`HELD_MAX`] are, all follow the
    /// next delivered one.
    pub reordering: f64,
    /// Probability that a datagram arrives from an address that belongs to nobody.
    pub readdressing: f64,
}

/// Random faults on the datagrams that arrive at one endpoint, and the datagrams that they hold
/// back.
#[derive(Debug, Clone, Default)]
pub struct Random {
    rates: Rates,
    bursting: bool,
    held: VecDeque<(Route, Vec<u8>)>,
    kept: VecDeque<(Route, Vec<u8>)>,
}

impl Random {
    /// Creates faults with the given rates.
    pub fn new(rates: Rates) -> Self {
        Self { rates, ..Self::default() }
    }

    pub(super) fn befall(
        &mut self,
        route: Route,
        datagram: &[u8],
        rng: &mut ChaCha20Rng,
    ) -> Vec<(Route, Vec<u8>)> {
        let route = match chance(rng, self.rates.readdressing) {
            true => nobody::route(route),
            false => route,
        };
        self.bursting = match self.bursting {
            true => chance(rng, BURST_GOES_ON),
            false => chance(rng, self.rates.burst),
        };
        if self.bursting || chance(rng, self.rates.loss) {
            return Vec::new();
        }
        if chance(rng, self.rates.reordering) {
            self.held.push_back((route, datagram.to_vec()));
            return Vec::new();
        }
        if chance(rng, self.rates.corruption) {
            return vec![(route, corrupted(datagram, rng))];
        }
        let mut come = vec![(route, datagram.to_vec())];
        if chance(rng, self.rates.duplication) {
            come.push((route, datagram.to_vec()));
            self.kept.push_back((route, datagram.to_vec()));
        }
        if self.held.len() > HELD_MAX {
            come.extend(self.held.drain(..));
        }
        if self.kept.len() > KEPT_MAX {
            come.extend(self.kept.pop_front());
        }
        come
    }
}

fn corrupted(datagram: &[u8], rng: &mut ChaCha20Rng) -> Vec<u8> {
    let mut corrupted = datagram.to_vec();
    let bits = 1 + rng.next_u32() % 3;
    for _ in 0..bits {
        let at = rng.next_u32() as usize % corrupted.len();
        corrupted[at] ^= 1 << (rng.next_u32() % 8);
    }
    if chance(rng, CORRUPTED_CUT_SHORT) {
        corrupted.truncate(rng.next_u32() as usize % (corrupted.len() + 1));
    }
    corrupted
}

fn chance(rng: &mut ChaCha20Rng, probability: f64) -> bool {
    f64::from(rng.next_u32()) < probability * f64::from(u32::MAX)
}

const BURST_GOES_ON: f64 = 0.8;
const CORRUPTED_CUT_SHORT: f64 = 0.3;
/// Maximum datagrams held back for reordering; when more are held, all follow the next delivered
/// one.
const HELD_MAX: usize = 3;
/// Maximum copies kept for later duplication; when more are kept, the oldest is delivered.
const KEPT_MAX: usize = 30;
