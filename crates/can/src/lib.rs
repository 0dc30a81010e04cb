//! A machine on a CAN bus, described by a DBC file and a map of its signals.
//!
//! [`Database`] reads the DBC. [`Mapping`] reads the map and connects the two to an [`Adapter`]: a
//! state machine that takes controls and frames, and gives frames and the machine's state.
#![forbid(unsafe_code)]

mod adapter;
mod bits;
mod checksum;
mod control;
mod curve;
mod database;
mod declared;
mod frame;
mod incoming;
mod limits;
mod mapping;
mod message;
mod mistake;
mod names;
mod outgoing;
mod seal;
mod signal;
mod table;
mod written;

pub use adapter::{Adapter, Counts};
pub use database::Database;
pub use frame::{Frame, Id, Kind, Malformed, SocketCan};
pub use mapping::Mapping;
pub use message::Message;
pub use mistake::Mistake;
pub use signal::Signal;
pub use table::table;
pub use written::Settings;
