use flatbuffers::FlatBufferBuilder;
use tautline_units::Instant;

use crate::generated::telemetry::{self as wire_telemetry, Telemetry as Root};
use crate::wire::{Kind, TEXT_BYTES_MAX, choice, codec, number, text};
use crate::{Error, Fault, Gear};

/// How the vehicle moves and who moves it: what a person drives by.
///
/// What is only looked at, a [`Snapshot`](crate::Snapshot) tells.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Telemetry {
    /// Counts up by one with each telemetry message of a session.
    pub sequence: u64,
    /// When the vehicle sent it, vehicle's clock.
    pub sent_at: Instant,
    /// Metres per second, negative in reverse; within 200.
    pub speed: f32,
    /// Radians at the road wheels, left positive; within a half turn.
    pub steering_angle: f32,
    /// 0 to 1, as applied.
    pub throttle: f32,
    /// 0 to 1, as applied.
    pub brake: f32,
    /// Which way throttle drives, as the machine says.
    pub gear: Gear,
    /// Where the vehicle is; `None` if the machine does not know.
    pub position: Option<Position>,
    /// What of the machine does not work; at most 9.
    pub faults: Vec<Fault>,
    /// Who has the vehicle's motion in hand.
    pub mode: Mode,
    /// Why the mode is what it is, for the operator's eyes; at most 256 bytes.
    pub mode_reason: String,
}

codec!(Telemetry);

impl Telemetry {
    /// Metres per second that a message has room for: faster than any car.
    pub const SPEED_MAX: f32 = 200.0;

    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let mode_reason = builder.create_string(&self.mode_reason);
        let faults = Fault::write_all(&self.faults, builder);
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
        let arguments = wire_telemetry::TelemetryArgs {
            sequence: self.sequence,
            sent_at_ns: self.sent_at.as_nanos(),
            motion: Some(&motion),
            mode: self.mode.to_wire(),
            mode_reason: Some(mode_reason),
            gear: self.gear.to_wire(),
            faults: Some(faults),
            unlocated: self.position.is_none(),
        };
        let root = Root::create(builder, &arguments);
        wire_telemetry::finish_telemetry_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        let motion = root.motion();
        let position = Position { x: motion.x(), y: motion.y(), heading: motion.heading() };
        position.check()?;
        let half_turn = std::f32::consts::PI;
        Ok(Self {
            sequence: root.sequence(),
            sent_at: Instant::from_nanos(root.sent_at_ns()),
            speed: number("speed", motion.speed(), -Self::SPEED_MAX, Self::SPEED_MAX)?,
            steering_angle: number(
                "steering_angle",
                motion.steering_angle(),
                -half_turn,
                half_turn,
            )?,
            throttle: number("throttle", motion.throttle(), 0.0, 1.0)?,
            brake: number("brake", motion.brake(), 0.0, 1.0)?,
            gear: Gear::from_wire(root.gear())?,
            position: (!root.unlocated()).then_some(position),
            faults: root.faults().map_or_else(|| Ok(Vec::new()), Fault::read_all)?,
            mode: Mode::from_wire(root.mode())?,
            mode_reason: text("mode_reason", root.mode_reason(), TEXT_BYTES_MAX)?,
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
    tables_max: 1,
    depth_max: 1,
};
