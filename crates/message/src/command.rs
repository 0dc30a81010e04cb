use flatbuffers::FlatBufferBuilder;
use tautline_units::Instant;

use crate::Error;
use crate::generated::command::{self as wire_command, Command as Root};
use crate::wire::{Kind, choice, codec, length, number, within};

/// What the operator tells the vehicle to do.
///
/// All but the last two is one fixed-size struct on the wire (schemas/command.fbs): 56 bytes in all, and
/// with strips about 8 for each.
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
    /// Bit n set: strip n's next slice should be an IDR.
    pub refresh_strips: u8,
    /// What the operator has received of each strip, by the strip's number.
    pub strips: [Option<StripReport>; Command::STRIPS_MAX],
    /// How many pictures the camera is to pass over after each that it takes, at most
    /// [`PASS_OVER_MAX`](Self::PASS_OVER_MAX): what the screen cannot keep up with would only be late.
    pub pass_over: u8,
}

/// What the operator has received of one strip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StripReport {
    /// The newest picture shown, as the vehicle's camera numbers it.
    pub newest: u32,
    /// How many pictures before that one the newest lies that was decoded as its encoder has it, at
    /// most 254; none if there is none so near.
    pub whole_before: Option<u8>,
    /// Likewise of the newest one that did not come.
    pub lost_before: Option<u8>,
}

codec!(Command);

impl Command {
    /// The strips that can be told of.
    pub const STRIPS_MAX: usize = 8;
    /// More would leave too few pictures to drive by.
    pub const PASS_OVER_MAX: u8 = 7;

    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let controls = wire_command::Controls::new(
            self.sequence,
            self.sent_at.as_nanos(),
            self.steering,
            self.throttle,
            self.brake,
            self.gear.to_wire(),
            self.emergency_stop,
            self.refresh_strips,
        );
        let strips: Vec<_> = (0..)
            .zip(&self.strips)
            .filter_map(|(strip, report)| report.as_ref().map(|report| report.to_wire(strip)))
            .collect();
        let strips = (!strips.is_empty()).then(|| builder.create_vector(&strips));
        let arguments = wire_command::CommandArgs {
            controls: Some(&controls),
            strips,
            pass_over: self.pass_over,
        };
        let root = Root::create(builder, &arguments);
        wire_command::finish_command_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let controls = root.controls();
        let mut strips = [None; Self::STRIPS_MAX];
        let reports = root.strips().unwrap_or_default();
        length("strips", reports.len(), Self::STRIPS_MAX)?;
        for report in reports {
            let last = Self::STRIPS_MAX as u16 - 1;
            let strip = within("strips.strip", report.strip().into(), 0, last)?;
            strips[usize::from(strip)] = Some(StripReport::from_wire(report));
        }
        Ok(Self {
            sequence: controls.sequence(),
            sent_at: Instant::from_nanos(controls.sent_at_ns()),
            steering: number("steering", controls.steering(), -1.0, 1.0)?,
            throttle: number("throttle", controls.throttle(), 0.0, 1.0)?,
            brake: number("brake", controls.brake(), 0.0, 1.0)?,
            gear: Gear::from_wire(controls.gear())?,
            emergency_stop: controls.emergency_stop(),
            refresh_strips: controls.refresh_strips(),
            strips,
            pass_over: within("pass_over", root.pass_over().into(), 0, Self::PASS_OVER_MAX.into())?
                as u8,
        })
    }
}

impl StripReport {
    /// Whether the newest picture shown differs from what the encoder has: nothing was decoded as
    /// meant since the last loss.
    pub fn is_damaged(&self) -> bool {
        let far = |pictures: Option<u8>| pictures.unwrap_or(FAR);
        far(self.whole_before) > far(self.lost_before)
    }

    fn to_wire(self, strip: u8) -> wire_command::StripReport {
        let before = |pictures: Option<u8>| pictures.unwrap_or(FAR);
        let (whole, lost) = (before(self.whole_before), before(self.lost_before));
        wire_command::StripReport::new(self.newest, strip, whole, lost)
    }

    fn from_wire(wire: &wire_command::StripReport) -> Self {
        let before = |pictures: u8| (pictures != FAR).then_some(pictures);
        Self {
            newest: wire.newest(),
            whole_before: before(wire.whole_before()),
            lost_before: before(wire.lost_before()),
        }
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

/// Stands for no picture so near.
const FAR: u8 = u8::MAX;

const KIND: Kind = Kind {
    name: "command",
    identifier: Some(wire_command::COMMAND_IDENTIFIER),
    bytes_max: 256,
    tables_max: 1,
    depth_max: 1,
};
