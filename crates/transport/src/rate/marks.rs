use tautline_units::{Duration, Instant};

/// Counts of the datagrams sent as ECT(1) that one report is the first to cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// Number of datagrams sent as ECT(1) that arrived, marked or not.
    pub datagrams: u64,
    /// Number of datagrams sent as ECT(1) that arrived with the mark CE.
    pub ce: u64,
}

/// The response to marks of an L4S queue, each of which is a weak signal ([RFC9331] 4.3). The rate
/// falls by half of the recently marked share, once per round trip ([RFC8257] 3.3).
///
/// The share starts at that of the first round trip with marks, as in SCReAM, because earlier
/// traffic could not have been marked. Marks that continue regardless of the rate are ignored for a
/// while.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// Smoothed share of marked datagrams; `None` before the first mark.
    share: Option<f64>,
    /// Start of the current round trip; `None` before the first report with counts.
    round_from: Option<Instant>,
    /// Number of datagrams sent as ECT(1) whose arrival was reported in the current round trip.
    datagrams: u64,
    /// Number of those `datagrams` that arrived marked.
    ce: u64,
    /// Time of the last report with a mark; `None` before the first.
    marked_at: Option<Instant>,
    /// Time at which marks last lowered the rate; `None` before the first time.
    lowered_at: Option<Instant>,
    /// Product of the factors on the rate since the last round trip with at most half of the
    /// datagrams marked; `None` if there were no reductions since.
    left: Option<f64>,
    /// Time until which marks are ignored; `None` if they are not.
    deaf_until: Option<Instant>,
    /// Minimum RTT as of the last report, at least [`ROUND_LEAST`].
    round: Duration,
}

impl Marks {
    /// Handles the marks of a report, `None` without marking; returns the factor by which the rate
    /// must be lowered, or `None` if it need not be.
    pub(super) fn observe(
        &mut self,
        marked: Option<Marked>,
        rtt: Duration,
        now: Instant,
    ) -> Option<f64> {
        self.round = rtt.max(ROUND_LEAST);
        self.deaf_until = self.deaf_until.filter(|until| now < *until);
        let Marked { datagrams, ce } = marked.filter(|_| self.deaf_until.is_none())?;
        let from = *self.round_from.get_or_insert(now);
        self.datagrams += datagrams;
        self.ce += ce;
        let is_marked = ce > 0;
        if is_marked {
            self.marked_at = Some(now);
            let share = self.ce as f64 / self.datagrams as f64;
            self.share.get_or_insert(share);
        }
        if now.since(from) >= self.round && self.datagrams > 0 {
            let share = self.ce as f64 / self.datagrams as f64;
            self.share = self.share.map(|smoothed| smoothed + (share - smoothed) * GAIN);
            self.left = self.left.filter(|_| share > MOST);
            (self.round_from, self.datagrams, self.ce) = (Some(now), 0, 0);
        }
        let may_lower = self.lowered_at.is_none_or(|at| now.since(at) >= self.round);
        let share = self.share.filter(|_| is_marked && may_lower)?;
        self.lowered_at = Some(now);
        let kept = 1.0 - share / 2.0;
        let left = self.left.unwrap_or(1.0) * kept;
        self.left = Some(left);
        if left < IN_VAIN {
            *self = Self { deaf_until: Some(now + DEAF), round: self.round, ..Self::default() };
        }
        Some(kept)
    }

    /// Returns whether a mark arrived within the last round trip, which pauses growth.
    pub(super) fn holds(&self, now: Instant) -> bool {
        self.marked_at.is_some_and(|at| now.since(at) < self.round)
    }

    /// Resets the state because the link was silent.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Share of marked datagrams in a round trip up to which the accumulated factor on the rate is
/// reset; see [`IN_VAIN`].
const MOST: f64 = 0.5;
/// Accumulated factor on the rate below which marks count as independent of our rate, as in a queue
/// that competing traffic fills; they are then ignored for [`DEAF`].
const IN_VAIN: f64 = 0.25;
const DEAF: Duration = Duration::from_secs(10);
/// Weight of one round trip's share of marked datagrams in the smoothed share, as in [RFC8257] 3.3
/// and Prague.
const GAIN: f64 = 1.0 / 16.0;
/// Minimum round trip, as in Prague: links with different RTTs then get equal rates.
const ROUND_LEAST: Duration = Duration::from_millis(25);

#[cfg(test)]
mod tests {
    use super::*;

    /// Marks `ce` of every ten reported datagrams, every 10 ms for a second. Returns the remaining
    /// factor on the rate, and the number of reductions.
    fn left(marks: &mut Marks, ce: u64, rtt: u64, from: u64) -> (f64, u32) {
        let (mut left, mut times) = (1.0, 0);
        for step in 0..100 {
            let now = Instant::from_millis(from + step * 10);
            let marked = Some(Marked { datagrams: 10, ce });
            if let Some(kept) = marks.observe(marked, Duration::from_millis(rtt), now) {
                (left, times) = (left * kept, times + 1);
            }
        }
        (left, times)
    }

    #[test]
    fn the_rate_falls_by_half_of_the_share_once_a_round_trip() {
        let mut marks = Marks::default();
        let (kept, times) = left(&mut marks, 2, 50, 0);
        assert_eq!(times, 20);
        assert!((kept - 0.9_f64.powi(20)).abs() < 1e-9, "{kept}");
        assert!(marks.holds(Instant::from_millis(1_000)));
        assert!(!marks.holds(Instant::from_millis(1_050)));
    }

    #[test]
    fn short_round_trips_count_as_longer_ones() {
        assert_eq!(left(&mut Marks::default(), 2, 1, 0).1, 34);
    }

    #[test]
    fn the_share_follows_what_is_marked() {
        let mut marks = Marks::default();
        left(&mut marks, 4, 100, 0);
        assert_eq!(marks.share, Some(0.4));
        left(&mut marks, 0, 100, 1_000);
        let faded = marks.share.expect("marks have been");
        assert!((0.18..0.24).contains(&faded), "{faded}");
    }

    #[test]
    fn nothing_is_lowered_or_held_where_nothing_is_marked() {
        let mut marks = Marks::default();
        assert_eq!(left(&mut marks, 0, 50, 0), (1.0, 0));
        assert_eq!(marks.observe(None, Duration::ZERO, Instant::from_millis(2_000)), None);
        assert!(!marks.holds(Instant::from_millis(2_000)));
    }

    #[test]
    fn persistent_marks_are_ignored_for_ten_seconds() {
        let mut marks = Marks::default();
        let (kept, times) = left(&mut marks, 10, 50, 0);
        assert_eq!((kept, times), (0.125, 3));
        assert!(!marks.holds(Instant::from_millis(1_000)));
        assert_eq!(left(&mut marks, 10, 50, 9_000), (1.0, 0));
        assert_eq!(left(&mut marks, 10, 50, 10_100), (0.125, 3));
    }
}
