//! Simulation in virtual time: link models and a world of nodes, all driven by seeds.
//!
//! - [`link`]: one direction of one link: rate, queue, delay, loss, outages.
//! - [`nat`]: a network address translator, configurable by mapping and filtering behaviour.
//! - [`trace`]: recorded capacity in the Mahimahi format.
//! - [`recording`]: recorded round trips, read from ping files.
//! - [`preset`]: named links, each number with its source.
//! - [`world`]: nodes with their own clocks, joined by links, in virtual time.
//! - [`wireless`]: an access point and a station that share one channel.
//!
//! Nothing here reads a clock, a socket or an unseeded random number. The same models run in real
//! time in `tautline emulate`.
#![forbid(unsafe_code)]

mod error;
pub mod link;
pub mod nat;
pub mod preset;
pub mod recording;
pub mod trace;
pub mod wireless;
pub mod world;

pub use error::Error;
