use serde::{Deserialize, Serialize};

use crate::set::numbered;
use crate::{Actions, Axes, Motion, Twist};

/// Set points of a machine's motion, parking brake, axes and actions.
///
/// Steering, pedals and gear move an Ackermann machine, [`twist`](Self::twist) any other; a guard
/// zeroes the part that is not its machine's.
///
/// Arbitrary values are harmless after [`sane`](Self::sane).
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Controls {
    /// Share of the steering range, -1 (full right) to 1 (full left).
    pub steering: f32,
    /// Share of full acceleration, 0 to 1.
    pub throttle: f32,
    /// Share of full braking, 0 to 1.
    pub brake: f32,
    /// Direction in which throttle drives.
    pub gear: Gear,
    /// `true` if the parking brake holds.
    pub parking_brake: bool,
    /// Speed and yaw rate that a differential or omni machine holds.
    pub twist: Twist,
    /// Set points of the declared axes.
    pub axes: Axes,
    /// Declared actions that are on, such as lights and horn.
    pub actions: Actions,
}

numbered! {
    /// Direction in which throttle drives.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum Gear {
        /// Forwards.
        #[default]
        Drive = 0,
        /// Backwards.
        Reverse = 1,
    }
}

impl Controls {
    /// Returns these controls with every value in range. NaN becomes 0, except for the brake, where
    /// it becomes 1.
    pub fn sane(self) -> Self {
        let or = |value: f32, otherwise: f32| if value.is_nan() { otherwise } else { value };
        Self {
            steering: or(self.steering, 0.0).clamp(-1.0, 1.0),
            throttle: or(self.throttle, 0.0).clamp(0.0, 1.0),
            brake: or(self.brake, 1.0).clamp(0.0, 1.0),
            twist: self.twist.sane(),
            axes: self.axes.sane(),
            ..self
        }
    }
}

impl Controls {
    /// Returns these controls without the set points that a machine of this kind does not have.
    #[must_use]
    pub fn of(self, motion: Motion) -> Self {
        let Self { parking_brake, twist, axes, actions, .. } = self;
        match motion {
            Motion::Ackermann => Self { twist: Twist::ZERO, ..self },
            Motion::Differential => {
                let twist = Twist { sideways: 0.0, ..twist };
                Self { parking_brake, twist, axes, actions, ..Self::default() }
            }
            Motion::Omni => Self { parking_brake, twist, axes, actions, ..Self::default() },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bits_become_sane(steering: u32, throttle: u32, brake: u32) {
            let [steering, throttle, brake] = [steering, throttle, brake].map(f32::from_bits);
            let controls = Controls { steering, throttle, brake, gear: Gear::Reverse, ..Controls::default() };
            let sane = controls.sane();
            prop_assert!((-1.0..=1.0).contains(&sane.steering));
            prop_assert!((0.0..=1.0).contains(&sane.throttle) && (0.0..=1.0).contains(&sane.brake));
            prop_assert_eq!(sane.gear, Gear::Reverse);
            prop_assert_eq!(sane.sane(), sane);
        }
    }

    #[test]
    fn a_brake_that_is_not_a_number_is_pressed() {
        let controls = Controls { throttle: f32::NAN, brake: f32::NAN, ..Controls::default() };
        assert_eq!((controls.sane().throttle, controls.sane().brake), (0.0, 1.0));
    }
}
