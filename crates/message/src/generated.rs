//! Code that flatc generates from `schemas/`; `generate/` regenerates it.

macro_rules! generated {
    ($($name:ident)*) => {$(
        #[rustfmt::skip]
        #[allow(
            clippy::all,
            dead_code,
            deprecated,
            mismatched_lifetime_syntaxes,
            missing_docs,
            non_camel_case_types,
            unreachable_pub,
            unsafe_code,
            unused_imports,
            clippy::undocumented_unsafe_blocks,
            clippy::unwrap_used
        )]
        pub(crate) mod $name;
    )*};
}

generated! {
    command_generated
    control_generated
    description_generated
    drop_count_generated
    link_action_generated
    operator_status_generated
    point_cloud_generated
    probe_answer_generated
    probe_question_generated
    quorum_generated
    rate_cause_generated
    snapshot_generated
    telemetry_generated
    values_generated
    video_feedback_generated
}

pub(crate) use command_generated::tautline as command;
pub(crate) use control_generated::tautline as control;
pub(crate) use description_generated::tautline as description;
pub(crate) use drop_count_generated::tautline as drop_count;
pub(crate) use link_action_generated::tautline as link_action;
pub(crate) use operator_status_generated::tautline as operator_status;
pub(crate) use point_cloud_generated::foxglove as point_cloud;
pub(crate) use probe_answer_generated::tautline as probe_answer;
pub(crate) use probe_question_generated::tautline as probe_question;
pub(crate) use quorum_generated::tautline as quorum;
pub(crate) use rate_cause_generated::tautline as rate_cause;
pub(crate) use snapshot_generated::tautline as snapshot;
pub(crate) use telemetry_generated::tautline as telemetry;
pub(crate) use values_generated::tautline as values;
pub(crate) use video_feedback_generated::tautline as video_feedback;
