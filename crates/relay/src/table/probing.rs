//! A relay's own probes, which measure the delay to proven ends.

use std::collections::VecDeque;

use tautline_net::latency::{Comparer, OneWay};
use tautline_transport::PublicKey;
use tautline_transport::relay::Side;
use tautline_units::{Duration, Instant};

/// A probe that this relay sent to an end, and its answer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RoundTrip {
    /// Side of the end that answered.
    pub side: Side,
    /// Public key of the end that answered.
    pub key: PublicKey,
    /// Number of the end's socket, as the end reports it; numbers from 12 on are connections over
    /// TLS.
    pub socket: u8,
    /// Time at which the probe was sent.
    pub sent_at: Instant,
    /// Time at which the probe arrived, by the end's clock.
    pub seen_at: Instant,
    /// Time at which the answer arrived.
    pub back_at: Instant,
    /// Estimated one-way delays; `None` before the first answer whose times do not contradict each
    /// other.
    pub one_way: Option<OneWay>,
}

/// State of the relay's probes of one leg.
#[derive(Debug, Default)]
pub(super) struct Probing {
    /// `true` if the end answers probes.
    pub(super) is_answered: bool,
    due_at: Instant,
    /// Send times of unanswered probes, the oldest first.
    unanswered: VecDeque<Instant>,
    comparer: Comparer,
}

/// Measured round trips not yet read, the oldest first.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    measured: VecDeque<RoundTrip>,
}

impl Probing {
    /// Returns whether a probe is due: once a second, if the end answers probes.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.is_answered && self.due_at <= now
    }

    /// Records that a probe is sent, or could not be, and makes the next one due a second later.
    /// Beyond [`UNANSWERED_MAX`] the oldest unanswered probe is forgotten.
    pub(super) fn send(&mut self, now: Instant) {
        self.due_at = now + INTERVAL;
        if self.unanswered.len() == UNANSWERED_MAX {
            self.unanswered.pop_front();
        }
        self.unanswered.push_back(now);
    }

    /// Removes the probe of `sent_at` from the unanswered ones; returns whether it was among them.
    pub(super) fn answer(&mut self, sent_at: Instant) -> bool {
        let place = self.unanswered.iter().position(|at| *at == sent_at);
        place.and_then(|place| self.unanswered.remove(place)).is_some()
    }

    /// Estimates the one-way delays of a round trip by comparing the clocks; `None` before the
    /// first answer whose times do not contradict each other.
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
    /// Adds a round trip; returns `false` if the oldest was dropped for it.
    pub(super) fn push(&mut self, trip: RoundTrip) -> bool {
        let is_full = self.measured.len() == MEASURED_MAX;
        if is_full {
            self.measured.pop_front();
        }
        self.measured.push_back(trip);
        !is_full
    }

    /// Removes and returns the oldest round trip; `None` if there is none.
    pub(super) fn pop(&mut self) -> Option<RoundTrip> {
        self.measured.pop_front()
    }
}

/// Interval of probes, the same as of a switchboard's pings.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum unanswered probes that are remembered: 16 s at one a second, more than twice a mobile
/// link's worst delay, 5.7 s ([UGV]).
const UNANSWERED_MAX: usize = 16;
/// Maximum round trips that wait to be read, those of one turn of the server; the oldest is dropped
/// for a newer one.
const MEASURED_MAX: usize = 1_024;
