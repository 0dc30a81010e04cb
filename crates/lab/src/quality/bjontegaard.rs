//! Bitrate difference between two encoders at the same quality (VCEG-M33).

use tautline_units::Bitrate;

/// One measurement of an encoder: its bitrate and quality.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Bitrate of the encoder.
    pub bitrate: Bitrate,
    /// Quality: a PSNR in dB, or any measure that increases with the bitrate.
    pub quality: f64,
}

/// Returns the mean excess of `test`'s bitrate over `anchor`'s at the same quality, as a share: .1
/// means 10 % more.
///
/// Both curves are monotone cubics (Fritsch and Butland, as in JVET-Q's spreadsheets) of the
/// logarithm of the bitrate over the quality, compared on their common range. The points may be in
/// any order, and their numbers may differ.
///
/// `None` if a curve has fewer than two points or two of the same quality, if a quality is not
/// finite or a bitrate is zero, or if the curves have no common quality range.
///
/// Source: [VCEG-M33], with the interpolation of [JCTVC-L1100].
pub fn bd_rate(anchor: &[Point], test: &[Point]) -> Option<f64> {
    let (anchor, test) = (Curve::of(anchor)?, Curve::of(test)?);
    let from = anchor.first().max(test.first());
    let to = anchor.last().min(test.last());
    if from >= to {
        return None;
    }
    let difference = (test.integral(from, to) - anchor.integral(from, to)) / (to - from);
    Some(difference.exp() - 1.0)
}

/// Curve of the logarithm of the bitrate over the quality.
struct Curve {
    quality: Vec<f64>,
    log_rate: Vec<f64>,
    slope: Vec<f64>,
}

impl Curve {
    fn of(points: &[Point]) -> Option<Self> {
        let mut points: Vec<(f64, f64)> =
            points.iter().map(|point| (point.quality, point.bitrate.as_f64().ln())).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let finite = points.iter().all(|(quality, rate)| quality.is_finite() && rate.is_finite());
        let apart = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
        if points.len() < 2 || !finite || !apart {
            return None;
        }
        let (quality, log_rate): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
        let slope = slopes(&quality, &log_rate);
        Some(Self { quality, log_rate, slope })
    }

    fn first(&self) -> f64 {
        self.quality[0]
    }

    fn last(&self) -> f64 {
        self.quality[self.quality.len() - 1]
    }

    /// Returns the integral between two qualities within the curve's range.
    fn integral(&self, from: f64, to: f64) -> f64 {
        (0..self.quality.len() - 1)
            .map(|piece| {
                let (left, right) = (self.quality[piece], self.quality[piece + 1]);
                let (from, to) = (from.clamp(left, right), to.clamp(left, right));
                self.primitive(piece, to - left) - self.primitive(piece, from - left)
            })
            .sum()
    }

    /// Returns the integral of a piece over `width` from its left end.
    fn primitive(&self, piece: usize, width: f64) -> f64 {
        let step = self.quality[piece + 1] - self.quality[piece];
        let secant = (self.log_rate[piece + 1] - self.log_rate[piece]) / step;
        let (left, right) = (self.slope[piece], self.slope[piece + 1]);
        let square = (3.0 * secant - 2.0 * left - right) / step;
        let cube = (left + right - 2.0 * secant) / (step * step);
        width
            * (self.log_rate[piece]
                + width * (left / 2.0 + width * (square / 3.0 + width * cube / 4.0)))
    }
}

/// Returns the slopes of the monotone cubic at every point.
fn slopes(x: &[f64], y: &[f64]) -> Vec<f64> {
    let step: Vec<f64> = x.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let secant: Vec<f64> =
        y.windows(2).zip(&step).map(|(pair, step)| (pair[1] - pair[0]) / step).collect();
    let pieces = step.len();
    if pieces == 1 {
        return vec![secant[0]; 2];
    }
    let mut slopes = vec![0.0; x.len()];
    slopes[0] = end_slope(step[0], step[1], secant[0], secant[1]);
    slopes[pieces] =
        end_slope(step[pieces - 1], step[pieces - 2], secant[pieces - 1], secant[pieces - 2]);
    for at in 1..pieces {
        if secant[at - 1] * secant[at] > 0.0 {
            let before = 2.0 * step[at] + step[at - 1];
            let after = step[at] + 2.0 * step[at - 1];
            slopes[at] = (before + after) / (before / secant[at - 1] + after / secant[at]);
        }
    }
    slopes
}

/// Returns the slope at an end point, from three points, limited so that the curve stays monotone.
fn end_slope(step: f64, next_step: f64, secant: f64, next_secant: f64) -> f64 {
    let slope = ((2.0 * step + next_step) * secant - step * next_secant) / (step + next_step);
    if slope * secant <= 0.0 {
        0.0
    } else if secant * next_secant <= 0.0 && slope.abs() > 3.0 * secant.abs() {
        3.0 * secant
    } else {
        slope
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bitrate in kbit/s and quality in dB.
    type Measured = [(f64, f64)];

    fn curve(points: &Measured) -> Vec<Point> {
        let point = |&(kbps, quality): &(f64, f64)| Point {
            bitrate: Bitrate::from_bps((kbps * 1e3).round() as u64),
            quality,
        };
        points.iter().map(point).collect()
    }

    #[test]
    fn known_curves_have_their_known_difference() {
        // Values from the package bjontegaard 1.3 (method "pchip"), for its own example and two
        // others.
        let cases: [(&Measured, &Measured, f64); 3] = [
            (
                &[(9487.76, 40.037), (4593.60, 38.615), (2486.44, 36.845), (1358.24, 34.851)],
                &[(9787.80, 40.121), (4469.00, 38.651), (2451.52, 36.970), (1356.24, 34.987)],
                -0.04417485350589045,
            ),
            (
                &[(686.76, 40.28), (309.58, 37.18), (157.11, 34.24), (85.95, 31.42)],
                &[(893.34, 40.39), (407.8, 37.21), (204.93, 34.17), (112.75, 31.24)],
                0.31379878202397627,
            ),
            (
                &[(500.0, 30.0), (900.0, 32.5), (2000.0, 35.1), (4100.0, 37.2), (9000.0, 39.0)],
                &[(480.0, 30.5), (1000.0, 33.4), (1900.0, 35.5), (4500.0, 38.2)],
                -0.1634826045823924,
            ),
        ];
        for (anchor, test, expected) in cases {
            let found = bd_rate(&curve(anchor), &curve(test)).unwrap();
            assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
        }
    }

    #[test]
    fn curves_that_share_no_quality_are_not_compared() {
        let low = curve(&[(100.0, 30.0), (200.0, 32.0)]);
        let high = curve(&[(100.0, 33.0), (200.0, 36.0)]);
        let level = curve(&[(100.0, 31.0), (200.0, 31.0)]);
        assert_eq!(bd_rate(&low, &high), None);
        assert_eq!(bd_rate(&low, &level), None);
        assert_eq!(bd_rate(&low, &low[..1]), None);
        assert_eq!(bd_rate(&low, &curve(&[(0.0, 30.0), (200.0, 32.0)])), None);
        assert_eq!(bd_rate(&low, &curve(&[(1.0, f64::NAN), (200.0, 32.0)])), None);
    }

    proptest! {
        #[test]
        fn a_scaled_curve_differs_by_its_scale(
            steps in proptest::collection::vec((1u32..50, 2u32..30), 2..7),
            scale in 2u64..9,
        ) {
            let (mut quality, mut rate) = (30.0, 1_000_000u64);
            let mut anchor = Vec::new();
            for (rise, growth) in steps {
                anchor.push(Point { bitrate: Bitrate::from_bps(rate), quality });
                quality += f64::from(rise) / 10.0;
                rate += rate * u64::from(growth) / 10;
            }
            let mut test = anchor.clone();
            test.reverse();
            for point in &mut test {
                point.bitrate = Bitrate::from_bps(point.bitrate.bps() * scale);
            }
            let found = bd_rate(&anchor, &test).unwrap();
            prop_assert!((found - (scale as f64 - 1.0)).abs() < 1e-6);
        }
    }
}
