//! The console: its page, access to it, the driving console, and the bridge between browser and
//! operator.

pub(crate) mod access;
pub(crate) mod bridge;
pub(crate) mod holder;
mod http;
mod lane;
mod listener;
pub(crate) mod named;
#[cfg(test)]
mod page;
mod socket;
pub(crate) mod tls;
mod wire;

pub(crate) use access::Access;
pub use access::{Opening, Right};
pub(crate) use bridge::{Decoder, Holding};
pub use bridge::{Hub, Request};
pub(crate) use holder::ConsoleId;
pub(crate) use http::serve;
pub(crate) use listener::{accept, listen};
#[cfg(test)]
pub(crate) use wire::Message;
pub use wire::SliceHead;
