//! Latency record: round trips between the switchboard and one client.

use std::collections::VecDeque;
use std::time::Duration;

use tautline_net::latency::Summary;

/// Newest round trips on one connection.
///
/// Holds the last [`SAMPLES_MAX`] samples, 4 KiB. Source: [UGV], "Measuring Latency".
#[derive(Clone, Debug, Default)]
pub struct Record {
    samples: VecDeque<Duration>,
    newest: Option<Duration>,
}

impl Record {
    /// Adds a round trip; drops the oldest when the record is full.
    pub fn add(&mut self, round_trip: Duration) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(round_trip);
        self.newest = Some(round_trip);
    }

    /// Returns the newest round trip; `None` before the first.
    pub fn newest(&self) -> Option<Duration> {
        self.newest
    }

    /// Returns a summary of the samples; `None` without samples. O(n log n).
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(&mut self.samples.iter().copied().collect::<Vec<_>>())
    }
}

/// Maximum round trips in a record: five minutes at one ping a second, enough for a 99th
/// percentile.
pub const SAMPLES_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_newest_samples() {
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
}
