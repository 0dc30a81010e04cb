use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::config::Config;
use crate::{Cause, Controls, MachineState, envelope};

/// One stop: steers along the arc on which the machine was when it began, unless the person steers.
/// It ramps the deceleration, then holds the machine.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Manoeuvre {
    began_at: Instant,
    /// `true` until the first step, which keeps the brake as it was; `false` from the begin if the
    /// deceleration is applied without a ramp.
    is_new: bool,
    /// Share of steering that keeps the arc: at the begin, and later the one set by the person.
    arc: f32,
    /// `true` once the person was unable to steer in a step, or the machine was under local
    /// control: until the end the guard steers.
    is_blind: bool,
    /// Deceleration that the ramp requires now, m/s²; rises to `deceleration_max`.
    deceleration: f32,
    /// Deceleration at the end of the ramp, m/s²; raised by a cause that requires harder braking.
    deceleration_max: f32,
    /// Speed that the ramp requires now, m/s; `None` while the machine's speed is unknown.
    reference: Option<f32>,
    /// Last known speed without its sign, m/s; before the first, the maximum speed on the arc.
    speed: f32,
    /// Distance driven since the begin, m.
    distance: f32,
    /// Begin of the present standstill; `None` while the machine moves or its speed is unknown.
    pub(crate) standing_since: Option<Instant>,
    /// Time from which the parking brake is also applied, because the service brake does not
    /// respond; `None` while it does.
    pub(crate) parking_at: Option<Instant>,
}

impl Manoeuvre {
    /// Begins a stop for `cause`, from the controls sent last and the machine's state, if known.
    ///
    /// `speed` in m/s is `None` while unknown. Then the steering is limited, and the end of the
    /// stop timed, as at the lower of `most`, m/s, and the maximum speed on the arc.
    pub(crate) fn begin(
        config: &Config,
        cause: Cause,
        last: &Controls,
        machine: Option<&MachineState>,
        (speed, most): (Option<f32>, f32),
        now: Instant,
    ) -> Self {
        let (ramp, full) = (&config.manoeuvre, config.machine.deceleration_max);
        let reach = config.machine.steering_angle_max;
        let angle = machine.map(|machine| machine.steering_angle).filter(|angle| angle.is_finite());
        let speed = speed.map(f32::abs);
        let deceleration = (last.brake * full).clamp(ramp.deceleration_begin, ramp.deceleration);
        let arc = angle.map_or(last.steering, |angle| (angle / reach).clamp(-1.0, 1.0));
        let mut this = Self {
            began_at: now,
            is_new: true,
            arc,
            is_blind: false,
            deceleration,
            deceleration_max: ramp.deceleration,
            reference: speed,
            speed: speed.unwrap_or_else(|| envelope::speed_max(config, arc * reach).min(most)),
            distance: 0.0,
            standing_since: None,
            parking_at: None,
        };
        this.harden(config, cause, now);
        this
    }

    /// Raises the deceleration without a ramp, if `cause` is an emergency stop or a brake that does
    /// not respond.
    ///
    /// For a brake that does not respond, it also schedules the parking brake.
    pub(crate) fn harden(&mut self, config: &Config, cause: Cause, now: Instant) {
        let hardest = match cause {
            Cause::EmergencyStop => config.manoeuvre.deceleration_emergency,
            Cause::BrakeDoesNotAnswer => {
                self.parking_at.get_or_insert(now + config.manoeuvre.brake_answer);
                config.machine.deceleration_max
            }
            _ => return,
        };
        self.deceleration_max = self.deceleration_max.max(hardest);
        self.deceleration = self.deceleration_max;
        self.is_new = false;
    }

    /// Raises the deceleration to the machine's maximum, without a ramp.
    pub(crate) fn brake_fully(&mut self, config: &Config) {
        self.deceleration_max = config.machine.deceleration_max;
        self.deceleration = self.deceleration_max;
        self.is_new = false;
    }

    /// Adopts the steering of a machine under local control as the arc; from now on the guard
    /// steers until the stop ends.
    pub(crate) fn follow(&mut self, config: &Config, machine: &MachineState) {
        self.is_blind = true;
        if machine.steering_angle.is_finite() {
            self.arc =
                (machine.steering_angle / config.machine.steering_angle_max).clamp(-1.0, 1.0);
        }
    }

    /// Advances the stop by one step, and returns the controls for the machine; the caller sets the
    /// actions.
    ///
    /// `speed` in m/s is `None` while unknown. `person` holds the requests of a person who is
    /// present and sees, who steers and may brake harder. `last` holds the controls sent a step
    /// before.
    pub(crate) fn step(
        &mut self,
        config: &Config,
        speed: Option<f32>,
        person: Option<&Controls>,
        last: &Controls,
        elapsed: Duration,
        now: Instant,
    ) -> Controls {
        self.is_blind |= person.is_none();
        let person = person.filter(|_| !self.is_blind);
        self.speed = speed.map_or(self.speed, f32::abs);
        self.distance += speed.map_or(0.0, f32::abs) * elapsed.as_secs_f32();
        self.watch_standstill(speed, now);
        let steering = self.steer(config, person, last, elapsed);
        let wanted = if self.is_new { last.brake } else { self.brake(config, speed, elapsed, now) };
        self.is_new = false;
        let brake = wanted.max(person.map_or(0.0, |person| person.brake)).clamp(0.0, 1.0);
        let parking_brake = last.parking_brake
            || self.parking_at.is_some_and(|at| at <= now)
            || self.is_over_by_time(config, now);
        Controls { steering, throttle: 0.0, brake, parking_brake, ..*last }
    }

    /// Returns duration and distance, m, of the stop, once the machine has been stationary for the
    /// configured time; `None` before.
    pub(crate) fn ended(&self, config: &Config, now: Instant) -> Option<(Duration, f32)> {
        let since = self.standing_since?;
        (now.since(since) >= config.manoeuvre.standing)
            .then(|| (now.since(self.began_at), self.distance))
    }

    fn watch_standstill(&mut self, speed: Option<f32>, now: Instant) {
        let is_standing = speed.is_some_and(|speed| speed.abs() < STANDING_SPEED);
        self.standing_since = match (is_standing, self.standing_since) {
            (false, _) => None,
            (true, None) => Some(now),
            (true, since) => since,
        };
    }

    fn steer(
        &mut self,
        config: &Config,
        person: Option<&Controls>,
        last: &Controls,
        elapsed: Duration,
    ) -> f32 {
        let Some(person) = person else {
            // Within the limit of the tyres; the arc itself was within it.
            let share_max =
                envelope::angle_max(config, self.speed) / config.machine.steering_angle_max;
            return self.arc.clamp(-share_max, share_max);
        };
        let (steering, ..) =
            envelope::steer(config, person.steering, last.steering, self.speed, elapsed);
        self.arc = steering;
        steering
    }

    fn brake(
        &mut self,
        config: &Config,
        speed: Option<f32>,
        elapsed: Duration,
        now: Instant,
    ) -> f32 {
        let full = config.machine.deceleration_max;
        let seconds = elapsed.as_secs_f32();
        self.deceleration =
            (self.deceleration + config.manoeuvre.jerk * seconds).min(self.deceleration_max);
        let hold = config.manoeuvre.hold_brake;
        if self.standing_since.is_some() || self.is_over_by_time(config, now) {
            return hold;
        }
        let Some(speed) = speed.map(f32::abs) else {
            self.reference = None;
            return self.deceleration / full;
        };
        let reference = self.reference.unwrap_or(speed) - self.deceleration * seconds;
        let reference = reference.clamp(speed - BEHIND_MAX, speed + BEHIND_MAX).max(0.0);
        self.reference = Some(reference);
        (self.deceleration + FEEDBACK * (speed - reference)) / full
    }

    /// Returns whether a machine of unknown speed must be stationary by now: the stop began more
    /// than twice the braking time from the last known speed ago. `false` while the speed is known.
    pub(crate) fn is_over_by_time(&self, config: &Config, now: Instant) -> bool {
        let seconds = 2.0 * self.speed / config.manoeuvre.deceleration + SILENT_SPARE;
        self.reference.is_none() && now.since(self.began_at).as_secs_f32() > seconds
    }
}

/// Speed in m/s below which the machine counts as stationary.
pub(crate) const STANDING_SPEED: f32 = 0.05;
/// Braking in m/s², added to the ramp's, for each m/s above the ramp's speed: a slope of 10 %
/// leaves half a m/s.
const FEEDBACK: f32 = 2.0;
/// Maximum deviation of the ramp's speed from the machine's, m/s: with [`FEEDBACK`] it adds 3 m/s²,
/// the pull of a slope of 30 %.
const BEHIND_MAX: f32 = 1.5;
/// Seconds added to twice the duration of braking before a machine of unknown speed counts as
/// stationary: for a brake that responds slowly.
const SILENT_SPARE: f32 = 2.0;
