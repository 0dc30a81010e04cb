use std::time::Duration;

use tautline_guard::description::Item;
use tautline_guard::{
    Controls, Fault, Faults, Machine, MachineState, Notice, Notices, Place, Position, Reported,
};
use tautline_units::Instant;

use crate::car::Conditions;
use crate::equipment::Equipment;
use crate::kind::Kind;
use crate::world::World;

/// The simulated car as a machine: its world advances with time, under the controls applied last.
#[derive(Debug)]
pub struct SimulatedCar {
    world: World,
    controls: Controls,
    equipment: Equipment,
    /// Time up to which the world has advanced; `None` until its state is first read.
    moved_until: Option<Instant>,
}

impl SimulatedCar {
    /// Returns a car at the start of the course of `seed`, with its brake pressed.
    pub fn new(seed: u64) -> Self {
        Self::under(seed, Conditions::default())
    }

    /// Returns a car as [`new`](Self::new) does, which drives under `conditions`.
    pub fn under(seed: u64, conditions: Conditions) -> Self {
        let world = World::new(seed).under(conditions);
        let controls = Controls { brake: 1.0, ..Controls::default() };
        Self { world, controls, equipment: Equipment::new(Kind::Car), moved_until: None }
    }

    /// Returns the metres driven, forwards and backwards.
    pub fn odometer(&self) -> f64 {
        self.world.car().odometer
    }

    /// Returns the world at the time of the newest state.
    pub fn world(&self) -> &World {
        &self.world
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
        self.equipment.step(&self.controls, passed);
        let car = self.world.car();
        let parking_brake = self.controls.parking_brake;
        MachineState {
            measured_at: now,
            speed: car.speed as f32,
            sideways_speed: 0.0,
            yaw_rate: car.yaw_rate as f32,
            steering_angle: car.steering_angle as f32,
            gear: self.controls.gear,
            position: Some(Position {
                x: car.x as f32,
                y: car.y as f32,
                heading: car.heading as f32,
            }),
            place: Some(place(car.x, car.y)),
            faults: Faults::NONE,
            notices: Notices::NONE.with_if(Notice::ParkingBrake, parking_brake),
            axes: self.equipment.axes(),
            actions: self.equipment.actions(),
            told: Reported {
                acceleration_along: Some(car.acceleration as f32),
                acceleration_across: Some((car.speed * car.yaw_rate) as f32),
                charge: Some((100.0 * (1.0 - car.odometer / RANGE).max(0.0)) as f32),
            },
            ..MachineState::default()
        }
    }

    fn description(&self) -> &[Item] {
        self.equipment.items()
    }

    fn apply(&mut self, controls: &Controls, _now: Instant) -> Result<(), Fault> {
        self.controls = controls.sane();
        Ok(())
    }
}

/// Returns the geographic position of a point of the course, which lies in the Gulf of Guinea.
pub(crate) fn place(x: f64, y: f64) -> Place {
    // On the equator a degree has the same length in both directions, within 0.7 %.
    Place { latitude: y / DEGREE, longitude: x / DEGREE, height: 0.0 }
}

/// Length of a degree of longitude on the equator in metres, WGS 84.
const DEGREE: f64 = 111_319.49;
/// Distance in metres that the car can drive on a full charge.
const RANGE: f64 = 200_000.0;
/// Time between two turns of the machine, in which it is read and controlled: 200 a second, as the
/// actuators of a car accept them.
pub(crate) const PERIOD: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use tautline_guard::description::Action;
    use tautline_guard::{Actions, Gear};

    use super::*;

    /// Drives for `seconds` from `from` on, one turn per `period`; returns the last state.
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
    fn the_cars_motion_does_not_depend_on_the_step_length() {
        let controls = Controls { throttle: 0.5, steering: 0.1, ..Controls::default() };
        let run = |millis| {
            let mut car = SimulatedCar::new(1);
            let period = Duration::from_millis(millis);
            drive(&mut car, &controls, Instant::from_millis(7_000), 3, period)
        };
        let state = run(5);
        assert!(state.speed > 2.0, "{state:?}");
        // Complete turns: three seconds are a multiple of either period.
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
    fn hit_cones_are_counted() {
        let mut car = SimulatedCar::new(1);
        assert_eq!(car.world().cones_hit(), 0);
        let (x, y) = car.world.course().cones()[0];
        let place = car.world.course().nearest(x, y);
        car.world.place_car(place.distance - 8.0, place.lateral);
        let throttle = Controls { throttle: 1.0, ..Controls::default() };
        drive(&mut car, &throttle, Instant::ZERO, 3, PERIOD);
        assert!(car.world().cones_hit() >= 1, "{}", car.world().cones_hit());
    }

    #[test]
    fn reported_acceleration_and_charge_follow_the_car() {
        let mut car = SimulatedCar::new(1);
        assert_eq!(car.state(Instant::ZERO).told.charge, Some(100.0));
        let left = Controls { throttle: 1.0, steering: 0.1, ..Controls::default() };
        let driven = drive(&mut car, &left, Instant::ZERO, 1, PERIOD).told;
        assert!(driven.acceleration_along.is_some_and(|along| along > 1.0), "{driven:?}");
        assert!(driven.acceleration_across.is_some_and(|across| across > 0.1), "{driven:?}");
        assert!(driven.charge.is_some_and(|charge| charge < 100.0), "{driven:?}");
        let braked = Controls { brake: 0.3, steering: -0.1, ..Controls::default() };
        let told = drive(&mut car, &braked, Instant::from_millis(1_000), 1, PERIOD).told;
        assert!(told.acceleration_along.is_some_and(|along| along < -1.5), "{told:?}");
        assert!(told.acceleration_across.is_some_and(|across| across < 0.0), "{told:?}");
    }

    /// Returns the metres that a car moves in `seconds` from rest at the start, by `controls`, on
    /// ground that rises by 15 % ahead of it. Unbraked it rolls backwards, which adds metres too.
    fn rolled(controls: &Controls, seconds: u64) -> f64 {
        let level = SimulatedCar::new(1);
        let east = crate::trig::sin_cos(level.world.car().heading).1;
        let slope = 0.15_f64.copysign(east) / east.abs();
        let mut car = SimulatedCar::under(1, Conditions { slope, ..Conditions::default() });
        drive(&mut car, controls, Instant::ZERO, seconds, PERIOD);
        car.odometer()
    }

    #[test]
    fn on_a_slope_either_brake_holds_and_none_does_not() {
        let released = Controls::default();
        let service = Controls { brake: 0.3, ..released };
        let parked = Controls { parking_brake: true, ..released };
        assert_eq!((rolled(&service, 5), rolled(&parked, 5)), (0.0, 0.0));
        assert!(rolled(&released, 5) > 5.0);
    }

    #[test]
    fn a_brake_that_fails_leaves_the_parking_brake() {
        let conditions = Conditions { brake_share: 0.0, ..Conditions::default() };
        let stop = |controls: Controls| {
            let mut car = SimulatedCar::under(1, conditions);
            let throttle = Controls { throttle: 1.0, ..Controls::default() };
            drive(&mut car, &throttle, Instant::ZERO, 2, PERIOD);
            drive(&mut car, &controls, Instant::from_millis(2_000), 3, PERIOD).speed
        };
        let braked = Controls { brake: 1.0, ..Controls::default() };
        assert!(stop(braked) > 5.0);
        assert_eq!(stop(Controls { parking_brake: true, ..braked }), 0.0);
    }

    #[test]
    fn lights_and_parking_brake_are_reported() {
        let mut car = SimulatedCar::new(1);
        let actions = Actions::NONE.with_if(Action::HAZARD, true);
        let controls = Controls { parking_brake: true, actions, ..Controls::default() };
        car.apply(&controls, Instant::ZERO).unwrap();
        let state = car.state(Instant::ZERO);
        assert_eq!((state.actions, state.notices), (actions, Notices::of(Notice::ParkingBrake)));
    }
}
