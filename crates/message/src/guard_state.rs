use std::time::Duration;

use flatbuffers::{FlatBufferBuilder, WIPOffset};

use crate::Error;
use crate::fields::{Choice, Codec, MillisU16, Number, Plain, choice, fields};
use crate::generated::telemetry as wire_telemetry;
use crate::wire::number;

fields! {
    /// Newest state of the vehicle's guard.
    #[derive(Clone, PartialEq, Default, Debug)]
    GuardState of wire_telemetry::GuardState<'_>, wire_telemetry::GuardStateArgs, "guard." {
        /// Tick of the guard.
        tick: u32 = tick as Plain,
        /// Mode of the machine.
        mode: GuardMode = mode as Choice,
        /// Rule that caused the mode.
        cause: Cause = cause as Choice,
        /// Measured value of the cause, in its unit.
        value: f32 = value as Number::within(Self::VALUE_MAX),
        /// Limit of the cause, in its unit.
        limit: f32 = limit as Number::within(Self::VALUE_MAX),
        /// Number of the newest stop, which a reset names.
        stop: u32 = stop as Plain,
        /// True if that stop is latched until a person resets it.
        is_latched: bool = latched as Plain,
        /// Number of the newest emergency stop executed, 0 for none.
        emergency_stop: u32 = emergency_stop as Plain,
        /// Answer to the newest other act.
        answer: Option<ActAnswer>,
        /// Bits of the [`Blocker`]s that prevent arming, by their numbers.
        blockers: u32 = blockers as Plain,
        /// Console that armed the machine, 0 for none.
        holder: u64 = holder as Plain,
        /// Age of the newest picture that a person saw.
        loop_age: Option<Duration> = loop_age_ms as MillisU16,
        /// Time since the newest fresh command was sent.
        command_age: Option<Duration> = command_age_ms as MillisU16,
        /// Present speed limit, m/s.
        speed_bound: f32 = speed_bound as Number::within(Self::VALUE_MAX),
        /// Rule that would act next without further input, and the time until then.
        countdown: Option<(Cause, Duration)>,
        /// Bits for limited commands: see the schema.
        limits: u32 = limits as Plain,
        /// Time since the machine's last message, if there was one.
        machine_age: Option<Duration> = machine_age_ms as MillisU16,
        /// Bits of the machine's own state: see the schema.
        notices: u32 = notices as Plain,
        /// Bits for the machine's horn and lights: see the schema.
        signals: u32 = signals as Plain,
        /// State of the recording.
        black_box: BlackBox = black_box as Choice,
        /// Guard settings that others must keep, if known.
        budget: Option<Budget>,
    }
}

/// Guard settings that others must keep.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Budget {
    /// Age of a picture beyond which it is useless.
    pub picture_age_max: Duration,
    /// Age of a command beyond which it is useless.
    pub command_age_max: Duration,
    /// Initial deceleration of a manoeuvre, m/s².
    pub deceleration_begin: f32,
    /// Final deceleration of a manoeuvre, m/s².
    pub deceleration: f32,
    /// Rate of increase of the deceleration, m/s³.
    pub jerk: f32,
}

/// Result of an act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActAnswer {
    /// Console of the act.
    pub console: u64,
    /// Number of the act on that console.
    pub number: u32,
    /// Reason for the refusal; `None` if the act was done.
    pub refused: Option<Blocker>,
}

impl GuardState {
    /// Maximum absolute value of a cause's numbers in a message.
    pub const VALUE_MAX: f32 = 1e12;

    pub(crate) fn write(
        &self,
        builder: &mut FlatBufferBuilder<'static>,
    ) -> WIPOffset<wire_telemetry::GuardState<'static>> {
        let answer = self.answer.map(|answer| {
            let outcome = answer.refused.map_or(0, |blocker| blocker.to_wire().0 + 1);
            wire_telemetry::ActAnswer::new(answer.console, answer.number, outcome)
        });
        let left = self.countdown.map(|(_, left)| left);
        let budget = self.budget.map(Budget::to_wire);
        let mut arguments = wire_telemetry::GuardStateArgs {
            answer: answer.as_ref(),
            countdown_cause: self.countdown.map(|(cause, _)| cause).unwrap_or_default().to_wire(),
            countdown_ms: MillisU16.write(&left, builder),
            budget: budget.as_ref(),
            ..Default::default()
        };
        self.write_listed(&mut arguments, builder);
        wire_telemetry::GuardState::create(builder, &arguments)
    }

    pub(crate) fn read(wire: wire_telemetry::GuardState<'_>) -> Result<Self, Error> {
        let answer = wire.answer().map(|answer| {
            let blocker = answer.outcome().checked_sub(1).map(wire_telemetry::Blocker);
            Ok(ActAnswer {
                console: answer.console(),
                number: answer.number(),
                refused: blocker.map(Blocker::from_wire).transpose()?,
            })
        });
        let cause = Cause::from_wire(wire.countdown_cause())?;
        let left = MillisU16.read("guard.countdown", wire.countdown_ms())?;
        let (answer, countdown) = (answer.transpose()?, left.map(|left| (cause, left)));
        let budget = wire.budget().map(Budget::from_wire).transpose()?;
        Ok(Self { answer, countdown, budget, ..Self::read_listed(wire)? })
    }
}

impl Budget {
    fn to_wire(self) -> wire_telemetry::Budget {
        let millis = |time: Duration| u16::try_from(time.as_millis()).unwrap_or(u16::MAX);
        wire_telemetry::Budget::new(
            millis(self.picture_age_max),
            millis(self.command_age_max),
            self.deceleration_begin,
            self.deceleration,
            self.jerk,
        )
    }

    fn from_wire(wire: &wire_telemetry::Budget) -> Result<Self, Error> {
        let most = GuardState::VALUE_MAX;
        let positive = |field, value| number(field, value, 0.0, most);
        Ok(Self {
            picture_age_max: Duration::from_millis(wire.picture_age_max_ms().into()),
            command_age_max: Duration::from_millis(wire.command_age_max_ms().into()),
            deceleration_begin: positive(
                "guard.budget.deceleration_begin",
                wire.deceleration_begin(),
            )?,
            deceleration: positive("guard.budget.deceleration", wire.deceleration())?,
            jerk: positive("guard.budget.jerk", wire.jerk())?,
        })
    }
}

/// State of the black box recording.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum BlackBox {
    /// The guard has no black box.
    #[default]
    Absent,
    /// Everything is recorded.
    Records,
    /// Nothing is recorded: the disk is full.
    DiskFull,
    /// Nothing is recorded: writes to the disk fail.
    DiskRefuses,
    /// Some records are lost: the disk is too slow.
    DiskBehind,
    /// Nothing is recorded any more: the recorder has ended.
    Ended,
}

/// Mode of a guard: what it permits the machine to do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum GuardMode {
    /// The machine stands, held by both brakes, until a person arms it.
    #[default]
    Held,
    /// A person has armed the machine; it stands on its service brake until the person applies
    /// throttle.
    Armed,
    /// The person's commands move the machine, within the envelope.
    Driving,
    /// As `Driving`, below the top speed because of the loop age.
    Limited,
    /// The guard brings the machine to a standstill.
    Manoeuvre,
}

/// Reason for a change of a guard's mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Cause {
    /// The guard has just started.
    #[default]
    Started,
    /// The newest picture that a person saw is too old: its age and the limit, ms.
    PictureAge,
    /// No fresh command arrived: elapsed time and the limit, ms.
    CommandTimeout,
    /// The vehicle sends no proposals: elapsed time and the limit, ms.
    ProposalTimeout,
    /// The machine sends no state: elapsed time and the limit, ms.
    MachineTimeout,
    /// The brake does not respond: the measured and the requested deceleration, m/s².
    BrakeDoesNotAnswer,
    /// A person requested an emergency stop: the act's number, 0.
    EmergencyStop,
    /// The console has disconnected: 1, 0.
    ConsoleGone,
    /// The console's page is hidden or frozen: 1, 0.
    PageHidden,
    /// The console's page does not have the keyboard focus: 1, 0.
    FocusLost,
    /// The person's inputs are faulty, such as a stuck pad: 1, 0.
    InputsUnhealthy,
    /// The person released the dead-man input: 1, 0.
    DeadManReleased,
    /// The session in which the machine was armed has ended: the present session, or 0; the ended
    /// one.
    SessionEnded,
    /// Commands come from a console that did not arm the machine: 1, 0.
    ConsoleChanged,
    /// A person at the machine holds its stop input, or its emergency button: 1, 0.
    LocalStop,
    /// A person at the machine drives it: 1, 0.
    LocalControl,
    /// The machine reports faults: the faults' bits, 0.
    MachineFault,
    /// The machine braked by itself because it received nothing from the guard: 1, 0.
    GuardSilent,
    /// The guard itself ran late: the time between two steps and the limit, ms.
    GuardLate,
    /// The machine exceeds the speed limit and does not slow down: speed and limit, m/s.
    Overspeed,
    /// The machine moves although it is held, or against its gear: speed and limit, m/s.
    Rolling,
    /// The vehicle's camera produces no pictures: 1, 0.
    CameraStopped,
    /// The vehicle's encoders produce no slices: 1, 0.
    EncoderStopped,
    /// A person parked the machine: the act's number, 0.
    Parked,
    /// The machine was armed and nobody drove: elapsed time and the limit, ms.
    ArmExpired,
    /// A person armed the machine: the act's number, 0.
    Arm,
    /// A person applied throttle: its share and the dead zone.
    Throttle,
    /// The loop age requires a lower speed, or no longer does: the age and the limit, ms.
    LoopAge,
    /// The machine stands: duration of the manoeuvre in s and distance in m.
    Standstill,
    /// A person reset the latched stop: the act's number, the stop.
    Reset,
    /// The machine stood in Driving without any input of a person: elapsed time and the limit, ms.
    Unattended,
    /// The machine's speed contradicts its throttle, its own motion or its picture: the reported
    /// and the possible speed, m/s.
    SpeedImplausible,
    /// The vehicle's picture has the same brightness everywhere, and its owner has configured a
    /// stop for this: 1, 0.
    CameraBlind,
    /// A person found the picture mirrored or the steering wrong: the act's number, 0.
    SteeringWrong,
}

/// A reason for refusing an act.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Blocker {
    /// The act is meaningless in this mode, such as arming an armed machine.
    #[default]
    Mode,
    /// A stop is latched: a reset that names it must come first.
    Latched,
    /// The machine moves, or its speed is unknown.
    Moving,
    /// The machine sends nothing.
    MachineSilent,
    /// A person at the machine holds its stop input or drives it.
    LocalPerson,
    /// The machine reports a fault.
    MachineFault,
    /// The vehicle sends no proposals.
    VehicleSilent,
    /// There is no session.
    NoSession,
    /// There is no fresh command.
    NoCommand,
    /// The newest command is from another console.
    OtherConsole,
    /// The throttle is not released.
    ThrottlePressed,
    /// No picture that the person saw is recent enough.
    PictureAge,
    /// The person is not known to be present with sound inputs.
    PersonAbsent,
    /// The dead-man input is not held.
    DeadMan,
    /// The vehicle's camera or encoders have stopped.
    VehicleTrouble,
    /// The act was in transit for too long, or for an unknown time.
    StaleAct,
    /// The reset names a stop other than the latched one.
    OtherStop,
    /// The person who drives has not named this console as successor.
    NotNamed,
    /// The latch of a stop cannot be stored across a restart: the disk write fails.
    LatchNotKept,
}

choice!(
    BlackBox,
    wire_telemetry::BlackBox,
    "guard.black_box",
    [Absent, Records, DiskFull, DiskRefuses, DiskBehind, Ended]
);

choice!(
    GuardMode,
    wire_telemetry::GuardMode,
    "guard.mode",
    [Held, Armed, Driving, Limited, Manoeuvre]
);

choice!(
    Cause,
    wire_telemetry::Cause,
    "guard.cause",
    [
        Started,
        PictureAge,
        CommandTimeout,
        ProposalTimeout,
        MachineTimeout,
        BrakeDoesNotAnswer,
        EmergencyStop,
        ConsoleGone,
        PageHidden,
        FocusLost,
        InputsUnhealthy,
        DeadManReleased,
        SessionEnded,
        ConsoleChanged,
        LocalStop,
        LocalControl,
        MachineFault,
        GuardSilent,
        GuardLate,
        Overspeed,
        Rolling,
        CameraStopped,
        EncoderStopped,
        Parked,
        ArmExpired,
        Arm,
        Throttle,
        LoopAge,
        Standstill,
        Reset,
        Unattended,
        SpeedImplausible,
        CameraBlind,
        SteeringWrong
    ]
);

choice!(
    Blocker,
    wire_telemetry::Blocker,
    "guard.answer",
    [
        Mode,
        Latched,
        Moving,
        MachineSilent,
        LocalPerson,
        MachineFault,
        VehicleSilent,
        NoSession,
        NoCommand,
        OtherConsole,
        ThrottlePressed,
        PictureAge,
        PersonAbsent,
        DeadMan,
        VehicleTrouble,
        StaleAct,
        OtherStop,
        NotNamed,
        LatchNotKept
    ]
);
