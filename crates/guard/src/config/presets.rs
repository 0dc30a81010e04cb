//! Complete settings of known machines.

use super::{Characteristics, Config, Envelope, Manoeuvre};
use crate::Motion;

impl Config {
    /// Returns the settings of the test track's car, which are complete.
    pub fn car() -> Self {
        Self {
            machine: Characteristics {
                wheelbase: 2.6,
                steering_angle_max: 0.52,
                deceleration_max: 8.0,
                acceleration_max: 4.2,
                mass: 1_400.0,
                ..Characteristics::default()
            },
            envelope: Envelope {
                speed_max: 15.0,
                reverse_speed_max: 4.0,
                acceleration: 4.2,
                deceleration: 8.0,
                lateral_acceleration: 6.0,
                ..Envelope::default()
            },
            manoeuvre: Manoeuvre {
                deceleration_begin: 1.5,
                deceleration: 4.0,
                deceleration_emergency: 8.0,
                ..Manoeuvre::default()
            },
            ..Self::default()
        }
    }

    /// Returns the settings of a simulated delivery robot on two wheels: differential, complete.
    pub fn robot() -> Self {
        Self {
            machine: Characteristics {
                motion: Motion::Differential,
                track_width: 0.5,
                length: 0.8,
                wheel_speed_max: 1.8,
                deceleration_max: 2.5,
                acceleration_max: 1.5,
                mass: 60.0,
                ..Characteristics::default()
            },
            envelope: Envelope {
                speed_max: 1.5,
                reverse_speed_max: 0.5,
                yaw_rate_max: 1.0,
                speed_bound_slope: 0.8,
                acceleration: 0.8,
                deceleration: 1.0,
                jerk: 3.0,
                yaw_acceleration: 2.0,
                yaw_deceleration: 3.0,
                lateral_acceleration: 1.0,
                ..Envelope::default()
            },
            manoeuvre: Manoeuvre {
                deceleration_begin: 0.5,
                deceleration: 1.0,
                jerk: 3.0,
                deceleration_emergency: 2.0,
                yaw_deceleration: 2.0,
                yaw_deceleration_emergency: 4.0,
                slope_max: 0.1,
                ..Manoeuvre::default()
            },
            ..Self::default()
        }
    }

    /// Returns the settings of a simulated rover on tracks: differential, complete.
    pub fn rover() -> Self {
        Self {
            machine: Characteristics {
                motion: Motion::Differential,
                track_width: 0.8,
                length: 1.2,
                wheel_speed_max: 3.0,
                deceleration_max: 4.0,
                acceleration_max: 2.0,
                mass: 300.0,
                ..Characteristics::default()
            },
            envelope: Envelope {
                speed_max: 2.0,
                reverse_speed_max: 1.0,
                yaw_rate_max: 0.8,
                speed_bound_slope: 1.0,
                acceleration: 1.0,
                deceleration: 1.5,
                jerk: 4.0,
                yaw_acceleration: 1.5,
                yaw_deceleration: 2.5,
                lateral_acceleration: 1.5,
                ..Envelope::default()
            },
            manoeuvre: Manoeuvre {
                deceleration_begin: 0.8,
                deceleration: 2.0,
                jerk: 4.0,
                deceleration_emergency: 3.0,
                yaw_deceleration: 2.0,
                yaw_deceleration_emergency: 4.0,
                slope_max: 0.2,
                ..Manoeuvre::default()
            },
            ..Self::default()
        }
    }

    /// Returns the settings of a simulated cart on mecanum wheels: omni, complete.
    pub fn cart() -> Self {
        Self {
            machine: Characteristics {
                motion: Motion::Omni,
                track_width: 0.6,
                length: 0.8,
                wheel_speed_max: 2.0,
                deceleration_max: 2.0,
                acceleration_max: 1.2,
                mass: 150.0,
                ..Characteristics::default()
            },
            envelope: Envelope {
                speed_max: 1.2,
                reverse_speed_max: 0.5,
                sideways_speed_max: 0.5,
                yaw_rate_max: 0.8,
                speed_bound_slope: 0.6,
                acceleration: 0.6,
                deceleration: 1.0,
                jerk: 3.0,
                yaw_acceleration: 1.5,
                yaw_deceleration: 2.5,
                lateral_acceleration: 0.8,
                ..Envelope::default()
            },
            manoeuvre: Manoeuvre {
                deceleration_begin: 0.5,
                deceleration: 1.0,
                jerk: 3.0,
                deceleration_emergency: 1.5,
                yaw_deceleration: 2.0,
                yaw_deceleration_emergency: 4.0,
                slope_max: 0.05,
                ..Manoeuvre::default()
            },
            ..Self::default()
        }
    }
}
