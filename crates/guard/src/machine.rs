use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::set::{Set, numbered};
use crate::told::told;
use crate::{Controls, Gear, Signals};

/// A machine that can be driven: the port that a simulated car implements, or a vehicle behind CAN,
/// a ROS graph or a serial line.
///
/// One thread owns the machine. Every [`period`](Self::period) it calls [`state`](Self::state) and
/// then [`apply`](Self::apply), each time with the vehicle's clock, also while nothing changes. So
/// a machine's own watchdog can take an `apply` that does not come for the loss of this computer.
/// Neither call may block for longer than a fraction of the period: what waits for a bus belongs
/// on a thread of the implementation's own, and these calls exchange the newest values with it.
///
/// What is applied has passed the [guard](crate::Guard) already. An implementation sets the
/// actuators to it and decides nothing, except what protects its own hardware, and that a person at
/// the machine comes before it.
pub trait Machine {
    /// Returns the time from one turn to the next: the rate at which the actuators take controls.
    fn period(&self) -> Duration;

    /// Returns what is known of the machine at `now`.
    fn state(&mut self, now: Instant) -> MachineState;

    /// Sets the actuators at `now`; the controls hold until the next call.
    ///
    /// # Errors
    /// The fault that kept the machine from taking them. It is counted and told beside those of the
    /// state, and the next turn tries again.
    fn apply(&mut self, controls: &Controls, now: Instant) -> Result<(), Fault>;

    /// Returns what only this kind of machine knows, such as a battery's charge; at most
    /// [`Extra::COUNT_MAX`] are told.
    fn extras(&self) -> &[Extra] {
        &[]
    }
}

/// What a machine knows of itself at one instant.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct MachineState {
    /// When the machine measured it, by its own clock.
    pub measured_at: Instant,
    /// Metres per second along the machine, negative in reverse; NaN while it is not known, which
    /// never counts as standing.
    pub speed: f32,
    /// Radians at the road wheels, left positive; NaN while it is not known.
    pub steering_angle: f32,
    /// Which way throttle drives.
    pub gear: Gear,
    /// Where the machine is in a frame of its own, if it knows.
    pub position: Option<Position>,
    /// Where on Earth the machine is, if it knows.
    pub place: Option<Place>,
    /// What of it does not work.
    pub faults: Faults,
    /// What else it says of itself.
    pub notices: Notices,
    /// Which lights are on, and whether the horn sounds.
    pub signals: Signals,
    /// What it tells for people alone.
    pub told: Told,
}

told! {
    /// What a machine tells for people alone, who may act on it: the guard passes it on, and does nothing by it.
    ///
    /// Numbers, `None` while they are not known. A line is a field: its name here, its name for people, its unit.
    /// They stand at the end of the frames *machine* and *status* in this order, so that a build that has fewer
    /// lines skips the last ones, and for one that has more they are not known: a new line comes last, and none is
    /// moved or taken out.
    pub struct Told {
        /// Metres per second squared along the machine, forwards positive.
        acceleration_along: "acceleration along", "m/s²";
        /// Metres per second squared across the machine, to the left positive.
        acceleration_across: "acceleration across", "m/s²";
        /// Percent of what its battery, or its tank, holds when full.
        charge: "charge", "%";
    }
}

impl MachineState {
    /// Returns whether somebody at the machine drives it, or something else does.
    pub(crate) fn is_local(&self) -> bool {
        self.notices.contains(Notice::LocalControl) || self.faults.contains(Fault::Refused)
    }
}

/// Where a machine is and points, in a frame of its own: x east, y north (REP-103).
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Position {
    /// Metres east.
    pub x: f32,
    /// Metres north.
    pub y: f32,
    /// Radians, counterclockwise from x; not wrapped.
    pub heading: f32,
}

/// Where on Earth a machine is: WGS 84.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Degrees, north positive.
    pub latitude: f64,
    /// Degrees, east positive.
    pub longitude: f64,
    /// Metres above the ellipsoid; NaN while it is not known.
    pub height: f32,
}

numbered! {
    /// What a machine says of itself beside its motion.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Notice {
        /// Its parking brake holds.
        ParkingBrake = 0,
        /// A person at it holds a stop input: it is to stand.
        LocalStop = 1,
        /// A person at it drives it: it does not take the guard's controls.
        LocalControl = 2,
        /// It brakes by itself, because the guard was silent for it.
        GuardSilent = 3,
    }
}

/// What a machine says of itself beside its motion.
pub type Notices = Set<Notice>;

/// A value that only one kind of machine has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Extra {
    /// What it is, in words that stay the same; at most 64 bytes.
    pub name: &'static str,
    /// How much of it; one that is not finite is not told.
    pub value: f64,
    /// What the value counts, such as `V`; at most 16 bytes, empty for a bare number.
    pub unit: &'static str,
}

impl Extra {
    /// How many extras of a machine are told.
    pub const COUNT_MAX: usize = 16;
}

numbered! {
    /// Something of a machine that does not work.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Fault {
        /// Nothing comes back from it: its bus or its computer is silent.
        Unreachable = 0,
        /// It obeys somebody else: a person at it, a switch on it.
        Refused = 1,
        /// An emergency button on it is pressed.
        EmergencyButton = 2,
        /// The steering does not follow.
        Steering = 3,
        /// The drive does not follow.
        Drive = 4,
        /// The brake does not follow.
        Brake = 5,
        /// The gear does not follow.
        Gear = 6,
        /// Its speed is not known.
        Speed = 7,
        /// Something else, which its own fault memory names.
        Other = 8,
    }
}

/// A set of faults.
pub type Faults = Set<Fault>;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

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
