use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

/// The times in which the peer is heard over no link.
///
/// Links fail one by one, and others are heard meanwhile. Where nothing comes over any of several, one of the two ends
/// did not run for a moment, or all links stand still: that makes none of them worse than another. So of each such time
/// no more than [`HUSH_LEAST`] counts against a link. What counted in full took the media off those links whose news come
/// most regularly, and gave it to the one that is waited for longest.
///
/// Remembers the last [`PAST_MAX`] of them.
#[derive(Debug)]
pub(crate) struct Hush {
    heard_at: Instant,
    /// When each ended, and what of it does not count.
    past: VecDeque<(Instant, Duration)>,
}

impl Hush {
    pub(crate) fn new() -> Self {
        Self { heard_at: Instant::ZERO, past: VecDeque::with_capacity(PAST_MAX) }
    }

    /// Notes that something came over a link.
    pub(crate) fn hear(&mut self, now: Instant) {
        let beyond = now.since(self.heard_at).saturating_sub(HUSH_LEAST);
        self.heard_at = self.heard_at.max(now);
        if beyond > Duration::ZERO {
            if self.past.len() == PAST_MAX {
                self.past.pop_front();
            }
            self.past.push_back((now, beyond));
        }
    }

    /// Returns how much of the time from `from` until `now` does not count.
    pub(crate) fn beyond(&self, from: Instant, now: Instant) -> Duration {
        let present = now.since(self.heard_at.max(from)).saturating_sub(HUSH_LEAST);
        let past = self.past.iter().filter(|(ended_at, _)| *ended_at > from);
        past.fold(present, |sum, (ended_at, beyond)| sum + (*beyond).min(ended_at.since(from)))
    }
}

/// Of a quarter of a second, in which a link falls silent, with room to spare.
const PAST_MAX: usize = 16;
/// Longer than between two datagrams that come while there is media: reports, every 10 ms, and pongs.
const HUSH_LEAST: Duration = Duration::from_millis(25);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_time_in_which_nothing_comes_a_part_counts() {
        let (at, ms) = (Instant::from_millis, Duration::from_millis);
        let mut hush = Hush::new();
        for tenth in 100..=200 {
            hush.hear(at(tenth * 10));
        }
        assert_eq!(hush.beyond(at(1_500), at(2_000)), Duration::ZERO);
        assert_eq!(hush.beyond(at(1_500), at(2_025)), Duration::ZERO);
        assert_eq!(hush.beyond(at(1_500), at(2_060)), ms(35));
        // What begins amid it has its own part.
        assert_eq!(hush.beyond(at(2_030), at(2_060)), ms(5));
        hush.hear(at(2_060));
        assert_eq!(hush.beyond(at(1_500), at(2_070)), ms(35));
        assert_eq!(hush.beyond(at(2_040), at(2_070)), ms(20));
        assert_eq!(hush.beyond(at(2_060), at(2_070)), Duration::ZERO);
        for turn in 1..1_000 {
            hush.hear(at(2_060 + turn * 50));
        }
        assert_eq!(hush.past.len(), PAST_MAX);
    }
}
