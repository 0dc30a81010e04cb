//! `tautline vehicle`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use tautline_message::snapshot::End;
use tautline_net::Local;
use tautline_net::datagram::Address;
use tautline_net::stats::Latest;
use tautline_vehicle::{Config, SimulatedMachine};

use crate::coding::Coding;
use crate::folders::Folders;
use crate::settings::{beside, checked, load, set};
use crate::source::Source;
use crate::stats::Stats;
use crate::{stop, view};

/// Run the vehicle's side: camera, uplink, and proposals to the guard.
///
/// Every flag can also be set in the TOML file under the same name, with _ for -. The sections
/// [transport], [camera_geometry], [[topics]], [deliver] and [people] of the file have no flag.
#[derive(Debug, Args)]
pub(crate) struct Vehicle {
    /// TOML file with any of these settings; flags and environment variables override it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Name of the vehicle at the switchboard [default: car-1]
    #[arg(long, env = "TAUTLINE_NAME")]
    name: Option<String>,
    /// Location shown to those who choose a vehicle, as text of at most 32 bytes [default: none]
    #[arg(long)]
    place: Option<String>,
    /// Secret key file, created by `tautline keys new` [default: vehicle.key]
    #[arg(long, env = "TAUTLINE_KEY")]
    key: Option<PathBuf>,
    /// Address of the switchboard, as host:port [default: 127.0.0.1:7443]
    #[arg(long, env = "TAUTLINE_SWITCHBOARD")]
    switchboard: Option<String>,
    /// Public key of the switchboard, 64 hexadecimal digits
    #[arg(long, env = "TAUTLINE_SWITCHBOARD_KEY")]
    switchboard_key: Option<String>,
    /// File that keeps the highest lease epoch across restarts [default: none, a restart forgets
    /// it]
    #[arg(long, value_name = "FILE")]
    epoch: Option<PathBuf>,
    /// Public key of an operator that may drive; repeat for several
    #[arg(long = "operator", alias = "operators", value_name = "KEY")]
    operators: Vec<String>,
    /// Local end of a link, one per modem: address:port, or an interface such as wwan0; repeat for
    /// several [default: any address, any port]
    #[arg(long = "link", alias = "links", value_name = "LOCAL")]
    links: Vec<Local>,
    /// Keep a link over TLS to an operator that offers one, for networks that block UDP
    /// [default: true]
    #[arg(long, value_name = "BOOL")]
    tls: Option<bool>,
    #[command(flatten)]
    source: Source,
    /// Pictures per second of the simulated camera, 1 to 60 [default: 60]
    #[arg(long, value_name = "N")]
    pictures_per_second: Option<f64>,
    #[command(flatten)]
    coding: Coding,
    /// Address at which the guard listens for the vehicle: a path, or address:port for UDP
    /// [default: /run/tautline/vehicle.sock]
    #[arg(long, value_name = "ADDRESS")]
    guard: Option<Address>,
    /// Machine that carries the simulated camera: car, robot, rover or cart [default: car]
    #[arg(long, value_name = "KIND")]
    machine: Option<SimulatedMachine>,
    /// Seed of the simulated course [default: 1]
    #[arg(long)]
    seed: Option<u64>,
    /// Address that serves /metrics for Prometheus [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    stats: Stats,
}

impl Vehicle {
    /// Runs the vehicle until it is asked to end.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        self.run_with(|_| {}).await
    }

    /// Runs the vehicle until it is asked to end; `change` changes its transport in ways that no
    /// setting does.
    pub(crate) async fn run_with(
        self,
        change: impl FnOnce(&mut tautline_transport::Config),
    ) -> anyhow::Result<()> {
        let mut config = settings(self.config.as_deref())?;
        set(&mut config.name, self.name);
        set(&mut config.place, self.place.map(Some));
        set(&mut config.key, self.key);
        set(&mut config.switchboard, self.switchboard);
        set(&mut config.switchboard_key, self.switchboard_key);
        set(&mut config.epoch, self.epoch.map(Some));
        set(&mut config.operators, Some(self.operators).filter(|keys| !keys.is_empty()));
        set(&mut config.links, Some(self.links).filter(|links| !links.is_empty()));
        set(&mut config.tls, self.tls);
        self.source.set(&mut config);
        set(&mut config.pictures_per_second, self.pictures_per_second);
        self.coding.set(&mut config);
        set(&mut config.guard, self.guard);
        set(&mut config.machine, self.machine);
        set(&mut config.seed, self.seed);
        set(&mut config.metrics, self.metrics.map(Some));
        let identity = checked(config.validate(), &config.key)?;
        change(&mut config.transport);
        let latest = Latest::of(End::Vehicle);
        let (follow, open_sensor) = view::open(&config);
        let shown = latest.clone();
        let work = tautline_vehicle::run(config, identity, follow, open_sensor, shown, stop::asked);
        self.stats.alongside(&latest, work).await
    }
}

/// Reads the settings of a file and resolves their paths against its folder; returns the defaults
/// without a file.
pub(crate) fn settings(file: Option<&Path>) -> anyhow::Result<Config> {
    let mut config: Config = load(file)?;
    beside(file, Source::paths(&mut config));
    let topics = config.topics.iter_mut();
    let topics = topics.flat_map(|topic| [topic.listen.path_mut(), topic.schema.as_mut()]);
    beside(file, topics.flatten());
    beside(file, config.deliver.values_mut().filter_map(Address::path_mut));
    beside(file, [&mut config.key]);
    let folders = Folders::of(file);
    folders.keep([config.epoch.as_mut(), config.orders.as_mut()].into_iter().flatten());
    folders.connect(config.guard.path_mut());
    Ok(config)
}
