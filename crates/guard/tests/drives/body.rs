use std::fmt::Debug;

use tautline_guard::config::Config;
use tautline_guard::{Controls, MachineState, Notices};
use tautline_units::Instant;

/// A simulated machine of any kind, in steps of a millisecond.
pub(crate) trait Body: Clone + Debug {
    /// Distance in metres plus turn in radians that a drive of eight seconds has at least.
    const DRIVEN_LEAST: f64;

    /// Returns the machine of a drive.
    fn of(seed: u64, slope: f64) -> Self;

    /// Returns the settings of its guard.
    fn config(&self) -> Config;

    /// Returns the speed at which the person of this drive wants to go, or turn, in m/s.
    fn wanted(seed: u64) -> f64;

    /// Moves by one millisecond.
    fn step(&mut self, controls: &Controls);

    /// Returns the controls of a machine that has not heard its guard for another millisecond.
    fn alone(&self, controls: &Controls) -> Controls;

    fn state(&self, notices: Notices, measured_at: Instant) -> MachineState;

    /// Returns what a person commands.
    fn commands(&self, person: &Person) -> Controls;

    fn moved(&self) -> Moved;

    /// Returns the arc that it is on.
    fn arc(&self) -> Arc;

    /// Returns metres and radians from the last picture seen to standstill that are allowed at this
    /// motion: 500 ms, 100 ms to react, and the ramp.
    fn allowed(&self, fastest: Moved) -> (f64, f64);
}

/// A person who drives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Person {
    /// In m/s.
    pub(crate) speed: f64,
    /// -1 to 1.
    pub(crate) weave: f64,
    pub(crate) seconds: f64,
    /// `true` until the machine is armed.
    pub(crate) is_released: bool,
    pub(crate) is_stopped: bool,
}

/// Motion of a machine without directions, and what it added up to.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Moved {
    /// In m/s.
    pub(crate) speed: f64,
    /// In rad/s.
    pub(crate) yaw_rate: f64,
    /// In metres.
    pub(crate) distance: f64,
    /// In radians.
    pub(crate) turned: f64,
}

impl Moved {
    /// Returns the larger speed and yaw rate of both.
    pub(crate) fn faster(self, other: Self) -> Self {
        let (speed, yaw_rate) = (self.speed.max(other.speed), self.yaw_rate.max(other.yaw_rate));
        Self { speed, yaw_rate, ..self }
    }
}

/// Arc of a machine with constant steering or a constant twist.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arc {
    pub(crate) x: f64,
    pub(crate) y: f64,
    /// Direction of travel, rad.
    pub(crate) direction: f64,
    /// In 1/m; infinite for a turn on the spot.
    pub(crate) curvature: f64,
}

impl Arc {
    /// Returns the distance of a place from the arc, m.
    pub(crate) fn off(&self, other: &Self) -> f64 {
        let (dx, dy) = (other.x - self.x, other.y - self.y);
        let (sin, cos) = self.direction.sin_cos();
        if self.curvature.abs() < 1e-6 {
            return (dy * cos - dx * sin).abs();
        }
        let radius = 1.0 / self.curvature;
        let (to_x, to_y) = (dx + radius * sin, dy - radius * cos);
        (to_x.hypot(to_y) - radius.abs()).abs()
    }
}
