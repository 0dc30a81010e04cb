//! The world: a course, the car on it and the cones, and the passage of time.

use std::sync::Arc;
use std::time::Duration;

use tautline_guard::Controls;

use crate::car::{CarState, Conditions};
use crate::cone::{Cone, Pose};
use crate::course::Course;
use crate::kind::{Body, Kind};
use crate::trig;

/// A car on a course with cones.
///
/// Time passes in sub-steps of [`World::SUB_STEP`]; the remainder of a `dt` is kept for the next
/// call. So the state depends on the total time and on the controls at each sub-step, not on the
/// division of the time among calls. The seed is the only randomness, and no clock is read: the
/// same calls give the same state, bit for bit, on every machine.
#[derive(Clone, Debug)]
pub struct World {
    course: Arc<Course>,
    car: CarState,
    cones: Vec<Cone>,
    cones_hit: u32,
    conditions: Conditions,
    rest: Duration,
}

/// State of the world at one instant, as required by a camera. Cheap: a few kilobytes.
#[derive(Clone, Debug)]
pub struct Viewpoint {
    pub(crate) body: &'static Body,
    pub(crate) course: Arc<Course>,
    /// Reference point of the body, metres east of the origin.
    pub(crate) x: f64,
    /// Reference point of the body, metres north of the origin.
    pub(crate) y: f64,
    /// Direction of the front, rad counter-clockwise from east.
    pub(crate) heading: f64,
    /// Pitch of the body in rad, positive with the bonnet down.
    pub(crate) pitch: f64,
    /// Height of the camera above its normal height, m.
    pub(crate) heave: f64,
    pub(crate) cones: Vec<Pose>,
}

impl World {
    /// Time step in which the world is simulated.
    pub const SUB_STEP: Duration = Duration::from_micros(2_500);

    /// Longest time that one call of [`World::step`] simulates; the rest of a longer `dt` is
    /// dropped, so that a call is always short.
    pub const STEP_MAX: Duration = Duration::from_secs(1);

    /// Returns the world of `seed`, with the car at rest before the start line.
    pub fn new(seed: u64) -> Self {
        Self::on(Arc::new(Course::generate(seed)))
    }

    /// Returns a world on `course`, with the car at rest before the start line.
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

    /// Sets the conditions of the drive.
    #[must_use]
    pub fn under(self, conditions: Conditions) -> Self {
        Self { conditions, ..self }
    }

    /// Simulates `dt`, at most [`World::STEP_MAX`], under `controls`, which are first limited to
    /// valid values.
    pub fn step(&mut self, controls: &Controls, dt: Duration) {
        let controls = controls.sane();
        self.rest += dt.min(Self::STEP_MAX);
        while self.rest >= Self::SUB_STEP {
            self.rest -= Self::SUB_STEP;
            let seconds = Self::SUB_STEP.as_secs_f64();
            self.car.step(&controls, &self.course, &self.conditions, seconds);
            for cone in &mut self.cones {
                self.cones_hit += u32::from(cone.step(&self.car, Kind::Car.body(), seconds));
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

    /// Puts the car back to the start and every cone back to its place, and sets the count of cones
    /// to 0. The conditions stay.
    pub fn reset(&mut self) {
        self.car = start(&self.course);
        self.cones.iter_mut().for_each(Cone::reset);
        self.cones_hit = 0;
        self.rest = Duration::ZERO;
    }

    /// Places the car at rest `distance` metres past the start line and `lateral` metres left of
    /// the centre line, along the road. Cones and the time not yet simulated stay as they are.
    pub fn place_car(&mut self, distance: f64, lateral: f64) {
        let point = self.course.point(distance, lateral);
        self.car = CarState::at(point.x, point.y, point.heading);
    }

    /// Returns the view of a camera in the car now. The car's pose is extrapolated by the time that
    /// the sub-steps have not used yet, so that motion is smooth at any picture rate.
    pub fn view(&self) -> Viewpoint {
        Viewpoint::new(Kind::Car.body(), &self.course, &self.car, &self.cones, self.rest)
    }
}

impl Viewpoint {
    /// Returns the view from a `body` that moves as `car` does, with its pose extrapolated by
    /// `rest`.
    pub(crate) fn new(
        body: &'static Body,
        course: &Arc<Course>,
        car: &CarState,
        cones: &[Cone],
        rest: Duration,
    ) -> Self {
        let now = car.carried_on(rest);
        let (shake_pitch, heave) = shake(car);
        Self {
            body,
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

/// Returns the effect of uneven ground on the camera: added pitch (rad) and height (m). Grass
/// shakes the car, asphalt hardly does. Both depend on the distance driven and the speed, and are 0
/// while the car stands.
fn shake(car: &CarState) -> (f64, f64) {
    let size = if car.on_grass { 1.0 } else { 0.06 } * (car.speed.abs() / 6.0).min(1.0);
    let (a, _) = trig::sin_cos(car.odometer * 3.7);
    let (b, _) = trig::sin_cos(car.odometer * 2.3 + 1.0);
    (size * 0.0022 * (a + b), size * 0.012 * b)
}
