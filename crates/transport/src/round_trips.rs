use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

use crate::clock::ClockEstimate;
use crate::wire::LinkNumber;

/// A small ping that was answered, as both ends' clocks tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// 0, 1, 2 .. in a session.
    pub number: u64,
    /// The link that the ping went and its pong came by.
    pub link: LinkNumber,
    /// When the ping left, on our clock.
    pub sent_at: Instant,
    /// When it came, on the peer's clock.
    pub seen_at: Instant,
    /// When the pong left, on the peer's clock.
    pub answered_at: Instant,
    /// When the pong came, on our clock.
    pub back_at: Instant,
    /// The peer's clock against ours, by this pong and those before it.
    pub clock: Option<ClockEstimate>,
}

impl RoundTrip {
    /// Returns how long the peer had the ping before it answered.
    pub fn held(&self) -> Duration {
        self.answered_at.since(self.seen_at)
    }
}

/// The newest round trips of a session, oldest first.
#[derive(Debug)]
pub(crate) struct RoundTrips {
    newest: VecDeque<RoundTrip>,
    next_number: u64,
}

impl RoundTrips {
    pub(crate) fn new() -> Self {
        Self { newest: VecDeque::with_capacity(NEWEST_MAX), next_number: 0 }
    }

    /// Takes a pong: ping sent, ping received, pong sent, pong received.
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

/// Sixteen links' pings of 160 ms at one in 20 ms: more than an application that looks ten times a second misses.
const NEWEST_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_give_way_and_their_numbers_tell_so() {
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
