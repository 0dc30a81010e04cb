//! A relay's own probes: how far away the ends are that have proven to be there.

use std::collections::VecDeque;

use tautline_net::latency::{Comparer, OneWay};
use tautline_transport::PublicKey;
use tautline_transport::relay::Side;
use tautline_units::{Duration, Instant};

/// A probe of this relay's that was answered.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RoundTrip {
    /// Which end of its lease answered.
    pub side: Side,
    /// That end's key.
    pub key: PublicKey,
    /// Which of its sockets, as it says; from 12 on they are connections over TLS.
    pub socket: u8,
    /// When the probe was sent.
    pub sent_at: Instant,
    /// When it came, by the end's clock.
    pub seen_at: Instant,
    /// When the answer came.
    pub back_at: Instant,
    /// What of it was which way.
    pub one_way: Option<OneWay>,
}

/// The probes of one leg.
#[derive(Debug, Default)]
pub(super) struct Probing {
    /// Whether its end answers such.
    pub(super) is_answered: bool,
    due_at: Instant,
    /// Those without an answer yet, by their times; oldest first.
    unanswered: VecDeque<Instant>,
    comparer: Comparer,
}

/// What was measured and not asked for yet, oldest first.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    measured: VecDeque<RoundTrip>,
}

impl Probing {
    /// Returns whether a probe is due: once a second, if the end answers such.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.is_answered && self.due_at <= now
    }

    /// Takes note that a probe is sent, or cannot be.
    pub(super) fn send(&mut self, now: Instant) {
        self.due_at = now + INTERVAL;
        if self.unanswered.len() == UNANSWERED_MAX {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back(now);
    }

    /// Takes the answer to the probe of `sent_at`; false if there is none that has no answer yet.
    pub(super) fn answer(&mut self, sent_at: Instant) -> bool {
        let place = self.unanswered.iter().position(|at| *at == sent_at);
        place.and_then(|place| self.unanswered.remove(place)).is_some()
    }

    /// Returns what of a round trip was which way.
    pub(super) fn compare(
        &mut self,
        sent_at: Instant,
        seen_at: Instant,
        back_at: Instant,
    ) -> Option<OneWay> {
        self.comparer.compare(sent_at, seen_at, back_at)
    }
}

impl RoundTrips {
    /// Adds one; false if the oldest had to give way.
    pub(super) fn push(&mut self, trip: RoundTrip) -> bool {
        let is_full = self.measured.len() == MEASURED_MAX;
        if is_full {
            self.measured.pop_front();
        }
        self.measured.push_back(trip);
        !is_full
    }

    /// Returns the oldest, once.
    pub(super) fn pop(&mut self) -> Option<RoundTrip> {
        self.measured.pop_front()
    }
}

/// As often as a switchboard pings.
const INTERVAL: Duration = Duration::from_secs(1);
/// More than twice a mobile link's worst delay, 5.7 s ([UGV]).
const UNANSWERED_MAX: usize = 16;
/// Answers of one turn of the server.
const MEASURED_MAX: usize = 1_024;
