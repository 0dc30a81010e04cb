//! Virtual time: link models and a world of nodes, all of it from seeds.
//!
//! - [`link`]: one direction of one link: rate, queue, delay, loss, outages.
//! - [`nat`]: a translator of addresses, by what it goes by.
//! - [`trace`]: recorded capacity in the Mahimahi format.
//! - [`recording`]: recorded round trips, as files of pings have them.
//! - [`preset`]: named links, every number with its reason.
//! - [`world`]: nodes with clocks of their own, joined by links, in virtual time.
//! - [`wireless`]: an access point and a station that share one channel.
//!
//! Nothing here reads a clock, a socket or an unseeded random number. The same models run in
//! real time in `tautline emulate`.
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
