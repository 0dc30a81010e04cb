//! Bitrates, byte counts, instants, probabilities and ECN codepoints: distinct types for
//! quantities, and bounded values of settings.
//!
//! Needs neither the standard library nor an allocator.
#![no_std]
#![forbid(unsafe_code)]

mod bitrate;
mod bounded;
mod byte_count;
mod ecn;
mod instant;
mod probability;

pub use bitrate::Bitrate;
pub use bounded::Bounded;
pub use byte_count::ByteCount;
pub use core::time::Duration;
pub use ecn::Ecn;
pub use instant::Instant;
pub use probability::Probability;
