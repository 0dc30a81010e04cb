use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::config::Config;
use crate::manoeuvre::Manoeuvre;
use crate::twist_stop::TwistStop;
use crate::{Cause, MachineState, Motion, Twist};

/// A stop of either kind of machine.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) enum Stopping {
    /// Stop of an Ackermann machine, by steering and brakes.
    Wheels(Manoeuvre),
    /// Stop of a differential or omni machine, by the set point of its speed and yaw rate.
    Twist(TwistStop),
}

impl Stopping {
    /// Brakes harder, at once, if `cause` requires it.
    pub(crate) fn harden(&mut self, config: &Config, cause: Cause, now: Instant) {
        match self {
            Self::Wheels(stop) => stop.harden(config, cause, now),
            Self::Twist(stop) => stop.harden(config, cause, now),
        }
    }

    /// Brakes as hard as the machine can, at once.
    pub(crate) fn brake_fully(&mut self, config: &Config) {
        match self {
            Self::Wheels(stop) => stop.brake_fully(config),
            Self::Twist(stop) => stop.halt(),
        }
    }

    /// Returns the duration and the distance in m of the stop, once the machine has been stationary
    /// for the configured time; `None` before.
    pub(crate) fn ended(&self, config: &Config, now: Instant) -> Option<(Duration, f32)> {
        match self {
            Self::Wheels(stop) => stop.ended(config, now),
            Self::Twist(stop) => stop.ended(config, now),
        }
    }

    /// Returns whether a machine of unknown motion must be stationary by now, from its last known
    /// or any motion; `false` while its motion is known.
    pub(crate) fn is_over_by_time(&self, config: &Config, now: Instant) -> bool {
        match self {
            Self::Wheels(stop) => stop.is_over_by_time(config, now),
            Self::Twist(stop) => stop.is_over_by_time(config, now),
        }
    }

    #[cfg(test)]
    pub(crate) fn standing_since(&self) -> Option<Instant> {
        match self {
            Self::Wheels(stop) => stop.standing_since,
            Self::Twist(stop) => stop.standing_since(),
        }
    }
}

/// Returns the motion that a machine of this kind reports; `None` if a part of it is not known.
pub(crate) fn reported(motion: Motion, machine: &MachineState) -> Option<Twist> {
    let MachineState { speed, sideways_speed, yaw_rate, .. } = *machine;
    let twist = match motion {
        Motion::Ackermann => Twist { forward: speed, ..Twist::ZERO },
        Motion::Differential => Twist { forward: speed, sideways: 0.0, yaw_rate },
        Motion::Omni => Twist { forward: speed, sideways: sideways_speed, yaw_rate },
    };
    let Twist { forward, sideways, yaw_rate } = twist;
    [forward, sideways, yaw_rate].into_iter().all(f32::is_finite).then_some(twist)
}
