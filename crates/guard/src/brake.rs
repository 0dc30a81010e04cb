use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{Config, GRAVITY};
use crate::{Cause, Controls, Why};

/// Whether the machine slows when it is told to brake.
///
/// Counts over [`brake_answer`](crate::config::Manoeuvre::brake_answer) at a time: what the brake
/// was asked for, and what the speed lost. Half of what was asked for, less the steepest slope, must
/// have come.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct BrakeWatch {
    braked: Duration,
    /// m/s when the count began.
    speed: f32,
    /// m/s that the brake was asked to take.
    asked: f32,
}

impl BrakeWatch {
    /// Takes what the machine was told a step ago and its speed now; returns what is wrong.
    pub(crate) fn step(
        &mut self,
        config: &Config,
        told: &Controls,
        speed: Option<f32>,
        elapsed: Duration,
    ) -> Option<Why> {
        let speed = speed.map(f32::abs).filter(|speed| *speed > SPEED_MIN);
        let (Some(speed), true) = (speed, told.throttle == 0.0 && told.brake > 0.0) else {
            *self = Self::default();
            return None;
        };
        if self.braked.is_zero() {
            self.speed = speed;
        }
        self.braked += elapsed;
        self.asked += told.brake * config.machine.deceleration_max * elapsed.as_secs_f32();
        if self.braked < config.manoeuvre.brake_answer {
            return None;
        }
        let seconds = self.braked.as_secs_f32();
        let (asked, lost) = (self.asked / seconds, (self.speed - speed) / seconds);
        let least = ANSWER_SHARE * asked - config.manoeuvre.slope_max * GRAVITY;
        *self = Self::default();
        (lost < least).then_some(Why::new(Cause::BrakeDoesNotAnswer, lost, asked))
    }

    /// Returns for how long the machine has been told to brake.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> Duration {
        self.braked
    }
}

/// m/s above which a brake can show that it works.
const SPEED_MIN: f32 = 0.5;
/// What share of the braking asked for a sound brake gives at least, cold, wet and worn.
const ANSWER_SHARE: f32 = 0.5;
