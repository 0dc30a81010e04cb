//! With any input from vehicle and machine, at any time, the guard keeps running. Only an act leads
//! from Held to motion. A stop is released only by its own name. An emergency stop always takes
//! effect.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tautline_fuzz::Input;
use tautline_guard::act::{Act, Deed};
use tautline_guard::frame::{Absences, Command, DeadMan, Proposal, Status, decode, encode};
use tautline_guard::identity::{ActNumber, Console, Session, Stop, Tick};
use tautline_guard::{
    self as guard, Cause, Config, Controls, Gear, Guard, MachineState, Member, Mode, Motion,
    Output, Set, Twist,
};
use tautline_units::Instant;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let kinds = [Config::car(), Config::robot(), Config::rover(), Config::cart()];
    let config = kinds[usize::from(input.byte() % 4)];
    let mut guard = Guard::new(config, Tick::new(1_000).expect("not 0"));
    let mut world = World::new();
    let mut last = None;
    while !input.is_empty() {
        world.change(&mut input, last.as_ref());
        let passed = match input.byte() {
            255 => Duration::from_nanos(input.word() >> 20),
            byte => Duration::from_millis(if byte < 240 { 10 } else { u64::from(byte) }),
        };
        world.now += passed;
        // Several steps with the same input: mode changes need some.
        for _ in 0..=input.up_to(40) {
            let frames = world.frames();
            let output = guard.step(&frames, world.now);
            check(&config, &frames, &output, last.as_ref(), &world);
            last = Some(output);
            world.now += Duration::from_millis(10);
        }
    }
});

fn check(
    config: &Config,
    frames: &guard::Input,
    output: &Output,
    last: Option<&Output>,
    world: &World,
) {
    let (status, controls) = (&output.status, output.control.controls);
    let before = last.map_or(Mode::Held, |last| last.status.mode);
    assert_eq!(controls, controls.sane());
    assert_eq!(controls, controls.of(config.machine.motion));
    assert!(controls.throttle == 0.0 || status.mode.is_driving(), "{status:?}");
    let is_braked = match config.machine.motion {
        Motion::Ackermann => controls.brake > 0.0,
        Motion::Differential | Motion::Omni => controls.twist == Twist::ZERO,
    };
    match status.mode {
        Mode::Held => assert!(is_braked, "a held machine is braked: {controls:?}"),
        Mode::Armed => assert!(is_braked && before != Mode::Manoeuvre),
        Mode::Driving | Mode::Limited => {
            assert!(matches!(before, Mode::Armed | Mode::Driving | Mode::Limited), "{before:?}");
        }
        Mode::Manoeuvre => {}
    }
    if before == Mode::Held && status.mode != Mode::Held && status.mode != Mode::Manoeuvre {
        let act = world.proposal.act.filter(|act| act.deed == Deed::Arm);
        assert_eq!(status.mode, Mode::Armed);
        assert!(act.is_some(), "armed without an act");
        assert!(!last.is_some_and(|last| last.status.is_latched), "a latched stop was armed");
    }
    if last.is_some_and(|last| last.status.is_latched) && !status.is_latched {
        let reset = output.transition.is_some_and(|it| it.why.cause == Cause::Reset);
        assert!(reset && before == Mode::Held, "{:?}", output.transition);
    }
    let taken = last.and_then(|last| last.status.emergency_stop);
    let asked = frames.proposal.and_then(|proposal| proposal.emergency_stop);
    if asked.is_some() && asked != taken {
        assert!(matches!(status.mode, Mode::Held | Mode::Manoeuvre) && status.is_latched);
    }
    assert!(status.speed_bound.is_finite());
    // A status says that an impossible number of the machine is not known: exact from then on.
    let (decoded, _) = decode::<Status>(&encode(status, 0)).expect("the guard's own");
    let bytes = encode(&decoded, 0);
    let (again, _) = decode::<Status>(&bytes).expect("the same");
    assert_eq!(encode(&again, 0), bytes);
}

/// Current input from vehicle and machine; the fuzzer changes it between steps.
struct World {
    now: Instant,
    proposal: Proposal,
    machine: MachineState,
    /// True if the vehicle's proposal reaches the guard.
    speaks: bool,
    /// True if the machine's state reaches the guard.
    answers: bool,
    /// True if each proposal holds a new command, with the next sequence number.
    commands: bool,
}

impl World {
    fn new() -> Self {
        let command = Command {
            sequence: 0,
            console: Console::new(7).expect("not 0"),
            successor: None,
            controls: Controls::default(),
            dead_man: DeadMan::Held,
            absences: Absences::NONE,
            cited: Tick::new(1_000),
            age: Some(Duration::from_millis(20)),
        };
        Self {
            now: Instant::from_millis(1_000),
            proposal: Proposal {
                session: Session::new(1),
                command: Some(command),
                ..Proposal::default()
            },
            machine: MachineState::default(),
            speaks: true,
            answers: true,
            commands: true,
        }
    }

    fn frames(&mut self) -> guard::Input {
        (self.proposal.source, self.machine.measured_at) = (self.now, self.now);
        if let (Some(command), true) = (&mut self.proposal.command, self.commands) {
            command.sequence = command.sequence.wrapping_add(1);
        }
        guard::Input {
            proposal: self.speaks.then_some(self.proposal),
            machine: self.answers.then_some(self.machine),
            ..guard::Input::default()
        }
    }

    fn change(&mut self, input: &mut Input<'_>, last: Option<&Output>) {
        let status = last.map(|last| last.status);
        match input.up_to(20) {
            0 => self.speaks = !self.speaks,
            1 => self.answers = !self.answers,
            2 => self.commands = !self.commands,
            3 => self.act(input, Deed::Arm),
            4 => self.act(input, Deed::Park),
            5 => self.act(input, Deed::TakeOver),
            6 => {
                let named = status.map(|status| status.stop);
                let stop =
                    if input.byte() % 4 > 0 { named } else { Stop::new(input.word() as u32) };
                if let Some(stop) = stop {
                    self.act(input, Deed::Reset(stop));
                }
            }
            7 => self.machine.speed = number(input),
            8 => self.machine.steering_angle = number(input),
            9 => self.machine.notices = set(input),
            10 => self.machine.faults = set(input),
            11 => self.proposal.session = Session::new(u32::from(input.byte() % 3)),
            12 => self.proposal.troubles = set(input),
            13 => self.proposal.emergency_stop = ActNumber::new(u32::from(input.byte() % 4)),
            14 => self.proposal.act = None,
            15 => {
                self.machine.speed = 0.0;
                (self.machine.sideways_speed, self.machine.yaw_rate) = (0.0, 0.0);
            }
            16 => self.machine.sideways_speed = number(input),
            17 => self.machine.yaw_rate = number(input),
            _ => self.change_command(input, status),
        }
    }

    fn change_command(&mut self, input: &mut Input<'_>, status: Option<Status>) {
        let Some(command) = &mut self.proposal.command else { return };
        match input.up_to(11) {
            0 => command.console = Console::new(u64::from(input.byte() % 3) + 7).expect("not 0"),
            1 => command.successor = Console::new(u64::from(input.byte() % 3) + 6),
            2 => command.controls.throttle = number(input),
            3 => command.controls.brake = number(input),
            4 => command.controls.steering = number(input),
            5 => command.controls.gear = [Gear::Drive, Gear::Reverse][input.up_to(1)],
            6 => command.absences = set(input),
            7 => command.controls.twist.forward = number(input),
            8 => command.controls.twist.sideways = number(input),
            9 => command.controls.twist.yaw_rate = number(input),
            10 => command.age = Some(Duration::from_millis(u64::from(input.byte()) * 2)),
            _ => match input.byte() {
                255 => command.cited = Tick::new(input.word() as u32),
                _ => command.cited = status.map(|status| status.tick),
            },
        }
    }

    fn act(&mut self, input: &mut Input<'_>, deed: Deed) {
        let console = self.proposal.command.map(|command| command.console);
        let last = self.proposal.act.map_or(0, |act| act.number.get());
        let number = ActNumber::new(last.wrapping_add(u32::from(input.byte() % 3)).max(1));
        let (Some(console), Some(number)) = (console, number) else { return };
        self.proposal.act = Some(Act { console, number, deed, age: Some(Duration::ZERO) });
    }
}

/// Returns a share (0 to 1), a speed from -22 to 104 m/s, or, for one byte in 256, any bits.
fn number(input: &mut Input<'_>) -> f32 {
    match input.byte() {
        255 => f32::from_bits(input.word() as u32),
        byte if byte < 128 => f32::from(byte) / 127.0,
        byte => f32::from(byte) - 150.0,
    }
}

/// Returns a set with any members for one byte in four, otherwise an empty one.
fn set<E: Member>(input: &mut Input<'_>) -> Set<E> {
    let bits = if input.byte() % 4 == 0 { input.word() } else { 0 };
    E::ALL.iter().copied().filter(|member| bits & 1 << member.number() != 0).collect()
}
