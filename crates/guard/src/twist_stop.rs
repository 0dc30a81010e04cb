use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::config::Config;
use crate::standstill::stands;
use crate::twist_envelope::pace;
use crate::{Cause, Twist};

/// One stop of a differential or omni machine: slows its set point along the arc held at the begin,
/// a turn on the spot by its own deceleration, then holds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct TwistStop {
    began_at: Instant,
    /// `true` until the first controls, which only switch the hazard lights on.
    is_new: bool,
    /// Set point now.
    twist: Twist,
    /// Deceleration along the way now, m/s²; ramped up to `deceleration_max`.
    deceleration: f32,
    deceleration_max: f32,
    /// Deceleration of the turn, rad/s².
    yaw_deceleration: f32,
    /// `true` while the machine reports its motion.
    is_known: bool,
    /// Last known motion; before the first, the most that is possible.
    moved: Twist,
    /// Distance driven since the begin, m.
    distance: f32,
    standing_since: Option<Instant>,
    /// Time at which the parking brake is added, because the drive does not respond; `None` while
    /// it does.
    parking_at: Option<Instant>,
}

/// Motion of a machine when a stop begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Begin {
    /// Set point sent a step before, if a person drove.
    pub(crate) driven: Option<Twist>,
    /// Motion of the machine, if known.
    pub(crate) moved: Option<Twist>,
    /// Most motion that is possible while it is not known.
    pub(crate) most: Twist,
}

impl TwistStop {
    pub(crate) fn begin(config: &Config, cause: Cause, begin: Begin, now: Instant) -> Self {
        let ramp = &config.manoeuvre;
        let twist = match (begin.driven, begin.moved) {
            // A machine that moves against its set point follows none.
            (Some(_), _) if cause == Cause::Rolling => Twist::ZERO,
            (Some(driven), Some(moved)) => {
                let share = pace(config, moved) / pace(config, driven);
                if share < 1.0 { driven.scaled(share) } else { driven }
            }
            (Some(driven), None) => driven,
            (None, Some(moved)) => moved.sane(),
            (None, None) => Twist::ZERO,
        };
        let mut this = Self {
            began_at: now,
            is_new: true,
            twist,
            deceleration: ramp.deceleration_begin,
            deceleration_max: ramp.deceleration,
            yaw_deceleration: ramp.yaw_deceleration,
            is_known: begin.moved.is_some(),
            moved: begin.moved.unwrap_or(begin.most),
            distance: 0.0,
            standing_since: None,
            parking_at: None,
        };
        this.harden(config, cause, now);
        this
    }

    /// Slows harder at once for an emergency stop. For a drive that does not respond, sets no
    /// motion at once and schedules the parking brake. Does nothing for other causes.
    pub(crate) fn harden(&mut self, config: &Config, cause: Cause, now: Instant) {
        match cause {
            Cause::EmergencyStop => {
                self.deceleration_max = config.manoeuvre.deceleration_emergency;
                self.deceleration = self.deceleration_max;
                self.yaw_deceleration = config.manoeuvre.yaw_deceleration_emergency;
                self.is_new = false;
            }
            Cause::BrakeDoesNotAnswer => {
                self.parking_at.get_or_insert(now + config.manoeuvre.brake_answer);
                self.halt();
            }
            _ => {}
        }
    }

    /// Sets the set point to no motion at once, without the ramp.
    pub(crate) fn halt(&mut self) {
        self.twist = Twist::ZERO;
        self.is_new = false;
    }

    /// Adopts the motion of a machine under local control, and slows from there after release.
    pub(crate) fn follow(&mut self, moved: Twist) {
        self.twist = moved.sane();
    }

    /// Advances the stop by one step; returns the set point, and whether to apply the parking
    /// brake.
    pub(crate) fn step(
        &mut self,
        config: &Config,
        moved: Option<Twist>,
        elapsed: Duration,
        now: Instant,
    ) -> (Twist, bool) {
        let seconds = elapsed.as_secs_f32();
        self.is_known = moved.is_some();
        self.moved = moved.unwrap_or(self.moved);
        self.distance += moved.map_or(0.0, Twist::speed) * seconds;
        let is_standing = moved.is_some_and(|moved| stands(config, moved));
        self.standing_since = match (is_standing, self.standing_since) {
            (false, _) => None,
            (true, None) => Some(now),
            (true, since) => since,
        };
        if !self.is_new {
            self.deceleration =
                (self.deceleration + config.manoeuvre.jerk * seconds).min(self.deceleration_max);
            self.twist = self.twist.slowed(self.deceleration, self.yaw_deceleration, seconds);
        }
        self.is_new = false;
        let is_over = self.is_over_by_time(config, now);
        if is_standing || is_over {
            self.twist = Twist::ZERO;
        }
        (self.twist, is_over || self.parking_at.is_some_and(|at| at <= now))
    }

    /// Returns the duration and the distance in m of the stop, once the machine has been stationary
    /// for the configured time; `None` before.
    pub(crate) fn ended(&self, config: &Config, now: Instant) -> Option<(Duration, f32)> {
        let since = self.standing_since?;
        (now.since(since) >= config.manoeuvre.standing)
            .then(|| (now.since(self.began_at), self.distance))
    }

    /// Returns whether a machine of unknown motion must be stationary by now, from its last known
    /// or any possible motion; `false` while its motion is known.
    pub(crate) fn is_over_by_time(&self, config: &Config, now: Instant) -> bool {
        let ramp = &config.manoeuvre;
        let slows = self.moved.speed() / ramp.deceleration;
        let turns = self.moved.yaw_rate.abs() / ramp.yaw_deceleration;
        let seconds = 2.0 * slows.max(turns) + SILENT_SPARE;
        !self.is_known && now.since(self.began_at).as_secs_f32() > seconds
    }

    #[cfg(test)]
    pub(crate) fn standing_since(&self) -> Option<Instant> {
        self.standing_since
    }
}

/// Seconds added to twice the ramp's duration before a machine of unknown motion counts as
/// stationary: for a drive that responds slowly.
const SILENT_SPARE: f32 = 2.0;
