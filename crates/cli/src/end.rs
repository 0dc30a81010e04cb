//! `tautline end`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use serde::Deserialize;
use tautline_message::Order;
use tautline_net::clock::Clock;
use tautline_transport::crypto::PublicKey;
use tautline_transport::order;

use crate::settings::{beside, load, set};
use crate::{keys, switchboard};

/// End a running drive: the lease ends at once, and the vehicle's guard stops the machine with its manoeuvre.
///
/// The order is signed with a key that the vehicle lists among its supervisors, and the switchboard too, which carries it
/// there. Every flag may stand in the TOML file under the same name, with _ for -; there the section [vehicles] holds
/// lines of name = "key".
#[derive(Debug, Args)]
pub(crate) struct End {
    /// Name of the vehicle
    vehicle: String,
    /// TOML file with any of these settings; flags and environment go before it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// The supervisor's secret key file, made by `tautline keys new` [default: supervisor.key]
    #[arg(long, env = "TAUTLINE_KEY")]
    key: Option<PathBuf>,
    /// The switchboard, as host:port [default: 127.0.0.1:7443]
    #[arg(long, env = "TAUTLINE_SWITCHBOARD")]
    switchboard: Option<String>,
    /// The switchboard's public key, 64 hexadecimal digits
    #[arg(long, env = "TAUTLINE_SWITCHBOARD_KEY")]
    switchboard_key: Option<String>,
    /// The vehicle's public key, 64 hexadecimal digits [default: the one of its name in the file]
    #[arg(long, value_name = "KEY")]
    vehicle_key: Option<String>,
}

/// The settings of a supervisor.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    key: PathBuf,
    switchboard: String,
    switchboard_key: String,
    vehicles: BTreeMap<String, String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            key: "supervisor.key".into(),
            switchboard: "127.0.0.1:7443".into(),
            switchboard_key: String::new(),
            vehicles: BTreeMap::new(),
        }
    }
}

impl End {
    /// Signs the order, has the switchboard carry it, and prints what became of it.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config: Config = load(self.config.as_deref())?;
        beside(self.config.as_deref(), [&mut config.key]);
        set(&mut config.key, self.key);
        set(&mut config.switchboard, self.switchboard);
        set(&mut config.switchboard_key, self.switchboard_key);
        let name = self.vehicle;
        let key = self.vehicle_key.as_ref().or_else(|| config.vehicles.get(&name));
        // Whoever would learn it from the switchboard could be given another vehicle's.
        let key = key.with_context(|| {
            format!("the key of {name} is missing: give it with --vehicle-key, or in [vehicles]")
        })?;
        let vehicle: PublicKey = key.parse().with_context(|| format!("vehicle_key: {key:?}"))?;
        let switchboard: PublicKey =
            config.switchboard_key.parse().context("switchboard_key: missing, or no key")?;
        let supervisor = keys::read(&config.key)?;
        let clock = Clock::start();
        // As an order has it: in whole milliseconds.
        let made_at = Duration::from_millis(clock.unix_nanos(clock.now()) / 1_000_000);
        let until = made_at + LIFE;
        let order = order::Order { supervisor: supervisor.public(), vehicle, made_at, until };
        let signed = order.sign(&supervisor).as_bytes().to_vec();
        let end = Order::End { name, signed };
        let told = switchboard::order(config.switchboard, switchboard, &supervisor, end).await?;
        print!("{}", String::from_utf8_lossy(&told));
        Ok(())
    }
}

/// As long as the order may be under way; until then the operator whose drive is ended gets no other lease.
const LIFE: Duration = Duration::from_secs(60);
