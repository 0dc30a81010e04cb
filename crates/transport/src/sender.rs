//! The sending half: unit to packets, packets to links, links to their pace.

pub(crate) mod block;
pub mod planner;
pub mod protect;
pub(crate) mod recovery;
pub(crate) mod stream;

pub(crate) use block::Encoder;
pub(crate) use recovery::{Lacking, Tracker};
pub(crate) use stream::Stream;
