use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::{Config, GRAVITY};
use crate::{Cause, Controls, Why};

/// Check that the machine slows down while it is commanded to brake.
///
/// Each interval of [`brake_answer`](crate::config::Manoeuvre::brake_answer) adds up the commanded
/// braking and the loss of speed. The loss must be at least half of the commanded braking, less the
/// pull of the steepest slope. An interval is discarded without braking, with throttle, at unknown
/// speed, or below [`SPEED_MIN`].
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct BrakeWatch {
    /// Time of uninterrupted braking in this interval.
    braked: Duration,
    /// Speed at the start of the interval, without its sign, m/s.
    speed: f32,
    /// Loss of speed in this interval if the brake decelerated as commanded on level ground, m/s.
    asked: f32,
}

impl BrakeWatch {
    /// Takes the controls sent a step ago, and the current speed in m/s, `None` if unknown. Returns
    /// the fault at the end of an interval with too little loss of speed.
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

    /// Returns the time of uninterrupted braking in the current interval.
    #[cfg(test)]
    pub(crate) fn counted(&self) -> Duration {
        self.braked
    }
}

/// Speed in m/s above which braking is measurable.
const SPEED_MIN: f32 = 0.5;
/// Minimum share of the commanded braking from a working brake that is cold, wet and worn.
pub(crate) const ANSWER_SHARE: f32 = 0.5;
