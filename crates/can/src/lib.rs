//! A machine on a CAN bus, described by a DBC file and a map of its signals.
//!
//! [`Database`] reads the DBC and packs and unpacks signals; [`Frame`] is what a bus carries.
#![forbid(unsafe_code)]

mod bits;
mod checksum;
mod database;
mod frame;
mod message;
mod mistake;
mod signal;

pub use database::Database;
pub use frame::{Frame, Id, Kind, Malformed, SocketCan};
pub use message::Message;
pub use mistake::Mistake;
pub use signal::Signal;
