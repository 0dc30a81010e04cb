use tautline_units::{Bitrate, ByteCount, Duration};

/// A source of media units at even intervals: slices or whole pictures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Media {
    /// Number of media units per second.
    pub per_second: u64,
    /// Mean rate of all units without a lower budget, large units included.
    pub rate: Bitrate,
    /// True if the source reduces its rate to a budget below `rate`.
    pub adapts: bool,
    /// Number of units from one large unit, such as a key picture, to the next; 1 if all are alike.
    pub large_every: u64,
    /// Size of a large unit relative to the others.
    pub large_factor: f64,
    /// Minimum size of a media unit, also under a low budget.
    pub bytes_min: ByteCount,
    /// Time after which a unit is worthless.
    pub deadline: Duration,
}

impl Media {
    /// Returns a source of equal slices, up to `rate`, with a deadline of 200 ms.
    pub fn slices(per_second: u64, rate: Bitrate) -> Self {
        Self {
            per_second,
            rate,
            adapts: true,
            large_every: 1,
            large_factor: 1.0,
            bytes_min: ByteCount::new(24),
            deadline: Duration::from_millis(200),
        }
    }

    /// Returns the time between two units.
    pub fn interval(&self) -> Duration {
        Duration::from_nanos(1_000_000_000 / self.per_second.max(1))
    }

    /// Returns the size of unit `number` under `budget`, at least [`bytes_min`](Self::bytes_min),
    /// or `None` if the budget is zero: then the source pauses.
    pub fn unit_bytes(&self, number: u64, budget: Bitrate) -> Option<ByteCount> {
        if budget == Bitrate::ZERO {
            return None;
        }
        let rate = if self.adapts { budget.min(self.rate) } else { self.rate };
        let every = self.large_every as f64;
        // Of `every` units, one counts `large_factor` times.
        let mean = (rate * self.interval()).get() as f64;
        let plain = mean * every / (every - 1.0 + self.large_factor);
        let factor = if number.is_multiple_of(self.large_every) { self.large_factor } else { 1.0 };
        Some(ByteCount::new((plain * factor) as u64).max(self.bytes_min))
    }
}

/// A source of commands at even intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Commands {
    /// Time between two commands.
    pub interval: Duration,
    /// Size of each command.
    pub bytes: ByteCount,
    /// Time after which a command is worthless.
    pub deadline: Duration,
}

impl Default for Commands {
    /// Returns 50 commands a second of 60 bytes, as the operator's console sends them.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(20),
            bytes: ByteCount::new(60),
            deadline: Duration::from_millis(250),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pictures() -> Media {
        let media = Media::slices(15, Bitrate::from_kbps(480));
        Media { large_every: 30, large_factor: 3.0, adapts: false, ..media }
    }

    #[test]
    fn units_have_the_rate_in_the_mean() {
        let bytes = |number| pictures().unit_bytes(number, Bitrate::from_mbps(9)).unwrap().get();
        let total: u64 = (0..150).map(bytes).sum();
        assert!(total.abs_diff(600_000) < 600, "{total}");
        assert!(bytes(30).abs_diff(3 * bytes(31)) <= 3);
        assert_eq!(pictures().unit_bytes(0, Bitrate::ZERO), None);
    }

    #[test]
    fn only_a_source_that_adapts_heeds_the_budget() {
        let adapting = Media { adapts: true, ..pictures() };
        let small = adapting.unit_bytes(1, Bitrate::from_kbps(48)).unwrap();
        let large = adapting.unit_bytes(1, Bitrate::from_mbps(48)).unwrap();
        assert!(large.get() / small.get() >= 9);
        assert_eq!(Some(large), pictures().unit_bytes(1, Bitrate::from_kbps(48)));
    }
}
