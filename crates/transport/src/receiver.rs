//! The receiving half: packets to blocks, blocks to units, or a counted drop at the deadline.

mod block;
mod inbox;
mod parts;
mod reports;
mod stream;

pub(crate) use inbox::{Inbox, Outcome};
pub(crate) use reports::Arrivals;
pub(crate) use stream::Stream;
