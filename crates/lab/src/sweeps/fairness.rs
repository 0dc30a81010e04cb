//! How rate control shares a link: `tautline lab fairness`.
//!
//! One direction of one link is the bottleneck of two flows: a session whose source always fills its
//! budget, and another session, bulk data over TCP with CUBIC or BBR, or a call with libwebrtc's
//! congestion control. Everything is in virtual time and comes from a seed. Nothing is judged.

pub mod bottleneck;
pub mod measure;
pub mod pairing;
mod shared;
pub mod summary;
pub mod sweep;
