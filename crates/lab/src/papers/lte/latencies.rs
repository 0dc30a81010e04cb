//! Statistics of latencies.

/// A collection of latencies in ms, ascending; not empty.
pub(super) struct Latencies {
    sorted: Vec<f64>,
}

impl Latencies {
    pub(super) fn new(mut latencies: Vec<f64>) -> Self {
        assert!(!latencies.is_empty(), "latencies of nothing");
        latencies.sort_unstable_by(f64::total_cmp);
        Self { sorted: latencies }
    }

    pub(super) fn mean(&self) -> f64 {
        self.sorted.iter().sum::<f64>() / self.sorted.len() as f64
    }

    /// Returns the standard deviation, ms.
    pub(super) fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.sorted.iter().map(|latency| (latency - mean).powi(2)).sum();
        (squares / self.sorted.len() as f64).sqrt()
    }

    /// Returns the quantile at `probability` from 0 to 1, ms: 1 is the maximum.
    pub(super) fn quantile(&self, probability: f64) -> f64 {
        let rank = (probability * self.sorted.len() as f64) as usize;
        self.sorted[rank.min(self.sorted.len() - 1)]
    }

    /// Returns the share of latencies below `ms`.
    pub(super) fn share_below(&self, ms: f64) -> f64 {
        self.sorted.partition_point(|latency| *latency < ms) as f64 / self.sorted.len() as f64
    }

    /// Returns the quantile, in ms, of the maximum of `count` independent draws from these
    /// latencies.
    pub(super) fn quantile_of_latest(&self, count: u32, probability: f64) -> f64 {
        self.quantile(probability.powf(1.0 / f64::from(count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_list() {
        let latencies = Latencies::new((1..=100).rev().map(f64::from).collect());
        assert_eq!((latencies.mean(), latencies.quantile(0.95)), (50.5, 96.0));
        assert!((latencies.deviation() - 28.866).abs() < 1e-3);
        assert_eq!((latencies.quantile(1.0), latencies.share_below(11.0)), (100.0, 0.1));
        assert_eq!(latencies.quantile_of_latest(2, 0.81), 91.0);
    }
}
