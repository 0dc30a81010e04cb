//! `tautline switchboard`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use tautline_message::{self as message, Control, Role};
use tautline_net::clock::Clock;
use tautline_net::control::{Client, Event};
use tautline_net::{latency, random};
use tautline_switchboard::store::Kept;
use tautline_switchboard::{Config, Store};
use tautline_transport::crypto::{Identity, PublicKey};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::folders::Folders;
use crate::settings::{beside, checked, load, set};
use crate::{keys, stop};

/// Run the switchboard, which brings vehicles and operators together.
///
/// Only machines whose keys are listed are served. Every flag can also be set in the TOML file
/// under the same name. The sections [vehicles] and [operators] of the file contain lines of name =
/// "key".
#[derive(Debug, Args)]
pub(crate) struct Switchboard {
    #[command(subcommand)]
    order: Option<Order>,
    /// TOML file with any of these settings; flags and environment variables override it
    #[arg(long, env = "TAUTLINE_CONFIG", global = true)]
    config: Option<PathBuf>,
    /// Address to listen on: TCP, and UDP at this port and the next [default: 0.0.0.0:7443]
    #[arg(long, env = "TAUTLINE_LISTEN", value_name = "ADDRESS", global = true)]
    listen: Option<SocketAddr>,
    /// Path of a relay on this machine that shares this port and gets the connections meant for a
    /// relay [default: none]
    #[arg(long, value_name = "PATH")]
    shared_port: Option<PathBuf>,
    /// Second address of this machine, for `tautline reach` [default: none]
    #[arg(long, value_name = "IP")]
    second_address: Option<IpAddr>,
    /// Secret key file, created by `tautline keys new` [default: switchboard.key]
    #[arg(long, env = "TAUTLINE_KEY", global = true)]
    key: Option<PathBuf>,
    /// Folder that keeps leases across restarts; created if missing [default: state]
    #[arg(long, env = "TAUTLINE_STATE", value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Vehicle to serve, as name=key; repeat for several
    #[arg(long = "vehicle", alias = "vehicles", value_name = "NAME=KEY", value_parser = named_key)]
    vehicles: Vec<(String, PublicKey)>,
    /// Operator to serve, as name=key; repeat for several
    #[arg(long = "operator", alias = "operators", value_name = "NAME=KEY", value_parser = named_key)]
    operators: Vec<(String, PublicKey)>,
    /// Folder for raw files of latency, which `tautline latency` reads [default: none]
    #[arg(long, value_name = "FOLDER")]
    latency: Option<PathBuf>,
    /// Maximum total size of the latency files in MiB, 1 to 1048576; the oldest are deleted first
    /// [default: 256]
    #[arg(long, value_name = "MIB")]
    latency_mib: Option<u64>,
    /// Address that serves /metrics [default: none]
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Time in milliseconds that a lease outlives its operator's connection, 0 to 3600000
    /// [default: 10000]
    #[arg(long, value_name = "MS")]
    lease_grace_ms: Option<u64>,
}

/// Requests to the running switchboard of this machine, signed with its own key.
#[derive(Debug, Subcommand)]
enum Order {
    /// Copy the switchboard's state into a new file while it runs
    Backup {
        /// File to create; to restore it, put it in place of switchboard.redb in the state folder
        file: PathBuf,
    },
    /// List the machines that are known, which are connected, and who drives what for how long
    Who,
    /// Create a code for `tautline enroll` that admits one machine, once, within ten minutes
    Invite {
        #[command(flatten)]
        machine: Machine,
    },
    /// Remove a machine that was admitted by a code
    Revoke {
        #[command(flatten)]
        machine: Machine,
    },
}

#[derive(Debug, Args)]
struct Machine {
    /// Role of the machine
    #[arg(long, value_enum)]
    role: RoleName,
    /// Name of the machine
    #[arg(long)]
    name: String,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RoleName {
    Vehicle,
    Operator,
}

impl Switchboard {
    /// Runs the switchboard until it is asked to end, or sends a request to the running one.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let config = self.settings()?;
        let identity = checked(config.validate(), &config.key)?;
        match self.order {
            None => {}
            Some(ref asked) => return obey(&config, &identity, asked).await,
        }
        let seed = random::seed()?;
        let mut hangup = signal(SignalKind::hangup()).context("SIGHUP cannot be heard")?;
        let again = async || loop {
            hangup.recv().await;
            let read = self.settings().and_then(|config| config.validate().map(|()| config));
            match read {
                Ok(config) => return config,
                Err(error) => tracing::warn!("the settings stay as they were: {error:#}"),
            }
        };
        let (clock, stop) = (Clock::start(), stop::asked());
        tautline_switchboard::run(config, identity, clock, seed, stop, again).await
    }

    fn settings(&self) -> anyhow::Result<Config> {
        let mut config = settings(self.config.as_deref())?;
        set(&mut config.listen, self.listen);
        set(&mut config.shared_port, self.shared_port.clone().map(Some));
        set(&mut config.second_address, self.second_address.map(Some));
        set(&mut config.key, self.key.clone());
        set(&mut config.state, self.state.clone());
        set(&mut config.latency, self.latency.clone().map(Some));
        set(&mut config.latency_mib, self.latency_mib);
        set(&mut config.metrics, self.metrics.map(Some));
        set(&mut config.lease_grace_ms, self.lease_grace_ms);
        config.vehicles.extend(self.vehicles.iter().cloned());
        config.operators.extend(self.operators.iter().cloned());
        Ok(config)
    }
}

/// The switchboard that runs with some settings, as reached by the holder of its key.
pub(crate) struct Running {
    config: Config,
    identity: Identity,
}

impl Running {
    /// Reads the settings file and the key that it names.
    pub(crate) fn of(file: &Path) -> anyhow::Result<Self> {
        let config = settings(Some(file))?;
        let identity = keys::read(&config.key)?;
        Ok(Self { config, identity })
    }

    /// Asks the switchboard whether it lists a vehicle of this name, connected or not.
    pub(crate) async fn knows_vehicle(&self, name: &str) -> anyhow::Result<bool> {
        let who = own(&self.config, &self.identity, message::Order::Who).await?;
        let line = format!("vehicle   {name}  ");
        Ok(String::from_utf8_lossy(&who).lines().any(|it| it.starts_with(&line)))
    }

    /// Asks the switchboard for a code that admits a vehicle of this name.
    pub(crate) async fn invite_vehicle(&self, name: &str) -> anyhow::Result<String> {
        let invite = message::Order::Invite { role: Role::Vehicle, name: name.to_owned() };
        let code = own(&self.config, &self.identity, invite).await?;
        Ok(String::from_utf8_lossy(&code).into_owned())
    }
}

/// Reads the settings of a file and resolves their paths; returns the defaults without a file.
fn settings(file: Option<&Path>) -> anyhow::Result<Config> {
    let mut config: Config = load(file)?;
    beside(file, [&mut config.key]);
    let folders = Folders::of(file);
    folders.connect(config.shared_port.as_mut());
    folders.keep([&mut config.state].into_iter().chain(&mut config.latency));
    Ok(config)
}

async fn obey(config: &Config, identity: &Identity, asked: &Order) -> anyhow::Result<()> {
    let told = match asked {
        Order::Backup { file } => return backup(config, identity, file).await,
        Order::Who => own(config, identity, message::Order::Who).await?,
        Order::Invite { machine: Machine { role, name } } => {
            let name = name.clone();
            let invite = message::Order::Invite { role: (*role).into(), name: name.clone() };
            let code = own(config, identity, invite).await?;
            answer!("{}", String::from_utf8_lossy(&code));
            note!(
                "It lets {name} in, once, within ten minutes. There: tautline enroll --switchboard HOST"
            );
            return Ok(());
        }
        Order::Revoke { machine: Machine { role, name } } => {
            let (role, name) = ((*role).into(), name.clone());
            own(config, identity, message::Order::Revoke { role, name }).await?
        }
    };
    answer!("{}", String::from_utf8_lossy(&told).trim_end());
    Ok(())
}

async fn backup(config: &Config, identity: &Identity, file: &Path) -> anyhow::Result<()> {
    let copy = own(config, identity, message::Order::Backup).await?;
    let kept = Kept::decode(&copy)
        .context("the switchboard gives a copy that cannot be read: is it another build?")?;
    Store::write_new(file, &kept)?;
    answer!("leases in {}: {}", file.display(), kept.vehicles.len());
    Ok(())
}

/// Sends a request, signed with the switchboard's own key, to the switchboard that runs with these
/// settings, and returns its answer.
async fn own(
    config: &Config,
    identity: &Identity,
    asked: message::Order,
) -> anyhow::Result<Vec<u8>> {
    let mut address = config.listen;
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    order(address.to_string(), identity.public(), identity, asked).await
}

/// Sends a request to the switchboard at `address` with this `key`, and returns its answer.
///
/// # Errors
/// Returns one line if it is not there, is another one, or refuses.
pub(crate) async fn order(
    address: String,
    key: PublicKey,
    identity: &Identity,
    order: message::Order,
) -> anyhow::Result<Vec<u8>> {
    let (client, mut events) = ask(address, key, identity, order)?;
    let told = told(&mut events).await?;
    client.close().await;
    Ok(told)
}

/// Connects to the switchboard at `address` with this `key`, and sends the request on each new
/// connection. Returns the connection and its events.
pub(crate) fn ask(
    address: String,
    key: PublicKey,
    identity: &Identity,
    order: message::Order,
) -> anyhow::Result<(Client, mpsc::Receiver<Event>)> {
    let greeting = vec![Control::Order(order).encode()];
    let clock = Clock::start();
    let answer = move |frame: &[u8]| latency::pong(frame, clock);
    Ok(Client::start(address, key, identity, greeting, answer)?)
}

/// Waits for the switchboard's complete answer to the request, and returns it.
///
/// # Errors
/// Returns one line if it is not there, is another one, or refuses.
pub(crate) async fn told(events: &mut mpsc::Receiver<Event>) -> anyhow::Result<Vec<u8>> {
    let mut told = Vec::new();
    while let Some(event) = events.recv().await {
        match event {
            Event::Connected { .. } => {}
            Event::Disconnected { error, .. } => {
                bail!("no switchboard of this key answers: {error}")
            }
            Event::Frame(frame) => match Control::decode(&frame)? {
                Control::OrderPart { bytes, is_last } => {
                    told.extend(bytes);
                    if is_last {
                        return Ok(told);
                    }
                }
                Control::Refused { text, .. } => bail!("the switchboard refuses: {text}"),
                _ => {}
            },
        }
    }
    bail!("the connection to the switchboard ended")
}

impl From<RoleName> for Role {
    fn from(role: RoleName) -> Self {
        match role {
            RoleName::Vehicle => Self::Vehicle,
            RoleName::Operator => Self::Operator,
        }
    }
}

fn named_key(text: &str) -> anyhow::Result<(String, PublicKey)> {
    let (name, key) = text.split_once('=').context("expected name=key")?;
    Ok((name.to_owned(), key.parse()?))
}
