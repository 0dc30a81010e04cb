use tautline_guard::{Controls, Gear, MachineState, Notice, Notices, Position, Reported};
use tautline_units::Instant;

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

/// Path of a machine with constant steering, from one position on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arc {
    x: f64,
    y: f64,
    heading: f64,
    curvature: f64,
}

impl Arc {
    pub(crate) fn of(machine: &Bicycle) -> Self {
        let curvature = machine.angle.tan() / WHEELBASE;
        Self { x: machine.x, y: machine.y, heading: machine.heading, curvature }
    }

    /// Returns the distance of a machine from the arc, m.
    pub(crate) fn off(&self, machine: &Bicycle) -> f64 {
        let (dx, dy) = (machine.x - self.x, machine.y - self.y);
        let (sin, cos) = self.heading.sin_cos();
        if self.curvature.abs() < 1e-6 {
            return (dy * cos - dx * sin).abs();
        }
        let radius = 1.0 / self.curvature;
        let (to_x, to_y) = (dx + radius * sin, dy - radius * cos);
        (to_x.hypot(to_y) - radius.abs()).abs()
    }
}

pub(crate) const WHEELBASE: f64 = 2.6;
/// Time constant of the brake in seconds.
const BRAKE_LAG: f64 = 0.06;
const THROTTLE_LAG: f64 = 0.1;
