//! Relations between the settings of a differential or omni machine.

use super::{Config, Order};
use crate::Motion;

impl Config {
    /// Returns the pairs of settings of a differential or omni machine of which the first must not
    /// exceed the second, with the reason. For an Ackermann machine one of each pair is NaN.
    pub(super) fn twist_orders(&self) -> [Order; 12] {
        let Self { machine, envelope, manoeuvre, .. } = self;
        let is_twist = machine.motion != Motion::Ackermann;
        // 1.2 as `f32` is above 1.2.
        let rounded = |number: f32| libm::round(f64::from(number) * 1e6) / 1e6;
        let real = |number: f32| if is_twist { rounded(number) } else { f64::NAN };
        let speed = ("envelope.speed_max_m_per_s", real(envelope.speed_max));
        let yaw = ("envelope.yaw_rate_max_rad_per_s", real(envelope.yaw_rate_max));
        let wheel = ("machine.wheel_speed_max_m_per_s", real(machine.wheel_speed_max));
        let slope = real(envelope.speed_bound_slope);
        let stop_turn = ("manoeuvre.yaw_deceleration_rad_per_s2", real(manoeuvre.yaw_deceleration));
        let order = |(lower, low), (upper, high), reason| (lower, low, upper, high, reason);
        [
            order(
                ("envelope.reverse_speed_max_m_per_s", real(envelope.reverse_speed_max)),
                speed,
                "the bound by the loop age is a share of the top speed",
            ),
            order(
                ("envelope.sideways_speed_max_m_per_s", real(envelope.sideways_speed_max)),
                speed,
                "the bound by the loop age is a share of the top speed",
            ),
            order(speed, wheel, "the wheels cannot turn so fast"),
            order(
                ("envelope.yaw_rate_max as m/s of a wheel", yaw.1 * f64::from(machine.lever())),
                wheel,
                "the wheels cannot turn the machine so fast on the spot",
            ),
            order(
                ("envelope.acceleration_m_per_s2", real(envelope.acceleration)),
                ("machine.acceleration_max_m_per_s2", real(machine.acceleration_max)),
                "the drive cannot follow",
            ),
            order(
                ("envelope.speed_bound_slope_m_per_s2", slope),
                ("envelope.deceleration_m_per_s2", real(envelope.deceleration)),
                "the speed could not follow its bound",
            ),
            order(
                ("envelope.speed_bound_slope as rad/s²", slope * yaw.1 / speed.1),
                ("envelope.yaw_deceleration_rad_per_s2", real(envelope.yaw_deceleration)),
                "the yaw rate could not follow its bound",
            ),
            order(
                stop_turn,
                (
                    "manoeuvre.yaw_deceleration_emergency_rad_per_s2",
                    real(manoeuvre.yaw_deceleration_emergency),
                ),
                "an emergency stop must brake at least as hard",
            ),
            order(
                (
                    "manoeuvre.deceleration as rad/s² at full yaw rate",
                    real(manoeuvre.deceleration) * yaw.1 / speed.1,
                ),
                stop_turn,
                "a turn would make a stop from the top speed longer",
            ),
            order(
                (
                    "manoeuvre.deceleration_emergency as rad/s² at full yaw rate",
                    real(manoeuvre.deceleration_emergency) * yaw.1 / speed.1,
                ),
                (
                    "manoeuvre.yaw_deceleration_emergency_rad_per_s2",
                    real(manoeuvre.yaw_deceleration_emergency),
                ),
                "a turn would make an emergency stop from the top speed longer",
            ),
            order(
                ("manoeuvre.standing_speed x 4", 4.0 * real(manoeuvre.standing_speed)),
                speed,
                "a machine at its top speed would almost stand",
            ),
            order(
                ("manoeuvre.standing_yaw_rate x 4", 4.0 * real(manoeuvre.standing_yaw_rate)),
                yaw,
                "a machine that turns as fast as it may would almost stand",
            ),
        ]
    }
}
