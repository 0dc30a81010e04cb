use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use super::bytes::{Reader, Writer};
use super::control::{CONTROLS_BYTES, read_controls, write_controls};
use super::error::Error;
use super::payload::{Frame, PAYLOAD_AT};
use crate::Controls;
use crate::act::{Act, Deed};
use crate::identity::{ActNumber, Console, Session, Stop, Tick};
use crate::set::{Set, numbered};

/// Proposal from the vehicle to the guard, sent every 10 ms even if nothing is new.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Proposal {
    /// Time of sending, by the vehicle's clock.
    pub source: Instant,
    /// Current session, if there is one.
    pub session: Option<Session>,
    /// Malfunctions of the vehicle.
    pub troubles: Troubles,
    /// Newest authentic command of this session; `None` before the first.
    pub command: Option<Command>,
    /// Number of the newest emergency stop from any authentic sender; each number counts once, at
    /// any age. `None` before the first.
    pub emergency_stop: Option<ActNumber>,
    /// Newest other act, until the guard answers it.
    pub act: Option<Act>,
}

/// One authentic command.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Command {
    /// Sequence number, rising within a session.
    pub sequence: u64,
    /// Console that sent the command.
    pub console: Console,
    /// Console to which the sending console hands over; `None` if it hands over to none.
    pub successor: Option<Console>,
    /// Requested steering, pedals, gear and signals; the guard alone sets the parking brake.
    pub controls: Controls,
    /// State of the person's dead-man input.
    pub dead_man: DeadMan,
    /// Reasons why the person does not count as present with healthy inputs.
    pub absences: Absences,
    /// Stamp of the newest picture that the person could see; `None` before the first.
    pub cited: Option<Tick>,
    /// Transit time at the proposal's source time, including the error of the clock estimate;
    /// `None` if unknown.
    pub age: Option<Duration>,
}

numbered! {
    /// State of a dead-man input.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum DeadMan {
        /// The console has no dead-man input.
        #[default]
        Absent = 0,
        /// A person holds the dead-man input.
        Held = 1,
        /// There is a dead-man input, and nobody holds it.
        Released = 2,
    }
}

numbered! {
    /// A reason why a person does not count as present with healthy inputs.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Absence {
        /// The console has gone: the operator has no page.
        ConsoleGone = 0,
        /// The page is hidden or frozen.
        PageHidden = 1,
        /// The page does not have the keyboard focus.
        FocusLost = 2,
        /// An input is unhealthy, such as a pad whose time stamp no longer changes.
        InputsUnhealthy = 3,
        /// A reason that only a later build knows by name.
        Unknown = 4,
    }
}

/// A set of reasons why a person does not count as present with healthy inputs.
pub type Absences = Set<Absence>;

impl Absences {
    /// Returns the set of these bits; bits without a name here become [`Absence::Unknown`].
    pub fn from_any_bits(bits: u32) -> Self {
        let known: Self = Absence::ALL.iter().copied().collect();
        let named = Self::from_bits(bits & known.bits()).unwrap_or_default();
        named.with_if(Absence::Unknown, bits & !known.bits() != 0)
    }
}

numbered! {
    /// A malfunction of a vehicle.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Trouble {
        /// The camera delivers no pictures.
        Camera = 0,
        /// The encoders deliver no slices.
        Encoder = 1,
        /// Recording is configured but does not work.
        Recorder = 2,
        /// Another malfunction, named in the vehicle's log.
        Other = 3,
        /// The picture has one brightness everywhere, and the owner configured that as a stop.
        Blind = 4,
        /// The complete picture moves although the machine reports standstill, and the owner
        /// configured that as a stop.
        Motion = 5,
    }
}

/// A set of malfunctions of a vehicle.
pub type Troubles = Set<Trouble>;

/// ```text
///  20  session             u32  0: there is none
///  24  troubles            u32  a bit each: camera, encoder, recorder, other, blind, motion
///  28  sequence            u64  of the command
///  36  console             u64  0: there is no command, and what else is the command's is 0
///  44  successor           u64  0: none
///  52  controls            30 bytes
///  82  dead man            u8   0 absent, 1 held, 2 released
///  83  absences            u32  a bit each: console gone, page hidden, focus lost, inputs unhealthy,
///                               unknown, which every other bit counts as
///  87  cited               u32  0: none
///  91  age of the command  u16  ms, all ones: not known
///  93  emergency stop      u32  0: none
///  97  act's console       u64
/// 105  act's number        u32  0: there is no act, and what else is the act's is 0
/// 109  act's deed          u8   1 arm, 2 reset, 3 park, 4 take over, 5 check the steering,
///                               6 steering agrees, 7 is wrong, 8 is unseen
/// 110  act's stop          u32  of a reset; else 0
/// 114  age of the act      u16  ms, all ones: not known
/// ```
impl Frame for Proposal {
    /// "TGP2".
    const DATA_ID: u32 = 0x5447_5032;
    const BYTES: usize = PAYLOAD_AT + 66 + CONTROLS_BYTES;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.source
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.u32(Session::to_wire(self.session));
        writer.set(self.troubles);
        let command = self.command.as_ref();
        writer.u64(command.map_or(0, |command| command.sequence));
        writer.u64(Console::to_wire(command.map(|command| command.console)));
        writer.u64(Console::to_wire(command.and_then(|command| command.successor)));
        write_controls(&command.map(|command| command.controls).unwrap_or_default(), writer);
        writer.u8(command.map(|command| command.dead_man).unwrap_or_default().number());
        writer.set(command.map(|command| command.absences).unwrap_or_default());
        writer.u32(Tick::to_wire(command.and_then(|command| command.cited)));
        writer.millis(command.map_or(Some(Duration::ZERO), |command| command.age));
        writer.u32(ActNumber::to_wire(self.emergency_stop));
        writer.u64(Console::to_wire(self.act.map(|act| act.console)));
        writer.u32(ActNumber::to_wire(self.act.map(|act| act.number)));
        let (deed, stop) = self.act.map_or((0, None), |act| act.deed.to_wire());
        writer.u8(deed);
        writer.u32(Stop::to_wire(stop));
        writer.millis(self.act.map_or(Some(Duration::ZERO), |act| act.age));
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let (session, troubles) = (Session::new(reader.u32()), reader.set()?);
        let command = read_command(reader)?;
        let emergency_stop = ActNumber::new(reader.u32());
        let act = read_act(reader)?;
        Ok(Self { source, session, troubles, command, emergency_stop, act })
    }
}

fn read_command(reader: &mut Reader<'_>) -> Result<Option<Command>, Error> {
    let (sequence, console) = (reader.u64(), Console::new(reader.u64()));
    let successor = Console::new(reader.u64());
    let controls = read_controls(reader)?;
    let dead_man = reader.choice(DeadMan::from_number)?;
    let absences = Absences::from_any_bits(reader.u32());
    let (cited, age) = (Tick::new(reader.u32()), reader.millis());
    Ok(console.map(|console| Command {
        sequence,
        console,
        successor,
        controls,
        dead_man,
        absences,
        cited,
        age,
    }))
}

fn read_act(reader: &mut Reader<'_>) -> Result<Option<Act>, Error> {
    let (console, number) = (Console::new(reader.u64()), ActNumber::new(reader.u32()));
    let (deed, stop) = (reader.u8(), Stop::new(reader.u32()));
    let age = reader.millis();
    match (console, number, Deed::from_wire(deed, stop)) {
        (Some(console), Some(number), Some(deed)) => Ok(Some(Act { console, number, deed, age })),
        (None, None, None) if deed == 0 && stop.is_none() => Ok(None),
        _ => Err(reader.value_error(ACT_BYTES)),
    }
}

/// Size of an act in a proposal, in bytes.
const ACT_BYTES: usize = 19;
