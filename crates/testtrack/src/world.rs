//! The world: a course, the car on it and the cones, and how time passes there.

use std::sync::Arc;
use std::time::Duration;

use tautline_guard::Controls;

use crate::car::{CarState, Conditions};
use crate::cone::{Cone, Pose};
use crate::course::Course;
use crate::trig;

/// A car on a course with cones.
///
/// Time passes in whole sub-steps of [`World::SUB_STEP`]; what is left of a `dt` is kept for the
/// next. So the state after some time depends on that time and on the controls at each sub-step,
/// not on how the time was divided among calls. No clock and no randomness but the seed: the same
/// calls give the same state, bit for bit, on every machine.
#[derive(Clone, Debug)]
pub struct World {
    course: Arc<Course>,
    car: CarState,
    cones: Vec<Cone>,
    cones_hit: u32,
    conditions: Conditions,
    rest: Duration,
}

/// All that a camera must know of the world at one instant. Cheap: a few kilobytes.
#[derive(Clone, Debug)]
pub struct Viewpoint {
    pub(crate) course: Arc<Course>,
    /// The rear axle's middle: metres east and north.
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) heading: f64,
    pub(crate) pitch: f64,
    pub(crate) heave: f64,
    pub(crate) cones: Vec<Pose>,
}

impl World {
    /// The step in which the world moves.
    pub const SUB_STEP: Duration = Duration::from_micros(2_500);

    /// The most time that one call of [`World::step`] lets pass; the rest of a longer `dt` is
    /// dropped, so that a call is always short.
    pub const STEP_MAX: Duration = Duration::from_secs(1);

    /// Returns the world of `seed`, the car at rest before the start line.
    pub fn new(seed: u64) -> Self {
        Self::on(Arc::new(Course::generate(seed)))
    }

    /// Returns a world on `course`, the car at rest before the start line.
    pub fn on(course: Arc<Course>) -> Self {
        let cones = course.cones().iter().map(|&(x, y)| Cone::standing_at(x, y)).collect();
        let car = start(&course);
        Self {
            course,
            car,
            cones,
            cones_hit: 0,
            conditions: Conditions::default(),
            rest: Duration::ZERO,
        }
    }

    /// Returns this world under other conditions.
    #[must_use]
    pub fn under(self, conditions: Conditions) -> Self {
        Self { conditions, ..self }
    }

    /// Lets `dt` pass, at most [`World::STEP_MAX`], under `controls` (which are made sane first).
    pub fn step(&mut self, controls: &Controls, dt: Duration) {
        let controls = controls.sane();
        self.rest += dt.min(Self::STEP_MAX);
        while self.rest >= Self::SUB_STEP {
            self.rest -= Self::SUB_STEP;
            let seconds = Self::SUB_STEP.as_secs_f64();
            self.car.step(&controls, &self.course, &self.conditions, seconds);
            for cone in &mut self.cones {
                self.cones_hit += u32::from(cone.step(&self.car, seconds));
            }
        }
    }

    /// Returns the course.
    pub fn course(&self) -> &Arc<Course> {
        &self.course
    }

    /// Returns the car.
    pub fn car(&self) -> &CarState {
        &self.car
    }

    /// Returns how many cones the car has knocked over.
    pub fn cones_hit(&self) -> u32 {
        self.cones_hit
    }

    /// Puts the car back to the start and every cone where it stood.
    pub fn reset(&mut self) {
        self.car = start(&self.course);
        self.cones.iter_mut().for_each(Cone::reset);
        self.cones_hit = 0;
        self.rest = Duration::ZERO;
    }

    /// Puts the car at rest `distance` metres past the start line, `lateral` metres left of the
    /// centre line, along the road.
    pub fn place_car(&mut self, distance: f64, lateral: f64) {
        let point = self.course.point(distance, lateral);
        self.car = CarState::at(point.x, point.y, point.heading);
    }

    /// Returns what a camera in the car sees now. The car's pose is carried on by the time that
    /// the sub-steps have not used yet, so that motion is smooth at any picture rate.
    pub fn view(&self) -> Viewpoint {
        Viewpoint::new(&self.course, &self.car, &self.cones, self.rest)
    }
}

impl Viewpoint {
    /// Returns what is seen from `car`, its pose carried on by `rest`.
    pub(crate) fn new(
        course: &Arc<Course>,
        car: &CarState,
        cones: &[Cone],
        rest: Duration,
    ) -> Self {
        let now = car.carried_on(rest);
        let (shake_pitch, heave) = shake(car);
        Self {
            course: Arc::clone(course),
            x: now.x,
            y: now.y,
            heading: now.heading,
            pitch: car.pitch + shake_pitch,
            heave,
            cones: cones.iter().map(Cone::pose).collect(),
        }
    }
}

pub(crate) fn start(course: &Course) -> CarState {
    let point = course.line(course.length() - 14.0);
    CarState::at(point.x, point.y, point.heading)
}

/// Returns what unevenness does to the camera: pitch (rad) and height (m). Grass shakes the car,
/// asphalt hardly; both are functions of the way driven, and still when the car is.
fn shake(car: &CarState) -> (f64, f64) {
    let size = if car.on_grass { 1.0 } else { 0.06 } * (car.speed.abs() / 6.0).min(1.0);
    let (a, _) = trig::sin_cos(car.odometer * 3.7);
    let (b, _) = trig::sin_cos(car.odometer * 2.3 + 1.0);
    (size * 0.0022 * (a + b), size * 0.012 * b)
}
