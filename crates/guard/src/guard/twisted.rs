//! A guard's parts that only a differential or omni machine has.

use super::*;
use crate::{Motion, Twist};

impl Guard {
    /// Returns whether the machine is moved by a twist.
    pub(super) fn is_twisted(&self) -> bool {
        self.config.machine.motion != Motion::Ackermann
    }

    /// Returns the machine's motion, if it is known and plausible.
    pub(super) fn moved(&self, now: Instant) -> Option<Twist> {
        let machine = self.heard_machine(now)?;
        let moved = reported(self.config.machine.motion, machine)?;
        if self.is_twisted() {
            return self.watches.twist.fault().is_none().then_some(moved);
        }
        self.speed(now).map(|forward| Twist { forward, ..Twist::ZERO })
    }

    /// Returns whether the machine reports all of the motion that it can have.
    pub(super) fn tells_motion(&self, machine: &MachineState) -> bool {
        reported(self.config.machine.motion, machine).is_some()
    }

    /// Returns how much a person wants to move the machine, as a share of the most: of throttle, or
    /// of the largest part of a twist.
    pub(super) fn demand(&self, controls: &Controls) -> f32 {
        match self.config.machine.motion {
            Motion::Ackermann => controls.throttle,
            Motion::Differential | Motion::Omni => {
                twist_envelope::share(&self.config, controls.twist)
            }
        }
    }

    /// Returns the set points for the machine, and the limits that changed the commanded ones.
    pub(super) fn twist_controls(&mut self, elapsed: Duration, now: Instant) -> (Controls, Limits) {
        let (moved, last) = (self.moved(now), self.applied.twist);
        let wanted = self.fresh(now).map(|taken| taken.command.controls);
        let still = Controls::default();
        let (controls, limits) = match (self.mode, wanted) {
            (Mode::Held, _) => (Controls { parking_brake: self.is_parked, ..still }, Limits::NONE),
            (Mode::Driving | Mode::Limited, Some(wanted)) => {
                let (config, bound) = (&self.config, self.bound.get());
                let known = (last, moved);
                let (twist, limits) =
                    self.twist_envelope.hold(config, wanted.twist, known, bound, elapsed);
                (Controls { twist, ..still }, limits)
            }
            (Mode::Armed | Mode::Driving | Mode::Limited, _) => {
                self.twist_envelope = TwistEnvelope::default();
                (still, Limits::NONE)
            }
            (Mode::Manoeuvre, _) => {
                self.twist_envelope = TwistEnvelope::default();
                let local = self.heard_machine(now).filter(|machine| machine.is_local()).copied();
                let parked = self.applied.parking_brake;
                let config = &self.config;
                let (twist, parks) = match &mut self.manoeuvre {
                    Some(Stopping::Twist(stop)) => {
                        if let Some(machine) = local {
                            let moved = reported(config.machine.motion, &machine);
                            stop.follow(moved.unwrap_or_default());
                        }
                        stop.step(config, moved, elapsed, now)
                    }
                    Some(Stopping::Wheels(_)) | None => (Twist::ZERO, true),
                };
                (Controls { twist, parking_brake: parks || parked, ..still }, Limits::NONE)
            }
        };
        (self.with_described(controls, wanted.as_ref(), elapsed), limits)
    }
}
