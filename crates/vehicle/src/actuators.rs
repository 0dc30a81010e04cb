//! The actuators: the failsafe's decision reaches the machine at the machine's own rate.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_guard::failsafe::{Config, Demand};
use tautline_guard::{Controls, Extra, Failsafe, Fault, Machine, MachineState};
use tautline_net::clock::Clock;
use tautline_units::Instant;

/// The failsafe before a machine.
///
/// Runs on a thread of its own, by the vehicle's clock, so that the machine stops whatever else has
/// failed.
#[derive(Debug)]
pub struct Actuators {
    failsafe: Mutex<Failsafe>,
    motion: Mutex<Motion>,
    /// Whether this process was asked to end: no command counts any more.
    is_ending: AtomicBool,
}

/// What the machine was told last, and what it said.
#[derive(Clone, Debug, Default)]
pub struct Motion {
    /// What the actuators were told.
    pub controls: Controls,
    /// What the machine knows of itself; of controls that it did not take, the fault too.
    pub state: MachineState,
    /// What only this kind of machine knows.
    pub extras: Vec<Extra>,
    /// Turns in which the machine did not take its controls.
    pub controls_refused: u64,
}

impl Actuators {
    /// Returns the failsafe before a machine that has not been asked yet.
    pub fn new(config: Config) -> Self {
        Self {
            failsafe: Mutex::new(Failsafe::new(config)),
            motion: Mutex::default(),
            is_ending: AtomicBool::new(false),
        }
    }

    /// Drives `machine` at its own rate until `stop` is set.
    pub fn run(&self, mut machine: Box<dyn Machine + Send>, clock: Clock, stop: &AtomicBool) {
        let period = machine.period().max(PERIOD_MIN);
        let mut due = clock.now();
        while !stop.load(Ordering::Relaxed) {
            self.turn(&mut *machine, clock.now());
            due += period;
            let now = clock.now();
            if now.since(due) > BEHIND_MAX {
                due = now;
            }
            clock.sleep_until(due);
        }
    }

    /// Asks the machine for its state and gives it what the failsafe lets through.
    pub(crate) fn turn(&self, machine: &mut dyn Machine, now: Instant) {
        let mut state = machine.state(now);
        let controls = self.failsafe().controls(state.speed, now);
        let applied = machine.apply(&controls, now);
        if let Err(fault) = applied {
            state.faults = state.faults.with(fault);
        }
        let mut motion = lock(&self.motion);
        (motion.controls, motion.state) = (controls, state);
        motion.controls_refused += u64::from(applied.is_err());
        motion.extras.clear();
        motion.extras.extend(machine.extras().iter().take(Extra::COUNT_MAX));
    }

    /// Hands to the failsafe what an authentic command demands; see [`Failsafe::handle_command`].
    pub fn handle_command(&self, demand: Demand, sent_at: Option<Instant>, now: Instant) {
        if !self.is_ending() {
            self.failsafe().handle_command(demand, sent_at, now);
        }
    }

    /// Takes note that from now on another operator drives: what was demanded before does not count, and
    /// nothing moves before the throttle was let go.
    pub fn handle_new_operator(&self) {
        let mut failsafe = self.failsafe();
        *failsafe = Failsafe::new(*failsafe.config());
    }

    /// Stops the machine for good: this process is to end. Commands count no more.
    pub fn end(&self, now: Instant) {
        self.is_ending.store(true, Ordering::Relaxed);
        let demand =
            Demand { sequence: u64::MAX, controls: Controls::default(), emergency_stop: true };
        let mut failsafe = self.failsafe();
        failsafe.handle_new_session();
        failsafe.handle_command(demand, Some(now), now);
    }

    /// Returns whether this process was asked to end.
    pub fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Returns whether the machine stands at `now`, by what it said of late; one whose speed is not
    /// known does not.
    pub fn stands(&self, now: Instant) -> bool {
        let state = lock(&self.motion).state;
        let is_known = !state.faults.contains(Fault::Unreachable)
            && now.since(state.measured_at) < STATE_AGE_MAX;
        is_known && state.speed.abs() < STANDING_SPEED
    }

    /// Returns the failsafe itself, to ask for its mode and counters.
    pub fn failsafe(&self) -> MutexGuard<'_, Failsafe> {
        lock(&self.failsafe)
    }

    /// Returns what the machine was told last, and what it said.
    pub fn motion(&self) -> Motion {
        lock(&self.motion).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A machine that asks for more than a thousand turns a second gets so many.
const PERIOD_MIN: Duration = Duration::from_millis(1);
/// A computer that slept longer than this goes on from now rather than catch up.
const BEHIND_MAX: Duration = Duration::from_millis(100);
/// m/s below which the machine counts as standing.
const STANDING_SPEED: f32 = 0.05;
/// What a machine said longer ago tells nothing of whether it stands.
const STATE_AGE_MAX: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use tautline_guard::Gear;
    use tautline_guard::failsafe::{Mode, Reason};

    use super::*;

    /// A machine that notes what it is told, and takes it while it is connected.
    #[derive(Default)]
    struct Scripted {
        state: MachineState,
        is_disconnected: bool,
        applied: Vec<(Controls, Instant)>,
        extras: Vec<Extra>,
    }

    impl Machine for Scripted {
        fn period(&self) -> Duration {
            Duration::from_millis(20)
        }

        fn state(&mut self, now: Instant) -> MachineState {
            MachineState { measured_at: now, ..self.state }
        }

        fn apply(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault> {
            self.applied.push((*controls, now));
            if self.is_disconnected { Err(Fault::Unreachable) } else { Ok(()) }
        }

        fn extras(&self) -> &[Extra] {
            &self.extras
        }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn demand(sequence: u64, throttle: f32) -> Demand {
        let controls = Controls { throttle, gear: Gear::Reverse, ..Controls::default() };
        Demand { sequence, controls, emergency_stop: false }
    }

    #[test]
    fn any_machine_gets_what_the_failsafe_lets_through() {
        let (actuators, mut machine) = (Actuators::new(Config::default()), Scripted::default());
        actuators.turn(&mut machine, at(1_000));
        assert_eq!(machine.applied[0].0, Controls { brake: 1.0, ..Controls::default() });
        for (sequence, throttle, now) in [(1, 0.0, 1_010), (2, 0.5, 1_020)] {
            actuators.handle_command(demand(sequence, throttle), Some(at(now)), at(now));
            actuators.turn(&mut machine, at(now));
        }
        let driven = Controls { throttle: 0.5, gear: Gear::Reverse, ..Controls::default() };
        assert_eq!(machine.applied[2], (driven, at(1_020)));
        assert_eq!(actuators.motion().controls, driven);
        assert_eq!(actuators.motion().state.measured_at, at(1_020));
        actuators.turn(&mut machine, at(1_320));
        assert_eq!(machine.applied[3].0.brake, 1.0);
    }

    #[test]
    fn controls_that_a_machine_does_not_take_are_told_and_tried_again() {
        let (actuators, mut machine) = (Actuators::new(Config::default()), Scripted::default());
        machine.is_disconnected = true;
        machine.state.faults = machine.state.faults.with(Fault::Brake);
        (0..3).for_each(|turn| actuators.turn(&mut machine, at(turn * 20)));
        let motion = actuators.motion();
        assert_eq!((motion.controls_refused, machine.applied.len()), (3, 3));
        let faults: Vec<Fault> = motion.state.faults.iter().collect();
        assert_eq!(faults, [Fault::Unreachable, Fault::Brake]);
        machine.is_disconnected = false;
        actuators.turn(&mut machine, at(60));
        assert_eq!(actuators.motion().controls_refused, 3);
        assert!(!actuators.motion().state.faults.contains(Fault::Unreachable));
    }

    #[test]
    fn who_was_asked_to_end_stops_and_obeys_nobody() {
        let (actuators, mut machine) = (Actuators::new(Config::default()), Scripted::default());
        machine.state.speed = 8.0;
        for (sequence, throttle, now) in [(1, 0.0, 1_000), (2, 0.5, 1_020)] {
            actuators.handle_command(demand(sequence, throttle), Some(at(now)), at(now));
            actuators.turn(&mut machine, at(now));
        }
        actuators.end(at(1_030));
        for sequence in 3..200 {
            let now = at(1_020 + sequence * 20);
            let throttle = if sequence.is_multiple_of(2) { 0.0 } else { 1.0 };
            actuators.handle_command(demand(sequence, throttle), Some(now), now);
            if sequence.is_multiple_of(9) {
                actuators.failsafe().handle_new_session();
            }
            actuators.turn(&mut machine, now);
            let applied = machine.applied.last().unwrap().0;
            assert_eq!((applied.throttle, applied.brake), (0.0, 1.0));
            machine.state.speed = (machine.state.speed - 0.1).max(0.0);
        }
        let mode = actuators.failsafe().mode();
        assert_eq!(mode, Mode::Stopped(Reason::EmergencyStop));
    }

    #[test]
    fn a_machine_stands_that_says_so_of_late() {
        let (actuators, mut machine) = (Actuators::new(Config::default()), Scripted::default());
        let stands = |machine: &mut Scripted, speed, now| {
            machine.state.speed = speed;
            actuators.turn(machine, at(now));
            actuators.stands(at(now))
        };
        assert!(!stands(&mut machine, 0.3, 1_000));
        assert!(!stands(&mut machine, f32::NAN, 1_020));
        assert!(!stands(&mut machine, -0.06, 1_040));
        assert!(stands(&mut machine, -0.04, 1_060));
        assert!(actuators.stands(at(1_559)) && !actuators.stands(at(1_560)));
        machine.is_disconnected = true;
        assert!(!stands(&mut machine, 0.0, 1_600));
    }

    #[test]
    fn another_operator_begins_with_the_throttle_let_go() {
        let (actuators, mut machine) = (Actuators::new(Config::default()), Scripted::default());
        for (sequence, throttle, now) in [(1, 0.0, 1_000), (2, 0.0, 1_020)] {
            actuators.handle_command(demand(sequence, throttle), Some(at(now)), at(now));
            actuators.turn(&mut machine, at(now));
        }
        actuators.handle_new_operator();
        actuators.handle_command(demand(1, 0.5), Some(at(1_040)), at(1_040));
        actuators.turn(&mut machine, at(1_040));
        assert_eq!(machine.applied.last().unwrap().0.brake, 1.0);
        assert_eq!(actuators.failsafe().mode(), Mode::AwaitingOperator);
    }

    #[test]
    fn only_so_many_extras_are_told() {
        let (actuators, mut machine) = (Actuators::new(Config::default()), Scripted::default());
        machine.extras = vec![Extra { name: "battery", value: 48.5, unit: "V" }; 40];
        (0..2).for_each(|turn| actuators.turn(&mut machine, at(turn * 20)));
        assert_eq!(actuators.motion().extras, machine.extras[..Extra::COUNT_MAX]);
    }
}
