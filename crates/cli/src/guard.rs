//! `tautline guard`.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Context;
use clap::Args;
use serde::{Deserialize, Serialize};
use tautline_blackbox::{Recorder, Signer};
use tautline_guard::identity::Stop;
use tautline_net::clock::Clock;
use tautline_net::datagram::{Address, Server};
use tautline_net::realtime;
use tautline_net::settings::Faults;
use tautline_net::unavailable;
use tautline_port::keeper::{self, Keeper};
use tautline_port::latch;
use tautline_units::Instant;

use crate::folders::Folders;
use crate::settings::{beside, load, right, set};
use crate::thread::Thread;
use crate::{keys, stop};

/// Run the guard between a vehicle and its machine: it alone moves and stops the machine.
///
/// The guard is a process of its own without access to network or video. Every flag can also be set
/// in the TOML file under the same name. The section [guard] of the file has no flag.
#[derive(Debug, Args)]
pub(crate) struct Guard {
    /// TOML file with any of these settings; flags and environment variables override it
    #[arg(long, env = "TAUTLINE_CONFIG")]
    config: Option<PathBuf>,
    /// Address to listen on for the vehicle: a path, or address:port for UDP [default:
    /// /run/tautline/vehicle.sock]
    #[arg(long, value_name = "ADDRESS")]
    vehicle: Option<Address>,
    /// Address to listen on for the machine: a path, or address:port for UDP [default:
    /// /run/tautline/machine.sock]
    #[arg(long, value_name = "ADDRESS")]
    machine: Option<Address>,
    /// File that keeps the latch of a stop across restarts [default: latch]
    #[arg(long, value_name = "FILE")]
    latch: Option<PathBuf>,
    /// Folder of the black box [default: the file's section [blackbox]; without it, none]
    #[arg(long, value_name = "FOLDER")]
    blackbox: Option<PathBuf>,
    /// Secret key file of the machine, which signs the black box
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// Settings of a guard's process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// Address to listen on for the vehicle.
    vehicle: Address,
    /// Address to listen on for the machine.
    machine: Address,
    /// File that keeps the latch of a stop across restarts.
    latch: PathBuf,
    /// Black box; none if unset.
    blackbox: Option<tautline_blackbox::Config>,
    /// Secret key file of the machine, which signs the black box.
    key: Option<PathBuf>,
    /// Limits of the machine, and the guard's timeouts.
    guard: tautline_guard::Config,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            vehicle: Address::Path("/run/tautline/vehicle.sock".into()),
            machine: Address::Path("/run/tautline/machine.sock".into()),
            latch: "latch".into(),
            blackbox: None,
            key: None,
            guard: tautline_guard::Config::default(),
        }
    }
}

impl Config {
    /// Returns the faults of every field; reads no file.
    pub(crate) fn faults(&self) -> Faults {
        let mut faults = Faults::default();
        faults.unless(self.vehicle != self.machine, || {
            format!(
                "vehicle and machine have the same address, {}: each needs its own",
                self.vehicle
            )
        });
        faults.all(self.guard.faults());
        if let Some(blackbox) = &self.blackbox {
            faults.all(blackbox.faults());
            faults.unless(self.key.is_some(), || {
                "blackbox: key must name the file that signs it".to_owned()
            });
        }
        faults
    }

    /// Checks every field; returns the signer of the black box, if that is enabled.
    ///
    /// # Errors
    /// Returns a line for each fault.
    fn signer(&self) -> anyhow::Result<Option<Signer>> {
        let mut faults = self.faults();
        let key = self.key.as_deref().filter(|_| self.blackbox.is_some());
        let identity = key.and_then(|key| faults.of(keys::read(key)));
        faults.finish()?;
        Ok(identity.map(|identity| Signer::from_seed(&identity.signing_seed())))
    }
}

impl Guard {
    /// Runs the guard until the process is asked to end or its thread fails.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut config: Config = load(self.config.as_deref())?;
        let folder = config.blackbox.as_mut().map(|blackbox| &mut blackbox.folder);
        let folders = Folders::of(self.config.as_deref());
        folders.keep([Some(&mut config.latch), folder].into_iter().flatten());
        [&mut config.vehicle, &mut config.machine]
            .into_iter()
            .for_each(|socket| folders.listen(socket));
        beside(self.config.as_deref(), &mut config.key);
        set(&mut config.vehicle, self.vehicle);
        set(&mut config.machine, self.machine);
        set(&mut config.latch, self.latch);
        set(&mut config.key, self.key.map(Some));
        if let Some(folder) = self.blackbox {
            config.blackbox.get_or_insert_default().folder = folder;
        }
        let signer = right(config.signer())?;
        let first_tick = keeper::first_tick()?;
        let latched = latch::read_latch(&config.latch).unwrap_or_else(|error| {
            let error = format!("{error:#}");
            tracing::error!(error, "the machine is held by a latch until a person resets it");
            Stop::new(first_tick.get())
        });
        let guard = tautline_guard::Guard::new(config.guard, first_tick);
        let guard = match latched {
            Some(stop) => guard.with_latched(stop),
            None => guard,
        };
        let mut stop = pin!(stop::asked());
        let open = async || Ok((Server::open(&config.vehicle)?, Server::open(&config.machine)?));
        let (vehicle, machine) = tokio::select! {
            opened = unavailable::opened(open) => opened?,
            () = &mut stop => return Ok(()),
        };
        let clock = Clock::start();
        let mut keeper = Keeper::new(guard, vehicle, machine);
        if let Some((blackbox, signer)) = config.blackbox.as_ref().zip(signer) {
            keeper.record(recorder(blackbox, signer, &clock)?);
        }
        let (latching, writer) = latch::latch(&config.latch, latched);
        keeper.keep_latch(latching);
        let latching = Thread::start("latch", move || writer.run())?;
        let told = keeper.hook();
        let transitions = Arc::new(AtomicU64::new(0));
        let teller = Thread::start("teller", {
            let transitions = transitions.clone();
            move || keeper::tell(&told, &transitions)
        })?;
        let ending = Arc::new(AtomicBool::new(false));
        let mut keeping = Thread::start("guard", {
            let ending = ending.clone();
            move || keeper.run(clock, &ending)
        })?;
        realtime::lock_memory("the guard");
        tracing::info!(vehicle = %config.vehicle, machine = %config.machine, "the guard holds the machine");
        let ended = tokio::select! {
            () = &mut stop => Ok(()),
            failed = keeping.ended() => failed,
        };
        ending.store(true, Ordering::Relaxed);
        [keeping, teller, latching].into_iter().for_each(Thread::join);
        let transitions = transitions.load(Ordering::Relaxed);
        tracing::info!(transitions, "the guard ends; the machine stops by itself");
        ended
    }
}

/// Starts the recorder of the black box.
fn recorder(
    blackbox: &tautline_blackbox::Config,
    signer: Signer,
    clock: &Clock,
) -> anyhow::Result<Recorder> {
    let (folder, key) = (blackbox.folder.display(), signer.public());
    tracing::info!(%folder, key, "the black box is signed by this key");
    let recorder = Recorder::start(blackbox.clone(), signer, clock.unix_nanos(Instant::ZERO));
    recorder.context("the black box cannot be begun")
}
