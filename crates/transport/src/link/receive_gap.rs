use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

/// The recent receive gaps: times in which nothing arrived over any link.
///
/// Links fail one by one while others still receive. If nothing arrives over any of several links,
/// either one end paused for a moment or all links stall; no link is then worse than another. So
/// each gap counts against a link for at most [`RECEIVE_GAP_MIN`]. Counting it in full moved media
/// off the links with the most regular reports, to the link that takes longest to become overdue.
///
/// Only the last [`PAST_MAX`] gaps are kept.
#[derive(Debug)]
pub(crate) struct ReceiveGap {
    heard_at: Instant,
    /// End of each gap, and the part of it that does not count against a link.
    past: VecDeque<(Instant, Duration)>,
}

impl ReceiveGap {
    pub(crate) fn new() -> Self {
        Self { heard_at: Instant::ZERO, past: VecDeque::with_capacity(PAST_MAX) }
    }

    /// Records that a datagram was received over some link; the time since the last one is kept as
    /// a gap if it is longer than [`RECEIVE_GAP_MIN`].
    pub(crate) fn hear(&mut self, now: Instant) {
        let beyond = now.since(self.heard_at).saturating_sub(RECEIVE_GAP_MIN);
        self.heard_at = self.heard_at.max(now);
        if beyond > Duration::ZERO {
            if self.past.len() == PAST_MAX {
                self.past.pop_front();
            }
            self.past.push_back((now, beyond));
        }
    }

    /// Returns how much of the time from `from` until `now` does not count against a link from
    /// which nothing has arrived since `from`.
    pub(crate) fn beyond(&self, from: Instant, now: Instant) -> Duration {
        let present = now.since(self.heard_at.max(from)).saturating_sub(RECEIVE_GAP_MIN);
        let past = self.past.iter().filter(|(ended_at, _)| *ended_at > from);
        past.fold(present, |sum, (ended_at, beyond)| sum + (*beyond).min(ended_at.since(from)))
    }
}

/// Maximum number of receive gaps kept. By default a link falls silent after a quarter of a second,
/// which has room for ten gaps at most, as each is longer than [`RECEIVE_GAP_MIN`]; the rest is a
/// margin.
const PAST_MAX: usize = 16;
/// Maximum time of a receive gap that counts against a link. It is longer than the interval between
/// datagrams while there is media, when reports arrive every 10 ms.
const RECEIVE_GAP_MIN: Duration = Duration::from_millis(25);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_time_in_which_nothing_comes_a_part_counts() {
        let (at, ms) = (Instant::from_millis, Duration::from_millis);
        let mut receive_gap = ReceiveGap::new();
        for tenth in 100..=200 {
            receive_gap.hear(at(tenth * 10));
        }
        assert_eq!(receive_gap.beyond(at(1_500), at(2_000)), Duration::ZERO);
        assert_eq!(receive_gap.beyond(at(1_500), at(2_025)), Duration::ZERO);
        assert_eq!(receive_gap.beyond(at(1_500), at(2_060)), ms(35));
        // An interval that begins within a gap has only its own part.
        assert_eq!(receive_gap.beyond(at(2_030), at(2_060)), ms(5));
        receive_gap.hear(at(2_060));
        assert_eq!(receive_gap.beyond(at(1_500), at(2_070)), ms(35));
        assert_eq!(receive_gap.beyond(at(2_040), at(2_070)), ms(20));
        assert_eq!(receive_gap.beyond(at(2_060), at(2_070)), Duration::ZERO);
        for turn in 1..1_000 {
            receive_gap.hear(at(2_060 + turn * 50));
        }
        assert_eq!(receive_gap.past.len(), PAST_MAX);
    }
}
