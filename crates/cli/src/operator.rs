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

use crate::folders::Folders;
use crate::settings::{beside, checked, load, set};
use crate::stats::Stats;
use crate::stop;

/// Run the operator's side: downlink, commands and the browser console.
///
/// Every flag can also be set in the TOML file under the same name, with _ for -. The sections
/// [transport], [[topics]], [deliver] and [vehicles] (public keys of vehicles, by name) of the file
/// have no flag.
#[derive(Debug, Args)]
pub(crate) struct Operator {
    /// TOML file with any of these settings; flags and environment variables override it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Name of the operator, visible to others [default: operator-1]
    #[arg(long, env = "TAUTLINE_NAME")]
    name: Option<String>,
    /// Secret key file, created by `tautline keys new` [default: operator.key]
    #[arg(long, env = "TAUTLINE_KEY")]
    key: Option<PathBuf>,
    /// Address of the switchboard, as host:port [default: 127.0.0.1:7443]
    #[arg(long, env = "TAUTLINE_SWITCHBOARD")]
    switchboard: Option<String>,
    /// Public key of the switchboard, 64 hexadecimal digits
    #[arg(long, env = "TAUTLINE_SWITCHBOARD_KEY")]
    switchboard_key: Option<String>,
    /// Name of the vehicle to take [default: a person picks one on the console]
    #[arg(long)]
    vehicle: Option<String>,
    /// Public key of the vehicle; any other is refused [default: the first one with a session]
    #[arg(long, env = "TAUTLINE_VEHICLE_KEY")]
    vehicle_key: Option<String>,
    /// Local end of the vehicle's links: address:port, or an interface; repeat for several
    /// [default: any address, port 7000]
    #[arg(long = "link", alias = "links", value_name = "LOCAL")]
    links: Vec<Local>,
    /// Address at which the vehicle must reach this machine; repeat for several [default:
    /// discovered, also through NATs]
    #[arg(long, value_name = "ADDRESS")]
    advertise: Vec<SocketAddr>,
    /// Address to listen on for a link over TLS, for networks that block UDP; most of them pass
    /// port 443 [default: none]
    #[arg(long, value_name = "ADDRESS")]
    tls: Option<SocketAddr>,
    /// Address at which the vehicle reaches the TLS address; repeat for several [default: the TLS
    /// address itself]
    #[arg(long, value_name = "ADDRESS")]
    tls_advertise: Vec<SocketAddr>,
    /// Address of the browser console [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    console: Option<SocketAddr>,
    /// Name by which browsers reach the console, with its port if that differs; repeat for several
    /// [default: the address; required if the console listens on all addresses]
    #[arg(long = "console-name", alias = "console-names", value_name = "NAME")]
    console_names: Vec<String>,
    /// Protocol between browsers and a proxy before the console: https if the proxy terminates TLS
    /// and forwards plain HTTP to the loopback interface, under the names of --console-name
    /// [default: no proxy]
    #[arg(long, value_name = "SCHEME")]
    console_behind: Option<Behind>,
    /// Certificate chain of the console in PEM form [default: beyond the loopback interface, one
    /// made from the key, whose fingerprint is printed]
    #[arg(long, value_name = "FILE")]
    console_certificate: Option<PathBuf>,
    /// Secret key of the certificate in PEM form
    #[arg(long, value_name = "FILE")]
    console_certificate_key: Option<PathBuf>,
    /// Print also an address for a browser that may only watch: it shows telemetry, status and who
    /// drives. Nothing that it sends counts, not even an emergency stop [default: false]
    #[arg(long)]
    watch: bool,
    /// Address for metrics, status and probes [default: the console's, if that is on the loopback
    /// interface]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Folder for recordings: the H.264 stream of each strip, a line per slice, all other channels
    /// in channels.mcap, and a line per round trip for `tautline latency`. For a vehicle started
    /// with --joinable, picture.h264 plays in any player [default: none]
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Control address of `tautline emulate`, for the console's buttons that cut and restore links
    /// [default: none]
    #[arg(long, value_name = "ADDRESS")]
    emulator: Option<SocketAddr>,
    #[command(flatten)]
    stats: Stats,
}

impl Operator {
    /// Runs the operator until it is asked to end.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        self.run_with(|_| {}).await
    }

    /// Runs the operator until it is asked to end; `change` changes its transport in ways that no
    /// setting does.
    pub(crate) async fn run_with(
        self,
        change: impl FnOnce(&mut tautline_transport::Config),
    ) -> anyhow::Result<()> {
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
        let identity = checked(config.validate(), &config.key)?;
        change(&mut config.transport);
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

/// Reads the settings of a file, or the defaults without one, and resolves their paths against its
/// folder; that of the recording by where this process may write.
pub(crate) fn settings(file: Option<&Path>) -> anyhow::Result<Config> {
    let mut config: Config = load(file)?;
    let files = [&mut config.console_certificate, &mut config.console_certificate_key];
    let programs = config.deliver.values_mut().filter_map(Address::path_mut);
    let topics = config.topics.iter_mut();
    let topics = topics.flat_map(|topic| [topic.listen.path_mut(), topic.schema.as_mut()]);
    let paths = files.into_iter().flatten().chain(programs).chain(topics.flatten());
    let paths = paths.chain([&mut config.key]);
    beside(file, paths);
    Folders::of(file).keep(&mut config.record);
    Ok(config)
}

/// Prints the address that admits the next browser, after the certificate's fingerprint if there is
/// one; a closed standard output is ignored.
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

/// Prefix, when printed, of an address that admits one browser to drive.
pub(crate) const OPEN: &str = "Open  ";
/// Prefix, when printed, of an address that admits one browser that may only watch.
const WATCH: &str = "Watch ";
