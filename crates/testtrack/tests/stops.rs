//! The guard's stop of the simulated car in the course's bends: along the arc at the start of the
//! stop.

use std::time::Duration;

use tautline_guard::act::{Act, Deed};
use tautline_guard::frame::{
    Absence, Absences, Command, DeadMan, Proposal, Status, Trouble, Troubles,
};
use tautline_guard::identity::{ActNumber, Console, Session, Tick};
use tautline_guard::{
    Cause, Config, Controls, Fault, Faults, Guard, Input, MachineState, Mode, Notice, Notices,
};
use tautline_testtrack::{Autopilot, CarState, Conditions, STEERING_ANGLE_MAX, World};
use tautline_units::Instant;

/// Event after which the guard stops a driving car: expected cause, who steers, and what happens.
struct Stop {
    cause: Cause,
    wheel: Wheel,
    begins: fn(&mut Drive),
}

/// Control of the steering while the guard stops the car.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wheel {
    /// The guard steers, against a person who turns the wheel to the limit.
    Guard,
    /// A person who sees steers, and holds the wheel.
    Person,
}

const STOPS: [Stop; 31] = [
    guards(Cause::PictureAge, |drive| drive.cites = Cites::Same),
    guards(Cause::CommandTimeout, |drive| drive.is_commanding = false),
    guards(Cause::ProposalTimeout, |drive| drive.is_proposing = false),
    persons(Cause::MachineTimeout, |drive| drive.is_heard = false),
    persons(Cause::BrakeDoesNotAnswer, |drive| drive.machine.faults = Faults::of(Fault::Brake)),
    // The person brakes without effect.
    persons(Cause::BrakeDoesNotAnswer, |drive| {
        (drive.brake, drive.conditions.brake_share) = (Some(0.5), 0.0)
    }),
    persons(Cause::EmergencyStop, |drive| drive.proposal.emergency_stop = ActNumber::new(1)),
    // The person who pressed it is gone.
    guards(Cause::EmergencyStop, |drive| {
        drive.proposal.emergency_stop = ActNumber::new(1);
        drive.absences = Absences::of(Absence::ConsoleGone);
    }),
    guards(Cause::ConsoleGone, |drive| drive.absences = Absences::of(Absence::ConsoleGone)),
    guards(Cause::PageHidden, |drive| drive.absences = Absences::of(Absence::PageHidden)),
    guards(Cause::FocusLost, |drive| drive.absences = Absences::of(Absence::FocusLost)),
    guards(Cause::InputsUnhealthy, |drive| drive.absences = Absences::of(Absence::InputsUnhealthy)),
    guards(Cause::DeadManReleased, |drive| drive.dead_man = DeadMan::Released),
    guards(Cause::SessionEnded, |drive| drive.proposal.session = Session::new(2)),
    guards(Cause::SessionEnded, |drive| drive.proposal.session = None),
    guards(Cause::ConsoleChanged, |drive| drive.console = OTHER),
    persons(Cause::LocalStop, |drive| drive.machine.notices = Notices::of(Notice::LocalStop)),
    persons(Cause::LocalStop, |drive| drive.machine.faults = Faults::of(Fault::EmergencyButton)),
    // A person at the car drives it locally, and lets go of it where it is.
    guards(Cause::LocalControl, |drive| drive.local_until = drive.now + Duration::from_millis(700)),
    persons(Cause::MachineFault, |drive| drive.machine.faults = Faults::of(Fault::Drive)),
    persons(Cause::MachineFault, |drive| drive.machine.faults = Faults::of(Fault::Steering)),
    persons(Cause::MachineFault, |drive| drive.is_speed_known = false),
    // The sensor reports standstill from now on.
    persons(Cause::SpeedImplausible, |drive| drive.is_speed_frozen = true),
    // The guard is suspended, and the car brakes by itself.
    persons(Cause::GuardSilent, |drive| drive.stand(Duration::from_millis(300), true)),
    // The complete computer is suspended.
    persons(Cause::GuardLate, |drive| drive.stand(Duration::from_millis(90), false)),
    // The speed limit falls faster than a weak brake slows the car.
    persons(Cause::Overspeed, |drive| {
        (drive.cites, drive.brake) = (Cites::Behind(44), Some(0.0));
        drive.conditions = Conditions { brake_share: 0.12, ..Conditions::default() };
    }),
    // A restarted guard finds a moving car.
    guards(Cause::Rolling, |drive| drive.guard = guard(7_000)),
    guards(Cause::CameraStopped, |drive| drive.proposal.troubles = Troubles::of(Trouble::Camera)),
    guards(Cause::EncoderStopped, |drive| drive.proposal.troubles = Troubles::of(Trouble::Encoder)),
    // Two faults at once: neither machine nor vehicle sends anything.
    guards(Cause::MachineTimeout, |drive| (drive.is_heard, drive.is_proposing) = (false, false)),
    guards(Cause::MachineFault, |drive| {
        (drive.is_speed_known, drive.absences) = (false, Absences::of(Absence::ConsoleGone));
    }),
];

/// Courses by seed, with the maximum speed on each in m/s, and the slope eastwards.
const COURSES: [(u64, f64, f64); 8] = [
    (3, 15.0, 0.0),
    (4, 7.0, 0.0),
    (5, 15.0, 0.15),
    (6, 15.0, -0.2),
    (7, 4.0, 0.1),
    (8, 15.0, 0.0),
    (9, 10.0, -0.1),
    (10, 15.0, 0.05),
];

const fn guards(cause: Cause, begins: fn(&mut Drive)) -> Stop {
    Stop { cause, wheel: Wheel::Guard, begins }
}

const fn persons(cause: Cause, begins: fn(&mut Drive)) -> Stop {
    Stop { cause, wheel: Wheel::Person, begins }
}

/// Returns why no stop of a driving car begins with a cause, if none does.
fn never(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::PictureAge
        | Cause::CommandTimeout
        | Cause::ProposalTimeout
        | Cause::MachineTimeout
        | Cause::BrakeDoesNotAnswer
        | Cause::EmergencyStop
        | Cause::ConsoleGone
        | Cause::PageHidden
        | Cause::FocusLost
        | Cause::InputsUnhealthy
        | Cause::DeadManReleased
        | Cause::SessionEnded
        | Cause::ConsoleChanged
        | Cause::LocalStop
        | Cause::LocalControl
        | Cause::MachineFault
        | Cause::GuardSilent
        | Cause::GuardLate
        | Cause::Overspeed
        | Cause::Rolling
        | Cause::CameraStopped
        | Cause::EncoderStopped
        | Cause::SpeedImplausible => None,
        Cause::Started => Some("it is reported before the first step, and of no transition"),
        Cause::Parked => Some("a car is parked only where it stands"),
        Cause::ArmExpired => Some("a car that nobody has driven since it was armed stands"),
        Cause::Arm | Cause::Throttle => Some("it lets the car go"),
        Cause::LoopAge => Some("it slows the car, and the person drives on"),
        Cause::Standstill | Cause::Reset | Cause::Unattended => Some("the car stands already"),
        Cause::CameraBlind => Some("the test's vehicle has no camera that is covered"),
        Cause::SteeringWrong => Some("the car stands already"),
    }
}

/// The car under a guard, driven by an autopilot.
#[derive(Clone)]
struct Drive {
    world: World,
    conditions: Conditions,
    pilot: Autopilot,
    guard: Guard,
    now: Instant,
    told: Option<Status>,
    /// Latest controls that the car received from the guard, and the time of the guard's step.
    controls: (Controls, Instant),
    proposal: Proposal,
    machine: MachineState,
    /// The car one step ago, which is the state that it reports.
    before: CarState,
    console: Console,
    absences: Absences,
    dead_man: DeadMan,
    cites: Cites,
    is_commanding: bool,
    is_proposing: bool,
    is_heard: bool,
    is_speed_known: bool,
    is_speed_frozen: bool,
    /// Brake pedal of the person, 0 to 1, in place of the autopilot's; `None` for the autopilot's.
    brake: Option<f32>,
    /// End of the suspension of the guard's process, and whether only the guard is suspended, not
    /// the car too.
    stands: (Instant, bool),
    /// End of the local control by a person at the car.
    local_until: Instant,
    stop: Option<&'static Stop>,
    /// Cause of the first stop after the fault, if there was one.
    stopped_by: Option<Cause>,
    /// The car at the start of its stop; `None` before.
    held: Option<CarState>,
}

/// Tick of the guard that the commands cite.
#[derive(Clone, Copy)]
enum Cites {
    Newest,
    Behind(u32),
    Same,
}

#[test]
fn a_stop_stays_within_half_a_metre_of_the_arc_from_every_cause() {
    let mut off_arcs = STOPS.each_ref().map(|_| Vec::new());
    let (mut fastest, mut tightest) = (0.0_f64, 0.0_f64);
    for (seed, speed_max, slope) in COURSES {
        let mut drive = Drive::new(seed, speed_max, slope);
        for seconds in (9..45).step_by(3) {
            drive.until(|drive| drive.now >= Instant::from_millis(1_000 * seconds));
            assert!(drive.mode().is_driving(), "{:?}", drive.told);
            let car = *drive.world.car();
            fastest = fastest.max(car.speed);
            tightest = tightest.max((car.speed * car.yaw_rate).abs());
            for (stop, off_arcs) in STOPS.iter().zip(&mut off_arcs) {
                let mut stopped = drive.clone();
                let Some(off_arc) = stopped.stop(stop) else { continue };
                let says = || format!("{:?}, seed {seed}, {seconds} s, {car:?}", stop.cause);
                // Uphill a car without its brake slows down all the same, and then rolls back.
                let rolls_back = stop.cause == Cause::BrakeDoesNotAnswer && slope != 0.0;
                if rolls_back && stopped.stopped_by == Some(Cause::Rolling) {
                    continue;
                }
                assert_eq!(stopped.stopped_by, Some(stop.cause), "{}", says());
                assert!(off_arc < 0.5, "{off_arc} m off, {}", says());
                off_arcs.push(off_arc);
            }
        }
    }
    for (stop, off_arcs) in STOPS.iter().zip(&off_arcs) {
        let worst = off_arcs.iter().copied().fold(0.0, f64::max);
        println!("{:?}: {worst:.3} m off at the most, of {}", stop.cause, off_arcs.len());
        assert!(off_arcs.len() > 10, "{:?}: {} stops on the road", stop.cause, off_arcs.len());
    }
    for cause in Cause::ALL {
        let is_shown = STOPS.iter().any(|stop| stop.cause == *cause);
        match never(*cause) {
            Some(why) => assert!(!is_shown, "{cause:?}, although {why}"),
            None => assert!(is_shown, "nothing shows a stop by {cause:?}"),
        }
    }
    assert!(fastest > 10.0 && tightest > 3.0, "{fastest} m/s, {tightest} m/s² across");
}

impl Drive {
    fn new(seed: u64, speed_max: f64, slope: f64) -> Self {
        let conditions = Conditions { slope, ..Conditions::default() };
        let now = Instant::from_millis(1_000);
        let world = World::new(seed).under(conditions);
        Self {
            before: *world.car(),
            world,
            conditions,
            pilot: Autopilot::new(speed_max),
            guard: guard(100),
            now,
            told: None,
            controls: (Controls { brake: 1.0, ..Controls::default() }, now),
            proposal: Proposal { session: Session::new(1), ..Proposal::default() },
            machine: MachineState::default(),
            console: CONSOLE,
            absences: Absences::NONE,
            dead_man: DeadMan::Held,
            cites: Cites::Newest,
            is_commanding: true,
            is_proposing: true,
            is_heard: true,
            is_speed_known: true,
            is_speed_frozen: false,
            brake: None,
            stands: (now, false),
            local_until: now,
            stop: None,
            stopped_by: None,
            held: None,
        }
    }

    fn until(&mut self, mut ends: impl FnMut(&Self) -> bool) {
        for _ in 0..10_000 {
            if ends(self) {
                return;
            }
            self.step();
        }
        panic!("nothing ends it: {:?}", self.told);
    }

    /// Stops the car; returns its greatest distance from the arc in metres, unless the ground had
    /// too little grip.
    fn stop(&mut self, stop: &'static Stop) -> Option<f64> {
        self.stop = Some(stop);
        (stop.begins)(self);
        let car = self.world.clone();
        self.world = car.under(self.conditions);
        let mut held = *self.world.car();
        for _ in 0..TURNS_MAX {
            if self.is_stopping() {
                break;
            }
            held = *self.world.car();
            self.step();
        }
        if !self.is_stopping() {
            return None;
        }
        self.held = Some(held);
        let (mut off_arc, mut has_grip) = (0.0_f64, true);
        self.until(|drive| {
            let car = drive.world.car();
            off_arc = off_arc.max(car.off_arc(&held));
            // Grass holds 4 m/s² lateral: no steering keeps an arc that requires more.
            has_grip &= !car.on_grass || (car.speed * car.yaw_rate).abs() < 3.5;
            car.speed == 0.0
        });
        has_grip.then_some(off_arc)
    }

    /// Suspends the guard; `is_alone` means that the car is not suspended.
    fn stand(&mut self, time: Duration, is_alone: bool) {
        self.stands = (self.now + time, is_alone);
    }

    fn mode(&self) -> Mode {
        self.told.map_or(Mode::Held, |told| told.mode)
    }

    /// Returns whether guard or car are bringing the car to a standstill.
    fn is_stopping(&self) -> bool {
        let is_local = self.now < self.local_until;
        !is_local && (!self.mode().is_driving() || self.brakes_alone())
    }

    /// Returns whether the car has received nothing from the guard for too long.
    fn brakes_alone(&self) -> bool {
        let (_, is_alone) = self.stands;
        is_alone && self.now.since(self.controls.1) > Duration::from_millis(30)
    }

    fn step(&mut self) {
        self.now += STEP;
        let car = *self.world.car();
        if self.now >= self.stands.0 {
            let proposal = self.is_proposing.then(|| self.proposal(&car));
            let machine = self.is_heard.then(|| self.machine(&self.before));
            let input = Input { proposal, machine, ..Input::default() };
            let output = self.guard.step(&input, self.now);
            let stop = output.transition.filter(|transition| transition.to == Mode::Manoeuvre);
            self.stopped_by = self.stopped_by.or(stop.map(|stop| stop.why.cause));
            self.told = Some(output.status);
            self.controls = (output.control.controls, self.now);
        } else if self.brakes_alone() {
            let controls = &mut self.controls.0;
            (controls.throttle, controls.brake) = (0.0, 0.5);
        }
        self.before = car;
        let local = Controls { steering: -0.05, throttle: 0.3, ..Controls::default() };
        let is_local = self.now < self.local_until;
        self.world.step(if is_local { &local } else { &self.controls.0 }, STEP);
    }

    fn machine(&self, car: &CarState) -> MachineState {
        MachineState {
            measured_at: self.now,
            speed: match (self.is_speed_known, self.is_speed_frozen) {
                (false, _) => f32::NAN,
                (true, true) => 0.0,
                (true, false) => car.speed as f32,
            },
            steering_angle: car.steering_angle as f32,
            notices: self
                .machine
                .notices
                .with_if(Notice::LocalControl, self.now < self.local_until)
                .with_if(Notice::GuardSilent, self.brakes_alone()),
            ..self.machine
        }
    }

    fn proposal(&mut self, car: &CarState) -> Proposal {
        if self.is_commanding {
            self.proposal.command = Some(self.command(car));
        }
        let age = Some(Duration::ZERO);
        let sequence = self.proposal.command.map_or(0, |command| command.sequence);
        let number = ActNumber::new(1 + sequence as u32 / 100).expect("not 0");
        let arm = Act { console: CONSOLE, number, deed: Deed::Arm, age };
        let is_arming = self.stop.is_none() && self.mode() == Mode::Held;
        Proposal { source: self.now, act: is_arming.then_some(arm), ..self.proposal }
    }

    fn command(&self, car: &CarState) -> Command {
        let last = self.proposal.command;
        let tick = self.told.map(|told| told.tick);
        Command {
            sequence: 1 + last.map_or(0, |last| last.sequence),
            console: self.console,
            successor: None,
            controls: self.wanted(car),
            dead_man: self.dead_man,
            absences: self.absences,
            cited: match self.cites {
                Cites::Newest => tick,
                Cites::Behind(ticks) => tick.and_then(|tick| Tick::new(tick.get() - ticks)),
                Cites::Same => last.and_then(|last| last.cited),
            },
            age: Some(Duration::from_millis(40)),
        }
    }

    /// Returns the person's controls.
    fn wanted(&self, car: &CarState) -> Controls {
        let wheel = self.stop.map(|stop| stop.wheel);
        if let Some(held) = self.held {
            let share = (held.steering_angle / STEERING_ANGLE_MAX) as f32;
            let away = if share > 0.0 { -1.0 } else { 1.0 };
            let steering = if wheel == Some(Wheel::Guard) { away } else { share };
            return Controls { steering, throttle: 0.5, ..Controls::default() };
        }
        if self.mode() == Mode::Held {
            return Controls::default();
        }
        let mut controls = self.pilot.controls(self.world.course(), car);
        // A person who does not know continues, and turns the wheel elsewhere.
        if wheel == Some(Wheel::Guard) {
            controls.steering = -controls.steering;
        }
        if let Some(brake) = self.brake {
            (controls.throttle, controls.brake) = (0.0, brake);
        }
        controls
    }
}

fn guard(first_tick: u32) -> Guard {
    Guard::new(Config::car(), Tick::new(first_tick).expect("not 0"))
}

const STEP: Duration = Duration::from_millis(10);
const TURNS_MAX: u32 = 600;
const CONSOLE: Console = match Console::new(0xC0) {
    Some(console) => console,
    None => panic!("not 0"),
};
const OTHER: Console = match Console::new(0xC1) {
    Some(console) => console,
    None => panic!("not 0"),
};
