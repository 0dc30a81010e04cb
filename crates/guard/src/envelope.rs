//! Limits of the controls at the machine's speed: the speed bound, and the envelope of the
//! actuators.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::set::{Set, numbered};
use crate::{Controls, Gear};

numbered! {
    /// A limit that changed the commanded controls.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Limit {
        /// Throttle reduced near the speed bound or above it; above it, braking also added.
        Speed = 0,
        /// Throttle reduced to the envelope's acceleration.
        Acceleration = 1,
        /// Brake reduced to the envelope's deceleration.
        Deceleration = 2,
        /// Steering angle reduced to the maximum at the machine's speed.
        SteeringAngle = 3,
        /// Steering rate reduced to the maximum at the machine's speed.
        SteeringRate = 4,
        /// Change of gear refused because the machine is too fast; throttle is then 0.
        Gear = 5,
        /// Yaw rate reduced to its bound, or to the maximum at the machine's speed.
        YawRate = 6,
        /// Change of the yaw rate reduced to the envelope's acceleration or deceleration of a turn.
        YawAcceleration = 7,
        /// Speed and yaw rate reduced because together they need more than a wheel's maximum speed.
        WheelSpeed = 8,
    }
}

/// A set of limits that changed the commanded controls.
pub type Limits = Set<Limit>;

/// Speed bound by the loop age.
///
/// The bound approaches top speed x min(1, full / age), where *full* is `loop_age_full`, down and
/// up by the configured slope. Downwards it starts at the machine's own speed, so that a slower
/// machine does not wait until the bound reaches it. The age in use rises immediately with the loop
/// age. It falls only once the loop age is below it by more than the hysteresis, and then stays
/// above by the hysteresis.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct SpeedBound {
    value: f32,
    age: Duration,
}

impl SpeedBound {
    pub(crate) fn new(config: &Config) -> Self {
        Self { value: config.envelope.speed_max, age: Duration::ZERO }
    }

    /// Moves the bound towards its target by at most the slope in `elapsed`.
    ///
    /// `age` is the loop age; `None` means that no picture was seen, and counts as `loop_age_max`.
    /// `speed` is the machine's speed in m/s, of either sign.
    pub(crate) fn step(
        &mut self,
        config: &Config,
        age: Option<Duration>,
        speed: f32,
        elapsed: Duration,
    ) {
        let latency = &config.latency;
        let age = age.unwrap_or(latency.loop_age_max).min(latency.loop_age_max);
        self.age = self.age.clamp(age, age + latency.loop_age_hysteresis);
        let share = latency.loop_age_full.as_secs_f32() / self.age.as_secs_f32();
        let target = config.envelope.speed_max * if share < 1.0 { share } else { 1.0 };
        let step = config.envelope.speed_bound_slope * elapsed.as_secs_f32();
        self.value = if target < self.value {
            (self.value.min(speed.abs().max(target)) - step).max(target)
        } else {
            (self.value + step).min(target)
        };
    }

    /// Returns the bound in m/s.
    pub(crate) fn get(&self) -> f32 {
        self.value
    }

    /// Returns the age in use: the loop age at most `loop_age_max`, after the hysteresis.
    pub(crate) fn age(&self) -> Duration {
        self.age
    }
}

/// Returns `wanted`, limited to the envelope at the machine's speed, and the limits that changed
/// it. The parking brake is always released.
///
/// `last` holds the controls sent a step before. `speed` and `bound` are in m/s; above the bound,
/// the machine is braked.
pub(crate) fn hold(
    config: &Config,
    wanted: &Controls,
    last: &Controls,
    speed: f32,
    bound: f32,
    elapsed: Duration,
) -> (Controls, Limits) {
    let (envelope, machine) = (&config.envelope, &config.machine);
    let mut limits = Limits::NONE;
    let mut held = Controls { parking_brake: false, ..*wanted };

    if wanted.gear != last.gear && speed.abs() > envelope.gear_change_speed_max {
        (held.gear, held.throttle) = (last.gear, 0.0);
        limits = limits.with(Limit::Gear);
    }
    let throttle_max = envelope.acceleration / machine.acceleration_max;
    if held.throttle > throttle_max {
        held.throttle = throttle_max;
        limits = limits.with(Limit::Acceleration);
    }
    let brake_max = envelope.deceleration / machine.deceleration_max;
    if held.brake > brake_max {
        held.brake = brake_max;
        limits = limits.with(Limit::Deceleration);
    }
    // The direction is backwards by the gear's throttle, or because the machine rolls backwards.
    let is_backwards = held.gear == Gear::Reverse || speed < -envelope.gear_change_speed_max;
    let bound = if is_backwards { bound.min(envelope.reverse_speed_max) } else { bound };
    let room = bound - speed.abs();
    if held.throttle > (room / THROTTLE_FADE).max(0.0) {
        held.throttle = (room / THROTTLE_FADE).max(0.0);
        limits = limits.with(Limit::Speed);
    }
    if room < 0.0 {
        let slowing = (-room * SPEED_GAIN).min(config.manoeuvre.deceleration);
        held.brake = held.brake.max(slowing / machine.deceleration_max);
        limits = limits.with(Limit::Speed);
    }
    let (steering, by_angle, by_rate) =
        steer(config, wanted.steering, last.steering, speed, elapsed);
    held.steering = steering;
    let limits =
        limits.with_if(Limit::SteeringAngle, by_angle).with_if(Limit::SteeringRate, by_rate);
    (held, limits)
}

/// Returns the allowed share of steering nearest to the share `wanted`, whether the angle was
/// limited, and whether the rate was.
///
/// `last` is the share sent a step before, `speed` the machine's speed in m/s.
pub(crate) fn steer(
    config: &Config,
    wanted: f32,
    last: f32,
    speed: f32,
    elapsed: Duration,
) -> (f32, bool, bool) {
    let (envelope, machine) = (&config.envelope, &config.machine);
    let reach = machine.steering_angle_max;
    let share_max = angle_max(config, speed) / reach;
    let angle = wanted.clamp(-share_max, share_max);
    // The lateral acceleration of a bicycle is v² tan(angle) / wheelbase.
    let square = (speed * speed).max(f32::MIN_POSITIVE);
    let rate = envelope.steering_rate.min(envelope.lateral_jerk * machine.wheelbase / square);
    let step = rate * elapsed.as_secs_f32() / reach;
    let steering = angle.clamp(last - step, last + step);
    (steering, angle != wanted, steering != angle)
}

/// Returns the largest allowed angle of the road wheels, rad, at a speed in m/s.
pub(crate) fn angle_max(config: &Config, speed: f32) -> f32 {
    let across = config.envelope.lateral_acceleration * config.machine.wheelbase;
    let angle = libm::atanf(across / (speed * speed).max(f32::MIN_POSITIVE));
    angle.min(config.machine.steering_angle_max)
}

/// Returns the maximum speed in m/s with the road wheels at this angle, rad; at most the top speed.
pub(crate) fn speed_max(config: &Config, angle: f32) -> f32 {
    let across = config.envelope.lateral_acceleration * config.machine.wheelbase;
    libm::sqrtf(across / libm::tanf(angle.abs())).min(config.envelope.speed_max)
}

/// Margin below the bound in m/s within which the maximum throttle falls linearly from full to 0.
const THROTTLE_FADE: f32 = 1.0;
/// Braking in m/s² for each m/s above the bound: the speed lags two thirds of a m/s behind a bound
/// that falls by 2 m/s².
const SPEED_GAIN: f32 = 3.0;

#[cfg(test)]
mod tests;
