use std::time::Duration;

use flatbuffers::{FlatBufferBuilder, WIPOffset};

use crate::Error;
use crate::fields::{Choice, Codec, MillisU16, Number, Plain, choice, fields};
use crate::generated::telemetry as wire_telemetry;
use crate::wire::number;

fields! {
    /// What the vehicle's guard said last.
    #[derive(Clone, PartialEq, Default, Debug)]
    GuardState of wire_telemetry::GuardState<'_>, wire_telemetry::GuardStateArgs, "guard." {
        /// Its step.
        tick: u32 = tick as Plain,
        /// What it lets the machine do.
        mode: GuardMode = mode as Choice,
        /// Which rule brought it there.
        cause: Cause = cause as Choice,
        /// What was found; its unit is the cause's.
        value: f32 = value as Number::within(Self::VALUE_MAX),
        /// What is allowed; its unit is the cause's.
        limit: f32 = limit as Number::within(Self::VALUE_MAX),
        /// The newest stop: what a reset names.
        stop: u32 = stop as Plain,
        /// Whether that stop is latched until a person resets it.
        is_latched: bool = latched as Plain,
        /// The newest emergency stop that was acted on, 0 for none.
        emergency_stop: u32 = emergency_stop as Plain,
        /// What became of the newest other act.
        answer: Option<ActAnswer>,
        /// What stands in the way of arming: the bit of each [`Blocker`]'s number.
        blockers: u32 = blockers as Plain,
        /// The console that armed the machine, 0 for none.
        holder: u64 = holder as Plain,
        /// The age of the newest picture that a person saw.
        loop_age: Option<Duration> = loop_age_ms as MillisU16,
        /// How long ago the newest fresh command was sent.
        command_age: Option<Duration> = command_age_ms as MillisU16,
        /// How fast the machine may be now, m/s.
        speed_bound: f32 = speed_bound as Number::within(Self::VALUE_MAX),
        /// Which rule would act next if nothing came any more, and in what time.
        countdown: Option<(Cause, Duration)>,
        /// What was not let through as commanded, a bit each: see the schema.
        limits: u32 = limits as Plain,
        /// How long ago the machine spoke, if it ever did.
        machine_age: Option<Duration> = machine_age_ms as MillisU16,
        /// What the machine says of itself, a bit each: see the schema.
        notices: u32 = notices as Plain,
        /// What the machine shows and sounds, a bit each: see the schema.
        signals: u32 = signals as Plain,
        /// How the recording of all this goes.
        black_box: BlackBox = black_box as Choice,
        /// What of the guard's settings others keep to, if it is known.
        budget: Option<Budget>,
    }
}

/// What of a guard's settings others keep to.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Budget {
    /// A picture that is under way for longer is of no use.
    pub picture_age_max: Duration,
    /// Nor is such a command.
    pub command_age_max: Duration,
    /// Deceleration with which a manoeuvre begins, m/s².
    pub deceleration_begin: f32,
    /// What it grows to, m/s².
    pub deceleration: f32,
    /// How fast it grows, m/s³.
    pub jerk: f32,
}

/// The fate of an act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActAnswer {
    /// Whose act.
    pub console: u64,
    /// Which of that console's acts.
    pub number: u32,
    /// What stood in its way; `None`: it was done.
    pub refused: Option<Blocker>,
}

impl GuardState {
    /// Numbers of a cause that a message has room for.
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

/// How the recording of what a guard does goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum BlackBox {
    /// There is none.
    #[default]
    Absent,
    /// All is recorded.
    Records,
    /// Nothing is: the disk is full.
    DiskFull,
    /// Nothing is: the disk refuses to be written to.
    DiskRefuses,
    /// Not all is: the disk is too slow.
    DiskBehind,
    /// Nothing is any more: what records has ended.
    Ended,
}

/// What a guard lets the machine do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum GuardMode {
    /// The machine stands, held by both brakes, until a person arms it.
    #[default]
    Held,
    /// A person has armed the machine; it stands on its service brake until throttle is given.
    Armed,
    /// The person's commands move the machine, within the envelope.
    Driving,
    /// The same, more slowly than the top speed, because the loop age asks for it.
    Limited,
    /// The guard brings the machine to a standstill.
    Manoeuvre,
}

/// Why a guard went from one mode to another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Cause {
    /// The guard has just started.
    #[default]
    Started,
    /// The newest picture that a person saw is too old: its age and the limit, ms.
    PictureAge,
    /// No fresh command came: for how long, and the limit, ms.
    CommandTimeout,
    /// The vehicle proposes nothing: for how long, and the limit, ms.
    ProposalTimeout,
    /// The machine says nothing: for how long, and the limit, ms.
    MachineTimeout,
    /// The brake does not answer: the deceleration measured and the one asked for, m/s².
    BrakeDoesNotAnswer,
    /// Somebody asked for an emergency stop: the act's number, 0.
    EmergencyStop,
    /// The console has gone: 1, 0.
    ConsoleGone,
    /// The console's page is hidden or frozen: 1, 0.
    PageHidden,
    /// The console's page does not have the keyboard: 1, 0.
    FocusLost,
    /// The person's inputs are not sound, such as a pad that stands still: 1, 0.
    InputsUnhealthy,
    /// The person let go of the dead-man input: 1, 0.
    DeadManReleased,
    /// The session in which the machine was armed is over: the session that is, or 0; the one that was.
    SessionEnded,
    /// Commands come from a console that did not arm the machine: 1, 0.
    ConsoleChanged,
    /// A person at the machine holds its stop input, or its emergency button: 1, 0.
    LocalStop,
    /// A person at the machine drives it: 1, 0.
    LocalControl,
    /// Something of the machine does not work: the faults' bits, 0.
    MachineFault,
    /// The machine braked by itself, because the guard was silent for it: 1, 0.
    GuardSilent,
    /// The guard itself came late: the time between two steps and the limit, ms.
    GuardLate,
    /// The machine is faster than the bound and does not slow down: speed and bound, m/s.
    Overspeed,
    /// The machine moves although it is held, or against its gear: speed and limit, m/s.
    Rolling,
    /// The vehicle's camera gives no pictures: 1, 0.
    CameraStopped,
    /// The vehicle's encoders give no slices: 1, 0.
    EncoderStopped,
    /// A person parked the machine: the act's number, 0.
    Parked,
    /// The machine was armed and nobody drove: for how long, and the limit, ms.
    ArmExpired,
    /// A person armed the machine: the act's number, 0.
    Arm,
    /// A person gave throttle: its share and the dead zone.
    Throttle,
    /// The loop age asks for less speed, or no longer does: the age and the limit, ms.
    LoopAge,
    /// The machine stands: how long the manoeuvre took and how far the machine went, s and m.
    Standstill,
    /// A person reset the latched stop: the act's number, the stop.
    Reset,
    /// The machine stood in Driving without any input of a person: for how long, and the limit, ms.
    Unattended,
    /// The machine's speed contradicts its throttle, its own motion or its picture: what was told, and
    /// what is possible, m/s.
    SpeedImplausible,
    /// The vehicle's picture is of one brightness all over, and its owner says that this stops it: 1, 0.
    CameraBlind,
    /// A person found the picture mirrored or the steering wrong: the act's number, 0.
    SteeringWrong,
}

/// What stands in the way of an act.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Blocker {
    /// An act in this mode makes no sense, such as arming what is armed.
    #[default]
    Mode,
    /// A stop is latched: a reset that names it comes first.
    Latched,
    /// The machine moves, or its speed is not known.
    Moving,
    /// The machine says nothing.
    MachineSilent,
    /// A person at the machine holds its stop input or drives it.
    LocalPerson,
    /// Something of the machine does not work.
    MachineFault,
    /// The vehicle proposes nothing.
    VehicleSilent,
    /// There is no session.
    NoSession,
    /// There is no fresh command.
    NoCommand,
    /// The newest command is another console's.
    OtherConsole,
    /// The throttle is not released.
    ThrottlePressed,
    /// No picture that the person saw is young enough.
    PictureAge,
    /// The person is not known to be there with sound inputs.
    PersonAbsent,
    /// The dead-man input is not held.
    DeadMan,
    /// The vehicle's camera or encoders have stopped.
    VehicleTrouble,
    /// The act was under way for too long, or for a time that is not known.
    StaleAct,
    /// The reset names another stop than the latched one.
    OtherStop,
    /// The person who drives names no such successor.
    NotNamed,
    /// The latch of a stop cannot be kept over a restart: the disk refuses it.
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
