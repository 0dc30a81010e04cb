use std::f32::consts::PI;

use flatbuffers::FlatBufferBuilder;
use tautline_units::Instant;

use crate::fault::Faults;
use crate::fields::{Choice, Nanos, Number, Plain, Text, choice, fields};
use crate::generated::telemetry::{self as wire_telemetry, Telemetry as Root};
use crate::told::Told;
use crate::wire::{Kind, TEXT_BYTES_MAX, codec, number, text};
use crate::{Error, Fault, Gear, GuardState};

fields! {
    /// How the vehicle moves and who moves it: what a person drives by.
    ///
    /// What is only looked at, a [`Snapshot`](crate::Snapshot) tells.
    #[derive(Clone, PartialEq, Default, Debug)]
    Telemetry of Root<'_>, wire_telemetry::TelemetryArgs, "" {
        /// Counts up by one with each telemetry message of a session.
        sequence: u64 = sequence as Plain,
        /// When the vehicle sent it, vehicle's clock.
        sent_at: Instant = sent_at_ns as Nanos,
        /// Metres per second, negative in reverse; within 200.
        speed: f32 => motion.speed as Number::within(Self::SPEED_MAX),
        /// Radians at the road wheels, left positive; within a half turn.
        steering_angle: f32 => motion.steering_angle as Number::within(PI),
        /// 0 to 1, as applied.
        throttle: f32 => motion.throttle as Number::SHARE,
        /// 0 to 1, as applied.
        brake: f32 => motion.brake as Number::SHARE,
        /// Which way throttle drives, as the machine says.
        gear: Gear = gear as Choice,
        /// Where the vehicle is; `None` if the machine does not know.
        position: Option<Position>,
        /// What of the machine does not work; at most 9.
        faults: Vec<Fault> = faults as Faults,
        /// Who has the vehicle's motion in hand.
        mode: Mode = mode as Choice,
        /// Why the mode is what it is, for the operator's eyes; at most 256 bytes.
        mode_reason: String = mode_reason as Text(TEXT_BYTES_MAX),
        /// What the guard said last; `None` if it never spoke.
        guard: Option<GuardState>,
        /// What the machine tells for people, in the order of the guard's list of it; at most 64.
        told: Vec<Option<f32>> = told as Told,
        /// What is wrong with the source of pictures, in words for the operator; at most 256 bytes, `None` if nothing is.
        source_trouble: Option<String>,
        /// What a person must know of the pictures, a bit each: see the schema.
        sight: u32 = sight as Plain,
    }
}

codec!(Telemetry);

impl Telemetry {
    /// Metres per second that a message has room for: faster than any car.
    pub const SPEED_MAX: f32 = 200.0;
    /// Bytes that each of its texts has room for.
    pub const TEXT_BYTES_MAX: usize = TEXT_BYTES_MAX;

    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let position = self.position.unwrap_or_default();
        let motion = wire_telemetry::Motion::new(
            self.speed,
            self.steering_angle,
            self.throttle,
            self.brake,
            position.x,
            position.y,
            position.heading,
        );
        let mut arguments = wire_telemetry::TelemetryArgs {
            motion: Some(&motion),
            unlocated: self.position.is_none(),
            guard: self.guard.as_ref().map(|guard| guard.write(builder)),
            source_trouble: self.source_trouble.as_ref().map(|words| builder.create_string(words)),
            ..Default::default()
        };
        self.write_listed(&mut arguments, builder);
        let root = Root::create(builder, &arguments);
        wire_telemetry::finish_telemetry_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let motion = root.motion();
        let position = Position { x: motion.x(), y: motion.y(), heading: motion.heading() };
        position.check()?;
        Ok(Self {
            position: (!root.unlocated()).then_some(position),
            guard: root.guard().map(GuardState::read).transpose()?,
            source_trouble: root
                .source_trouble()
                .map(|words| text("source_trouble", words, TEXT_BYTES_MAX))
                .transpose()?,
            ..Self::read_listed(root)?
        })
    }
}

/// Where a vehicle is and points, in the machine's own frame; either coordinate within ten thousand
/// kilometres.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Position {
    /// Metres east.
    pub x: f32,
    /// Metres north.
    pub y: f32,
    /// Radians, counterclockwise from x; not wrapped, within a million.
    pub heading: f32,
}

impl Position {
    /// Returns whether a message has room for it.
    pub fn is_possible(&self) -> bool {
        self.check().is_ok()
    }

    fn check(&self) -> Result<(), Error> {
        number("position.x", self.x, -METRES_MAX, METRES_MAX)?;
        number("position.y", self.y, -METRES_MAX, METRES_MAX)?;
        number("heading", self.heading, -HEADING_MAX, HEADING_MAX)?;
        Ok(())
    }
}

/// Who has the vehicle's motion in hand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Mode {
    /// Nobody drives yet.
    #[default]
    AwaitingOperator,
    /// The operator's commands move the vehicle.
    Driving,
    /// The vehicle brakes by itself.
    Stopping,
    /// The vehicle stands, braked by itself.
    Stopped,
    /// Commands are fresh again, but the pedal has not been let go of since the stop.
    AwaitingRelease,
}

choice!(
    Mode,
    wire_telemetry::Mode,
    "mode",
    [AwaitingOperator, Driving, Stopping, Stopped, AwaitingRelease]
);

/// From the equator to a pole.
const METRES_MAX: f32 = 1e7;
/// Beyond this, single precision no longer tells sixteenths of a radian apart.
const HEADING_MAX: f32 = 1e6;

const KIND: Kind = Kind {
    name: "telemetry",
    identifier: Some(wire_telemetry::TELEMETRY_IDENTIFIER),
    bytes_max: 1024,
    tables_max: 2,
    depth_max: 2,
};
