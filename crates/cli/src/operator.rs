//! `tautline operator`.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use tautline_message::snapshot::End;
use tautline_net::Local;
use tautline_net::datagram::Address;
use tautline_net::stats::Latest;
use tautline_operator::{Behind, Config, Opening, Right};

use crate::places::Places;
use crate::settings::{beside, load, right, set};
use crate::stats::Stats;
use crate::{keys, stop};

/// The operator's side: downlink, commands and the browser console.
///
/// Every flag may stand in the TOML file under the same name, with _ for -; there the sections
/// [transport], [deliver] and [vehicles], the keys of vehicles by name, hold what has no flag.
#[derive(Debug, Args)]
pub(crate) struct Operator {
    /// TOML file with any of these settings; flags and environment go before it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Name that others are told [default: operator-1]
    #[arg(long, env = "TAUTLINE_NAME")]
    name: Option<String>,
    /// Secret key file, made by `tautline keys new` [default: operator.key]
    #[arg(long, env = "TAUTLINE_KEY")]
    key: Option<PathBuf>,
    /// The switchboard, as host:port [default: 127.0.0.1:7443]
    #[arg(long, env = "TAUTLINE_SWITCHBOARD")]
    switchboard: Option<String>,
    /// The switchboard's public key, 64 hexadecimal digits
    #[arg(long, env = "TAUTLINE_SWITCHBOARD_KEY")]
    switchboard_key: Option<String>,
    /// Name of the vehicle to take [default: the person picks one on the console]
    #[arg(long)]
    vehicle: Option<String>,
    /// Its public key; any other is refused [default: the first one with which there is a session]
    #[arg(long, env = "TAUTLINE_VEHICLE_KEY")]
    vehicle_key: Option<String>,
    /// Local end for the vehicle's links: address:port, or an interface; repeat for several
    /// [default: any address, port 7000]
    #[arg(long = "link", alias = "links", value_name = "LOCAL")]
    links: Vec<Local>,
    /// Address at which the vehicle has to reach this machine; repeat for several [default: it is
    /// found out, through NATs too]
    #[arg(long, value_name = "ADDRESS")]
    advertise: Vec<SocketAddr>,
    /// Where to listen for a link over TLS, which carries what UDP cannot where a network lets none pass:
    /// port 443 passes most [default: nowhere]
    #[arg(long, value_name = "ADDRESS")]
    tls: Option<SocketAddr>,
    /// Address at which the vehicle reaches that; repeat for several [default: the address itself]
    #[arg(long, value_name = "ADDRESS")]
    tls_advertise: Vec<SocketAddr>,
    /// Address of the browser console [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    console: Option<SocketAddr>,
    /// Name by which browsers reach the console, with its port if that is another; repeat for several
    /// [default: the address; needed for an address that is every one of the machine's]
    #[arg(long = "console-name", alias = "console-names", value_name = "NAME")]
    console_names: Vec<String>,
    /// What a proxy before the console speaks with browsers: https, if it ends TLS and hands on plain HTTP to the loopback
    /// interface, under the names of --console-name [default: there is no proxy]
    #[arg(long, value_name = "SCHEME")]
    console_behind: Option<Behind>,
    /// Certificate chain of the console in PEM form [default: beyond the loopback interface one made
    /// from the key, whose fingerprint is printed]
    #[arg(long, value_name = "FILE")]
    console_certificate: Option<PathBuf>,
    /// The certificate's secret key in PEM form
    #[arg(long, value_name = "FILE")]
    console_certificate_key: Option<PathBuf>,
    /// Print an address too that lets a browser in which only watches: it sees telemetry, status and who drives, and
    /// nothing that it says is taken, not even an emergency stop [default: false]
    #[arg(long)]
    watch: bool,
    /// Address for metrics, status and probes [default: the console's, if that is of the loopback
    /// interface]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Folder to record what is received into: each strip's H.264 stream, a line a slice, channels.mcap with
    /// all but the video, a line for each round trip, which `tautline latency` reads, and of a vehicle started
    /// with --joinable picture.h264, which any player shows [default: none]
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Control address of a `tautline emulate`, for the console's cut and restore buttons
    /// [default: none]
    #[arg(long, value_name = "ADDRESS")]
    emulator: Option<SocketAddr>,
    #[command(flatten)]
    stats: Stats,
}

impl Operator {
    /// Runs the operator until it is asked to end.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config = settings(self.config.as_deref())?;
        set(&mut config.name, self.name);
        set(&mut config.key, self.key);
        set(&mut config.switchboard, self.switchboard);
        set(&mut config.switchboard_key, self.switchboard_key);
        set(&mut config.vehicle, self.vehicle.map(Some));
        set(&mut config.vehicle_key, self.vehicle_key.map(Some));
        set(&mut config.links, Some(self.links).filter(|links| !links.is_empty()));
        set(&mut config.advertise, Some(self.advertise).filter(|all| !all.is_empty()));
        set(&mut config.tls, self.tls.map(Some));
        let elsewhere = Some(self.tls_advertise).filter(|all| !all.is_empty());
        set(&mut config.tls_advertise, elsewhere);
        set(&mut config.console, self.console);
        set(&mut config.console_names, Some(self.console_names).filter(|names| !names.is_empty()));
        set(&mut config.console_behind, self.console_behind.map(Some));
        set(&mut config.console_certificate, self.console_certificate.map(Some));
        set(&mut config.console_certificate_key, self.console_certificate_key.map(Some));
        set(&mut config.watch, self.watch.then_some(true));
        set(&mut config.metrics, self.metrics.map(Some));
        set(&mut config.record, self.record.map(Some));
        set(&mut config.emulator, self.emulator.map(Some));
        right(config.validate())?;
        let identity = right(keys::read(&config.key))?;
        let latest = Latest::of(End::Operator);
        let work = tautline_operator::run(
            config,
            identity,
            latest.clone(),
            |opening| announce(&opening),
            stop::asked(),
        );
        self.stats.alongside(&latest, work).await
    }
}

/// Reads the settings of a file, or gives the defaults where there is none.
pub(crate) fn settings(file: Option<&Path>) -> anyhow::Result<Config> {
    let mut config: Config = load(file)?;
    let files = [&mut config.console_certificate, &mut config.console_certificate_key];
    let programs = config.deliver.values_mut().filter_map(Address::path_mut);
    let paths = files.into_iter().flatten().chain(programs).chain([&mut config.key]);
    beside(file, paths);
    Places::of(file).keep(&mut config.record);
    Ok(config)
}

/// Prints the address that lets the next browser in; a person who no longer reads is no reason to end.
fn announce(Opening { address, fingerprint, right }: &Opening) {
    let mut output = std::io::stdout();
    if let Some(fingerprint) = fingerprint {
        let _ = writeln!(output, "Certificate, SHA-256: {fingerprint}");
    }
    let before = match right {
        Right::Drive => OPEN,
        Right::Watch => WATCH,
    };
    let _ = writeln!(output, "{before}{address}");
}

/// Before an address that lets one browser in.
pub(crate) const OPEN: &str = "Open  ";
/// Before an address that lets one browser in which only watches.
const WATCH: &str = "Watch ";
