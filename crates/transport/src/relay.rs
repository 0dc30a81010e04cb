//! The relay protocol between an end and a relay, sans-I/O.
//!
//! A relay forwards the unchanged datagrams of a session between the two ends of a lease. It
//! identifies them by a [`Token`] signed by the switchboard. A handshake ([`Call`]) proves that an
//! end holds its key. Its address is proved by a [`MacKey`](crate::crypto::MacKey) from that
//! handshake and a [`Cookie`](wire::Cookie) that only this address has seen. [`Client`] implements
//! an end's side; the crate of that name implements the relay. docs/relay.md describes the design,
//! docs/protocol.md, section 11, the bytes.

mod client;
mod handshake;
mod token;
pub mod wire;

pub use client::{Admission, Client, LegView, Ticket, datagram_routes, stream_routes};
pub use handshake::{Call, SEATS_OF_STREAMS_FROM};
pub use token::{Grant, Side, Token, TokenError};
