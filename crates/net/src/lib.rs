//! Sockets, the one clock, the event loop and the real-time link emulator.

pub mod clock;
pub mod control;
pub mod emulate;
pub mod metrics;
mod socket;

pub use socket::Local;
