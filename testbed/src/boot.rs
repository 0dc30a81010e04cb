//! On the host: the guest's kernel as an ordinary process, once for each cell.
//!
//! Virtual time goes on only when the guest has nothing to do, so that neither this machine's speed
//! nor its load changes anything, and computation costs nothing. The command line, the random
//! numbers and all paths that the guest sees are the same for the same seed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::cell::Cell;
use crate::guest::{self, Told};
use crate::log::Log;
use crate::schedule::Schedule;

/// A kernel, and the folder in which one guest at a time runs.
#[derive(Debug)]
pub(crate) struct Host {
    kernel: PathBuf,
    random: PathBuf,
    /// Held as long as this lives.
    _lock: File,
}

impl Host {
    /// Prepares the folder; `kernel` is what `make testbed` built.
    pub(crate) fn prepare(kernel: &Path) -> Result<Self> {
        let (linux, random) = (kernel.join("linux"), kernel.join("random.so"));
        let built = linux.exists() && random.exists();
        ensure!(built, "no kernel in {}: `make testbed` builds it", kernel.display());
        let cannot = || format!("cannot write into {FOLDER}");
        fs::create_dir_all(OUT).with_context(cannot)?;
        let lock = File::create(Path::new(FOLDER).join("lock")).with_context(cannot)?;
        ensure!(lock.try_lock().is_ok(), "another guest runs in {FOLDER}: wait for it");
        // A program that runs cannot be written over.
        let _ = fs::remove_file(PROGRAM);
        fs::copy(std::env::current_exe()?, PROGRAM).with_context(cannot)?;
        Ok(Self { kernel: linux, random, _lock: lock })
    }

    /// Runs a cell.
    pub(crate) fn run(&self, cell: &Cell, schedule: &Schedule) -> Result<(Told, Log)> {
        let _ = fs::remove_dir_all(OUT);
        let _ = fs::remove_dir_all(MACHINES);
        fs::create_dir_all(OUT)?;
        fs::create_dir_all(MACHINES)?;
        let out = Path::new(OUT);
        fs::write(out.join(guest::CELL), serde_json::to_vec(cell)?)?;
        fs::write(out.join(guest::SCHEDULE), schedule.to_bytes())?;
        let console = Path::new(FOLDER).join("console");
        let status = self
            .command(cell.seed)
            .stdin(Stdio::null())
            .stdout(File::create(&console)?)
            .stderr(File::options().append(true).open(&console)?)
            .status()
            .context("the kernel does not start: it needs timeout and setarch")?;
        let left = guest::left(out);
        match (status.code(), left) {
            (Some(TIMED_OUT), _) => bail!("the guest did not end within {LIMIT_S} s"),
            (_, Ok(left)) => Ok(left),
            (_, Err(error)) => {
                let said = fs::read_to_string(&console).unwrap_or_default();
                let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
                Err(error.context(format!("the guest ended ({status}): {last}")))
            }
        }
    }

    fn command(&self, seed: u64) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--foreground", "-k", "5", &LIMIT_S.to_string()]);
        command.args(["setarch", std::env::consts::ARCH, "-R"]);
        command.arg(&self.kernel).args(KERNEL_ARGUMENTS);
        command.env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", FOLDER);
        command
            .env("TMPDIR", memory())
            .env("LD_PRELOAD", &self.random)
            .env("SEED", seed.to_string());
        command
    }
}

/// Returns where the guest's memory lives: a file that must be executable, best in memory itself.
fn memory() -> &'static str {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let usable = |line: &str| line.contains(" /dev/shm ") && !line.contains("noexec");
    if mounts.lines().any(usable) { "/dev/shm" } else { FOLDER }
}

/// Returns where videos are coded and decoded.
pub(crate) fn video() -> PathBuf {
    Path::new(FOLDER).join("video")
}

/// Part of what the guest sees, and so the same on every machine.
const FOLDER: &str = "/tmp/tautline-testbed";
/// What the guest reads and leaves.
pub(crate) const OUT: &str = "/tmp/tautline-testbed/out";
/// This program, for the guest.
pub(crate) const PROGRAM: &str = "/tmp/tautline-testbed/testbed";
const MACHINES: &str = "/tmp/tautline-testbed/machines";
const KERNEL_ARGUMENTS: [&str; 15] = [
    "mem=192M",
    "umid=cell",
    "uml_dir=/tmp/tautline-testbed/machines/",
    "rootfstype=hostfs",
    "rootflags=/",
    "ro",
    "con=null",
    "con0=null,fd:1",
    "ssl=null",
    "quiet",
    "panic=-1",
    "random.trust_cpu=on",
    "time-travel=inf-cpu",
    // 2001, in nanoseconds.
    "time-travel-start=1000000000000000000",
    "init=/tmp/tautline-testbed/testbed",
];
/// Of this machine's time; a cell takes seconds.
const LIMIT_S: u32 = 900;
/// What `timeout` ends with then.
const TIMED_OUT: i32 = 124;
