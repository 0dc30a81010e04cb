use std::fmt;
use std::time::Duration;

/// Limits of a sent signal's value, in its unit, and of the value's rate of change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Limits {
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Maximum change away from zero per second; may be infinite.
    pub(crate) rate_up_max: f64,
    /// Maximum change towards zero per second; may be infinite.
    pub(crate) rate_down_max: f64,
}

impl Limits {
    /// Returns the value nearest to `target` that may follow `last` after `elapsed` by the rates;
    /// `min` and `max` have precedence over the rates.
    pub(crate) fn next(&self, target: f64, last: f64, elapsed: Duration) -> f64 {
        // Infinity times zero is not a number.
        let within = |rate: f64| if rate.is_finite() { rate * elapsed.as_secs_f64() } else { rate };
        let (up, down) = (within(self.rate_up_max), within(self.rate_down_max));
        // Beyond zero, the way leads up.
        let (lowest, highest) = match last {
            last if last > 0.0 => ((last - down).max(-up), last + up),
            last if last < 0.0 => (last - up, (last + down).min(up)),
            _ => (-up, up),
        };
        target.clamp(lowest, highest).clamp(self.min, self.max)
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.min, self.max)?;
        match (self.rate_up_max, self.rate_down_max) {
            (up, down) if up.is_infinite() && down.is_infinite() => Ok(()),
            (up, down) if up == down => write!(f, ", at most {up}/s"),
            (up, down) if down.is_infinite() => write!(f, ", at most {up}/s up"),
            (up, down) if up.is_infinite() => write!(f, ", at most {down}/s down"),
            (up, down) => write!(f, ", at most {up}/s up and {down}/s down"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TORQUE: Limits =
        Limits { min: -1500.0, max: 1500.0, rate_up_max: 1500.0, rate_down_max: 2500.0 };
    const STEP: Duration = Duration::from_millis(10);

    #[test]
    fn a_torque_rises_and_falls_no_faster_than_its_rates() {
        let next = |target, last| TORQUE.next(target, last, STEP);
        assert_eq!(next(1500.0, 0.0), 15.0);
        assert_eq!(next(-1500.0, 0.0), -15.0);
        assert_eq!(next(0.0, 1000.0), 975.0);
        assert_eq!(next(0.0, -1000.0), -975.0);
        assert_eq!(next(-1500.0, 5.0), -15.0, "through zero at the lower rate");
        assert_eq!(next(9e9, 1499.0), 1500.0);
        let free = Limits { rate_up_max: f64::INFINITY, rate_down_max: f64::INFINITY, ..TORQUE };
        assert_eq!(free.next(700.0, -700.0, Duration::ZERO), 700.0);
    }

    proptest! {
        #[test]
        fn limits_hold_for_any_target(target in -1e4..1e4, last in -1500.0..1500.0) {
            let next = TORQUE.next(target, last, STEP);
            prop_assert!((-1500.0..=1500.0).contains(&next));
            prop_assert!(next.abs() - f64::abs(last) <= 15.0 + 1e-9);
            prop_assert!((next - last).abs() <= 25.0 + 1e-9 || next.signum() != last.signum());
        }
    }
}
