//! Conditions of the machine that count only after some time.

use super::*;
use crate::brake::BrakeWatch;
use crate::hill::RollBack;
use crate::plausible::{SpeedWatch, Watched};
use crate::twist_watch::{Follows, TwistWatch};

/// Conditions as observed until the newest step. A limit that needs a state keeps it here.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
pub(super) struct Watches {
    pub(super) brake: BrakeWatch,
    /// Brake or drive that does not slow the machine, detected in the newest step; `None` if it
    /// does, or nothing has to slow.
    pub(super) brake_fault: Option<Why>,
    pub(super) speed: SpeedWatch,
    pub(super) twist: TwistWatch,
    roll_back: RollBack,
    /// Rolling against the gear, detected in the newest step; `None` if it did not roll.
    pub(super) rolls_back: Option<Why>,
    /// Start of the time in which the machine exceeds the bound by more than [`OVERSPEED`]; `None`
    /// while it does not.
    over_since: Option<Instant>,
}

impl Guard {
    /// Updates all that depends on the time since the previous step: the speed bound, and the
    /// conditions that count only after some time.
    pub(super) fn watch(&mut self, elapsed: Duration, now: Instant) {
        let is_twisted = self.is_twisted();
        if !is_twisted {
            self.watch_speed(elapsed, now);
        }
        let speed = self.speed(now);
        if self.mode == Mode::Held {
            let is_ours = !self.has(Notice::LocalControl);
            self.is_parked = is_ours && (self.is_parked || self.is_standing(now));
            self.follow_machine(now);
        }
        let age = self.loop_age.worst(now);
        let unknown = self.config.envelope.speed_max;
        if is_twisted {
            let pace = |moved| twist_envelope::pace(&self.config, moved);
            let bounded = self.moved(now).map_or(unknown, pace);
            self.bound.step(&self.config, age, bounded, elapsed);
            self.watch_twist(elapsed, now);
        } else {
            let bounded = speed.unwrap_or(unknown);
            self.bound.step(&self.config, age, bounded, elapsed);
            self.watch_wheels(speed, elapsed, now);
        }
        self.watch_inputs(now);
    }

    /// Returns a limit on the machine's motion that it exceeds; `None` if it exceeds none.
    pub(super) fn exceeded(&self, machine: &MachineState, now: Instant) -> Option<Why> {
        if self.is_twisted() {
            return self.watches.twist.over();
        }
        let over = self.watches.over_since.is_some_and(|since| now.since(since) >= OVERSPEED_TIME);
        over.then(|| Why::new(Cause::Overspeed, machine.speed, self.bound.get()))
    }

    /// Updates the plausibility check of an Ackermann machine's speed; an implausible speed is
    /// believed again once a stop has taken as long as it may.
    fn watch_speed(&mut self, elapsed: Duration, now: Instant) {
        let config = &self.config;
        let over = |manoeuvre: &Stopping| manoeuvre.is_over_by_time(config, now);
        if self.watches.speed.fault().is_some() && self.manoeuvre.as_ref().is_some_and(over) {
            self.watches.speed.believe();
        }
        let watched = match self.mode {
            Mode::Held => Watched::No,
            Mode::Armed | Mode::Manoeuvre => Watched::Still,
            Mode::Driving | Mode::Limited => Watched::Driven,
        };
        let machine = self.heard_machine(now).copied();
        let told = self.applied;
        self.watches.speed.step(&self.config, machine.as_ref(), &told, watched, elapsed, now);
    }

    /// Updates overspeed, brake and rolling of an Ackermann machine whose credible speed is `speed`
    /// in m/s; `None` if that is not known.
    fn watch_wheels(&mut self, speed: Option<f32>, elapsed: Duration, now: Instant) {
        let pace = speed.unwrap_or(self.config.envelope.speed_max).abs();
        let is_over = self.mode.is_driving() && pace > self.bound.get() + OVERSPEED;
        let since = is_over.then(|| self.watches.over_since.unwrap_or(now));
        let is_ours = match self.mode {
            Mode::Driving | Mode::Limited | Mode::Manoeuvre => !self.has(Notice::LocalControl),
            Mode::Held | Mode::Armed => false,
        };
        let told = if is_ours { self.applied } else { Controls::default() };
        let watches = &mut self.watches;
        watches.over_since = since;
        watches.brake_fault = watches.brake.step(&self.config, &told, speed, elapsed);
        let rolls = watches.roll_back.step(self.applied.gear, speed.unwrap_or(0.0), elapsed);
        watches.rolls_back = rolls.filter(|_| self.mode.is_driving());
    }

    /// Updates the checks of a twisted machine's motion, and the fault of a drive that does not
    /// slow; an implausible motion is believed again once a stop has taken as long as it may.
    fn watch_twist(&mut self, elapsed: Duration, now: Instant) {
        let config = &self.config;
        let over = |stop: &Stopping| stop.is_over_by_time(config, now);
        if self.watches.twist.fault().is_some() && self.manoeuvre.as_ref().is_some_and(over) {
            self.watches.twist.believe();
        }
        let machine = self.heard_machine(now).copied();
        let is_local = machine.is_some_and(|machine| machine.is_local());
        let follows = match self.mode {
            _ if is_local => Follows::Nothing,
            Mode::Held => Follows::Nothing,
            Mode::Armed => Follows::Standstill,
            Mode::Driving | Mode::Limited => Follows::Person,
            Mode::Manoeuvre => Follows::Stop,
        };
        let moved = machine.and_then(|machine| reported(self.config.machine.motion, &machine));
        let is_braked =
            machine.is_some_and(|machine| machine.notices.contains(Notice::ParkingBrake));
        let told = self.applied.twist;
        let watches = &mut self.watches;
        let motion = (moved, !is_braked);
        watches.brake_fault = watches.twist.step(&self.config, motion, told, follows, elapsed);
        watches.rolls_back = watches.twist.rolls().filter(|_| self.mode.is_driving());
    }
}

/// Margin above the bound in m/s that counts as overspeed after [`OVERSPEED_TIME`].
const OVERSPEED: f32 = 2.0;
/// Time for which a driven machine may exceed the bound by more than [`OVERSPEED`] before it is
/// stopped.
const OVERSPEED_TIME: Duration = Duration::from_secs(1);
