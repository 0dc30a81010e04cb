use std::fmt;
use std::time::Duration;

/// Summary of a set of delays. Displays as one line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of delays.
    pub count: usize,
    /// Median delay.
    pub p50: Duration,
    /// 95th percentile of the delays.
    pub p95: Duration,
    /// 99th percentile of the delays.
    pub p99: Duration,
    /// Longest delay.
    pub max: Duration,
    /// Share of the delays, 0 to 1, below each limit of [`BINS`], in the same order.
    pub within: [f64; BINS.len()],
}

/// Spikes in a sequence of delays: values of at least [`SPIKE`]; consecutive ones form one spike
/// ([UGV], "Performance Test Procedure").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spikes {
    /// Number of spikes; consecutive values count as one.
    pub count: usize,
    /// Number of delays within spikes.
    pub samples: usize,
}

impl Summary {
    /// Summarizes `delays`, and sorts them; `None` if there are none. O(n log n).
    pub fn of(delays: &mut [Duration]) -> Option<Self> {
        delays.sort_unstable();
        let max = *delays.last()?;
        let count = delays.len();
        let percentile = |percent: usize| delays[(count * percent).div_ceil(100).max(1) - 1];
        let within = BINS.map(|bin| delays.partition_point(|it| *it < bin) as f64 / count as f64);
        let (p50, p95, p99) = (percentile(50), percentile(95), percentile(99));
        Some(Self { count, p50, p95, p99, max, within })
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

impl Spikes {
    /// Counts the spikes of delays in order of time.
    pub fn of(delays: impl IntoIterator<Item = Duration>) -> Self {
        let (mut spikes, mut is_high) = (Self::default(), false);
        for delay in delays {
            let was_high = std::mem::replace(&mut is_high, delay >= SPIKE);
            spikes.samples += usize::from(is_high);
            spikes.count += usize::from(is_high && !was_high);
        }
        spikes
    }
}

/// Upper limits of the bins of [UGV], "Pareto Analysis": not discernible, no impact on control,
/// challenging, difficult.
pub const BINS: [Duration; 4] = [
    Duration::from_millis(125),
    Duration::from_millis(250),
    Duration::from_millis(375),
    Duration::from_millis(500),
];

/// Minimum delay of a spike.
pub const SPIKE: Duration = Duration::from_millis(1_000);

#[cfg(test)]
mod tests {
    use super::*;

    fn of(millis: &[u64]) -> Vec<Duration> {
        millis.iter().copied().map(Duration::from_millis).collect()
    }

    #[test]
    fn a_delay_on_a_bins_edge_is_outside_it() {
        assert_eq!(Summary::of(&mut []), None);
        let summary = Summary::of(&mut of(&[600, 125, 249, 124])).unwrap();
        assert_eq!(summary.within, [0.25, 0.75, 0.75, 0.75]);
        assert_eq!(
            summary.to_string(),
            "4 round trips: p50 125.0 ms, p95 600.0 ms, p99 600.0 ms, max 600.0 ms; \
             25.0% < 125 ms 75.0% < 250 ms 75.0% < 375 ms 75.0% < 500 ms"
        );
        let mut hundred = of(&(1..=100).collect::<Vec<_>>());
        let summary = Summary::of(&mut hundred).unwrap();
        assert_eq!([summary.p50, summary.p95, summary.p99].map(|it| it.as_millis()), [50, 95, 99]);
    }

    #[test]
    fn several_long_ones_in_a_row_are_one_spike() {
        assert_eq!(Spikes::of(of(&[])), Spikes::default());
        let found = Spikes::of(of(&[1_000, 3_000, 999, 20, 5_700, 30, 1_500]));
        assert_eq!(found, Spikes { count: 3, samples: 4 });
    }
}
