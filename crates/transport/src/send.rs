//! The sending half: unit to packets, packets to links, links to their pace.

pub(crate) mod coder;
pub(crate) mod pace;
pub(crate) mod price;
pub mod protect;
pub(crate) mod quantile;
pub(crate) mod retransmit;
pub mod schedule;
pub(crate) mod split;
pub(crate) mod stream;

pub(crate) use coder::Coder;
pub(crate) use pace::{ControlQueue, Entry, Pacer};
pub(crate) use price::Price;
pub(crate) use retransmit::{Lacking, Ledger};
pub(crate) use stream::Stream;
