//! Settings that a kind of machine needs, those that it does not have, and their relations.

use super::{Config, Order};
use crate::{ConfigError, Motion};

/// Checks whether a setting is missing, or belongs to other kinds of machines.
///
/// Returns `None` if the value is to be compared with its bounds, otherwise the fault, if any.
pub(super) fn check(
    setting: &'static str,
    value: f64,
    motion: Motion,
) -> Option<Option<ConfigError>> {
    let (_, of, purpose) = *NEEDS.iter().find(|(name, ..)| *name == setting)?;
    match (of.includes(motion), value.is_nan()) {
        (true, true) => Some(Some(ConfigError::Missing { setting, purpose })),
        (true, false) => None,
        (false, true) => Some(None),
        (false, false) => Some(Some(ConfigError::Foreign { setting, motion })),
    }
}

/// Kinds of machines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Of {
    All,
    Ackermann,
    /// Differential and omni.
    Twist,
    Omni,
}

impl Of {
    fn includes(self, motion: Motion) -> bool {
        match self {
            Self::All => true,
            Self::Ackermann => motion == Motion::Ackermann,
            Self::Twist => motion != Motion::Ackermann,
            Self::Omni => motion == Motion::Omni,
        }
    }
}

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

/// Settings without a default: name, kinds that need it, meaning and use.
const NEEDS: [(&str, Of, &str); 23] = [
    (
        "machine.wheelbase_m",
        Of::Ackermann,
        "distance between the axles in m; it bounds the steering by the speed",
    ),
    (
        "machine.steering_angle_max_rad",
        Of::Ackermann,
        "angle of the road wheels at full lock in rad; it turns shares into angles",
    ),
    (
        "machine.track_width_m",
        Of::Twist,
        "distance between left and right wheels or tracks in m; it gives the outer wheel's speed",
    ),
    (
        "machine.length_m",
        Of::Twist,
        "length of the machine in m; a turn swings its ends, and moves an omni machine's wheels",
    ),
    (
        "machine.wheel_speed_max_m_per_s",
        Of::Twist,
        "top speed of one wheel or track in m/s; speed and yaw rate share it",
    ),
    (
        "machine.deceleration_max_m_per_s2",
        Of::All,
        "hardest braking in m/s², measured; no stop asks for more, no speed falls faster",
    ),
    (
        "machine.acceleration_max_m_per_s2",
        Of::All,
        "hardest acceleration in m/s²; it decides whether a dead-man input is required",
    ),
    (
        "machine.mass_kg",
        Of::All,
        "mass with the heaviest load in kg; it decides whether a dead-man input is required",
    ),
    (
        "envelope.speed_max_m_per_s",
        Of::All,
        "top speed forwards in m/s that a person may drive; start slow",
    ),
    (
        "envelope.reverse_speed_max_m_per_s",
        Of::All,
        "top speed backwards in m/s that a person may drive",
    ),
    (
        "envelope.sideways_speed_max_m_per_s",
        Of::Omni,
        "top speed to either side in m/s that a person may drive",
    ),
    (
        "envelope.yaw_rate_max_rad_per_s",
        Of::Twist,
        "fastest turn in rad/s that a person may drive, on the spot too",
    ),
    ("envelope.acceleration_m_per_s2", Of::All, "acceleration in m/s² that a person may drive"),
    ("envelope.deceleration_m_per_s2", Of::All, "deceleration in m/s² that a person may drive"),
    (
        "envelope.jerk_m_per_s3",
        Of::Twist,
        "rise of acceleration and deceleration in m/s³; it keeps loads in place",
    ),
    (
        "envelope.yaw_acceleration_rad_per_s2",
        Of::Twist,
        "rise of the yaw rate in rad/s² that a person may drive",
    ),
    (
        "envelope.yaw_deceleration_rad_per_s2",
        Of::Twist,
        "fall of the yaw rate in rad/s² that a person may drive",
    ),
    (
        "envelope.lateral_acceleration_m_per_s2",
        Of::All,
        "acceleration across in m/s² at which the machine neither tips nor slides",
    ),
    (
        "manoeuvre.deceleration_begin_m_per_s2",
        Of::All,
        "deceleration in m/s² with which a stop begins",
    ),
    ("manoeuvre.deceleration_m_per_s2", Of::All, "deceleration in m/s² that a stop reaches"),
    (
        "manoeuvre.deceleration_emergency_m_per_s2",
        Of::All,
        "deceleration in m/s² of an emergency stop, at once",
    ),
    (
        "manoeuvre.yaw_deceleration_rad_per_s2",
        Of::Twist,
        "deceleration in rad/s² of a turn in a stop",
    ),
    (
        "manoeuvre.yaw_deceleration_emergency_rad_per_s2",
        Of::Twist,
        "deceleration in rad/s² of a turn in an emergency stop, at once",
    ),
];
