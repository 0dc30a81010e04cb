//! Settings of a guard: its latency budget, machine, envelope and manoeuvre.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Bounded;

use crate::{ConfigError, Motion};

mod needs;
mod orders;
mod presets;

/// Settings of a guard; docs/guard.md explains each value.
///
/// Numbers that only the owner of a machine knows have no default: they are NaN until set, and
/// [`faults`](Self::faults) names them. [`Config::car`] is complete.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Maximum ages and timeouts.
    pub latency: Latency,
    /// Capabilities of the machine.
    pub machine: Characteristics,
    /// Limits of the commands that a person may give.
    pub envelope: Envelope,
    /// Parameters of the stop that brings the machine to a standstill.
    pub manoeuvre: Manoeuvre,
    /// Evidence that a person is present.
    pub presence: Presence,
}

/// Latency budget: maximum ages, and timeouts after silence.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Latency {
    /// Loop age up to which the top speed is allowed; above it the speed bound falls, as in
    /// StVFernLV.
    #[serde(rename = "loop_age_full_ms", with = "millis")]
    pub loop_age_full: Duration,
    /// Fall of the loop age that is needed before the speed bound rises.
    #[serde(rename = "loop_age_hysteresis_ms", with = "millis")]
    pub loop_age_hysteresis: Duration,
    /// Age of the newest picture seen above which the machine is stopped.
    #[serde(rename = "loop_age_max_ms", with = "millis")]
    pub loop_age_max: Duration,
    /// Maximum transit time of a picture to the person; an older picture is not shown.
    #[serde(rename = "picture_age_max_ms", with = "millis")]
    pub picture_age_max: Duration,
    /// Maximum transit time of a command that counts as fresh.
    #[serde(rename = "command_age_max_ms", with = "millis")]
    pub command_age_max: Duration,
    /// Time without a fresh command after which the machine is stopped.
    #[serde(rename = "command_timeout_ms", with = "millis")]
    pub command_timeout: Duration,
    /// Maximum transit time of an act other than an emergency stop.
    #[serde(rename = "act_age_max_ms", with = "millis")]
    pub act_age_max: Duration,
    /// Time without a proposal after which the machine is stopped.
    #[serde(rename = "proposal_timeout_ms", with = "millis")]
    pub proposal_timeout: Duration,
    /// Time without the machine's state after which it is stopped.
    #[serde(rename = "machine_timeout_ms", with = "millis")]
    pub machine_timeout: Duration,
    /// Time between two steps of the guard after which it stops the machine. With the default, a
    /// late picture stops the machine within 100 ms, one step included.
    #[serde(rename = "step_gap_max_ms", with = "millis")]
    pub step_gap_max: Duration,
}

impl Default for Latency {
    fn default() -> Self {
        Self {
            loop_age_full: Duration::from_millis(200),
            loop_age_hysteresis: Duration::from_millis(20),
            loop_age_max: Duration::from_millis(500),
            picture_age_max: Duration::from_millis(200),
            command_age_max: Duration::from_millis(250),
            command_timeout: Duration::from_millis(300),
            act_age_max: Duration::from_millis(1_000),
            proposal_timeout: Duration::from_millis(30),
            machine_timeout: Duration::from_millis(30),
            step_gap_max: Duration::from_millis(80),
        }
    }
}

/// Capabilities of a machine, from its maker or from a measurement. Lengths, speeds, accelerations
/// and mass have no default.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Characteristics {
    /// Kind of motion: `ackermann`, the default, `differential` or `omni`.
    pub motion: Motion,
    /// Wheelbase of an Ackermann machine, m.
    #[serde(rename = "wheelbase_m")]
    pub wheelbase: f32,
    /// Angle of an Ackermann machine's road wheels at full lock, rad.
    #[serde(rename = "steering_angle_max_rad")]
    pub steering_angle_max: f32,
    /// Distance between the left and the right wheels or tracks of a differential or omni machine,
    /// m.
    #[serde(rename = "track_width_m")]
    pub track_width: f32,
    /// Length of a differential or omni machine, m.
    #[serde(rename = "length_m")]
    pub length: f32,
    /// Top speed of one wheel or track of a differential or omni machine, m/s.
    #[serde(rename = "wheel_speed_max_m_per_s")]
    pub wheel_speed_max: f32,
    /// Deceleration at full brake, m/s².
    #[serde(rename = "deceleration_max_m_per_s2")]
    pub deceleration_max: f32,
    /// Acceleration at full throttle, m/s².
    #[serde(rename = "acceleration_max_m_per_s2")]
    pub acceleration_max: f32,
    /// Time within which the drive must respond to throttle or a set point.
    #[serde(rename = "drive_answer_ms", with = "millis")]
    pub drive_answer: Duration,
    /// Mass with the heaviest load, kg.
    #[serde(rename = "mass_kg")]
    pub mass: f32,
}

impl Default for Characteristics {
    fn default() -> Self {
        Self {
            motion: Motion::Ackermann,
            wheelbase: f32::NAN,
            steering_angle_max: f32::NAN,
            track_width: f32::NAN,
            length: f32::NAN,
            wheel_speed_max: f32::NAN,
            deceleration_max: f32::NAN,
            acceleration_max: f32::NAN,
            drive_answer: Duration::from_millis(800),
            mass: f32::NAN,
        }
    }
}

impl Characteristics {
    /// Returns the speed of a wheel in m/s for each rad/s of turn.
    pub(crate) fn lever(&self) -> f32 {
        match self.motion {
            Motion::Ackermann | Motion::Differential => self.track_width / 2.0,
            // Wheels at the corners; the machine's length is not less than their distance.
            Motion::Omni => (self.track_width + self.length) / 2.0,
        }
    }
}

/// Limits of the commands that a person may give.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Envelope {
    /// Top speed forwards, m/s.
    #[serde(rename = "speed_max_m_per_s")]
    pub speed_max: f32,
    /// Top speed backwards, m/s.
    #[serde(rename = "reverse_speed_max_m_per_s")]
    pub reverse_speed_max: f32,
    /// Top speed of an omni machine to either side, m/s.
    #[serde(rename = "sideways_speed_max_m_per_s")]
    pub sideways_speed_max: f32,
    /// Maximum yaw rate of a differential or omni machine, rad/s.
    #[serde(rename = "yaw_rate_max_rad_per_s")]
    pub yaw_rate_max: f32,
    /// Rate at which the speed bound follows the loop age, m/s².
    #[serde(rename = "speed_bound_slope_m_per_s2")]
    pub speed_bound_slope: f32,
    /// Maximum acceleration, m/s².
    #[serde(rename = "acceleration_m_per_s2")]
    pub acceleration: f32,
    /// Maximum deceleration by the person, m/s².
    #[serde(rename = "deceleration_m_per_s2")]
    pub deceleration: f32,
    /// Rate at which a differential or omni machine's acceleration and deceleration rise, m/s³.
    #[serde(rename = "jerk_m_per_s3")]
    pub jerk: f32,
    /// Maximum rise of a differential or omni machine's yaw rate, rad/s².
    #[serde(rename = "yaw_acceleration_rad_per_s2")]
    pub yaw_acceleration: f32,
    /// Maximum fall of a differential or omni machine's yaw rate by the person, rad/s².
    #[serde(rename = "yaw_deceleration_rad_per_s2")]
    pub yaw_deceleration: f32,
    /// Maximum lateral acceleration, which bounds steering angle or yaw rate by the speed, m/s².
    #[serde(rename = "lateral_acceleration_m_per_s2")]
    pub lateral_acceleration: f32,
    /// Maximum lateral jerk, which bounds the steering rate by the speed, m/s³.
    #[serde(rename = "lateral_jerk_m_per_s3")]
    pub lateral_jerk: f32,
    /// Maximum steering rate of the road wheels, rad/s.
    #[serde(rename = "steering_rate_rad_per_s")]
    pub steering_rate: f32,
    /// Maximum speed for a change of gear, m/s.
    #[serde(rename = "gear_change_speed_max_m_per_s")]
    pub gear_change_speed_max: f32,
}

impl Default for Envelope {
    fn default() -> Self {
        Self {
            speed_max: f32::NAN,
            reverse_speed_max: f32::NAN,
            sideways_speed_max: f32::NAN,
            yaw_rate_max: f32::NAN,
            speed_bound_slope: 2.0,
            acceleration: f32::NAN,
            deceleration: f32::NAN,
            jerk: f32::NAN,
            yaw_acceleration: f32::NAN,
            yaw_deceleration: f32::NAN,
            lateral_acceleration: f32::NAN,
            lateral_jerk: 20.0,
            steering_rate: 1.05,
            gear_change_speed_max: 0.5,
        }
    }
}

/// Parameters of the stop: how the machine is brought to a standstill and held.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Manoeuvre {
    /// Deceleration at the start of the ramp of a stop, m/s².
    #[serde(rename = "deceleration_begin_m_per_s2")]
    pub deceleration_begin: f32,
    /// Deceleration at the end of the ramp, kept until standstill, m/s².
    #[serde(rename = "deceleration_m_per_s2")]
    pub deceleration: f32,
    /// Rate at which the deceleration rises from its initial value, m/s³.
    #[serde(rename = "jerk_m_per_s3")]
    pub jerk: f32,
    /// Deceleration of an emergency stop, applied without a ramp, m/s².
    #[serde(rename = "deceleration_emergency_m_per_s2")]
    pub deceleration_emergency: f32,
    /// Deceleration of a differential or omni machine's turn, rad/s².
    #[serde(rename = "yaw_deceleration_rad_per_s2")]
    pub yaw_deceleration: f32,
    /// Deceleration of a differential or omni machine's turn in an emergency stop, rad/s².
    #[serde(rename = "yaw_deceleration_emergency_rad_per_s2")]
    pub yaw_deceleration_emergency: f32,
    /// Speed along or across below which a differential or omni machine stands, m/s.
    #[serde(rename = "standing_speed_m_per_s")]
    pub standing_speed: f32,
    /// Yaw rate below which a differential or omni machine stands, rad/s.
    #[serde(rename = "standing_yaw_rate_rad_per_s")]
    pub standing_yaw_rate: f32,
    /// Share of the service brake that holds the stationary machine, in addition to the parking
    /// brake.
    pub hold_brake: f32,
    /// Time at standstill after which the manoeuvre ends.
    #[serde(rename = "standing_ms", with = "millis")]
    pub standing: Duration,
    /// Time within which a brake must respond.
    #[serde(rename = "brake_answer_ms", with = "millis")]
    pub brake_answer: Duration,
    /// Steepest slope on which the machine is used, as a share: 0.2 is 20 %.
    pub slope_max: f32,
}

impl Default for Manoeuvre {
    fn default() -> Self {
        Self {
            deceleration_begin: f32::NAN,
            deceleration: f32::NAN,
            jerk: 5.0,
            deceleration_emergency: f32::NAN,
            yaw_deceleration: f32::NAN,
            yaw_deceleration_emergency: f32::NAN,
            standing_speed: 0.05,
            standing_yaw_rate: 0.05,
            hold_brake: 1.0,
            standing: Duration::from_millis(300),
            brake_answer: Duration::from_millis(500),
            slope_max: 0.2,
        }
    }
}

/// Evidence that a person is present.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Presence {
    /// True if driving requires a held dead-man input. If unset, derived from mass and speed
    /// ([`Config::requires_dead_man`]).
    pub dead_man_required: Option<bool>,
    /// Time after arming within which throttle must be applied; then the machine is held again.
    #[serde(rename = "arm_timeout_ms", with = "millis")]
    pub arm_timeout: Duration,
    /// Share of the throttle up to which it counts as released.
    pub throttle_dead_zone: f32,
    /// Time without any input of a person after which a driven machine at standstill is held.
    #[serde(rename = "standstill_timeout_ms", with = "millis")]
    pub standstill_timeout: Duration,
}

impl Default for Presence {
    fn default() -> Self {
        Self {
            dead_man_required: None,
            arm_timeout: Duration::from_secs(30),
            throttle_dead_zone: 0.02,
            standstill_timeout: Duration::from_secs(30),
        }
    }
}

impl Config {
    /// Checks the range of every setting, and the settings that depend on each other.
    ///
    /// # Errors
    /// [`ConfigError`] naming the first of the [`faults`](Self::faults).
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.faults().next().map_or(Ok(()), Err)
    }

    /// Returns every setting that is missing, out of range or another kind's, then every
    /// contradicting pair.
    pub fn faults(&self) -> impl Iterator<Item = ConfigError> {
        let motion = self.machine.motion;
        let bounds = self.bounds().into_iter().filter_map(move |(setting, value, min, max)| {
            let bounded = Bounded::new(setting, value, min..=max);
            needs::check(setting, value, motion)
                .unwrap_or_else(|| bounded.check().err().map(ConfigError::OutOfBounds))
        });
        let pairs = self.orders().into_iter().chain(self.twist_orders());
        // Pairs of which one is missing are not compared.
        let orders = pairs.filter_map(|(lower, low, upper, high, reason)| {
            let is_wrong = low > high;
            is_wrong.then_some(ConfigError::Contradiction { lower, low, upper, high, reason })
        });
        bounds.chain(orders)
    }

    /// Returns whether driving requires a held dead-man input.
    ///
    /// Without an explicit setting, it does if the machine, or an end of it that a turn swings,
    /// exceeds walking pace, if its drive can press a person harder than a chest withstands, or if
    /// either is not known.
    pub fn requires_dead_man(&self) -> bool {
        let Self { machine, envelope, presence, .. } = self;
        let swings = envelope.yaw_rate_max * machine.length / 2.0;
        let is_fast = envelope.speed_max > WALKING_PACE || swings > WALKING_PACE;
        let force = machine.mass * machine.acceleration_max;
        let turns = machine.motion != Motion::Ackermann;
        let is_known = !(envelope.speed_max.is_nan() || force.is_nan() || turns && swings.is_nan());
        presence.dead_man_required.unwrap_or(!is_known || is_fast || force > FORCE_MAX)
    }

    fn bounds(&self) -> [(&'static str, f64, f64, f64); 48] {
        let Self { latency, machine, envelope, manoeuvre, presence } = self;
        // 0.2 as `f32` is above 0.2: rounded, it is not above its bound.
        let real = |number: f32| libm::round(f64::from(number) * 1e6) / 1e6;
        [
            ("latency.loop_age_full_ms", ms(latency.loop_age_full), 50.0, 1e3),
            ("latency.loop_age_hysteresis_ms", ms(latency.loop_age_hysteresis), 0.0, 200.0),
            ("latency.loop_age_max_ms", ms(latency.loop_age_max), 100.0, 2e3),
            ("latency.picture_age_max_ms", ms(latency.picture_age_max), 20.0, 1e3),
            ("latency.command_age_max_ms", ms(latency.command_age_max), 20.0, 1e3),
            ("latency.command_timeout_ms", ms(latency.command_timeout), 50.0, 2e3),
            ("latency.act_age_max_ms", ms(latency.act_age_max), 100.0, 5e3),
            ("latency.proposal_timeout_ms", ms(latency.proposal_timeout), 20.0, 500.0),
            ("latency.machine_timeout_ms", ms(latency.machine_timeout), 20.0, 500.0),
            ("latency.step_gap_max_ms", ms(latency.step_gap_max), 20.0, 500.0),
            ("machine.wheelbase_m", real(machine.wheelbase), 0.1, 20.0),
            ("machine.steering_angle_max_rad", real(machine.steering_angle_max), 0.05, 1.5),
            ("machine.track_width_m", real(machine.track_width), 0.05, 10.0),
            ("machine.length_m", real(machine.length), 0.05, 20.0),
            ("machine.wheel_speed_max_m_per_s", real(machine.wheel_speed_max), 0.1, 40.0),
            ("machine.deceleration_max_m_per_s2", real(machine.deceleration_max), 0.5, 15.0),
            ("machine.acceleration_max_m_per_s2", real(machine.acceleration_max), 0.1, 15.0),
            ("machine.drive_answer_ms", ms(machine.drive_answer), 200.0, 5e3),
            ("machine.mass_kg", real(machine.mass), 0.1, 60e3),
            ("envelope.speed_max_m_per_s", real(envelope.speed_max), 0.1, 40.0),
            ("envelope.reverse_speed_max_m_per_s", real(envelope.reverse_speed_max), 0.05, 10.0),
            ("envelope.sideways_speed_max_m_per_s", real(envelope.sideways_speed_max), 0.05, 10.0),
            ("envelope.yaw_rate_max_rad_per_s", real(envelope.yaw_rate_max), 0.05, 10.0),
            ("envelope.speed_bound_slope_m_per_s2", real(envelope.speed_bound_slope), 0.2, 4.0),
            ("envelope.acceleration_m_per_s2", real(envelope.acceleration), 0.1, 15.0),
            ("envelope.deceleration_m_per_s2", real(envelope.deceleration), 0.3, 15.0),
            ("envelope.jerk_m_per_s3", real(envelope.jerk), 0.5, 100.0),
            ("envelope.yaw_acceleration_rad_per_s2", real(envelope.yaw_acceleration), 0.1, 50.0),
            ("envelope.yaw_deceleration_rad_per_s2", real(envelope.yaw_deceleration), 0.1, 50.0),
            (
                "envelope.lateral_acceleration_m_per_s2",
                real(envelope.lateral_acceleration),
                0.2,
                10.0,
            ),
            ("envelope.lateral_jerk_m_per_s3", real(envelope.lateral_jerk), 2.0, 100.0),
            ("envelope.steering_rate_rad_per_s", real(envelope.steering_rate), 0.1, 5.0),
            (
                "envelope.gear_change_speed_max_m_per_s",
                real(envelope.gear_change_speed_max),
                0.05,
                2.0,
            ),
            ("manoeuvre.deceleration_begin_m_per_s2", real(manoeuvre.deceleration_begin), 0.1, 8.0),
            ("manoeuvre.deceleration_m_per_s2", real(manoeuvre.deceleration), 0.3, 10.0),
            ("manoeuvre.jerk_m_per_s3", real(manoeuvre.jerk), 1.0, 50.0),
            (
                "manoeuvre.deceleration_emergency_m_per_s2",
                real(manoeuvre.deceleration_emergency),
                0.5,
                15.0,
            ),
            ("manoeuvre.yaw_deceleration_rad_per_s2", real(manoeuvre.yaw_deceleration), 0.1, 50.0),
            (
                "manoeuvre.yaw_deceleration_emergency_rad_per_s2",
                real(manoeuvre.yaw_deceleration_emergency),
                0.1,
                50.0,
            ),
            ("manoeuvre.standing_speed_m_per_s", real(manoeuvre.standing_speed), 0.01, 0.1),
            ("manoeuvre.standing_yaw_rate_rad_per_s", real(manoeuvre.standing_yaw_rate), 0.01, 0.2),
            ("manoeuvre.hold_brake", real(manoeuvre.hold_brake), 0.2, 1.0),
            ("manoeuvre.standing_ms", ms(manoeuvre.standing), 100.0, 5e3),
            ("manoeuvre.brake_answer_ms", ms(manoeuvre.brake_answer), 200.0, 3e3),
            ("manoeuvre.slope_max", real(manoeuvre.slope_max), 0.0, 0.5),
            ("presence.arm_timeout_ms", ms(presence.arm_timeout), 1e3, 600e3),
            ("presence.throttle_dead_zone", real(presence.throttle_dead_zone), 0.0, 0.2),
            ("presence.standstill_timeout_ms", ms(presence.standstill_timeout), 1e3, 600e3),
        ]
    }

    /// Returns all pairs of settings of which the first must not exceed the second, with the
    /// current values and the reason.
    fn orders(&self) -> [Order; 14] {
        let Self { latency, machine, envelope, manoeuvre, .. } = self;
        let (loop_age_max, timeout) = (ms(latency.loop_age_max), ms(latency.command_timeout));
        let loop_age_max = ("latency.loop_age_max_ms", loop_age_max);
        let timeout = ("latency.command_timeout_ms", timeout);
        let full = ("latency.loop_age_full_ms", ms(latency.loop_age_full));
        let silent = "silence would look like a lost command";
        let beyond = "the machine cannot brake harder than its maximum";
        let brakes = ("machine.deceleration_max_m_per_s2", f64::from(machine.deceleration_max));
        let emergency = (
            "manoeuvre.deceleration_emergency_m_per_s2",
            f64::from(manoeuvre.deceleration_emergency),
        );
        let ramped = ("manoeuvre.deceleration_m_per_s2", f64::from(manoeuvre.deceleration));
        let slope = ("manoeuvre.slope_max as m/s²", f64::from(manoeuvre.slope_max * GRAVITY));
        let order = |(lower, low), (upper, high), reason| (lower, low, upper, high, reason);
        [
            order(full, loop_age_max, "the speed must be reduced before the machine is stopped"),
            order(
                ("latency.loop_age_hysteresis_ms", ms(latency.loop_age_hysteresis)),
                full,
                "the full speed would never be allowed again",
            ),
            order(
                (
                    "latency.picture_age_max_ms + guard.latency.command_age_max_ms",
                    ms(latency.picture_age_max) + ms(latency.command_age_max),
                ),
                loop_age_max,
                "a picture and a command that are both in time would stop the machine",
            ),
            order(
                ("latency.command_age_max_ms", ms(latency.command_age_max)),
                timeout,
                "a command would count after its timeout",
            ),
            order(timeout, loop_age_max, "a lost command must not last longer than a lost picture"),
            order(("latency.proposal_timeout_ms", ms(latency.proposal_timeout)), timeout, silent),
            order(("latency.machine_timeout_ms", ms(latency.machine_timeout)), timeout, silent),
            order(("latency.step_gap_max_ms", ms(latency.step_gap_max)), timeout, silent),
            order(
                ("manoeuvre.deceleration_begin_m_per_s2", f64::from(manoeuvre.deceleration_begin)),
                ramped,
                "the deceleration must not decrease",
            ),
            order(ramped, emergency, "an emergency stop must brake at least as hard"),
            order(emergency, brakes, beyond),
            order(
                ("envelope.deceleration_m_per_s2", f64::from(envelope.deceleration)),
                brakes,
                beyond,
            ),
            order(slope, ramped, "the manoeuvre must slow the machine on its steepest slope"),
            order(
                slope,
                (
                    "manoeuvre.hold_brake as m/s²",
                    f64::from(manoeuvre.hold_brake * machine.deceleration_max),
                ),
                "an armed machine must stand on its steepest slope",
            ),
        ]
    }
}

/// Lower setting and value, upper setting and value, and the reason for their order.
type Order = (&'static str, f64, &'static str, f64, &'static str);

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Serialization of durations as integer milliseconds, the unit in the settings' names.
mod millis {
    use core::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(time.as_millis() as u64)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}

/// Gravitational acceleration, m/s².
pub(crate) const GRAVITY: f32 = 9.81;
/// Top speed in m/s above which driving requires a dead-man input: 6 km/h, because a person on foot
/// cannot keep clear of a faster machine.
const WALKING_PACE: f32 = 1.67;
/// Force of the drive in newtons above which driving requires a dead-man input: a pinned chest
/// withstands it (ISO/TS 15066, table A.2).
const FORCE_MAX: f32 = 140.0;

#[cfg(test)]
mod tests;
