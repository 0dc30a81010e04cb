//! Commands, telemetry, control plane and sensor messages, and their codec.
//!
//! The wire format is FlatBuffers (`schemas/`, one file per noun); the API uses owned types.
//! Decoding always runs the verifier with limits on size, depth and tables, then checks every
//! value. Any bytes therefore yield either a valid message or an [`Error`] that names the faulty
//! field. Encoding writes values unchecked: the peer refuses invalid ones.
//!
//! Every message except [`PointCloud`] begins with a file identifier of its kind and version (bytes
//! 4 to 8), so no kind is read as another.
//!
//! # In the browser
//!
//! `console/src/message/` holds the same schemas in TypeScript, where FlatBuffers has no verifier.
//! Malformed bytes cannot corrupt memory there, but reads beyond the end return zeros, and a
//! malformed list may claim four billion items. A process that forwards telemetry to a console
//! therefore decodes it here first. The console still checks the following before it displays a
//! message, and drops the message if a check fails:
//!
//! - at least 8 bytes, at most the maximum of the kind, and `bufferHasIdentifier`;
//! - every list's length against its maximum before iterating: 16 links, 32 channels, 128 drops, 64
//!   values, 64 emulated links; 16 axes, 32 actions, 64 values of a machine;
//! - the status frame's length and CRC (`console/src/status-frame.ts`);
//! - required tables that getters return as `null`;
//! - `Number.isFinite` of each number, and the range documented by this crate's types;
//! - enum numbers without a variant;
//! - a negative delay or age, which means unknown.
//!
//! # Generated code
//!
//! `cargo run --manifest-path crates/message/generate/Cargo.toml` regenerates `src/generated/` and
//! `console/src/message/`, with flatc of the same version as the crate `flatbuffers`, built from
//! source; `-- --check` only reports whether they are current. A test compares fingerprints,
//! without flatc.

mod builder;
mod bulk;
mod codec;
mod command;
mod control;
mod description;
mod drop_count;
mod error;
mod fields;
mod generated;
mod link_action;
mod operator_status;
pub mod point_cloud;
mod probe_answer;
mod probe_question;
mod quorum_step;
pub mod schema;
mod sight;
pub mod snapshot;
mod status_frame;
mod telemetry;
#[cfg(test)]
mod tests;
mod values;
mod video_feedback;
mod wire;

pub use builder::Builder;
pub use command::{Act, Command, Deed};
pub use control::{
    Candidate, CandidateKind, Control, EPOCH_STEP_MAX, Held, Known, Order, ProtocolVersions,
    Refusal, RelayTicket, Role, VehicleEntry, VehicleState,
};
pub use description::Description;
pub use error::Error;
pub use link_action::LinkAction;
pub use operator_status::{ClockOffset, EmulatedLink, OperatorStatus, SessionState};
pub use point_cloud::PointCloud;
pub use probe_answer::ProbeAnswer;
pub use probe_question::ProbeQuestion;
pub use quorum_step::QuorumStep;
pub use sight::{Sight, Sights};
pub use snapshot::{LinkState, Snapshot};
pub use status_frame::StatusFrame;
pub use telemetry::Telemetry;
pub use values::Values;
pub use video_feedback::{StripReport, VideoFeedback};
