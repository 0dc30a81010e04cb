//! Traffic whose datagrams are tracked from departure to arrival.

use std::collections::BTreeMap;

use rand_chacha::ChaCha20Rng;
use tautline_scenario::endpoint::{Application, Moment};
use tautline_scenario::traffic::Traffic;
use tautline_transport::rate::Cause;
use tautline_transport::wire::Datagram;
use tautline_transport::{Event, Route, Session};
use tautline_units::{ByteCount, Instant};

use super::departure::{Departure, Sealed};

/// Traffic, with the departures and arrivals of all sealed datagrams if they are tracked; all
/// instants are in world time.
#[derive(Debug, Default)]
pub(in crate::sweeps) struct Followed {
    pub(in crate::sweeps) traffic: Traffic,
    follows: bool,
    from: Instant,
    /// Number of samples in which each cause limited the first link's rate, one per due unit after
    /// the warm-up.
    pub(in crate::sweeps) causes: BTreeMap<Cause, u64>,
    /// Number of media packets sent so far, per link.
    media_sent: Vec<u64>,
    pub(in crate::sweeps) departures: Vec<Departure>,
    pub(in crate::sweeps) arrivals: Vec<(Sealed, Instant)>,
}

impl Followed {
    /// Creates traffic that tracks datagrams if `follows` is set; the warm-up ends at `from`.
    pub(in crate::sweeps) fn new(traffic: Traffic, follows: bool, from: Instant) -> Self {
        Self { traffic, follows, from, ..Self::default() }
    }
}

impl Application for Followed {
    fn next_at(&self) -> Option<Instant> {
        self.traffic.next_at()
    }

    fn produce(&mut self, session: &mut Session, _rng: &mut ChaCha20Rng, at: Moment) {
        self.traffic.produce(session, at);
        let measured = at.world() >= self.from;
        let cause = session.links().next().map(|link| link.cause).filter(|_| measured);
        if let Some(cause) = cause {
            *self.causes.entry(cause).or_default() += 1;
        }
    }

    fn handle_event(&mut self, session: &Session, event: Event, at: Moment) {
        self.traffic.handle_event(session, event, at);
    }

    fn begin(&mut self, start: Instant) {
        self.traffic.begin(start);
    }

    fn watch_arrival(&mut self, _route: Route, datagram: &[u8], at: Moment) {
        if self.follows {
            self.arrivals.extend(sealed(datagram).map(|sealed| (sealed, at.world())));
        }
    }

    fn watch_departure(&mut self, session: &Session, route: Route, datagram: &[u8], at: Moment) {
        let Some(sealed) = sealed(datagram).filter(|_| self.follows) else { return };
        let mut media = false;
        self.media_sent.resize(self.media_sent.len().max(session.links().count()), 0);
        for (before, link) in self.media_sent.iter_mut().zip(session.links()) {
            // A restarted session restarts its counters.
            media |= *before != link.media.sent && link.route.socket == route.socket;
            *before = link.media.sent;
        }
        let (at, bytes) = (at.world(), ByteCount::of(datagram));
        self.departures.push(Departure { at, link: route.socket, sealed, bytes, media });
    }
}

fn sealed(datagram: &[u8]) -> Option<Sealed> {
    match Datagram::parse(datagram) {
        Ok(Datagram::Sealed { link, number_low, .. }) => Some((link, number_low)),
        Ok(
            Datagram::Init { .. }
            | Datagram::Response { .. }
            | Datagram::Refusal { .. }
            | Datagram::HolePunch { .. },
        )
        | Err(_) => None,
    }
}
