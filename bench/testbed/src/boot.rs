//! On the host: the guest's kernel as an ordinary process, once per cell.
//!
//! Virtual time advances only when the guest is idle, so neither this machine's speed nor its load
//! affects the result, and computation takes no time. For one seed, the command line, the random
//! numbers and all paths that the guest sees are identical.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::cell::Cell;
use crate::clock;
use crate::guest::{self, Told};
use crate::host_folder::{CELL, FOLDER, OUT, PROGRAM, SCHEDULE};
use crate::log::Log;
use crate::schedule::Schedule;

/// A kernel, and the folder in which one guest at a time runs.
#[derive(Debug)]
pub(crate) struct Host {
    kernel: PathBuf,
    random: PathBuf,
    /// Lock file, held for the lifetime of this value.
    _lock: File,
}

impl Host {
    /// Prepares the folder; `kernel` is the output of `make testbed`. Guests are pinned to one
    /// processor, the one with index `place` among those of this process. A guest's processes hand
    /// over to one another and never run in parallel; across processors that takes several times as
    /// long.
    pub(crate) fn prepare(kernel: &Path, place: u32) -> Result<Self> {
        stay_on_one_processor(place).context("cannot stay on one processor")?;
        let (linux, random) = (kernel.join("linux"), kernel.join("random.so"));
        let built = linux.exists() && random.exists();
        ensure!(built, "no kernel in {}: `make testbed` builds it", kernel.display());
        let cannot = || format!("cannot write into {FOLDER}");
        fs::create_dir_all(OUT).with_context(cannot)?;
        let lock = File::create(Path::new(FOLDER).join("lock")).with_context(cannot)?;
        ensure!(lock.try_lock().is_ok(), "another guest runs in {FOLDER}: wait for it");
        // A running program's file cannot be overwritten.
        let _ = fs::remove_file(PROGRAM);
        fs::copy(std::env::current_exe()?, PROGRAM).with_context(cannot)?;
        Ok(Self { kernel: linux, random, _lock: lock })
    }

    /// Runs a cell, and repeats it if a signal to its processes broke it: the same cell yields the
    /// same log.
    pub(crate) fn run(&self, cell: &Cell, schedule: &Schedule) -> Result<(Told, Log)> {
        let mut outcome = self.run_once(cell, schedule);
        for _ in 1..TRIES {
            if outcome.is_ok() || !was_signalled() {
                break;
            }
            outcome = self.run_once(cell, schedule);
        }
        outcome
    }

    fn run_once(&self, cell: &Cell, schedule: &Schedule) -> Result<(Told, Log)> {
        let _ = fs::remove_dir_all(OUT);
        let _ = fs::remove_dir_all(MACHINES);
        fs::create_dir_all(OUT)?;
        fs::create_dir_all(MACHINES)?;
        let out = Path::new(OUT);
        fs::write(out.join(CELL), serde_json::to_vec(cell)?)?;
        fs::write(out.join(SCHEDULE), schedule.to_bytes())?;
        let console = Path::new(FOLDER).join("console");
        let mut guest = self
            .command(cell.seed)
            .stdin(Stdio::null())
            .stdout(File::create(&console)?)
            .stderr(File::options().append(true).open(&console)?)
            .spawn()
            .context("the kernel does not start: it needs setarch")?;
        let status = wait(&mut guest)?;
        guest::left(out).map_err(|error| {
            let said = fs::read_to_string(&console).unwrap_or_default();
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            error.context(format!("the guest ended ({status}): {last}"))
        })
    }

    fn command(&self, seed: u64) -> Command {
        let mut command = Command::new("setarch");
        command.args([std::env::consts::ARCH, "-R"]);
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

/// Pins this process and its children.
fn stay_on_one_processor(place: u32) -> Result<()> {
    let ours = sched_getaffinity(None)?;
    let mut usable = (0..CpuSet::MAX_CPU).filter(|&processor| ours.is_set(processor));
    let chosen = usable.nth((place % ours.count()) as usize);
    let mut one = CpuSet::new();
    one.set(chosen.context("this process has no processor")?);
    Ok(sched_setaffinity(None, &one)?)
}

/// Returns whether the guest ended because its processes were stopped (SIGSTOP) or continued
/// (SIGCONT): it treats either as a fault of its program.
fn was_signalled() -> bool {
    let said = fs::read_to_string(Path::new(FOLDER).join("console")).unwrap_or_default();
    SIGNALLED.iter().any(|words| said.contains(words))
}

/// Waits until the guest has ended.
///
/// # Errors
/// If it ran for [`LIMIT`] and was terminated; time in which it was stopped (SIGSTOP) does not
/// count.
fn wait(guest: &mut Child) -> Result<ExitStatus> {
    let (mut ran, mut looked) = (Duration::ZERO, clock::now());
    loop {
        if let Some(status) = guest.try_wait()? {
            return Ok(status);
        }
        clock::sleep_until(looked + clock::nanos(LOOK_EVERY));
        let now = clock::now();
        if !is_held(guest.id()) {
            // At most one interval per poll: this process may have been stopped too.
            ran += Duration::from_nanos(now - looked).min(LOOK_EVERY * 2);
        }
        looked = now;
        if ran > LIMIT {
            end(guest)?;
            bail!("the guest did not end within {} s", LIMIT.as_secs());
        }
    }
}

/// Returns whether a process is stopped by a signal.
fn is_held(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The state follows the name, which is in parentheses and may contain anything.
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
}

/// Terminates a guest; on request it ends its own processes as well.
fn end(guest: &mut Child) -> Result<()> {
    kill_process(pid_of(guest), Signal::TERM)?;
    for _ in 0..ENDED_WITHIN.div_duration_f64(LOOK_EVERY) as u32 {
        if guest.try_wait()?.is_some() {
            return Ok(());
        }
        clock::sleep_until(clock::now() + clock::nanos(LOOK_EVERY));
    }
    guest.kill()?;
    guest.wait()?;
    Ok(())
}

fn pid_of(child: &Child) -> Pid {
    let number = i32::try_from(child.id()).ok();
    number.and_then(Pid::from_raw).expect("a process has a number, which is not 0")
}

/// Returns the folder of the guest's memory file, which must be executable, preferably in RAM.
fn memory() -> &'static str {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let usable = |line: &str| line.contains(" /dev/shm ") && !line.contains("noexec");
    if mounts.lines().any(usable) { "/dev/shm" } else { FOLDER }
}

/// Returns the folder in which videos are encoded and decoded.
pub(crate) fn video() -> PathBuf {
    Path::new(FOLDER).join("video")
}

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
    // The year 2001, in nanoseconds.
    "time-travel-start=1000000000000000000",
    "init=/tmp/tautline-testbed/testbed",
];
/// Maximum real time of a guest; a cell takes seconds.
const LIMIT: Duration = Duration::from_secs(15 * 60);
/// Console messages of a guest whose processes got SIGCONT or SIGSTOP.
const SIGNALLED: [&str; 2] = ["child stopped with signal 18", "child stopped with signal 19"];
const TRIES: u32 = 5;
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ENDED_WITHIN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_process_is_distinguished_from_a_waiting_one() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(!is_held(child.id()));
        kill_process(pid_of(&child), Signal::STOP).unwrap();
        // Wait until the signal has taken effect.
        while !is_held(child.id()) {
            std::thread::yield_now();
        }
        kill_process(pid_of(&child), Signal::CONT).unwrap();
        end(&mut child).unwrap();
        assert!(!wait(&mut child).unwrap().success());
    }
}
