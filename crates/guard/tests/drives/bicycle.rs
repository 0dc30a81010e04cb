use tautline_guard::config::Config;
use tautline_guard::{Controls, Gear, MachineState, Notice, Notices, Position, Reported};
use tautline_units::Instant;

use crate::body::{Arc, Body, Moved, Person};
use crate::world::Fault;

/// A kinematic bicycle on a slope whose brake, throttle and wheels respond with a delay.
#[derive(Clone, Debug)]
pub(crate) struct Bicycle {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) heading: f64,
    pub(crate) speed: f64,
    pub(crate) angle: f64,
    /// Distance driven in metres, forwards and backwards added.
    pub(crate) distance: f64,
    pub(crate) brake: f64,
    pub(crate) throttle: f64,
    /// `true` if the service brake works.
    pub(crate) has_brake: bool,
    /// Rise over run; negative if it falls in the direction of travel.
    pub(crate) slope: f64,
    /// Longitudinal acceleration, m/s².
    pub(crate) acceleration: f64,
    /// Value of `x` at a kerb in metres, and the acceleration needed to climb it, m/s²; `None`
    /// without a kerb.
    pub(crate) kerb: Option<(f64, f64)>,
    /// Reported speed of a frozen sensor, m/s; `None` while the sensor works.
    pub(crate) frozen: Option<f64>,
    /// Kind of reported acceleration.
    pub(crate) tells: Tells,
}

/// Kind of acceleration that a machine reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tells {
    Nothing,
    /// Change of its speed.
    Change,
    /// Sensor value, including gravity along the slope and an error.
    Felt,
}

impl Bicycle {
    pub(crate) fn new(slope: f64) -> Self {
        Self {
            x: 0.0,
            y: 0.0,
            heading: 0.0,
            speed: 0.0,
            angle: 0.0,
            distance: 0.0,
            brake: 1.0,
            throttle: 0.0,
            has_brake: true,
            slope,
            acceleration: 0.0,
            kerb: None,
            frozen: None,
            tells: Tells::Nothing,
        }
    }

    /// Moves by one millisecond.
    pub(crate) fn step(&mut self, controls: &Controls) {
        let seconds = 0.001;
        let wanted = f64::from(controls.steering) * 0.52;
        self.angle += (wanted - self.angle).clamp(-1.05 * seconds, 1.05 * seconds);
        self.brake += (f64::from(controls.brake) - self.brake) * seconds / BRAKE_LAG;
        self.throttle += (f64::from(controls.throttle) - self.throttle) * seconds / THROTTLE_LAG;
        let direction = match controls.gear {
            Gear::Drive => 1.0,
            Gear::Reverse => -1.0,
        };
        let push = direction * 4.2 * self.throttle - 9.81 * self.slope;
        let parking = if controls.parking_brake { 3.0 } else { 0.0 };
        let service = if self.has_brake { 8.0 * self.brake } else { 0.0 };
        let kerb = match self.kerb {
            Some((at, takes)) if (self.x - at).abs() < 0.05 => takes,
            Some(_) | None => 0.0,
        };
        let hold = (service + parking + kerb + 0.15) * seconds;
        let (before, pushed) = (self.speed, self.speed + push * seconds);
        self.speed = pushed.signum() * (pushed.abs() - hold).max(0.0);
        self.acceleration = (self.speed - before) / seconds;
        self.heading += self.speed * self.angle.tan() / WHEELBASE * seconds;
        self.x += self.speed * self.heading.cos() * seconds;
        self.y += self.speed * self.heading.sin() * seconds;
        self.distance += self.speed.abs() * seconds;
    }

    pub(crate) fn state(&self, notices: Notices, measured_at: Instant) -> MachineState {
        MachineState {
            measured_at,
            speed: self.frozen.unwrap_or(self.speed) as f32,
            told: Reported {
                acceleration_along: match self.tells {
                    Tells::Nothing => None,
                    Tells::Change => Some(self.acceleration as f32),
                    Tells::Felt => Some((self.acceleration + 9.81 * self.slope + 0.3) as f32),
                },
                ..Reported::default()
            },
            steering_angle: self.angle as f32,
            position: Some(Position {
                x: self.x as f32,
                y: self.y as f32,
                heading: self.heading as f32,
            }),
            notices: if self.speed == 0.0 {
                notices
            } else {
                notices.without(Notice::ParkingBrake)
            },
            ..MachineState::default()
        }
    }
}

impl Body for Bicycle {
    const DRIVEN_LEAST: f64 = 1.0;

    fn of(seed: u64, slope: f64) -> Self {
        let tells = [Tells::Nothing, Tells::Change, Tells::Felt][seed as usize % 3];
        Self { tells, ..Self::new(slope) }
    }

    fn config(&self) -> Config {
        Config::car()
    }

    fn wanted(seed: u64) -> f64 {
        1.0 + (seed / Fault::COUNT % 14) as f64
    }

    fn step(&mut self, controls: &Controls) {
        self.step(controls);
    }

    fn alone(&self, controls: &Controls) -> Controls {
        // It brakes by itself and keeps its steering.
        Controls { throttle: 0.0, brake: 0.5, ..*controls }
    }

    fn state(&self, notices: Notices, measured_at: Instant) -> MachineState {
        self.state(notices, measured_at)
    }

    fn commands(&self, person: &Person) -> Controls {
        let short = (person.speed - self.speed) as f32;
        let steering = person.weave * 0.1 * (0.4 * person.seconds).sin();
        Controls {
            steering: steering as f32,
            throttle: if person.is_released { 0.0 } else { (0.6 * short).clamp(0.0, 1.0) },
            brake: if person.is_stopped { 0.0 } else { (-0.2 * short).clamp(0.0, 1.0) },
            ..Controls::default()
        }
    }

    fn moved(&self) -> Moved {
        Moved { speed: self.speed.abs(), distance: self.distance, ..Moved::default() }
    }

    fn arc(&self) -> Arc {
        let curvature = self.angle.tan() / WHEELBASE;
        Arc { x: self.x, y: self.y, direction: self.heading, curvature }
    }

    fn allowed(&self, fastest: Moved) -> (f64, f64) {
        let speed = fastest.speed;
        let (mut metres, mut left, mut slowing) = (0.6 * speed, speed, 1.5_f64);
        while left > 0.0 {
            metres += left * 0.001;
            left -= slowing * 0.001;
            slowing = (slowing + 0.005).min(4.0);
        }
        let downhill = (-9.81 * self.slope).max(0.0);
        // Half of the slope's pull stays as speed above the ramp, until standstill.
        (0.1 + metres + downhill / 2.0 * (speed / 4.0 + 0.5), f64::INFINITY)
    }
}

pub(crate) const WHEELBASE: f64 = 2.6;
/// Time constant of the brake in seconds.
const BRAKE_LAG: f64 = 0.06;
const THROTTLE_LAG: f64 = 0.1;
