//! Switchboard: registration, leases, introduction, and measured delays.
//!
//! Vehicles and operators connect over TLS with their keys and register under the names that the
//! switchboard's settings assign to those keys. An operator takes a vehicle, which creates a
//! *lease*, and each of the two receives the other's key and addresses. From then on they
//! communicate directly. The switchboard holds no session key and carries no payload. Both
//! connections stay open: to introduce the two again after either has restarted, and to measure the
//! delay to each ([UGV], "Overall System Architecture" and "Measuring Latency"). Leases outlive the
//! switchboard's process.
//!
//! [`Directory`] implements the behaviour without sockets, clocks or disks. [`Server`] adds sockets
//! and clocks, and [`Store`] the disk.
#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tautline_net::clock::Clock;
use tautline_net::metrics::{self, Labels, Page};
use tautline_net::reflector::{self, Reflector};
use tautline_net::unavailable;
use tautline_transport::crypto::Identity;

pub mod config;
pub mod directory;
pub mod latency;
pub mod relays;
mod server;
pub mod store;

pub use config::Config;
pub use directory::Directory;
pub use server::{Counters, Server};
pub use store::Store;

/// Runs a switchboard until `stop` resolves.
///
/// `seed`: 32 bytes from the system's randomness, the seed for lease names. Each time that `again`
/// resolves, the vehicles, operators and supervisors of its settings replace the current ones; all
/// other settings apply at the next start. If the UDP ports that answer requests for an address
/// cannot be used, that is only logged.
///
/// # Errors
/// One line: the fault in `config`, the address or folder that cannot be used, or a later failure
/// to store the state or to serve the metrics.
pub async fn run(
    config: Config,
    identity: Identity,
    clock: Clock,
    seed: [u8; 32],
    stop: impl Future<Output = ()>,
    mut again: impl AsyncFnMut() -> Config,
) -> anyhow::Result<()> {
    let mut stop = pin!(stop);
    let bound = async {
        let store = unavailable::opened(async || Store::open(&config.state)).await?;
        Server::bind(&config, &identity, store, clock, seed).await
    };
    let server = tokio::select! {
        bound = bound => bound?,
        () = &mut stop => return Ok(()),
    };
    let counters = server.counters();
    let (listen, reflected) = (server.local(), Arc::<reflector::Counters>::default());
    let reflect = {
        let counters = reflected.clone();
        async move {
            let second = config.second_address;
            let bind = async || Reflector::bind_with(listen, second, counters.clone());
            match unavailable::opened(bind).await {
                Ok(reflector) => reflector.serve(clock).await,
                // Ends with public addresses can still be introduced.
                Err(error) => {
                    tracing::warn!("clients cannot ask for their address: {error:#}");
                    std::future::pending().await
                }
            }
        }
    };
    let settings = server.settings();
    let relist = async {
        // A failed send means that the switchboard is ending.
        while settings.send(again().await).await.is_ok() {}
        std::future::pending().await
    };
    let serve = server.serve(stop);
    let serve = async {
        tokio::select! {
            served = serve => served,
            () = reflect => Ok(()),
            () = relist => Ok(()),
        }
    };
    let Some(address) = config.metrics else { return serve.await };
    let page = {
        let counters = counters.clone();
        move || page(&counters, &reflected)
    };
    let status = move || format!("connections  {}\n", counters.connections.load(Ordering::Relaxed));
    tokio::select! {
        served = serve => served,
        ended = metrics::serve(address, metrics::routes("switchboard", page, status)) => ended,
    }
}

/// Returns the page of metrics as OpenMetrics text.
fn page(counters: &Counters, reflected: &reflector::Counters) -> String {
    let mut page = Page::new("tautline_switchboard");
    let connections = counters.connections.load(Ordering::Relaxed);
    page.gauge("connections", None, "Connections with a proven key", connections as f64);
    let turned_away = counters.turned_away.load(Ordering::Relaxed);
    let help = "Connections that were refused or closed because of a limit";
    page.counter("turned_away", None, help, turned_away);
    let not_accepted = counters.not_accepted.load(Ordering::Relaxed);
    let help = "Connections that the system could not accept, for instance without a free file";
    page.counter("not_accepted", None, help, not_accepted);
    let handed_over = counters.handed_over.load(Ordering::Relaxed);
    let help = "Connections handed over to the relay that shares the port";
    page.counter("handed_over", None, help, handed_over);
    let unclaimed = counters.unclaimed_answers.load(Ordering::Relaxed);
    let help = "Answers of vehicles to orders that nobody waited for any more";
    page.counter("unclaimed_answers", None, help, unclaimed);
    let lost = counters.latency_lost.load(Ordering::Relaxed);
    let help = "Answers to pings that could not be written to the latency files";
    page.counter("latency_lost", None, help, lost);
    let what = [
        ("answered", &reflected.answered),
        ("limited", &reflected.limited),
        ("malformed", &reflected.malformed),
    ];
    let requests =
        what.map(|(what, count)| (Labels::of("what", what), count.load(Ordering::Relaxed)));
    let help = "Requests over UDP for the sender's address, by outcome";
    page.counters("address_requests", None, help, requests);
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_turned_away_are_counted_in_the_metrics() {
        let counters = Counters::default();
        counters.turned_away.store(7, Ordering::Relaxed);
        let reflected = reflector::Counters::default();
        reflected.answered.store(3, Ordering::Relaxed);
        let page = page(&counters, &reflected);
        let line = "tautline_switchboard_address_requests_total{what=\"answered\"} 3\n";
        assert!(page.contains(line), "{page}");
        assert!(page.contains("tautline_switchboard_turned_away_total 7\n"), "{page}");
        assert!(page.contains("tautline_switchboard_connections 0"), "{page}");
    }
}
