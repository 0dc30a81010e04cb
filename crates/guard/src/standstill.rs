//! Standstill of a differential or omni machine, for which a turn on the spot is motion.

use crate::config::Config;
use crate::{Motion, Twist};

/// Returns whether a machine stands: every part of its motion is below that part's limit of
/// standstill.
pub(crate) fn stands(config: &Config, moved: Twist) -> bool {
    axes(config, moved).into_iter().all(|axis| axis.value.abs() < axis.standing)
}

/// Returns the signed speed and the exceeded limit, m/s, of the first part of a machine's motion
/// (forward, sideways, turn) that exceeds [`MOVES`] times its limit of standstill; both are a
/// wheel's for a turn, and the limit contains the factor. `None` if no part exceeds it.
pub(crate) fn rolls(config: &Config, moved: Twist) -> Option<(f32, f32)> {
    axes(config, moved).into_iter().find_map(|axis| {
        let limit = MOVES * axis.standing;
        (axis.value.abs() > limit).then_some((axis.value * axis.lever, limit * axis.lever))
    })
}

/// One part of a machine's motion, with its limits.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Axis {
    /// Present value of this part, in m/s or rad/s.
    pub(crate) value: f32,
    /// Value below which this part stands.
    pub(crate) standing: f32,
    /// Largest value that a person may command; 0 if the machine does not move in this way.
    pub(crate) most: f32,
    /// Hardest deceleration of the machine, per second.
    pub(crate) falls: f32,
    /// Speed of a wheel in m/s for each unit of the value.
    pub(crate) lever: f32,
}

/// Returns the parts of a twist: forward, sideways, turn.
pub(crate) fn axes(config: &Config, twist: Twist) -> [Axis; 3] {
    let Config { machine, envelope, manoeuvre, .. } = config;
    let speed = |value, most| Axis {
        value,
        standing: manoeuvre.standing_speed,
        most,
        falls: machine.deceleration_max,
        lever: 1.0,
    };
    let (sideways, sideways_max) = match machine.motion {
        Motion::Omni => (twist.sideways, envelope.sideways_speed_max),
        Motion::Ackermann | Motion::Differential => (0.0, 0.0),
    };
    let turn = Axis {
        value: twist.yaw_rate,
        standing: manoeuvre.standing_yaw_rate,
        most: envelope.yaw_rate_max,
        falls: manoeuvre.yaw_deceleration_emergency,
        lever: machine.lever(),
    };
    [
        speed(twist.forward, envelope.speed_max.max(envelope.reverse_speed_max)),
        speed(sideways, sideways_max),
        turn,
    ]
}

/// Multiple of the limit of standstill that counts as motion in spite of a sensor's noise.
pub(crate) const MOVES: f32 = 4.0;
