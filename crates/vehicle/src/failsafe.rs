//! The rule that a vehicle without a fresh, authentic command stops itself.

use std::time::Duration;

use serde::Deserialize;
use tautline_message::{Command, Gear, Mode};
use tautline_testtrack::Controls;
use tautline_units::Instant;

/// When the vehicle stops by itself, and how hard.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Milliseconds without a fresh command after which the vehicle brakes; default 300.
    pub silence_ms: u64,
    /// Milliseconds a command may have been under way and still count as fresh; default 250.
    pub command_age_max_ms: u64,
    /// Pedal position of the brake when stopping, 0 to 1; default 1.
    pub brake: f32,
}

impl Default for Config {
    fn default() -> Self {
        Self { silence_ms: 300, command_age_max_ms: 250, brake: 1.0 }
    }
}

impl Config {
    /// Checks every field.
    ///
    /// # Errors
    /// One line that names the field and its bounds.
    pub fn validate(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            (50..=5_000).contains(&self.silence_ms),
            "failsafe.silence_ms = {}: must be 50 to 5000",
            self.silence_ms
        );
        anyhow::ensure!(
            (20..=5_000).contains(&self.command_age_max_ms),
            "failsafe.command_age_max_ms = {}: must be 20 to 5000",
            self.command_age_max_ms
        );
        anyhow::ensure!(
            self.brake > 0.2 && self.brake <= 1.0,
            "failsafe.brake = {}: must be more than 0.2, at most 1",
            self.brake
        );
        Ok(())
    }
}

/// Decides, by the vehicle's own clock, whether commands reach the actuators.
///
/// A command is fresh if it was under way for no longer than the configured age, and newer than
/// the last one taken. After a stop the vehicle drives again only once commands are fresh and one
/// of them has shown the throttle released.
#[derive(Debug)]
pub struct Failsafe {
    config: Config,
    state: State,
    last: Option<Taken>,
    newest_sequence: Option<u64>,
    stale_count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    AwaitingOperator,
    Driving,
    Stopping(Reason),
    Stopped(Reason),
    AwaitingRelease(Reason),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reason {
    Silence,
    EmergencyStop,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    command: Command,
    at: Instant,
    age: Duration,
}

impl Failsafe {
    /// A vehicle that stands and waits for an operator.
    pub fn new(config: Config) -> Self {
        let state = State::AwaitingOperator;
        Self { config, state, last: None, newest_sequence: None, stale_count: 0 }
    }

    /// Takes an authentic command that left the operator at `sent_at` (this vehicle's clock;
    /// `None` while the offset between the clocks is unknown, and then it is not fresh).
    ///
    /// Returns whether it was fresh.
    pub fn handle_command(
        &mut self,
        command: Command,
        sent_at: Option<Instant>,
        now: Instant,
    ) -> bool {
        let age = sent_at.map(|sent| now.since(sent));
        let fresh = age.is_some_and(|age| age <= millis(self.config.command_age_max_ms));
        let newer = self.newest_sequence.is_none_or(|newest| command.sequence > newest);
        let (Some(age), true, true) = (age, fresh, newer) else {
            self.stale_count += 1;
            return false;
        };
        self.newest_sequence = Some(command.sequence);
        self.last = Some(Taken { command, at: now, age });
        if command.emergency_stop {
            self.state = State::Stopping(Reason::EmergencyStop);
        }
        true
    }

    /// A new session counts its commands from the beginning. What was commanded last holds for as
    /// long as it is fresh, so that a new session does not stop a car on its way.
    pub fn handle_new_session(&mut self) {
        self.newest_sequence = None;
    }

    /// What the actuators are to do at `now`, given the speed in m/s.
    pub fn controls(&mut self, speed: f32, now: Instant) -> Controls {
        let command = self.fresh_command(now);
        self.state = self.next_state(command.as_ref(), speed);
        match (self.state, command) {
            (State::Driving, Some(command)) => Controls {
                steering: command.steering,
                throttle: command.throttle,
                brake: command.brake,
                reverse: command.gear == Gear::Reverse,
            },
            // The wheel still follows a present operator while the car brakes.
            (_, command) => Controls {
                steering: command.map_or(0.0, |c| c.steering),
                throttle: 0.0,
                brake: self.config.brake,
                reverse: false,
            },
        }
    }

    /// The mode, and why, in words for the operator.
    pub fn mode(&self) -> (Mode, String) {
        let why = |reason: Reason| match reason {
            Reason::Silence => format!("no fresh command for {} ms", self.config.silence_ms),
            Reason::EmergencyStop => "the operator asked to stop".to_owned(),
        };
        match self.state {
            State::AwaitingOperator => (Mode::AwaitingOperator, "no operator yet".to_owned()),
            State::Driving => (Mode::Driving, String::new()),
            State::Stopping(reason) => (Mode::Stopping, why(reason)),
            State::Stopped(reason) => (Mode::Stopped, why(reason)),
            State::AwaitingRelease(reason) => {
                (Mode::AwaitingRelease, format!("{}; let go of the throttle", why(reason)))
            }
        }
    }

    /// How long ago the newest command left the operator, at `now`.
    pub fn command_age(&self, now: Instant) -> Option<Duration> {
        self.last.map(|last| now.since(last.at) + last.age)
    }

    /// Commands that were authentic but late or overtaken, and not acted on.
    pub fn stale_count(&self) -> u64 {
        self.stale_count
    }

    fn fresh_command(&self, now: Instant) -> Option<Command> {
        let last = self.last?;
        (now.since(last.at) < millis(self.config.silence_ms)).then_some(last.command)
    }

    fn next_state(&self, command: Option<&Command>, speed: f32) -> State {
        let standing = speed.abs() < STANDING_SPEED;
        match (self.state, command) {
            (State::AwaitingOperator, None) => State::AwaitingOperator,
            (State::AwaitingOperator, Some(command)) => {
                if released(command) {
                    State::Driving
                } else {
                    State::AwaitingOperator
                }
            }
            (State::Driving, Some(_)) => State::Driving,
            (State::Driving, None) => State::Stopping(Reason::Silence),
            (State::Stopping(reason), _) => {
                if standing {
                    State::Stopped(reason)
                } else {
                    State::Stopping(reason)
                }
            }
            (State::Stopped(reason) | State::AwaitingRelease(reason), None) => {
                State::Stopped(reason)
            }
            (State::Stopped(reason) | State::AwaitingRelease(reason), Some(command)) => {
                if released(command) { State::Driving } else { State::AwaitingRelease(reason) }
            }
        }
    }
}

fn released(command: &Command) -> bool {
    command.throttle <= RELEASED_THROTTLE && !command.emergency_stop
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// m/s below which the car counts as standing.
const STANDING_SPEED: f32 = 0.05;
/// A pedal's dead zone: below this it counts as let go.
const RELEASED_THROTTLE: f32 = 0.02;

#[cfg(test)]
mod tests;
