use flatbuffers::FlatBufferBuilder;

use crate::Error;
use crate::codec::codec;
use crate::fields::{Kinds, choice};
use crate::generated::operator_status::{self as wire_operator, OperatorStatus as Root};
use crate::wire::{Kind, NAME_BYTES_MAX, TEXT_BYTES_MAX, list, text};

/// Status of the operator's process, sent to its console ten times per second.
#[derive(Clone, PartialEq, Debug)]
pub struct OperatorStatus {
    /// Nanoseconds since 1970 on the operator's clock.
    pub unix_ns: u64,
    /// Name of the vehicle that is driven or requested, at most 64 bytes; empty before one is
    /// picked.
    pub vehicle_name: String,
    /// Progress of the session to the vehicle.
    pub session_state: SessionState,
    /// Reason for the session's state; at most 256 bytes, may be empty.
    pub session_reason: String,
    /// Offset of the vehicle's clock from the operator's; `None` until estimated.
    pub clock: Option<ClockOffset>,
    /// Links of the emulator, if this session uses one; at most 64.
    pub emulated_links: Vec<EmulatedLink>,
}

codec!(OperatorStatus);

impl OperatorStatus {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let emulated_links: Vec<_> = self
            .emulated_links
            .iter()
            .map(|link| {
                let name = Some(builder.create_string(&link.name));
                let arguments = wire_operator::EmulatedLinkArgs { name, cut: link.cut };
                wire_operator::EmulatedLink::create(builder, &arguments)
            })
            .collect();
        let emulated_links = builder.create_vector(&emulated_links);
        let vehicle_name = builder.create_string(&self.vehicle_name);
        let session_reason = builder.create_string(&self.session_reason);
        let clock = self
            .clock
            .map(|clock| wire_operator::ClockOffset::new(clock.offset_ns, clock.error_ns));
        let arguments = wire_operator::OperatorStatusArgs {
            unix_ns: self.unix_ns,
            vehicle_name: Some(vehicle_name),
            session_state: self.session_state.to_wire(),
            session_reason: Some(session_reason),
            clock: clock.as_ref(),
            emulated_links: Some(emulated_links),
        };
        let root = Root::create(builder, &arguments);
        wire_operator::finish_operator_status_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        Ok(Self {
            unix_ns: root.unix_ns(),
            vehicle_name: text("vehicle_name", root.vehicle_name(), NAME_BYTES_MAX)?,
            session_state: SessionState::from_wire(root.session_state())?,
            session_reason: text("session_reason", root.session_reason(), TEXT_BYTES_MAX)?,
            clock: root.clock().map(|clock| ClockOffset {
                offset_ns: clock.offset_ns(),
                error_ns: clock.error_ns(),
            }),
            emulated_links: list(
                "emulated_links",
                root.emulated_links(),
                EMULATED_LINK_COUNT_MAX,
                |link| {
                    let name = text("emulated_links.name", link.name(), NAME_BYTES_MAX)?;
                    Ok(EmulatedLink { name, cut: link.cut() })
                },
            )?,
        })
    }
}

/// The vehicle's clock minus the operator's, estimated from pings and pongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockOffset {
    /// Nanoseconds to add to the operator's clock to get the vehicle's.
    pub offset_ns: i64,
    /// Bound on the absolute error of the offset, in nanoseconds.
    pub error_ns: u64,
}

/// A link of the emulator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EmulatedLink {
    /// Display name of the link, at most 64 bytes.
    pub name: String,
    /// True if the emulator cuts the link in at least one direction.
    pub cut: bool,
}

choice! {
    /// Progress of the operator's session to the vehicle.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
    pub enum SessionState of wire_operator::SessionState, "session_state" {
        /// The switchboard has not answered yet.
        #[default]
        Registering,
        /// Registered; the vehicle is away, taken, or not yet chosen.
        Waiting,
        /// Introduced to the vehicle; the handshake is in progress.
        Connecting,
        /// Commands and video flow.
        Established,
        /// Nothing has arrived from the vehicle on any link for 1 s, or the switchboard has ended
        /// the lease.
        Lost,
    }
}

const EMULATED_LINK_COUNT_MAX: usize = 64;

const KIND: Kind = Kind {
    name: "operator status",
    identifier: Some(wire_operator::OPERATOR_STATUS_IDENTIFIER),
    bytes_max: 64 * 1024,
    tables_max: 128,
    depth_max: 2,
};
