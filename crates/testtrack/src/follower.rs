use std::sync::Arc;
use std::time::Duration;

use tautline_guard::MachineState;
use tautline_units::Instant;

use crate::car::CarState;
use crate::cone::Cone;
use crate::course::Course;
use crate::kind::Kind;
use crate::trig;
use crate::world::{Viewpoint, World, start};

/// Replica of the test track that follows the reports of a machine in another process.
///
/// The replica has the same course, from the same seed, and the cones that the car knocks over. A
/// camera has the viewpoint of the car's present position, extrapolated from its last report.
#[derive(Clone, Debug)]
pub struct Follower {
    kind: Kind,
    course: Arc<Course>,
    car: CarState,
    cones: Vec<Cone>,
    cones_hit: u32,
    heard: Option<Heard>,
}

/// Times of the car's last report of its position, and the comparison of the two clocks.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Heard {
    measured_at: Instant,
    heard_at: Instant,
    /// Estimated difference of the two clocks in nanoseconds: the minimum of arrival time minus
    /// measurement time over all reports, which grows with time to allow for clock drift.
    delay: i64,
}

impl Follower {
    /// Creates a replica of the course of `seed`, with a machine of this kind at rest before the
    /// start line.
    pub fn new(kind: Kind, seed: u64) -> Self {
        Self::on(Arc::new(Course::generate(seed)), kind)
    }

    /// Handles a report of the car; one without a position is ignored. A report older than the last
    /// one, or more than 20 m away, is taken as a restart: the cones stand again.
    pub fn handle(&mut self, state: &MachineState, now: Instant) {
        let Some(position) = state.position else { return };
        let [x, y, heading] = [position.x, position.y, position.heading].map(f64::from);
        let known = |speed: f32| if speed.is_finite() { f64::from(speed) } else { 0.0 };
        let (speed, sideways_speed) = (known(state.speed), known(state.sideways_speed));
        let delay = now.signed_nanos_since(state.measured_at);
        let (dx, dy) = (x - self.car.x, y - self.car.y);
        let is_another = dx * dx + dy * dy > JUMP_MAX * JUMP_MAX;
        let last = self.heard.filter(|last| state.measured_at >= last.measured_at && !is_another);
        let Some(last) = last else {
            // A restarted car drives on a fresh course.
            *self = Self::on(self.course.clone(), self.kind);
            self.car = CarState::at(x, y, heading);
            (self.car.speed, self.car.sideways_speed) = (speed, sideways_speed);
            self.heard = Some(Heard { measured_at: state.measured_at, heard_at: now, delay });
            return;
        };
        let drift = now.since(last.heard_at).as_nanos() as i64 / DRIFT_DIVISOR;
        let delay = delay.min(last.delay.saturating_add(drift));
        let passed = state.measured_at.since(last.measured_at);
        self.heard = Some(Heard { measured_at: state.measured_at, heard_at: now, delay });
        if !passed.is_zero() {
            let seconds = passed.as_secs_f64();
            self.car.acceleration = (speed - self.car.speed) / seconds;
            self.car.yaw_rate = trig::wrap(heading - self.car.heading) / seconds;
            self.car.odometer += (dx * dx + dy * dy).sqrt();
            (self.car.x, self.car.y, self.car.heading, self.car.speed) = (x, y, heading, speed);
            self.car.sideways_speed = sideways_speed;
            self.car.steering_angle = f64::from(state.steering_angle);
            self.car.on_grass = self.car.is_on_grass(&self.course);
            self.pass(passed);
        }
    }

    /// Returns the view of a camera in the car at `now`, with the car's pose extrapolated by at
    /// most 50 ms from its last report.
    pub fn view(&self, now: Instant) -> Viewpoint {
        let since = |heard: Heard| {
            let there = now.offset_by_nanos(heard.delay.saturating_neg());
            there.since(heard.measured_at).min(CARRY_MAX)
        };
        let rest = self.heard.map_or(Duration::ZERO, since);
        Viewpoint::new(self.kind.body(), &self.course, &self.car, &self.cones, rest)
    }

    /// Returns how many cones the car has knocked over.
    pub fn cones_hit(&self) -> u32 {
        self.cones_hit
    }

    fn on(course: Arc<Course>, kind: Kind) -> Self {
        let cones = course.cones().iter().map(|&(x, y)| Cone::standing_at(x, y)).collect();
        let car = start(&course);
        Self { kind, course, car, cones, cones_hit: 0, heard: None }
    }

    /// Moves the cones and the car's suspension for `passed`, at most [`World::STEP_MAX`].
    fn pass(&mut self, passed: Duration) {
        let steps = passed.min(World::STEP_MAX).as_nanos().div_ceil(World::SUB_STEP.as_nanos());
        let seconds = passed.min(World::STEP_MAX).as_secs_f64() / steps as f64;
        for _ in 0..steps {
            self.car.nod(seconds);
            for cone in &mut self.cones {
                self.cones_hit += u32::from(cone.step(&self.car, self.kind.body(), seconds));
            }
        }
    }
}

/// Maximum distance in metres between two states of the same car; a longer one means a restart.
const JUMP_MAX: f64 = 20.0;
/// Maximum time by which the car's pose is extrapolated from its last report; a car silent for
/// longer is shown standing at that position.
const CARRY_MAX: Duration = Duration::from_millis(50);
/// Divisor of the time passed that gives the allowed drift between the two clocks: 200 ppm, twice
/// that of a bad crystal.
const DRIFT_DIVISOR: i64 = 5_000;

#[cfg(test)]
mod tests {
    use tautline_guard::{Controls, Machine};

    use super::*;
    use crate::SimulatedCar;

    /// Time by which the follower's clock is ahead of the car's in the tests.
    const AHEAD: Duration = Duration::from_secs(77);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// Drives for `millis` by `drive`, which sees the car; reports to a follower every 10 ms.
    /// Returns car and follower at the end.
    fn follow(
        millis: u64,
        mut drive: impl FnMut(&Follower) -> Controls,
    ) -> (SimulatedCar, Follower) {
        let (mut car, mut follower) = (SimulatedCar::new(1), Follower::new(Kind::Car, 1));
        for turn in 0..millis / 5 {
            let now = at(turn * 5);
            let state = car.state(now);
            if turn.is_multiple_of(2) {
                let late = Duration::from_micros(turn * 7 % 3_000);
                follower.handle(&state, now + AHEAD + late);
            }
            car.apply(&drive(&follower), now).unwrap();
        }
        (car, follower)
    }

    #[test]
    fn the_view_is_from_where_the_car_is_now() {
        let throttle = Controls { throttle: 1.0, steering: 0.05, ..Controls::default() };
        let (mut car, follower) = follow(4_000, |_| throttle);
        for later in 0..4 {
            let now = at(4_000 + 10 * later);
            let (view, position) = (follower.view(now + AHEAD), car.state(now).position.unwrap());
            let off = (view.x - f64::from(position.x)).hypot(view.y - f64::from(position.y));
            assert!(off < 0.05 + 0.05 * later as f64, "{off} m after {later} frames");
        }
        let (stood, later) = (follower.view(at(4_100) + AHEAD), follower.view(at(9_000) + AHEAD));
        assert_eq!((stood.x, stood.y), (later.x, later.y), "a silent car is not guessed on");
    }

    #[test]
    fn the_same_cones_fall_as_where_the_car_drives() {
        let throttle = Controls { throttle: 1.0, ..Controls::default() };
        let (car, follower) = follow(20_000, |_| throttle);
        let hit = car.world().cones_hit();
        assert!(hit >= 1, "{hit}");
        assert!(follower.cones_hit().abs_diff(hit) <= 1, "{hit}");
    }

    #[test]
    fn a_car_that_was_started_anew_finds_every_cone_standing() {
        let throttle = Controls { throttle: 1.0, ..Controls::default() };
        let (_, mut follower) = follow(20_000, |_| throttle);
        assert!(follower.cones_hit() > 0);
        follower.handle(&SimulatedCar::new(1).state(at(0)), at(20_000) + AHEAD);
        assert_eq!(follower.cones_hit(), 0);
        let nowhere = MachineState { position: None, ..MachineState::default() };
        follower.handle(&nowhere, at(20_010) + AHEAD);
    }
}
