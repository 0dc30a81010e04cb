//! Sockets, the one clock, the event loop and the real-time link emulator.
#![forbid(unsafe_code)]

pub mod accept_limit;
pub mod channels;
pub mod clock;
pub mod connection_limit;
pub mod control;
pub mod datagram;
mod destination;
pub mod driver;
mod drops;
pub mod emulate;
pub mod file;
mod free_port;
pub mod handover;
pub mod latency;
mod local_addresses;
mod log_limit;
pub mod metrics;
pub mod open_files;
pub mod random;
mod rate_bound;
pub mod reach;
pub mod realtime;
pub mod reflector;
mod refused;
mod relays;
mod routes;
mod sessions;
pub mod settings;
mod slot;
mod socket;
mod source_address;
pub mod stats;
pub mod streams;
mod timer;
pub mod tun;
pub mod udp;
pub mod unavailable;

pub use destination::Destination;
pub use free_port::free_port;
pub use log_limit::LogLimit;
pub use rate_bound::RateBound;
pub use relays::Relays;
pub use routes::{routes, streams};
pub use socket::Local;
pub use streams::Tls;
