//! `tautline demo`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use tautline_blackbox::drives;
use tautline_vehicle::SimulatedMachine;

use crate::coding::Coding;
use crate::local_system::{Links, LocalSystem, Setup};
use crate::operator::OPEN;
use crate::source::Source;
use crate::stop;

/// Drive a simulated machine in the browser over emulated mobile links.
///
/// Starts switchboard, emulated links, guard, machine, vehicle and operator as separate processes
/// here and prints the address to open. Ctrl-C ends all of them.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Address of the browser console
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    console: SocketAddr,
    /// Name by which browsers reach the console, with its port if that differs; repeat for several
    /// [default: the address]
    #[arg(long = "console-name", value_name = "NAME")]
    console_names: Vec<String>,
    /// Links between vehicle and operator
    #[arg(long, value_enum, default_value = "lte-driving")]
    links: Links,
    /// Simulated machine: car, robot on two wheels, rover on tracks, or cart that also drives
    /// sideways
    #[arg(long, value_name = "KIND", default_value_t)]
    machine: SimulatedMachine,
    #[command(flatten)]
    source: Source,
    /// Pictures per second of the simulated camera, 1 to 60 [default: 60, or 30 on fewer than 4
    /// cores, which the browser shares]
    #[arg(long, value_name = "N")]
    pictures_per_second: Option<f64>,
    /// Folder for recordings: the H.264 stream of each strip, a line per slice, a line per round
    /// trip, and with --joinable picture.h264, which any player plays [default: none]
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Folder of the guard's black box; drives older than 30 days, or beyond 512 MiB, are deleted
    /// [default: ~/.local/state/tautline/blackbox]
    #[arg(long, value_name = "FOLDER")]
    blackbox: Option<PathBuf>,
    #[command(flatten)]
    coding: Coding,
    /// Seed of the course and of the links
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Demo {
    /// Runs the demo until the person ends it; prints the addresses to open, and faults.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let absolute = |path: Option<PathBuf>| path.map(std::path::absolute).transpose();
        let blackbox = match absolute(self.blackbox)? {
            Some(folder) => folder,
            None => state_folder()?.join("tautline/blackbox"),
        };
        let setup = Setup {
            console: self.console,
            console_names: self.console_names,
            links: self.links,
            machine: self.machine,
            source: self.source.absolute()?,
            pictures_per_second: self.pictures_per_second.unwrap_or_else(fitting_rate),
            record: absolute(self.record)?,
            blackbox: Some(blackbox.clone()),
            coding: self.coding.clone(),
            seed: self.seed,
        };
        let before = drives::list(&blackbox)?.last().map(|drive| drive.number);
        let mut stand = LocalSystem::raise(&setup).await?;
        loop {
            let line = stand.printed().await;
            if line.starts_with(OPEN) {
                tell!("{line}  and drive: arrow keys, WASD, gamepad or wheel.");
                break;
            }
            tell!("{line}");
        }
        tell!(
            "The guard records each drive. Look: tautline blackbox list {}, then show, verify, replay.",
            shown(&blackbox)
        );
        tell!("Vehicle's metrics: http://{}/metrics", stand.vehicle_metrics());
        let processes: Vec<String> =
            stand.process_ids().map(|(name, id)| format!("{name} {id}")).collect();
        tell!("Processes: {}. Ctrl-C ends all.", processes.join(", "));
        loop {
            tokio::select! {
                () = stop::asked() => break,
                words = stand.news() => match words.strip_prefix(OPEN) {
                    Some(address) => tell!("Opened. Another browser:  {address}"),
                    None => tell!("{words}"),
                },
            }
        }
        stand.lower().await;
        let newest = drives::list(&blackbox).ok().and_then(|mut drives| drives.pop());
        match newest.filter(|drive| Some(drive.number) > before) {
            Some(drive) => {
                tell!("All ended. The last drive: tautline blackbox show {}", shown(&drive.folder))
            }
            None => tell!("All ended. Nobody drove."),
        }
        Ok(())
    }
}

/// Returns 60 pictures per second if vehicle, operator and browser have a core each, otherwise 30.
fn fitting_rate() -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores < 4 { 30.0 } else { 60.0 }
}

/// Returns the folder for the state of a user's programs, by XDG; it need not exist.
fn state_folder() -> anyhow::Result<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    let own = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).and_then(absolute);
    let of_home = || Some(absolute(std::env::home_dir()?)?.join(".local/state"));
    own.or_else(of_home)
        .context("this user has no home: say where the guard records, with --blackbox FOLDER")
}

/// Returns a path in a shell's notation: in quotes if it needs them.
fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,@%:=".contains(letter);
    match text.chars().all(plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}
