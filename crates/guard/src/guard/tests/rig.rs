//! A guard with a vehicle, a person and a point mass as its machine, in steps of 10 ms.

use std::vec::Vec;

use super::super::*;
use crate::Twist;
use crate::description::{Action, Counts, Item, Revision};
use crate::frame::Command;

/// State of the person and the vehicle; tests change it between steps.
#[derive(Clone, Debug)]
pub(crate) struct Rig {
    pub(crate) guard: Guard,
    pub(crate) now: Instant,
    pub(crate) proposal: Proposal,
    pub(crate) machine: MachineState,
    /// `true` if each step proposes a new command.
    pub(crate) is_commanding: bool,
    /// `true` if the commands cite the newest tick, 60 ms old.
    pub(crate) is_seeing: bool,
    /// `true` if the machine's speed follows its controls.
    pub(crate) is_following: bool,
    /// Offsets by which the clocks of the vehicle and of the machine lag.
    pub(crate) clocks_behind: [Duration; 2],
    /// Storage of the latch of a stop.
    pub(crate) latch: Latch,
    /// Description of the machine, of which it sends an entry in each step.
    pub(crate) entries: Vec<Entry>,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) last: Option<Output>,
}

pub(crate) const CONSOLE: Console = match Console::new(0xC0) {
    Some(console) => console,
    None => panic!("not 0"),
};

impl Rig {
    pub(crate) fn new() -> Self {
        let mut config = Config::car();
        config.presence.dead_man_required = Some(false);
        Self::with(config)
    }

    pub(crate) fn with(config: Config) -> Self {
        config.validate().unwrap();
        let command = Command {
            sequence: 0,
            console: CONSOLE,
            successor: None,
            controls: Controls::default(),
            dead_man: crate::frame::DeadMan::Absent,
            absences: Default::default(),
            cited: None,
            age: Some(Duration::from_millis(40)),
        };
        let proposal =
            Proposal { session: Session::new(1), command: Some(command), ..Proposal::default() };
        let mut rig = Self {
            guard: Guard::new(config, Tick::new(1000).unwrap()),
            now: Instant::from_millis(5_000),
            proposal,
            machine: MachineState::default(),
            is_commanding: true,
            is_seeing: true,
            is_following: true,
            clocks_behind: [Duration::ZERO; 2],
            latch: Latch::Nowhere,
            entries: Vec::new(),
            transitions: Vec::new(),
            last: None,
        };
        rig.declare(1, &Action::of_car().map(Item::Action));
        rig
    }

    /// Gives the machine a description with these items from the next step on.
    pub(crate) fn declare(&mut self, revision: u32, items: &[Item]) {
        let revision = Revision::new(revision).unwrap();
        let mut counts = Counts::default();
        let mut entries = Vec::new();
        for item in items {
            let count = match item {
                Item::Axis(_) => &mut counts.axes,
                Item::Action(_) => &mut counts.actions,
                Item::Value(_) => &mut counts.values,
            };
            entries.push((*count, *item));
            *count += 1;
        }
        let entry = |(index, item)| Entry { revision, counts, index, item };
        self.entries = entries.into_iter().map(entry).collect();
        self.machine.description = Some(revision);
    }

    /// Returns a rig whose differential or omni machine holds this twist.
    pub(crate) fn turning(mut config: Config, twist: Twist) -> Self {
        config.presence.dead_man_required = Some(false);
        let mut rig = Self::with(config);
        rig.steps(20);
        rig.arm(1);
        rig.steps(2);
        assert_eq!(rig.mode(), Mode::Armed, "{:?}", rig.last);
        rig.command().controls.twist = twist;
        rig.steps(2);
        rig.proposal.act = None;
        assert_eq!(rig.mode(), Mode::Driving, "{:?}", rig.last);
        rig.steps(400);
        assert!(rig.mode().is_driving(), "{:?}", rig.last);
        rig
    }

    /// Returns the machine's motion.
    pub(crate) fn moved(&self) -> Twist {
        let MachineState { speed, sideways_speed, yaw_rate, .. } = self.machine;
        Twist { forward: speed, sideways: sideways_speed, yaw_rate }
    }

    /// Sets the machine's motion.
    pub(crate) fn set_moved(&mut self, moved: Twist) {
        let machine = &mut self.machine;
        (machine.speed, machine.sideways_speed, machine.yaw_rate) =
            (moved.forward, moved.sideways, moved.yaw_rate);
    }

    /// Returns a rig whose person has armed the machine and drives at this speed.
    pub(crate) fn driving(speed: f32) -> Self {
        let mut rig = Self::new();
        rig.steps(20);
        rig.arm(1);
        rig.steps(2);
        assert_eq!(rig.mode(), Mode::Armed, "{:?}", rig.last);
        rig.command().controls.throttle = 0.5;
        rig.steps(2);
        assert_eq!(rig.mode(), Mode::Driving);
        rig.proposal.act = None;
        rig.machine.speed = speed;
        rig.steps(2);
        rig.machine.speed = speed;
        rig
    }

    pub(crate) fn command(&mut self) -> &mut Command {
        self.proposal.command.as_mut().unwrap()
    }

    pub(crate) fn arm(&mut self, number: u32) {
        self.act(number, Deed::Arm);
    }

    pub(crate) fn act(&mut self, number: u32, deed: Deed) {
        let number = ActNumber::new(number).unwrap();
        let age = Some(Duration::from_millis(40));
        self.proposal.act = Some(Act { console: CONSOLE, number, deed, age });
    }

    pub(crate) fn mode(&self) -> Mode {
        self.guard.mode
    }

    pub(crate) fn step(&mut self) -> Output {
        self.step_with(true, true)
    }

    /// Steps, optionally without the vehicle's or the machine's frame.
    pub(crate) fn step_with(&mut self, is_proposed: bool, is_heard: bool) -> Output {
        self.now += STEP;
        let tick = self.guard.tick;
        let (is_commanding, is_seeing, now) = (self.is_commanding, self.is_seeing, self.now);
        if let Some(command) = &mut self.proposal.command {
            command.sequence += u64::from(is_commanding);
            if is_seeing {
                command.cited = Tick::new(tick.get().saturating_sub(5).max(1000));
            }
        }
        [self.proposal.source, self.machine.measured_at] = self
            .clocks_behind
            .map(|behind| Instant::from_nanos(now.as_nanos() - behind.as_nanos() as u64));
        let input = Input {
            proposal: is_proposed.then_some(self.proposal),
            machine: is_heard.then_some(self.machine),
            latch: self.latch,
            entry: self.entries.first().copied().filter(|_| is_heard),
            ..Input::default()
        };
        let first = 1.min(self.entries.len());
        self.entries.rotate_left(first);
        let output = self.guard.step(&input, now);
        self.transitions.extend(output.transition);
        if self.is_following && self.guard.is_twisted() {
            let Controls { twist, parking_brake, .. } = output.control.controls;
            let told = if parking_brake { Twist::ZERO } else { twist };
            let follows = |is: f32, told: f32| {
                let next = is + (told - is) * FOLLOWS;
                if (next - told).abs() < 1e-3 { told } else { next }
            };
            let moved = self.moved();
            self.set_moved(Twist {
                forward: follows(moved.forward, told.forward),
                sideways: follows(moved.sideways, told.sideways),
                yaw_rate: follows(moved.yaw_rate, told.yaw_rate),
            });
        } else if self.is_following {
            let controls = output.control.controls;
            let pull = 4.2 * controls.throttle - 8.0 * controls.brake;
            self.machine.speed = (self.machine.speed + pull * STEP.as_secs_f32()).max(0.0);
        }
        self.last = Some(output);
        output
    }

    pub(crate) fn steps(&mut self, count: u32) {
        (0..count).for_each(|_| {
            self.step();
        });
    }

    /// Steps until the machine is held; returns the number of steps.
    pub(crate) fn until_held(&mut self) -> u32 {
        for count in 0..3_000 {
            if self.mode() == Mode::Held {
                return count;
            }
            self.step();
        }
        panic!("never held: {:?}", self.last);
    }

    /// Steps until the machine is stationary.
    pub(crate) fn until_standing(&mut self) {
        (0..1_000).find(|_| {
            self.step();
            self.machine.speed == 0.0
        });
        self.steps(50);
    }

    pub(crate) fn last_cause(&self) -> Cause {
        self.guard.why.cause
    }
}

/// Share of the way to its set point that a drive makes in a step: it lags by a tenth of a second.
const FOLLOWS: f32 = 0.1;
pub(crate) const STEP: Duration = Duration::from_millis(10);
