//! Measures of a run: shares, delays, gaps, goodput.

use std::ops::Range;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::traffic::{Offered, Received};

/// A unit offered to a session, with its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// The unit as it was sent.
    pub offered: Offered,
    /// The unit as it was received; `None` if it never arrived.
    pub received: Option<Received>,
}

impl Unit {
    /// Returns the time from sending to delivery, or `None` if it never arrived.
    pub fn delay(&self) -> Option<Duration> {
        self.received.map(|received| received.at.since(self.offered.at))
    }

    /// Returns the time of delivery, if it was within `deadline` of sending.
    pub fn on_time(&self, deadline: Duration) -> Option<Instant> {
        let delay = self.delay().filter(|delay| *delay <= deadline)?;
        Some(self.offered.at + delay)
    }
}

/// Matches the units offered at one end with those received at the other.
///
/// Of a unit received twice, the first counts.
pub fn units(offered: &[Offered], received: &[Received]) -> Vec<Unit> {
    let mut units: Vec<Unit> =
        offered.iter().map(|offered| Unit { offered: *offered, received: None }).collect();
    for received in received {
        if let Some(unit) = units.get_mut(received.index as usize) {
            unit.received.get_or_insert(*received);
        }
    }
    units
}

/// Returns the units that were offered within `time`.
pub fn within(units: &[Unit], time: Range<Instant>) -> impl Iterator<Item = &Unit> {
    units.iter().filter(move |unit| time.contains(&unit.offered.at))
}

/// Returns the share of the units accepted within `time` that were delivered.
///
/// # Panics
/// If no unit was accepted: the share is undefined.
pub fn delivered_share(units: &[Unit], time: Range<Instant>) -> f64 {
    let accepted: Vec<&Unit> =
        within(units, time.clone()).filter(|unit| unit.offered.accepted.is_some()).collect();
    assert!(!accepted.is_empty(), "nothing was sent within {time:?}");
    let came = accepted.iter().filter(|unit| unit.received.is_some()).count();
    came as f64 / accepted.len() as f64
}

/// Returns the delays of the delivered units, in ms.
pub fn delays_ms<'a>(units: impl IntoIterator<Item = &'a Unit>) -> Vec<f64> {
    units.into_iter().filter_map(|unit| unit.delay().map(millis)).collect()
}

/// Returns the rate of unit bytes delivered on time, for units offered within `time`.
pub fn goodput(units: &[Unit], deadline: Duration, time: Range<Instant>) -> Bitrate {
    let on_time = within(units, time.clone()).filter(|unit| unit.on_time(deadline).is_some());
    let bytes: ByteCount = on_time.map(|unit| unit.offered.bytes).sum();
    Bitrate::of(bytes, time.end.since(time.start))
}

/// Returns the longest part of `time` without any of `events`.
pub fn longest_gap(events: impl IntoIterator<Item = Instant>, time: Range<Instant>) -> Duration {
    let gaps = gaps(events, time);
    gaps.into_iter().max().unwrap_or_default()
}

/// Returns the intervals between `events` within `time`, including those to both ends.
pub fn gaps(events: impl IntoIterator<Item = Instant>, time: Range<Instant>) -> Vec<Duration> {
    let mut at: Vec<Instant> = events.into_iter().filter(|at| time.contains(at)).collect();
    at.sort_unstable();
    let starts = [time.start].into_iter().chain(at.iter().copied());
    let ends = at.iter().copied().chain([time.end]);
    starts.zip(ends).map(|(start, end)| end.since(start)).collect()
}

/// Returns the `quantile` (0 to 1) of `values` by nearest rank, NaN if there are none. Sorts
/// `values`.
pub fn quantile(values: &mut [f64], quantile: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * quantile).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Converts a duration to ms.
pub fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn gaps_reach_to_both_ends() {
        let events = [at(90), at(30), at(5), at(100)];
        let expected = [20, 60, 10].map(Duration::from_millis);
        assert_eq!(gaps(events, at(10)..at(100)), expected);
        assert_eq!(longest_gap(events, at(10)..at(100)), expected[1]);
        assert_eq!(longest_gap([], at(10)..at(100)), Duration::from_millis(90));
    }

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let mut values = [4.0, 1.0, 3.0, 2.0, 5.0];
        assert_eq!(quantile(&mut values, 0.5), 3.0);
        assert_eq!(quantile(&mut values, 1.0), 5.0);
        assert_eq!(quantile(&mut values, 0.9), 5.0);
        assert!(quantile(&mut [], 0.5).is_nan());
    }
}
