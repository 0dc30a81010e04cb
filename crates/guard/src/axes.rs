use serde::{Deserialize, Serialize};

use crate::description::{AXES_MAX, AxisForm, AxisRule, AxisStop};

/// A number for each axis of a machine in the axis's unit: set points, or measured positions and
/// speeds. NaN where there is none.
///
/// Two are equal if all numbers have the same bits, so that NaN equals NaN.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Axes(pub [f32; AXES_MAX]);

impl Axes {
    /// No number for any axis.
    pub const NONE: Self = Self([f32::NAN; AXES_MAX]);

    /// Returns these numbers with every one that is not finite replaced by NaN.
    #[must_use]
    pub fn sane(self) -> Self {
        Self(self.0.map(|number| if number.is_finite() { number } else { f32::NAN }))
    }
}

impl Default for Axes {
    fn default() -> Self {
        Self::NONE
    }
}

impl PartialEq for Axes {
    fn eq(&self, other: &Self) -> bool {
        self.0.map(f32::to_bits) == other.0.map(f32::to_bits)
    }
}

impl AxisRule {
    /// Returns the set point of a step of `seconds` after `last`: it approaches the wanted one, or
    /// that of the rule for a stop, within the rule's limits and rate. NaN if the axis has no set
    /// point.
    ///
    /// `wanted` is a person's set point while one drives; `None` during a stop and while the
    /// machine is held. `measured` is the reported position of the axis, NaN if unknown: a position
    /// axis starts from there, so that it does not jump when it is first asked to move.
    pub(crate) fn step(&self, last: f32, wanted: Option<f32>, measured: f32, seconds: f32) -> f32 {
        if wanted.is_none() && last.is_nan() {
            // Nobody moved it, so a stop does not either.
            return f32::NAN;
        }
        let target = match (wanted, self.on_stop) {
            (Some(wanted), _) if wanted.is_finite() => wanted,
            (Some(_), _) => return self.without_set_point(last, seconds),
            (None, AxisStop::Hold) => return last,
            (None, AxisStop::Zero) => 0.0,
            (None, AxisStop::Value(value)) => value,
            (None, AxisStop::Release) => return f32::NAN,
        };
        let target = target.clamp(self.low, self.high);
        let start = match self.form {
            _ if last.is_finite() => last,
            AxisForm::Speed => 0.0,
            AxisForm::Position if measured.is_finite() => measured.clamp(self.low, self.high),
            AxisForm::Position => target,
        };
        self.approach(start, target, seconds)
    }

    /// Returns the set point while a person drives and gives this axis none: a position stays, a
    /// speed goes to 0.
    fn without_set_point(&self, last: f32, seconds: f32) -> f32 {
        match self.form {
            AxisForm::Position => last,
            AxisForm::Speed if last.is_finite() => self.approach(last, 0.0, seconds),
            AxisForm::Speed => f32::NAN,
        }
    }

    fn approach(&self, from: f32, target: f32, seconds: f32) -> f32 {
        let most = self.rate * seconds;
        if (target - from).abs() <= most { target } else { from + most.copysign(target - from) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP: f32 = 0.01;

    fn boom(form: AxisForm, on_stop: AxisStop) -> AxisRule {
        AxisRule { form, low: -1.0, high: 2.0, rate: 0.5, on_stop }
    }

    #[test]
    fn a_position_starts_where_the_axis_is() {
        let rule = boom(AxisForm::Position, AxisStop::Hold);
        let first = rule.step(f32::NAN, Some(2.0), 0.3, STEP);
        assert!((first - 0.305).abs() < 1e-6, "{first}");
        assert_eq!(rule.step(f32::NAN, Some(9.0), f32::NAN, STEP), 2.0, "its position is unknown");
        assert!(rule.step(f32::NAN, None, 0.3, STEP).is_nan(), "a stop moves nothing");
    }

    #[test]
    fn a_stop_holds_zeroes_returns_or_releases() {
        let last = 1.0;
        let stopped = |on_stop| boom(AxisForm::Position, on_stop).step(last, None, 1.0, STEP);
        assert_eq!(stopped(AxisStop::Hold), last);
        assert!((stopped(AxisStop::Zero) - 0.995).abs() < 1e-6);
        assert!((stopped(AxisStop::Value(2.0)) - 1.005).abs() < 1e-6);
        assert!(stopped(AxisStop::Release).is_nan());
    }

    #[test]
    fn a_speed_without_a_set_point_ends() {
        let rule = boom(AxisForm::Speed, AxisStop::Zero);
        let mut speed = 0.5;
        for _ in 0..101 {
            speed = rule.step(speed, Some(f32::NAN), f32::NAN, STEP);
        }
        assert_eq!(speed, 0.0);
        assert_eq!(
            boom(AxisForm::Position, AxisStop::Hold).step(0.5, Some(f32::NAN), 0.0, STEP),
            0.5
        );
    }

    proptest! {
        /// For any set point of a person and any reported position, NaN and infinity included, the
        /// set point of one fixed axis stays in its range and within its rate, or there is none.
        #[test]
        fn a_set_point_keeps_range_and_rate(
            bits: [u32; 40], measured: u32, is_speed: bool, seconds in 0.0_f32..0.05,
            stop in 0..4_u8,
        ) {
            let on_stop = match stop {
                0 if !is_speed => AxisStop::Hold,
                1 => AxisStop::Value(0.0),
                2 => AxisStop::Release,
                _ => AxisStop::Zero,
            };
            let form = if is_speed { AxisForm::Speed } else { AxisForm::Position };
            let rule = boom(form, on_stop);
            let mut last = f32::NAN;
            for bits in bits {
                let wanted = (bits % 3 != 0).then(|| f32::from_bits(bits.rotate_left(7)));
                let next = rule.step(last, wanted, f32::from_bits(measured), seconds);
                prop_assert!(next.is_nan() || (rule.low..=rule.high).contains(&next), "{next}");
                if next.is_finite() && last.is_finite() {
                    prop_assert!((next - last).abs() <= rule.rate * seconds + 1e-6);
                }
                last = next;
            }
        }
    }
}
