use core::fmt;
use core::time::Duration;

use tautline_units::Instant;

use crate::{Controls, Gear};

/// A machine that can be driven: the port that a simulated car implements, or a vehicle behind CAN,
/// a ROS graph or a serial line.
///
/// One thread owns the machine. Every [`period`](Self::period) it calls [`state`](Self::state) and
/// then [`apply`](Self::apply), each time with the vehicle's clock, also while nothing changes. So
/// a machine's own watchdog can take an `apply` that does not come for the loss of this computer.
/// Neither call may block for longer than a fraction of the period: what waits for a bus belongs
/// on a thread of the implementation's own, and these calls exchange the newest values with it.
///
/// What is applied has passed the [failsafe](crate::Failsafe) already. An implementation sets the
/// actuators to it and decides nothing, except what protects its own hardware.
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
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct MachineState {
    /// When the machine measured it, by the vehicle's clock.
    pub measured_at: Instant,
    /// Metres per second along the machine, negative in reverse; NaN while it is not known, which
    /// never counts as standing.
    pub speed: f32,
    /// Radians at the road wheels, left positive.
    pub steering_angle: f32,
    /// Which way throttle drives.
    pub gear: Gear,
    /// Where the machine is, if it knows.
    pub position: Option<Position>,
    /// What of it does not work.
    pub faults: Faults,
}

/// Where a machine is and points, in a frame of its own: x east, y north (REP-103).
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Position {
    /// Metres east.
    pub x: f32,
    /// Metres north.
    pub y: f32,
    /// Radians, counterclockwise from x; not wrapped.
    pub heading: f32,
}

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

/// Something of a machine that does not work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fault {
    /// Nothing comes back from it: its bus or its computer is silent.
    Unreachable,
    /// It obeys somebody else: a person at it, a switch on it.
    Refused,
    /// An emergency button on it is pressed.
    EmergencyButton,
    /// The steering does not follow.
    Steering,
    /// The drive does not follow.
    Drive,
    /// The brake does not follow.
    Brake,
    /// The gear does not follow.
    Gear,
    /// Its speed is not known.
    Speed,
    /// Something else, which its own fault memory names.
    Other,
}

impl Fault {
    /// Every fault there is.
    pub const ALL: [Self; 9] = [
        Self::Unreachable,
        Self::Refused,
        Self::EmergencyButton,
        Self::Steering,
        Self::Drive,
        Self::Brake,
        Self::Gear,
        Self::Speed,
        Self::Other,
    ];

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// A set of faults.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults(u16);

impl Faults {
    /// No fault.
    pub const NONE: Self = Self(0);

    /// Returns these faults and `fault`.
    #[must_use]
    pub const fn with(self, fault: Fault) -> Self {
        Self(self.0 | fault.bit())
    }

    /// Returns whether `fault` is among them.
    pub const fn contains(self, fault: Fault) -> bool {
        self.0 & fault.bit() != 0
    }

    /// Returns whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns each of them once, in the order of [`Fault::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(move |fault| self.contains(*fault))
    }
}

impl FromIterator<Fault> for Faults {
    fn from_iter<I: IntoIterator<Item = Fault>>(faults: I) -> Self {
        faults.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

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
        let all: Faults = Fault::ALL.into_iter().collect();
        assert_eq!(all.iter().collect::<Vec<_>>(), Fault::ALL);
    }
}
