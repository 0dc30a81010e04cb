use flatbuffers::FlatBufferBuilder;
use tautline_units::Instant;

use crate::Error;
use crate::fields::choice;
use crate::generated::command::{self as wire_command, Command as Root};
use crate::wire::{Kind, codec, number};

/// What the operator tells the vehicle to do: how to drive, and nothing else.
///
/// One fixed-size struct on the wire and the console's number (schemas/command.fbs): 64 bytes in all.
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
    /// The console that it is from: a number of its own for each loaded page, 0 for none. Who drives
    /// changes with it.
    pub console: u64,
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
        let arguments =
            wire_command::CommandArgs { controls: Some(&controls), console: self.console };
        let root = Root::create(builder, &arguments);
        wire_command::finish_command_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let controls = root.controls();
        Ok(Self {
            sequence: controls.sequence(),
            sent_at: Instant::from_nanos(controls.sent_at_ns()),
            steering: number("steering", controls.steering(), -1.0, 1.0)?,
            throttle: number("throttle", controls.throttle(), 0.0, 1.0)?,
            brake: number("brake", controls.brake(), 0.0, 1.0)?,
            gear: Gear::from_wire(controls.gear())?,
            emergency_stop: controls.emergency_stop(),
            console: root.console(),
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

const KIND: Kind = Kind {
    name: "command",
    identifier: Some(wire_command::COMMAND_IDENTIFIER),
    bytes_max: 256,
    tables_max: 1,
    depth_max: 1,
};
