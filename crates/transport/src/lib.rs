//! The sans-I/O multi-link session.
//!
//! A [`Session`] joins one vehicle (the initiator) and one operator (the responder) over several
//! links. It takes datagrams, units and the time; it gives datagrams, events and the next time it
//! wants to be called. It opens no socket and reads no clock.
//!
//! After every call that changes it: drain [`Session::poll_transmit`], drain
//! [`Session::poll_event`], re-arm the timer from [`Session::poll_timeout`].
#![forbid(unsafe_code)]

pub mod channel;
pub mod clock;
mod config;
mod counters;
pub mod crypto;
mod error;
mod event;
pub mod link;
mod links;
pub mod rate;
mod receiver;
pub mod sender;
mod sequence;
mod session;
mod shared;
pub mod wire;

pub use channel::{Channel, ChannelNumber};
pub use clock::ClockEstimate;
pub use config::Config;
pub use counters::{Counters, Discard, Units};
pub use crypto::{Identity, PublicKey, Seed};
pub use error::{ConfigError, Error, SendError};
pub use event::{Event, LossReason, Timer, UnitNumber};
pub use link::Route;
pub use session::Session;
pub use wire::LinkNumber;
