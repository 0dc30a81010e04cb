use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use super::bytes::{Reader, Writer};
use super::control::{CONTROLS_BYTES, read_controls, write_controls};
use super::error::Error;
use super::machine::{MACHINE_BYTES, read_machine, write_machine};
use super::payload::{Frame, PAYLOAD_AT, TRAILING_BYTES};
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
    /// before the first.
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
    /// Initial deceleration of a manoeuvre, m/s².
    pub deceleration_begin: f32,
    /// Deceleration at the end of a manoeuvre's ramp, m/s².
    pub deceleration: f32,
    /// Rate at which a manoeuvre's deceleration rises, m/s³.
    pub jerk: f32,
    /// Deceleration of a manoeuvre's turn, rad/s²; 0 of an Ackermann machine.
    pub yaw_deceleration: f32,
    /// Time without a fresh command after which the machine is stopped; `None` from a build that
    /// does not send it.
    pub command_timeout: Option<Duration>,
}

impl Budget {
    /// Returns the budget in these settings.
    pub fn of(config: &Config) -> Self {
        let Config { latency, manoeuvre, .. } = config;
        Self {
            picture_age_max: latency.picture_age_max,
            command_age_max: latency.command_age_max,
            deceleration_begin: manoeuvre.deceleration_begin,
            deceleration: manoeuvre.deceleration,
            jerk: manoeuvre.jerk,
            yaw_deceleration: match config.machine.motion {
                Motion::Ackermann => 0.0,
                Motion::Differential | Motion::Omni => manoeuvre.yaw_deceleration,
            },
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

/// ```text
///  20  tick                u32
///  24  mode                u8
///  25  cause               u8
///  26  value, limit        f32  of the cause
///  34  stop                u32
///  38  latched             u8   0 or 1
///  39  emergency stop      u32  acted on; 0: none
///  43  act's console       u64
///  51  act's number        u32  0: no act was answered
///  55  act's outcome       u8   0 none, 1 done, 2 + blocker: refused
///  56  blockers            u32  a bit each
///  60  holder              u64  0: nobody
///  68  session             u32  0: none
///  72  loop age            u16  ms, all ones: not known
///  74  command age         u16  ms, all ones: not known
///  76  speed bound         f32  m/s
///  80  sideways bound      f32  m/s
///  84  yaw rate bound      f32  rad/s
///  88  motion              u8   0 ackermann, 1 differential, 2 omni
///  89  countdown's cause   u8
///  90  countdown           u16  ms, all ones: none
///  92  limits              u32  a bit each: speed, acceleration, deceleration, steering angle,
///                               steering rate, gear, yaw rate, yaw acceleration, wheel speed
///  96  commands stale      u32
/// 100  ticks refused       u32
/// 104  acts refused        u32
/// 108  controls applied    30 bytes
/// 138  machine's age       u16  ms, all ones: it never spoke
/// 140  measured            u64  nanoseconds by the machine's clock
/// 148  machine             62 bytes
/// 210  black box           u8
/// 211  picture age max     u16  ms
/// 213  command age max     u16  ms
/// 215  deceleration begin  f32  m/s²
/// 219  deceleration        f32  m/s²
/// 223  jerk                f32  m/s³
/// 227  yaw deceleration    f32  rad/s²
/// 231  told                f32 each; NaN: not known
/// 243  command timeout     f32  ms; NaN: not known
/// ```
///
/// The numbers from byte 231 on are one list, which grows at its end only: a new optional number of
/// the machine follows the command timeout.
impl Frame for Status {
    /// "TGS2".
    const DATA_ID: u32 = 0x5447_5332;
    const BYTES: usize = Self::BYTES_LEAST + TRAILING_BYTES * NUMBERS;
    const BYTES_LEAST: usize = PAYLOAD_AT + 88 + CONTROLS_BYTES + 10 + MACHINE_BYTES + 21;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.source
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(self.tick.get());
        writer.u8(self.mode.number());
        writer.u8(self.why.cause.number());
        writer.f32(self.why.value);
        writer.f32(self.why.limit);
        writer.u32(self.stop.get());
        writer.u8(self.is_latched.into());
        writer.u32(ActNumber::to_wire(self.emergency_stop));
        writer.u64(Console::to_wire(self.answer.map(|answer| answer.console)));
        writer.u32(ActNumber::to_wire(self.answer.map(|answer| answer.number)));
        writer.u8(Outcome::to_wire(self.answer.map(|answer| answer.outcome)));
        writer.set(self.blockers);
        writer.u64(Console::to_wire(self.holder));
        writer.u32(Session::to_wire(self.session));
        writer.millis(self.loop_age);
        writer.millis(self.command_age);
        writer.f32(self.speed_bound);
        writer.f32(self.sideways_speed_bound);
        writer.f32(self.yaw_rate_bound);
        writer.u8(self.motion.number());
        writer.u8(self.countdown.map_or(0, |(cause, _)| cause.number()));
        writer.millis(self.countdown.map(|(_, left)| left));
        writer.set(self.limits);
        writer.u32(self.counts.commands_stale);
        writer.u32(self.counts.ticks_refused);
        writer.u32(self.counts.acts_refused);
        write_controls(&self.applied, writer);
        writer.millis(self.machine.map(|(_, age)| age));
        let machine = self.machine.map(|(machine, _)| machine).unwrap_or_default();
        writer.u64(machine.measured_at.as_nanos());
        write_machine(&machine, writer);
        writer.u8(self.black_box.number());
        writer.millis(Some(self.budget.picture_age_max));
        writer.millis(Some(self.budget.command_age_max));
        writer.f32(self.budget.deceleration_begin);
        writer.f32(self.budget.deceleration);
        writer.f32(self.budget.jerk);
        writer.f32(self.budget.yaw_deceleration);
        for number in numbers(&machine.told, self.budget.command_timeout) {
            writer.f32(number.unwrap_or(f32::NAN));
        }
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let tick = Tick::new(reader.u32()).ok_or(reader.value_error(4))?;
        let mode = reader.choice(Mode::from_number)?;
        let cause = reader.choice(Cause::from_number)?;
        let why = Why::new(cause, reader.f32(), reader.f32());
        let stop = Stop::new(reader.u32()).ok_or(reader.value_error(4))?;
        let is_latched = reader.bool()?;
        let emergency_stop = ActNumber::new(reader.u32());
        let answer = read_answer(reader)?;
        let blockers = reader.set()?;
        let (holder, session) = (Console::new(reader.u64()), Session::new(reader.u32()));
        let (loop_age, command_age) = (reader.millis(), reader.millis());
        let speed_bound = reader.f32();
        let (sideways_speed_bound, yaw_rate_bound) = (reader.f32(), reader.f32());
        let motion = reader.choice(Motion::from_number)?;
        let cause = reader.choice(Cause::from_number)?;
        let countdown = reader.millis().map(|left| (cause, left));
        let limits = reader.set()?;
        let counts = Counts {
            commands_stale: reader.u32(),
            ticks_refused: reader.u32(),
            acts_refused: reader.u32(),
        };
        let applied = read_controls(reader)?;
        let (age, measured_at) = (reader.millis(), Instant::from_nanos(reader.u64()));
        let machine = read_machine(measured_at, reader)?;
        let black_box = reader.choice(BlackBox::from_number)?;
        let budget = Budget {
            picture_age_max: reader.millis().ok_or(reader.value_error(2))?,
            command_age_max: reader.millis().ok_or(reader.value_error(2))?,
            deceleration_begin: reader.f32(),
            deceleration: reader.f32(),
            jerk: reader.f32(),
            yaw_deceleration: reader.f32(),
            command_timeout: None,
        };
        let (told, command_timeout) = parts([(); NUMBERS].map(|()| reader.trailing_f32()));
        let budget = Budget { command_timeout, ..budget };
        let machine = MachineState { told, ..machine };
        let machine = age.map(|age| (machine, age));
        Ok(Self {
            source,
            tick,
            mode,
            why,
            stop,
            is_latched,
            emergency_stop,
            answer,
            blockers,
            holder,
            session,
            loop_age,
            command_age,
            speed_bound,
            sideways_speed_bound,
            yaw_rate_bound,
            motion,
            countdown,
            limits,
            counts,
            applied,
            machine,
            black_box,
            budget,
        })
    }
}

/// Returns the optional numbers at the end of a status: those of the machine, with the command
/// timeout in ms at index [`TIMEOUT_AT`].
fn numbers(told: &Reported, command_timeout: Option<Duration>) -> [Option<f32>; NUMBERS] {
    let told = told.numbers();
    core::array::from_fn(|at| match at {
        TIMEOUT_AT => command_timeout.map(|timeout| timeout.as_millis() as f32),
        _ => told[at - usize::from(at > TIMEOUT_AT)],
    })
}

/// Splits the numbers that [`numbers`] joined. A timeout out of range is unknown.
fn parts(numbers: [Option<f32>; NUMBERS]) -> (Reported, Option<Duration>) {
    let told = core::array::from_fn(|at| numbers[at + usize::from(at >= TIMEOUT_AT)]);
    let millis = numbers[TIMEOUT_AT].filter(|millis| (0.0..=TIMEOUT_MOST_MS).contains(millis));
    (Reported::from_numbers(told), millis.map(|millis| Duration::from_millis(millis as u64)))
}

/// Number of optional numbers at the end of a status.
const NUMBERS: usize = Reported::COUNT + 1;
/// Index of the command timeout among the optional numbers of a status: the machine had three
/// numbers when the timeout was added.
const TIMEOUT_AT: usize = 3;
/// Greatest valid command timeout in ms: far above the settings' own limit.
const TIMEOUT_MOST_MS: f32 = 65_535.0;

fn read_answer(reader: &mut Reader<'_>) -> Result<Option<Answer>, Error> {
    let (console, number) = (Console::new(reader.u64()), ActNumber::new(reader.u32()));
    let outcome = reader.choice(Outcome::from_wire)?;
    match (console, number, outcome) {
        (Some(console), Some(number), Some(outcome)) => {
            Ok(Some(Answer { console, number, outcome }))
        }
        (None, None, None) => Ok(None),
        _ => Err(reader.value_error(13)),
    }
}
