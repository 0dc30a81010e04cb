//! `tautline vehicle`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use tautline_message::snapshot::End;
use tautline_net::Local;
use tautline_net::datagram::Address;
use tautline_net::stats::Latest;
use tautline_vehicle::Config;

use crate::coding::Coding;
use crate::places::Places;
use crate::settings::{beside, load, right, set};
use crate::source::Source;
use crate::stats::Stats;
use crate::{keys, machine, stop};

/// The vehicle's side: camera, uplink, and proposals to the guard.
///
/// Every flag may stand in the TOML file under the same name, with _ for -; there the sections
/// [transport], [camera_geometry], [[topics]] and [people] hold what has no flag.
#[derive(Debug, Args)]
pub(crate) struct Vehicle {
    /// TOML file with any of these settings; flags and environment go before it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Name under which the switchboard knows the vehicle [default: car-1]
    #[arg(long, env = "TAUTLINE_NAME")]
    name: Option<String>,
    /// Where it is, in words for those who choose a vehicle, at most 32 bytes [default: none]
    #[arg(long)]
    place: Option<String>,
    /// Secret key file, made by `tautline keys new` [default: vehicle.key]
    #[arg(long, env = "TAUTLINE_KEY")]
    key: Option<PathBuf>,
    /// The switchboard, as host:port [default: 127.0.0.1:7443]
    #[arg(long, env = "TAUTLINE_SWITCHBOARD")]
    switchboard: Option<String>,
    /// The switchboard's public key, 64 hexadecimal digits
    #[arg(long, env = "TAUTLINE_SWITCHBOARD_KEY")]
    switchboard_key: Option<String>,
    /// File that keeps the highest epoch of a lease over a restart [default: none, a restart forgets it]
    #[arg(long, value_name = "FILE")]
    epoch: Option<PathBuf>,
    /// Public key of an operator that may drive; repeat for several
    #[arg(long = "operator", alias = "operators", value_name = "KEY")]
    operators: Vec<String>,
    /// Local end of a link, one a modem: address:port, or an interface such as wwan0; repeat for
    /// several [default: any address, any port]
    #[arg(long = "link", alias = "links", value_name = "LOCAL")]
    links: Vec<Local>,
    /// Whether to keep a link over TLS to an operator that offers one, for networks that let no UDP pass
    /// [default: true]
    #[arg(long, value_name = "BOOL")]
    tls: Option<bool>,
    #[command(flatten)]
    source: Source,
    /// Pictures a second of the simulated camera, 1 to 60 [default: 60]
    #[arg(long, value_name = "N")]
    pictures_per_second: Option<f64>,
    #[command(flatten)]
    coding: Coding,
    /// Where the guard listens for the vehicle: a path, or address:port for UDP [default: /run/tautline/vehicle.sock]
    #[arg(long, value_name = "ADDRESS")]
    guard: Option<Address>,
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
        set(&mut config.seed, self.seed);
        set(&mut config.metrics, self.metrics.map(Some));
        right(config.validate())?;
        let identity = right(keys::read(&config.key))?;
        let latest = Latest::of(End::Vehicle);
        let (follow, open_sensor) = machine::open(&config);
        let shown = latest.clone();
        let work = tautline_vehicle::run(config, identity, follow, open_sensor, shown, stop::asked);
        self.stats.alongside(&latest, work).await
    }
}

/// Reads the settings of a file, or gives the defaults where there is none.
pub(crate) fn settings(file: Option<&Path>) -> anyhow::Result<Config> {
    let mut config: Config = load(file)?;
    beside(file, Source::paths(&mut config));
    let topics = config.topics.iter_mut();
    let topics = topics.flat_map(|topic| [topic.listen.path_mut(), topic.schema.as_mut()]);
    beside(file, topics.flatten());
    beside(file, [&mut config.key]);
    let places = Places::of(file);
    places.keep([config.epoch.as_mut(), config.orders.as_mut()].into_iter().flatten());
    places.connect(config.guard.path_mut());
    Ok(config)
}
