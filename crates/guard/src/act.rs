//! Deliberate acts of a person, each done at most once, and their outcomes.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::description::ACTIONS_MAX;
use crate::identity::{ActNumber, Console, Stop};
use crate::set::{Set, numbered};

/// A deliberate act of a person. The console repeats it until the guard answers that it is done or
/// refused. An emergency stop is no `Act`: see
/// [`Proposal::emergency_stop`](crate::frame::Proposal).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Act {
    /// Console that sent the act.
    pub console: Console,
    /// Number of the act at that console; a number not above the previous one is a repetition,
    /// which the guard ignores.
    pub number: ActNumber,
    /// Requested action.
    pub deed: Deed,
    /// Transit time of the newest repetition of this act; `None` if unknown.
    pub age: Option<Duration>,
}

/// An action that a person requests from the guard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Deed {
    /// Permission to drive: from Held to Armed.
    Arm,
    /// Release of the latch of this stop; the machine stays held.
    Reset(Stop),
    /// Change from Armed, Driving or Limited to Held; only the holder may request it, and not while
    /// the machine moves.
    Park,
    /// Takeover from the console whose newest command names this one as its successor.
    TakeOver,
    /// Steering check: the armed machine turns its wheels a little left, right and back.
    CheckSteering,
    /// Result of the steering check as the person saw it; [`Agreement::Wrong`] holds the machine
    /// until a reset.
    Steering(Agreement),
    /// Request for the machine's declared action of this number, 0 to 31.
    Request(u8),
}

/// Observation of a person during the steering check.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Agreement {
    /// The wheels turned as the picture shows.
    Agrees,
    /// The picture is mirrored, or the wheels turned in the wrong direction.
    Wrong,
    /// The wheels are not visible.
    Unseen,
}

/// Answer to an act.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Console that sent the act.
    pub console: Console,
    /// Number of the act at that console.
    pub number: ActNumber,
    /// Outcome of the act.
    pub outcome: Outcome,
}

/// Outcome of an act.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// The act was done.
    Done,
    /// The act was refused and is not retried.
    Refused(Blocker),
}

numbered! {
    /// A condition that prevents an act, in particular arming.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Blocker {
        /// The act is not valid in this mode, such as arming an armed machine.
        Mode = 0,
        /// A stop is latched: it must be reset by its name first.
        Latched = 1,
        /// The machine moves, or its speed is unknown.
        Moving = 2,
        /// No state arrives from the machine.
        MachineSilent = 3,
        /// A person at the machine holds its stop input or drives it.
        LocalPerson = 4,
        /// The machine has a malfunction: reported by it, or detected by the guard.
        MachineFault = 5,
        /// No proposal arrives from the vehicle.
        VehicleSilent = 6,
        /// There is no session.
        NoSession = 7,
        /// No fresh command has arrived within the command timeout.
        NoCommand = 8,
        /// The newest command, or the console that drives, is not the one of the act.
        OtherConsole = 9,
        /// The throttle is not released.
        ThrottlePressed = 10,
        /// No picture that the person saw is recent enough.
        PictureAge = 11,
        /// The person is not reported as present with healthy inputs.
        PersonAbsent = 12,
        /// The dead-man input is not held.
        DeadMan = 13,
        /// The vehicle reports a malfunction of camera or encoders, or a picture that is blind or
        /// contradicts the reported speed.
        VehicleTrouble = 14,
        /// The act was in transit for too long, or for an unknown time.
        StaleAct = 15,
        /// The reset names another stop than the latched one.
        OtherStop = 16,
        /// The driving person's console does not name this one as successor.
        NotNamed = 17,
        /// The latch of a stop cannot be stored, so it would not survive a restart of the guard.
        LatchNotKept = 18,
        /// The machine has no wheels that turn at standstill: a check would move all of it.
        NoSteering = 19,
        /// The machine's description of its axes and actions has not arrived completely.
        Description = 20,
        /// The machine declares no such action, or not as one that is requested.
        UnknownAction = 21,
        /// The machine has not answered the previous request yet.
        Busy = 22,
        /// The machine refused the request.
        MachineRefused = 23,
        /// The machine did not answer the request within a second.
        NoAnswer = 24,
    }
}

/// A set of conditions that prevent an act.
pub type Blockers = Set<Blocker>;

impl Deed {
    /// Returns the deed's number on the wire and its argument: of a reset the stop, of a request
    /// the action, else 0.
    pub(crate) const fn to_wire(self) -> (u8, u32) {
        match self {
            Self::Arm => (1, 0),
            Self::Reset(stop) => (2, stop.get()),
            Self::Park => (3, 0),
            Self::TakeOver => (4, 0),
            Self::CheckSteering => (5, 0),
            Self::Steering(Agreement::Agrees) => (6, 0),
            Self::Steering(Agreement::Wrong) => (7, 0),
            Self::Steering(Agreement::Unseen) => (8, 0),
            Self::Request(action) => (9, action as u32),
        }
    }

    /// Returns the deed of this number and argument on the wire; `None` for an unknown number, or
    /// if a reset lacks its stop, a request names no possible action, or another deed has an
    /// argument.
    pub(crate) fn from_wire(kind: u8, argument: u32) -> Option<Self> {
        match (kind, argument) {
            (1, 0) => Some(Self::Arm),
            (2, stop) => Stop::new(stop).map(Self::Reset),
            (3, 0) => Some(Self::Park),
            (4, 0) => Some(Self::TakeOver),
            (5, 0) => Some(Self::CheckSteering),
            (6, 0) => Some(Self::Steering(Agreement::Agrees)),
            (7, 0) => Some(Self::Steering(Agreement::Wrong)),
            (8, 0) => Some(Self::Steering(Agreement::Unseen)),
            (9, action) => {
                let action = u8::try_from(action).ok()?;
                (usize::from(action) < ACTIONS_MAX).then_some(Self::Request(action))
            }
            _ => None,
        }
    }
}

impl Outcome {
    /// Returns the number on the wire; 0 without an outcome.
    pub(crate) const fn to_wire(this: Option<Self>) -> u8 {
        match this {
            None => 0,
            Some(Self::Done) => 1,
            Some(Self::Refused(blocker)) => 2 + blocker.number(),
        }
    }

    /// Returns the outcome of this number on the wire, where 0 is none; `None` if it is unknown.
    pub(crate) fn from_wire(number: u8) -> Option<Option<Self>> {
        match number {
            0 => Some(None),
            1 => Some(Some(Self::Done)),
            _ => Blocker::from_number(number - 2).map(|blocker| Some(Self::Refused(blocker))),
        }
    }
}
