//! Commands, telemetry, control plane and sensor messages, and their codec.
//!
//! Inside are FlatBuffers (`schemas/`, one file a noun), outside are owned types. Decoding always
//! goes through the verifier with limits on size, depth and tables, then checks every value, so
//! that any bytes at all give either a message that makes sense or an [`Error`] that says what is
//! wrong where. Encoding writes values as they are: what decoding would refuse is refused by the peer.
//!
//! Every message but [`PointCloud`] begins with a file identifier that tells its kind and version
//! (bytes 4 to 8), so that one kind is never read as another.
//!
//! # In the browser
//!
//! `console/src/message/` holds the same schemas in TypeScript, where FlatBuffers has no verifier.
//! Broken bytes harm no memory there, but reads beyond the end give zeros, and a broken list may
//! claim four thousand million items. Whoever passes telemetry on to a console therefore decodes it
//! here first. The console still checks the following before it shows anything, and drops the whole
//! message if one fails:
//!
//! - at least 8 bytes, at most what the kind allows, and `bufferHasIdentifier`;
//! - every list's length against its maximum before a loop over it: 16 links, 32 channels, 128
//!   drops, 64 values, 9 faults, 64 emulated links;
//! - parts that getters give as `null`, though the schema requires them;
//! - `Number.isFinite` of each number, and the range that this crate's types tell;
//! - numbers of enums that stand for nothing;
//! - a negative delay or age, which says that it is not known.
//!
//! # Generated code
//!
//! `cargo run --manifest-path crates/message/generate/Cargo.toml` writes `src/generated/` and
//! `console/src/message/` anew, with flatc of the version of the crate `flatbuffers`, built from
//! source; `-- --check` only tells whether they are current. A test compares fingerprints, which
//! takes no flatc.

mod builder;
mod command;
mod control;
mod drop_count;
mod error;
mod fault;
mod fields;
mod generated;
mod guard_state;
mod link_action;
mod operator_status;
pub mod point_cloud;
mod probe_answer;
mod probe_question;
mod quorum_step;
pub mod schema;
pub mod snapshot;
mod telemetry;
#[cfg(test)]
mod tests;
mod told;
mod video_feedback;
mod wire;

pub use builder::Builder;
pub use command::{Act, Command, DeadMan, Deed, Gear};
pub use control::{
    Candidate, CandidateKind, Control, EPOCH_STEP_MAX, Held, Known, Order, ProtocolVersions,
    Refusal, RelayTicket, Role, VehicleEntry, VehicleState,
};
pub use error::Error;
pub use fault::Fault;
pub use guard_state::{ActAnswer, BlackBox, Blocker, Budget, Cause, GuardMode, GuardState};
pub use link_action::LinkAction;
pub use operator_status::{ClockOffset, EmulatedLink, OperatorStatus, SessionState};
pub use point_cloud::PointCloud;
pub use probe_answer::ProbeAnswer;
pub use probe_question::ProbeQuestion;
pub use quorum_step::QuorumStep;
pub use snapshot::{LinkState, Snapshot};
pub use telemetry::{Mode, Position, Telemetry};
pub use video_feedback::{StripReport, VideoFeedback};
