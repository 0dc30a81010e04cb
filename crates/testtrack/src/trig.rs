//! Sine, cosine and arc tangent from additions, products and square roots only.
//!
//! The platform's mathematics library may round differently on different processors. IEEE
//! arithmetic does not, so a course and a drive have the same bytes everywhere.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

/// Returns the sine and cosine of `angle` (rad), within 1e-12 for |angle| < 1000.
pub(crate) fn sin_cos(angle: f64) -> (f64, f64) {
    let quadrant = (angle / FRAC_PI_2).round();
    let rest = angle - quadrant * FRAC_PI_2;
    let square = rest * rest;
    let sin = rest * alternating(square, &[6.0, 20.0, 42.0, 72.0, 110.0, 156.0, 210.0]);
    let cos = alternating(square, &[2.0, 12.0, 30.0, 56.0, 90.0, 132.0, 182.0]);
    match quadrant.rem_euclid(4.0) as u8 {
        0 => (sin, cos),
        1 => (cos, -sin),
        2 => (-sin, -cos),
        _ => (-cos, sin),
    }
}

/// Returns the arc tangent of `ratio` (rad), within 1e-12.
pub(crate) fn atan(ratio: f64) -> f64 {
    if ratio.abs() > 1.0 {
        return FRAC_PI_2.copysign(ratio) - atan(1.0 / ratio);
    }
    let half = |tangent: f64| tangent / (1.0 + (1.0 + tangent * tangent).sqrt());
    let x = half(half(ratio));
    let square = x * x;
    let mut sum = 0.0;
    for term in (0..10).rev() {
        let odd = f64::from(2 * term + 1);
        sum = 1.0 / odd - square * sum;
    }
    4.0 * x * sum
}

/// Returns the angle of the direction (`x`, `y`) counter-clockwise from x, in (-π, π].
pub(crate) fn atan2(y: f64, x: f64) -> f64 {
    if x.abs() >= y.abs() {
        let angle = if x == 0.0 { 0.0 } else { atan(y / x) };
        match (x < 0.0, y < 0.0) {
            (false, _) => angle,
            (true, false) => angle + PI,
            (true, true) => angle - PI,
        }
    } else {
        FRAC_PI_2.copysign(y) - atan(x / y)
    }
}

/// Wraps `angle` into [-π, π].
pub(crate) fn wrap(angle: f64) -> f64 {
    angle - TAU * (angle / TAU).round()
}

/// Sums `1 - x/f1 + x²/(f1 f2) - ..`, the common form of the series of sine and cosine.
fn alternating(x: f64, factors: &[f64]) -> f64 {
    factors.iter().rev().fold(1.0, |sum, factor| 1.0 - x / factor * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sine_and_cosine_agree_with_the_platform() {
        for step in -5000..5000 {
            let angle = f64::from(step) * 0.0137;
            let (sin, cos) = sin_cos(angle);
            assert!(
                (sin - angle.sin()).abs() < 1e-11 && (cos - angle.cos()).abs() < 1e-11,
                "{angle}"
            );
        }
    }

    #[test]
    fn arc_tangents_agree_with_the_platform() {
        for step in -5000..5000 {
            let ratio = f64::from(step) * 0.0113;
            assert!((atan(ratio) - ratio.atan()).abs() < 1e-11, "{ratio}");
            let (y, x) = (ratio, f64::from(step % 7) - 3.0);
            assert!((atan2(y, x) - y.atan2(x)).abs() < 1e-11, "{y} {x}");
        }
    }

    #[test]
    fn a_wrapped_angle_lies_within_half_a_turn() {
        assert!((wrap(TAU * 3.0 + 1.0) - 1.0).abs() < 1e-9);
        assert!((wrap(PI + 0.5) - (0.5 - PI)).abs() < 1e-9);
    }
}
