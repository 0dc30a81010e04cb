//! The rule that a vehicle without a fresh, authentic command stops itself.

use core::time::Duration;

use serde::{Deserialize, Deserializer};
use tautline_units::Instant;

use crate::{ConfigError, Controls, Gear};

/// When the vehicle stops by itself, and how hard.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Time without a fresh command after which the vehicle brakes; 50 ms to 5 s, default 300 ms.
    #[serde(rename = "command_timeout_ms", deserialize_with = "millis")]
    pub command_timeout: Duration,
    /// Time for which a command may have been under way and still counts as fresh; 20 ms to 5 s,
    /// default 250 ms.
    #[serde(rename = "command_age_max_ms", deserialize_with = "millis")]
    pub command_age_max: Duration,
    /// Pedal position of the brake when stopping, above 0.2 to 1; default 1.
    pub brake: f32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            command_timeout: Duration::from_millis(300),
            command_age_max: Duration::from_millis(250),
            brake: 1.0,
        }
    }
}

impl Config {
    /// Checks every field.
    ///
    /// # Errors
    /// [`ConfigError`] naming the first field out of its bounds.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let millis = self.command_timeout.as_millis();
        if !(50..=5_000).contains(&millis) {
            return Err(ConfigError::CommandTimeout { millis });
        }
        let millis = self.command_age_max.as_millis();
        if !(20..=5_000).contains(&millis) {
            return Err(ConfigError::CommandAgeMax { millis });
        }
        if !(self.brake > 0.2 && self.brake <= 1.0) {
            return Err(ConfigError::Brake { brake: self.brake });
        }
        Ok(())
    }
}

/// What one authentic command demands of the machine.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demand {
    /// The command's number: it counts up within a session.
    pub sequence: u64,
    /// Where steering, pedals and gear are to be.
    pub controls: Controls,
    /// Whether the machine is to stop at once, whatever else is demanded.
    pub emergency_stop: bool,
}

/// Who has the machine's motion in hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Nobody drives yet.
    AwaitingOperator,
    /// The operator's commands move the machine.
    Driving,
    /// The machine brakes by itself.
    Stopping(Reason),
    /// The machine stands, braked by itself.
    Stopped(Reason),
    /// Commands are fresh again, but the pedal has not been let go of since the stop.
    AwaitingRelease(Reason),
}

/// Why a machine stopped by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No fresh command came within [`Config::command_timeout`].
    CommandTimeout,
    /// The operator asked for it.
    EmergencyStop,
}

/// Decides, by the vehicle's own clock, whether commands reach the actuators.
///
/// A command is fresh if it was under way for no longer than the configured age, and newer than
/// the last one taken. After a stop the vehicle drives again only once commands are fresh and one
/// of them has shown the throttle released.
#[derive(Debug)]
pub struct Failsafe {
    config: Config,
    mode: Mode,
    last: Option<Taken>,
    newest_sequence: Option<u64>,
    stale_count: u64,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    demand: Demand,
    at: Instant,
    age: Duration,
}

impl Failsafe {
    /// Returns the failsafe of a vehicle that stands and waits for an operator.
    pub fn new(config: Config) -> Self {
        let mode = Mode::AwaitingOperator;
        Self { config, mode, last: None, newest_sequence: None, stale_count: 0 }
    }

    /// Takes what an authentic command demands. It left the operator at `sent_at` by the vehicle's
    /// clock; `None` while the offset between the clocks is unknown, and then it is not fresh.
    ///
    /// Returns whether it was fresh.
    pub fn handle_command(
        &mut self,
        demand: Demand,
        sent_at: Option<Instant>,
        now: Instant,
    ) -> bool {
        let age = sent_at.map(|sent| now.since(sent));
        let fresh = age.is_some_and(|age| age <= self.config.command_age_max);
        let newer = self.newest_sequence.is_none_or(|newest| demand.sequence > newest);
        let (Some(age), true, true) = (age, fresh, newer) else {
            self.stale_count += 1;
            return false;
        };
        self.newest_sequence = Some(demand.sequence);
        self.last = Some(Taken { demand, at: now, age });
        if demand.emergency_stop {
            self.mode = Mode::Stopping(Reason::EmergencyStop);
        }
        true
    }

    /// Takes note of a new session, which counts its commands from the beginning.
    ///
    /// What was demanded last holds for as long as it is fresh, so that a new session does not stop
    /// a vehicle on its way.
    pub fn handle_new_session(&mut self) {
        self.newest_sequence = None;
    }

    /// Returns what the actuators are to do at `now`, given the speed in m/s.
    pub fn controls(&mut self, speed: f32, now: Instant) -> Controls {
        let demand = self.fresh_demand(now);
        self.mode = self.next_mode(demand.as_ref(), speed);
        match (self.mode, demand) {
            (Mode::Driving, Some(demand)) => demand.controls,
            // The wheel still follows a present operator while the vehicle brakes.
            (_, demand) => Controls {
                steering: demand.map_or(0.0, |demand| demand.controls.steering),
                throttle: 0.0,
                brake: self.config.brake,
                gear: Gear::Drive,
                ..Controls::default()
            },
        }
    }

    /// Returns who has the motion in hand, and why.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns when the vehicle stops by itself, and how hard.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns how long ago, at `now`, the newest fresh command left the operator.
    pub fn command_age(&self, now: Instant) -> Option<Duration> {
        self.last.map(|last| now.since(last.at) + last.age)
    }

    /// Returns how many commands were authentic but late or overtaken, and not acted on.
    pub fn stale_count(&self) -> u64 {
        self.stale_count
    }

    fn fresh_demand(&self, now: Instant) -> Option<Demand> {
        let last = self.last?;
        (now.since(last.at) < self.config.command_timeout).then_some(last.demand)
    }

    fn next_mode(&self, demand: Option<&Demand>, speed: f32) -> Mode {
        let standing = speed.abs() < STANDING_SPEED;
        match (self.mode, demand) {
            (Mode::AwaitingOperator, None) => Mode::AwaitingOperator,
            (Mode::AwaitingOperator, Some(demand)) => {
                if released(demand) {
                    Mode::Driving
                } else {
                    Mode::AwaitingOperator
                }
            }
            (Mode::Driving, Some(_)) => Mode::Driving,
            (Mode::Driving, None) => Mode::Stopping(Reason::CommandTimeout),
            (Mode::Stopping(reason), _) => {
                if standing {
                    Mode::Stopped(reason)
                } else {
                    Mode::Stopping(reason)
                }
            }
            (Mode::Stopped(reason) | Mode::AwaitingRelease(reason), None) => Mode::Stopped(reason),
            (Mode::Stopped(reason) | Mode::AwaitingRelease(reason), Some(demand)) => {
                if released(demand) { Mode::Driving } else { Mode::AwaitingRelease(reason) }
            }
        }
    }
}

fn released(demand: &Demand) -> bool {
    demand.controls.throttle <= RELEASED_THROTTLE && !demand.emergency_stop
}

fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

/// m/s below which the vehicle counts as standing.
const STANDING_SPEED: f32 = 0.05;
/// A pedal's dead zone: below this it counts as let go.
const RELEASED_THROTTLE: f32 = 0.02;

#[cfg(test)]
mod tests;
