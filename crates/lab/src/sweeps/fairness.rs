//! Fairness of the rate control on a shared link: `tautline lab fairness`.
//!
//! One direction of one link is the bottleneck of two flows. One is a session whose source always
//! fills its budget. The other is another session, bulk data over TCP with CUBIC or BBR, or a call
//! with libwebrtc's congestion control. Everything runs in virtual time from a seed. Nothing is
//! judged.

pub mod bottleneck;
pub mod measure;
pub mod pairing;
mod shared;
pub mod summary;
pub mod sweep;
