use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

use crate::clock::ClockEstimate;
use crate::wire::LinkNumber;

/// A small ping that was answered, with the times by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// Number of the round trip within the session: 0, 1, 2 ..
    pub number: u64,
    /// Link of the ping and its pong.
    pub link: LinkNumber,
    /// Send time of the ping, on our clock.
    pub sent_at: Instant,
    /// Arrival time of the ping, on the peer's clock.
    pub seen_at: Instant,
    /// Send time of the pong, on the peer's clock.
    pub answered_at: Instant,
    /// Arrival time of the pong, on our clock.
    pub back_at: Instant,
    /// Estimate of the peer's clock from this pong and earlier ones of all links; `None` without a
    /// usable one.
    pub clock: Option<ClockEstimate>,
}

impl RoundTrip {
    /// Returns how long the peer held the ping before it answered.
    pub fn held(&self) -> Duration {
        self.answered_at.since(self.seen_at)
    }
}

/// The round-trip log of a session: the newest round trips, oldest first.
#[derive(Debug)]
pub(crate) struct RoundTrips {
    newest: VecDeque<RoundTrip>,
    next_number: u64,
}

impl RoundTrips {
    pub(crate) fn new() -> Self {
        Self { newest: VecDeque::with_capacity(NEWEST_MAX), next_number: 0 }
    }

    /// Records an answered ping with its four times: ping sent, ping received, pong sent, pong
    /// received. The middle two are the peer's. Drops the oldest round trip if [`NEWEST_MAX`] are
    /// kept.
    pub(crate) fn note(
        &mut self,
        link: LinkNumber,
        [sent_at, seen_at, answered_at, back_at]: [Instant; 4],
        clock: Option<ClockEstimate>,
    ) {
        if self.newest.len() == NEWEST_MAX {
            self.newest.pop_front();
        }
        let number = self.next_number;
        self.next_number += 1;
        self.newest.push_back(RoundTrip {
            number,
            link,
            sent_at,
            seen_at,
            answered_at,
            back_at,
            clock,
        });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RoundTrip> {
        self.newest.iter()
    }
}

/// Maximum number of round trips kept: 160 ms of pings of sixteen links at 20 ms; an application
/// that polls ten times a second misses none.
const NEWEST_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_round_trips_are_dropped_and_numbers_show_it() {
        let mut trips = RoundTrips::new();
        let link = LinkNumber::new(3).unwrap();
        for number in 0..200 {
            trips.note(link, [Instant::from_millis(number); 4], None);
        }
        let numbers: Vec<u64> = trips.iter().map(|trip| trip.number).collect();
        assert_eq!(numbers, (72..200).collect::<Vec<_>>());
        assert!(trips.iter().all(|trip| trip.sent_at == Instant::from_millis(trip.number)));
    }

    #[test]
    fn a_peer_that_answers_before_it_was_asked_held_nothing() {
        let mut trips = RoundTrips::new();
        let [early, late] = [Instant::ZERO, Instant::from_nanos(u64::MAX)];
        trips.note(LinkNumber::new(0).unwrap(), [late, late, early, early], None);
        assert_eq!(trips.iter().next().unwrap().held(), Duration::ZERO);
    }
}
