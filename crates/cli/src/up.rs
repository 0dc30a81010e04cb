//! `tautline up`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use rustix::process::{Pid, Signal};
use tautline_net::clock::Clock;
use tautline_units::Instant;
use tokio::process::{Child, Command};
use tokio::time::{interval, sleep, timeout};

use crate::{local_system, operator, settings, stop, switchboard};

/// Run all processes with settings in a folder, as written by `tautline init` and `tautline
/// enroll`, until Ctrl-C.
///
/// For machines without a service manager, and for trials. A process that ends is restarted after 1
/// s, or after up to 30 s if it ends repeatedly. Invalid settings of one process end all. At the
/// end, the vehicle stops its machine before anything else ends.
#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Folder with settings, or with folders of settings
    #[arg(default_value = "tautline")]
    pub(crate) folder: PathBuf,
    /// Admit a vehicle of this name: print a code for `tautline enroll`, and start the operator
    /// once the vehicle has used it; requires the switchboard's settings
    #[arg(long, value_name = "NAME")]
    pub(crate) invite: Option<String>,
}

impl Up {
    /// Runs all processes until the person ends it or one has invalid settings.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let found = found(&self.folder)?;
        let shown = self.folder.display();
        ensure!(
            !found.is_empty(),
            "{shown} holds no settings: `tautline init` or `tautline enroll` writes some"
        );
        let file_of = |role: &str| found.iter().find(|it| it.0 == role).map(|it| it.1.as_path());
        let mut running = Running { processes: Vec::new(), clock: Clock::start() };
        let mut stop = pin!(stop::asked());
        let ended = tokio::select! {
            () = &mut stop => Ok(()),
            ended = async {
                let (last, first): (Vec<_>, Vec<_>) =
                    found.iter().partition(|(role, _)| *role == "operator");
                for (role, file) in first {
                    running.start(role, file)?;
                }
                if let Some(name) = &self.invite {
                    let board = file_of("switchboard");
                    let board = board.context("--invite: this folder has no switchboard.toml")?;
                    let invited = invite(board, file_of("operator"), name);
                    tokio::select! {
                        invited = invited => invited?,
                        ended = running.watch() => return ended,
                    }
                }
                for (role, file) in last {
                    running.start(role, file)?;
                }
                running.watch().await
            } => ended,
        };
        running.lower().await;
        ended
    }
}

/// Processes that run, in the order of starting.
struct Running {
    processes: Vec<Process>,
    clock: Clock,
}

struct Process {
    role: &'static str,
    file: PathBuf,
    child: Child,
    started_at: Instant,
    /// True once the process has run for 3 s: its settings count as valid.
    is_settled: bool,
    /// Least time between the process's last start and its restart; doubles each time, and is the
    /// shortest again after 3 s of running.
    pause: Duration,
}

impl Running {
    fn start(&mut self, role: &'static str, file: &Path) -> anyhow::Result<()> {
        let (child, started_at) = (spawn(role, file)?, self.clock.now());
        let (file, is_settled) = (file.to_owned(), false);
        self.processes.push(Process { role, file, child, started_at, is_settled, pause: PAUSE });
        Ok(())
    }

    /// Restarts processes that end: 1 s after their start, then after 2 s, 4 s and so on up to
    /// [`PAUSE_MAX`].
    ///
    /// # Errors
    /// Fails if a process that has never run for 3 s ends because its settings are invalid; its own
    /// output has the reason. Fails also if a process cannot be watched or started.
    async fn watch(&mut self) -> anyhow::Result<()> {
        let mut turns = interval(TURN);
        loop {
            turns.tick().await;
            let now = self.clock.now();
            for process in &mut self.processes {
                let Process { role, file, child, started_at, is_settled, pause } = process;
                let age = now.since(*started_at);
                match child.try_wait().with_context(|| format!("{role} cannot be watched"))? {
                    None if age >= SETTLED => {
                        *is_settled = true;
                        *pause = PAUSE;
                    }
                    None => {}
                    Some(status)
                        if !*is_settled && status.code() == Some(settings::WRONG.into()) =>
                    {
                        bail!(
                            "{role} with {} ended ({status}): its words are above",
                            file.display()
                        )
                    }
                    Some(_) if age < *pause => {}
                    Some(status) => {
                        *pause = pause.saturating_mul(2).min(PAUSE_MAX);
                        note!("{role} ended ({status}) and is started again");
                        (*child, *started_at) = (spawn(role, file)?, now);
                    }
                }
            }
        }
    }

    /// Ends all processes: first the vehicle, which stops its machine, then the others in reverse
    /// order of starting. A process that does not end in time is killed.
    async fn lower(mut self) {
        let (vehicles, others): (Vec<_>, Vec<_>) =
            self.processes.iter_mut().rev().partition(|process| process.role == "vehicle");
        for (processes, most) in [(vehicles, STOP_MAX), (others, END_MAX)] {
            for process in &processes {
                process.ask_to_end();
            }
            for process in processes {
                if timeout(most, process.child.wait()).await.is_err() {
                    let _ = process.child.kill().await;
                }
            }
        }
    }
}

impl Process {
    fn ask_to_end(&self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // A process that has ended needs no signal.
            let _ = rustix::process::kill_process(id, Signal::TERM);
        }
    }
}

/// Returns the settings files in the folder and its subfolders with the command of each, in the
/// order of starting.
fn found(folder: &Path) -> anyhow::Result<Vec<(&'static str, PathBuf)>> {
    let cannot = || format!("the folder {} cannot be read", folder.display());
    let mut folders = vec![folder.to_owned()];
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    let files = ROLES.iter().flat_map(|role| {
        let file = format!("{role}.toml");
        folders.iter().map(move |folder| (*role, folder.join(&file)))
    });
    Ok(files.filter(|(_, file)| file.is_file()).collect())
}

fn spawn(role: &str, file: &Path) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("this program's own file is not known")?;
    let log = std::env::var_os("TAUTLINE_LOG").unwrap_or_else(|| "warn".into());
    Command::new(program)
        .args([OsStr::new(role), OsStr::new("--config"), file.as_os_str()])
        .env(local_system::CHILD, "1")
        .env("TAUTLINE_LOG", log)
        // Ctrl-C goes only to this process, which ends the others in order.
        .process_group(0)
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("{role} cannot be started"))
}

/// Prints a code for the vehicle, and a new one before each expires, until the switchboard lists
/// the vehicle. Fails if the switchboard does not answer within 10 s of the start, or refuses.
async fn invite(board: &Path, operator: Option<&Path>, name: &str) -> anyhow::Result<()> {
    let clock = Clock::start();
    let board = switchboard::Running::of(board)?;
    let host = operator.map(|file| operator::settings(Some(file))).transpose()?;
    let host = host.map_or_else(|| "HOST".to_owned(), |config| config.switchboard);
    let mut told_at = None;
    loop {
        let is_known = match board.knows_vehicle(name).await {
            Ok(is_known) => is_known,
            // The switchboard may need a moment before it listens.
            Err(error) if told_at.is_none() && clock.now().since(Instant::ZERO) > LISTENS_MAX => {
                return Err(error);
            }
            Err(_) => {
                sleep(TURN).await;
                continue;
            }
        };
        if is_known {
            if told_at.is_some() {
                tell!("{name} is let in.");
            }
            return Ok(());
        }
        let now = clock.now();
        if told_at.is_none_or(|at| now.since(at) >= CODE_LIFE) {
            told_at = Some(now);
            let code = board.invite_vehicle(name).await?;
            tell!(
                "Code  {code}\nIt lets {name} in, once, within ten minutes. There:\n  \
                 tautline enroll --switchboard {host} --up"
            );
        }
        sleep(ASKED_EVERY).await;
    }
}

/// Commands that `up` runs, by the names of their settings files; each after those that it
/// requires.
const ROLES: [&str; 7] = ["switchboard", "relay", "guard", "machine", "can", "vehicle", "operator"];
const TURN: Duration = Duration::from_millis(100);
/// Running time of a process after which its settings count as valid and its next pause is
/// [`PAUSE`] again.
const SETTLED: Duration = Duration::from_secs(3);
/// Least time between a process's first two starts; it doubles with each restart, up to
/// [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_secs(1);
/// Greatest time between two starts, and so between log lines, of a process that fails repeatedly.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Time for which the vehicle's end is awaited before it is killed: it stops its machine, or waits
/// for 30 s for the machine's state.
const STOP_MAX: Duration = Duration::from_secs(90);
const END_MAX: Duration = Duration::from_secs(10);
const LISTENS_MAX: Duration = Duration::from_secs(10);
/// Age at which a vehicle's unused code for its enrolment is replaced: slightly less than the
/// code's validity.
const CODE_LIFE: Duration = Duration::from_secs(590);
const ASKED_EVERY: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_in_a_folder_and_below_in_start_order() {
        let folder = tempfile::tempdir().unwrap();
        let put = |file: &str| {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        };
        let roles = || -> Vec<&str> {
            found(folder.path()).unwrap().into_iter().map(|(role, _)| role).collect()
        };
        assert!(roles().is_empty());
        for file in ["vehicle.toml", "guard.toml", "machine.toml", "other.toml", "vehicle.key"] {
            put(file);
        }
        assert_eq!(roles(), ["guard", "machine", "vehicle"]);
        for file in [
            "operator/operator.toml",
            "switchboard/switchboard.toml",
            "other/can.toml",
            "a/b/relay.toml",
        ] {
            put(file);
        }
        assert_eq!(roles(), ["switchboard", "guard", "machine", "can", "vehicle", "operator"]);
        assert!(found(&folder.path().join("gone")).is_err());
    }
}
