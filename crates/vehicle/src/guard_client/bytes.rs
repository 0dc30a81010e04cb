//! End-to-end test from the bytes of an operator's commands to what the guard lets the machine do.

use std::collections::HashSet;

use proptest::prelude::*;
use tautline_guard::config::Config;
use tautline_guard::frame::{Receiver, Sender};
use tautline_guard::identity::Tick;
use tautline_guard::{Guard, Input, Output};

use super::*;

/// Test setup: a vehicle's end, a guard, and a machine that obeys.
struct Rig {
    guard_client: GuardClient,
    guard: Guard,
    proposals: (Sender, Receiver<Proposal>),
    statuses: (Sender, Receiver<Status>),
    now: Instant,
    speed: f32,
    sequence: u64,
    last: Option<Output>,
    asked: Asked,
}

/// Requests in the readable commands of this session: the observer's independent record.
#[derive(Default)]
struct Asked {
    arms: HashSet<(u64, u32)>,
    resets: HashSet<u32>,
}

/// Input from an operator.
#[derive(Clone, Debug)]
enum Comes {
    Command(Said),
    /// Command with the bytes at some places replaced, then truncated to a length.
    Spoiled(Said, Vec<(usize, u8)>, usize),
    Bytes(Vec<u8>),
    Session,
}

/// Content of a command, without the fields that depend on the moment.
#[derive(Clone, Copy, Debug)]
struct Said {
    console: u64,
    throttle: f32,
    absences: u32,
    emergency_stop_number: u32,
    act: Option<(message::Deed, u32, bool)>,
    successor: u64,
    is_seeing: bool,
    is_newest: bool,
}

const AT_EASE: Said = Said {
    console: 7,
    throttle: 0.0,
    absences: 0,
    emergency_stop_number: 0,
    act: None,
    successor: 0,
    is_seeing: true,
    is_newest: true,
};

/// Returns settings that require no dead-man input.
fn config() -> Config {
    let mut config = Config::car();
    config.presence.dead_man_required = Some(false);
    config
}

impl Rig {
    fn new() -> Self {
        Self {
            guard_client: GuardClient::with(1),
            guard: Guard::new(config(), Tick::new(1_000).unwrap()),
            proposals: Default::default(),
            statuses: Default::default(),
            now: Instant::from_millis(10_000),
            speed: 0.0,
            sequence: 0,
            last: None,
            asked: Asked::default(),
        }
    }

    fn take(&mut self, comes: &Comes) {
        match comes {
            Comes::Command(said) => self.hear(&self.bytes(said)),
            Comes::Spoiled(said, places, length) => {
                let mut bytes = self.bytes(said);
                for (place, byte) in places {
                    let length = bytes.len();
                    bytes[place % length] = *byte;
                }
                bytes.truncate(*length);
                self.hear(&bytes);
            }
            Comes::Bytes(bytes) => self.hear(bytes),
            Comes::Session => {
                self.guard_client.handle_new_session(None);
                self.asked = Asked::default();
            }
        }
    }

    fn bytes(&self, said: &Said) -> Vec<u8> {
        let status = self.last.map(|last| last.status);
        if let Some(status) = status {
            // A picture with the newest tick was sent.
            let ticks = self.guard_client.ticks();
            ticks.note_capture(status.tick.get(), true);
            ticks.note_sent(status.tick.get());
        }
        let named = status.map_or(0, |status| status.stop.get());
        let act = said.act.map(|(deed, number, is_right)| message::Act {
            number,
            stop: if is_right && deed == message::Deed::Reset { named } else { 0 },
            deed,
        });
        let command = message::Command {
            sequence: if said.is_newest { self.sequence + 1 } else { self.sequence / 2 },
            sent_at: self.now,
            throttle: said.throttle,
            console: said.console,
            cited: status.filter(|_| said.is_seeing).map_or(0, |status| status.tick.get()),
            act,
            emergency_stop_number: said.emergency_stop_number,
            absences: said.absences,
            successor: said.successor,
            ..message::Command::default()
        };
        command.encode()
    }

    fn hear(&mut self, bytes: &[u8]) {
        let here = |sent_at| Some((sent_at, Duration::from_millis(5)));
        let is_taken = self.guard_client.handle_bytes(bytes, here, self.now).is_ok();
        let read = message::Command::decode(bytes);
        assert_eq!(is_taken, read.is_ok());
        let Ok(command) = read else { return };
        self.sequence = self.sequence.max(command.sequence.min(u64::MAX / 2));
        match command.act {
            Some(message::Act { deed: message::Deed::Arm, number, .. }) => {
                self.asked.arms.insert((command.console, number));
            }
            Some(message::Act { deed: message::Deed::Reset, stop, .. }) => {
                self.asked.resets.insert(stop);
            }
            Some(_) | None => {}
        }
    }

    fn steps(&mut self, count: u32) {
        (0..count).for_each(|_| self.step());
    }

    fn step(&mut self) {
        self.now += PERIOD;
        let proposed = *lock(&self.guard_client.proposed);
        let proposal = self.guard_client.proposal(&proposed, Troubles::NONE, self.now);
        let proposal = self.proposals.1.receive(&self.proposals.0.encode(&proposal));
        let (measured_at, speed) = (self.now, self.speed);
        let machine = MachineState { measured_at, speed, ..MachineState::default() };
        let input = Input {
            proposal: Some(proposal.expect("a proposal is a sound frame, whatever was commanded")),
            machine: Some(machine),
            ..Input::default()
        };
        let output = self.guard.step(&input, self.now);
        self.check(&output);
        let controls = output.control.controls;
        let parking = if controls.parking_brake { 3.0 } else { 0.0 };
        let pull = 4.2 * controls.throttle - 8.0 * controls.brake - parking;
        self.speed = (self.speed + pull * PERIOD.as_secs_f32()).max(0.0);
        let status = self.statuses.1.receive(&self.statuses.0.encode(&output.status));
        let mut follow: Follow = Box::new(|_| Vec::new());
        let status = StatusFrame::of(&status.expect("so is a status"));
        self.guard_client.hear(status, &mut follow, self.now);
        self.last = Some(output);
    }

    /// Asserts that nothing moves without a requested arming. Asserts also that a latch ends only
    /// by a reset of this session that names it, while the machine stands.
    fn check(&self, output: &Output) {
        let (status, controls) = (&output.status, output.control.controls);
        let before = self.last.map(|last| last.status);
        let was = before.map_or(Mode::Held, |before| before.mode);
        match status.mode {
            Mode::Held => assert!(controls.throttle == 0.0 && controls.brake > 0.0, "{status:?}"),
            Mode::Armed if was == Mode::Armed => assert_eq!(controls.throttle, 0.0),
            Mode::Armed => {
                assert_eq!((was, self.speed, controls.throttle), (Mode::Held, 0.0, 0.0));
                assert!(!before.is_some_and(|before| before.is_latched), "latched: {status:?}");
                let answer = status.answer.expect("an act armed it");
                let act = (answer.console.get(), answer.number.get());
                assert!(self.asked.arms.contains(&act), "nobody asked for it: {status:?}");
            }
            Mode::Driving | Mode::Limited => {
                assert!(was.is_driving() || was == Mode::Armed, "{was:?}, {status:?}");
            }
            Mode::Manoeuvre => assert_eq!(controls.throttle, 0.0),
        }
        if let Some(before) = before.filter(|before| before.is_latched && !status.is_latched) {
            assert_eq!((was, status.mode, self.speed), (Mode::Held, Mode::Held, 0.0));
            let session = lock(&self.guard_client.proposed).session;
            let is_asked = self.asked.resets.contains(&before.stop.get());
            assert!(is_asked && session.is_some(), "nobody asked for it: {before:?}");
        }
    }

    fn mode(&self) -> Mode {
        self.last.map_or(Mode::Held, |last| last.status.mode)
    }

    fn is_latched(&self) -> bool {
        self.last.is_some_and(|last| last.status.is_latched)
    }
}

fn deed() -> impl Strategy<Value = message::Deed> {
    use message::Deed::{Arm, Park, Reset, TakeOver};
    prop_oneof![4 => Just(Arm), 3 => Just(Reset), 1 => Just(Park), 1 => Just(TakeOver)]
}

prop_compose! {
    fn said()(
        console in prop_oneof![1 => Just(0_u64), 12 => Just(7), 3 => Just(8)],
        throttle in prop_oneof![2 => Just(0.0_f32), 1 => Just(0.7)],
        absences in prop_oneof![12 => Just(0_u32), 1 => any::<u32>()],
        emergency_stop_number in prop_oneof![20 => Just(0_u32), 1 => 1_u32..4],
        act in proptest::option::of((deed(), 0_u32..400, proptest::bool::weighted(0.7))),
        successor in prop_oneof![8 => Just(0_u64), 1 => 6_u64..9],
        is_seeing in proptest::bool::weighted(0.9),
        is_newest in proptest::bool::weighted(0.9),
    ) -> Said {
        Said {
            console, throttle, absences, emergency_stop_number, act, successor, is_seeing, is_newest,
        }
    }
}

fn comes() -> impl Strategy<Value = Comes> {
    let spoiled =
        (said(), proptest::collection::vec((0_usize..200, any::<u8>()), 1..4), 0_usize..260);
    prop_oneof![
        20 => said().prop_map(Comes::Command),
        5 => spoiled.prop_map(|(said, places, length)| Comes::Spoiled(said, places, length)),
        1 => proptest::collection::vec(any::<u8>(), 0..200).prop_map(Comes::Bytes),
        1 => Just(Comes::Session),
    ]
}

proptest! {
    #[test]
    fn no_operator_bytes_move_an_unarmed_machine_or_unlatch_a_stop(
        all in proptest::collection::vec((comes(), 1_u32..6), 1..120),
    ) {
        let mut rig = Rig::new();
        rig.take(&Comes::Session);
        rig.steps(40);
        for (comes, steps) in &all {
            rig.take(comes);
            rig.steps(*steps);
        }
    }
}

/// The property would hold for a path that delivers nothing, too; this test excludes that.
#[test]
fn valid_bytes_arm_drive_stop_and_reset() {
    let mut rig = Rig::new();
    let say = |rig: &mut Rig, said: Said| {
        rig.take(&Comes::Command(said));
        rig.steps(2);
    };
    let act = |deed, number, is_right| Said { act: Some((deed, number, is_right)), ..AT_EASE };
    rig.take(&Comes::Session);
    rig.steps(40);
    for _ in 0..5 {
        say(&mut rig, AT_EASE);
    }
    say(&mut rig, Said { throttle: 0.7, ..AT_EASE });
    assert_eq!(rig.mode(), Mode::Held, "throttle alone");
    say(&mut rig, AT_EASE);
    say(&mut rig, act(message::Deed::Arm, 1, true));
    assert_eq!(rig.mode(), Mode::Armed);
    for _ in 0..50 {
        say(&mut rig, Said { throttle: 0.7, ..AT_EASE });
    }
    assert!(rig.mode().is_driving() && rig.speed > 1.0, "{:?}", rig.last);
    rig.take(&Comes::Bytes(vec![0xFF; 90]));
    say(&mut rig, Said { emergency_stop_number: 3, ..AT_EASE });
    assert!(rig.mode() == Mode::Manoeuvre && rig.is_latched());
    say(&mut rig, act(message::Deed::Reset, 2, true));
    assert!(rig.is_latched(), "it moves");
    for _ in 0..200 {
        say(&mut rig, AT_EASE);
    }
    assert_eq!((rig.mode(), rig.speed), (Mode::Held, 0.0));
    say(&mut rig, act(message::Deed::Arm, 3, true));
    say(&mut rig, act(message::Deed::Reset, 4, false));
    assert!(rig.mode() == Mode::Held && rig.is_latched(), "it is latched, and that named none");
    say(&mut rig, act(message::Deed::Reset, 5, true));
    assert!(rig.mode() == Mode::Held && !rig.is_latched());
    say(&mut rig, act(message::Deed::Arm, 6, true));
    assert_eq!(rig.mode(), Mode::Armed);
}
