use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use super::bytes::{Reader, Writer};
use super::control::{CONTROLS_BYTES, read_controls, write_controls};
use super::{Error, Frame, PAYLOAD_AT};
use crate::Controls;
use crate::act::{Act, Deed};
use crate::identity::{ActNumber, Console, Session, Stop, Tick};
use crate::set::{Set, numbered};

/// What the vehicle proposes to the guard, every 10 ms, also when nothing is new.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Proposal {
    /// When, by the vehicle's clock.
    pub source: Instant,
    /// The session that lives, if one does.
    pub session: Option<Session>,
    /// What of the vehicle does not work.
    pub troubles: Troubles,
    /// The newest authentic command of this session.
    pub command: Option<Command>,
    /// The number of the newest emergency stop that anybody authentic asked for; it counts
    /// whatever its age, once.
    pub emergency_stop: Option<ActNumber>,
    /// The newest other act, until the guard answers it.
    pub act: Option<Act>,
}

/// What one authentic command asks for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Command {
    /// Counts up within a session.
    pub sequence: u64,
    /// Whose command.
    pub console: Console,
    /// The console to which this one hands over, if it does.
    pub successor: Option<Console>,
    /// Where steering, pedals and gear are to be, and which signals are given; the parking brake is
    /// the guard's.
    pub controls: Controls,
    /// What the person's dead-man input says.
    pub dead_man: DeadMan,
    /// What speaks against a person who is there with sound inputs.
    pub absences: Absences,
    /// The stamp of the newest picture that the person could see.
    pub cited: Option<Tick>,
    /// For how long it had been under way at the proposal's source time, with the error of the
    /// estimated clock added; `None` while that is not known.
    pub age: Option<Duration>,
}

numbered! {
    /// What a dead-man input says.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum DeadMan {
        /// There is none.
        #[default]
        Absent = 0,
        /// A person holds it.
        Held = 1,
        /// Nobody holds it.
        Released = 2,
    }
}

numbered! {
    /// What speaks against a person who is there with sound inputs.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Absence {
        /// The console has gone: the operator knows of no page.
        ConsoleGone = 0,
        /// The page is hidden or frozen.
        PageHidden = 1,
        /// The page does not have the keyboard.
        FocusLost = 2,
        /// An input is not sound, such as a pad whose time stands still.
        InputsUnhealthy = 3,
        /// Something that only a later build has a name for.
        Unknown = 4,
    }
}

/// What speaks against a person who is there with sound inputs.
pub type Absences = Set<Absence>;

impl Absences {
    /// Returns the set of these bits, of which one that has no name here is [`Absence::Unknown`].
    pub fn from_any_bits(bits: u32) -> Self {
        let known: Self = Absence::ALL.iter().copied().collect();
        let named = Self::from_bits(bits & known.bits()).unwrap_or_default();
        named.with_if(Absence::Unknown, bits & !known.bits() != 0)
    }
}

numbered! {
    /// What of a vehicle does not work.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    pub enum Trouble {
        /// The camera gives no pictures.
        Camera = 0,
        /// The encoders give no slices.
        Encoder = 1,
        /// What is to be recorded is not.
        Recorder = 2,
        /// Something else, which the vehicle's log names.
        Other = 3,
        /// The picture is of one brightness all over, and the owner says that this stops the machine.
        Blind = 4,
        /// The picture moves as a whole although the machine says that it stands, and the owner says that this stops it.
        Motion = 5,
    }
}

/// What of a vehicle does not work.
pub type Troubles = Set<Trouble>;

/// ```text
///  20  session             u32  0: none lives
///  24  troubles            u32  a bit each: camera, encoder, recorder, other, blind, motion
///  28  sequence            u64  of the command
///  36  console             u64  0: there is no command, and what else is the command's is 0
///  44  successor           u64  0: none
///  52  controls            18 bytes
///  70  dead man            u8   0 absent, 1 held, 2 released
///  71  absences            u32  a bit each: console gone, page hidden, focus lost, inputs unhealthy,
///                               unknown, which every other bit counts as
///  75  cited               u32  0: none
///  79  age of the command  u16  ms, all ones: not known
///  81  emergency stop      u32  0: none
///  85  act's console       u64
///  93  act's number        u32  0: there is no act, and what else is the act's is 0
///  97  act's deed          u8   1 arm, 2 reset, 3 park, 4 take over, 5 check the steering,
///                               6 steering agrees, 7 is wrong, 8 is unseen
///  98  act's stop          u32  of a reset; else 0
/// 102  age of the act      u16  ms, all ones: not known
/// ```
impl Frame for Proposal {
    /// "TGP1".
    const DATA_ID: u32 = 0x5447_5031;
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

/// Bytes of an act.
const ACT_BYTES: usize = 19;
