use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use super::bytes::{Reader, Writer, flag, from_millis, set, to_millis};
use super::error::Error;
use super::payload::Frame;
use super::{control, layout, machine};
use crate::act::{Answer, Blockers, Outcome};
use crate::config::Config;
use crate::envelope::Limits;
use crate::identity::{ActNumber, Console, Session, Stop, Tick};
use crate::set::numbered;
use crate::{Cause, Controls, MachineState, Mode, Motion, Reported, Why};

/// Status from the guard to the vehicle, sent every step. The vehicle stamps pictures with the
/// newest tick and forwards the rest to the person.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Status {
    /// Time of sending, by the guard's clock.
    pub source: Instant,
    /// Newest tick of the guard.
    pub tick: Tick,
    /// Current mode.
    pub mode: Mode,
    /// Reason for the mode, with its numbers.
    pub why: Why,
    /// Newest stop: the current one, or the last; after a start, a number that no stop had yet.
    pub stop: Stop,
    /// `true` while the newest stop is latched, until a person resets it by its name; if latches
    /// are stored, only once the latch is.
    pub is_latched: bool,
    /// Newest emergency stop that was acted on and, if latches are stored, whose latch is; `None`
    /// before the first.
    pub emergency_stop: Option<ActNumber>,
    /// Answer to the newest other act; `None` before the first.
    pub answer: Option<Answer>,
    /// Conditions that prevent arming; empty if it is possible, only [`Blocker::Mode`] while the
    /// machine is armed or driven.
    ///
    /// [`Blocker::Mode`]: crate::act::Blocker::Mode
    pub blockers: Blockers,
    /// Console that armed the machine or took it over; `None` while the machine is held.
    pub holder: Option<Console>,
    /// Session in which the holder armed the machine or took it over; `None` while the machine is
    /// held.
    pub session: Option<Session>,
    /// Worst age, over the last picture interval, of the newest picture that a person saw; `None`
    /// before the first of the present session and console.
    pub loop_age: Option<Duration>,
    /// Time since the newest command that was fresh on arrival was sent; `None` before the first.
    pub command_age: Option<Duration>,
    /// Maximum speed allowed now, m/s.
    pub speed_bound: f32,
    /// Maximum sideways speed allowed now, m/s; 0 unless the machine is omni.
    pub sideways_speed_bound: f32,
    /// Maximum yaw rate allowed now, rad/s; 0 of an Ackermann machine.
    pub yaw_rate_bound: f32,
    /// Kind of the machine's motion: which set points a command must have.
    pub motion: Motion,
    /// Cause of the next stop if no more input arrives, picture age or command timeout, and the
    /// time until then; `None` unless the machine is armed or driven.
    pub countdown: Option<(Cause, Duration)>,
    /// Limits that changed the commanded controls in this step.
    pub limits: Limits,
    /// Counts of refused input since the guard's start.
    pub counts: Counts,
    /// Controls sent to the machine in this step.
    pub applied: Controls,
    /// Newest state of the machine and its age; `None` before the first.
    pub machine: Option<(MachineState, Duration)>,
    /// State of the black box's recording.
    pub black_box: BlackBox,
    /// Settings that the vehicle and the operator must observe.
    pub budget: Budget,
}

numbered! {
    /// State of the recording of the guard's actions; the guard forwards it and makes no decision
    /// by it.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
    pub enum BlackBox {
        /// There is no recorder.
        #[default]
        Absent = 0,
        /// Everything is recorded.
        Records = 1,
        /// Nothing is recorded: the disk is full.
        DiskFull = 2,
        /// Nothing is recorded: the disk refuses writes.
        DiskRefuses = 3,
        /// Some data is not recorded: the disk is too slow.
        DiskBehind = 4,
        /// Nothing is recorded any more: the recorder has ended.
        Ended = 5,
    }
}

impl Status {
    /// Age from which a machine's last state says nothing about its present motion; a machine sends
    /// its state every 10 ms.
    pub const MACHINE_AGE_MAX: Duration = Duration::from_millis(300);

    /// Returns the machine's state, if its age is below [`MACHINE_AGE_MAX`](Self::MACHINE_AGE_MAX).
    pub fn fresh_machine(&self) -> Option<&MachineState> {
        let (machine, age) = self.machine.as_ref()?;
        (*age < Self::MACHINE_AGE_MAX).then_some(machine)
    }
}

/// The guard's settings that other processes observe, so that there is one latency budget and one
/// promised braking distance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    /// Maximum transit time of a picture to the person; an older picture is not shown.
    pub picture_age_max: Duration,
    /// Maximum transit time of a command that counts as fresh.
    pub command_age_max: Duration,
    /// Initial deceleration of a manoeuvre, m/s²; it is higher if the brake is already applied
    /// harder, and in an emergency stop.
    pub deceleration_begin: f32,
    /// Deceleration at the end of a manoeuvre's ramp, m/s².
    pub deceleration: f32,
    /// Rate at which a manoeuvre's deceleration rises, m/s³.
    pub jerk: f32,
    /// Deceleration of a manoeuvre's turn, rad/s²; 0 of an Ackermann machine.
    pub yaw_deceleration: f32,
    /// Maximum speed of the envelope, m/s.
    pub speed_max: f32,
    /// Maximum reverse speed of the envelope, m/s.
    pub reverse_speed_max: f32,
    /// Maximum sideways speed of the envelope, m/s; 0 unless the machine is omni.
    pub sideways_speed_max: f32,
    /// Maximum yaw rate of the envelope, rad/s; 0 of an Ackermann machine.
    pub yaw_rate_max: f32,
    /// Time without a fresh command after which the machine is stopped; `None` from a build that
    /// does not send it.
    pub command_timeout: Option<Duration>,
}

impl Budget {
    /// Returns the budget in these settings.
    pub fn of(config: &Config) -> Self {
        let Config { latency, manoeuvre, envelope, machine, .. } = config;
        let of = |kinds: &[Motion], value: f32| match kinds.contains(&machine.motion) {
            true => value,
            false => 0.0,
        };
        let turning = [Motion::Differential, Motion::Omni];
        Self {
            picture_age_max: latency.picture_age_max,
            command_age_max: latency.command_age_max,
            deceleration_begin: manoeuvre.deceleration_begin,
            deceleration: manoeuvre.deceleration,
            jerk: manoeuvre.jerk,
            yaw_deceleration: of(&turning, manoeuvre.yaw_deceleration),
            speed_max: envelope.speed_max,
            reverse_speed_max: envelope.reverse_speed_max,
            sideways_speed_max: of(&[Motion::Omni], envelope.sideways_speed_max),
            yaw_rate_max: of(&turning, envelope.yaw_rate_max),
            command_timeout: Some(latency.command_timeout),
        }
    }
}

/// Counts of input that a guard refused since it started; they stay at their maximum.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Counts {
    /// Number of commands older than `command_age_max`, or of unknown age.
    pub commands_stale: u32,
    /// Number of cited ticks that were never issued, are too old, or lie before one cited earlier.
    pub ticks_refused: u32,
    /// Number of acts refused.
    pub acts_refused: u32,
}

impl Frame for Status {
    const DATA_ID: u32 = layout::Status::DATA_ID;
    const BYTES: usize = layout::Status::BYTES;
    const BYTES_LEAST: usize = layout::Status::BYTES_LEAST;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.source
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let Self { answer, budget, counts, .. } = self;
        let machine = self.machine.map(|(machine, _)| machine).unwrap_or_default();
        let raw = layout::Status {
            tick: self.tick.get(),
            mode: self.mode.number(),
            cause: self.why.cause.number(),
            value: self.why.value,
            limit: self.why.limit,
            stop: self.stop.get(),
            latched: self.is_latched.into(),
            emergency_stop: ActNumber::to_wire(self.emergency_stop),
            acts_console: Console::to_wire(answer.map(|answer| answer.console)),
            acts_number: ActNumber::to_wire(answer.map(|answer| answer.number)),
            acts_outcome: Outcome::to_wire(answer.map(|answer| answer.outcome)),
            blockers: self.blockers.bits(),
            holder: Console::to_wire(self.holder),
            session: Session::to_wire(self.session),
            loop_age: to_millis(self.loop_age),
            command_age: to_millis(self.command_age),
            speed_bound: self.speed_bound,
            sideways_speed_bound: self.sideways_speed_bound,
            yaw_rate_bound: self.yaw_rate_bound,
            motion: self.motion.number(),
            countdowns_cause: self.countdown.map_or(0, |(cause, _)| cause.number()),
            countdown: to_millis(self.countdown.map(|(_, left)| left)),
            limits: self.limits.bits(),
            commands_stale: counts.commands_stale,
            ticks_refused: counts.ticks_refused,
            acts_refused: counts.acts_refused,
            applied: control::to_raw(&self.applied),
            machines_age: to_millis(self.machine.map(|(_, age)| age)),
            measured: machine.measured_at.as_nanos(),
            machine: machine::to_raw(&machine),
            black_box: self.black_box.number(),
            picture_age_max: to_millis(Some(budget.picture_age_max)),
            command_age_max: to_millis(Some(budget.command_age_max)),
            deceleration_begin: budget.deceleration_begin,
            deceleration: budget.deceleration,
            jerk: budget.jerk,
            yaw_deceleration: budget.yaw_deceleration,
            speed_max: budget.speed_max,
            reverse_speed_max: budget.reverse_speed_max,
            sideways_speed_max: budget.sideways_speed_max,
            yaw_rate_max: budget.yaw_rate_max,
            numbers: numbers(&machine.told, budget.command_timeout),
        };
        raw.write(writer);
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        type Raw = layout::Status;
        let raw = Raw::read(reader);
        let wrong = |at| Error::Value { at };
        let cause = |number, at| Cause::from_number(number).ok_or(wrong(at));
        let countdowns_cause = cause(raw.countdowns_cause, Raw::COUNTDOWNS_CAUSE_AT)?;
        let measured_at = Instant::from_nanos(raw.measured);
        let machine = machine::from_raw(&raw.machine, Raw::MACHINE_AT, measured_at, reader)?;
        let (told, command_timeout) = parts(raw.numbers);
        let machine = MachineState { told, ..machine };
        Ok(Self {
            source,
            tick: Tick::new(raw.tick).ok_or(wrong(Raw::TICK_AT))?,
            mode: Mode::from_number(raw.mode).ok_or(wrong(Raw::MODE_AT))?,
            why: Why::new(cause(raw.cause, Raw::CAUSE_AT)?, raw.value, raw.limit),
            stop: Stop::new(raw.stop).ok_or(wrong(Raw::STOP_AT))?,
            is_latched: flag(raw.latched, Raw::LATCHED_AT)?,
            emergency_stop: ActNumber::new(raw.emergency_stop),
            answer: answer(&raw)?,
            blockers: set(raw.blockers, Raw::BLOCKERS_AT)?,
            holder: Console::new(raw.holder),
            session: Session::new(raw.session),
            loop_age: from_millis(raw.loop_age),
            command_age: from_millis(raw.command_age),
            speed_bound: raw.speed_bound,
            sideways_speed_bound: raw.sideways_speed_bound,
            yaw_rate_bound: raw.yaw_rate_bound,
            motion: Motion::from_number(raw.motion).ok_or(wrong(Raw::MOTION_AT))?,
            countdown: from_millis(raw.countdown).map(|left| (countdowns_cause, left)),
            limits: set(raw.limits, Raw::LIMITS_AT)?,
            counts: Counts {
                commands_stale: raw.commands_stale,
                ticks_refused: raw.ticks_refused,
                acts_refused: raw.acts_refused,
            },
            applied: control::from_raw(&raw.applied, Raw::APPLIED_AT)?,
            machine: from_millis(raw.machines_age).map(|age| (machine, age)),
            black_box: BlackBox::from_number(raw.black_box).ok_or(wrong(Raw::BLACK_BOX_AT))?,
            budget: budget(&raw, command_timeout)?,
        })
    }
}

fn budget(raw: &layout::Status, command_timeout: Option<Duration>) -> Result<Budget, Error> {
    let millis = |millis, at| from_millis(millis).ok_or(Error::Value { at });
    Ok(Budget {
        picture_age_max: millis(raw.picture_age_max, layout::Status::PICTURE_AGE_MAX_AT)?,
        command_age_max: millis(raw.command_age_max, layout::Status::COMMAND_AGE_MAX_AT)?,
        deceleration_begin: raw.deceleration_begin,
        deceleration: raw.deceleration,
        jerk: raw.jerk,
        yaw_deceleration: raw.yaw_deceleration,
        speed_max: raw.speed_max,
        reverse_speed_max: raw.reverse_speed_max,
        sideways_speed_max: raw.sideways_speed_max,
        yaw_rate_max: raw.yaw_rate_max,
        command_timeout,
    })
}

fn answer(raw: &layout::Status) -> Result<Option<Answer>, Error> {
    let wrong = Error::Value { at: layout::Status::ACTS_OUTCOME_AT };
    let (console, number) = (Console::new(raw.acts_console), ActNumber::new(raw.acts_number));
    match (console, number, Outcome::from_wire(raw.acts_outcome).ok_or(wrong)?) {
        (Some(console), Some(number), Some(outcome)) => {
            Ok(Some(Answer { console, number, outcome }))
        }
        (None, None, None) => Ok(None),
        _ => Err(wrong),
    }
}

/// Returns the optional numbers at the end of a status: those of the machine, with the command
/// timeout in ms at index [`TIMEOUT_AT`].
fn numbers(told: &Reported, command_timeout: Option<Duration>) -> [f32; NUMBERS] {
    let told = told.numbers();
    let number = |at| match at {
        TIMEOUT_AT => command_timeout.map(|timeout| timeout.as_millis() as f32),
        _ => told[at - usize::from(at > TIMEOUT_AT)],
    };
    core::array::from_fn(|at| number(at).unwrap_or(f32::NAN))
}

/// Splits the numbers that [`numbers`] joined. A timeout out of range is unknown.
fn parts(numbers: [f32; NUMBERS]) -> (Reported, Option<Duration>) {
    let told = core::array::from_fn(|at| Some(numbers[at + usize::from(at >= TIMEOUT_AT)]));
    let millis = Some(numbers[TIMEOUT_AT]).filter(|it| (0.0..=TIMEOUT_MOST_MS).contains(it));
    (Reported::from_numbers(told), millis.map(|millis| Duration::from_millis(millis as u64)))
}

/// Number of optional numbers at the end of a status.
const NUMBERS: usize = Reported::COUNT + 1;
/// Index of the command timeout among the optional numbers of a status: the machine had three
/// numbers when the timeout was added.
const TIMEOUT_AT: usize = 3;
/// Greatest valid command timeout in ms: far above the settings' own limit.
const TIMEOUT_MOST_MS: f32 = 65_535.0;
