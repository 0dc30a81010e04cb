//! The switchboard: who is there, who may drive, where they can be reached, how far away they are.
//!
//! Vehicles and operators connect over TLS with their keys and register under the names that the
//! switchboard's settings give those keys. An operator takes a vehicle: that is a *lease*, and
//! each of the two is told the other's key and addresses. From then on they speak directly. The
//! switchboard holds no session key and carries no payload; both connections stay, to bring the
//! two together again after either has restarted, and to measure the way to each ([UGV],
//! "Overall System Architecture" and "Measuring Latency").
//!
//! [`Directory`] is the whole of the behaviour, without sockets or clocks; [`Server`] gives it
//! both.
#![forbid(unsafe_code)]

use std::future::Future;

use tautline_net::clock::Clock;
use tautline_transport::crypto::Identity;

pub mod config;
pub mod directory;
pub mod latency;
mod places;
mod server;

pub use config::Config;
pub use directory::Directory;
pub use server::Server;

/// Serves as a switchboard until `stop` resolves.
///
/// `seed`: 32 bytes from the system's randomness; lease names grow from them.
///
/// # Errors
/// One line: what is wrong in `config`, or why its address cannot be listened on.
pub async fn run(
    config: Config,
    identity: Identity,
    clock: Clock,
    seed: [u8; 32],
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    Server::bind(&config, &identity, clock, seed).await?.serve(stop).await;
    Ok(())
}
