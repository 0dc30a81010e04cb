//! Parts of a guard that depend on the machine's description: axes, actions and requests.

use super::*;
use crate::Fault;
use crate::description::Revision;

impl Guard {
    /// Takes the next entry of the machine's description. A complete description replaces the
    /// former one only while the machine is held.
    pub(super) fn hear_entry(&mut self, entry: Option<&Entry>) {
        if let Some(entry) = entry {
            self.declared.hear(entry);
        }
        if self.mode == Mode::Held {
            self.declared.adopt();
        }
    }

    /// Returns whether the guard knows the description that the machine reports.
    pub(super) fn is_described(&self) -> bool {
        self.declared.is_known(self.description())
    }

    /// Returns the reason to stop a machine that declares other axes and actions than when it was
    /// armed.
    pub(super) fn description_trouble(&self) -> Option<Why> {
        let (machine, _) = self.machine.newest?;
        let faults = machine.faults.with(Fault::Description);
        let why = Why::new(Cause::MachineFault, faults.bits() as f32, 0.0);
        (!self.is_described()).then_some(why)
    }

    /// Returns the controls with axes and actions set: as `wanted` in the newest fresh command
    /// while the machine is armed or driven, else as its description says for a stop.
    pub(super) fn with_described(
        &self,
        controls: Controls,
        wanted: Option<&Controls>,
        elapsed: Duration,
    ) -> Controls {
        let stopped = match (self.mode, self.is_hazard) {
            (Mode::Armed | Mode::Driving | Mode::Limited, _) => None,
            (Mode::Held | Mode::Manoeuvre, true) => Some(Stopped::ByFault),
            (Mode::Held | Mode::Manoeuvre, false) => Some(Stopped::Parked),
        };
        let reported = self.description();
        let measured = self.machine.newest.map_or(Axes::NONE, |(machine, _)| machine.axes);
        let axes = wanted.map(|wanted| &wanted.axes).filter(|_| stopped.is_none());
        let seconds = elapsed.as_secs_f32();
        let last = &self.applied;
        let axes = self.declared.axes((reported, &measured), &last.axes, axes, seconds);
        let actions = wanted.map(|wanted| wanted.actions);
        let actions = self.declared.actions(reported, last.actions, actions, stopped);
        Controls { axes, actions, ..controls }
    }

    /// Checks a request for an action of the machine; returns the condition that prevents it, if
    /// one does.
    pub(super) fn judge_request(&self, act: &Act, action: u8, now: Instant) -> Result<(), Blocker> {
        let rule = self.declared.action(action, self.description());
        let rule = rule.filter(|rule| rule.is_request()).ok_or(Blocker::UnknownAction)?;
        if self.pending.is_some() {
            return Err(Blocker::Busy);
        }
        if self.heard_machine(now).is_none() {
            return Err(Blocker::MachineSilent);
        }
        match (self.mode, self.person.holder) {
            (Mode::Armed | Mode::Driving | Mode::Limited, Some((holder, _))) => {
                (holder == act.console).then_some(()).ok_or(Blocker::OtherConsole)
            }
            (Mode::Held, _) if rule.is_allowed_held => {
                let is_its = |taken: &Taken| taken.command.console == act.console;
                self.fresh(now).is_some_and(is_its).then_some(()).ok_or(Blocker::OtherConsole)
            }
            _ => Err(Blocker::Mode),
        }
    }

    /// Ends the pending request once the machine has answered it, has not answered it for too long,
    /// or the present mode forbids it, and notes the outcome of its act.
    pub(super) fn settle_request(&mut self, now: Instant) {
        let Some(pending) = self.pending else { return };
        let answered = self.machine.newest.and_then(|(machine, _)| machine.answered);
        let rule = self.declared.action(pending.request.action, self.description());
        let is_allowed = match self.mode {
            Mode::Armed | Mode::Driving | Mode::Limited => rule.is_some(),
            Mode::Held | Mode::Manoeuvre => rule.is_some_and(|rule| rule.is_allowed_held),
        };
        let forbidden = (!is_allowed).then_some(Outcome::Refused(Blocker::Mode));
        let Some(outcome) = pending.outcome(answered, now).or(forbidden) else { return };
        self.pending = None;
        match outcome {
            Outcome::Done => self.acts.note(&pending.act, outcome),
            Outcome::Refused(blocker) => self.refuse(&pending.act, blocker),
        }
    }

    /// Returns the revision of the description that the machine reported last, also after it fell
    /// silent; `None` if it declares nothing.
    fn description(&self) -> Option<Revision> {
        self.machine.newest.and_then(|(machine, _)| machine.description)
    }
}
