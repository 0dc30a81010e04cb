//! Pictures to code, their decoded form, and their quality.

pub(crate) mod chromium;
pub mod clip;
pub(crate) mod coding;
pub(crate) mod footage;
mod kept;
pub(crate) mod peers;
pub mod qp_table;
pub(crate) mod seams;
pub(crate) mod street;
pub(crate) mod vmaf;
#[cfg(feature = "x264")]
pub mod x264;
