//! Redundant computers of which one acts, such as the three of \[TIMING\] that can all steer.
//!
//! Each computer is a [`Member`]. The members elect a leader by Raft (the crate `raft`), over
//! Tautline's own messages. A leader may act only while its *lease* lasts. The lease starts when a
//! round of heartbeats begins that a majority answers. It is slightly shorter than the time for
//! which those members vote for nobody else. The clocks that measure both times need not agree;
//! they only need about the same rate. A new leader therefore starts after the old one's lease has
//! expired, even if the old one was stopped, was cut off, or still believes that it leads.
//!
//! The experiment `timing-leader` runs it in virtual time, and `tautline lab leader` in three
//! processes, both in a build with the feature `quorum`. No vehicle uses it.
//!
//! Nothing here uses a socket or a clock: datagrams and the time are arguments. The caller must
//! persist the result of [`Member::poll_keep`] safely before it sends that of
//! [`Member::poll_transmit`].

mod error;
mod kept;
mod member;
mod step;

pub use error::Error;
pub use kept::Kept;
pub use member::{Config, Counters, Member};

#[cfg(test)]
mod tests;
