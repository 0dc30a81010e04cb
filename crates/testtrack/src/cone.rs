//! Cones: they stand, are hit, fly, slide and lie.

use crate::car::CarState;
use crate::kind::Body;
use crate::trig;

/// Height of a cone, m.
pub(crate) const HEIGHT: f64 = 0.72;
/// Radius of a cone for a collision with a car, m.
const RADIUS: f64 = 0.18;
/// Height of a lying cone's base centre, m.
const LYING: f64 = 0.2;

/// A cone and its motion since a car has hit it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Cone {
    home: (f64, f64),
    /// Middle of the base: metres east, north, up.
    position: [f64; 3],
    velocity: [f64; 3],
    /// Direction in which the cone tilts, rad counter-clockwise from east.
    fall: f64,
    /// Tilt in rad: 0 when the cone stands, π/2 when it lies.
    tilt: f64,
    spin: f64,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Standing,
    Moving,
    Lying,
}

/// A cone as a camera sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pose {
    /// Middle of the base: metres east, north, up.
    pub(crate) base: [f32; 3],
    /// Unit vector from the base to the tip of the cone.
    pub(crate) axis: [f32; 3],
}

impl Cone {
    pub(crate) fn standing_at(x: f64, y: f64) -> Self {
        Self {
            home: (x, y),
            position: [x, y, 0.0],
            velocity: [0.0; 3],
            fall: 0.0,
            tilt: 0.0,
            spin: 0.0,
            state: State::Standing,
        }
    }

    /// Puts the cone back to its place, standing.
    pub(crate) fn reset(&mut self) {
        *self = Self::standing_at(self.home.0, self.home.1);
    }

    pub(crate) fn pose(&self) -> Pose {
        let (sin, cos) = trig::sin_cos(self.tilt);
        let (fall_sin, fall_cos) = trig::sin_cos(self.fall);
        Pose {
            base: self.position.map(|metres| metres as f32),
            axis: [(sin * fall_cos) as f32, (sin * fall_sin) as f32, cos as f32],
        }
    }

    /// Moves the cone by `seconds`. Returns true when a `body` that moves as `car` does hits it
    /// while it stands, which happens once until a [`reset`](Self::reset). A lying cone can be hit
    /// again, a moving one cannot.
    pub(crate) fn step(&mut self, car: &CarState, body: &Body, seconds: f64) -> bool {
        let struck = match self.state {
            State::Standing | State::Lying => self.strike(car, body),
            State::Moving => {
                self.fly(seconds);
                return false;
            }
        };
        let first = struck && self.state == State::Standing;
        if struck {
            self.state = State::Moving;
        }
        first
    }

    /// Returns whether the moving car touches the cone; if so, sets the cone's velocity, direction
    /// of fall and spin from the impact. A car at rest touches nothing.
    fn strike(&mut self, car: &CarState, body: &Body) -> bool {
        let (dx, dy) = (self.position[0] - car.x, self.position[1] - car.y);
        if dx * dx + dy * dy > 25.0 || car.speed == 0.0 && car.sideways_speed == 0.0 {
            return false;
        }
        let (sin, cos) = trig::sin_cos(car.heading);
        let (ahead, left) = (dx * cos + dy * sin, dy * cos - dx * sin);
        let ahead_of = (-body.rear - RADIUS..=body.front + RADIUS).contains(&ahead);
        if !ahead_of || left.abs() > body.half_width + RADIUS {
            return false;
        }
        // Thrown slightly faster than the car, and outwards depending on where the bumper hit it.
        let along = car.speed * 1.15 + 0.8_f64.copysign(car.speed);
        let outwards = (left / body.half_width) * (0.6 + 0.35 * car.speed.abs());
        let across = car.sideways_speed * 1.15 + outwards;
        let up = (0.9 + 0.16 * car.speed.abs()).min(3.2);
        self.velocity = [along * cos - across * sin, along * sin + across * cos, up];
        self.fall = trig::atan2(self.velocity[1], self.velocity[0]);
        self.spin = 3.0 + 0.5 * car.speed.abs();
        true
    }

    fn fly(&mut self, seconds: f64) {
        let [vx, vy, vz] = self.velocity;
        for (metres, speed) in self.position.iter_mut().zip(self.velocity) {
            *metres += speed * seconds;
        }
        self.tilt = (self.tilt + self.spin * seconds).min(std::f64::consts::FRAC_PI_2);
        let floor = LYING * self.tilt / std::f64::consts::FRAC_PI_2;
        let grounded = self.position[2] <= floor;
        let slide = (vx * vx + vy * vy).sqrt();
        if grounded {
            self.position[2] = floor;
            let slower = (slide - 6.5 * seconds).max(0.0) / slide.max(1e-9);
            let bounce = if vz < -0.6 { -0.35 * vz } else { 0.0 };
            self.velocity = [vx * slower, vy * slower, bounce];
        } else {
            self.velocity[2] = vz - 9.81 * seconds;
        }
        let lies = self.tilt >= std::f64::consts::FRAC_PI_2;
        if lies && grounded && slide < 0.02 && vz.abs() < 0.6 {
            (self.state, self.velocity) = (State::Lying, [0.0; 3]);
        }
    }
}
