use flatbuffers::FlatBufferBuilder;
use tautline_guard::frame::Status;
use tautline_units::Instant;

use crate::Error;
use crate::codec::codec;
use crate::fields::{Nanos, Plain, Text, fields};
use crate::generated::telemetry::{self as wire_telemetry, Telemetry as Root};
use crate::sight::{SightBits, Sights};
use crate::status_frame::{Frame, StatusFrame};
use crate::wire::{Kind, TEXT_BYTES_MAX};

fields! {
    /// Vehicle state that a person needs for driving: the guard's status, and what the guard does
    /// not know.
    ///
    /// Values that are only displayed are in a [`Snapshot`](crate::Snapshot).
    #[derive(Clone, PartialEq, Default, Debug)]
    Telemetry of Root<'_>, wire_telemetry::TelemetryArgs, "" {
        /// Sequence number, increased by one with each telemetry message of a session.
        sequence: u64 = sequence as Plain,
        /// Time at which the vehicle sent the message, on the vehicle's clock.
        sent_at: Instant = sent_at_ns as Nanos,
        /// Newest status of the guard; `None` while the guard is silent.
        status: Option<StatusFrame> = status as Frame,
        /// Reason why nobody drives that no status contains, shown to the operator; at most 256
        /// bytes, `None` without one.
        mode_reason: Option<String> = mode_reason as Text(TEXT_BYTES_MAX),
        /// Problem of the picture source, described for the operator; at most 256 bytes, `None`
        /// without one.
        source_trouble: Option<String> = source_trouble as Text(TEXT_BYTES_MAX),
        /// Properties of the pictures that a person must know.
        sight: Sights = sight as SightBits,
    }
}

codec!(Telemetry);

impl Telemetry {
    /// Maximum length in bytes of `mode_reason` and of `source_trouble`.
    pub const TEXT_BYTES_MAX: usize = TEXT_BYTES_MAX;

    /// Returns the values of the guard's newest status; `None` while the guard is silent.
    pub fn status(&self) -> Option<&Status> {
        self.status.as_ref().map(StatusFrame::status)
    }

    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let mut arguments = wire_telemetry::TelemetryArgs::default();
        self.write_listed(&mut arguments, builder);
        let root = Root::create(builder, &arguments);
        wire_telemetry::finish_telemetry_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        Self::read_listed(root)
    }
}

const KIND: Kind = Kind {
    name: "telemetry",
    identifier: Some(wire_telemetry::TELEMETRY_IDENTIFIER),
    // The longest frame, both texts, and the table around them.
    bytes_max: tautline_guard::frame::BYTES_MAX + 2 * TEXT_BYTES_MAX + 128,
    tables_max: 1,
    depth_max: 1,
};
