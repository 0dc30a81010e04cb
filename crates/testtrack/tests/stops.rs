//! The guard's stop of the simulated car in the course's bends: along the arc that was held.

use std::time::Duration;

use tautline_guard::act::{Act, Deed};
use tautline_guard::frame::{
    Absence, Absences, Command, DeadMan, Proposal, Status, Trouble, Troubles,
};
use tautline_guard::identity::{ActNumber, Console, Session, Tick};
use tautline_guard::{Cause, Config, Controls, Guard, Input, MachineState, Mode};
use tautline_testtrack::{Autopilot, CarState, WHEELBASE, World};
use tautline_units::Instant;

/// What takes the person's sight, hand or word from the car.
const CAUSES: [Cause; 12] = [
    Cause::PictureAge,
    Cause::CommandTimeout,
    Cause::ProposalTimeout,
    Cause::SessionEnded,
    Cause::ConsoleGone,
    Cause::PageHidden,
    Cause::ConsoleChanged,
    Cause::CameraStopped,
    Cause::FocusLost,
    Cause::InputsUnhealthy,
    Cause::DeadManReleased,
    Cause::EncoderStopped,
];

/// The car under a guard that an autopilot asks.
struct Drive {
    world: World,
    guard: Guard,
    now: Instant,
    sequence: u64,
    cause: Option<Cause>,
    newest: Option<Command>,
    told: Option<Status>,
}

#[test]
fn a_stop_stays_within_half_a_metre_of_the_arc_from_every_cause() {
    let (mut stops, mut fastest, mut tightest) = (0, 0.0_f64, 0.0_f64);
    for (index, seconds) in (8..44).enumerate() {
        let cause = CAUSES[index % CAUSES.len()];
        let mut drive = Drive::new(3);
        drive.until(|drive| drive.now >= Instant::from_millis(1_000 * seconds));
        drive.cause = Some(cause);
        drive.until(|drive| !drive.mode().is_driving());
        assert_eq!(drive.guard_cause(), cause);
        let held = *drive.world.car();
        fastest = fastest.max(held.speed);
        tightest = tightest.max((held.speed * held.yaw_rate).abs());
        let mut off_arc = 0.0_f64;
        let mut has_grip = true;
        drive.until(|drive| {
            let car = drive.world.car();
            off_arc = off_arc.max(off(&held, car));
            // Grass holds 4 m/s² across: no wheel keeps an arc that asks for more.
            has_grip &= !car.on_grass || (car.speed * car.yaw_rate).abs() < 3.5;
            drive.mode() == Mode::Held
        });
        if has_grip {
            stops += 1;
            assert!(off_arc < 0.5, "{off_arc} m off, {cause:?} after {seconds} s, {held:?}");
        }
    }
    assert!(stops > 20, "{stops} stops on the road");
    assert!(fastest > 10.0 && tightest > 3.0, "{fastest} m/s, {tightest} m/s² across");
}

impl Drive {
    fn new(seed: u64) -> Self {
        let guard = Guard::new(Config::default(), Tick::new(100).expect("not 0"));
        let now = Instant::from_millis(1_000);
        Self {
            world: World::new(seed),
            guard,
            now,
            sequence: 0,
            cause: None,
            newest: None,
            told: None,
        }
    }

    fn until(&mut self, mut ends: impl FnMut(&Self) -> bool) {
        for _ in 0..10_000 {
            if ends(self) {
                return;
            }
            self.step();
        }
        panic!("nothing ends it");
    }

    fn mode(&self) -> Mode {
        self.told.map_or(Mode::Held, |told| told.mode)
    }

    fn guard_cause(&self) -> Cause {
        self.told.map_or(Cause::Started, |told| told.why.cause)
    }

    fn step(&mut self) {
        self.now += STEP;
        let car = *self.world.car();
        let machine = MachineState {
            measured_at: self.now,
            speed: car.speed as f32,
            steering_angle: car.steering_angle as f32,
            ..MachineState::default()
        };
        let is_silent = self.cause == Some(Cause::ProposalTimeout);
        let proposal = (!is_silent).then(|| self.proposal(&car));
        let input = Input { proposal, machine: Some(machine), ..Input::default() };
        let output = self.guard.step(&input, self.now);
        self.told = Some(output.status);
        self.world.step(&output.control.controls, STEP);
    }

    fn proposal(&mut self, car: &CarState) -> Proposal {
        let is = |cause| self.cause == Some(cause);
        if !is(Cause::CommandTimeout) {
            self.sequence += 1;
            let mut controls = Autopilot::default().controls(self.world.course(), car);
            // A person who does not know holds on, and turns the wheel somewhere else.
            controls.steering =
                if self.cause.is_some() { -controls.steering } else { controls.steering };
            if self.mode() == Mode::Held {
                controls = Controls::default();
            }
            let tick = self.told.map(|told| told.tick);
            let cited = if is(Cause::PictureAge) {
                self.newest.and_then(|newest| newest.cited)
            } else {
                tick
            };
            let console = if is(Cause::ConsoleChanged) { OTHER } else { CONSOLE };
            self.newest = Some(Command {
                sequence: self.sequence,
                console: Console::new(console).expect("not 0"),
                successor: None,
                controls,
                dead_man: match is(Cause::DeadManReleased) {
                    true => DeadMan::Released,
                    false => DeadMan::Absent,
                },
                absences: Absences::NONE
                    .with_if(Absence::ConsoleGone, is(Cause::ConsoleGone))
                    .with_if(Absence::PageHidden, is(Cause::PageHidden))
                    .with_if(Absence::FocusLost, is(Cause::FocusLost))
                    .with_if(Absence::InputsUnhealthy, is(Cause::InputsUnhealthy)),
                cited,
                age: Some(Duration::from_millis(40)),
            });
        }
        let age = Some(Duration::ZERO);
        let number = ActNumber::new(1 + self.sequence as u32 / 100).expect("not 0");
        let console = Console::new(CONSOLE).expect("not 0");
        let arm = Act { console, number, deed: Deed::Arm, age };
        let is_arming = self.cause.is_none() && self.mode() == Mode::Held;
        Proposal {
            source: self.now,
            session: Session::new(if is(Cause::SessionEnded) { 2 } else { 1 }),
            troubles: Troubles::NONE
                .with_if(Trouble::Camera, is(Cause::CameraStopped))
                .with_if(Trouble::Encoder, is(Cause::EncoderStopped)),
            command: self.newest,
            emergency_stop: None,
            act: is_arming.then_some(arm),
        }
    }
}

/// Returns how far a car is from the arc that another stands on, m.
fn off(held: &CarState, car: &CarState) -> f64 {
    let (dx, dy) = (car.x - held.x, car.y - held.y);
    let (sin, cos) = held.heading.sin_cos();
    let curvature = held.steering_angle.tan() / WHEELBASE;
    if curvature.abs() < 1e-6 {
        return (dy * cos - dx * sin).abs();
    }
    let radius = 1.0 / curvature;
    ((dx + radius * sin).hypot(dy - radius * cos) - radius.abs()).abs()
}

const STEP: Duration = Duration::from_millis(10);
const CONSOLE: u64 = 0xC0;
const OTHER: u64 = 0xC1;
