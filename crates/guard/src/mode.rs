use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::identity::{Stop, Tick};
use crate::set::numbered;

numbered! {
    /// What a guard lets a machine do.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
    pub enum Mode {
        /// The machine stands, held by both brakes, until a person arms it.
        #[default]
        Held = 0,
        /// A person has armed the machine; it stands on its service brake until throttle is given.
        Armed = 1,
        /// The person's commands move the machine, within the envelope.
        Driving = 2,
        /// The same, more slowly than the top speed, because the loop age asks for it.
        Limited = 3,
        /// The guard brings the machine to a standstill.
        Manoeuvre = 4,
    }
}

impl Mode {
    /// Returns whether a person's throttle reaches the machine.
    pub const fn is_driving(self) -> bool {
        match self {
            Self::Driving | Self::Limited => true,
            Self::Held | Self::Armed | Self::Manoeuvre => false,
        }
    }
}

numbered! {
    /// Why a guard went from one mode to another. Each has a value and a limit: see its docs.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
    pub enum Cause {
        /// The guard has just started.
        #[default]
        Started = 0,
        /// The newest picture that a person saw is too old: its age and the limit, ms.
        PictureAge = 1,
        /// No fresh command came: for how long, and the limit, ms.
        CommandTimeout = 2,
        /// The vehicle proposes nothing: for how long, and the limit, ms.
        ProposalTimeout = 3,
        /// The machine says nothing: for how long, and the limit, ms.
        MachineTimeout = 4,
        /// The brake does not answer: the deceleration measured and the one asked for, m/s².
        BrakeDoesNotAnswer = 5,
        /// Somebody asked for an emergency stop: the act's number, 0.
        EmergencyStop = 6,
        /// The console has gone: 1, 0.
        ConsoleGone = 7,
        /// The console's page is hidden or frozen: 1, 0.
        PageHidden = 8,
        /// The console's page does not have the keyboard: 1, 0.
        FocusLost = 9,
        /// The person's inputs are not sound, such as a pad that stands still: 1, 0.
        InputsUnhealthy = 10,
        /// The person let go of the dead-man input: 1, 0.
        DeadManReleased = 11,
        /// The session in which the machine was armed is over: the session that is, or 0; the one
        /// that was.
        SessionEnded = 12,
        /// Commands come from a console that did not arm the machine: 1, 0.
        ConsoleChanged = 13,
        /// A person at the machine holds its stop input, or its emergency button: 1, 0.
        LocalStop = 14,
        /// A person at the machine drives it: 1, 0.
        LocalControl = 15,
        /// Something of the machine does not work: the faults' bits, 0.
        MachineFault = 16,
        /// The machine braked by itself, because the guard was silent for it: 1, 0.
        GuardSilent = 17,
        /// The guard itself came late: the time between two steps and the limit, ms.
        GuardLate = 18,
        /// The machine is faster than the bound and does not slow down: speed and bound, m/s.
        Overspeed = 19,
        /// The machine moves although it is held, or against its gear: speed and limit, m/s.
        Rolling = 20,
        /// The vehicle's camera gives no pictures: 1, 0.
        CameraStopped = 21,
        /// The vehicle's encoders give no slices: 1, 0.
        EncoderStopped = 22,
        /// A person parked the machine: the act's number, 0.
        Parked = 23,
        /// The machine was armed and nobody drove: for how long, and the limit, ms.
        ArmExpired = 24,
        /// A person armed the machine: the act's number, 0.
        Arm = 25,
        /// A person gave throttle: its share and the dead zone.
        Throttle = 26,
        /// The loop age asks for less speed, or no longer does: the age and the limit, ms.
        LoopAge = 27,
        /// The machine stands: how long the manoeuvre took and how far the machine went, s and m.
        Standstill = 28,
        /// A person reset the latched stop: the act's number, the stop.
        Reset = 29,
        /// The machine stood in Driving without any input of a person: for how long, and the limit, ms.
        Unattended = 30,
        /// The machine's speed contradicts its throttle, its own motion or its picture: what was told,
        /// and what is possible, m/s.
        SpeedImplausible = 31,
        /// The vehicle's picture is of one brightness all over, and its owner says that this stops it: 1, 0.
        CameraBlind = 32,
        /// A person found the picture mirrored or the steering wrong: the act's number, 0.
        SteeringWrong = 33,
    }
}

impl Cause {
    /// Returns whether a stop of this cause stays latched until a person resets it by its name.
    pub const fn is_latched(self) -> bool {
        matches!(self, Self::EmergencyStop | Self::BrakeDoesNotAnswer | Self::SteeringWrong)
    }

    /// Returns whether the person's wheel is not to be trusted in a stop of this cause.
    pub(crate) const fn doubts_wheel(self) -> bool {
        matches!(
            self,
            Self::ConsoleGone
                | Self::PageHidden
                | Self::FocusLost
                | Self::InputsUnhealthy
                | Self::DeadManReleased
                | Self::SessionEnded
                | Self::ConsoleChanged
                | Self::SteeringWrong
        )
    }
}

/// A cause with its numbers.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Why {
    /// Which rule acted.
    pub cause: Cause,
    /// What was found; its unit is the cause's.
    pub value: f32,
    /// What is allowed; its unit is the cause's.
    pub limit: f32,
}

impl Why {
    /// Returns `cause` with what was found and what is allowed.
    pub const fn new(cause: Cause, value: f32, limit: f32) -> Self {
        Self { cause, value, limit }
    }

    /// Returns a cause that is either there or not.
    pub(crate) const fn plain(cause: Cause) -> Self {
        Self::new(cause, 1.0, 0.0)
    }
}

/// One step of a guard from a mode to another, or to the same for another cause.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transition {
    /// The mode before.
    pub from: Mode,
    /// The mode after.
    pub to: Mode,
    /// Which rule acted, with its numbers.
    pub why: Why,
    /// The stop that began, goes on or ended.
    pub stop: Stop,
    /// The guard's step.
    pub tick: Tick,
    /// When, by the guard's clock.
    pub at: Instant,
}
