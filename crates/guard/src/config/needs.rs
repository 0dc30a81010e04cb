//! Settings that a kind of machine needs, and those that it does not have.

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

/// Kinds of machines that need a setting.
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
