//! The way through a relay: what an end and a relay say to each other, sans-I/O.
//!
//! A relay forwards the datagrams of a session, as they are, between the two ends of a lease. Who they
//! are it knows from a [`Token`] that the switchboard has signed; that an end holds its key, by a
//! handshake ([`Call`]); that it is where its datagrams come from, by a [`MacKey`](crate::crypto::MacKey)
//! that the handshake yields and a [`Cookie`](wire::Cookie) that only this address has seen. What an end
//! does of it is a [`Client`]; what a relay does stands in the crate of that name. docs/relay.md tells
//! the whole, docs/protocol.md, section 11, the bytes.

mod client;
mod handshake;
mod token;
pub mod wire;

pub use client::{Admission, Client, Ticket, Way, datagram_routes, stream_routes};
pub use handshake::{Call, SEATS_OF_STREAMS_FROM};
pub use token::{Grant, Side, Token, TokenError};
