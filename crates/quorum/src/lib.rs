//! Redundant computers of which one acts: \[TIMING\]'s three that can all steer.
//!
//! Each is a [`Member`]. They elect a leader by Raft (the crate `raft`), over Tautline's own
//! messages. A leader may act only while its *lease* lasts: from the moment at which a round of
//! heartbeats began that a majority has answered, for a little less than the time for which whoever
//! answered votes for nobody else. Both times are measured by clocks that need not agree, only run
//! about equally fast. So a new leader begins after the old one's lease has run out, even if the old
//! one was stopped, cut off, or takes itself for the leader.
//!
//! It serves the lab alone so far: the experiment `timing-leader` runs it in virtual time,
//! `tautline lab leader` in three processes, both in a build with the feature `quorum`. A vehicle with
//! several computers would use it as it is; no vehicle does.
//!
//! Nothing here knows a socket or a clock: datagrams and the time are arguments. Whoever runs a
//! member keeps what [`Member::poll_keep`] gives, through a power failure, before it sends what
//! [`Member::poll_transmit`] gives.
#![forbid(unsafe_code)]

mod error;
mod kept;
mod member;
mod step;

pub use error::Error;
pub use kept::Kept;
pub use member::{Config, Counters, Member};
