//! `tautline emulate`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use tautline_net::emulate::control::{Status, Summary};
use tautline_net::emulate::{Config, Emulator, End, WirelessConfig, check};
use tautline_net::realtime::{self, Urgency};
use tautline_net::tun::Namespace;
use tautline_sim::preset::Preset;
use tautline_sim::wireless::Power;
use tautline_units::Bounded;

use crate::{settings, stop};

/// Emulate mobile links, as a UDP relay or as network devices for any kind of socket.
///
/// As a relay, each link listens on a port of its own and forwards to the operator, and back. With
/// --tun each link is a TUN device in each of two network namespaces; packets of any protocol pass
/// from one to the other. This requires root. With --config every link and direction has its own
/// model: rate, queue, delay, jitter, loss, handovers, outages, a Mahimahi trace, a recording of
/// pings, and processes common to several links. Without it, all links follow one preset.
#[derive(Debug, Args)]
pub(crate) struct Emulate {
    /// TOML file with the links; replaces the flags below
    #[arg(long, env = "TAUTLINE_CONFIG", conflicts_with_all = ["preset", "links", "listen", "target", "seed", "wireless"])]
    config: Option<PathBuf>,
    /// Model of every link: lan, lte, lte-driving, lte-town, lte-countryside or model
    #[arg(long, default_value = "lte-driving")]
    preset: Preset,
    /// Number of links, 1 to 16
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = links_count)]
    links: usize,
    /// UDP address of the first link; the others use the next ports
    #[arg(long, default_value = "127.0.0.1:7101", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// UDP address of the operator, to which the links lead
    #[arg(long, default_value = "127.0.0.1:7000", value_name = "ADDRESS")]
    target: SocketAddr,
    /// Seed of every random number of the models
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Create network devices instead of the relay: link 3 is tautline3, with the address 10.77.3.1
    /// in the first namespace and 10.77.3.2 in the second. `listen` and `target` are then not used
    #[arg(long, conflicts_with_all = ["listen", "target", "check"])]
    tun: bool,
    /// Network namespaces of --tun, the vehicle's and the operator's; created if missing, and then
    /// removed at the end
    #[arg(
        long,
        value_name = "VEHICLE,OPERATOR",
        value_delimiter = ',',
        num_args = 1,
        default_value = "vehicle,operator",
        requires = "tun"
    )]
    namespaces: Vec<String>,
    /// Model every link of --tun as a car's wireless network instead of the preset, with this
    /// received power in dBm: -20, -35 or -60. Both directions share the channel, also with a
    /// competing flow of 2000 kB/s
    #[arg(
        long,
        value_name = "DBM",
        allow_hyphen_values = true,
        requires = "tun",
        conflicts_with = "preset",
        value_parser = received_power
    )]
    wireless: Option<i32>,
    /// TCP address of the control channel, by which links are cut and restored [default: none]
    #[arg(long, value_name = "ADDRESS")]
    control: Option<SocketAddr>,
    /// Measure for this time in seconds how late the emulator is on this machine, on its own
    /// loopback addresses, and print the result
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    check: Option<u64>,
}

impl Emulate {
    /// Runs the links until it is asked to end, and prints their counts and lateness.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config = match &self.config {
            Some(file) => settings::read::<Config>(file)?,
            None => self.of_flags(),
        };
        if let Some(seconds) = self.check {
            return check(config, seconds).await;
        }
        settings::set(&mut config.control, self.control.map(Some));
        if self.tun {
            return self.between_namespaces(config).await;
        }
        let emulator = Emulator::bind(config)?;
        for (number, address) in emulator.listen_addresses().iter().enumerate() {
            tracing::info!(number, %address, "link");
        }
        run(emulator).await
    }

    fn of_flags(&self) -> Config {
        let mut config =
            Config::of_preset(self.preset, self.links, self.listen, self.target, self.seed);
        if let Some(power_dbm) = self.wireless {
            for link in &mut config.links {
                link.preset = None;
                link.wireless = Some(WirelessConfig { power_dbm, disturbed: true });
            }
        }
        config
    }

    /// Emulates the links as devices between two network namespaces. Namespaces that it creates are
    /// removed at the end, after the devices.
    async fn between_namespaces(&self, config: Config) -> anyhow::Result<()> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "--tun makes devices in network namespaces, which only root may"
        );
        let [vehicle, operator] = self.namespaces.as_slice() else {
            bail!(
                "--namespaces: two names with a comma between them, the vehicle's and the operator's"
            );
        };
        ensure!(vehicle != operator, "--namespaces: {vehicle} is given twice");
        config.validate()?;
        let namespaces = [Namespace::open_or_make(vehicle)?, Namespace::open_or_make(operator)?];
        let ends = namespaces.each_ref().map(|namespace| End { namespace, device: DEVICE });
        let names: Vec<String> = config.links.iter().map(|link| link.name.clone()).collect();
        let emulator = Emulator::between(config, ends, NETWORK)?;
        for (number, [here, there]) in emulator.device_addresses().into_iter().enumerate() {
            let name = &names[number];
            tracing::info!(number, name, "link: {here} in {vehicle}, {there} in {operator}");
        }
        run(emulator).await
    }
}

/// Parses a received power that has a model.
fn received_power(text: &str) -> anyhow::Result<i32> {
    let power = text.parse().ok().filter(|power| Power::of_dbm(*power).is_some());
    power.context("must be -20, -35 or -60 dBm")
}

/// Parses a number of links. For any other text, the error says which flag it belongs to.
fn links_count(text: &str) -> anyhow::Result<usize> {
    if let Ok(count) = text.parse::<usize>() {
        let count_max = Config::LINKS_MAX as f64;
        Bounded::new("--links", count as f64, 1.0..=count_max).in_unit("links").check()?;
        return Ok(count);
    }
    if text.parse::<Preset>().is_ok() {
        bail!("it is how many links, such as 4; their model is given with --preset {text}");
    }
    let file = match std::fs::metadata(text) {
        Ok(_) => format!("links of a file are given with --config {text}"),
        Err(error) => format!("{text}: {error}; links of a file are given with --config FILE"),
    };
    bail!("it is how many links, such as 4; {file}, a known model with --preset: {}", MODELS)
}

async fn run(emulator: Emulator) -> anyhow::Result<()> {
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
    tell!("{}", serde_json::to_string_pretty(&status)?);
    Ok(())
}

/// Runs the emulator on loopback addresses for `seconds`, and prints per link and for all links
/// their number of datagrams and how late these left: median, 99th percentile and maximum, us.
async fn check(config: Config, seconds: u64) -> anyhow::Result<()> {
    let length = Duration::from_secs(seconds);
    let measured = tokio::task::spawn_blocking(move || check::check(&config, length));
    let status: Status = measured.await.context("the check's thread failed")??;
    tell!(
        "{} links, each {} datagrams of {} bytes a second up, for {seconds} s",
        status.links.len(),
        check::UP_PER_SECOND,
        check::UP_BYTES,
    );
    tell!("departure, actual less scheduled, us");
    tell!("{:<16}{:>10}{:>10}{:>10}{:>10}", "link", "datagrams", "p50", "p99", "worst");
    let row = |name: &str, late: &Summary| {
        let Summary { count, p50_us, p99_us, max_us } = late;
        tell!("{name:<16}{count:>10}{p50_us:>10.0}{p99_us:>10.0}{max_us:>10.0}");
    };
    for link in &status.links {
        row(&link.name, &link.lateness);
    }
    row("all", &status.lateness);
    Ok(())
}

/// Names of the known models, for messages.
const MODELS: &str = "lan, lte, lte-driving, lte-town, lte-countryside or model";
/// Prefix of the devices' names; [`NETWORK`] is that of their addresses.
const DEVICE: &str = "tautline";
const NETWORK: [u8; 2] = [10, 77];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_link_count_names_the_right_flag() {
        assert_eq!(links_count("4").unwrap(), 4);
        let wrong = |text: &str| links_count(text).unwrap_err().to_string();
        let words = wrong("nope.toml");
        assert!(words.contains("nope.toml: No such file") && words.contains(MODELS), "{words}");
        assert!(wrong("lte-town").contains("--preset lte-town"));
        assert!(wrong("/dev/null").contains("--config /dev/null"));
        for name in MODELS.replace(" or ", ", ").split(", ") {
            assert!(name.parse::<Preset>().is_ok(), "{name}");
        }
    }
}
