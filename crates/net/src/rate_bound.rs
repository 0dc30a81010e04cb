use std::time::Duration;

use tautline_units::Instant;

/// A rate limit for events that a peer may trigger arbitrarily often.
///
/// ```
/// use std::time::Duration;
/// use tautline_net::RateBound;
/// use tautline_units::Instant;
///
/// let mut bound = RateBound::new(Duration::from_millis(10), 2);
/// let at = Instant::from_millis;
/// assert_eq!([0, 0, 0].map(|_| bound.take(at(500))), [true, true, false]);
/// assert!(bound.take(at(510)) && !bound.take(at(510)));
/// ```
#[derive(Clone, Debug)]
pub struct RateBound {
    interval: Duration,
    burst: u32,
    free_at: Instant,
}

impl RateBound {
    /// Creates a limit of one event per `interval` on average. After a pause, `burst` events may
    /// follow without an interval; 0 counts as 1.
    pub fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, burst: burst.max(1), free_at: Instant::ZERO }
    }

    /// Returns whether one more event is accepted at `now`, and counts it if so.
    pub fn take(&mut self, now: Instant) -> bool {
        let ahead = self.interval * (self.burst - 1);
        let free_at = self.free_at.max(now);
        let is_taken = free_at <= now + ahead;
        if is_taken {
            self.free_at = free_at + self.interval;
        }
        is_taken
    }
}
