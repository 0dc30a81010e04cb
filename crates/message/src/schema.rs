//! Binary schemas for recordings. An MCAP file's schema record of encoding `flatbuffer` holds the
//! name and these bytes, so its readers need no file of Tautline.

/// Schema of one message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Schema {
    /// Full name of the message, for example `tautline.Telemetry`.
    pub name: &'static str,
    /// Schema with all its includes, compiled by flatc (`.bfbs`).
    pub bytes: &'static [u8],
}

/// Schema of [`Command`](crate::Command).
pub const COMMAND: Schema =
    Schema { name: "tautline.Command", bytes: include_bytes!("../bfbs/command.bfbs") };
/// Schema of [`VideoFeedback`](crate::VideoFeedback).
pub const VIDEO_FEEDBACK: Schema =
    Schema { name: "tautline.VideoFeedback", bytes: include_bytes!("../bfbs/video_feedback.bfbs") };
/// Schema of [`Telemetry`](crate::Telemetry).
pub const TELEMETRY: Schema =
    Schema { name: "tautline.Telemetry", bytes: include_bytes!("../bfbs/telemetry.bfbs") };
/// Schema of [`OperatorStatus`](crate::OperatorStatus).
pub const OPERATOR_STATUS: Schema = Schema {
    name: "tautline.OperatorStatus",
    bytes: include_bytes!("../bfbs/operator_status.bfbs"),
};
/// Schema of [`LinkAction`](crate::LinkAction).
pub const LINK_ACTION: Schema =
    Schema { name: "tautline.LinkAction", bytes: include_bytes!("../bfbs/link_action.bfbs") };
/// Schema of [`Control`](crate::Control).
pub const CONTROL: Schema =
    Schema { name: "tautline.Control", bytes: include_bytes!("../bfbs/control.bfbs") };
/// Schema of [`PointCloud`](crate::PointCloud), under foxglove's name.
pub const POINT_CLOUD: Schema =
    Schema { name: "foxglove.PointCloud", bytes: include_bytes!("../bfbs/point_cloud.bfbs") };
/// Schema of [`QuorumStep`](crate::QuorumStep).
pub const QUORUM_STEP: Schema =
    Schema { name: "tautline.QuorumStep", bytes: include_bytes!("../bfbs/quorum.bfbs") };
/// Schema of [`Snapshot`](crate::Snapshot).
pub const SNAPSHOT: Schema =
    Schema { name: "tautline.Snapshot", bytes: include_bytes!("../bfbs/snapshot.bfbs") };
/// Schema of [`ProbeQuestion`](crate::ProbeQuestion).
pub const PROBE_QUESTION: Schema =
    Schema { name: "tautline.ProbeQuestion", bytes: include_bytes!("../bfbs/probe_question.bfbs") };
/// Schema of [`ProbeAnswer`](crate::ProbeAnswer).
pub const PROBE_ANSWER: Schema =
    Schema { name: "tautline.ProbeAnswer", bytes: include_bytes!("../bfbs/probe_answer.bfbs") };

/// Schema of [`Description`](crate::Description).
pub const DESCRIPTION: Schema =
    Schema { name: "tautline.Description", bytes: include_bytes!("../bfbs/description.bfbs") };
/// Schema of [`Values`](crate::Values).
pub const VALUES: Schema =
    Schema { name: "tautline.Values", bytes: include_bytes!("../bfbs/values.bfbs") };

/// Schemas of all messages.
pub const ALL: [Schema; 13] = [
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
    DESCRIPTION,
    VALUES,
];
