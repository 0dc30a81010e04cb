use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A histogram of the emulator's send lateness, in logarithmic steps.
///
/// Constant memory and time; a quantile is exact to an eighth of itself.
#[derive(Clone, Debug)]
pub struct Lateness {
    counts: [u64; BUCKETS],
    count: u64,
    max: Duration,
}

/// Summary of the lateness of datagrams, as sent on the control channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of datagrams sent.
    pub count: u64,
    /// Median lateness in microseconds.
    pub p50_us: f64,
    /// 99th percentile of the lateness in microseconds.
    pub p99_us: f64,
    /// Maximum lateness in microseconds.
    pub max_us: f64,
}

/// Number of bins: eight for each doubling of the lateness, from 1 ns to beyond an hour.
const BUCKETS: usize = 8 * 43;

impl Lateness {
    /// Counts one datagram that left `late` after its time.
    pub fn record(&mut self, late: Duration) {
        let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.count += 1;
        self.max = self.max.max(late);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    /// Returns the number of datagrams counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the maximum lateness of a datagram; zero without datagrams.
    pub fn max(&self) -> Duration {
        self.max
    }

    /// Returns the lateness that the share `share` (0 to 1) of all datagrams does not exceed; zero
    /// without datagrams.
    pub fn quantile(&self, share: f64) -> Duration {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(upper_edge(index)).min(self.max);
            }
        }
        self.max
    }
}

impl Default for Lateness {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], count: 0, max: Duration::ZERO }
    }
}

impl From<&Lateness> for Summary {
    fn from(lateness: &Lateness) -> Self {
        let micros = |duration: Duration| duration.as_nanos() as f64 / 1e3;
        Self {
            count: lateness.count(),
            p50_us: micros(lateness.quantile(0.5)),
            p99_us: micros(lateness.quantile(0.99)),
            max_us: micros(lateness.max()),
        }
    }
}

fn bucket(nanos: u64) -> usize {
    if nanos < 8 {
        return nanos as usize;
    }
    let exponent = nanos.ilog2() as usize;
    let eighth = (nanos >> (exponent - 3)) as usize & 7;
    (8 * (exponent - 2) + eighth).min(BUCKETS - 1)
}

/// Returns the maximum nanoseconds of bucket `index`.
fn upper_edge(index: usize) -> u64 {
    if index < 8 {
        return index as u64;
    }
    let (exponent, eighth) = (index / 8 + 2, index as u64 % 8);
    ((8 + eighth + 1) << (exponent - 3)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nanosecond_lies_in_its_bucket() {
        let mut edge = 0;
        for index in 0..BUCKETS {
            assert_eq!(bucket(edge), index);
            assert_eq!(bucket(upper_edge(index)), index);
            edge = upper_edge(index) + 1;
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_exact_to_an_eighth() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.quantile(0.5), Duration::ZERO);
        for micros in 1..=1000 {
            lateness.record(Duration::from_micros(micros));
        }
        for (share, exact) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0)] {
            let micros = lateness.quantile(share).as_secs_f64() * 1e6;
            assert!((micros / exact - 1.0).abs() < 0.125, "{share}: {micros}");
        }
        lateness.record(Duration::MAX);
        assert_eq!(lateness.max(), Duration::MAX);
        assert_eq!(lateness.count(), 1001);
    }
}
