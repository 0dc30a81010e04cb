//! Limits of the twist that a person may command, and its measures.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::envelope::{Limit, Limits};
use crate::slew::{Rates, Slew};
use crate::{Motion, Twist};

/// Envelope of a differential or omni machine: keeps the set point within speeds, acceleration
/// across and the wheels' speed, and on the way to it within the rates.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct TwistEnvelope {
    forward: Slew,
    sideways: Slew,
    yaw_rate: Slew,
}

impl TwistEnvelope {
    /// Returns the set point of this step, on the way from `last` to the wanted twist and within
    /// all limits, and the limits that changed it.
    ///
    /// `last` is the set point sent a step before, `moved` the machine's motion, if known, and
    /// `bound` the speed bound in m/s, of which the yaw rate and the sideways speed have the same
    /// share.
    pub(crate) fn hold(
        &mut self,
        config: &Config,
        wanted: Twist,
        (last, moved): (Twist, Option<Twist>),
        bound: f32,
        elapsed: Duration,
    ) -> (Twist, Limits) {
        let most = Most::of(config, bound);
        let fast = moved.map_or(0.0, Twist::speed).max(last.speed());
        let (target, limits) = within(config, &most, wanted, fast);
        let (next, slowed) = self.approach(config, target, last, elapsed.as_secs_f32());
        // The bound falls more slowly than the machine may be slowed; a set point never exceeds it.
        let next = enforced(config, most.clamp(next));
        self.forward.made(last.forward, next.forward, elapsed.as_secs_f32());
        self.sideways.made(last.sideways, next.sideways, elapsed.as_secs_f32());
        (next, limits.iter().chain(slowed.iter()).collect())
    }

    /// Returns the twist one step from `last`, which the limits allow, towards `target`, and the
    /// limits that keep it from `target`.
    fn approach(
        &mut self,
        config: &Config,
        target: Twist,
        last: Twist,
        seconds: f32,
    ) -> (Twist, Limits) {
        let envelope = &config.envelope;
        let Twist { forward, sideways, yaw_rate } = last;
        let rates =
            Rates { rise: envelope.acceleration, fall: envelope.deceleration, jerk: envelope.jerk };
        let stepped = Twist {
            forward: self.forward.step(rates, forward, target.forward, seconds),
            sideways: self.sideways.step(rates, sideways, target.sideways, seconds),
            yaw_rate,
        };
        // Speed rises only as far as the present yaw rate leaves room, and the yaw rate by the new
        // speed: neither takes from the other faster than its rates allow.
        let lateral = envelope.lateral_acceleration / yaw_rate.abs();
        let wheel = config.machine.wheel_speed_max - yaw_rate.abs() * config.machine.lever();
        let share = (lateral / stepped.speed()).min(wheel / straight(stepped));
        let linear = if share < 1.0 { stepped.scaled(share.max(0.0)) } else { stepped };
        let turn = Rates {
            rise: envelope.yaw_acceleration,
            fall: envelope.yaw_deceleration,
            jerk: f32::INFINITY,
        };
        let turned = self.yaw_rate.step(turn, yaw_rate, target.yaw_rate, seconds);
        let most = (envelope.lateral_acceleration / linear.speed())
            .min((config.machine.wheel_speed_max - straight(linear)) / config.machine.lever())
            .max(0.0);
        let next = Twist { yaw_rate: turned.clamp(-most, most), ..linear };
        let is_short = next.speed() < target.speed() - TOLERANCE;
        let is_long = next.speed() > target.speed() + TOLERANCE;
        let limits = Limits::NONE
            .with_if(Limit::Acceleration, is_short)
            .with_if(Limit::Deceleration, is_long)
            .with_if(Limit::YawAcceleration, (next.yaw_rate - target.yaw_rate).abs() > TOLERANCE);
        (next, limits)
    }
}

/// Largest magnitude that each part of a commanded twist may have under a speed bound, in m/s and
/// rad/s, with forward and back apart.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Most {
    pub(crate) forward: f32,
    pub(crate) back: f32,
    pub(crate) sideways: f32,
    pub(crate) yaw_rate: f32,
}

impl Most {
    /// Returns the maximum of each part under a speed bound.
    pub(crate) fn of(config: &Config, bound: f32) -> Self {
        let envelope = &config.envelope;
        let share = (bound / envelope.speed_max).clamp(0.0, 1.0);
        let (sideways, yaw_rate) = match config.machine.motion {
            Motion::Ackermann => (0.0, 0.0),
            Motion::Differential => (0.0, envelope.yaw_rate_max * share),
            Motion::Omni => (envelope.sideways_speed_max * share, envelope.yaw_rate_max * share),
        };
        Self { forward: bound, back: bound.min(envelope.reverse_speed_max), sideways, yaw_rate }
    }

    /// Returns the twist with every part within its maximum, and the speed over the ground within
    /// the forward one.
    fn clamp(&self, twist: Twist) -> Twist {
        let clamped = Twist {
            forward: twist.forward.clamp(-self.back, self.forward),
            sideways: twist.sideways.clamp(-self.sideways, self.sideways),
            yaw_rate: twist.yaw_rate.clamp(-self.yaw_rate, self.yaw_rate),
        };
        let speed = clamped.speed();
        if speed <= self.forward {
            return clamped;
        }
        Twist { yaw_rate: clamped.yaw_rate, ..clamped.scaled(self.forward / speed) }
    }
}

/// Returns the allowed twist nearest to `wanted` at the speed `fast`, m/s, without regard to rates.
fn within(config: &Config, most: &Most, wanted: Twist, fast: f32) -> (Twist, Limits) {
    let target = most.clamp(wanted);
    let is_slower = (target.forward, target.sideways) != (wanted.forward, wanted.sideways);
    let is_straighter = target.yaw_rate != wanted.yaw_rate;
    let wheel = wheel_speed(config, target);
    let share = config.machine.wheel_speed_max / wheel;
    let turned = if share < 1.0 { target.scaled(share) } else { target };
    let yaw_max = config.envelope.lateral_acceleration / turned.speed().max(fast);
    let limited = Twist { yaw_rate: turned.yaw_rate.clamp(-yaw_max, yaw_max), ..turned };
    let limits = Limits::NONE
        .with_if(Limit::Speed, is_slower)
        .with_if(Limit::WheelSpeed, share < 1.0)
        .with_if(Limit::YawRate, is_straighter || limited.yaw_rate != turned.yaw_rate);
    (limited, limits)
}

/// Returns the most motion that a person may command, in each part.
pub(crate) fn most(config: &Config) -> Twist {
    let Most { forward, back, sideways, yaw_rate } = Most::of(config, config.envelope.speed_max);
    Twist { forward: forward.max(back), sideways, yaw_rate }
}

/// Returns the twist scaled or straightened until wheels and acceleration across allow it.
fn enforced(config: &Config, twist: Twist) -> Twist {
    let share = config.machine.wheel_speed_max / wheel_speed(config, twist);
    let twist = if share < 1.0 { twist.scaled(share) } else { twist };
    let yaw_max = config.envelope.lateral_acceleration / twist.speed();
    Twist { yaw_rate: twist.yaw_rate.clamp(-yaw_max, yaw_max), ..twist }
}

/// Returns the speed of the fastest wheel or track, m/s.
pub(crate) fn wheel_speed(config: &Config, twist: Twist) -> f32 {
    straight(twist) + twist.yaw_rate.abs() * config.machine.lever()
}

/// Returns the speed of the wheels without turning, m/s: rollers at 45 degrees add both parts.
fn straight(twist: Twist) -> f32 {
    twist.forward.abs() + twist.sideways.abs()
}

/// Returns the forward speed in m/s that is the same share of its maximum as the largest part of
/// the twist; at least the twist's own speed.
pub(crate) fn pace(config: &Config, twist: Twist) -> f32 {
    twist.speed().max(share(config, twist) * config.envelope.speed_max)
}

/// Returns the largest share that a part of the twist has of its maximum.
pub(crate) fn share(config: &Config, twist: Twist) -> f32 {
    let envelope = &config.envelope;
    let along = match twist.forward < 0.0 {
        true => -twist.forward / envelope.reverse_speed_max,
        false => twist.forward / envelope.speed_max,
    };
    let across = match config.machine.motion {
        Motion::Omni => twist.sideways.abs() / envelope.sideways_speed_max,
        Motion::Ackermann | Motion::Differential => 0.0,
    };
    along.max(across).max(twist.yaw_rate.abs() / envelope.yaw_rate_max)
}

/// Difference from the target in m/s or rad/s up to which no limit is reported: a person could not
/// feel it.
const TOLERANCE: f32 = 1e-3;

#[cfg(test)]
mod tests;
