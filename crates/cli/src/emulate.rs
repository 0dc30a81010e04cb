//! `tautline emulate`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tautline_net::emulate::control::{Status, Summary};
use tautline_net::emulate::{Config, Emulator, check};
use tautline_net::realtime::{self, Urgency};
use tautline_sim::preset::Preset;

use crate::{settings, stop};

/// Emulate mobile links as a UDP relay.
///
/// Each link listens on a port of its own and forwards to the operator, and back. With --config
/// every link and direction has its own model: rate, queue, delay, jitter, loss, handovers,
/// outages, a Mahimahi trace, a recording of pings, and what links have in common; without, all
/// follow one preset.
#[derive(Debug, Args)]
pub(crate) struct Emulate {
    /// TOML file with the links; instead of the flags below
    #[arg(long, env = "TAUTLINE_CONFIG", conflicts_with_all = ["preset", "links", "listen", "target", "seed"])]
    config: Option<PathBuf>,
    /// Model of every link: lan, lte, lte-driving, lte-town, lte-countryside or model
    #[arg(long, default_value = "lte-driving")]
    preset: Preset,
    /// Number of links, 1 to 16
    #[arg(long, default_value_t = 4, value_name = "N")]
    links: usize,
    /// Address of the first link, UDP; the others follow on the next ports
    #[arg(long, default_value = "127.0.0.1:7101", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Operator's address that the links lead to, UDP
    #[arg(long, default_value = "127.0.0.1:7000", value_name = "ADDRESS")]
    target: SocketAddr,
    /// Seed of every random number of the models
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Address of the control channel, TCP, where links are cut and restored [default: none]
    #[arg(long, value_name = "ADDRESS")]
    control: Option<SocketAddr>,
    /// Measure for so many seconds how late the emulator is on this machine, on loopback addresses
    /// of its own, and print it
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    check: Option<u64>,
}

impl Emulate {
    /// Runs the relay until it is asked to end, and prints how late it was.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config = match &self.config {
            Some(file) => settings::read::<Config>(file)?,
            None => Config::of_preset(self.preset, self.links, self.listen, self.target, self.seed),
        };
        if let Some(seconds) = self.check {
            return check(config, seconds).await;
        }
        settings::set(&mut config.control, self.control.map(Some));
        let emulator = Emulator::bind(config)?;
        for (number, address) in emulator.listen_addresses().iter().enumerate() {
            tracing::info!(number, %address, "link");
        }
        let ending = Arc::new(AtomicBool::new(false));
        let mut relay = {
            let ending = ending.clone();
            tokio::task::spawn_blocking(move || {
                realtime::raise_thread("the emulated network", Urgency::Network);
                emulator.run(&ending)
            })
        };
        let status = tokio::select! {
            ended = &mut relay => ended,
            () = stop::asked() => {
                ending.store(true, Ordering::Relaxed);
                relay.await
            }
        };
        let status = status.context("the relay's thread failed")??;
        println!("{}", serde_json::to_string_pretty(&status)?);
        Ok(())
    }
}

/// Prints scheduled against actual departures.
async fn check(config: Config, seconds: u64) -> anyhow::Result<()> {
    let length = Duration::from_secs(seconds);
    let measured = tokio::task::spawn_blocking(move || check::check(&config, length));
    let status: Status = measured.await.context("the check's thread failed")??;
    println!(
        "{} links, each {} datagrams of {} bytes a second up, for {seconds} s",
        status.links.len(),
        check::UP_PER_SECOND,
        check::UP_BYTES,
    );
    println!("departure, actual less scheduled, us");
    println!("{:<16}{:>10}{:>10}{:>10}{:>10}", "link", "datagrams", "p50", "p99", "worst");
    let row = |name: &str, late: &Summary| {
        let Summary { count, p50_us, p99_us, max_us } = late;
        println!("{name:<16}{count:>10}{p50_us:>10.0}{p99_us:>10.0}{max_us:>10.0}");
    };
    for link in &status.links {
        row(&link.name, &link.lateness);
    }
    row("all", &status.lateness);
    Ok(())
}
