use std::time::Duration;

use tautline_guard::description::{Item, Reading};
use tautline_guard::{
    Controls, Fault, Faults, Machine, MachineState, Motion, Notice, Notices, Position, Reported,
    Twist,
};
use tautline_units::Instant;

use crate::car::Conditions;
use crate::course::Course;
use crate::equipment::{DOCK, Equipment};
use crate::kind::Kind;
use crate::machine::{PERIOD, place};
use crate::noise;
use crate::trig;
use crate::world::{World, start};

/// A simulated machine that a twist moves: a robot, a rover or a cart.
///
/// Each wheel or track follows its own set point with a lag, within the acceleration that the drive
/// and its brakes reach. The ground moves under the wheels with slip.
#[derive(Debug)]
pub struct SimulatedRobot {
    kind: Kind,
    conditions: Conditions,
    limits: Limits,
    controls: Controls,
    equipment: Equipment,
    /// Speeds of the wheels on the ground in m/s: front left, front right, rear left, rear right.
    /// Two driven wheels or tracks are two equal pairs.
    wheels: [f64; 4],
    /// Position and direction in the course, rad in [-π, π].
    pose: [f64; 3],
    /// Motion over the ground: m/s forwards, m/s to the left, rad/s.
    motion: [f64; 3],
    /// Accelerations along and across the machine in m/s².
    acceleration: [f64; 2],
    odometer: f64,
    /// Number of sub-steps since the start.
    steps: u64,
    /// Time up to which the machine has moved; `None` before the first turn.
    moved_until: Option<Instant>,
    /// Time that the sub-steps have not used yet.
    rest: Duration,
}

/// Numbers of a drive.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Distance by which a wheel is away from the middle about which the machine turns, m.
    lever: f64,
    wheel_speed: f64,
    acceleration: f64,
    deceleration: f64,
    is_omni: bool,
    slip: f64,
}

impl SimulatedRobot {
    /// Returns a machine of this kind at rest at the start of the course of `seed`.
    ///
    /// # Panics
    /// For a car: [`SimulatedCar`](crate::SimulatedCar) is one.
    pub fn new(kind: Kind, seed: u64, conditions: Conditions) -> Self {
        let machine = kind.settings().machine;
        assert!(machine.motion != Motion::Ackermann, "no twist moves a car");
        let start = start(&Course::generate(seed));
        let is_omni = machine.motion == Motion::Omni;
        let half_base = if is_omni { 0.5 * kind.body().wheelbase } else { 0.0 };
        let limits = Limits {
            lever: 0.5 * f64::from(machine.track_width) + half_base,
            wheel_speed: machine.wheel_speed_max.into(),
            acceleration: machine.acceleration_max.into(),
            deceleration: f64::from(machine.deceleration_max) * conditions.brake_share,
            is_omni,
            slip: conditions.slip.unwrap_or(kind.slip()),
        };
        Self {
            kind,
            conditions,
            limits,
            controls: Controls::default(),
            equipment: Equipment::new(kind),
            wheels: [0.0; 4],
            pose: [start.x, start.y, start.heading],
            motion: [0.0; 3],
            acceleration: [0.0; 2],
            odometer: 0.0,
            steps: 0,
            moved_until: None,
            rest: Duration::ZERO,
        }
    }

    /// Returns the metres driven, in any direction.
    pub fn odometer(&self) -> f64 {
        self.odometer
    }

    /// Returns the motion over the ground, without the noise of a sensor.
    pub fn motion(&self) -> Twist {
        let [forward, sideways, yaw_rate] = self.motion.map(|value| value as f32);
        Twist { forward, sideways, yaw_rate }
    }

    /// Returns the charge of the battery as a share of full.
    fn charge(&self) -> f64 {
        (1.0 - self.odometer / RANGE).max(0.0)
    }

    /// Moves by a sub-step of the world.
    fn step(&mut self) {
        let seconds = World::SUB_STEP.as_secs_f64();
        self.steps += 1;
        let wanted = self.limits.wheels_of(self.controls.twist);
        let [_, _, heading] = self.pose;
        let (_, eastwards) = trig::sin_cos(heading);
        let downhill = -GRAVITY * self.conditions.slope * eastwards;
        let parking = if self.controls.parking_brake { PARKING_BRAKE } else { 0.0 };
        for (wheel, wanted) in self.wheels.iter_mut().zip(wanted) {
            *wheel = self.limits.turned(*wheel, wanted, parking, downhill, seconds);
        }
        let before = self.motion;
        self.motion = self.limits.motion_of(self.wheels);
        let [forward, sideways, yaw_rate] = self.motion;
        let middle = heading + 0.5 * yaw_rate * seconds;
        let (sin, cos) = trig::sin_cos(middle);
        self.pose[0] += (forward * cos - sideways * sin) * seconds;
        self.pose[1] += (forward * sin + sideways * cos) * seconds;
        self.pose[2] = trig::wrap(heading + yaw_rate * seconds);
        self.odometer += (forward * forward + sideways * sideways).sqrt() * seconds;
        self.acceleration = [
            (forward - before[0]) / seconds - sideways * yaw_rate,
            (sideways - before[1]) / seconds + forward * yaw_rate,
        ];
    }

    /// Returns part `at` of the motion, in its order, with a sensor's noise; a machine at rest is
    /// measured exactly.
    fn measured(&self, at: usize) -> f32 {
        let is_at_rest = self.motion == [0.0; 3];
        let noise = if is_at_rest { 0.0 } else { self.conditions.noise };
        let value = self.motion[at];
        (value + noise * (2.0 * noise::unit(self.steps, at as u64) - 1.0)) as f32
    }
}

impl Limits {
    /// Returns the speed that each wheel must have for a twist, within what a wheel reaches.
    fn wheels_of(&self, twist: Twist) -> [f64; 4] {
        let [forward, sideways, yaw_rate] =
            [twist.forward, twist.sideways, twist.yaw_rate].map(f64::from);
        let sideways = if self.is_omni { sideways } else { 0.0 };
        let turn = yaw_rate * self.lever;
        // The rollers of mecanum wheels stand at 45 degrees.
        let wheels = [
            forward - sideways - turn,
            forward + sideways + turn,
            forward + sideways - turn,
            forward - sideways + turn,
        ];
        wheels.map(|speed| speed.clamp(-self.wheel_speed, self.wheel_speed))
    }

    /// Returns the motion over the ground of wheels that turn at these speeds.
    fn motion_of(&self, [front_left, front_right, rear_left, rear_right]: [f64; 4]) -> [f64; 3] {
        let left = front_left + rear_left;
        let right = front_right + rear_right;
        let across = front_right + rear_left - front_left - rear_right;
        let grip = 1.0 - self.slip;
        [0.25 * (left + right), 0.25 * across, 0.25 * (right - left) / self.lever * grip]
    }

    /// Returns a wheel's speed after `seconds`, under a set point, the parking brake's deceleration
    /// and the acceleration of gravity.
    fn turned(&self, speed: f64, wanted: f64, parking: f64, downhill: f64, seconds: f64) -> f64 {
        if parking > 0.0 {
            let pushed = speed + downhill * seconds;
            return pushed.signum() * (pushed.abs() - parking * seconds).max(0.0);
        }
        let is_slowed = (wanted - speed) * speed < 0.0;
        let most = if is_slowed { self.deceleration } else { self.acceleration };
        let change = (wanted - speed) / LAG - downhill;
        let next = speed + (change.clamp(-most, most) + downhill) * seconds;
        let stands = wanted == 0.0 && next.abs() < STILL && most > downhill.abs();
        if stands { 0.0 } else { next }
    }
}

impl Machine for SimulatedRobot {
    fn period(&self) -> Duration {
        PERIOD
    }

    fn state(&mut self, now: Instant) -> MachineState {
        let passed = self.moved_until.map_or(Duration::ZERO, |until| now.since(until));
        self.moved_until = Some(now);
        self.equipment.step(&self.controls, passed.min(World::STEP_MAX));
        self.rest += passed.min(World::STEP_MAX);
        while self.rest >= World::SUB_STEP {
            self.rest -= World::SUB_STEP;
            self.step();
        }
        let [x, y, heading] = self.pose;
        let is_omni = self.kind.motion() == Motion::Omni;
        MachineState {
            measured_at: now,
            speed: self.measured(0),
            sideways_speed: if is_omni { self.measured(1) } else { f32::NAN },
            yaw_rate: self.measured(2),
            steering_angle: f32::NAN,
            gear: self.controls.gear,
            position: Some(Position { x: x as f32, y: y as f32, heading: heading as f32 }),
            place: Some(place(x, y)),
            faults: Faults::NONE,
            notices: Notices::NONE.with_if(Notice::ParkingBrake, self.controls.parking_brake),
            axes: self.equipment.axes(),
            actions: self.equipment.actions(),
            told: Reported {
                acceleration_along: Some(self.acceleration[0] as f32),
                acceleration_across: Some(self.acceleration[1] as f32),
                charge: Some((100.0 * self.charge()) as f32),
            },
            ..MachineState::default()
        }
    }

    fn description(&self) -> &[Item] {
        self.equipment.items()
    }

    fn request(&mut self, action: u8, _now: Instant) -> Option<bool> {
        Some(action == DOCK && self.equipment.request(self.motion() == Twist::ZERO))
    }

    fn reading(&mut self, _now: Instant) -> Option<(u8, Reading)> {
        let [forward, ..] = self.motion;
        self.equipment.reading(self.charge(), forward as f32)
    }

    fn apply(&mut self, controls: &Controls, _now: Instant) -> Result<(), Fault> {
        self.controls = controls.sane();
        Ok(())
    }
}

/// Time constant of the speed control of a wheel, s.
const LAG: f64 = 0.1;
/// Speed below which a wheel with a set point of 0 stands, m/s.
const STILL: f64 = 0.001;
/// Deceleration by the parking brake, m/s²: it holds on a slope of 30 %.
const PARKING_BRAKE: f64 = 3.0;
/// Gravity, m/s².
const GRAVITY: f64 = 9.81;
/// Distance in metres that a robot can drive on a full charge.
const RANGE: f64 = 20_000.0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Drives for `millis` from `from` ms on; returns the last state.
    fn drive(robot: &mut SimulatedRobot, twist: Twist, from: u64, millis: u64) -> MachineState {
        let controls = Controls { twist, ..Controls::default() };
        for turn in 0..millis / 5 {
            let now = Instant::from_millis(from + turn * 5);
            robot.state(now);
            robot.apply(&controls, now).unwrap();
        }
        robot.state(Instant::from_millis(from + millis))
    }

    fn robot(kind: Kind) -> SimulatedRobot {
        SimulatedRobot::new(kind, 1, Conditions::default())
    }

    fn twist(forward: f32, sideways: f32, yaw_rate: f32) -> Twist {
        Twist { forward, sideways, yaw_rate }
    }

    #[test]
    fn a_robot_turns_on_the_spot() {
        let mut robot = robot(Kind::Robot);
        let before = robot.state(Instant::ZERO).position.unwrap();
        let state = drive(&mut robot, twist(0.0, 0.0, 1.0), 0, 2_000);
        assert!((state.yaw_rate - 1.0).abs() < 1e-3 && state.speed == 0.0, "{state:?}");
        assert!(state.sideways_speed.is_nan(), "it has no wheels for it");
        let after = state.position.unwrap();
        assert_eq!((before.x, before.y), (after.x, after.y));
        // A turn of 2 rad, less the lag of 0.1 s.
        let turned = trig::wrap(f64::from(after.heading - before.heading));
        assert!((turned - 1.9).abs() < 0.05, "{turned}");
    }

    #[test]
    fn tracks_slip_in_a_turn_and_drive_straight() {
        let mut rover = robot(Kind::Rover);
        let turning = drive(&mut rover, twist(0.0, 0.0, 0.5), 0, 2_000);
        assert!((turning.yaw_rate - 0.35).abs() < 1e-3, "{turning:?}");
        let straight = drive(&mut rover, twist(1.0, 0.0, 0.0), 2_000, 2_000);
        assert!((straight.speed - 1.0).abs() < 1e-3 && straight.yaw_rate.abs() < 1e-6);
    }

    #[test]
    fn a_cart_drives_to_its_left_without_turning() {
        let mut cart = robot(Kind::Cart);
        let before = cart.state(Instant::ZERO).position.unwrap();
        let state = drive(&mut cart, twist(0.0, 0.4, 0.0), 0, 2_000);
        assert!((state.sideways_speed - 0.4).abs() < 1e-3, "{state:?}");
        assert!(state.speed.abs() < 1e-6 && state.yaw_rate.abs() < 1e-6);
        let after = state.position.unwrap();
        let (sin, cos) = trig::sin_cos(before.heading.into());
        let left = f64::from(after.y - before.y) * cos - f64::from(after.x - before.x) * sin;
        assert!((left - 0.76).abs() < 0.05, "{left}");
    }

    #[test]
    fn noise_and_slope_are_off_unless_they_are_asked_for() {
        let noisy = Conditions { noise: 0.02, ..Conditions::default() };
        let mut robot = SimulatedRobot::new(Kind::Robot, 1, noisy);
        assert_eq!(robot.state(Instant::ZERO).speed, 0.0);
        let spread: Vec<f32> = (0..50)
            .map(|turn| drive(&mut robot, twist(1.0, 0.0, 0.0), turn * 100, 100).speed)
            .skip(20)
            .collect();
        assert!(spread.iter().all(|speed| (speed - 1.0).abs() < 0.021), "{spread:?}");
        assert!(spread.iter().any(|speed| (speed - 1.0).abs() > 0.01), "{spread:?}");
    }

    #[test]
    fn a_drive_holds_on_a_slope_and_a_dead_one_rolls_until_parked() {
        let on = |brake_share| Conditions { slope: 0.1, brake_share, ..Conditions::default() };
        let mut robot = SimulatedRobot::new(Kind::Robot, 1, on(1.0));
        drive(&mut robot, Twist::ZERO, 0, 2_000);
        assert_eq!(robot.odometer(), 0.0);
        let mut dead = SimulatedRobot::new(Kind::Robot, 1, on(0.0));
        dead.limits.acceleration = 0.0;
        let rolling = drive(&mut dead, Twist::ZERO, 0, 1_000);
        assert!(rolling.speed.abs() > 0.3, "{rolling:?}");
        let parked = Controls { parking_brake: true, ..Controls::default() };
        for turn in 0..400 {
            dead.apply(&parked, Instant::ZERO).unwrap();
            dead.state(Instant::from_millis(1_000 + 5 * turn));
        }
        assert_eq!(dead.motion(), Twist::ZERO);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// No set point takes a machine beyond the accelerations of its drive, and a set point of 0
        /// stops it within the distance of its deceleration and lag.
        #[test]
        fn a_machine_keeps_to_its_drive_and_stops(
            kind in prop::sample::select(&Kind::ALL[1..]),
            wanted in prop::array::uniform3(-3.0_f32..3.0),
        ) {
            let mut robot = robot(kind);
            let limits = robot.limits;
            let [forward, sideways, yaw_rate] = wanted;
            let mut before = robot.motion();
            for turn in 0..200 {
                drive(&mut robot, twist(forward, sideways, yaw_rate), turn * 10, 10);
                let motion = robot.motion();
                let most = limits.acceleration.max(limits.deceleration) as f32 * 0.011;
                prop_assert!((motion.forward - before.forward).abs() <= most);
                prop_assert!((motion.sideways - before.sideways).abs() <= most);
                before = motion;
            }
            prop_assert!(f64::from(before.forward.abs()) <= limits.wheel_speed + 1e-6);
            // The fastest wheel stops last, and the middle moves no farther than that wheel.
            let speed = robot.wheels.iter().fold(0.0_f64, |most, wheel| most.max(wheel.abs()));
            let driven = robot.odometer();
            drive(&mut robot, Twist::ZERO, 2_000, 3_000);
            prop_assert_eq!(robot.motion(), Twist::ZERO);
            let most = speed * speed / (2.0 * limits.deceleration) + speed * LAG;
            prop_assert!(robot.odometer() - driven <= most + 0.01);
        }
    }
}
