use serde::{Deserialize, Serialize};

/// Motion of a machine over the ground: the set point of a machine that turns by its wheels' speeds
/// (*differential*) or also drives sideways (*omni*), or the motion that it reports.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Twist {
    /// Speed along the machine in m/s, forwards positive.
    pub forward: f32,
    /// Speed across the machine in m/s, left positive; 0 for a differential machine.
    pub sideways: f32,
    /// Rate of turn in rad/s, counterclockwise (left) positive.
    pub yaw_rate: f32,
}

impl Twist {
    /// No motion.
    pub const ZERO: Self = Self { forward: 0.0, sideways: 0.0, yaw_rate: 0.0 };
    /// Maximum speed in either direction in m/s: faster than any machine driven by sight.
    pub const SPEED_MOST: f32 = 150.0;
    /// Maximum yaw rate in rad/s: sixteen turns a second.
    pub const YAW_RATE_MOST: f32 = 100.0;

    /// Returns this twist with every value in range: what is not a number becomes 0.
    pub fn sane(self) -> Self {
        let within = |value: f32, most: f32| match value.is_nan() {
            true => 0.0,
            false => value.clamp(-most, most),
        };
        Self {
            forward: within(self.forward, Self::SPEED_MOST),
            sideways: within(self.sideways, Self::SPEED_MOST),
            yaw_rate: within(self.yaw_rate, Self::YAW_RATE_MOST),
        }
    }

    /// Returns this twist times `share`, on the same arc.
    #[must_use]
    pub fn scaled(self, share: f32) -> Self {
        Self {
            forward: self.forward * share,
            sideways: self.sideways * share,
            yaw_rate: self.yaw_rate * share,
        }
    }

    /// Returns the speed over the ground in m/s, without direction.
    pub fn speed(self) -> f32 {
        libm::hypotf(self.forward, self.sideways)
    }

    /// Returns this twist slowed on its arc for `seconds` by at most `deceleration`, m/s², and
    /// `yaw_deceleration`, rad/s².
    ///
    /// The part that needs more time sets the pace, so that speed and yaw rate reach 0 together.
    #[must_use]
    pub fn slowed(self, deceleration: f32, yaw_deceleration: f32, seconds: f32) -> Self {
        let left = |value: f32, rate: f32| {
            let value = value.abs();
            if value > 0.0 { (1.0 - rate * seconds / value).max(0.0) } else { 0.0 }
        };
        let share = left(self.speed(), deceleration).max(left(self.yaw_rate, yaw_deceleration));
        self.scaled(share)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bits_of_a_twist_become_sane(bits: [u32; 3]) {
            let [forward, sideways, yaw_rate] = bits.map(f32::from_bits);
            let sane = Twist { forward, sideways, yaw_rate }.sane();
            prop_assert!(sane.forward.abs() <= Twist::SPEED_MOST);
            prop_assert!(sane.sideways.abs() <= Twist::SPEED_MOST);
            prop_assert!(sane.yaw_rate.abs() <= Twist::YAW_RATE_MOST);
            prop_assert_eq!(sane.sane(), sane);
        }

        /// The curvature stays, and no part falls faster than its deceleration.
        #[test]
        fn a_twist_slows_on_its_arc(
            forward in -3.0_f32..3.0, sideways in -3.0_f32..3.0, yaw_rate in -3.0_f32..3.0,
        ) {
            let begun = Twist { forward, sideways, yaw_rate };
            let mut twist = begun;
            for _ in 0..400 {
                let next = twist.slowed(1.0, 2.0, 0.01);
                prop_assert!(twist.speed() - next.speed() <= 0.01 + 1e-5);
                prop_assert!((twist.yaw_rate - next.yaw_rate).abs() <= 0.02 + 1e-5);
                let off = next.yaw_rate * begun.forward - next.forward * begun.yaw_rate;
                prop_assert!(off.abs() < 1e-4, "{off}");
                twist = next;
            }
            // 4.24 m/s take 4.24 s, and 3 rad/s 1.5 s.
            prop_assert!(twist.speed() <= (begun.speed() - 4.0).max(0.0) + 1e-3);
        }
    }
}
