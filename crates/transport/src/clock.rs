//! How the peer's clock stands to ours.

use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

/// The peer's clock against ours, with a bound on the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockEstimate {
    offset_nanos: i64,
    error: Duration,
}

impl ClockEstimate {
    /// Returns the nanoseconds to add to our clock to get the peer's.
    pub const fn offset_nanos(&self) -> i64 {
        self.offset_nanos
    }

    /// Returns a bound on the error: the true offset lies no further away than this, if no one-way
    /// delay is negative and the clocks drift apart by less than 200 ppm. At most half the smallest
    /// RTT, and a little drift.
    pub const fn error(&self) -> Duration {
        self.error
    }

    /// Returns our clock at the peer's `instant`; held at the clock's ends.
    pub fn to_local(&self, instant: Instant) -> Instant {
        instant.offset_by_nanos(self.offset_nanos.saturating_neg())
    }

    /// Returns the peer's clock at our `instant`; held at the clock's ends.
    pub fn to_peer(&self, instant: Instant) -> Instant {
        instant.offset_by_nanos(self.offset_nanos)
    }
}

/// The tightest bounds on the offset that any link has shown of late.
///
/// A pong with times t0 (ours), t1, t2 (peer's), t3 (ours) says t2 - t3 <= offset <= t1 - t0, as
/// no delay is negative. The smallest t1 - t0 and the largest t2 - t3 over all links within
/// [`SPAN`] bound the offset at least as tightly as the sample of the smallest RTT does
/// ([RFC5905] section 8, clock filter): half its RTT. The estimate is the middle. Bounds widen
/// with age by the drift that two cheap clocks may have.
#[derive(Debug, Clone)]
pub(crate) struct Estimator {
    slots: VecDeque<Slot>,
    /// The tightest bounds of all slots: all widen alike, so the tightest one stays so.
    tightest: Option<(Bound, Bound)>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    began: Instant,
    lower: Bound,
    upper: Bound,
}

#[derive(Debug, Clone, Copy)]
struct Bound {
    nanos: i64,
    at: Instant,
}

/// A comparison that contradicts all before it: one of the clocks was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step;

impl Estimator {
    pub(crate) fn new() -> Self {
        Self { slots: VecDeque::with_capacity(SLOTS + 1), tightest: None }
    }

    /// Takes the bounds that one pong gives, in nanoseconds.
    ///
    /// # Errors
    /// [`Step`] if they contradict all before; the estimate then begins anew from them.
    pub(crate) fn observe(&mut self, lower: i64, upper: i64, now: Instant) -> Result<(), Step> {
        if lower > upper {
            return Err(Step);
        }
        let stepped = match self.bounds(now) {
            Some((low, high)) => lower > high || upper < low,
            None => false,
        };
        if stepped {
            self.slots.clear();
        }
        let (low, high) = (Bound { nanos: lower, at: now }, Bound { nanos: upper, at: now });
        match self.slots.back_mut() {
            Some(slot) if now.since(slot.began) < SPAN / SLOTS as u32 => {
                if lower >= slot.lower.least(now) {
                    slot.lower = low;
                }
                if upper <= slot.upper.most(now) {
                    slot.upper = high;
                }
            }
            Some(_) | None => {
                self.slots.push_back(Slot { began: now, lower: low, upper: high });
                if self.slots.len() > SLOTS {
                    self.slots.pop_front();
                }
            }
        }
        let lowers = self.slots.iter().map(|slot| slot.lower);
        let uppers = self.slots.iter().map(|slot| slot.upper);
        let lower = lowers.max_by_key(|bound| bound.least(now));
        self.tightest = lower.zip(uppers.min_by_key(|bound| bound.most(now)));
        if stepped { Err(Step) } else { Ok(()) }
    }

    /// Returns the estimate at `now`; `None` before the first pong.
    pub(crate) fn estimate(&self, now: Instant) -> Option<ClockEstimate> {
        let (low, high) = self.bounds(now)?;
        let half = (high.saturating_sub(low)) / 2;
        Some(ClockEstimate {
            offset_nanos: low + half,
            error: Duration::from_nanos(half.unsigned_abs() + 1),
        })
    }

    fn bounds(&self, now: Instant) -> Option<(i64, i64)> {
        let (lower, upper) = self.tightest?;
        let (low, high) = (lower.least(now), upper.most(now));
        // Drift beyond the assumed bound makes the ends cross by a little: take what lies between.
        Some((low.min(high), high.max(low)))
    }
}

impl Bound {
    /// Returns the bound at `now`, as a lower one.
    fn least(self, now: Instant) -> i64 {
        self.nanos.saturating_sub(drift(now.since(self.at)))
    }

    /// Returns the bound at `now`, as an upper one.
    fn most(self, now: Instant) -> i64 {
        self.nanos.saturating_add(drift(now.since(self.at)))
    }
}

fn drift(age: Duration) -> i64 {
    // 584 years fit; a bound is seconds old.
    let nanos = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    (nanos / (1_000_000 / DRIFT_PPM)) as i64
}

/// Two crystals of 100 ppm each, running apart.
const DRIFT_PPM: u64 = 200;
/// How long a bound is kept: 200 ppm make 1 ms in it, less than a mobile link's asymmetry.
const SPAN: Duration = Duration::from_secs(5);
const SLOTS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_fastest_way_of_any_link_in_each_direction_bounds_the_offset() {
        let mut clock = Estimator::new();
        assert_eq!(clock.estimate(Instant::ZERO), None);
        let truth = 3_600_000 * MS;
        // Link one: 10 ms out, 30 ms back; link two: 40 ms out, 12 ms back.
        let now = Instant::from_millis(50);
        clock.observe(truth - 30 * MS, truth + 10 * MS, now).unwrap();
        clock.observe(truth - 12 * MS, truth + 40 * MS, now).unwrap();
        let estimate = clock.estimate(now).unwrap();
        assert_eq!(estimate.offset_nanos(), truth - MS);
        assert_eq!(estimate.error(), Duration::from_nanos(11_000_001));
        let later = Instant::from_millis(2_050);
        assert_eq!(clock.estimate(later).unwrap().error(), Duration::from_nanos(11_400_001));
        assert_eq!(estimate.to_local(estimate.to_peer(later)), later);
    }

    #[test]
    fn a_drifting_clock_is_followed_within_the_stated_error() {
        let mut clock = Estimator::new();
        for step in 0..1_000_i64 {
            let now = Instant::from_millis(20 * step as u64);
            let truth = -7_200_000 * MS + 20 * MS * step * 100 / 1_000_000;
            let out = 15 * MS + (step * 7919 % 13) * MS;
            let back = 18 * MS + (step * 104_729 % 17) * MS;
            clock.observe(truth - back, truth + out, now).unwrap();
            let estimate = clock.estimate(now).unwrap();
            let wrong = (estimate.offset_nanos() - truth).unsigned_abs();
            assert!(Duration::from_nanos(wrong) <= estimate.error(), "step {step}");
            assert!(estimate.error() <= Duration::from_millis(26), "step {step}");
        }
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_and_followed() {
        let mut clock = Estimator::new();
        let now = Instant::from_millis(1);
        clock.observe(-10 * MS, 10 * MS, now).unwrap();
        assert_eq!(clock.observe(90 * MS, 110 * MS, now), Err(Step));
        assert_eq!(clock.estimate(now).unwrap().offset_nanos(), 100 * MS);
        assert_eq!(clock.observe(5, 4, now), Err(Step));
    }

    #[test]
    fn hostile_times_do_not_overflow() {
        let mut clock = Estimator::new();
        for (low, high) in [(i64::MIN, i64::MAX), (i64::MAX, i64::MAX), (i64::MIN, i64::MIN)] {
            let _ = clock.observe(low, high, Instant::from_nanos(u64::MAX));
            let _ = clock.estimate(Instant::ZERO);
            let _ = clock.estimate(Instant::from_nanos(u64::MAX));
        }
    }
}
