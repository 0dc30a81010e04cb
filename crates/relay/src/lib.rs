//! Relay that forwards the sealed datagrams of sessions between the two ends of a lease.
//!
//! It is blind: it holds no session key and changes no byte. The switchboard authorizes ends by
//! signed tokens; the relay has no connection to a switchboard. docs/relay.md describes the design.
//!
//! [`Table`] implements the behaviour without sockets or clocks; [`Server`] adds both.
#![forbid(unsafe_code)]

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use anyhow::Context;
use tautline_net::clock::Clock;
use tautline_net::metrics::{self, Labels, Page, Unit};
use tautline_net::unavailable;
use tautline_transport::crypto::Identity;

pub mod config;
mod counters;
mod ends;
mod server;
pub mod table;
mod train;

pub use config::Config;
pub use counters::{Counters, Dropped};
pub use server::Server;
pub use table::Table;

/// Runs a relay until `stop` resolves.
///
/// `seed`: 32 bytes from the system's randomness.
///
/// # Errors
/// One line: that of [`Server::bind`], or a later failure of the relay's thread or of the metrics'
/// server.
pub async fn run(
    config: Config,
    identity: Identity,
    clock: Clock,
    seed: [u8; 32],
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let mut stop = pin!(stop);
    let server = tokio::select! {
        bound = unavailable::opened(async || Server::bind(&config, &identity, clock, seed)) => bound?,
        () = &mut stop => return Ok(()),
    };
    let counters = server.counters();
    let ending = Arc::new(AtomicBool::new(false));
    let mut thread = {
        let ending = ending.clone();
        tokio::task::spawn_blocking(move || server.run(&ending))
    };
    let tell = async {
        let Some(address) = config.metrics else { return std::future::pending().await };
        let newest = move || counters.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let page = {
            let newest = newest.clone();
            move || page(&newest())
        };
        let routes = metrics::routes("relay", page, move || status(&newest()));
        metrics::serve(address, routes).await
    };
    let ended = tokio::select! {
        ended = &mut thread => return ended.context("the relay's thread failed")?,
        () = &mut stop => Ok(()),
        ended = tell => ended,
    };
    ending.store(true, Ordering::Relaxed);
    thread.await.context("the relay's thread failed")??;
    ended
}

/// Returns the page of metrics as OpenMetrics text.
fn page(counters: &Counters) -> String {
    let mut page = Page::new("tautline_relay");
    page.gauge("leases", None, "Known leases", counters.leases as f64);
    let help = "Sockets of ends that have proven their addresses";
    page.gauge("legs", None, help, counters.legs as f64);
    page.counter("forwarded", None, "Forwarded datagrams of sessions", counters.forwarded);
    let bytes = counters.bytes_forwarded.get();
    page.counter(
        "forwarded",
        Some(Unit::Bytes),
        "UDP payload of the forwarded datagrams, each counted once",
        bytes,
    );
    page.counter("welcomed", None, "Admitted legs", counters.welcomed);
    page.counter("proven", None, "Proofs of an address, including repeated ones", counters.proven);
    page.counter("moved", None, "Of these, proofs of another address than before", counters.moved);
    let help = "Answered questions for an address (STUN)";
    page.counter("addresses_told", None, help, counters.addresses_told);
    let help = "Answers to probes that could not be written to the latency files";
    page.counter("latency_lost", None, help, counters.latency_lost);
    let drops = counters.drops().map(|(name, count)| (Labels::of("name", name), count));
    page.counters("drops", None, "Datagrams that were not forwarded, by name", drops);
    page.finish()
}

/// Returns the text of `/status`: leases, legs, forwarded datagrams, and the drop counters above 0.
fn status(counters: &Counters) -> String {
    let Counters { leases, legs, forwarded, bytes_forwarded, .. } = counters;
    let head = format!(
        "leases     {leases}\nlegs       {legs}\nforwarded  {forwarded} datagrams, {bytes_forwarded}\n"
    );
    let drops = counters.drops().filter(|(_, count)| *count > 0);
    drops.fold(head, |text, (name, count)| text + &format!("dropped    {count} {name}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drop_has_a_line_on_the_metrics_page() {
        let mut counters = Counters { forwarded: 3, ..Counters::default() };
        counters.drop(Dropped::OverRate);
        let page = page(&counters);
        assert!(page.contains("tautline_relay_forwarded_total 3\n"), "{page}");
        assert!(page.contains("tautline_relay_drops_total{name=\"over_rate\"} 1\n"), "{page}");
        assert!(page.contains("tautline_relay_drops_total{name=\"replayed\"} 0\n"), "{page}");
        assert!(status(&counters).ends_with("dropped    1 over_rate\n"));
    }
}
