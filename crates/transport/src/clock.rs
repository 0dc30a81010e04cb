//! Estimate of the peer's clock relative to ours.

use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

/// The offset of the peer's clock from ours at one instant, with a bound on its error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockEstimate {
    offset_nanos: i64,
    error: Duration,
    /// Bound on the offset's error by the tightest bounds since the session began or a clock was
    /// set, widened by drift. It keeps a queue that lasts longer than [`SPAN`] from counting as
    /// path delay.
    error_ever: Duration,
}

impl ClockEstimate {
    /// Returns the nanoseconds to add to our clock to get the peer's.
    pub const fn offset_nanos(&self) -> i64 {
        self.offset_nanos
    }

    /// Returns a bound on the error of the offset. It holds if no one-way delay is negative and the
    /// clocks drift apart by less than 200 ppm. The bound is at most half the smallest RTT plus a
    /// little drift.
    pub const fn error(&self) -> Duration {
        self.error
    }

    /// Returns the estimate by which the deadlines of sent packets are judged, for a lifetime of
    /// `deadline`. It limits the assumed minimum one-way delay to half of `deadline`: the offset
    /// rises by the part of the error bound above that half, and the error grows by as much.
    /// [`ClockEstimate::favour`] assumes less at the other end, which leaves sent packets a margin.
    pub fn for_sending(&self, deadline: Duration) -> Self {
        self.shifted(self.error_ever.saturating_sub(deadline / 2).as_nanos() as i64)
    }

    /// Returns the estimate by which the deadlines of received packets are judged, for a lifetime
    /// of `deadline`; see [`ClockEstimate::favour`].
    pub fn for_receiving(&self, deadline: Duration) -> Self {
        self.shifted(-(self.favour(deadline).as_nanos() as i64))
    }

    /// Returns by how much media deadlines are extended beyond the midpoint of the clock bounds,
    /// for a lifetime of `deadline`.
    ///
    /// The midpoint assumes that the minimum one-way delay is half of the minimum RTT. It may be
    /// anything from zero to all of it. If that leaves media less than half of its deadline, the
    /// assumed delay is reduced by twice the shortfall. It falls at most to zero, which the bounds
    /// allow too. So nothing is given up that may be in time, and media shown may be late by as
    /// much.
    pub fn favour(&self, deadline: Duration) -> Duration {
        (self.error_ever * 2).saturating_sub(deadline).min(self.error_ever)
    }

    fn shifted(&self, nanos: i64) -> Self {
        Self {
            offset_nanos: self.offset_nanos.saturating_add(nanos),
            error: self.error + Duration::from_nanos(nanos.unsigned_abs()),
            ..*self
        }
    }

    /// Converts `instant` on the peer's clock to ours, clamped to the clock's range.
    pub fn to_local(&self, instant: Instant) -> Instant {
        instant.offset_by_nanos(self.offset_nanos.saturating_neg())
    }

    /// Returns the time from `instant` on the peer's clock to `now` on ours; zero if `instant` lies
    /// ahead by at most the error, `None` if by more.
    pub fn age(&self, instant: Instant, now: Instant) -> Option<Duration> {
        now.age(self.to_local(instant), self.error)
    }

    /// Converts `instant` on our clock to the peer's, clamped to the clock's range.
    pub fn to_peer(&self, instant: Instant) -> Instant {
        instant.offset_by_nanos(self.offset_nanos)
    }
}

/// An estimator of the clock offset from the tightest recent bounds over all links.
///
/// A pong with times t0 (ours), t1, t2 (peer's), t3 (ours) implies t2 - t3 <= offset <= t1 - t0,
/// because no delay is negative. The smallest t1 - t0 and the largest t2 - t3 over all links within
/// [`SPAN`] bound the offset. They are at least as tight as the sample with the smallest RTT, which
/// gives half its RTT ([RFC5905] section 8, clock filter). The estimate is the midpoint. Bounds
/// widen with age by the drift of two cheap clocks.
#[derive(Debug, Clone, Default)]
pub struct Estimator {
    slots: VecDeque<Slot>,
    /// Tightest lower and upper bound of all slots; `None` before the first. All widen equally, so
    /// the tightest stay the tightest.
    tightest: Option<(Bound, Bound)>,
    /// Half the width of the tightest bounds since the session began or a clock was set; `None`
    /// before the first pong after that.
    half_ever: Option<Bound>,
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

/// An error for a sample that contradicts all earlier ones, or whose own bounds contradict each
/// other: one of the clocks was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step;

impl Estimator {
    /// Creates an estimator without samples.
    pub fn new() -> Self {
        Self { slots: VecDeque::with_capacity(SLOTS + 1), tightest: None, half_ever: None }
    }

    /// Adds the lower and the upper bound on the offset from one pong, in nanoseconds.
    ///
    /// # Errors
    /// [`Step`] if they contradict the present bounds; the estimate then restarts from them. Also
    /// if the lower one exceeds the upper one; they are then ignored.
    pub fn observe(&mut self, lower: i64, upper: i64, now: Instant) -> Result<(), Step> {
        if lower > upper {
            return Err(Step);
        }
        let stepped = match self.bounds(now) {
            Some((low, high)) => lower > high || upper < low,
            None => false,
        };
        if stepped {
            self.slots.clear();
            self.half_ever = None;
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
        if let Some((low, high)) = self.bounds(now) {
            let half = Bound { nanos: high.saturating_sub(low) / 2, at: now };
            let is_tighter = |ever: Bound| half.nanos <= ever.most(now);
            self.half_ever = Some(self.half_ever.filter(|ever| !is_tighter(*ever)).unwrap_or(half));
        }
        if stepped { Err(Step) } else { Ok(()) }
    }

    /// Returns the estimate at `now`; `None` before the first pong.
    pub fn estimate(&self, now: Instant) -> Option<ClockEstimate> {
        let (low, high) = self.bounds(now)?;
        let half = (high.saturating_sub(low)) / 2;
        let ever = self.half_ever.map_or(half, |ever| ever.most(now).min(half));
        Some(ClockEstimate {
            offset_nanos: low + half,
            error: Duration::from_nanos(half.unsigned_abs() + 1),
            error_ever: Duration::from_nanos(ever.unsigned_abs() + 1),
        })
    }

    fn bounds(&self, now: Instant) -> Option<(i64, i64)> {
        let (lower, upper) = self.tightest?;
        let (low, high) = (lower.least(now), upper.most(now));
        // Drift beyond the assumed bound makes the ends cross slightly: take the range between
        // them.
        Some((low.min(high), high.max(low)))
    }
}

impl Bound {
    /// Returns the bound at `now` in nanoseconds, lowered by the drift since it was observed.
    fn least(self, now: Instant) -> i64 {
        self.nanos.saturating_sub(drift(now.since(self.at)))
    }

    /// Returns the bound at `now` in nanoseconds, raised by the drift since it was observed.
    fn most(self, now: Instant) -> i64 {
        self.nanos.saturating_add(drift(now.since(self.at)))
    }
}

fn drift(age: Duration) -> i64 {
    // 584 years fit; a bound is seconds old.
    let nanos = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    (nanos / (1_000_000 / DRIFT_PPM)) as i64
}

/// Assumed maximum drift between the two clocks: two crystals of 100 ppm each, drifting apart.
const DRIFT_PPM: u64 = 200;
/// Time over which bounds are kept while new ones come: 200 ppm amount to 1 ms in it, less than a
/// mobile link's asymmetry.
const SPAN: Duration = Duration::from_secs(5);
const SLOTS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_fastest_link_in_each_direction_bounds_the_offset() {
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
    fn media_uses_the_favourable_bound_if_the_middle_is_too_late() {
        let mut clock = Estimator::new();
        // 15 ms out, 200 ms back; only the sum is known.
        let (truth, now) = (3_600_000 * MS, Instant::from_millis(215));
        clock.observe(truth - 200 * MS, truth + 15 * MS, now).unwrap();
        let middle = clock.estimate(now).unwrap();
        let ms = Duration::from_millis;
        // In tenths of a millisecond: the error is stated a nanosecond too large.
        let tenths = |nanos: i64| (nanos + MS / 20).div_euclid(MS / 10);
        let out = |clock: ClockEstimate| tenths(truth + 15 * MS - clock.offset_nanos());
        assert_eq!(out(middle), 1_075);
        // With 300 ms, sending assumes the midpoint; with 150 and 100 ms, half of the deadline.
        assert_eq!(
            [300, 150, 100].map(|span| out(middle.for_sending(ms(span)))),
            [1_075, 750, 500]
        );
        // The other end has the mirrored bounds, and assumes 42.5 ms with 150 ms, and none with 100
        // ms.
        let mut other = Estimator::new();
        other.observe(-truth - 15 * MS, -truth + 200 * MS, now).unwrap();
        let theirs = other.estimate(now).unwrap();
        let taken = |clock: ClockEstimate| tenths(truth + 15 * MS + clock.offset_nanos());
        let found = [300, 150, 100].map(|span| taken(theirs.for_receiving(ms(span))));
        assert_eq!(found, [1_075, 425, 0]);
        for span in [100, 150, 300] {
            let (sent, came) = (middle.for_sending(ms(span)), theirs.for_receiving(ms(span)));
            assert!(sent.offset_nanos().abs_diff(truth) <= sent.error().as_nanos() as u64);
            assert!(came.offset_nanos().abs_diff(-truth) <= came.error().as_nanos() as u64);
        }
    }

    #[test]
    fn a_long_standing_queue_is_not_taken_for_a_longer_path() {
        let mut clock = Estimator::new();
        let (deadline, at) = (Duration::from_millis(100), Instant::from_millis);
        clock.observe(-15 * MS, 15 * MS, at(30)).unwrap();
        // From then on competing traffic adds 800 ms of queueing on the way out.
        for tenth in 1..600 {
            clock.observe(-15 * MS, 815 * MS, at(30 + tenth * 100)).unwrap();
        }
        let estimate = clock.estimate(at(60_000)).unwrap();
        assert!(estimate.error() > Duration::from_millis(400));
        assert_eq!(estimate.favour(deadline), Duration::ZERO);
        assert_eq!(estimate.for_sending(deadline).offset_nanos(), estimate.offset_nanos());
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
