use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use crate::identity::{Stop, Tick};
use crate::set::numbered;

numbered! {
    /// An operating mode: what a guard lets a machine do.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
    pub enum Mode {
        /// The machine is held by both brakes until a person arms it; from a start or local control
        /// until its first standstill, by the service brake alone.
        #[default]
        Held = 0,
        /// A person has armed the machine; its service brake holds it until throttle is applied.
        Armed = 1,
        /// The person's commands move the machine, within the envelope.
        Driving = 2,
        /// The person's commands move the machine below its top speed, because of the loop age.
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
    /// A reason for a transition between modes. Each has a value and a limit, listed in its doc.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
    pub enum Cause {
        /// The guard has just started.
        #[default]
        Started = 0,
        /// The newest picture that a person saw is too old: its age and the limit, ms.
        PictureAge = 1,
        /// No fresh command arrived: for how long, and the limit, ms.
        CommandTimeout = 2,
        /// No proposal from the vehicle: for how long, and the limit, ms.
        ProposalTimeout = 3,
        /// No state from the machine: for how long, and the limit, ms.
        MachineTimeout = 4,
        /// The brake does not respond: the measured deceleration and the requested one, m/s²; 0, 0
        /// if the machine itself reports this fault.
        BrakeDoesNotAnswer = 5,
        /// A person requested an emergency stop: the act's number, or 0 for one restored after a
        /// restart; 0.
        EmergencyStop = 6,
        /// The console has gone: 1, 0.
        ConsoleGone = 7,
        /// The console's page is hidden or frozen: 1, 0.
        PageHidden = 8,
        /// The console's page does not have the keyboard focus: 1, 0.
        FocusLost = 9,
        /// The person's inputs are unhealthy, such as a pad that no longer updates: 1, 0.
        InputsUnhealthy = 10,
        /// The person's dead-man input is released, or required and missing: 1, 0.
        DeadManReleased = 11,
        /// The session in which the machine was armed has ended: the current session, or 0; the
        /// former one.
        SessionEnded = 12,
        /// Commands come from a console that did not arm the machine: 1, 0.
        ConsoleChanged = 13,
        /// A person at the machine holds its stop input, or its emergency button is pressed: 1, 0.
        LocalStop = 14,
        /// The machine is under local control, by a person at it or by something else: 1, 0.
        LocalControl = 15,
        /// The machine reports a malfunction, or no speed: the faults' bits, 0.
        MachineFault = 16,
        /// The machine braked by itself, because it received no frames from the guard: 1, 0.
        GuardSilent = 17,
        /// The guard itself was late: the time between two steps and the limit, ms.
        GuardLate = 18,
        /// The machine has exceeded the speed bound by more than 2 m/s for a second, or its set
        /// point for the time of `brake_answer` if it is differential or omni: speed and limit,
        /// m/s.
        Overspeed = 19,
        /// The machine moves although it is held, or against its gear: speed and limit, m/s.
        Rolling = 20,
        /// The vehicle's camera delivers no pictures: 1, 0.
        CameraStopped = 21,
        /// The vehicle's encoders deliver no slices: 1, 0.
        EncoderStopped = 22,
        /// A person parked the machine: the act's number, 0.
        Parked = 23,
        /// The machine was armed but not driven: for how long, and the limit, ms.
        ArmExpired = 24,
        /// A person armed the machine: the act's number, 0.
        Arm = 25,
        /// A person applied throttle: its share and the dead zone.
        Throttle = 26,
        /// The loop age requires less speed, or no longer does: the age and the limit, ms.
        LoopAge = 27,
        /// The machine is at standstill: duration and distance of the manoeuvre, s and m.
        Standstill = 28,
        /// A person reset the latched stop: the act's number, the stop.
        Reset = 29,
        /// The machine was at standstill in Driving without any input: for how long, and the limit,
        /// ms.
        Unattended = 30,
        /// The reported speed contradicts the throttle, the machine's own motion or the picture:
        /// the reported and the possible speed, m/s.
        SpeedImplausible = 31,
        /// The picture has one brightness everywhere, and the owner configured that as a stop: 1,
        /// 0.
        CameraBlind = 32,
        /// A person reported a mirrored picture or wrong steering: the act's number, 0.
        SteeringWrong = 33,
    }
}

impl Cause {
    /// Returns whether a stop of this cause stays latched until a person resets it by its name.
    pub const fn is_latched(self) -> bool {
        matches!(self, Self::EmergencyStop | Self::BrakeDoesNotAnswer | Self::SteeringWrong)
    }

    /// Returns whether this cause makes the person's wheel untrustworthy during the stop.
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

/// A cause with its value and limit.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Why {
    /// Rule or act that caused the transition.
    pub cause: Cause,
    /// First number of the cause, as [`Cause`] lists it: in general the measured value.
    pub value: f32,
    /// Second number of the cause, as [`Cause`] lists it: in general the allowed value.
    pub limit: f32,
}

impl Why {
    /// Creates a reason with the cause's two numbers, as [`Cause`] lists them.
    pub const fn new(cause: Cause, value: f32, limit: f32) -> Self {
        Self { cause, value, limit }
    }

    /// Creates a reason for a cause without numbers: value 1, limit 0.
    pub(crate) const fn plain(cause: Cause) -> Self {
        Self::new(cause, 1.0, 0.0)
    }
}

/// One step of a guard to another mode, or to another cause in the same mode.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Transition {
    /// Mode before the step.
    pub from: Mode,
    /// Mode after the step.
    pub to: Mode,
    /// Reason for the transition, with its numbers.
    pub why: Why,
    /// Newest stop after the step: the one that began, continues or ended.
    pub stop: Stop,
    /// Tick of the guard at this step.
    pub tick: Tick,
    /// Time of the step, by the guard's clock.
    pub at: Instant,
}
