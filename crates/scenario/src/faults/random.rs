use std::collections::VecDeque;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_transport::Route;

use super::from_nobody;

/// The probability of each fault of a datagram.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// It is lost.
    pub loss: f64,
    /// A burst of losses begins with it, five datagrams long in the mean.
    pub burst: f64,
    /// Some bits of it are flipped; of three such datagrams one is cut short as well.
    pub corruption: f64,
    /// It comes again: at once, and later.
    pub duplication: f64,
    /// It comes after the next few.
    pub reordering: f64,
    /// It comes from an address that is nobody's.
    pub readdressing: f64,
}

/// Faults by chance.
#[derive(Debug, Clone, Default)]
pub struct Random {
    rates: Rates,
    bursting: bool,
    held: VecDeque<(Route, Vec<u8>)>,
    kept: VecDeque<(Route, Vec<u8>)>,
}

impl Random {
    /// Faults as often as `rates` say.
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
            true => from_nobody(route),
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
/// So many reordered datagrams are held until the next one comes.
const HELD_MAX: usize = 3;
/// So many datagrams are kept to come again.
const KEPT_MAX: usize = 30;
