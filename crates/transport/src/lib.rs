//! The sans-I/O multi-link session.
//!
//! A [`Session`] connects one vehicle (the initiator) and one operator (the responder) over several
//! links. Its inputs are datagrams, units and the time. Its outputs are datagrams, events and the
//! time of the next call it needs. It opens no socket and reads no clock.
//!
//! After every call that changes the session: drain [`Session::poll_transmit`], drain
//! [`Session::poll_event`], and re-arm the timer from [`Session::poll_timeout`]. This example runs
//! two sessions back to back in virtual time:
//!
//! ```
//! use std::net::SocketAddr;
//!
//! use tautline_transport::{ChannelNumber, Config, Event, Identity, Route, Session};
//! use tautline_units::{Bitrate, Duration, Instant};
//!
//! let (vehicle, operator) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
//! let (config, lease, mut now) = (Config::default(), [7; 16], Instant::from_millis(1));
//! // Two links, each a socket of ours and an address of theirs.
//! let routes = [0, 1].map(|socket| Route {
//!     socket,
//!     remote: SocketAddr::from(([10, 0, 0, 1], 5_000 + u16::from(socket))),
//! });
//! let mut sessions = [
//!     Session::initiate(config.clone(), &vehicle, operator.public(), lease, &routes, 1, now)?,
//!     Session::respond(config, &operator, vehicle.public(), lease, 2, now)?,
//! ];
//! let (mut buffer, mut sent) = (Vec::new(), false);
//! let slice = 'life: loop {
//!     // Datagrams: what one writes, the other takes; a network would stand between them.
//!     let mut quiet = false;
//!     while !quiet {
//!         quiet = true;
//!         for from in [0, 1] {
//!             while let Some(route) = sessions[from].poll_transmit(&mut buffer, now) {
//!                 sessions[1 - from].handle_datagram(route, &buffer, now);
//!                 quiet = false;
//!             }
//!         }
//!     }
//!     // Events: the vehicle sends a slice as soon as the links carry media.
//!     while let Some(event) = sessions[0].poll_event() {
//!         if let Event::Budget { media, .. } = event && media > Bitrate::ZERO && !sent {
//!             let deadline = Duration::from_millis(200);
//!             sessions[0].send(ChannelNumber::MEDIA, b"a slice of a picture", deadline, now)?;
//!             sent = true;
//!         }
//!     }
//!     while let Some(event) = sessions[1].poll_event() {
//!         if let Event::Unit { bytes, .. } = event {
//!             break 'life bytes;
//!         }
//!     }
//!     // Time: sleep until the first of both wants to be called, and call both.
//!     let due = sessions.iter().filter_map(Session::poll_timeout).map(|(at, _)| at).min();
//!     now = now.max(due.expect("a session always waits for something"));
//!     sessions.iter_mut().for_each(|session| session.handle_timeout(now));
//! };
//! assert_eq!(slice, b"a slice of a picture");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! docs/transport.md explains how a unit passes through the parts of a session and what was learned
//! about each. docs/protocol.md describes the wire format; comments such as `// protocol 3` cite
//! its sections.
#![forbid(unsafe_code)]

pub mod channel;
pub mod clock;
mod config;
mod counters;
pub mod crypto;
mod error;
mod event;
mod life;
pub mod link;
mod links;
pub mod order;
pub mod planner;
pub mod protect;
pub mod rate;
pub mod reach;
mod receiver;
pub mod relay;
mod round_trips;
mod sender;
mod sequence;
mod session;
mod setting;
mod shared;
pub mod stun;
pub mod wire;

pub use channel::{Channel, ChannelNumber};
pub use clock::ClockEstimate;
pub use config::Config;
pub use counters::{Counters, Discard, Units};
pub use crypto::{Identity, PublicKey, Seed};
pub use error::{ConfigError, Error, SendError};
pub use event::{Event, LossReason, Timer, UnitNumber};
pub use link::Route;
pub use round_trips::RoundTrip;
pub use session::Session;
pub use wire::{LinkNumber, VersionMismatch, Versions};
