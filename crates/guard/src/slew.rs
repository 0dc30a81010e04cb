use serde::{Deserialize, Serialize};

/// Way of one set point towards its target, within rates.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Slew {
    /// Change per second in the newest step.
    rate: f32,
}

/// Maximum rates of a set point, per second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Rates {
    /// Maximum change away from 0, per second.
    pub(crate) rise: f32,
    /// Maximum change towards 0, per second.
    pub(crate) fall: f32,
    /// Maximum growth of either rate, per second; infinite if unlimited.
    pub(crate) jerk: f32,
}

impl Slew {
    /// Returns the value after `seconds` on the way from `last` to `target`.
    ///
    /// The rate grows by the jerk and may end at once, so that a set point never passes its target
    /// and never goes on in a direction that is no longer wanted.
    pub(crate) fn step(&mut self, rates: Rates, last: f32, target: f32, seconds: f32) -> f32 {
        let gap = (target - last).abs();
        if gap == 0.0 || seconds <= 0.0 {
            self.rate = 0.0;
            return last;
        }
        let direction = (target - last).signum();
        let most = if last * direction < 0.0 { rates.fall } else { rates.rise };
        let before = if self.rate * direction > 0.0 { self.rate.abs() } else { 0.0 };
        let rate = most
            .min(before + rates.jerk * seconds)
            .min(approach(gap, rates.jerk, seconds))
            .min(gap / seconds);
        self.rate = direction * rate;
        if rate * seconds >= gap { target } else { last + self.rate * seconds }
    }

    /// Sets the present rate to that of the step from `last` to `next`, which further limits
    /// changed.
    pub(crate) fn made(&mut self, last: f32, next: f32, seconds: f32) {
        self.rate = if seconds > 0.0 { (next - last) / seconds } else { 0.0 };
    }
}

/// Returns the rate from which the jerk leads to 0 exactly at the target: after this step, rate² /
/// (2 jerk) is left.
fn approach(gap: f32, jerk: f32, seconds: f32) -> f32 {
    if jerk.is_infinite() {
        return gap / seconds;
    }
    // As a difference of the root and `seconds`, it would be 0 for the last of the gap.
    2.0 * gap / (libm::sqrtf(seconds * seconds + 2.0 * gap / jerk) + seconds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RATES: Rates = Rates { rise: 1.0, fall: 2.0, jerk: 5.0 };

    proptest! {
        #[test]
        fn a_set_point_reaches_its_target_within_its_rates(
            from in -2.0_f32..2.0, target in -2.0_f32..2.0,
        ) {
            let (mut slew, mut value, mut rate) = (Slew::default(), from, 0.0_f32);
            for _ in 0..600 {
                let next = slew.step(RATES, value, target, 0.01);
                let now = (next - value) / 0.01;
                let most = if value * (target - from) < 0.0 { 2.0 } else { 1.0 };
                prop_assert!(now.abs() <= most + 1e-3, "{now}");
                prop_assert!(now.abs() <= rate.abs() + 0.05 + 1e-3, "{now} after {rate}");
                prop_assert!((next - target) * (from - target) >= -1e-6, "passed");
                (value, rate) = (next, now);
            }
            prop_assert_eq!(value, target);
        }
    }

    #[test]
    fn a_released_set_point_rises_no_more() {
        let (mut slew, mut value) = (Slew::default(), 0.0);
        (0..30).for_each(|_| value = slew.step(RATES, value, 2.0, 0.01));
        let next = slew.step(RATES, value, 0.0, 0.01);
        assert!(next < value, "{next} after {value}");
    }
}
