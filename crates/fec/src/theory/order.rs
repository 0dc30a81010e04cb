use super::{Error, Gaussian, binomial};

/// The `place`-th smallest of `count` independent values of one distribution; for delays, the time
/// at which the `place`-th of `count` packets has arrived.
///
/// A block of k source packets is complete with the k-th of its n packets, an uncoded one with the
/// last. Source: \[LTE\] section II.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderStatistic {
    place: u32,
    count: u32,
}

impl OrderStatistic {
    /// Returns the order statistic of this place, counted from 1 in ascending order.
    ///
    /// # Errors
    /// [`Error::Place`] unless `1 <= place <= count`.
    pub fn new(place: u32, count: u32) -> Result<OrderStatistic, Error> {
        if place == 0 || place > count {
            return Err(Error::Place { place, count });
        }
        Ok(OrderStatistic { place, count })
    }

    /// Returns the probability that the order statistic does not exceed a value that a single
    /// sample does not exceed with probability `single`: that `place` or more of `count` samples do
    /// not. O(count).
    ///
    /// `single` is clamped to 0..=1.
    pub fn cdf(&self, single: f64) -> f64 {
        let single = single.clamp(0.0, 1.0);
        if single == 1.0 {
            return 1.0;
        }
        let enough = self.place..=self.count;
        let term = |hits: u32| binomial::ln_pmf(hits.into(), self.count.into(), single).exp();
        enough.map(term).sum::<f64>().min(1.0)
    }

    /// Returns the `single` for which [`cdf`](Self::cdf) returns `probability`: the probability
    /// that a single sample does not exceed the order statistic's quantile. Below 1. O(count).
    ///
    /// # Errors
    /// [`Error::Probability`] unless `0 < probability < 1`.
    pub fn quantile(&self, probability: f64) -> Result<f64, Error> {
        if !(probability > 0.0 && probability < 1.0) {
            return Err(Error::Probability { probability });
        }
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        loop {
            let middle = low.midpoint(high);
            if middle <= low || middle >= high {
                return Ok(high.min(BELOW_ONE));
            }
            if self.cdf(middle) < probability {
                low = middle;
            } else {
                high = middle;
            }
        }
    }

    /// Returns the probability that the order statistic of samples with distribution `each` does
    /// not exceed `value`.
    pub fn gaussian_cdf(&self, each: &Gaussian, value: f64) -> f64 {
        self.cdf(each.cdf(value))
    }

    /// Returns the value that the order statistic of samples with distribution `each` does not
    /// exceed with the given probability.
    ///
    /// # Errors
    /// [`Error::Probability`] unless `0 < probability < 1`.
    pub fn gaussian_quantile(&self, each: &Gaussian, probability: f64) -> Result<f64, Error> {
        each.quantile(self.quantile(probability)?)
    }
}

/// Largest `f64` below 1.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_of_eight_come_six_milliseconds_before_six_of_six() {
        let delay = Gaussian::new(20.0, 5.0).unwrap();
        let uncoded = OrderStatistic::new(6, 6).unwrap().gaussian_quantile(&delay, 0.95).unwrap();
        let coded = OrderStatistic::new(6, 8).unwrap().gaussian_quantile(&delay, 0.95).unwrap();
        // The last of six: 0.95^(1/6) of the delays are below.
        let last = delay.quantile(0.95_f64.powf(1.0 / 6.0)).unwrap();
        assert!((uncoded - last).abs() < 1e-9);
        assert!((uncoded - coded - 6.0).abs() < 0.5, "{uncoded} - {coded}");
    }

    #[test]
    fn the_first_and_the_last_have_their_closed_forms() {
        for single in [0.0, 1e-3, 0.3, 0.99, 1.0] {
            let first = OrderStatistic::new(1, 7).unwrap().cdf(single);
            assert!((first - (1.0 - (1.0 - single).powi(7))).abs() < 1e-14);
            let last = OrderStatistic::new(7, 7).unwrap().cdf(single);
            assert!((last - single.powi(7)).abs() < 1e-14);
        }
    }

    #[test]
    fn quantile_and_distribution_function_are_inverse() {
        for (place, count) in [(1, 1), (3, 5), (6, 8), (100, 256)] {
            let statistic = OrderStatistic::new(place, count).unwrap();
            for probability in [1e-6, 0.05, 0.5, 0.95, 0.999_999] {
                let back = statistic.cdf(statistic.quantile(probability).unwrap());
                assert!((back - probability).abs() < 1e-12, "{place} of {count}: {back}");
            }
        }
    }

    #[test]
    fn a_mixture_of_places_is_one_value() {
        // The order statistics of all five places average to a single sample.
        for single in [0.1, 0.42, 0.9] {
            let places = (1..=5).map(|place| OrderStatistic::new(place, 5).unwrap().cdf(single));
            assert!((places.sum::<f64>() / 5.0 - single).abs() < 1e-14);
        }
    }

    #[test]
    fn an_order_statistic_outside_the_sample_is_refused() {
        for (place, count) in [(0, 3), (4, 3), (0, 0)] {
            assert_eq!(OrderStatistic::new(place, count), Err(Error::Place { place, count }));
        }
        assert!(OrderStatistic::new(1, 2).unwrap().quantile(1.0).is_err());
    }
}
