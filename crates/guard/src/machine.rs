use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::description::{Item, Reading, Revision};
use crate::reported::reported;
use crate::set::{Set, numbered};
use crate::{Actions, Answered, Axes, Controls, Gear, Mode};

/// A machine that can be driven: implemented by a simulated car, or by a vehicle behind CAN, a ROS
/// graph or a serial line.
///
/// One thread owns the machine. Every [`period`](Self::period) it calls [`state`](Self::state) and
/// then [`apply`](Self::apply), each with the time by its own clock, even while nothing changes. A
/// machine's own watchdog can therefore treat a missing `apply` as the loss of this computer.
/// Neither call may block for longer than a fraction of the period: bus access belongs on a thread
/// of the implementation, and these calls exchange the newest values with it.
///
/// The applied controls have already passed the [guard](crate::Guard). An implementation sets the
/// actuators and decides nothing, with two exceptions: it protects its own hardware, and a person
/// at the machine has precedence.
pub trait Machine {
    /// Returns the time between two turns, in each of which the actuators take new controls.
    fn period(&self) -> Duration;

    /// Returns the known state of the machine at `now`.
    fn state(&mut self, now: Instant) -> MachineState;

    /// Takes the mode of the guard, for display; before each [`apply`](Self::apply). The default
    /// ignores it.
    fn mode(&mut self, _mode: Mode) {}

    /// Sets the actuators at `now`; the controls hold until the next call.
    ///
    /// # Errors
    /// The fault that prevented it. The fault is counted and reported together with those of the
    /// state, and the next turn tries again.
    fn apply(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault>;

    /// Returns the machine's axes, actions and values, in this order; at most 16, 32 and 64. It is
    /// asked once, before the first [`state`](Self::state). The default declares nothing.
    fn description(&self) -> &[Item] {
        &[]
    }

    /// Begins the declared action with this number, which a person asks for once; returns whether
    /// the machine does it. `None` while that is not known: then it is called again each turn,
    /// until it is, or another action is asked for. The default refuses.
    fn request(&mut self, action: u8, now: Instant) -> Option<bool> {
        let _ = (action, now);
        Some(false)
    }

    /// Returns a reading of a declared value that is not reported yet, with the value's number;
    /// `None` if there is none. Called every 10 ms until it returns `None`, at most 8 times.
    fn reading(&mut self, now: Instant) -> Option<(u8, Reading)> {
        let _ = now;
        None
    }

    /// Sets the actuators like [`apply`](Self::apply), with controls that are not the guard's: the
    /// machine's side brakes by itself because the guard is silent, was never heard, or is ignored
    /// at the end. The default makes no difference between the two.
    ///
    /// # Errors
    /// Same as [`apply`](Self::apply).
    fn apply_alone(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault> {
        self.apply(controls, now)
    }
}

/// State that a machine reports of itself at one instant.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct MachineState {
    /// Time of measurement, by the machine's clock.
    pub measured_at: Instant,
    /// Speed along the machine in m/s, negative in reverse; NaN if unknown, which never counts as
    /// standstill.
    pub speed: f32,
    /// Speed across the machine in m/s, left positive; NaN if unknown. Only an omni machine's
    /// counts.
    pub sideways_speed: f32,
    /// Rate of turn in rad/s, counterclockwise positive; NaN if unknown, which never counts as
    /// standstill of a differential or omni machine.
    pub yaw_rate: f32,
    /// Angle of the road wheels in radians, left positive; NaN if unknown.
    pub steering_angle: f32,
    /// Direction in which throttle drives.
    pub gear: Gear,
    /// Position in the machine's own frame, if known.
    pub position: Option<Position>,
    /// Position on Earth, if known.
    pub place: Option<Place>,
    /// Faults of the machine.
    pub faults: Faults,
    /// Further conditions that the machine reports.
    pub notices: Notices,
    /// Measured values of the declared axes.
    pub axes: Axes,
    /// Declared actions that are on, such as lights and horn.
    pub actions: Actions,
    /// Answer to the newest request; `None` before the first. Set on the way to the guard, not by
    /// the machine.
    pub answered: Option<Answered>,
    /// Revision of the machine's description; `None` if it declares nothing. Set on the way to the
    /// guard, not by the machine.
    pub description: Option<Revision>,
    /// Optional numbers for people; the guard uses only the acceleration along the machine.
    pub told: Reported,
}

reported! {
    /// Optional numbers of a machine for people, who may act on them. The guard forwards them. It
    /// uses only the acceleration along the machine, to detect an implausible speed.
    ///
    /// A number is `None` while it is unknown. Each line declares a field: its name in code, its
    /// name for people, its unit. The frames *machine* and *status* end with these numbers in this
    /// order. A build with fewer lines skips the last ones, and a build with more lines treats the
    /// missing ones as unknown. New lines therefore go at the end, and no line is moved or removed.
    pub struct Reported {
        /// Acceleration along the machine in m/s², forwards positive.
        acceleration_along: "acceleration along", "m/s²";
        /// Acceleration across the machine in m/s², left positive.
        acceleration_across: "acceleration across", "m/s²";
        /// Charge of the battery, or contents of the tank, as a percentage of full.
        charge: "charge", "%";
    }
}

impl MachineState {
    /// Returns the largest part of the machine's motion, m/s or rad/s without sign: a turn on the
    /// spot is motion. NaN while the speed is unknown; other unknown parts do not count.
    pub fn fastest(&self) -> f32 {
        let Self { speed, sideways_speed, yaw_rate, .. } = *self;
        if speed.is_nan() {
            return speed;
        }
        speed.abs().max(sideways_speed.abs()).max(yaw_rate.abs())
    }

    /// Returns whether the machine is under local control, by a person or by something else.
    pub(crate) fn is_local(&self) -> bool {
        self.notices.contains(Notice::LocalControl) || self.faults.contains(Fault::Refused)
    }
}

/// Position and heading of a machine, in a frame of its own: x east, y north (REP-103).
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Position {
    /// Metres east of the frame's origin.
    pub x: f32,
    /// Metres north of the frame's origin.
    pub y: f32,
    /// Heading in radians, counterclockwise from x; not wrapped.
    pub heading: f32,
}

/// Position of a machine on Earth: WGS 84.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Latitude in degrees, north positive.
    pub latitude: f64,
    /// Longitude in degrees, east positive.
    pub longitude: f64,
    /// Height in metres above the ellipsoid; NaN if unknown.
    pub height: f32,
}

numbered! {
    /// A condition that a machine reports, other than its motion and its faults.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Notice {
        /// The parking brake holds.
        ParkingBrake = 0,
        /// A person at the machine holds a stop input, so the machine must stop.
        LocalStop = 1,
        /// A person at the machine drives it, so it ignores the guard's controls.
        LocalControl = 2,
        /// The machine brakes by itself, because it received no frames from the guard.
        GuardSilent = 3,
    }
}

/// A set of notices.
pub type Notices = Set<Notice>;

/// A named value that a vehicle adds to its telemetry, such as the height of its camera.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Extra {
    /// Name of the value, which stays the same in later versions; at most 64 bytes.
    pub name: &'static str,
    /// Value in `unit`; a value that is not finite is not reported.
    pub value: f64,
    /// Unit, such as `V`; at most 16 bytes, empty for a bare number.
    pub unit: &'static str,
}

impl Extra {
    /// Maximum number of a vehicle's extras that are reported; further ones are left out.
    pub const COUNT_MAX: usize = 16;
}

numbered! {
    /// A malfunction of a machine.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Fault {
        /// The machine does not answer: its bus or its computer is silent.
        Unreachable = 0,
        /// The machine obeys somebody else: a person at it, a switch on it.
        Refused = 1,
        /// An emergency button on the machine is pressed.
        EmergencyButton = 2,
        /// The steering does not respond.
        Steering = 3,
        /// The drive does not respond.
        Drive = 4,
        /// The brake does not respond.
        Brake = 5,
        /// The gear does not respond.
        Gear = 6,
        /// The speed is unknown.
        Speed = 7,
        /// Another malfunction, recorded in the machine's own fault memory.
        Other = 8,
        /// The machine declares other axes and actions than when it was armed; only the guard finds
        /// this.
        Description = 9,
    }
}

/// A set of faults.
pub type Faults = Set<Fault>;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn a_turn_on_the_spot_is_motion_and_an_unknown_speed_unknown() {
        let of = |speed, sideways_speed, yaw_rate| {
            MachineState { speed, sideways_speed, yaw_rate, ..MachineState::default() }.fastest()
        };
        assert_eq!((of(-0.5, f32::NAN, f32::NAN), of(0.0, 0.0, -1.2)), (0.5, 1.2));
        assert_eq!(of(0.1, -0.3, 0.2), 0.3);
        assert!(of(f32::NAN, 0.0, 1.0).is_nan());
    }

    #[test]
    fn a_set_holds_each_fault_once() {
        let faults: Faults = [Fault::Brake, Fault::Unreachable, Fault::Brake].into_iter().collect();
        assert_eq!(faults.iter().collect::<Vec<_>>(), [Fault::Unreachable, Fault::Brake]);
        assert!(!faults.contains(Fault::Other) && !faults.is_empty());
        assert!(Faults::NONE.is_empty());
        let all: Faults = Fault::ALL.iter().copied().collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), Fault::ALL);
    }
}
