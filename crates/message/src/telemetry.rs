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
    /// Vehicle state that a person needs for driving: its motion and who controls it.
    ///
    /// Values that are only displayed are in a [`Snapshot`](crate::Snapshot).
    #[derive(Clone, PartialEq, Default, Debug)]
    Telemetry of Root<'_>, wire_telemetry::TelemetryArgs, "" {
        /// Sequence number, increased by one with each telemetry message of a session.
        sequence: u64 = sequence as Plain,
        /// Time at which the vehicle sent it, on the vehicle's clock.
        sent_at: Instant = sent_at_ns as Nanos,
        /// Speed in metres per second, negative in reverse; within 200.
        speed: f32 => motion.speed as Number::within(Self::SPEED_MAX),
        /// Angle of the road wheels in radians, left positive; within half a turn.
        steering_angle: f32 => motion.steering_angle as Number::within(PI),
        /// Applied throttle, 0 to 1.
        throttle: f32 => motion.throttle as Number::SHARE,
        /// Applied brake, 0 to 1.
        brake: f32 => motion.brake as Number::SHARE,
        /// Direction in which throttle drives, as reported by the machine.
        gear: Gear = gear as Choice,
        /// Position of the vehicle; `None` if unknown to the machine.
        position: Option<Position>,
        /// Faults of the machine; at most 9.
        faults: Vec<Fault> = faults as Faults,
        /// Control state of the vehicle's motion.
        mode: Mode = mode as Choice,
        /// Reason for the mode, shown to the operator; at most 256 bytes.
        mode_reason: String = mode_reason as Text(TEXT_BYTES_MAX),
        /// Newest state of the guard; `None` before the first.
        guard: Option<GuardState>,
        /// Optional numbers that the machine reports for display, in the order of the guard's list;
        /// at most 64.
        told: Vec<Option<f32>> = told as Told,
        /// Problem of the picture source, described for the operator; at most 256 bytes, `None`
        /// without one.
        source_trouble: Option<String>,
        /// Bits with warnings about the pictures: see the schema.
        sight: u32 = sight as Plain,
    }
}

codec!(Telemetry);

impl Telemetry {
    /// Maximum speed in a message, in metres per second: faster than any car.
    pub const SPEED_MAX: f32 = 200.0;
    /// Maximum length of each of its texts, in bytes.
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

/// Position and heading of a vehicle in the machine's own frame; either coordinate within ten
/// thousand kilometres.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Position {
    /// Metres east.
    pub x: f32,
    /// Metres north.
    pub y: f32,
    /// Heading in radians, counterclockwise from x; not wrapped, within a million.
    pub heading: f32,
}

impl Position {
    /// Returns whether it is within the limits of a message.
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

/// Control state of the vehicle's motion.
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
    /// Commands are fresh again, but the pedal has not been released since the stop.
    AwaitingRelease,
}

choice!(
    Mode,
    wire_telemetry::Mode,
    "mode",
    [AwaitingOperator, Driving, Stopping, Stopped, AwaitingRelease]
);

/// Distance from the equator to a pole.
const METRES_MAX: f32 = 1e7;
/// Limit beyond which single precision no longer resolves sixteenths of a radian.
const HEADING_MAX: f32 = 1e6;

const KIND: Kind = Kind {
    name: "telemetry",
    identifier: Some(wire_telemetry::TELEMETRY_IDENTIFIER),
    bytes_max: 1024,
    tables_max: 2,
    depth_max: 2,
};
