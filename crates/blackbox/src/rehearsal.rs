//! A person who drives a point mass through a guard, for tests: each frame is encoded and decoded
//! as by a socket.

use std::time::Duration;

use tautline_guard::act::{Act, Deed};
use tautline_guard::frame::{self, Absences, BlackBox, Command, DeadMan, Frame, Proposal};
use tautline_guard::identity::{ActNumber, Console, Session, Tick};
use tautline_guard::{
    Config, Controls, Guard, Input, MachineState, Mode, Motion, Output, Place, Position, Twist,
};
use tautline_units::Instant;

/// State of person, vehicle and machine; tests change it between steps.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    pub(crate) guard: Guard,
    pub(crate) now: Instant,
    pub(crate) proposal: Proposal,
    pub(crate) machine: MachineState,
    /// `true` if the vehicle's proposals arrive at the guard.
    pub(crate) is_proposing: bool,
    pub(crate) black_box: BlackBox,
    tick: u32,
    mode: Mode,
}

impl Rehearsal {
    pub(crate) fn new() -> Self {
        Self::of(Config::car())
    }

    /// Returns the rehearsal of a machine with these settings.
    pub(crate) fn of(config: Config) -> Self {
        let command = Command {
            sequence: 0,
            console: Console::new(0xC0FF_EEC0_FFEE).unwrap(),
            successor: None,
            controls: Controls::default(),
            dead_man: DeadMan::Held,
            absences: Absences::NONE,
            cited: None,
            age: Some(Duration::from_millis(40)),
        };
        let proposal =
            Proposal { session: Session::new(1), command: Some(command), ..Proposal::default() };
        let machine = MachineState {
            position: Some(Position { x: 0.1, y: 0.0, heading: 0.0 }),
            place: Some(Place { latitude: 51.480_73, longitude: 11.969_91, height: f32::NAN }),
            ..MachineState::default()
        };
        Self {
            guard: Guard::new(config, Tick::new(FIRST_TICK).unwrap()),
            now: Instant::from_millis(5_000),
            proposal,
            machine,
            is_proposing: true,
            black_box: BlackBox::Records,
            tick: FIRST_TICK,
            mode: Mode::Held,
        }
    }

    /// Runs `count` steps of a hundredth of a second through `step`; the machine's motion follows
    /// the output of each.
    pub(crate) fn steps(
        &mut self,
        count: u32,
        step: &mut impl FnMut(&mut Guard, &Input, Instant) -> Output,
    ) {
        for _ in 0..count {
            self.now += Duration::from_millis(10);
            let cited = Tick::new(self.tick.saturating_sub(5).max(FIRST_TICK));
            if let Some(command) = &mut self.proposal.command {
                command.sequence += 1;
                command.cited = cited;
            }
            (self.proposal.source, self.machine.measured_at) = (self.now, self.now);
            let input = Input {
                proposal: self.is_proposing.then(|| received(&self.proposal)),
                machine: Some(received(&self.machine)),
                black_box: self.black_box,
                ..Input::default()
            };
            let output = step(&mut self.guard, &input, self.now);
            (self.tick, self.mode) = (output.status.tick.get(), output.status.mode);
            let controls = output.control.controls;
            let before = self.machine.speed;
            if self.guard.config().machine.motion == Motion::Ackermann {
                let pull = 4.2 * controls.throttle - 8.0 * controls.brake;
                self.machine.speed = (before + pull * 0.01).max(0.0);
            } else {
                self.machine.speed += (controls.twist.forward - before) * 0.1;
                self.machine.yaw_rate += (controls.twist.yaw_rate - self.machine.yaw_rate) * 0.1;
            }
            self.machine.steering_angle = 0.52 * controls.steering;
            self.machine.told.acceleration_along = Some((self.machine.speed - before) * 100.0);
        }
    }

    pub(crate) fn arm(&mut self, number: u32) {
        let console = self.controls_of().console;
        let number = ActNumber::new(number).unwrap();
        let age = Some(Duration::from_millis(40));
        self.proposal.act = Some(Act { console, number, deed: Deed::Arm, age });
    }

    pub(crate) fn throttle(&mut self, share: f32) {
        let twist = Twist { forward: share, sideways: 0.0, yaw_rate: share };
        self.controls_of().controls =
            Controls { throttle: share, steering: 0.1, twist, ..Default::default() };
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Arms the machine by act `act` and drives it for `count` steps, then loses the vehicle's
    /// proposals until the guard holds the machine.
    pub(crate) fn drive(
        &mut self,
        act: u32,
        count: u32,
        step: &mut impl FnMut(&mut Guard, &Input, Instant) -> Output,
    ) {
        self.is_proposing = true;
        self.throttle(0.0);
        self.steps(100, step);
        self.arm(act);
        self.steps(5, step);
        assert_eq!(self.mode, Mode::Armed);
        self.throttle(0.5);
        self.steps(count, step);
        assert_eq!(self.mode, Mode::Driving);
        self.is_proposing = false;
        self.steps(10, step);
        assert_eq!(self.mode, Mode::Manoeuvre);
        self.steps(600, step);
        assert_eq!(self.mode, Mode::Held);
    }

    fn controls_of(&mut self) -> &mut Command {
        self.proposal.command.as_mut().unwrap()
    }
}

/// Encodes and decodes a frame, as on its path through a socket.
fn received<F: Frame>(frame: &F) -> F {
    frame::decode(frame::encode(frame, 0).as_ref()).unwrap().0
}

const FIRST_TICK: u32 = 1_000;
