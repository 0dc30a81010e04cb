use rand_chacha::ChaCha20Rng;
use tautline_scenario::endpoint::{Application, Moment};
use tautline_scenario::traffic::Traffic;
use tautline_transport::{Event, Route};
use tautline_units::{ByteCount, Instant};

use super::carrier::Carrier;
use super::round_trips::RoundTrips;
use super::sent::{Sent, digest};

/// Traffic, with the digest of every datagram sent, and the session's round trips.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) traffic: Traffic,
    pub(super) departed: Vec<(u64, Sent)>,
    pub(super) round_trips: RoundTrips,
}

impl Application<Carrier> for Counted {
    fn next_at(&self) -> Option<Instant> {
        self.traffic.next_at()
    }

    fn produce(&mut self, carrier: &mut Carrier, _rng: &mut ChaCha20Rng, at: Moment) {
        self.traffic.produce(carrier, at);
        if let Carrier::Session(session) = carrier {
            self.round_trips.take(session.round_trips());
        }
    }

    fn handle_event(&mut self, _carrier: &Carrier, event: Event, at: Moment) {
        self.traffic.note(event, None, at);
    }

    fn watch_departure(&mut self, _carrier: &Carrier, _route: Route, datagram: &[u8], at: Moment) {
        let sent = Sent { at: at.world(), bytes: ByteCount::of(datagram), arrived: None };
        self.departed.push((digest(datagram), sent));
    }
}
