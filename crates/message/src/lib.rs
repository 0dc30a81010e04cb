//! Commands, telemetry, control plane and sensor messages, and their codec.
//!
//! Inside are FlatBuffers (`schemas/`, one file a noun), outside are owned types. Decoding always
//! goes through the verifier with limits on size, depth and tables, then checks every value, so
//! that any bytes at all give either a message that makes sense or an [`Error`] that names the
//! field. Encoding writes values as they are: what decoding would refuse is refused by the peer.
//!
//! Every message but [`PointCloud`] begins with a file identifier that tells its kind and version
//! (bytes 4 to 8), so that one kind is never read as another.

mod command;
mod control;
mod error;
mod generated;
mod link_action;
mod link_status;
mod operator_status;
pub mod point_cloud;
mod telemetry;
mod wire;

pub use command::{Command, Gear};
pub use control::{Control, Refusal, VehicleEntry, VehicleState};
pub use error::Error;
pub use link_action::LinkAction;
pub use link_status::{LinkState, LinkStatus};
pub use operator_status::{ClockOffset, EmulatedLink, OperatorStatus, SessionState};
pub use point_cloud::PointCloud;
pub use telemetry::{Mode, Position, Telemetry};
pub use wire::Builder;
