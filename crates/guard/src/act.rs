//! What a person asks for deliberately, each once, and what becomes of it.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::identity::{ActNumber, Console, Stop};
use crate::set::{Set, numbered};

/// A deliberate act of a person, repeated by the console until the guard answers that it is done or
/// refused. An emergency stop is no `Act`: see [`Proposal::emergency_stop`](crate::frame::Proposal).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Act {
    /// Whose act.
    pub console: Console,
    /// Which of that console's acts; a number not above the last one's is a repetition.
    pub number: ActNumber,
    /// What is asked for.
    pub deed: Deed,
    /// For how long its newest repetition has been under way; `None` while that is not known.
    pub age: Option<Duration>,
}

/// What a person asks of the guard.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Deed {
    /// To be allowed to drive: from Held to Armed.
    Arm,
    /// To release the latch of this stop; the machine stays held.
    Reset(Stop),
    /// To hold the machine where it stands: from Armed, Driving or Limited to Held.
    Park,
    /// To take over from the console whose newest command names this one as its successor.
    TakeOver,
    /// To turn the wheels of the armed machine a little to the left, to the right and back.
    CheckSteering,
    /// To note what a person saw of that; [`Agreement::Wrong`] holds the machine until a reset.
    Steering(Agreement),
}

/// What a person saw when the wheels were turned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Agreement {
    /// They turned as the picture says.
    Agrees,
    /// The picture is mirrored, or they turned the wrong way.
    Wrong,
    /// It cannot be seen.
    Unseen,
}

/// What became of an act.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Answer {
    /// Whose act.
    pub console: Console,
    /// Which of that console's acts.
    pub number: ActNumber,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of an act.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was refused, and is not tried again.
    Refused(Blocker),
}

numbered! {
    /// What stands in the way of an act, of arming above all.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Blocker {
        /// An act in this mode makes no sense, such as arming what is armed.
        Mode = 0,
        /// A stop is latched: a reset that names it comes first.
        Latched = 1,
        /// The machine moves, or its speed is not known.
        Moving = 2,
        /// The machine says nothing.
        MachineSilent = 3,
        /// A person at the machine holds its stop input or drives it.
        LocalPerson = 4,
        /// Something of the machine does not work.
        MachineFault = 5,
        /// The vehicle proposes nothing.
        VehicleSilent = 6,
        /// There is no session.
        NoSession = 7,
        /// There is no fresh command.
        NoCommand = 8,
        /// The newest command is another console's.
        OtherConsole = 9,
        /// The throttle is not released.
        ThrottlePressed = 10,
        /// No picture that the person saw is young enough.
        PictureAge = 11,
        /// The person is not known to be there with sound inputs.
        PersonAbsent = 12,
        /// The dead-man input is not held.
        DeadMan = 13,
        /// The vehicle's camera or encoders have stopped.
        VehicleTrouble = 14,
        /// The act was under way for too long, or for a time that is not known.
        StaleAct = 15,
        /// The reset names another stop than the latched one.
        OtherStop = 16,
        /// The person who drives names no such successor.
        NotNamed = 17,
        /// The latch of a stop cannot be kept over a restart: the disk refuses it.
        LatchNotKept = 18,
    }
}

/// What stands in the way of an act.
pub type Blockers = Set<Blocker>;

impl Deed {
    /// Returns the deed's number on the wire, and the stop that it names.
    pub(crate) const fn to_wire(self) -> (u8, Option<Stop>) {
        match self {
            Self::Arm => (1, None),
            Self::Reset(stop) => (2, Some(stop)),
            Self::Park => (3, None),
            Self::TakeOver => (4, None),
            Self::CheckSteering => (5, None),
            Self::Steering(Agreement::Agrees) => (6, None),
            Self::Steering(Agreement::Wrong) => (7, None),
            Self::Steering(Agreement::Unseen) => (8, None),
        }
    }

    /// Returns the deed of these numbers, if there is one.
    pub(crate) fn from_wire(kind: u8, stop: Option<Stop>) -> Option<Self> {
        match (kind, stop) {
            (1, None) => Some(Self::Arm),
            (2, Some(stop)) => Some(Self::Reset(stop)),
            (3, None) => Some(Self::Park),
            (4, None) => Some(Self::TakeOver),
            (5, None) => Some(Self::CheckSteering),
            (6, None) => Some(Self::Steering(Agreement::Agrees)),
            (7, None) => Some(Self::Steering(Agreement::Wrong)),
            (8, None) => Some(Self::Steering(Agreement::Unseen)),
            _ => None,
        }
    }
}

impl Outcome {
    pub(crate) const fn to_wire(this: Option<Self>) -> u8 {
        match this {
            None => 0,
            Some(Self::Done) => 1,
            Some(Self::Refused(blocker)) => 2 + blocker.number(),
        }
    }

    pub(crate) fn from_wire(number: u8) -> Option<Option<Self>> {
        match number {
            0 => Some(None),
            1 => Some(Some(Self::Done)),
            _ => Blocker::from_number(number - 2).map(|blocker| Some(Self::Refused(blocker))),
        }
    }
}
