use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::act::{Act, Agreement, Blocker, Blockers, Deed, Outcome};
use crate::actions::Stopped;
use crate::age::{LateFrames, LoopAge};
use crate::config::Config;
use crate::declared::Declared;
use crate::description::Entry;
use crate::envelope::{self, Limits, SpeedBound};
use crate::frame::{BlackBox, Budget, Command, Control, Counts, DeadMan, Proposal, Status};
use crate::hill::{HillHold, ROLLING_SPEED};
use crate::identity::{ActNumber, Console, Session, Stop, Tick};
use crate::manoeuvre::{Manoeuvre, STANDING_SPEED};
use crate::request::Pending;
use crate::stopping::{Stopping, reported};
use crate::twist_envelope::{self, TwistEnvelope};
use crate::twist_stop::{Begin, TwistStop};
use crate::{
    Axes, Cause, Controls, MachineState, Mode, Motion, Notice, Pauses, Request, Transition, Why,
};
use watches::{Observed, Watches};

mod acts;
mod described;
mod memory;
mod rules;
mod steering;
mod twisted;
mod watches;

/// A safety controller that decides, by its own clock, what a machine may do.
///
/// A process calls [`step`](Self::step) every 10 ms. It passes the newest frames from the vehicle
/// and the machine that arrived since the previous step. It sends both frames of the output at
/// once. Nothing else moves the machine. The guard is deterministic: the same config, start and
/// inputs produce the same outputs, so a recording of the inputs can be replayed. Neither call
/// allocates.
///
/// ```
/// use tautline_guard::{Guard, Input, Mode, config::Config, identity::Tick};
/// use tautline_units::Instant;
///
/// let first_tick = Tick::new(7).expect("drawn at random, not 0");
/// let mut guard = Guard::new(Config::car(), first_tick);
/// let output = guard.step(&Input::default(), Instant::from_millis(10));
/// assert_eq!(output.status.mode, Mode::Held);
/// assert!(output.control.controls.brake > 0.0 && output.control.controls.throttle == 0.0);
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Guard {
    config: Config,
    tick: Tick,
    stepped_at: Option<Instant>,
    mode: Mode,
    since: Instant,
    why: Why,
    stop: Stop,
    is_latched: bool,
    /// `true` after a stop that people around the machine must notice, until the machine is armed.
    is_hazard: bool,
    /// `true` while the machine is held and has been at standstill, so that both brakes are
    /// applied; `false` from a start until the first standstill, and after local control.
    is_parked: bool,
    vehicle: Vehicle,
    person: Person,
    machine: Heard<MachineState>,
    declared: Declared,
    /// Request to the machine that it has not answered yet; `None` without one.
    pending: Option<Pending>,
    loop_age: LoopAge,
    bound: SpeedBound,
    watches: Watches,
    twist_envelope: TwistEnvelope,
    hill: HillHold,
    touched: Touched,
    /// Storage of the latch, as last reported.
    latch: Latch,
    manoeuvre: Option<Stopping>,
    acts: memory::Memory,
    /// Newest steering check since the machine was armed, running or awaiting its result; `None`
    /// without one.
    steering_check: Option<steering::Check>,
    /// Newest emergency stop that was acted on; `None` before the first.
    emergency_stop: Option<ActNumber>,
    /// Newest emergency stop that may be acknowledged: its latch is kept, or needs no storage;
    /// `None` before the first.
    emergency_stop_kept: Option<ActNumber>,
    /// Controls sent in the newest step.
    applied: Controls,
    limits: Limits,
    counts: Counts,
}

/// Input received since the previous step.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Input {
    /// Newest proposal of the vehicle; `None` if none arrived.
    pub proposal: Option<Proposal>,
    /// Newest state of the machine; `None` if none arrived.
    pub machine: Option<MachineState>,
    /// Next entry of the machine's description; `None` if none waits.
    pub entry: Option<Entry>,
    /// State of the black box's recording; the guard forwards it to the vehicle.
    pub black_box: BlackBox,
    /// Present state of the storage of the latch.
    pub latch: Latch,
}

/// Storage in which the latch of a stop outlives the guard.
///
/// With storage, the guard neither reports a latch nor acknowledges an emergency stop before the
/// latch is kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub enum Latch {
    /// No storage: the latch ends with the guard.
    #[default]
    Nowhere,
    /// Storage that survives a restart, and the stop that it holds as latched, if any.
    Kept(Option<Stop>),
    /// Storage is required but failed: no machine is armed.
    Refused,
}

/// Output of one step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Output {
    /// Frame for the machine.
    pub control: Control,
    /// Frame for the vehicle.
    pub status: Status,
    /// Change of mode or of cause in this step, if there was one.
    pub transition: Option<Transition>,
    /// Stop whose latch must survive a restart; `None` if no stop is latched.
    pub latched: Option<Stop>,
}

/// Newest frame of a sender, and what is needed to date it.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Heard<T> {
    /// Frame and its send time by the guard's clock: its arrival less its lateness. `None` before
    /// the first.
    newest: Option<(T, Instant)>,
    late: LateFrames,
    pauses: Pauses,
}

/// State received from the vehicle.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Vehicle {
    proposal: Heard<Proposal>,
    /// Session in the newest proposal; `None` without one.
    session: Option<Session>,
    /// Newest sequence number of this session's commands; `None` before the first.
    newest_sequence: Option<u64>,
}

/// The person who drives, and that person's newest commands.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
struct Person {
    /// Console that armed the machine or took it over, and the session in which it did; `None`
    /// while the machine is held.
    holder: Option<(Console, Session)>,
    /// Console that handed over to the holder: its delayed commands are ignored; `None` before a
    /// takeover.
    predecessor: Option<Console>,
    /// `true` after a command from a console that is neither holder nor predecessor, until the
    /// machine is held.
    is_stranger: bool,
    /// Newest command of any age, from the holder if there is one: an absence that it reports
    /// counts even if the command is late.
    newest: Option<Command>,
    /// Newest command that was fresh on arrival; it may have timed out since; `None` before the
    /// first.
    fresh: Option<Taken>,
}

/// Last input of the driving person, found by comparing fresh commands.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
struct Touched {
    /// Controls of the command that was the last input.
    controls: Controls,
    /// Time of the last input; `None` while the machine is not driven.
    at: Option<Instant>,
}

/// A command that was fresh on arrival.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Taken {
    command: Command,
    /// Arrival time.
    at: Instant,
    /// Transit time of the command on arrival.
    age: Duration,
}

impl Guard {
    /// Creates the guard of a machine that is held.
    ///
    /// `first_tick` is drawn at random, so that no stamp from before a restart counts.
    ///
    /// # Panics
    /// If a setting is out of range or two contradict each other; [`Config::validate`] reports that
    /// as an error.
    pub fn new(config: Config, first_tick: Tick) -> Self {
        assert_eq!(config.validate(), Ok(()), "a guard's settings are consistent");
        let stop = Stop::new(first_tick.get()).expect("a tick is never 0");
        Self {
            config,
            tick: first_tick,
            stepped_at: None,
            mode: Mode::Held,
            since: Instant::ZERO,
            why: Why::default(),
            stop,
            is_latched: false,
            is_hazard: false,
            is_parked: false,
            vehicle: Vehicle { proposal: Heard::default(), session: None, newest_sequence: None },
            person: Person::default(),
            machine: Heard::default(),
            declared: Declared::default(),
            pending: None,
            loop_age: LoopAge::new(),
            bound: SpeedBound::new(&config),
            watches: Watches::default(),
            twist_envelope: TwistEnvelope::default(),
            hill: HillHold::default(),
            touched: Touched::default(),
            latch: Latch::default(),
            manoeuvre: None,
            acts: memory::Memory::default(),
            steering_check: None,
            emergency_stop: None,
            emergency_stop_kept: None,
            applied: Controls::default(),
            limits: Limits::NONE,
            counts: Counts::default(),
        }
    }

    /// Returns this guard with `stop` latched, restored from an earlier run; its cause is reported
    /// as an emergency stop.
    #[must_use]
    pub fn with_latched(self, stop: Stop) -> Self {
        let why = Why::new(Cause::EmergencyStop, 0.0, 0.0);
        Self { stop, is_latched: true, is_hazard: true, why, ..self }
    }

    /// Processes the input since the previous step and returns the output to send now. `now` is by
    /// the guard's clock.
    pub fn step(&mut self, input: &Input, now: Instant) -> Output {
        let gap = self.stepped_at.map_or(Duration::ZERO, |at| now.since(at));
        if self.stepped_at.replace(now).is_some() {
            self.tick = self.tick.next();
        }
        self.loop_age.issue(self.tick, now);
        self.machine.pauses.turn(gap);
        self.vehicle.proposal.pauses.turn(gap);
        if let Some(machine) = input.machine {
            self.machine.hear(machine, machine.measured_at, now);
        }
        if let Some(proposal) = &input.proposal {
            self.handle_proposal(proposal, now);
        }
        self.hear_entry(input.entry.as_ref());
        self.latch = input.latch;
        let elapsed = gap.min(self.config.latency.step_gap_max);
        self.watch(elapsed, now);
        let transition = self.advance(gap, now);
        let mode = self.mode;
        let (controls, limits) = self.controls(elapsed, now);
        (self.applied, self.limits) = (controls, limits);
        if self.is_latch_told() || !self.is_latched {
            self.emergency_stop_kept = self.emergency_stop;
        }
        let request = self.pending.map(|pending| pending.request);
        let control = Control { source: now, mode, controls, request };
        let status = Status { black_box: input.black_box, ..self.status(now) };
        Output { control, status, transition, latched: self.is_latched.then_some(self.stop) }
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn handle_proposal(&mut self, proposal: &Proposal, now: Instant) {
        let late = self.vehicle.proposal.hear(*proposal, proposal.source, now);
        if proposal.session != self.vehicle.session {
            self.vehicle.session = proposal.session;
            self.vehicle.newest_sequence = None;
            self.person.newest = None;
            self.person.fresh = None;
            self.loop_age.forget();
        }
        if let (Some(command), Some(_)) = (proposal.command, proposal.session) {
            self.handle_command(&command, late, now);
        }
    }

    fn handle_command(&mut self, command: &Command, late: Duration, now: Instant) {
        if self.vehicle.newest_sequence.is_some_and(|newest| command.sequence <= newest) {
            return;
        }
        self.vehicle.newest_sequence = Some(command.sequence);
        let person = &mut self.person;
        match person.holder {
            Some(_) if person.predecessor == Some(command.console) => return,
            Some((holder, _)) if holder != command.console => {
                person.is_stranger = true;
                return;
            }
            Some(_) | None => {}
        }
        if person.newest.is_some_and(|newest| newest.console != command.console) {
            self.loop_age.forget();
        }
        let controls = command.controls.sane().of(self.config.machine.motion);
        let command = Command { controls, ..*command };
        person.newest = Some(command);
        if let Some(tick) = command.cited
            && !self.loop_age.cite(tick, now)
        {
            self.counts.ticks_refused = self.counts.ticks_refused.saturating_add(1);
        }
        let age = command.age.map(|age| age + late);
        match age.filter(|age| *age <= self.config.latency.command_age_max) {
            Some(age) => person.fresh = Some(Taken { command, at: now, age }),
            None => self.counts.commands_stale = self.counts.commands_stale.saturating_add(1),
        }
    }

    /// Updates all that depends on the time since the previous step: the speed bound, and the
    /// conditions that count only after some time.
    fn watch(&mut self, elapsed: Duration, now: Instant) {
        let over = |stop: &Stopping| stop.is_over_by_time(&self.config, now);
        let observed = Observed {
            mode: self.mode,
            machine: self.heard_machine(now).copied(),
            applied: self.applied,
            is_local_control: self.has(Notice::LocalControl),
            is_stop_over: self.manoeuvre.as_ref().is_some_and(over),
            elapsed,
            now,
        };
        let is_twisted = self.is_twisted();
        if !is_twisted {
            self.watches.step_speed(&self.config, &observed);
        }
        let speed = self.speed(now);
        if self.mode == Mode::Held {
            let is_ours = !observed.is_local_control;
            self.is_parked = is_ours && (self.is_parked || self.is_standing(now));
            self.follow_machine(now);
        }
        let age = self.loop_age.worst(now);
        let pace = match is_twisted {
            true => self.moved(now).map(|moved| twist_envelope::pace(&self.config, moved)),
            false => speed,
        };
        let pace = pace.unwrap_or(self.config.envelope.speed_max);
        self.bound.step(&self.config, age, pace, elapsed);
        // A held machine's gear may have changed.
        let observed = Observed { applied: self.applied, ..observed };
        self.watches.step(&self.config, &observed, speed, self.bound.get());
        self.watch_inputs(now);
    }

    /// Updates the time of the driving person's last input, if the newest fresh command has one;
    /// the first such command of a drive counts as one. Clears it while nobody drives.
    fn watch_inputs(&mut self, now: Instant) {
        if !self.mode.is_driving() {
            self.touched = Touched::default();
            return;
        }
        let dead_zone = self.config.presence.throttle_dead_zone;
        let Some(command) = self.fresh(now).map(|taken| taken.command) else { return };
        let (before, controls) = (self.touched.controls, command.controls);
        let is_pressed = self.demand(&controls) > dead_zone || controls.brake > dead_zone;
        let is_turned = (controls.steering - before.steering).abs() > STEERING_TOUCHED;
        let is_switched = (controls.gear, controls.actions) != (before.gear, before.actions);
        let is_moved = controls.axes != before.axes;
        let is_held = command.dead_man == DeadMan::Held;
        if self.touched.at.is_none()
            || is_pressed
            || is_turned
            || is_switched
            || is_moved
            || is_held
        {
            self.touched = Touched { controls, at: Some(now) };
        }
    }

    /// Adopts steering and gear from a held Ackermann machine until it has been at standstill:
    /// after a start of the guard, and during local control. Does nothing while the machine is
    /// silent.
    fn follow_machine(&mut self, now: Instant) {
        let adopts = !self.is_parked && !self.is_twisted();
        let Some(machine) = self.heard_machine(now).copied().filter(|_| adopts) else {
            return;
        };
        self.applied.gear = machine.gear;
        let share = machine.steering_angle / self.config.machine.steering_angle_max;
        if share.is_finite() {
            self.applied.steering = share.clamp(-1.0, 1.0);
        }
    }

    /// Settles the pending request to the machine. Then changes the mode on an emergency stop, a
    /// rule or an act, in this order of precedence, and returns the transition, if there was one.
    fn advance(&mut self, gap: Duration, now: Instant) -> Option<Transition> {
        self.settle_request(now);
        let next =
            self.emergency(now).or_else(|| self.next(gap, now)).or_else(|| self.handle_act(now));
        next.map(|(mode, why)| self.enter(mode, why, now))
    }

    /// Returns the mode and reason for the newest emergency stop, once for each number: held stays
    /// held if the machine does not roll, any other mode becomes a manoeuvre.
    fn emergency(&mut self, now: Instant) -> Option<(Mode, Why)> {
        let number = self.vehicle.proposal.newest?.0.emergency_stop?;
        if self.emergency_stop.replace(number) == Some(number) {
            return None;
        }
        let why = Why::new(Cause::EmergencyStop, number.get() as f32, 0.0);
        let mode = match self.mode {
            // After a restart of the guard the machine may be moving.
            Mode::Held if self.rolling(now).is_none() => Mode::Held,
            Mode::Held | Mode::Armed | Mode::Driving | Mode::Limited | Mode::Manoeuvre => {
                Mode::Manoeuvre
            }
        };
        Some((mode, why))
    }

    fn enter(&mut self, to: Mode, why: Why, now: Instant) -> Transition {
        let from = self.mode;
        let was_released = match from {
            Mode::Armed | Mode::Driving | Mode::Limited => true,
            Mode::Held | Mode::Manoeuvre => false,
        };
        match to {
            Mode::Held => {
                if was_released || why.cause == Cause::EmergencyStop {
                    self.begin_stop(why.cause);
                }
                // Release ends with Held; any console needs a new act to drive again.
                self.person = Person::default();
                self.manoeuvre = None;
                self.is_parked |= from != Mode::Held;
            }
            Mode::Manoeuvre => {
                if from != Mode::Manoeuvre || why.cause == Cause::EmergencyStop {
                    self.begin_stop(why.cause);
                }
                self.begin_manoeuvre(why.cause, from, now);
            }
            Mode::Armed => {
                (self.is_hazard, self.is_parked) = (false, false);
                self.hill = HillHold::of_armed(&self.config);
            }
            Mode::Driving | Mode::Limited => {}
        }
        if to != Mode::Armed {
            self.steering_check = None;
        }
        self.is_latched |= why.cause.is_latched();
        if to != from {
            self.since = now;
        }
        self.mode = to;
        // The reported cause stays the one of the stop; standstill and reset do not replace it.
        if !matches!(why.cause, Cause::Standstill | Cause::Reset) {
            self.why = why;
        }
        Transition { from, to, why, stop: self.stop, tick: self.tick, at: now }
    }

    fn begin_stop(&mut self, cause: Cause) {
        // A latched stop keeps the name that resets it, until another emergency stop.
        if !self.is_latched || cause.is_latched() {
            self.stop = self.stop.next();
        }
        self.is_hazard |= !matches!(cause, Cause::Parked | Cause::ArmExpired);
    }

    fn begin_manoeuvre(&mut self, cause: Cause, from: Mode, now: Instant) {
        let machine = self.heard_machine(now).copied();
        let begin = Begin {
            driven: from.is_driving().then_some(self.applied.twist),
            moved: self.moved(now),
            most: twist_envelope::most(&self.config),
        };
        let most =
            self.watches.speed.fault().map_or(self.config.envelope.speed_max, |fault| fault.most);
        let speed = (self.speed(now), most);
        let config = &self.config;
        let manoeuvre = self.manoeuvre.get_or_insert_with(|| match config.machine.motion {
            Motion::Ackermann => Stopping::Wheels(Manoeuvre::begin(
                config,
                cause,
                &self.applied,
                machine.as_ref(),
                speed,
                now,
            )),
            Motion::Differential | Motion::Omni => {
                Stopping::Twist(TwistStop::begin(config, cause, begin, now))
            }
        });
        manoeuvre.harden(config, cause, now);
        if self.is_parked {
            // Both brakes were applied, so releasing either cannot help.
            manoeuvre.brake_fully(config);
        }
        self.is_parked = false;
    }

    /// Returns the controls for the machine, and the limits that changed the commanded controls.
    fn controls(&mut self, elapsed: Duration, now: Instant) -> (Controls, Limits) {
        if self.is_twisted() {
            return self.twist_controls(elapsed, now);
        }
        let (speed, last) = (self.speed(now), self.applied);
        let wanted = self.fresh(now).map(|taken| taken.command.controls);
        let config = &self.config;
        let bounded = speed.unwrap_or(config.envelope.speed_max);
        let hold = Controls {
            throttle: 0.0,
            brake: config.manoeuvre.hold_brake,
            parking_brake: true,
            ..last
        };
        let (controls, limits) = match (self.mode, wanted) {
            // The machine may be moving until it reports standstill.
            (Mode::Held, _) if !self.is_parked => {
                let brake = config.manoeuvre.deceleration / config.machine.deceleration_max;
                (Controls { brake, parking_brake: false, ..hold }, Limits::NONE)
            }
            (Mode::Held, _) => (hold, Limits::NONE),
            (Mode::Armed, Some(wanted)) => {
                let check = self.steering_check.and_then(|check| check.share(now));
                let steering = check.unwrap_or(wanted.steering);
                let standing = Controls { throttle: 0.0, steering, ..wanted };
                let bound = self.bound.get();
                let (held, limits) =
                    envelope::hold(config, &standing, &last, bounded, bound, elapsed);
                (Controls { brake: hold.brake, ..held }, limits)
            }
            (Mode::Driving | Mode::Limited, Some(wanted)) => {
                let (held, limits) =
                    envelope::hold(config, &wanted, &last, bounded, self.bound.get(), elapsed);
                let hill = self.hill.step(config, &held, bounded, elapsed);
                (Controls { brake: held.brake.max(hill), ..held }, limits)
            }
            (Mode::Armed | Mode::Driving | Mode::Limited, None) => (hold, Limits::NONE),
            (Mode::Manoeuvre, wanted) => {
                let person = wanted.filter(|_| self.sees_and_steers(now));
                let local = self.heard_machine(now).filter(|machine| machine.is_local()).copied();
                let step = match &mut self.manoeuvre {
                    Some(Stopping::Wheels(manoeuvre)) => {
                        if let Some(machine) = local {
                            manoeuvre.follow(config, &machine);
                        }
                        manoeuvre.step(config, speed, person.as_ref(), &last, elapsed, now)
                    }
                    Some(Stopping::Twist(_)) | None => hold,
                };
                (step, Limits::NONE)
            }
        };
        (self.with_described(controls, wanted.as_ref(), elapsed), limits)
    }

    fn status(&self, now: Instant) -> Status {
        let machine = self.machine.newest.map(|(machine, at)| (machine, now.since(at)));
        let most = twist_envelope::Most::of(&self.config, self.bound.get());
        Status {
            source: now,
            tick: self.tick,
            mode: self.mode,
            why: self.why,
            stop: self.stop,
            is_latched: self.is_latched && self.is_latch_told(),
            emergency_stop: self.emergency_stop_kept,
            answer: self.acts.answer(),
            blockers: self.blockers(now),
            holder: self.person.holder.map(|(console, _)| console),
            session: self.person.holder.map(|(_, session)| session),
            loop_age: self.loop_age.worst(now),
            command_age: self.person.fresh.map(|taken| taken.age + now.since(taken.at)),
            speed_bound: self.bound.get(),
            sideways_speed_bound: most.sideways,
            yaw_rate_bound: most.yaw_rate,
            motion: self.config.machine.motion,
            countdown: self.countdown(now),
            limits: self.limits,
            counts: self.counts,
            applied: self.applied,
            machine,
            black_box: BlackBox::Absent,
            budget: Budget::of(&self.config),
        }
    }

    /// Returns the newest command that was fresh on arrival, until the command timeout.
    fn fresh(&self, now: Instant) -> Option<&Taken> {
        let timeout = self.config.latency.command_timeout;
        self.person.fresh.as_ref().filter(|taken| now.since(taken.at) < timeout)
    }

    /// Returns whether the person may steer during a stop: sees a recent picture, is present with
    /// trusted inputs, and the vehicle works.
    fn sees_and_steers(&self, now: Instant) -> bool {
        let picture = self.loop_age.current(now);
        let sees = picture.is_some_and(|age| age <= self.config.latency.loop_age_max);
        sees && !self.why.cause.doubts_wheel()
            && self.person_trouble(now).is_none()
            && self.vehicle_trouble(now).is_none()
    }

    /// Returns the newest machine state, unless the machine has timed out.
    fn heard_machine(&self, now: Instant) -> Option<&MachineState> {
        let is_heard = self.machine.silence(now) <= self.config.latency.machine_timeout;
        self.machine.newest.as_ref().filter(|_| is_heard).map(|(machine, _)| machine)
    }

    /// Returns the machine's credible speed in m/s; `None` if the machine is silent, or its speed
    /// unknown or implausible.
    fn speed(&self, now: Instant) -> Option<f32> {
        if self.is_twisted() {
            return self.moved(now).map(|moved| moved.forward);
        }
        let machine = self.heard_machine(now).filter(|machine| machine.speed.is_finite())?;
        let watch = &self.watches.speed;
        watch.speed().or(watch.fault().map_or(Some(machine.speed), |_| None))
    }

    /// Returns whether the latch of the newest stop may be reported: the storage holds it, or there
    /// is no storage.
    fn is_latch_told(&self) -> bool {
        match self.latch {
            Latch::Nowhere => true,
            Latch::Kept(stop) => stop == Some(self.stop),
            Latch::Refused => false,
        }
    }

    fn has(&self, notice: Notice) -> bool {
        self.machine.newest.is_some_and(|(machine, _)| machine.notices.contains(notice))
    }
}

impl<T> Default for Heard<T> {
    fn default() -> Self {
        Self { newest: None, late: LateFrames::default(), pauses: Pauses::default() }
    }
}

impl<T> Heard<T> {
    /// Stores a frame sent at `source` by its sender's clock; returns its lateness.
    fn hear(&mut self, frame: T, source: Instant, now: Instant) -> Duration {
        let late = self.late.handle(source, now);
        self.newest = Some((frame, now - late));
        self.pauses.hear();
        late
    }

    /// Returns the time since the newest frame was sent, without the guard's own pauses; before the
    /// first frame, almost [`Duration::MAX`].
    fn silence(&self, now: Instant) -> Duration {
        let since = self.newest.as_ref().map_or(Duration::MAX, |(_, at)| now.since(*at));
        self.pauses.count(since)
    }
}

/// Change of the steering share above which it counts as input: a wheel's sensor at rest varies by
/// less.
const STEERING_TOUCHED: f32 = 0.02;

#[cfg(test)]
mod tests;
