use std::collections::VecDeque;
use std::time::Duration;

use tautline_guard::act::{Act, Deed};
use tautline_guard::frame::{
    Absence, Absences, Command, DeadMan, Proposal, Status, Trouble, Troubles,
};
use tautline_guard::identity::{ActNumber, Console, Session, Tick};
use tautline_guard::{
    Cause, Controls, Fault as MachineFault, Faults, Guard, Input, MachineState, Mode, Notice,
    Notices, Output,
};
use tautline_units::Instant;

use crate::body::{Arc, Body, Moved, Person};
use crate::equipment::{Equipment, equipped, is_moved, moved};
use crate::replay::{BEGIN_MS, Page, RECORDED, Replay, Sent, Worst};

/// A fault in a drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    UplinkDead,
    UplinkFlickers,
    DownlinkDead,
    SlowBothWays,
    PageFrozen,
    PageGone,
    PageHidden,
    ConsoleGone,
    FocusLost,
    InputsUnhealthy,
    DeadManReleased,
    CameraFrozen,
    CameraStopped,
    EncoderStopped,
    CitesForged,
    VehicleStopped,
    VehicleSlow,
    MachineSilent,
    GuardStopped,
    SessionEnds,
    OtherConsole,
    EmergencyStop,
    LocalStop,
    MachineFails,
}

impl Fault {
    pub(crate) const ALL: [Self; 24] = [
        Self::UplinkDead,
        Self::UplinkFlickers,
        Self::DownlinkDead,
        Self::SlowBothWays,
        Self::PageFrozen,
        Self::PageGone,
        Self::PageHidden,
        Self::ConsoleGone,
        Self::FocusLost,
        Self::InputsUnhealthy,
        Self::DeadManReleased,
        Self::CameraFrozen,
        Self::CameraStopped,
        Self::EncoderStopped,
        Self::CitesForged,
        Self::VehicleStopped,
        Self::VehicleSlow,
        Self::MachineSilent,
        Self::GuardStopped,
        Self::SessionEnds,
        Self::OtherConsole,
        Self::EmergencyStop,
        Self::LocalStop,
        Self::MachineFails,
    ];
    /// Number of faults.
    pub(crate) const COUNT: u64 = Self::ALL.len() as u64;

    /// Returns the begin of the fault in ms: a random time from 6 s to 7.5 s.
    pub(crate) fn at_ms(self, seed: u64) -> u64 {
        6_000 + Rng(seed ^ 0xFA17).next() % 1_500
    }

    /// Returns the maximum time in ms from the fault to the begin of the stop.
    pub(crate) fn most_ms(self) -> u64 {
        match self {
            // A picture captured just before may be seen, and ages from its capture.
            Self::UplinkDead | Self::PageFrozen | Self::CameraFrozen | Self::CitesForged => 530,
            // Pictures after their deadline are not shown.
            Self::SlowBothWays | Self::UplinkFlickers => 530,
            // Counted from the last received command.
            Self::DownlinkDead | Self::PageGone => 300 + 40,
            Self::VehicleStopped | Self::MachineSilent => 60,
            // The lateness of its frames grows by 5 ms with each.
            Self::VehicleSlow => 250,
            // The guard itself pauses for 300 ms.
            Self::GuardStopped => 300 + 30,
            Self::SessionEnds
            | Self::EmergencyStop
            | Self::LocalStop
            | Self::MachineFails
            | Self::CameraStopped
            | Self::EncoderStopped => 40,
            // Counted from the command that reports it.
            Self::PageHidden
            | Self::ConsoleGone
            | Self::FocusLost
            | Self::InputsUnhealthy
            | Self::DeadManReleased
            | Self::OtherConsole => 40,
        }
    }

    pub(crate) fn causes(self) -> &'static [Cause] {
        match self {
            Self::UplinkDead
            | Self::UplinkFlickers
            | Self::PageFrozen
            | Self::CameraFrozen
            | Self::CitesForged => &[Cause::PictureAge],
            Self::SlowBothWays => &[Cause::PictureAge, Cause::CommandTimeout],
            Self::DownlinkDead | Self::PageGone => &[Cause::CommandTimeout, Cause::PictureAge],
            Self::PageHidden => &[Cause::PageHidden],
            Self::ConsoleGone => &[Cause::ConsoleGone],
            Self::FocusLost => &[Cause::FocusLost],
            Self::InputsUnhealthy => &[Cause::InputsUnhealthy],
            Self::DeadManReleased => &[Cause::DeadManReleased],
            Self::CameraStopped => &[Cause::CameraStopped],
            Self::EncoderStopped => &[Cause::EncoderStopped],
            Self::MachineFails => &[Cause::MachineFault],
            Self::VehicleStopped | Self::VehicleSlow => &[Cause::ProposalTimeout],
            Self::MachineSilent => &[Cause::MachineTimeout],
            Self::GuardStopped => &[Cause::GuardSilent, Cause::GuardLate],
            Self::SessionEnds => &[Cause::SessionEnded],
            Self::OtherConsole => &[Cause::ConsoleChanged],
            Self::EmergencyStop => &[Cause::EmergencyStop],
            Self::LocalStop => &[Cause::LocalStop],
        }
    }

    /// Returns whether the person may still see and steer during the stop, so that the wheels need
    /// not keep the arc.
    pub(crate) fn leaves_wheel(self) -> bool {
        matches!(
            self,
            Self::EmergencyStop
                | Self::LocalStop
                | Self::MachineFails
                | Self::MachineSilent
                | Self::GuardStopped
        )
    }

    /// Returns whether the person's command reports the fault.
    pub(crate) fn is_commands(self) -> bool {
        self.absence().is_some() || matches!(self, Self::DeadManReleased | Self::OtherConsole)
    }

    /// Returns what prevents the person from driving during the fault; `None` if nothing does.
    fn absence(self) -> Option<Absence> {
        match self {
            Self::PageHidden => Some(Absence::PageHidden),
            Self::ConsoleGone => Some(Absence::ConsoleGone),
            Self::FocusLost => Some(Absence::FocusLost),
            Self::InputsUnhealthy => Some(Absence::InputsUnhealthy),
            _ => None,
        }
    }
}

/// Time and cause of a stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopped {
    pub(crate) at_ms: u64,
    pub(crate) cause: Cause,
    /// Arrival time of the newest command.
    pub(crate) heard_ms: u64,
    /// Capture time of the newest picture that the person saw.
    pub(crate) blind_from_ms: u64,
    /// The machine's motion at that capture.
    pub(crate) blind_from: Moved,
    /// Fastest motion since then, including that instant.
    pub(crate) fastest: Moved,
}

/// One drive.
#[derive(Debug)]
pub(crate) struct World<M> {
    pub(crate) machine: M,
    equipment: Equipment,
    pub(crate) stopped: Option<Stopped>,
    /// Time in ms at which driving began; `None` before.
    pub(crate) drives_since: Option<u64>,
    /// `true` if axes and action had moved as the person wanted when the stop began.
    pub(crate) had_moved: bool,
    /// Maximum distance from the arc held when the stop began, m.
    pub(crate) off_arc: f64,
    arc: Option<Arc>,
    guard: Guard,
    output: Option<Output>,
    delays: Delays,
    rng: Rng,
    now_ms: u64,
    fault: Option<Fault>,
    fault_at: u64,
    speed: f64,
    weave: f64,
    guard_due: u64,
    vehicle_due: u64,
    machine_due: u64,
    camera_due: u64,
    page_due: u64,
    page_pauses_until: u64,
    page_pause_due: u64,
    /// Pictures in transit, with arrival times in ms.
    pictures: VecDeque<(u64, Picture)>,
    commands: Vec<(u64, Command, u64)>,
    proposals: VecDeque<(u64, Proposal)>,
    seen: Option<Picture>,
    stamp: Option<Tick>,
    newest: Option<(Command, u64)>,
    newest_at: u64,
    sequence: u64,
    controls: Controls,
    controls_at: u64,
    heard: Option<MachineState>,
    /// Pictures as they were at each of the newest ticks.
    issued: VecDeque<Picture>,
    late_ms: u64,
    /// Arrival time of the first command that reports the fault; `None` before.
    pub(crate) told_at: Option<u64>,
    /// Recorded commands that replace camera, network and page, if they are used.
    replay: Option<Replay>,
}

#[derive(Clone, Copy, Debug)]
struct Picture {
    stamp: Tick,
    captured_at: u64,
    /// The machine's motion at the capture.
    moved: Moved,
}

impl<M: Body> World<M> {
    pub(crate) fn new(seed: u64, fault: Option<Fault>) -> Self {
        let mut rng = Rng(seed);
        let slope = [0.0, 0.0, -0.05, 0.05][rng.next() as usize % 4];
        let machine = M::of(seed, slope);
        let first_tick = Tick::new(1 + seed as u32 % 1000).expect("not 0");
        let mut config = machine.config();
        if fault == Some(Fault::DeadManReleased) {
            config.presence.dead_man_required = Some(true);
        }
        let guard = Guard::new(config, first_tick);
        Self {
            machine,
            equipment: Equipment::new(),
            stopped: None,
            drives_since: None,
            had_moved: false,
            off_arc: 0.0,
            arc: None,
            guard,
            output: None,
            delays: Delays::read(MODELLED),
            now_ms: BEGIN_MS,
            fault,
            fault_at: fault.map_or(u64::MAX, |fault| fault.at_ms(seed)),
            speed: M::wanted(seed),
            weave: rng.share() * 2.0 - 1.0,
            rng,
            guard_due: 1_003,
            vehicle_due: 1_001,
            machine_due: 1_002,
            camera_due: 1_010,
            page_due: 1_015,
            page_pauses_until: 0,
            page_pause_due: 1_700,
            pictures: VecDeque::new(),
            commands: Vec::new(),
            proposals: VecDeque::new(),
            seen: None,
            stamp: None,
            newest: None,
            newest_at: 0,
            sequence: 0,
            controls: Controls { brake: 1.0, ..Controls::default() },
            controls_at: 1_000,
            heard: None,
            issued: VecDeque::new(),
            late_ms: 0,
            told_at: None,
            replay: None,
        }
    }

    /// Creates a drive with commands recorded from a page in Chromium, or from a slower one.
    pub(crate) fn recorded(seed: u64, fault: Option<Fault>, page: Page) -> Self {
        let mut world = Self::new(seed, fault);
        world.delays = Delays::read(RECORDED);
        world.replay = Some(Replay::new(Rng(world.rng.next()), page));
        world
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// Returns the worst recorded values from `from` until `until`.
    pub(crate) fn worst(&self, from: u64, until: u64) -> Option<Worst> {
        self.replay.as_ref().map(|replay| replay.worst(from, until))
    }

    pub(crate) fn run_ms(&mut self, until: u64) {
        while self.now_ms < until {
            self.now_ms += 1;
            self.step();
        }
    }

    /// Returns the newest controls of the guard.
    pub(crate) fn controls(&self) -> Controls {
        self.output.expect("the guard has stepped").control.controls
    }

    pub(crate) fn status(&self) -> Status {
        self.output.expect("the guard has stepped").status
    }

    fn is_faulty(&self, fault: Fault) -> bool {
        self.fault == Some(fault) && self.is_during_fault(self.now_ms)
    }

    fn is_during_fault(&self, at_ms: u64) -> bool {
        (self.fault_at..self.fault_at.saturating_add(FAULT_MS)).contains(&at_ms)
    }

    fn step(&mut self) {
        self.drive_machine();
        if self.replay.is_some() {
            self.replay_page();
        } else {
            self.run_camera();
            self.run_page();
        }
        self.run_vehicle();
        self.run_guard();
    }

    fn drive_machine(&mut self) {
        let is_silent = self.now_ms > self.controls_at + MACHINE_LIMIT_MS;
        if is_silent {
            self.controls = self.machine.alone(&self.controls);
        }
        self.machine.step(&self.controls);
        if let Some(stopped) = &mut self.stopped {
            stopped.fastest = stopped.fastest.faster(self.machine.moved());
        }
        if let Some(arc) = &self.arc {
            self.off_arc = self.off_arc.max(arc.off(&self.machine.arc()));
        }
        if self.now_ms >= self.machine_due {
            let late = self.delays.machine_late.draw(&mut self.rng);
            self.machine_due = next(self.machine_due, 10, late);
            let notices = Notices::NONE
                .with_if(Notice::GuardSilent, is_silent)
                .with_if(Notice::LocalStop, self.is_faulty(Fault::LocalStop));
            if !self.is_faulty(Fault::MachineSilent) {
                let at = Instant::from_millis(self.now_ms + 77_000);
                let faults =
                    Faults::NONE.with_if(MachineFault::Drive, self.is_faulty(Fault::MachineFails));
                let state = equipped(self.machine.state(notices, at));
                self.heard = Some(MachineState { faults, ..state });
            }
        }
    }

    fn run_camera(&mut self) {
        if self.now_ms < self.camera_due {
            return;
        }
        self.camera_due += 33;
        let Some(stamp) = self.stamp.filter(|_| !self.is_faulty(Fault::CameraFrozen)) else {
            return;
        };
        let picture = self.picture(stamp);
        let mut uplink = self.delays.uplink.draw(&mut self.rng);
        if self.is_faulty(Fault::SlowBothWays) {
            uplink += 220.0;
        }
        let is_flickering =
            self.is_faulty(Fault::UplinkFlickers) && !self.rng.next().is_multiple_of(97);
        let is_dead = self.is_faulty(Fault::UplinkDead) || is_flickering;
        let is_late = uplink > 200.0;
        let is_lost = self.rng.share() < 0.02;
        if !(is_dead || is_late || is_lost) {
            let wait = self.rng.share() * 16.0;
            self.pictures.push_back((self.now_ms + (uplink + wait) as u64, picture));
        }
    }

    fn picture(&self, stamp: Tick) -> Picture {
        Picture { stamp, captured_at: self.now_ms, moved: self.machine.moved() }
    }

    fn run_page(&mut self) {
        if self.now_ms >= self.page_pause_due {
            let pause = self.delays.page_pause.draw(&mut self.rng) as u64;
            self.page_pauses_until = self.now_ms + pause;
            self.page_pause_due = self.page_pauses_until + 200 + self.rng.next() % 1_600;
        }
        if self.now_ms < self.page_pauses_until || self.is_faulty(Fault::PageGone) {
            return;
        }
        let now = self.now_ms;
        if !self.is_faulty(Fault::PageFrozen) {
            let came =
                self.pictures.iter().filter(|(at, _)| *at <= now).map(|(_, picture)| picture);
            let newest = came.max_by_key(|picture| picture.captured_at).copied();
            let is_newer = |picture: &Picture| {
                self.seen.is_none_or(|seen| seen.captured_at < picture.captured_at)
            };
            self.seen = newest.filter(is_newer).or(self.seen);
            self.pictures.retain(|(at, _)| *at > now);
        }
        if now >= self.page_due {
            self.page_due = now + 20;
            self.send_command();
        }
    }

    /// Sends the recorded command that is due.
    fn replay_page(&mut self) {
        let now = self.now_ms;
        let Some(replay) = &mut self.replay else { return };
        replay.look(now);
        let Some((way, age)) = replay.send(now) else { return };
        if self.is_faulty(Fault::PageGone) {
            return;
        }
        self.see(now.saturating_sub(age));
        self.send_by(way as f64);
    }

    /// Shows the person the picture captured then, unless it is lost or a newer one was seen.
    fn see(&mut self, captured_at: u64) {
        let issued = self.issued.iter().rev().find(|picture| picture.captured_at <= captured_at);
        let Some(picture) = issued.or(self.issued.front()).copied() else { return };
        let in_fault = self.is_during_fault(picture.captured_at);
        let is_lost = match self.fault {
            Some(Fault::UplinkDead | Fault::CameraFrozen | Fault::SlowBothWays) => in_fault,
            Some(Fault::UplinkFlickers) => {
                let number = picture.captured_at / 33;
                in_fault && !Rng(self.fault_at ^ number).next().is_multiple_of(97)
            }
            Some(Fault::PageFrozen) => self.is_faulty(Fault::PageFrozen),
            Some(_) | None => false,
        };
        let is_newer = self.seen.is_none_or(|seen| seen.captured_at < picture.captured_at);
        if is_newer && !is_lost {
            self.seen = Some(picture);
        }
    }

    fn send_command(&mut self) {
        let way = self.delays.downlink.draw(&mut self.rng);
        if self.rng.share() > 0.02 {
            self.send_by(way);
        }
    }

    /// Sends the person's command, which arrives after `way` milliseconds.
    fn send_by(&mut self, mut way: f64) {
        let command = self.command();
        if self.is_faulty(Fault::SlowBothWays) {
            way += 220.0;
        }
        if self.is_faulty(Fault::DownlinkDead) {
            return;
        }
        let comes_at = self.now_ms + way as u64;
        if self.fault.is_some_and(|fault| fault.is_commands() && self.is_faulty(fault)) {
            self.told_at = Some(self.told_at.map_or(comes_at, |at| at.min(comes_at)));
        }
        if let (Some(replay), Some(seen)) = (&mut self.replay, self.seen) {
            let (sequence, picture_at_ms) = (command.sequence, seen.captured_at);
            replay.note(Sent { sequence, comes_at_ms: comes_at, picture_at_ms });
        }
        self.commands.push((comes_at, command, self.now_ms));
    }

    /// Returns the person's current command.
    fn command(&mut self) -> Command {
        self.sequence += 1;
        let mode = self.output.map_or(Mode::Held, |output| output.status.mode);
        let controls = self.machine.commands(&Person {
            speed: self.speed,
            weave: self.weave,
            seconds: self.now_ms as f64 / 1e3,
            is_released: mode == Mode::Held && self.stopped.is_none(),
            is_stopped: self.stopped.is_some(),
        });
        let controls = if mode == Mode::Held { controls } else { moved(controls) };
        let is_other = self.is_faulty(Fault::OtherConsole);
        let absence = self.fault.filter(|fault| self.is_faulty(*fault)).and_then(Fault::absence);
        let is_released = self.is_faulty(Fault::DeadManReleased);
        Command {
            sequence: self.sequence,
            console: if is_other { OTHER } else { CONSOLE },
            successor: None,
            controls,
            dead_man: if is_released { DeadMan::Released } else { DeadMan::Held },
            absences: absence.into_iter().collect::<Absences>(),
            cited: match self.seen {
                Some(_) if self.is_faulty(Fault::CitesForged) => Tick::new(900_000),
                seen => seen.map(|picture| picture.stamp),
            },
            age: None,
        }
    }

    fn run_vehicle(&mut self) {
        if self.is_faulty(Fault::VehicleStopped) || self.now_ms < self.vehicle_due {
            return;
        }
        let late = self.delays.vehicle_late.draw(&mut self.rng);
        self.vehicle_due = next(self.vehicle_due, 10, late);
        let now = self.now_ms;
        for (at, command, sent_at) in self.commands.iter().filter(|(at, ..)| *at <= now) {
            if self.newest.is_none_or(|(newest, _)| newest.sequence < command.sequence) {
                self.newest = Some((*command, *sent_at));
                self.newest_at = *at;
            }
        }
        self.commands.retain(|(at, ..)| *at > now);
        // The error of the clock estimate.
        let age = |sent_at: u64| Some(Duration::from_millis(now - sent_at + 5));
        let command =
            self.newest.map(|(command, sent_at)| Command { age: age(sent_at), ..command });
        let session = if self.is_faulty(Fault::SessionEnds) { None } else { Session::new(1) };
        let is_arming = now > 3_000 && self.stopped.is_none();
        let act = is_arming.then_some(Act {
            console: CONSOLE,
            number: ActNumber::new(1 + (now / 1_000) as u32).expect("not 0"),
            deed: Deed::Arm,
            age: age(now),
        });
        let is_driving = self.output.is_some_and(|output| output.status.holder.is_some());
        let emergency_stop = ActNumber::new(u32::from(
            self.fault == Some(Fault::EmergencyStop) && now >= self.fault_at,
        ));
        let proposal = Proposal {
            source: Instant::from_millis(now + 55_000),
            session,
            troubles: Troubles::NONE
                .with_if(Trouble::Camera, self.is_faulty(Fault::CameraStopped))
                .with_if(Trouble::Encoder, self.is_faulty(Fault::EncoderStopped)),
            command,
            emergency_stop,
            act: act.filter(|_| !is_driving),
        };
        if self.is_faulty(Fault::VehicleSlow) {
            self.late_ms += 5;
        }
        self.proposals.push_back((now + self.late_ms, proposal));
    }

    fn run_guard(&mut self) {
        let stands = self.fault == Some(Fault::GuardStopped)
            && (self.fault_at..self.fault_at + 300).contains(&self.now_ms);
        if stands || self.now_ms < self.guard_due {
            return;
        }
        let late = self.delays.guard_late.draw(&mut self.rng);
        self.guard_due = next(self.guard_due, 10, late);
        let now = self.now_ms;
        let mut proposal = None;
        while self.proposals.front().is_some_and(|(at, _)| *at <= now) {
            proposal = self.proposals.pop_front().map(|(_, proposal)| proposal);
        }
        let (machine, entry) = (self.heard.take(), Some(self.equipment.next()));
        let input = Input { proposal, machine, entry, ..Input::default() };
        let output = self.guard.step(&input, Instant::from_millis(now));
        self.stamp = Some(output.status.tick);
        self.issued.push_back(self.picture(output.status.tick));
        if self.issued.len() > TICKS_KEPT {
            self.issued.pop_front();
        }
        let before = std::mem::replace(&mut self.controls, output.control.controls);
        self.controls_at = now;
        let (was_driving, is_driving) = match output.transition {
            Some(transition) => (transition.from.is_driving(), transition.to.is_driving()),
            None => (false, false),
        };
        if is_driving && !was_driving {
            self.drives_since = Some(now);
        }
        if let Some(transition) = output.transition
            && was_driving
            && !is_driving
        {
            let seen = self.seen.expect("it drove");
            self.stopped.get_or_insert(Stopped {
                at_ms: now,
                cause: transition.why.cause,
                heard_ms: self.newest_at,
                blind_from_ms: seen.captured_at,
                blind_from: seen.moved,
                fastest: seen.moved.faster(self.machine.moved()),
            });
            self.arc.get_or_insert(self.machine.arc());
            self.had_moved |= is_moved(&before);
        }
        self.output = Some(output);
    }
}

/// Returns the next due time after `due`, with this lateness.
fn next(due: u64, period: u64, late: f64) -> u64 {
    // Lateness is drawn for the next turn and does not add up.
    (due / period + 1) * period + due % 3 + late as u64
}

/// Quantiles of delays, from a file in this directory.
#[derive(Clone, Debug)]
struct Delays {
    uplink: Quantiles,
    downlink: Quantiles,
    page_pause: Quantiles,
    vehicle_late: Quantiles,
    machine_late: Quantiles,
    guard_late: Quantiles,
}

impl Delays {
    fn read(file: &str) -> Self {
        let of = |name: &str| {
            let line = file.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(','));
            let line = line.unwrap_or_else(|| panic!("no {name}"));
            let values: Vec<f64> =
                line.split(',').map(|value| value.parse().expect("a number")).collect();
            Quantiles(values.try_into().expect("six quantiles"))
        };
        Self {
            uplink: of("uplink"),
            downlink: of("downlink"),
            page_pause: of("page_pause"),
            vehicle_late: of("vehicle_late"),
            machine_late: of("machine_late"),
            guard_late: of("guard_late"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Quantiles([f64; 6]);

impl Quantiles {
    fn draw(&self, rng: &mut Rng) -> f64 {
        let share = rng.share();
        let at = SHARES.iter().rposition(|edge| *edge <= share).unwrap_or(0).min(4);
        let within = (share - SHARES[at]) / (SHARES[at + 1] - SHARES[at]);
        self.0[at] + within * (self.0[at + 1] - self.0[at])
    }
}

/// A SplitMix64 generator.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 to below 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const SHARES: [f64; 6] = [0.0, 0.5, 0.9, 0.99, 0.999, 1.0];
const MODELLED: &str = include_str!("delays.csv");
/// Three seconds of ticks.
const TICKS_KEPT: usize = 300;
/// Duration of a fault: a stopped machine must not continue by itself afterwards.
const FAULT_MS: u64 = 2_500;
/// Time that the machine waits for a control.
const MACHINE_LIMIT_MS: u64 = 60;
const CONSOLE: Console = match Console::new(0xC0) {
    Some(console) => console,
    None => panic!("not 0"),
};
const OTHER: Console = match Console::new(0xC1) {
    Some(console) => console,
    None => panic!("not 0"),
};
