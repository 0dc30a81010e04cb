//! Conditions of the machine that count only after some time.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::brake::BrakeWatch;
use crate::config::Config;
use crate::hill::RollBack;
use crate::plausible::{SpeedWatch, Watched};
use crate::stopping::reported;
use crate::twist_watch::{Follows, TwistWatch};
use crate::{Cause, Controls, MachineState, Mode, Motion, Notice, Why};

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

/// State of a step on which the conditions depend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Observed {
    pub(super) mode: Mode,
    /// Newest state of the machine; `None` while it is silent.
    pub(super) machine: Option<MachineState>,
    /// Controls that were sent in the previous step.
    pub(super) applied: Controls,
    /// `true` if a person at the machine drives it.
    pub(super) is_local_control: bool,
    /// `true` once a stop has taken as long as it may: an implausible motion is then believed
    /// again.
    pub(super) is_stop_over: bool,
    /// Time since the previous step.
    pub(super) elapsed: Duration,
    pub(super) now: Instant,
}

impl Watches {
    /// Updates the plausibility check of an Ackermann machine's speed.
    pub(super) fn step_speed(&mut self, config: &Config, observed: &Observed) {
        let Observed { machine, applied, elapsed, now, .. } = observed;
        if self.speed.fault().is_some() && observed.is_stop_over {
            self.speed.believe();
        }
        let watched = match observed.mode {
            Mode::Held => Watched::No,
            Mode::Armed | Mode::Manoeuvre => Watched::Still,
            Mode::Driving | Mode::Limited => Watched::Driven,
        };
        self.speed.step(config, machine.as_ref(), applied, watched, *elapsed, *now);
    }

    /// Updates the other conditions. `speed`: credible speed of an Ackermann machine in m/s, `None`
    /// if that is not known; `bound`: largest speed allowed now, in m/s.
    pub(super) fn step(
        &mut self,
        config: &Config,
        observed: &Observed,
        speed: Option<f32>,
        bound: f32,
    ) {
        let Observed { mode, applied, elapsed, now, .. } = *observed;
        if config.machine.motion != Motion::Ackermann {
            self.step_twist(config, observed);
            return;
        }
        let pace = speed.unwrap_or(config.envelope.speed_max).abs();
        let is_over = mode.is_driving() && pace > bound + OVERSPEED;
        self.over_since = is_over.then(|| self.over_since.unwrap_or(now));
        let is_ours = match mode {
            Mode::Driving | Mode::Limited | Mode::Manoeuvre => !observed.is_local_control,
            Mode::Held | Mode::Armed => false,
        };
        let told = if is_ours { applied } else { Controls::default() };
        self.brake_fault = self.brake.step(config, &told, speed, elapsed);
        let rolls = self.roll_back.step(applied.gear, speed.unwrap_or(0.0), elapsed);
        self.rolls_back = rolls.filter(|_| mode.is_driving());
    }

    /// Returns a limit on the machine's motion that it exceeds; `None` if it exceeds none.
    pub(super) fn exceeded(&self, machine: &MachineState, bound: f32, now: Instant) -> Option<Why> {
        let over = self.over_since.is_some_and(|since| now.since(since) >= OVERSPEED_TIME);
        let overspeed = over.then(|| Why::new(Cause::Overspeed, machine.speed, bound));
        overspeed.or(self.twist.over())
    }

    /// Updates the checks of a twisted machine's motion, and the fault of a drive that does not
    /// slow.
    fn step_twist(&mut self, config: &Config, observed: &Observed) {
        let Observed { mode, machine, applied, elapsed, .. } = *observed;
        if self.twist.fault().is_some() && observed.is_stop_over {
            self.twist.believe();
        }
        let is_local = machine.is_some_and(|machine| machine.is_local());
        let follows = match mode {
            _ if is_local => Follows::Nothing,
            Mode::Held => Follows::Nothing,
            Mode::Armed => Follows::Standstill,
            Mode::Driving | Mode::Limited => Follows::Person,
            Mode::Manoeuvre => Follows::Stop,
        };
        let moved = machine.and_then(|machine| reported(config.machine.motion, &machine));
        let is_braked =
            machine.is_some_and(|machine| machine.notices.contains(Notice::ParkingBrake));
        let motion = (moved, !is_braked);
        self.brake_fault = self.twist.step(config, motion, applied.twist, follows, elapsed);
        self.rolls_back = self.twist.rolls().filter(|_| mode.is_driving());
    }
}

/// Margin above the bound in m/s that counts as overspeed after [`OVERSPEED_TIME`].
const OVERSPEED: f32 = 2.0;
/// Time for which a driven machine may exceed the bound by more than [`OVERSPEED`] before it is
/// stopped.
const OVERSPEED_TIME: Duration = Duration::from_secs(1);
