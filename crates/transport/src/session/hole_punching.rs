//! Hole punching by the responder: opens its NAT to the addresses where the initiator may be.

use tautline_units::{Duration, Instant};

use crate::crypto::Doorman;
use crate::link::Route;
use crate::wire;

/// Routes and schedule of the responder's hole punches.
///
/// The interval grows over the first ten seconds, while the initiator may not have been found yet.
/// After that, punches are frequent enough to keep NAT mappings open.
// protocol 10
#[derive(Debug)]
pub(super) struct HolePunching {
    doorman: Doorman,
    routes: Vec<Route>,
    /// Number of the last round, which its hole punches carry.
    number: u64,
    /// Number of rounds since the routes were set; saturates.
    rounds: u32,
    /// Time of the last round of hole punches; [`Instant::ZERO`] before the first.
    punched_at: Instant,
    due_at: Option<Instant>,
}

impl HolePunching {
    /// Creates a schedule without routes; `doorman` is that of the lease and the initiator's key.
    pub(super) fn new(doorman: Doorman) -> Self {
        let (routes, punched_at, due_at) = (Vec::new(), Instant::ZERO, None);
        Self { doorman, routes, number: 0, rounds: 0, punched_at, due_at }
    }

    /// Replaces the routes, of which the first sixteen are used, and makes a round due now; without
    /// routes, none is due any more.
    pub(super) fn set_routes(&mut self, routes: &[Route], now: Instant) {
        self.routes = routes.iter().copied().take(ROUTES_MAX).collect();
        self.rounds = 0;
        self.due_at = (!self.routes.is_empty()).then_some(now);
    }

    /// Makes the next round due at the latest [`SILENT_PAUSE`] after the last one, because no
    /// packets have arrived from the initiator for a while.
    pub(super) fn hurry(&mut self) {
        let soon = self.punched_at + SILENT_PAUSE;
        self.due_at = self.due_at.map(|at| at.min(soon));
    }

    pub(super) fn due_at(&self) -> Option<Instant> {
        self.due_at
    }

    /// Returns a round of hole punches, one for each route, and schedules the next one; none if no
    /// round is due.
    pub(super) fn poll(&mut self, now: Instant) -> Vec<(Route, Vec<u8>)> {
        if self.due_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let pause = FIRST_PAUSE * (1 << self.rounds.min(8));
        self.rounds = self.rounds.saturating_add(1);
        (self.punched_at, self.number) = (now, self.number + 1);
        let pause = match self.rounds < OFTEN_ROUNDS {
            true => pause.min(OFTEN_MOST),
            false => KEEP_PAUSE,
        };
        self.due_at = Some(now + pause);
        let number = self.number;
        let punch = |route: &Route| {
            let mut datagram = Vec::with_capacity(wire::HOLE_PUNCH_BYTES);
            wire::write_hole_punch(&mut datagram, route.socket, number);
            let tag = self.doorman.punch(&datagram);
            datagram.extend_from_slice(&tag);
            (*route, datagram)
        };
        self.routes.iter().map(punch).collect()
    }
}

/// Maximum number of routes: the maximum number of links of a session.
const ROUTES_MAX: usize = 16;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const OFTEN_MOST: Duration = Duration::from_millis(1_000);
/// Number of rounds of hole punches within the first ten seconds, after which they are
/// [`KEEP_PAUSE`] apart.
const OFTEN_ROUNDS: u32 = 14;
/// Maximum interval between rounds of hole punches while the initiator is silent.
const SILENT_PAUSE: Duration = Duration::from_millis(500);
/// Interval of rounds after the first ten seconds: half of the shortest known NAT mapping lifetime.
const KEEP_PAUSE: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::Identity;
    use crate::wire::Datagram;

    #[test]
    fn hole_punches_become_rare_and_never_end() {
        let lease = [7; 16];
        let doorman = Doorman::new(&lease, &Identity::from_seed(&[1; 32]).public());
        let mut hole_punching = HolePunching::new(doorman.clone());
        assert_eq!(hole_punching.due_at(), None);
        let route = Route { socket: 3, remote: "192.0.2.1:7".parse().unwrap() };
        hole_punching.set_routes(&[route], Instant::from_millis(100));
        let mut at = Vec::new();
        while hole_punching.due_at().is_some_and(|due| due < Instant::from_millis(60_000)) {
            let now = hole_punching.due_at().unwrap();
            let round = hole_punching.poll(now);
            assert_eq!(round.len(), 1);
            let Ok(Datagram::HolePunch { end, signed, tag }) = Datagram::parse(&round[0].1) else {
                panic!()
            };
            assert_eq!(end, 3);
            assert!(doorman.hears(signed, tag));
            at.push(now.since(Instant::from_millis(100)).as_millis());
            assert!(hole_punching.poll(now).is_empty());
        }
        assert_eq!(at[..7], [0, 50, 150, 350, 750, 1_550, 2_550]);
        assert!((14..20).contains(&at.len()), "{at:?}");
    }
}
