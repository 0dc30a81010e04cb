//! The car: forces on it and its motion.

use std::time::Duration;

use tautline_guard::{Controls, Gear};

use crate::course::Course;
use crate::trig;

/// Position and motion of the car. The reference point is the middle of the rear axle.
///
/// Axes as in ROS REP-103: x east, y north, headings counter-clockwise from x.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CarState {
    /// Position of the car's reference point, metres east of the origin.
    pub x: f64,
    /// Position of the car's reference point, metres north of the origin.
    pub y: f64,
    /// Direction of the bonnet, rad in [-π, π].
    pub heading: f64,
    /// Speed in m/s; negative in reverse.
    pub speed: f64,
    /// Speed to the left in m/s: 0 for a car.
    pub sideways_speed: f64,
    /// Longitudinal acceleration of the car, m/s²: the rate of change of `speed`.
    pub acceleration: f64,
    /// Yaw rate of the body, rad/s, positive to the left.
    pub yaw_rate: f64,
    /// Angle of the front wheels, rad, positive to the left.
    pub steering_angle: f64,
    /// Applied throttle, 0 to 1; 0 while the car moves against its gear.
    pub throttle: f64,
    /// Applied brake, 0 to 1; while the car moves against its gear, the throttle brakes it too.
    pub brake: f64,
    /// Pitch of the body, rad, positive with the bonnet down (as under braking).
    pub pitch: f64,
    /// Metres driven, forwards and backwards.
    pub odometer: f64,
    /// True if at least one axle is off the road.
    pub on_grass: bool,
    pitch_rate: f64,
}

/// Conditions of a drive in addition to the course; the default is level ground
/// without faults or noise.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Conditions {
    /// Metres of rise per metre east; the ground is a plane, so it looks level.
    pub slope: f64,
    /// Effective share of the service brake, or of the deceleration of a robot's drive; less than 1
    /// is a fault, for tests.
    pub brake_share: f64,
    /// Share of a turn that wheels or tracks lose by slip, 0 to 0.6; `None`: as its kind does. A
    /// car's do not slip.
    pub slip: Option<f64>,
    /// Largest noise of the speeds that a robot reports, in m/s and rad/s.
    pub noise: f64,
}

impl Default for Conditions {
    fn default() -> Self {
        Self { slope: 0.0, brake_share: 1.0, slip: None, noise: 0.0 }
    }
}

/// Distance between the car's axles, m.
pub const WHEELBASE: f64 = 2.6;
/// Angle of the wheels at full lock, rad: a turning circle of 4.5 m radius at the rear axle.
pub const STEERING_ANGLE_MAX: f64 = 0.52;
/// Distance from the rear axle to the tip of the bonnet, m.
pub(crate) const FRONT: f64 = 3.45;
/// Distance from the rear axle to the tail, m.
pub(crate) const REAR: f64 = 0.75;
/// Half of the car's width, m.
pub(crate) const HALF_WIDTH: f64 = 0.9;

/// Steering rate of the wheels, rad/s: 0.5 s from the middle to full lock.
const STEERING_RATE: f64 = 1.05;
/// Acceleration by the engine from standstill, m/s².
const ENGINE_PULL: f64 = 4.2;
/// Engine power per mass, W/kg; with [`DRAG`] it gives a top speed of 25 m/s.
const ENGINE_POWER: f64 = 32.0;
/// Speed in reverse at which the engine no longer accelerates the car, m/s.
const REVERSE_SPEED_MAX: f64 = 5.0;
/// Deceleration by the brake at full pedal, m/s².
const BRAKE: f64 = 8.0;
/// Deceleration by the parking brake, m/s²: it holds on a slope of 30 %.
const PARKING_BRAKE: f64 = 3.0;
/// Gravity, m/s².
const GRAVITY: f64 = 9.81;
/// Deceleration by rolling resistance, m/s².
const ROLLING: f64 = 0.2;
/// Deceleration by air drag divided by the square of the speed, 1/m: (ENGINE_POWER / 25 - ROLLING)
/// / 25².
const DRAG: f64 = 0.001_728;
/// Lateral acceleration that the tyres hold on asphalt and on grass, m/s².
const GRIP: (f64, f64) = (8.0, 4.0);
/// Deceleration by grass: a constant part in m/s², and a part per m/s of speed in 1/s.
const GRASS: (f64, f64) = (0.9, 0.16);
/// Pitch of the body per deceleration, rad per m/s².
const PITCH: f64 = 0.0026;
/// Natural frequency (rad/s) and damping ratio of the suspension in pitch.
const SUSPENSION: (f64, f64) = (9.0, 0.55);

impl CarState {
    /// Returns a car at rest at (`x`, `y`) with this heading.
    pub(crate) fn at(x: f64, y: f64, heading: f64) -> Self {
        Self {
            x,
            y,
            heading,
            speed: 0.0,
            sideways_speed: 0.0,
            acceleration: 0.0,
            yaw_rate: 0.0,
            steering_angle: 0.0,
            throttle: 0.0,
            brake: 0.0,
            pitch: 0.0,
            odometer: 0.0,
            on_grass: false,
            pitch_rate: 0.0,
        }
    }

    /// Returns this car with the position and heading that it has after `time` at constant speed
    /// and yaw rate. The heading may lie outside [-π, π].
    #[must_use]
    pub fn carried_on(&self, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        let (sin, cos) = trig::sin_cos(self.heading + 0.5 * self.yaw_rate * seconds);
        Self {
            x: self.x + (self.speed * cos - self.sideways_speed * sin) * seconds,
            y: self.y + (self.speed * sin + self.sideways_speed * cos) * seconds,
            heading: self.heading + self.yaw_rate * seconds,
            ..*self
        }
    }

    /// Returns the distance in metres of this car from the arc on which it was at `held`: the arc
    /// that it drives if its wheels keep the angle that they had then, or a straight line if they
    /// were straight.
    pub fn off_arc(&self, held: &Self) -> f64 {
        let (dx, dy) = (self.x - held.x, self.y - held.y);
        let (sin, cos) = trig::sin_cos(held.heading);
        let (wheel_sin, wheel_cos) = trig::sin_cos(held.steering_angle);
        let curvature = wheel_sin / wheel_cos / WHEELBASE;
        let left = dy * cos - dx * sin;
        if curvature.abs() < 1e-6 {
            return left.abs();
        }
        let radius = 1.0 / curvature;
        let (to_x, to_y) = (dx + radius * sin, dy - radius * cos);
        ((to_x * to_x + to_y * to_y).sqrt() - radius.abs()).abs()
    }

    /// Moves the car by `seconds`, a few milliseconds, under valid `controls`.
    pub(crate) fn step(
        &mut self,
        controls: &Controls,
        course: &Course,
        conditions: &Conditions,
        seconds: f64,
    ) {
        self.on_grass = self.is_on_grass(course);
        self.steer(f64::from(controls.steering), seconds);
        self.roll(controls, conditions, seconds);
        // Tyres at their limit run wide instead of slipping.
        let grip = if self.on_grass { GRIP.1 } else { GRIP.0 };
        let (wheel_sin, wheel_cos) = trig::sin_cos(self.steering_angle);
        let wanted = self.speed * wheel_sin / wheel_cos / WHEELBASE;
        let limit = grip / self.speed.abs().max(0.1);
        self.yaw_rate = wanted.clamp(-limit, limit);
        let middle = self.heading + 0.5 * self.yaw_rate * seconds;
        let (sin, cos) = trig::sin_cos(middle);
        self.x += self.speed * cos * seconds;
        self.y += self.speed * sin * seconds;
        self.heading = trig::wrap(self.heading + self.yaw_rate * seconds);
        self.odometer += self.speed.abs() * seconds;
        self.nod(seconds);
    }

    /// Returns whether at least one axle is off the road.
    pub(crate) fn is_on_grass(&self, course: &Course) -> bool {
        let (sin, cos) = trig::sin_cos(self.heading);
        !course.is_road(self.x, self.y)
            || !course.is_road(self.x + WHEELBASE * cos, self.y + WHEELBASE * sin)
    }

    fn steer(&mut self, wheel: f64, seconds: f64) {
        let change = wheel * STEERING_ANGLE_MAX - self.steering_angle;
        let most = STEERING_RATE * seconds;
        self.steering_angle += change.clamp(-most, most);
    }

    /// Updates the applied pedals, and the speed and acceleration after `seconds` under engine,
    /// brakes, slope and resistance.
    fn roll(&mut self, controls: &Controls, conditions: &Conditions, seconds: f64) {
        let before = self.speed;
        let direction = match controls.gear {
            Gear::Drive => 1.0,
            Gear::Reverse => -1.0,
        };
        // A gear against the motion does not drive: the throttle then only slows the car.
        let against = self.speed * direction < -0.05;
        let pedal = f64::from(controls.throttle);
        self.throttle = if against { 0.0 } else { pedal };
        self.brake = f64::from(controls.brake).max(if against { 0.6 * pedal } else { 0.0 });
        let pull = ENGINE_PULL.min(ENGINE_POWER / before.abs().max(0.1));
        let fade = match controls.gear {
            Gear::Reverse => (1.0 - before.abs() / REVERSE_SPEED_MAX).max(0.0),
            Gear::Drive => 1.0,
        };
        let grass = if self.on_grass { GRASS.0 + GRASS.1 * before.abs() } else { 0.0 };
        let parking = if controls.parking_brake { PARKING_BRAKE } else { 0.0 };
        let brakes = BRAKE * self.brake * conditions.brake_share + parking;
        let resistance = brakes + ROLLING + DRAG * before * before + grass;
        let (_, eastwards) = trig::sin_cos(self.heading);
        let downhill = -GRAVITY * conditions.slope * eastwards;
        let driven = direction * self.throttle * pull * fade;
        let pushed = before + (driven + downhill) * seconds;
        // Resistance stops the car and holds it; it never pushes it back.
        self.speed = pushed.signum() * (pushed.abs() - resistance * seconds).max(0.0);
        self.acceleration = (self.speed - before) / seconds;
    }

    /// Moves the body on its suspension for `seconds`, which changes its pitch.
    pub(crate) fn nod(&mut self, seconds: f64) {
        let (frequency, damping) = SUSPENSION;
        let target = -PITCH * self.acceleration;
        let pull = frequency * frequency * (target - self.pitch);
        self.pitch_rate += (pull - 2.0 * damping * frequency * self.pitch_rate) * seconds;
        self.pitch += self.pitch_rate * seconds;
        // At rest the body comes to rest too, so that the picture is static.
        let still = self.speed == 0.0 && self.pitch.abs() < 1e-5 && self.pitch_rate.abs() < 1e-4;
        if still {
            (self.pitch, self.pitch_rate) = (0.0, 0.0);
        }
    }
}
