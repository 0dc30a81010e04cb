use std::f64::consts::SQRT_2;

use super::Error;

/// A normal distribution, for instance of a delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaussian {
    mean: f64,
    deviation: f64,
}

impl Gaussian {
    /// Returns the distribution with this mean and standard deviation, both in the same unit.
    ///
    /// # Errors
    /// [`Error::Quantity`] unless both are finite and the deviation is above zero.
    pub fn new(mean: f64, deviation: f64) -> Result<Gaussian, Error> {
        if !mean.is_finite() {
            return Err(Error::Quantity { quantity: mean });
        }
        if !(deviation.is_finite() && deviation > 0.0) {
            return Err(Error::Quantity { quantity: deviation });
        }
        Ok(Gaussian { mean, deviation })
    }

    /// Returns the probability that a sample does not exceed `value`.
    pub fn cdf(&self, value: f64) -> f64 {
        standard_cdf((value - self.mean) / self.deviation)
    }

    /// Returns the value that a sample does not exceed with the given probability.
    ///
    /// # Errors
    /// [`Error::Probability`] unless `0 < probability < 1`.
    pub fn quantile(&self, probability: f64) -> Result<f64, Error> {
        if !(probability > 0.0 && probability < 1.0) {
            return Err(Error::Probability { probability });
        }
        // Computed in the lower half, where the distribution function keeps all its digits.
        let deviations = if probability <= 0.5 {
            standard_quantile(probability)
        } else {
            -standard_quantile(1.0 - probability)
        };
        Ok(self.mean + self.deviation * deviations)
    }
}

fn standard_cdf(deviations: f64) -> f64 {
    0.5 * libm::erfc(-deviations / SQRT_2)
}

/// Returns the quantile of the standard normal distribution, by bisection until the ends of the
/// range are adjacent numbers; `probability` is at most 1/2.
fn standard_quantile(probability: f64) -> f64 {
    // At this lower end the distribution function is zero in double precision.
    let (mut low, mut high) = (-40.0_f64, 0.0_f64);
    loop {
        let middle = low.midpoint(high);
        if middle <= low || middle >= high {
            return high;
        }
        if standard_cdf(middle) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_of_the_normal_distribution_come_out() {
        let normal = Gaussian::new(0.0, 1.0).unwrap();
        for (value, probability) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_542_9),
            (-1.959_963_984_540_054, 0.025),
            (3.090_232_306_167_813_6, 0.999),
            (-6.0, 9.865_876_450_376_98e-10),
        ] {
            assert!((normal.cdf(value) / probability - 1.0).abs() < 1e-12, "{value}");
            let back = normal.quantile(probability).unwrap();
            assert!((back - value).abs() < 1e-11, "{probability}: {back}");
        }
    }

    #[test]
    fn invalid_distribution_parameters_are_refused() {
        assert!(Gaussian::new(f64::NAN, 1.0).is_err());
        assert!(Gaussian::new(0.0, 0.0).is_err());
        assert!(Gaussian::new(0.0, f64::INFINITY).is_err());
        let normal = Gaussian::new(0.0, 1.0).unwrap();
        for probability in [0.0, 1.0, -0.5, f64::NAN] {
            assert!(matches!(normal.quantile(probability), Err(Error::Probability { .. })));
        }
        assert!(normal.quantile(f64::MIN_POSITIVE).unwrap() < -37.0);
    }
}
