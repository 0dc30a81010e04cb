//! Handling of deliberate acts, each at most once.

use super::*;

impl Guard {
    /// Does or refuses the newest act, if it was not handled yet; returns the mode that it requires
    /// and the reason, if it requires one. A request to the machine is only begun: its outcome is
    /// the machine's answer.
    pub(super) fn handle_act(&mut self, now: Instant) -> Option<(Mode, Why)> {
        let (proposal, _) = self.vehicle.proposal.newest?;
        let act = proposal.act.filter(|act| self.acts.is_new(act))?;
        let done = self.judge(&act, now);
        match (&done, act.deed) {
            (Err(blocker), _) => self.refuse(&act, *blocker),
            // The machine's answer decides.
            (Ok(_), Deed::Request(_)) => self.acts.begin(&act),
            (Ok(_), _) => self.acts.note(&act, Outcome::Done),
        }
        let (mode, cause) = done.ok().flatten()?;
        let limit = match act.deed {
            Deed::Reset(stop) => stop.get() as f32,
            Deed::Arm
            | Deed::Park
            | Deed::TakeOver
            | Deed::CheckSteering
            | Deed::Steering(_)
            | Deed::Request(_) => 0.0,
        };
        Some((mode, Why::new(cause, act.number.get() as f32, limit)))
    }

    /// Does an act, or returns the condition that prevents it. Returns the mode that the act
    /// requires and its cause, if it requires one; the caller enters that mode.
    fn judge(&mut self, act: &Act, now: Instant) -> Result<Option<(Mode, Cause)>, Blocker> {
        let session = self.vehicle.session.ok_or(Blocker::NoSession)?;
        let age_max = self.config.latency.act_age_max;
        if act.age.is_none_or(|age| age > age_max) {
            return Err(Blocker::StaleAct);
        }
        match act.deed {
            Deed::Arm => {
                if let Some(blocker) = self.blockers(now).iter().next() {
                    return Err(blocker);
                }
                let is_its = |command: &Command| command.console == act.console;
                let newest = self.person.newest.as_ref().is_some_and(is_its);
                let fresh = self.fresh(now).is_some_and(|taken| is_its(&taken.command));
                if !(newest && fresh) {
                    return Err(Blocker::OtherConsole);
                }
                self.person.holder = Some((act.console, session));
                Ok(Some((Mode::Armed, Cause::Arm)))
            }
            Deed::Reset(stop) => {
                if self.mode != Mode::Held || !self.is_latched {
                    return Err(Blocker::Mode);
                }
                if stop != self.stop {
                    return Err(Blocker::OtherStop);
                }
                if !self.is_standing(now) {
                    return Err(Blocker::Moving);
                }
                self.is_latched = false;
                Ok(Some((Mode::Held, Cause::Reset)))
            }
            Deed::Park => {
                let (holder, _) = self.person.holder.ok_or(Blocker::Mode)?;
                if self.mode == Mode::Manoeuvre {
                    return Err(Blocker::Mode);
                }
                if holder != act.console {
                    return Err(Blocker::OtherConsole);
                }
                if !self.is_standing(now) {
                    return Err(Blocker::Moving);
                }
                Ok(Some((Mode::Held, Cause::Parked)))
            }
            Deed::TakeOver => {
                let (holder, _) = self.person.holder.ok_or(Blocker::Mode)?;
                if self.mode == Mode::Manoeuvre || holder == act.console {
                    return Err(Blocker::Mode);
                }
                let named = self.fresh(now).and_then(|taken| taken.command.successor);
                if named != Some(act.console) {
                    return Err(Blocker::NotNamed);
                }
                // The last command stays valid until the successor's first, or until it times out.
                self.person.predecessor = Some(holder);
                self.person.holder = Some((act.console, session));
                Ok(None)
            }
            Deed::Request(action) => {
                self.judge_request(act, action, now)?;
                let number = self.tick.get();
                self.pending = Some(Pending::new(Request { number, action }, *act, now));
                Ok(None)
            }
            Deed::CheckSteering => {
                self.check_holds_armed(act)?;
                if self.is_twisted() {
                    return Err(Blocker::NoSteering);
                }
                if !self.is_standing(now) {
                    return Err(Blocker::Moving);
                }
                self.steering_check = Some(steering::Check::begin(now));
                Ok(None)
            }
            Deed::Steering(agreement) => {
                self.check_holds_armed(act)?;
                if self.steering_check.is_none() {
                    return Err(Blocker::Mode);
                }
                match agreement {
                    Agreement::Agrees | Agreement::Unseen => {
                        self.steering_check = None;
                        Ok(None)
                    }
                    Agreement::Wrong => Ok(Some((Mode::Held, Cause::SteeringWrong))),
                }
            }
        }
    }

    /// Answers an act with the condition that prevents it, and counts it.
    pub(super) fn refuse(&mut self, act: &Act, blocker: Blocker) {
        self.acts.note(act, Outcome::Refused(blocker));
        self.counts.acts_refused = self.counts.acts_refused.saturating_add(1);
    }

    /// Checks that the machine is armed by the act's console and driving has not begun; otherwise
    /// returns the condition that prevents the act.
    fn check_holds_armed(&self, act: &Act) -> Result<(), Blocker> {
        let (holder, _) = self.person.holder.ok_or(Blocker::Mode)?;
        match self.mode {
            Mode::Armed if holder == act.console => Ok(()),
            Mode::Armed => Err(Blocker::OtherConsole),
            Mode::Held | Mode::Driving | Mode::Limited | Mode::Manoeuvre => Err(Blocker::Mode),
        }
    }

    /// Returns the conditions that prevent arming: only [`Blocker::Mode`] while the machine is
    /// armed or driven.
    pub(super) fn blockers(&self, now: Instant) -> Blockers {
        match self.mode {
            Mode::Armed | Mode::Driving | Mode::Limited => return Blockers::of(Blocker::Mode),
            Mode::Held | Mode::Manoeuvre => {}
        }
        let presence = &self.config.presence;
        let taken = self.fresh(now);
        let absence = self.person.newest.as_ref().and_then(|command| self.absence(command));
        let is_dead_man = absence == Some(Cause::DeadManReleased);
        let throttle = taken.map_or(0.0, |taken| self.demand(&taken.command.controls));
        let machine = self.machine_blocker(now);
        let vehicle = self.vehicle_blocker(now);
        let picture = self.loop_age.current(now);
        let sees = picture.is_some_and(|age| age <= self.config.latency.loop_age_max);
        let blockers: Blockers = machine.into_iter().chain(vehicle).collect();
        blockers
            .with_if(Blocker::Mode, self.mode == Mode::Manoeuvre)
            .with_if(Blocker::Latched, self.is_latched)
            .with_if(Blocker::LatchNotKept, self.latch == Latch::Refused)
            .with_if(Blocker::Moving, !self.is_standing(now))
            .with_if(Blocker::Description, !self.is_described())
            .with_if(Blocker::NoSession, self.vehicle.session.is_none())
            .with_if(Blocker::NoCommand, taken.is_none())
            .with_if(Blocker::ThrottlePressed, throttle > presence.throttle_dead_zone)
            .with_if(Blocker::PictureAge, !sees)
            .with_if(Blocker::PersonAbsent, absence.is_some() && !is_dead_man)
            .with_if(Blocker::DeadMan, is_dead_man)
    }

    fn machine_blocker(&self, now: Instant) -> Option<Blocker> {
        match self.machine_trouble(now)?.cause {
            Cause::MachineTimeout | Cause::GuardSilent => Some(Blocker::MachineSilent),
            Cause::LocalStop | Cause::LocalControl => Some(Blocker::LocalPerson),
            _ => Some(Blocker::MachineFault),
        }
    }

    fn vehicle_blocker(&self, now: Instant) -> Option<Blocker> {
        match self.vehicle_trouble(now)?.cause {
            Cause::ProposalTimeout => Some(Blocker::VehicleSilent),
            Cause::SessionEnded => Some(Blocker::NoSession),
            _ => Some(Blocker::VehicleTrouble),
        }
    }
}
