use std::collections::VecDeque;
use std::time::Duration;

use tautline_units::Instant;

/// Offset of the operator's clock from this program's, by the fastest round trip of the last 30 s.
#[derive(Debug, Default)]
pub(super) struct Offset {
    samples: VecDeque<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    taken: Instant,
    round_trip: Duration,
    /// Operator's Unix time minus this program's, in nanoseconds.
    nanos: i64,
}

impl Offset {
    /// Handles an answered ping. Times are Unix times: of the ping and of the answer's arrival by
    /// this program's clock, of the answer by the operator's.
    pub(super) fn handle(&mut self, asked: Instant, answered: Instant, arrived: Instant) {
        let round_trip = arrived.since(asked);
        if arrived.signed_nanos_since(asked) < 0 {
            return;
        }
        let nanos = answered.signed_nanos_since(asked + round_trip / 2);
        self.samples.retain(|sample| arrived.since(sample.taken) < WINDOW);
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { taken: arrived, round_trip, nanos });
    }

    /// Returns the offset in nanoseconds; `None` before the first answer.
    pub(super) fn nanos(&self) -> Option<i64> {
        self.samples.iter().min_by_key(|sample| sample.round_trip).map(|sample| sample.nanos)
    }
}

/// Age of a sample: long enough to contain a fast round trip, short enough that clocks which drift
/// by 50 ppm move by less than 2 ms.
const WINDOW: Duration = Duration::from_secs(30);
/// Samples of the window at the rate of pings.
const SAMPLES_MAX: usize = 120;
