//! `tautline relay`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tautline_net::clock::Clock;
use tautline_net::datagram::Address;
use tautline_net::random;
use tautline_relay::Config;

use crate::folders::Folders;
use crate::settings::{beside, checked, load, set};
use crate::stop;

/// Run a relay, which forwards sealed datagrams between the two ends of a lease.
///
/// A relay holds no session key. It serves only ends with a token from the switchboard, and each
/// end reaches only its own peer. Every flag can also be set in the TOML file under the same name.
#[derive(Debug, Args)]
pub(crate) struct Relay {
    /// TOML file with any of these settings; flags and environment variables override it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// UDP address to listen on; repeat for several [default: 0.0.0.0:7444 and 0.0.0.0:7445]
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<SocketAddr>,
    /// TCP address to listen on for ends whose network blocks UDP [default: none]
    #[arg(long, value_name = "ADDRESS")]
    tls: Option<SocketAddr>,
    /// Path at which a switchboard on this machine hands over connections to its port that are
    /// meant for a relay [default: none]
    #[arg(long, value_name = "PATH")]
    shared_port: Option<PathBuf>,
    /// Secret key file, created by `tautline keys new` [default: relay.key]
    #[arg(long, env = "TAUTLINE_KEY")]
    key: Option<PathBuf>,
    /// Public key of the switchboard whose tokens are valid
    #[arg(long, env = "TAUTLINE_SWITCHBOARD_KEY", value_name = "KEY")]
    switchboard_key: Option<String>,
    /// Folder for raw files of latency, which `tautline latency` reads; for them, ends are probed
    /// once per second [default: none]
    #[arg(long, value_name = "FOLDER")]
    latency: Option<PathBuf>,
    /// Maximum total size of the latency files in MiB, 1 to 1048576; the oldest are deleted first
    /// [default: 256]
    #[arg(long, value_name = "MIB")]
    latency_mib: Option<u64>,
    /// Address that serves /metrics [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Maximum number of concurrent leases, 1 to 4096 [default: 256]
    #[arg(long, value_name = "N")]
    leases_max: Option<usize>,
    /// Maximum rate of one lease in Mbit/s, 1 to 10000, both directions together [default: 100]
    #[arg(long, value_name = "MBPS")]
    lease_mbps: Option<u64>,
    /// Maximum data of one link of a lease in GiB, 1 to 1048576, both directions together, during
    /// the lease [default: 100]
    #[arg(long, value_name = "GIB")]
    link_gib: Option<u64>,
}

impl Relay {
    /// Runs the relay until it is asked to end.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config: Config = load(self.config.as_deref())?;
        beside(self.config.as_deref(), [&mut config.key]);
        let folders = Folders::of(self.config.as_deref());
        if let Some(path) = config.shared_port.take() {
            let mut address = Address::Path(path);
            folders.listen(&mut address);
            config.shared_port = address.path_mut().cloned();
        }
        folders.keep(&mut config.latency);
        set(&mut config.listen, (!self.listen.is_empty()).then_some(self.listen));
        set(&mut config.tls, self.tls.map(Some));
        set(&mut config.shared_port, self.shared_port.map(Some));
        set(&mut config.key, self.key);
        set(&mut config.switchboard_key, self.switchboard_key);
        set(&mut config.latency, self.latency.map(Some));
        set(&mut config.latency_mib, self.latency_mib);
        set(&mut config.metrics, self.metrics.map(Some));
        set(&mut config.leases_max, self.leases_max);
        set(&mut config.lease_mbps, self.lease_mbps);
        set(&mut config.link_gib, self.link_gib);
        let identity = checked(config.validate(), &config.key)?;
        let seed = random::seed()?;
        tautline_relay::run(config, identity, Clock::start(), seed, stop::asked()).await
    }
}
