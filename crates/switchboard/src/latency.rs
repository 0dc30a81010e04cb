//! The latency record: round trips between the switchboard and one client.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// The newest round trips on one connection, and what they come to.
///
/// The last [`SAMPLES_MAX`] samples, 4 KiB. Source: [UGV], "Measuring Latency".
#[derive(Clone, Debug, Default)]
pub struct Record {
    samples: VecDeque<Duration>,
    newest: Option<Duration>,
}

/// What the samples of a [`Record`] come to. Displays as one line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Samples looked at.
    pub count: usize,
    /// Half of the round trips took no longer.
    pub p50: Duration,
    /// 95 in 100 took no longer.
    pub p95: Duration,
    /// 99 in 100 took no longer.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// The share of round trips, 0 to 1, that took less than each of [`BINS`].
    pub within: [f64; BINS.len()],
}

impl Record {
    /// Adds a round trip; the oldest falls out when the record is full.
    pub fn add(&mut self, round_trip: Duration) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(round_trip);
        self.newest = Some(round_trip);
    }

    /// Returns the newest round trip.
    pub fn newest(&self) -> Option<Duration> {
        self.newest
    }

    /// Returns what the samples come to; `None` without samples. O(n log n).
    pub fn summary(&self) -> Option<Summary> {
        let mut sorted: Vec<Duration> = self.samples.iter().copied().collect();
        sorted.sort_unstable();
        let max = *sorted.last()?;
        let count = sorted.len();
        let percentile = |percent: usize| sorted[(count * percent).div_ceil(100).max(1) - 1];
        let within = BINS.map(|bin| sorted.partition_point(|s| *s < bin) as f64 / count as f64);
        let (p50, p95, p99) = (percentile(50), percentile(95), percentile(99));
        Some(Summary { count, p50, p95, p99, max, within })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        write!(
            f,
            "{} round trips: p50 {:.1} ms, p95 {:.1} ms, p99 {:.1} ms, max {:.1} ms;",
            self.count,
            ms(self.p50),
            ms(self.p95),
            ms(self.p99),
            ms(self.max)
        )?;
        for (bin, share) in BINS.iter().zip(self.within) {
            write!(f, " {:.1}% < {} ms", share * 100.0, bin.as_millis())?;
        }
        Ok(())
    }
}

/// The bins of [UGV], "Pareto Analysis": not discernible, no impact on control,
/// challenging, difficult.
pub const BINS: [Duration; 4] = [
    Duration::from_millis(125),
    Duration::from_millis(250),
    Duration::from_millis(375),
    Duration::from_millis(500),
];

/// Five minutes at one ping a second: long enough for a 99th percentile.
pub const SAMPLES_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_bins_are_those_of_the_newest_samples() {
        let mut record = Record::default();
        assert_eq!(record.summary(), None);
        for ms in 0..1_000 {
            record.add(Duration::from_millis(ms));
        }
        let summary = record.summary().unwrap();
        assert_eq!(summary.count, SAMPLES_MAX);
        assert_eq!(summary.p50, Duration::from_millis(849));
        assert_eq!(summary.p99, Duration::from_millis(996));
        assert_eq!(summary.max, Duration::from_millis(999));
        assert_eq!(summary.within, [0.0; 4]);
        assert_eq!(record.newest(), Some(summary.max));
    }

    #[test]
    fn a_sample_on_a_bins_edge_is_outside_it() {
        let mut record = Record::default();
        for ms in [124, 125, 249, 600] {
            record.add(Duration::from_millis(ms));
        }
        let summary = record.summary().unwrap();
        assert_eq!(summary.within, [0.25, 0.75, 0.75, 0.75]);
        assert_eq!(
            summary.to_string(),
            "4 round trips: p50 125.0 ms, p95 600.0 ms, p99 600.0 ms, max 600.0 ms; \
             25.0% < 125 ms 75.0% < 250 ms 75.0% < 375 ms 75.0% < 500 ms"
        );
    }
}
