//! The parts of H.264 (ITU-T H.264) that concealment parses and writes.

pub(crate) mod bits;
pub(crate) mod nal;
pub(crate) mod parameters;
pub(crate) mod slice_header;
