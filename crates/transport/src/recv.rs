//! The receiving half: packets to blocks, blocks to units, or a counted drop at the deadline.

mod dedup;
mod join;
mod parts;
mod recover;
mod report;
mod stream;

pub(crate) use join::{Inbox, Outcome};
pub(crate) use report::Arrivals;
pub(crate) use stream::Stream;
