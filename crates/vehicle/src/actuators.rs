//! The actuators: the failsafe's decision reaches the car two hundred times a second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_message::Command;
use tautline_net::clock::Clock;
use tautline_testtrack::{CarState, Controls, View, World};
use tautline_units::Instant;

use crate::failsafe::{Config, Failsafe};

/// The simulated car behind its failsafe.
///
/// Runs on a thread of its own, by the vehicle's clock, so that the car stops whatever else has
/// failed.
#[derive(Debug)]
pub struct Actuators {
    failsafe: Mutex<Failsafe>,
    state: Mutex<State>,
    view: Arc<Mutex<View>>,
}

/// What the car does at present.
#[derive(Clone, Debug)]
pub struct State {
    /// Where it is and how it moves.
    pub car: CarState,
    /// What the actuators were last told.
    pub controls: Controls,
    /// Cones knocked over so far.
    pub cones_hit: u32,
}

impl Actuators {
    /// A car at the start of the course that grows from `seed`.
    pub fn new(config: Config, seed: u64) -> (Self, World) {
        let world = World::new(seed);
        let state = State {
            car: *world.car(),
            controls: Controls::default(),
            cones_hit: world.cones_hit(),
        };
        let actuators = Self {
            failsafe: Mutex::new(Failsafe::new(config)),
            state: Mutex::new(state),
            view: Arc::new(Mutex::new(world.view())),
        };
        (actuators, world)
    }

    /// Moves the car until `stop` is set.
    pub fn run(&self, mut world: World, clock: Clock, stop: &AtomicBool) {
        let mut due = clock.now();
        while !stop.load(Ordering::Relaxed) {
            let speed = world.car().speed as f32;
            let controls = self.failsafe().controls(speed, clock.now());
            world.step(&controls, STEP);
            *lock(&self.view) = world.view();
            *lock(&self.state) =
                State { car: *world.car(), controls, cones_hit: world.cones_hit() };
            due += STEP;
            let now = clock.now();
            if now.since(due) > BEHIND_MAX {
                due = now;
            }
            clock.sleep_until(due);
        }
    }

    /// Hands an authentic command to the failsafe; see [`Failsafe::handle_command`].
    pub fn handle_command(&self, command: Command, sent_at: Option<Instant>, now: Instant) {
        self.failsafe().handle_command(command, sent_at, now);
    }

    /// The failsafe itself, to ask for its mode and counters.
    pub fn failsafe(&self) -> MutexGuard<'_, Failsafe> {
        lock(&self.failsafe)
    }

    /// What the car does at present.
    pub fn state(&self) -> State {
        lock(&self.state).clone()
    }

    /// What the windscreen camera looks from.
    pub fn view(&self) -> Arc<Mutex<View>> {
        self.view.clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const STEP: Duration = Duration::from_millis(5);
/// A machine that slept longer than this goes on from now rather than catch up.
const BEHIND_MAX: Duration = Duration::from_millis(100);
