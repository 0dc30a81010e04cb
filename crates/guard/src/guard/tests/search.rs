//! Exhaustive search of the guard's states, for a person, a vehicle and a machine of few values.
//!
//! Time runs in steps of 250 ms with matching timeouts, so that every age used by a rule takes a
//! handful of values. Two guards count as equal if every value that a rule reads is equal. Growing
//! numbers are compared with each other; ages are counted in steps up to the point where they stop
//! mattering. Real numbers are left out: steering, the ramp, the bound between its ends.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::vec::Vec;

use super::super::*;
use crate::frame::{Absence, Absences, DeadMan};
use crate::{Motion, Notices, Twist};

/// A guard, the counters of its environment, and an observer's record of the person's acts.
#[derive(Clone, Debug)]
struct Node {
    guard: Guard,
    kind: Kind,
    now: Instant,
    sequence: u64,
    emergency: u32,
    /// Numbers of the newest acts of consoles A and B.
    acts: [u32; 2],
    /// `true` if arming was done since the machine was last held, by the observer's record.
    is_armed: bool,
    /// Stop of an emergency that was not reset yet, by the observer's record, if any.
    latched: Option<Stop>,
}

/// A kind of machine, and the motion of its events.
#[derive(Clone, Copy, Debug)]
struct Kind {
    config: Config,
    /// Set points of a person who wants to move it.
    wanted: Controls,
    /// Motion of a machine that moves.
    moved: Twist,
}

/// Input and circumstances of one step.
#[derive(Clone, Copy, Debug)]
struct Event {
    session: u32,
    said: Option<Said>,
    emergency: bool,
    act: Option<(usize, Wanted)>,
    is_proposed: bool,
    /// `true` if it moves.
    machine: Option<(bool, Notices)>,
}

/// Content of a new command.
#[derive(Clone, Copy, Debug)]
struct Said {
    console: usize,
    throttle: f32,
    sees: Sees,
    is_late: bool,
    is_gone: bool,
    hands_over: bool,
}

#[derive(Clone, Copy, Debug)]
enum Sees {
    Newest,
    Nothing,
    NeverIssued,
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Arm,
    /// The console's last act repeated as an arming.
    ArmAgain,
    ResetRight,
    ResetWrong,
    Park,
    TakeOver,
}

#[test]
fn only_a_new_arming_leads_to_motion() {
    let wanted = Controls { throttle: 1.0, ..Controls::default() };
    let moved = Twist { forward: 0.9, ..Twist::ZERO };
    search(Kind { config: config(Config::car()), wanted, moved });
}

#[test]
fn only_a_new_arming_leads_to_motion_of_a_robot() {
    let turn = Twist { yaw_rate: 0.9, ..Twist::ZERO };
    // Straight on, and on the spot.
    for twist in [Twist { forward: 0.9, ..Twist::ZERO }, turn] {
        let wanted = Controls { twist, ..Controls::default() };
        search(Kind { config: config(Config::robot()), wanted, moved: twist });
    }
}

#[test]
fn only_a_new_arming_leads_to_motion_of_a_cart() {
    let sideways = Twist { sideways: 0.5, ..Twist::ZERO };
    let arc = Twist { forward: 0.5, sideways: 0.3, yaw_rate: 0.5 };
    for twist in [sideways, arc] {
        let wanted = Controls { twist, ..Controls::default() };
        search(Kind { config: config(Config::cart()), wanted, moved: twist });
    }
}

/// Steps through every state of the guard of this machine.
fn search(kind: Kind) {
    let events = events();
    let begun = Vec::from([Node::new(kind)]);
    let (mut seen, mut frontier, mut ways) = (HashSet::new(), begun, 0_u64);
    let mut transitions = HashSet::new();
    let mut armed = 0_u64;
    while let Some(node) = frontier.pop() {
        for event in &events {
            let mut next = node.clone();
            let output = next.step(event);
            ways += 1;
            armed += u64::from(output.status.mode == Mode::Armed);
            if let Some(transition) = output.transition {
                transitions.insert((transition.from, transition.to));
            }
            if seen.insert(next.key()) {
                assert!(seen.len() < NODES_MAX, "the search does not end");
                frontier.push(next);
            }
        }
    }
    std::println!("{} nodes, {ways} steps", seen.len());
    assert!(seen.len() > 1_000 && armed > 1_000, "the search reaches little: {}", seen.len());
    use Mode::{Armed, Driving, Held, Limited, Manoeuvre};
    let allowed: HashSet<_> = [
        (Held, Held),
        (Held, Armed),
        (Held, Manoeuvre),
        (Armed, Held),
        (Armed, Driving),
        (Armed, Manoeuvre),
        (Driving, Limited),
        (Driving, Held),
        (Driving, Manoeuvre),
        (Limited, Driving),
        (Limited, Held),
        (Limited, Manoeuvre),
        (Manoeuvre, Manoeuvre),
        (Manoeuvre, Held),
    ]
    .into_iter()
    .collect();
    assert_eq!(transitions, allowed, "every way of docs/guard.md, and no other");
}

impl Node {
    fn new(kind: Kind) -> Self {
        Self {
            guard: Guard::new(kind.config, Tick::new(50).unwrap()),
            kind,
            now: Instant::from_millis(1_000),
            sequence: 0,
            emergency: 0,
            acts: [0; 2],
            is_armed: false,
            latched: None,
        }
    }

    /// Steps, and checks the output against the observer's record.
    fn step(&mut self, event: &Event) -> Output {
        self.now += STEP;
        let proposal = self.proposal(event);
        let machine = event.machine.map(|(moves, notices)| {
            let moved = if moves { self.kind.moved } else { Twist::ZERO };
            MachineState {
                measured_at: self.now,
                speed: moved.forward,
                sideways_speed: moved.sideways,
                yaw_rate: moved.yaw_rate,
                notices,
                ..MachineState::default()
            }
        });
        let before = self.guard.acts.answer();
        let proposed = event.is_proposed.then_some(proposal);
        let input = Input { proposal: proposed, machine, ..Input::default() };
        let output = self.guard.step(&input, self.now);
        let status = &output.status;

        let answer = status.answer.filter(|answer| before != Some(*answer));
        let is_done = answer.is_some_and(|answer| answer.outcome == Outcome::Done);
        // An act that arrived with an emergency stop is answered a step later.
        let newest = self.guard.vehicle.proposal.newest;
        let asked = newest.and_then(|(proposal, _)| proposal.act).map(|act| act.deed);
        if status.mode == Mode::Armed && is_done && asked == Some(Deed::Arm) {
            assert!(self.latched.is_none(), "{event:?} {output:?}");
            self.is_armed = true;
        }
        if is_done && asked == self.latched.map(Deed::Reset) {
            self.latched = None;
        }
        if event.is_proposed && event.emergency {
            self.latched = Some(status.stop);
            assert!(matches!(status.mode, Mode::Held | Mode::Manoeuvre), "{event:?} {output:?}");
        }
        // A machine that is not armed is never released.
        if matches!(status.mode, Mode::Held | Mode::Manoeuvre) {
            self.is_armed = false;
        }
        let controls = output.control.controls;
        let is_released = matches!(status.mode, Mode::Armed | Mode::Driving | Mode::Limited);
        assert!(!is_released || self.is_armed, "released without arming: {event:?} {output:?}");
        assert!(
            self.latched.is_none() || status.is_latched,
            "the latch went: {event:?} {output:?}"
        );
        assert!(self.latched.is_none() || !is_released, "released while latched: {event:?}");
        assert!(controls.throttle == 0.0 || status.mode.is_driving(), "{event:?} {output:?}");
        let is_still = controls.twist == Twist::ZERO;
        let may_move = status.mode.is_driving() || status.mode == Mode::Manoeuvre;
        assert!(is_still || may_move, "{event:?} {output:?}");
        assert_eq!(controls, controls.of(self.kind.config.machine.motion));
        if status.mode == Mode::Held {
            assert_eq!((status.holder, status.session), (None, None), "{event:?}");
            let is_twisted = self.guard.is_twisted();
            assert!(is_twisted || controls.brake >= 0.5, "{event:?} {output:?}");
            assert_eq!(controls.parking_brake, self.guard.is_parked);
        }
        // A reason to stop counts at once.
        if let Some((_, notices)) = event.machine
            && !notices.is_empty()
        {
            assert!(!is_released, "a person at the machine: {event:?} {output:?}");
        }
        if event.is_proposed && event.session == 0 {
            assert!(!is_released, "no session: {event:?} {output:?}");
        }
        output
    }

    fn proposal(&mut self, event: &Event) -> Proposal {
        self.sequence += u64::from(event.said.is_some());
        self.emergency += u32::from(event.emergency && event.is_proposed);
        let newest = self.guard.tick;
        let command = event.said.map(|said| Command {
            sequence: self.sequence,
            console: console(said.console),
            successor: said.hands_over.then_some(console(1 - said.console)),
            controls: if said.throttle > 0.0 { self.kind.wanted } else { Controls::default() },
            dead_man: DeadMan::Absent,
            absences: Absences::NONE.with_if(Absence::ConsoleGone, said.is_gone),
            cited: match said.sees {
                Sees::Newest => Some(newest),
                Sees::Nothing => None,
                Sees::NeverIssued => Tick::new(newest.get() + 1_000),
            },
            age: (!said.is_late).then_some(Duration::from_millis(50)),
        });
        let act = event.act.map(|(by, wanted)| {
            let is_new = !matches!(wanted, Wanted::ArmAgain);
            self.acts[by] += u32::from(is_new && event.is_proposed);
            let number = ActNumber::new(self.acts[by].max(1)).unwrap();
            let deed = match wanted {
                Wanted::Arm | Wanted::ArmAgain => Deed::Arm,
                Wanted::ResetRight => Deed::Reset(self.guard.stop),
                Wanted::ResetWrong => Deed::Reset(Stop::new(7).unwrap()),
                Wanted::Park => Deed::Park,
                Wanted::TakeOver => Deed::TakeOver,
            };
            Act { console: console(by), number, deed, age: Some(Duration::ZERO) }
        });
        Proposal {
            source: self.now,
            session: Session::new(event.session),
            troubles: Default::default(),
            command,
            emergency_stop: ActNumber::new(self.emergency),
            act,
        }
    }

    /// Returns a key of all state that a rule reads.
    fn key(&self) -> u64 {
        let guard = &self.guard;
        let steps = |since: Option<Instant>, most: u128| {
            let passed = since.map(|at| self.now.since(at).as_millis() / STEP.as_millis());
            passed.map(|passed| passed.min(most))
        };
        let said = |command: &Command| {
            let throttle = self.guard.demand(&command.controls) > 0.0;
            (command.console, throttle, command.successor, command.absences)
        };
        let person = &guard.person;
        let fresh = person.fresh.map(|taken| (said(&taken.command), steps(Some(taken.at), 2)));
        let holder = (person.holder, person.predecessor, person.is_stranger);
        let newest = person.newest.map(|command| said(&command));
        let vehicle = guard.vehicle.proposal.newest.map(|(proposal, at)| {
            let waiting = proposal.act.filter(|act| guard.acts.is_new(act));
            let waiting = waiting.map(|act| (act.console, act.deed == Deed::Arm));
            (steps(Some(at), 2), proposal.session, waiting)
        });
        let machine = guard.machine.newest.map(|(machine, at)| {
            let moves =
                (machine.speed, machine.sideways_speed, machine.yaw_rate) != (0.0, 0.0, 0.0);
            (steps(Some(at), 2), moves, machine.notices)
        });
        let cited = guard.loop_age.current(self.now);
        let cited = cited.map(|age| (age.as_millis() / STEP.as_millis()).min(3));
        let is_bounded = guard.bound.get() < guard.config.envelope.speed_max;
        let manoeuvre = guard.manoeuvre.map(|manoeuvre| steps(manoeuvre.standing_since(), 1));
        let armed = (guard.mode == Mode::Armed).then(|| steps(Some(guard.since), 4));
        let is_brake = guard.why.cause == Cause::BrakeDoesNotAnswer;
        let mut hasher = DefaultHasher::new();
        (guard.mode, is_brake, guard.is_latched, guard.is_parked, guard.vehicle.session)
            .hash(&mut hasher);
        (holder, newest, fresh, vehicle, machine, cited, is_bounded, manoeuvre, armed)
            .hash(&mut hasher);
        (self.is_armed, self.latched.is_some(), guard.watches.brake.counted()).hash(&mut hasher);
        guard.watches.twist.counted().hash(&mut hasher);
        hasher.finish()
    }
}

fn console(index: usize) -> Console {
    Console::new(index as u64 + 0xA).unwrap()
}

/// Returns the possible events of a step: each kind alone with all else sound, and the relevant
/// combinations.
fn events() -> Vec<Event> {
    let good = Said {
        console: 0,
        throttle: 0.0,
        sees: Sees::Newest,
        is_late: false,
        is_gone: false,
        hands_over: false,
    };
    let sound = Event {
        session: 1,
        said: Some(good),
        emergency: false,
        act: None,
        is_proposed: true,
        machine: Some((false, Notices::NONE)),
    };
    let said = |said| Event { said: Some(said), ..sound };
    let mut proposals = Vec::from([
        sound,
        said(Said { throttle: 1.0, ..good }),
        said(Said { console: 1, ..good }),
        said(Said { sees: Sees::Nothing, ..good }),
        said(Said { sees: Sees::NeverIssued, throttle: 1.0, ..good }),
        said(Said { is_late: true, ..good }),
        said(Said { is_gone: true, ..good }),
        said(Said { hands_over: true, ..good }),
        Event { said: None, ..sound },
        Event { session: 0, ..sound },
        Event { session: 2, ..sound },
        Event { is_proposed: false, ..sound },
        Event { emergency: true, ..sound },
        Event { emergency: true, said: None, session: 0, ..sound },
    ]);
    let wanted = [
        Wanted::Arm,
        Wanted::ArmAgain,
        Wanted::ResetRight,
        Wanted::ResetWrong,
        Wanted::Park,
        Wanted::TakeOver,
    ];
    for wanted in wanted {
        proposals.push(Event { act: Some((0, wanted)), ..sound });
    }
    for wanted in [Wanted::Arm, Wanted::TakeOver] {
        let other = Said { console: 1, ..good };
        proposals.push(Event { act: Some((1, wanted)), ..said(other) });
    }
    proposals.push(Event { act: Some((0, Wanted::Arm)), session: 2, ..sound });
    proposals.push(Event { act: Some((0, Wanted::Arm)), emergency: true, ..sound });
    let machines = [
        Some((false, Notices::NONE)),
        Some((true, Notices::NONE)),
        Some((false, Notices::of(Notice::LocalStop))),
        None,
    ];
    let with = |event: &Event| machines.map(|machine| Event { machine, ..*event });
    proposals.iter().flat_map(with).collect()
}

/// Returns settings whose times are a few steps long.
fn config(mut config: Config) -> Config {
    let ms = Duration::from_millis;
    config.latency.loop_age_full = ms(500);
    config.latency.loop_age_hysteresis = ms(0);
    config.latency.loop_age_max = ms(600);
    config.latency.picture_age_max = ms(50);
    config.latency.command_age_max = ms(100);
    config.latency.command_timeout = ms(500);
    config.latency.proposal_timeout = ms(300);
    config.latency.machine_timeout = ms(300);
    config.latency.step_gap_max = ms(300);
    config.manoeuvre.standing = ms(200);
    config.manoeuvre.brake_answer = ms(300);
    config.presence.dead_man_required = Some(false);
    config.presence.arm_timeout = ms(1_000);
    // The bound reaches its target within a step.
    config.envelope.speed_max = 1.0;
    config.envelope.speed_bound_slope = 4.0;
    if config.machine.motion != Motion::Ackermann {
        config.machine.drive_answer = ms(400);
        (config.machine.deceleration_max, config.envelope.deceleration) = (4.0, 4.0);
        config.envelope.yaw_deceleration = 9.0;
        config.manoeuvre.yaw_deceleration_emergency = 9.0;
    }
    config.validate().unwrap();
    config
}

const STEP: Duration = Duration::from_millis(250);
/// Maximum number of states visited, far above the actual count: if the key distinguished states
/// that no rule does, the search would never end.
const NODES_MAX: usize = 150_000;
