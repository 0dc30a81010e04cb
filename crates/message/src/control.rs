use flatbuffers::FlatBufferBuilder;

use crate::Error;
use crate::codec::codec;
use crate::generated::control::{self as wire_control, Control as Root};
use crate::wire::Kind;

mod candidate;
mod held;
mod known;
mod message;
mod order;
mod protocol_versions;
mod refusal;
mod relay_ticket;
mod variants;
mod vehicle_entry;

pub use candidate::{Candidate, CandidateKind};
pub use held::{EPOCH_STEP_MAX, Held};
pub use known::Known;
pub use message::Control;
pub use order::{Order, Role};
pub use protocol_versions::ProtocolVersions;
pub use refusal::Refusal;
pub use relay_ticket::RelayTicket;
pub use vehicle_entry::{VehicleEntry, VehicleState};

codec!(Control);

impl Control {
    fn write(&self, builder: &mut FlatBufferBuilder<'static>) {
        let (message_type, message) = variants::write(self, builder);
        let arguments = wire_control::ControlArgs { message_type, message: Some(message) };
        let root = Root::create(builder, &arguments);
        wire_control::finish_control_buffer(builder, root);
    }

    fn read(root: Root<'_>) -> Result<Self, Error> {
        variants::read(root)
    }
}

const KIND: Kind = Kind {
    name: "control message",
    identifier: Some(wire_control::CONTROL_IDENTIFIER),
    // A full list of vehicles with all texts at maximum length takes nearly all of it.
    bytes_max: 64 * 1024,
    // Control, its message, and the vehicles of a full list; there are fewer candidates than
    // vehicles.
    tables_max: 2 + variants::VEHICLE_COUNT_MAX,
    depth_max: 3,
};
