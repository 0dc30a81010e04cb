//! `tautline switchboard`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use tautline_net::clock::Clock;
use tautline_net::random;
use tautline_switchboard::Config;
use tautline_transport::crypto::PublicKey;

use crate::settings::{beside, load, set};
use crate::{keys, stop};

/// Bring vehicles and operators together.
///
/// Only machines whose keys are listed are served. Every setting may stand in the TOML file under
/// its flag's name; there the sections [vehicles] and [operators] hold lines of name = "key".
#[derive(Debug, Args)]
pub(crate) struct Switchboard {
    /// TOML file with any of these settings; flags and environment go before it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Address to listen on, TCP, and UDP there and at the next port [default: 0.0.0.0:7443]
    #[arg(long, env = "TAUTLINE_LISTEN", value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Another address of this machine, for `tautline reach` [default: none]
    #[arg(long, value_name = "IP")]
    second_address: Option<IpAddr>,
    /// Secret key file, made by `tautline keys new` [default: switchboard.key]
    #[arg(long, env = "TAUTLINE_KEY")]
    key: Option<PathBuf>,
    /// A vehicle that is served, as name=key; repeat for several
    #[arg(long = "vehicle", value_name = "NAME=KEY", value_parser = named_key)]
    vehicles: Vec<(String, PublicKey)>,
    /// An operator that is served, as name=key; repeat for several
    #[arg(long = "operator", value_name = "NAME=KEY", value_parser = named_key)]
    operators: Vec<(String, PublicKey)>,
    /// Address for metrics [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Milliseconds that a lease outlives its operator's connection [default: 10000]
    #[arg(long, value_name = "MS")]
    lease_grace_ms: Option<u64>,
}

impl Switchboard {
    /// Runs the switchboard until it is asked to end.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config: Config = load(self.config.as_deref())?;
        beside(self.config.as_deref(), [&mut config.key]);
        set(&mut config.listen, self.listen);
        set(&mut config.second_address, self.second_address.map(Some));
        set(&mut config.key, self.key);
        set(&mut config.metrics, self.metrics.map(Some));
        set(&mut config.lease_grace_ms, self.lease_grace_ms);
        config.vehicles.extend(self.vehicles);
        config.operators.extend(self.operators);
        config.validate()?;
        let identity = keys::read(&config.key)?;
        let seed = random::seed()?;
        tautline_switchboard::run(config, identity, Clock::start(), seed, stop::asked()).await
    }
}

fn named_key(text: &str) -> anyhow::Result<(String, PublicKey)> {
    let (name, key) = text.split_once('=').context("expected name=key")?;
    Ok((name.to_owned(), key.parse()?))
}
