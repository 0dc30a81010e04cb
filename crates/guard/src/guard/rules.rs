//! Rules that change the mode.

use super::*;
use crate::Fault;
use crate::frame::{Absence, DeadMan, Trouble};
use crate::standstill;

impl Guard {
    /// Returns the mode that a rule requires and the reason; `None` if no rule acts.
    ///
    /// The mode is the present one if only the cause changes: a brake that does not respond in a
    /// manoeuvre.
    pub(super) fn next(&self, gap: Duration, now: Instant) -> Option<(Mode, Why)> {
        match self.mode {
            Mode::Held => self.rolling(now).map(|why| (Mode::Manoeuvre, why)),
            Mode::Armed => {
                if let Some(why) = self.trouble(gap, now).or_else(|| self.rolling(now)) {
                    let is_standing = self.is_standing(now);
                    return Some((if is_standing { Mode::Held } else { Mode::Manoeuvre }, why));
                }
                let presence = &self.config.presence;
                let (armed, limit) = (now.since(self.since), presence.arm_timeout);
                if armed >= limit {
                    return Some((Mode::Held, in_ms(Cause::ArmExpired, armed, limit)));
                }
                let throttle = self.demand(&self.fresh(now)?.command.controls);
                let dead_zone = presence.throttle_dead_zone;
                let why = Why::new(Cause::Throttle, throttle, dead_zone);
                (throttle > dead_zone).then_some((Mode::Driving, why))
            }
            Mode::Driving | Mode::Limited => {
                if let Some(why) = self.trouble(gap, now).or(self.watches.rolls_back) {
                    return Some((Mode::Manoeuvre, why));
                }
                if let Some(why) = self.unattended(now) {
                    return Some((Mode::Held, why));
                }
                let is_limited = self.bound.get() < self.config.envelope.speed_max;
                let mode = if is_limited { Mode::Limited } else { Mode::Driving };
                let full = self.config.latency.loop_age_full;
                (mode != self.mode).then(|| (mode, in_ms(Cause::LoopAge, self.bound.age(), full)))
            }
            Mode::Manoeuvre => {
                if let Some(why) = self.watches.brake_fault
                    && self.why.cause != Cause::BrakeDoesNotAnswer
                {
                    return Some((Mode::Manoeuvre, why));
                }
                let (took, metres) = self.manoeuvre.as_ref()?.ended(&self.config, now)?;
                let why = Why::new(Cause::Standstill, took.as_secs_f32(), metres);
                Some((Mode::Held, why))
            }
        }
    }

    /// Returns the first reason to stop a machine that is armed or driven, in the order: machine,
    /// late step, vehicle, person, picture.
    fn trouble(&self, gap: Duration, now: Instant) -> Option<Why> {
        let limit = self.config.latency.step_gap_max;
        let late = (gap > limit).then(|| in_ms(Cause::GuardLate, gap, limit));
        self.machine_trouble(now)
            .or_else(|| self.description_trouble())
            .or(late)
            .or_else(|| self.vehicle_trouble(now))
            .or_else(|| self.person_trouble(now))
            .or_else(|| self.picture_trouble(now))
    }

    pub(super) fn machine_trouble(&self, now: Instant) -> Option<Why> {
        let limit = self.config.latency.machine_timeout;
        let Some(machine) = self.heard_machine(now) else {
            let silent = self.machine.silence(now);
            return Some(in_ms(Cause::MachineTimeout, silent, limit));
        };
        let faults = machine.faults;
        if machine.notices.contains(Notice::LocalStop) || faults.contains(Fault::EmergencyButton) {
            return Some(Why::plain(Cause::LocalStop));
        }
        if machine.is_local() {
            return Some(Why::plain(Cause::LocalControl));
        }
        if let Some(why) = self.watches.brake_fault {
            return Some(why);
        }
        if faults.contains(Fault::Brake) {
            return Some(Why::new(Cause::BrakeDoesNotAnswer, 0.0, 0.0));
        }
        let implausible = self.watches.speed.fault().map(|fault| fault.why);
        let implausible = implausible.or(self.watches.twist.fault());
        if implausible.is_some() {
            return implausible;
        }
        // A fault without a name may not matter, so it alone stops nothing.
        if !faults.without(Fault::Other).is_empty() || !self.tells_motion(machine) {
            return Some(Why::new(Cause::MachineFault, faults.bits() as f32, 0.0));
        }
        if machine.notices.contains(Notice::GuardSilent) {
            return Some(Why::plain(Cause::GuardSilent));
        }
        self.watches.exceeded(machine, self.bound.get(), now)
    }

    pub(super) fn vehicle_trouble(&self, now: Instant) -> Option<Why> {
        let limit = self.config.latency.proposal_timeout;
        let silent = self.vehicle.proposal.silence(now);
        let Some((proposal, _)) = self.vehicle.proposal.newest.as_ref().filter(|_| silent <= limit)
        else {
            return Some(in_ms(Cause::ProposalTimeout, silent, limit));
        };
        if let Some((_, session)) = self.person.holder
            && proposal.session != Some(session)
        {
            let is = Session::to_wire(proposal.session);
            return Some(Why::new(Cause::SessionEnded, is as f32, session.get() as f32));
        }
        if proposal.troubles.contains(Trouble::Camera) {
            return Some(Why::plain(Cause::CameraStopped));
        }
        if proposal.troubles.contains(Trouble::Encoder) {
            return Some(Why::plain(Cause::EncoderStopped));
        }
        if proposal.troubles.contains(Trouble::Blind) {
            return Some(Why::plain(Cause::CameraBlind));
        }
        let told = self.speed(now).unwrap_or(0.0);
        let motion = Why::new(Cause::SpeedImplausible, told, SEEN_SPEED);
        proposal.troubles.contains(Trouble::Motion).then_some(motion)
    }

    /// Returns the first reason to stop that concerns the person: a foreign console, an absence, or
    /// no fresh command.
    pub(super) fn person_trouble(&self, now: Instant) -> Option<Why> {
        if self.person.is_stranger {
            return Some(Why::plain(Cause::ConsoleChanged));
        }
        if let Some(command) = &self.person.newest
            && let Some(cause) = self.absence(command)
        {
            return Some(Why::plain(cause));
        }
        let limit = self.config.latency.command_timeout;
        let Some(taken) = &self.person.fresh else {
            return Some(in_ms(Cause::CommandTimeout, Duration::MAX, limit));
        };
        let silent = now.since(taken.at);
        (silent >= limit).then(|| in_ms(Cause::CommandTimeout, silent, limit))
    }

    fn picture_trouble(&self, now: Instant) -> Option<Why> {
        let limit = self.config.latency.loop_age_max;
        let age = self.loop_age.current(now).unwrap_or(Duration::MAX);
        (age > limit).then(|| in_ms(Cause::PictureAge, age, limit))
    }

    /// Returns the reason to stop that a command reports about its person: an absence, or a
    /// dead-man input that is released, or required and missing.
    pub(super) fn absence(&self, command: &Command) -> Option<Cause> {
        let is_required = self.config.requires_dead_man();
        let causes = command.absences.iter().map(|absence| match absence {
            Absence::ConsoleGone => Cause::ConsoleGone,
            Absence::PageHidden => Cause::PageHidden,
            Absence::FocusLost => Cause::FocusLost,
            // An absence of a later build counts as much as a known one.
            Absence::InputsUnhealthy | Absence::Unknown => Cause::InputsUnhealthy,
        });
        let dead_man = match command.dead_man {
            DeadMan::Held => None,
            DeadMan::Absent => is_required.then_some(Cause::DeadManReleased),
            DeadMan::Released => Some(Cause::DeadManReleased),
        };
        causes.min().or(dead_man)
    }

    /// Returns the reason to stop a machine that moves although it must be stationary; `None` at
    /// unknown speed and under local control.
    pub(super) fn rolling(&self, now: Instant) -> Option<Why> {
        let is_ours = !self.has(Notice::LocalControl);
        if self.is_twisted() {
            let (value, limit) = standstill::rolls(&self.config, self.moved(now)?)?;
            return is_ours.then_some(Why::new(Cause::Rolling, value, limit));
        }
        let speed = self.speed(now)?;
        let why = Why::new(Cause::Rolling, speed, ROLLING_SPEED);
        (is_ours && speed.abs() > ROLLING_SPEED).then_some(why)
    }

    /// Returns the reason to hold a driven machine at standstill without input for too long.
    fn unattended(&self, now: Instant) -> Option<Why> {
        let limit = self.config.presence.standstill_timeout;
        let idle = now.since(self.touched.at?);
        let is_over = idle >= limit && self.is_standing(now);
        is_over.then(|| in_ms(Cause::Unattended, idle, limit))
    }

    pub(super) fn is_standing(&self, now: Instant) -> bool {
        if self.is_twisted() {
            return self.moved(now).is_some_and(|moved| standstill::stands(&self.config, moved));
        }
        self.speed(now).is_some_and(|speed| speed.abs() < STANDING_SPEED)
    }

    /// Returns which of picture age and command timeout stops the machine next if no more input
    /// arrives, and the time until then.
    ///
    /// `None` while the machine is held or stopped, and before the first picture or fresh command.
    pub(super) fn countdown(&self, now: Instant) -> Option<(Cause, Duration)> {
        match self.mode {
            Mode::Held | Mode::Manoeuvre => return None,
            Mode::Armed | Mode::Driving | Mode::Limited => {}
        }
        let latency = &self.config.latency;
        let age = self.loop_age.current(now)?;
        let silent = now.since(self.person.fresh.as_ref()?.at);
        let picture = (latency.loop_age_max.saturating_sub(age), Cause::PictureAge);
        let command = (latency.command_timeout.saturating_sub(silent), Cause::CommandTimeout);
        let (left, cause) = picture.min(command);
        Some((cause, left))
    }
}

/// Least speed in m/s of a machine whose complete picture moves: the limit in the reason of a stop
/// for [`Trouble::Motion`].
const SEEN_SPEED: f32 = 0.5;

/// Creates a reason whose value and limit are times, in milliseconds; a greater value counts as
/// [`VALUE_MAX`].
fn in_ms(cause: Cause, value: Duration, limit: Duration) -> Why {
    let value = value.min(VALUE_MAX);
    Why::new(cause, value.as_secs_f32() * 1e3, limit.as_secs_f32() * 1e3)
}

/// Maximum time in a reason's value: ten minutes, the maximum of every time setting.
const VALUE_MAX: Duration = Duration::from_secs(600);
