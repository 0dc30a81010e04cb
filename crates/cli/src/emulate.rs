//! `tautline emulate`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::Args;
use tautline_net::emulate::{Config, Emulator};
use tautline_sim::preset::Preset;

use crate::{settings, stop};

/// Emulate mobile links as a UDP relay.
///
/// Each link listens on a port of its own and forwards to the operator, and back. With --config
/// every link and direction has its own model: rate, queue, delay, jitter, loss, handovers,
/// outages or a Mahimahi trace; without, all follow one preset.
#[derive(Debug, Args)]
pub(crate) struct Emulate {
    /// TOML file with the links; instead of the flags below
    #[arg(long, env = "TAUTLINE_CONFIG", conflicts_with_all = ["preset", "links", "listen", "target", "seed"])]
    config: Option<PathBuf>,
    /// Model of every link: lan, lte or lte-driving
    #[arg(long, default_value = "lte-driving", value_parser = Preset::parse)]
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
}

impl Emulate {
    /// Runs the relay until it is asked to end, and prints how late it was.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config = match &self.config {
            Some(file) => settings::read::<Config>(file)?,
            None => Config::of_preset(self.preset, self.links, self.listen, self.target, self.seed),
        };
        settings::set(&mut config.control, self.control.map(Some));
        let emulator = Emulator::bind(config)?;
        for (number, address) in emulator.listen_addresses().iter().enumerate() {
            tracing::info!(number, %address, "link");
        }
        let ending = Arc::new(AtomicBool::new(false));
        let mut relay = {
            let ending = ending.clone();
            tokio::task::spawn_blocking(move || emulator.run(&ending))
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
