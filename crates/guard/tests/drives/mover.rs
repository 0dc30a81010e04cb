use tautline_guard::config::Config;
use tautline_guard::{Controls, MachineState, Motion, Notice, Notices, Position, Twist};
use tautline_units::Instant;

use crate::body::{Arc, Body, Moved, Person};
use crate::world::Fault;

/// A machine whose drive follows a twist with a delay and slip.
#[derive(Clone, Debug)]
pub(crate) struct Mover {
    pub(crate) config: Config,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) heading: f64,
    /// Forward, sideways, turn.
    pub(crate) twist: [f64; 3],
    pub(crate) distance: f64,
    pub(crate) turned: f64,
    /// `true` if the drive follows its set point.
    pub(crate) has_drive: bool,
    /// Share of the set point that reaches the ground: forward, sideways, turn.
    grip: [f64; 3],
    /// Turn that tracks add by themselves, rad per metre.
    drift: f64,
    /// Values that the machine reports for ever.
    pub(crate) frozen: Option<[f64; 3]>,
    /// Seconds since the begin.
    seconds: f64,
    pattern: u64,
}

/// A robot on two wheels.
#[derive(Clone, Debug)]
pub(crate) struct Robot(pub(crate) Mover);

/// A rover on tracks, which slip.
#[derive(Clone, Debug)]
pub(crate) struct Rover(pub(crate) Mover);

/// A cart on mecanum wheels.
#[derive(Clone, Debug)]
pub(crate) struct Cart(pub(crate) Mover);

impl Mover {
    pub(crate) fn robot(pattern: u64) -> Self {
        Self::new(Config::robot(), [1.0, 0.0, 1.0], 0.0, pattern)
    }

    /// Tracks lose up to a tenth of the speed, and four tenths of a turn.
    pub(crate) fn rover(pattern: u64) -> Self {
        let grip = 0.6 + 0.1 * (pattern / 4 % 4) as f64;
        Self::new(Config::rover(), [0.9 + grip / 20.0, 0.0, grip], 0.02, pattern)
    }

    pub(crate) fn cart(pattern: u64) -> Self {
        Self::new(Config::cart(), [1.0, 0.9, 0.95], 0.0, pattern)
    }

    fn new(config: Config, grip: [f64; 3], drift: f64, pattern: u64) -> Self {
        Self {
            config,
            x: 0.0,
            y: 0.0,
            heading: 0.0,
            twist: [0.0; 3],
            distance: 0.0,
            turned: 0.0,
            has_drive: true,
            grip,
            drift,
            frozen: None,
            seconds: 0.0,
            pattern,
        }
    }

    pub(crate) fn speed(&self) -> f64 {
        self.twist[0].hypot(self.twist[1])
    }

    fn step(&mut self, controls: &Controls) {
        self.seconds += SECONDS;
        let Twist { forward, sideways, yaw_rate } = controls.twist;
        let told = [forward, sideways, yaw_rate].map(f64::from);
        let falls = f64::from(self.config.machine.deceleration_max);
        let most =
            [falls, falls, 2.0 * f64::from(self.config.manoeuvre.yaw_deceleration_emergency)];
        for (at, value) in self.twist.iter_mut().enumerate() {
            let change = if controls.parking_brake {
                -value.clamp(-PARKING * SECONDS, PARKING * SECONDS)
            } else if self.has_drive {
                let wanted = told[at] * self.grip[at];
                let limit = most[at] * SECONDS;
                ((wanted - *value) * SECONDS / LAG).clamp(-limit, limit)
            } else {
                -value.clamp(-ROLLS_OUT * SECONDS, ROLLS_OUT * SECONDS)
            };
            *value += change;
            if value.abs() < 1e-4 && told[at] == 0.0 {
                *value = 0.0;
            }
        }
        let [forward, sideways, yaw_rate] = self.twist;
        let yaw_rate = yaw_rate + self.drift * forward;
        self.heading += yaw_rate * SECONDS;
        let (sin, cos) = self.heading.sin_cos();
        self.x += (forward * cos - sideways * sin) * SECONDS;
        self.y += (forward * sin + sideways * cos) * SECONDS;
        self.distance += self.speed() * SECONDS;
        self.turned += yaw_rate.abs() * SECONDS;
    }

    fn alone(&self, controls: &Controls) -> Controls {
        let twist = controls.twist.slowed(1.0, 2.0, SECONDS as f32);
        Controls { twist, ..*controls }
    }

    pub(crate) fn state(&self, notices: Notices, measured_at: Instant) -> MachineState {
        // A gyroscope and wheel encoders have noise.
        let noise = 0.01 * (self.seconds * 977.0).sin();
        let [forward, sideways, turn] = self.twist;
        let turn = turn + self.drift * forward;
        let noise = if self.speed() == 0.0 && turn == 0.0 { 0.0 } else { noise };
        let told = [forward + noise, sideways + noise, turn + noise];
        let [speed, sideways_speed, yaw_rate] =
            self.frozen.unwrap_or(told).map(|value| value as f32);
        let is_omni = self.config.machine.motion == Motion::Omni;
        MachineState {
            measured_at,
            speed,
            sideways_speed: if is_omni { sideways_speed } else { f32::NAN },
            yaw_rate,
            steering_angle: f32::NAN,
            position: Some(Position {
                x: self.x as f32,
                y: self.y as f32,
                heading: self.heading as f32,
            }),
            notices: if self.speed() == 0.0 {
                notices
            } else {
                notices.without(Notice::ParkingBrake)
            },
            ..MachineState::default()
        }
    }

    /// Weaves, turns on the spot, drives an arc, or drives backwards or sideways, by the pattern.
    fn commands(&self, person: &Person) -> Controls {
        if person.is_released {
            return Controls::default();
        }
        let envelope = &self.config.envelope;
        let share = (person.speed / f64::from(envelope.speed_max)) as f32;
        let sine = (person.weave * (0.4 * person.seconds).sin()) as f32;
        let side = if person.weave < 0.0 { -1.0 } else { 1.0 };
        let is_omni = self.config.machine.motion == Motion::Omni;
        let (forward, sideways, yaw_rate) = match self.pattern % 4 {
            0 => (1.0, 0.0, 0.3 * sine),
            1 => (0.0, 0.0, side),
            2 => (0.8, 0.0, 0.5 * side),
            _ if is_omni => (0.7, 0.7 * side, 0.1 * sine),
            _ => (-1.0, 0.0, 0.3 * side),
        };
        let along = if forward < 0.0 { envelope.reverse_speed_max } else { envelope.speed_max };
        let across = if is_omni { envelope.sideways_speed_max } else { 0.0 };
        let twist = Twist {
            forward: forward * share * along,
            sideways: sideways * share * across,
            yaw_rate: yaw_rate * share * envelope.yaw_rate_max,
        };
        Controls { twist, ..Controls::default() }
    }

    fn moved(&self) -> Moved {
        let yaw_rate = (self.twist[2] + self.drift * self.twist[0]).abs();
        Moved { speed: self.speed(), yaw_rate, distance: self.distance, turned: self.turned }
    }

    fn arc(&self) -> Arc {
        let [forward, sideways, turn] = self.twist;
        let turn = turn + self.drift * forward;
        let direction = self.heading + sideways.atan2(forward);
        Arc { x: self.x, y: self.y, direction, curvature: turn / self.speed() }
    }

    fn allowed(&self, fastest: Moved) -> (f64, f64) {
        let ramp = &self.config.manoeuvre;
        let waits = 0.6 + LAG;
        let (mut metres, mut radians) = (waits * fastest.speed, waits * fastest.yaw_rate);
        let (speed, yaw_rate) = (fastest.speed as f32, fastest.yaw_rate as f32);
        let mut twist = Twist { forward: speed, sideways: 0.0, yaw_rate };
        let mut slowing = ramp.deceleration_begin;
        while twist != Twist::ZERO {
            metres += f64::from(twist.forward) * SECONDS;
            radians += f64::from(twist.yaw_rate) * SECONDS;
            twist = twist.slowed(slowing, ramp.yaw_deceleration, SECONDS as f32);
            slowing = (slowing + ramp.jerk * SECONDS as f32).min(ramp.deceleration);
        }
        (0.1 + metres, 0.05 + radians)
    }
}

/// Implements a body by its mover.
macro_rules! body {
    ($($name:ident: $new:ident;)+) => { $(
        impl Body for $name {
            const DRIVEN_LEAST: f64 = 0.05;

            fn of(seed: u64, _slope: f64) -> Self {
                Self(Mover::$new(seed))
            }

            fn config(&self) -> Config {
                self.0.config
            }

            fn wanted(seed: u64) -> f64 {
                let share = (1 + seed / Fault::COUNT % SPEEDS) as f64 / SPEEDS as f64;
                share * f64::from(Mover::$new(0).config.envelope.speed_max)
            }

            fn step(&mut self, controls: &Controls) {
                self.0.step(controls);
            }

            fn alone(&self, controls: &Controls) -> Controls {
                self.0.alone(controls)
            }

            fn state(&self, notices: Notices, measured_at: Instant) -> MachineState {
                self.0.state(notices, measured_at)
            }

            fn commands(&self, person: &Person) -> Controls {
                self.0.commands(person)
            }

            fn moved(&self) -> Moved {
                self.0.moved()
            }

            fn arc(&self) -> Arc {
                self.0.arc()
            }

            fn allowed(&self, fastest: Moved) -> (f64, f64) {
                self.0.allowed(fastest)
            }
        }
    )+ };
}

body! {
    Robot: robot;
    Rover: rover;
    Cart: cart;
}

const SECONDS: f64 = 0.001;
/// Time constant of the drive in seconds.
const LAG: f64 = 0.15;
/// Deceleration of the parking brake, m/s² and rad/s².
const PARKING: f64 = 3.0;
/// Deceleration of a machine whose drive does nothing.
const ROLLS_OUT: f64 = 0.1;
/// Number of speeds.
const SPEEDS: u64 = 10;
