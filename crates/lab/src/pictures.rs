//! Pictures to code, how they come out of a codec, and how good they are then.

pub(crate) mod chromium;
pub mod clip;
pub(crate) mod coding;
pub(crate) mod footage;
mod kept;
pub(crate) mod peers;
pub(crate) mod seams;
pub(crate) mod street;
pub(crate) mod vmaf;
