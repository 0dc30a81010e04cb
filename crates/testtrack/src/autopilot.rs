use tautline_guard::{Controls, Gear};

use crate::car::{CarState, STEERING_ANGLE_MAX, WHEELBASE};
use crate::course::Course;
use crate::trig;

/// A driver that follows [`Course::line`] by pure pursuit, at the line's speed.
///
/// It has no state and no randomness: the same car on the same course gets the same controls.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Autopilot {
    speed_max: f64,
}

impl Autopilot {
    /// Returns a driver that keeps to the lower of `speed_max` in m/s and the line's speed. A
    /// negative limit, or NaN, counts as 0.
    pub fn new(speed_max: f64) -> Self {
        Self { speed_max: if speed_max.is_nan() { 0.0 } else { speed_max.max(0.0) } }
    }

    /// Returns the driver's controls for the car in this state on this course.
    pub fn controls(&self, course: &Course, car: &CarState) -> Controls {
        let place = course.nearest(car.x, car.y);
        let ahead = (2.5 + 0.45 * car.speed.abs()).clamp(3.0, 12.0);
        let target = course.line(place.distance + ahead);
        let (sin, cos) = trig::sin_cos(car.heading);
        let (dx, dy) = (target.x - car.x, target.y - car.y);
        let left = dy * cos - dx * sin;
        let square = (dx * dx + dy * dy).max(1.0);
        let angle = trig::atan(2.0 * WHEELBASE * left / square);
        let speed = target.speed.min(course.line(place.distance).speed).min(self.speed_max);
        let short = speed - car.speed;
        Controls {
            steering: (angle / STEERING_ANGLE_MAX).clamp(-1.0, 1.0) as f32,
            throttle: (0.5 * short).clamp(0.0, 1.0) as f32,
            brake: (-0.3 * (short + 0.5)).clamp(0.0, 1.0) as f32,
            gear: Gear::Drive,
            ..Controls::default()
        }
    }
}

impl Default for Autopilot {
    /// Returns a driver with no limit except the speeds of the line, which are at most 15 m/s.
    fn default() -> Self {
        Self::new(f64::INFINITY)
    }
}
