//! The schemas in binary, as recordings carry them: an MCAP file's schema record of encoding
//! `flatbuffer` holds the name and these bytes, so that its readers need nothing of ours.

/// One message's schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schema {
    /// The message's full name, `tautline.Telemetry`.
    pub name: &'static str,
    /// The schema and all that it includes, as flatc compiles it (`.bfbs`).
    pub bytes: &'static [u8],
}

/// [`Command`](crate::Command).
pub const COMMAND: Schema =
    Schema { name: "tautline.Command", bytes: include_bytes!("../bfbs/command.bfbs") };
/// [`VideoFeedback`](crate::VideoFeedback).
pub const VIDEO_FEEDBACK: Schema =
    Schema { name: "tautline.VideoFeedback", bytes: include_bytes!("../bfbs/video_feedback.bfbs") };
/// [`Telemetry`](crate::Telemetry).
pub const TELEMETRY: Schema =
    Schema { name: "tautline.Telemetry", bytes: include_bytes!("../bfbs/telemetry.bfbs") };
/// [`OperatorStatus`](crate::OperatorStatus).
pub const OPERATOR_STATUS: Schema = Schema {
    name: "tautline.OperatorStatus",
    bytes: include_bytes!("../bfbs/operator_status.bfbs"),
};
/// [`LinkAction`](crate::LinkAction).
pub const LINK_ACTION: Schema =
    Schema { name: "tautline.LinkAction", bytes: include_bytes!("../bfbs/link_action.bfbs") };
/// [`Control`](crate::Control).
pub const CONTROL: Schema =
    Schema { name: "tautline.Control", bytes: include_bytes!("../bfbs/control.bfbs") };
/// [`PointCloud`](crate::PointCloud): the one that foxglove names.
pub const POINT_CLOUD: Schema =
    Schema { name: "foxglove.PointCloud", bytes: include_bytes!("../bfbs/point_cloud.bfbs") };
/// [`QuorumStep`](crate::QuorumStep).
pub const QUORUM_STEP: Schema =
    Schema { name: "tautline.QuorumStep", bytes: include_bytes!("../bfbs/quorum.bfbs") };
/// [`Snapshot`](crate::Snapshot).
pub const SNAPSHOT: Schema =
    Schema { name: "tautline.Snapshot", bytes: include_bytes!("../bfbs/snapshot.bfbs") };
/// [`ProbeQuestion`](crate::ProbeQuestion).
pub const PROBE_QUESTION: Schema =
    Schema { name: "tautline.ProbeQuestion", bytes: include_bytes!("../bfbs/probe_question.bfbs") };
/// [`ProbeAnswer`](crate::ProbeAnswer).
pub const PROBE_ANSWER: Schema =
    Schema { name: "tautline.ProbeAnswer", bytes: include_bytes!("../bfbs/probe_answer.bfbs") };

/// Every message's.
pub const ALL: [Schema; 11] = [
    COMMAND,
    VIDEO_FEEDBACK,
    TELEMETRY,
    OPERATOR_STATUS,
    LINK_ACTION,
    CONTROL,
    POINT_CLOUD,
    QUORUM_STEP,
    SNAPSHOT,
    PROBE_QUESTION,
    PROBE_ANSWER,
];
