use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tautline_guard::{Controls, Extra, Fault, Faults, Machine, MachineState, Position};
use tautline_units::Instant;
use tautline_video::Error;

use crate::sensor::Windscreen;
use crate::world::{Viewpoint, World};

/// The simulated car as a machine: its world moves as time passes, under the controls applied last.
#[derive(Debug)]
pub struct SimulatedCar {
    world: World,
    controls: Controls,
    /// Until when the world has moved; `None` before the first turn.
    moved_until: Option<Instant>,
    viewpoint: Arc<Mutex<Viewpoint>>,
    extras: [Extra; 1],
}

impl SimulatedCar {
    /// Returns a car at the start of the course that grows from `seed`, its brake pressed.
    pub fn new(seed: u64) -> Self {
        let world = World::new(seed);
        let viewpoint = Arc::new(Mutex::new(world.view()));
        let controls = Controls { brake: 1.0, ..Controls::default() };
        let extras = [Extra { name: "cones hit", value: 0.0, unit: "" }];
        Self { world, controls, moved_until: None, viewpoint, extras }
    }

    /// Returns the camera behind the windscreen, which sees from where the car is.
    ///
    /// # Errors
    /// As [`Windscreen::new`].
    pub fn windscreen(&self, pictures_per_second: f64) -> Result<Windscreen, Error> {
        self.windscreens(pictures_per_second)()
    }

    /// Returns what makes such a camera, again and again, also when the car itself is out of reach.
    pub fn windscreens(
        &self,
        pictures_per_second: f64,
    ) -> impl Fn() -> Result<Windscreen, Error> + Send + Sync + use<> {
        let viewpoint = self.viewpoint.clone();
        move || Windscreen::new(viewpoint.clone(), pictures_per_second)
    }
}

impl Machine for SimulatedCar {
    fn period(&self) -> Duration {
        PERIOD
    }

    fn state(&mut self, now: Instant) -> MachineState {
        let passed = self.moved_until.map_or(Duration::ZERO, |until| now.since(until));
        self.moved_until = Some(now);
        self.world.step(&self.controls, passed);
        *self.viewpoint.lock().unwrap_or_else(PoisonError::into_inner) = self.world.view();
        self.extras[0].value = self.world.cones_hit().into();
        let car = self.world.car();
        MachineState {
            measured_at: now,
            speed: car.speed as f32,
            steering_angle: car.steering_angle as f32,
            gear: self.controls.gear,
            position: Some(Position {
                x: car.x as f32,
                y: car.y as f32,
                heading: car.heading as f32,
            }),
            faults: Faults::NONE,
            ..MachineState::default()
        }
    }

    fn apply(&mut self, controls: &Controls, _now: Instant) -> Result<(), Fault> {
        self.controls = controls.sane();
        Ok(())
    }

    fn extras(&self) -> &[Extra] {
        &self.extras
    }
}

/// Two hundred turns a second, as the actuators of a car take them.
const PERIOD: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use tautline_guard::Gear;

    use super::*;

    /// Drives for `seconds` from `from` on, one turn every `period`; gives the last state.
    fn drive(
        car: &mut SimulatedCar,
        controls: &Controls,
        from: Instant,
        seconds: u64,
        period: Duration,
    ) -> MachineState {
        let mut now = from;
        while now < from + Duration::from_secs(seconds) {
            car.state(now);
            car.apply(controls, now).unwrap();
            now += period;
        }
        car.state(now)
    }

    #[test]
    fn the_car_moves_with_the_time_that_passes_however_it_is_divided() {
        let controls = Controls { throttle: 0.5, steering: 0.1, ..Controls::default() };
        let run = |millis| {
            let mut car = SimulatedCar::new(1);
            let period = Duration::from_millis(millis);
            drive(&mut car, &controls, Instant::from_millis(7_000), 3, period)
        };
        let state = run(5);
        assert!(state.speed > 2.0, "{state:?}");
        // Whole turns: three seconds are a multiple of either period.
        assert_eq!((state, run(10).speed), (run(5), state.speed));
        assert!(state.faults.is_empty() && state.position.is_some());
    }

    #[test]
    fn controls_hold_until_the_next_are_applied() {
        let mut car = SimulatedCar::new(1);
        let back = Controls { throttle: 0.5, gear: Gear::Reverse, ..Controls::default() };
        car.state(Instant::ZERO);
        car.apply(&back, Instant::ZERO).unwrap();
        let state = car.state(Instant::from_millis(900));
        assert!(state.speed < -0.5, "{state:?}");
        assert_eq!(state.gear, Gear::Reverse);
        assert_eq!(state.measured_at, Instant::from_millis(900));
    }

    #[test]
    fn cones_that_were_hit_are_told_by_name() {
        let mut car = SimulatedCar::new(1);
        assert_eq!(car.extras(), [Extra { name: "cones hit", value: 0.0, unit: "" }]);
        let (x, y) = car.world.course().cones()[0];
        let place = car.world.course().nearest(x, y);
        car.world.place_car(place.distance - 8.0, place.lateral);
        let throttle = Controls { throttle: 1.0, ..Controls::default() };
        drive(&mut car, &throttle, Instant::ZERO, 3, PERIOD);
        assert!(car.extras()[0].value >= 1.0, "{:?}", car.extras());
    }
}
