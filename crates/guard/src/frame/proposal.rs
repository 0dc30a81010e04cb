use core::time::Duration;

use serde::{Deserialize, Serialize};
use tautline_units::Instant;

use super::bytes::{Reader, Writer, from_millis, set, to_millis};
use super::error::Error;
use super::payload::Frame;
use super::{control, layout};
use crate::Controls;
use crate::act::{Act, Deed};
use crate::identity::{ActNumber, Console, Session, Tick};
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
    /// Requested set points, axes and actions; the guard alone sets the parking brake.
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

impl Frame for Proposal {
    const DATA_ID: u32 = layout::Proposal::DATA_ID;
    const BYTES: usize = layout::Proposal::BYTES;
    type Bytes = [u8; Self::BYTES];
    const ZEROS: Self::Bytes = [0; Self::BYTES];

    fn source(&self) -> Instant {
        self.source
    }

    fn write(&self, writer: &mut Writer<'_>) {
        let command = self.command.as_ref();
        let (action, argument) = self.act.map_or((0, 0), |act| act.deed.to_wire());
        let raw = layout::Proposal {
            session: Session::to_wire(self.session),
            troubles: self.troubles.bits(),
            sequence: command.map_or(0, |command| command.sequence),
            console: Console::to_wire(command.map(|command| command.console)),
            successor: Console::to_wire(command.and_then(|command| command.successor)),
            controls: control::to_raw(&command.map(|it| it.controls).unwrap_or_default()),
            dead_man: command.map(|command| command.dead_man).unwrap_or_default().number(),
            absences: command.map(|command| command.absences).unwrap_or_default().bits(),
            cited_tick: Tick::to_wire(command.and_then(|command| command.cited)),
            age_of_the_command: command.map_or(0, |command| to_millis(command.age)),
            emergency_stop: ActNumber::to_wire(self.emergency_stop),
            acts_console: Console::to_wire(self.act.map(|act| act.console)),
            acts_number: ActNumber::to_wire(self.act.map(|act| act.number)),
            acts_action: action,
            acts_argument: argument,
            age_of_the_act: self.act.map_or(0, |act| to_millis(act.age)),
        };
        raw.write(writer);
    }

    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let raw = layout::Proposal::read(reader);
        Ok(Self {
            source,
            session: Session::new(raw.session),
            troubles: set(raw.troubles, layout::Proposal::TROUBLES_AT)?,
            command: command(&raw)?,
            emergency_stop: ActNumber::new(raw.emergency_stop),
            act: act(&raw)?,
        })
    }
}

fn command(raw: &layout::Proposal) -> Result<Option<Command>, Error> {
    let controls = control::from_raw(&raw.controls, layout::Proposal::CONTROLS_AT)?;
    let at = layout::Proposal::DEAD_MAN_AT;
    let dead_man = DeadMan::from_number(raw.dead_man).ok_or(Error::Value { at })?;
    Ok(Console::new(raw.console).map(|console| Command {
        sequence: raw.sequence,
        console,
        successor: Console::new(raw.successor),
        controls,
        dead_man,
        absences: Absences::from_any_bits(raw.absences),
        cited: Tick::new(raw.cited_tick),
        age: from_millis(raw.age_of_the_command),
    }))
}

fn act(raw: &layout::Proposal) -> Result<Option<Act>, Error> {
    let (console, number) = (Console::new(raw.acts_console), ActNumber::new(raw.acts_number));
    let age = from_millis(raw.age_of_the_act);
    match (console, number, Deed::from_wire(raw.acts_action, raw.acts_argument)) {
        (Some(console), Some(number), Some(deed)) => Ok(Some(Act { console, number, deed, age })),
        (None, None, None) if raw.acts_action == 0 && raw.acts_argument == 0 => Ok(None),
        _ => Err(Error::Value { at: layout::Proposal::ACTS_ACTION_AT }),
    }
}
