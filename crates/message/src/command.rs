use flatbuffers::FlatBufferBuilder;
use tautline_units::Instant;

use crate::Error;
use crate::fields::choice;
use crate::generated::command::{self as wire_command, Command as Root};
use crate::wire::{Kind, codec, number};

/// What the operator tells the vehicle to do: how to drive, and nothing else.
///
/// One fixed-size struct on the wire (schemas/command.fbs), and what else is not 0: 56 bytes and more.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Command {
    /// Counts up by one with each command of a session; a lower one is stale.
    pub sequence: u64,
    /// When the operator sent it, operator's clock.
    pub sent_at: Instant,
    /// -1 (full right) to 1 (full left).
    pub steering: f32,
    /// 0 to 1.
    pub throttle: f32,
    /// 0 to 1.
    pub brake: f32,
    /// Which way throttle drives.
    pub gear: Gear,
    /// Stops the vehicle at once, whatever else the command says.
    pub emergency_stop: bool,
    /// The console that it is from: a number of its own for each loaded page, 0 for none.
    pub console: u64,
    /// The guard's tick of the newest picture that the person could see, 0 for none.
    pub cited: u32,
    /// The newest act, until the guard has reported it.
    pub act: Option<Act>,
    /// The number of the newest emergency stop, until the guard has told it; 0 for none.
    pub emergency_stop_number: u32,
    /// What the person's dead-man input says.
    pub dead_man: DeadMan,
    /// What speaks against a person who is there with sound inputs, a bit each: see the schema.
    pub absences: u32,
    /// The console to which this one hands over, 0 for none.
    pub successor: u64,
    /// What is shown and sounded, a bit each: see the schema.
    pub signals: u32,
}

codec!(Command);

impl Command {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let controls = wire_command::Controls::new(
            self.sequence,
            self.sent_at.as_nanos(),
            self.steering,
            self.throttle,
            self.brake,
            self.gear.to_wire(),
            self.emergency_stop,
        );
        let act =
            self.act.map(|act| wire_command::Act::new(act.number, act.stop, act.deed.to_wire()));
        let arguments = wire_command::CommandArgs {
            controls: Some(&controls),
            console: self.console,
            cited: self.cited,
            act: act.as_ref(),
            emergency_stop_number: self.emergency_stop_number,
            dead_man: self.dead_man.to_wire(),
            absences: self.absences,
            successor: self.successor,
            signals: self.signals,
        };
        let root = Root::create(builder, &arguments);
        wire_command::finish_command_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let controls = root.controls();
        let act = root.act().map(|act| {
            let deed = Deed::from_wire(act.deed())?;
            Ok(Act { number: act.number(), stop: act.stop(), deed })
        });
        Ok(Self {
            sequence: controls.sequence(),
            sent_at: Instant::from_nanos(controls.sent_at_ns()),
            steering: number("steering", controls.steering(), -1.0, 1.0)?,
            throttle: number("throttle", controls.throttle(), 0.0, 1.0)?,
            brake: number("brake", controls.brake(), 0.0, 1.0)?,
            gear: Gear::from_wire(controls.gear())?,
            emergency_stop: controls.emergency_stop(),
            console: root.console(),
            cited: root.cited(),
            act: act.transpose()?,
            emergency_stop_number: root.emergency_stop_number(),
            dead_man: DeadMan::from_wire(root.dead_man())?,
            absences: root.absences(),
            successor: root.successor(),
            signals: root.signals(),
        })
    }
}

/// Which way throttle drives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Gear {
    /// Forwards.
    #[default]
    Drive,
    /// Backwards.
    Reverse,
}

choice!(Gear, wire_command::Gear, "gear", [Drive, Reverse]);

/// A deliberate act, repeated with every command until the guard reports it done or refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Act {
    /// Counts up with each act of a console, from 1 on.
    pub number: u32,
    /// The stop that a reset names; else 0.
    pub stop: u32,
    /// What is asked.
    pub deed: Deed,
}

/// What a person asks of the guard, once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Deed {
    /// To be allowed to drive.
    Arm,
    /// To release the latch of a stop, which is named; the machine stays held.
    Reset,
    /// To hold the machine where it stands.
    Park,
    /// To take over from the console that names this one as its successor.
    TakeOver,
    /// To turn the wheels of an armed machine a little to the left, to the right and back.
    CheckSteering,
    /// To note that the person saw the wheels turn as the picture says.
    SteeringAgrees,
    /// To note that the picture is mirrored, or the wheels turned the wrong way: the machine is held until a reset.
    SteeringWrong,
    /// To note that the person cannot see which way the wheels turned.
    SteeringUnseen,
}

choice!(
    Deed,
    wire_command::Deed,
    "deed",
    [Arm, Reset, Park, TakeOver, CheckSteering, SteeringAgrees, SteeringWrong, SteeringUnseen]
);

/// What a dead-man input says.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum DeadMan {
    /// There is none.
    #[default]
    Absent,
    /// A person holds it.
    Held,
    /// Nobody holds it.
    Released,
}

choice!(DeadMan, wire_command::DeadMan, "dead_man", [Absent, Held, Released]);

const KIND: Kind = Kind {
    name: "command",
    identifier: Some(wire_command::COMMAND_IDENTIFIER),
    bytes_max: 256,
    tables_max: 1,
    depth_max: 1,
};
