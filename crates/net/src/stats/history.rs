use std::collections::VecDeque;
use std::time::Duration;

use tautline_units::Instant;

/// Totals of the last ten seconds; the difference of two yields the counts in between.
///
/// Every recent rate and share is derived from it.
#[derive(Clone, Debug)]
pub struct History<T> {
    /// Totals with the instant at which they were taken, the oldest first.
    totals: VecDeque<(Instant, T)>,
}

impl<T> History<T> {
    /// Adds the totals of `now`, and drops those older than ten seconds except the newest of them.
    /// At most 128 are kept; the oldest is dropped for a newer one.
    pub fn push(&mut self, totals: T, now: Instant) {
        // Keep one entry from before the span as the reference.
        while self.totals.len() >= COUNT_MAX
            || self.totals.get(1).is_some_and(|(at, _)| now.since(*at) >= SPAN)
        {
            self.totals.pop_front();
        }
        self.totals.push_back((now, totals));
    }

    /// Returns the newest totals that are at least `span` old, or else the oldest available, with
    /// their age; `None` without an entry before `now`.
    pub fn before(&self, span: Duration, now: Instant) -> Option<(&T, Duration)> {
        let old = self.totals.iter().rev().find(|(at, _)| now.since(*at) >= span);
        let (at, totals) = old.or(self.totals.front())?;
        let elapsed = now.since(*at);
        (!elapsed.is_zero()).then_some((totals, elapsed))
    }
}

impl<T> Default for History<T> {
    fn default() -> Self {
        Self { totals: VecDeque::new() }
    }
}

/// Returns the share of `part` in the sum of `part` and `rest`, the differences between two totals;
/// `None` if both are 0.
pub(super) fn share(part: u64, rest: u64) -> Option<f32> {
    let all = part.saturating_add(rest);
    (all > 0).then(|| (part as f64 / all as f64) as f32)
}

const SPAN: Duration = Duration::from_secs(10);
/// Maximum number of totals kept: those of ten seconds at one each tenth of a second, and a few
/// more; the oldest is dropped.
const COUNT_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn totals_are_found_by_their_age() {
        let mut history = History::default();
        assert!(history.before(Duration::from_secs(1), at(0)).is_none());
        for tenth in 0..300_u64 {
            history.push(tenth, at(tenth * 100));
        }
        let age = |span, now| history.before(Duration::from_millis(span), at(now)).unwrap();
        assert_eq!(age(1_000, 29_900), (&289, Duration::from_secs(1)));
        assert_eq!(age(1_050, 29_900), (&288, Duration::from_millis(1_100)));
        assert_eq!(*age(10_000, 29_900).0, 199);
        assert_eq!(*age(60_000, 29_900).0, 199, "one from before the span is kept, no more");
    }

    #[test]
    fn totals_that_come_too_often_are_bounded() {
        let mut history = History::default();
        (0..10_000_u64).for_each(|count| history.push(count, at(count)));
        assert_eq!(history.totals.len(), COUNT_MAX);
    }
}
