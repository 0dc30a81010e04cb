use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

/// The queue in which a link's datagrams wait: how much longer than the least their transit takes.
///
/// Transit times are differences of two clocks; only their differences mean something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// By our clock, of the last [`SPAN`]: nanoseconds.
    transits: VecDeque<(Instant, i64)>,
    /// The least of the last ten seconds, by the half second.
    least: VecDeque<(u64, i64)>,
    /// How much one differs from the one before it, smoothed, nanoseconds.
    jitter: f64,
}

impl Queue {
    /// Takes a datagram's arrival less its departure.
    pub(crate) fn observe(&mut self, transit: i64, now: Instant) {
        if let Some((_, last)) = self.transits.back() {
            let step = transit.saturating_sub(*last).unsigned_abs() as f64;
            self.jitter += (step - self.jitter) / JITTER_SHARE;
        }
        self.transits.push_back((now, transit));
        let slot = now.as_millis() / SLOT_MILLIS;
        match self.least.back_mut() {
            Some((at, least)) if *at == slot => *least = transit.min(*least),
            Some(_) | None => self.least.push_back((slot, transit)),
        }
        while self.least.front().is_some_and(|(at, _)| at + SLOTS <= slot) {
            self.least.pop_front();
        }
    }

    /// Lets go of what is older than [`SPAN`], but for the newest.
    pub(crate) fn advance(&mut self, now: Instant) {
        while self.transits.len() > 1
            && self.transits.front().is_some_and(|(at, _)| now.since(*at) > SPAN)
        {
            self.transits.pop_front();
        }
    }

    /// Forgets what came of late: the link was silent.
    pub(crate) fn clear(&mut self) {
        self.transits.clear();
    }

    /// Returns the queue that has stood for [`SPAN`]: what only some wait is jitter.
    pub(crate) fn standing(&self) -> Duration {
        let of_late = self.transits.iter().map(|(_, transit)| *transit).min();
        let over = of_late.zip(self.least()).map_or(0, |(late, least)| late.saturating_sub(least));
        Duration::from_nanos(u64::try_from(over).unwrap_or(0))
    }

    /// Returns how much one transit differs from the next.
    pub(crate) fn jitter(&self) -> Duration {
        Duration::from_nanos(self.jitter as u64)
    }

    /// Returns when, on our clock, what arrives at `at` on the peer's left if it waited for nothing.
    pub(crate) fn departed_by(&self, at: Instant) -> Option<Instant> {
        self.least().map(|least| at.offset_by_nanos(least.saturating_neg()))
    }

    /// Returns the least transit of the last ten seconds.
    pub(crate) fn least(&self) -> Option<i64> {
        self.least.iter().map(|(_, least)| *least).min()
    }
}

/// A picture's time at 15 a second.
const SPAN: Duration = Duration::from_millis(60);
/// As [RFC3550] 6.4.1 has it.
const JITTER_SHARE: f64 = 16.0;
const SLOT_MILLIS: u64 = 500;
const SLOTS: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_what_all_of_late_waited() {
        let (at, ms) = (Instant::from_millis, Duration::from_millis);
        let mut queue = Queue::default();
        let mut see = |millis: u64, transit: i64| {
            queue.observe(transit * 1_000_000, at(millis));
            queue.advance(at(millis));
            (queue.standing(), queue.departed_by(at(1_000)))
        };
        assert_eq!(see(0, -300), (ms(0), Some(at(1_300))));
        assert_eq!(see(10, -260).0, ms(0));
        assert_eq!(see(80, -270).0, ms(30));
        assert_eq!(see(90, -280).0, ms(20));
        // Where the least was another ten seconds ago, the way is longer now.
        assert_eq!(see(10_200, -240), (ms(0), Some(at(1_240))));
    }
}
