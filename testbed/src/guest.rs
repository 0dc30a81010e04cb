//! Inside the guest: its first process, which lays the network, runs one cell and ends the machine.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::counters::Counters;
use crate::log::Log;
use crate::place::Place;
use crate::{boot, end, native};

/// What the guest leaves behind beside the log.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Told {
    /// Packets that the transport took.
    pub(crate) sent: u64,
    /// The sending end's counters.
    pub(crate) sender: Counters,
    /// The receiving end's.
    pub(crate) receiver: Counters,
}

/// One of the guest's network namespaces.
#[derive(Clone, Copy, Debug)]
struct Namespace(&'static str);

/// Runs the cell that the host has left, and ends the machine, which ends this process.
pub(crate) fn init() -> Result<()> {
    let outcome = mount_all().and_then(|()| run());
    if let Err(error) = outcome {
        // Before the host's folder is there, only the console can take it.
        if fs::write(out(ERROR), format!("{error:#}")).is_err() {
            println!("{error:#}");
        }
    }
    Err(native::power_off()).context("the machine does not end")
}

/// Runs the sending end in this namespace, and leaves what it has to tell.
pub(crate) fn send() -> Result<()> {
    let sent = end::send(&cell()?, Place::Guest)?;
    leave(SENDER, &(sent.packets, sent.counters))
}

/// Runs the receiving end in this namespace, and leaves its log and what it has to tell.
pub(crate) fn receive() -> Result<()> {
    let received = end::Listener::open(&cell()?, Place::Guest)?.run()?;
    fs::write(out(LOG), received.log.to_bytes())?;
    leave(RECEIVER, &received.counters)
}

/// Reads on the host what a guest left in `folder`.
///
/// # Errors
/// What went wrong in the guest, or that it ended without a word.
pub(crate) fn left(folder: &Path) -> Result<(Told, Log)> {
    if let Ok(error) = fs::read_to_string(folder.join(ERROR)) {
        anyhow::bail!("in the guest: {error}");
    }
    let read = |name: &str| {
        fs::read(folder.join(name)).with_context(|| format!("the guest left no {name}"))
    };
    let (sent, sender) = serde_json::from_slice(&read(SENDER)?)?;
    let receiver = serde_json::from_slice(&read(RECEIVER)?)?;
    Ok((Told { sent, sender, receiver }, Log::read(&folder.join(LOG))?))
}

fn mount_all() -> Result<()> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")] {
        command("mount", &format!("-n -t {kind} {kind} {place}"))?;
    }
    // The only place of the host's that the guest can write to.
    fs::create_dir_all(OUT)?;
    command("mount", &format!("-n -t hostfs -o {} none {OUT}", boot::OUT))
}

fn run() -> Result<()> {
    let cell = cell()?;
    lay(&cell)?;
    let mut receiver = RECEIVING.start("receive")?;
    std::thread::sleep(READY_AFTER);
    let mut sender = SENDING.start("send")?;
    ensure!(sender.wait()?.success(), "the sender failed");
    ensure!(receiver.wait()?.success(), "the receiver failed");
    Ok(())
}

fn cell() -> Result<Cell> {
    let text = fs::read(out(CELL)).context("the host left no cell")?;
    serde_json::from_slice(&text).context("what the host left is no cell")
}

/// Lays the cell's links: half the round trip each way, and losses on the way there.
fn lay(cell: &Cell) -> Result<()> {
    for namespace in [SENDING, RECEIVING] {
        command("ip", &format!("netns add {}", namespace.0))?;
        namespace.ip("link set lo up")?;
    }
    let delay = Duration::from_millis(cell.rtt_ms.into()) / 2;
    for link in 0..cell.transport.links() {
        command(
            "ip",
            &format!(
                "link add va{link} netns {} type veth peer name vb{link} netns {}",
                SENDING.0, RECEIVING.0
            ),
        )?;
        for (namespace, device, host) in [(SENDING, "va", 1), (RECEIVING, "vb", 2)] {
            namespace.ip(&format!("addr add 10.0.{link}.{host}/24 dev {device}{link}"))?;
            namespace.ip(&format!("link set {device}{link} up"))?;
            // NetEm loses what it is given at once: single packets, not what becomes several.
            namespace.ip(&format!("link set {device}{link} gso_max_segs 1"))?;
            let loss = if device == "va" { cell.loss_percent } else { 0.0 };
            let (namespace, micros) = (namespace.0, delay.as_micros());
            command(
                "tc",
                &format!(
                    "-n {namespace} qdisc add dev {device}{link} root netem \
                     delay {micros}us loss {loss}% rate {LINK_RATE} limit {QUEUE_PACKETS}"
                ),
            )?;
        }
    }
    Ok(())
}

impl Namespace {
    fn ip(self, arguments: &str) -> Result<()> {
        command("ip", &format!("-n {} {arguments}", self.0))
    }

    /// Starts this program in the namespace.
    fn start(self, what: &str) -> Result<Child> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.0, boot::PROGRAM, what]);
        command.env("PATH", PATH).stdin(Stdio::null());
        command.spawn().with_context(|| format!("{what} does not start"))
    }
}

fn command(name: &str, arguments: &str) -> Result<()> {
    let mut command = Command::new(name);
    command.args(arguments.split_whitespace()).env("PATH", PATH).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("{name} does not start"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} {arguments}: {}", said.trim());
    Ok(())
}

fn leave(name: &str, told: &impl Serialize) -> Result<()> {
    fs::write(out(name), serde_json::to_vec(told)?).with_context(|| format!("cannot write {name}"))
}

fn out(name: &str) -> std::path::PathBuf {
    Path::new(OUT).join(name)
}

/// The cell, on the host and in the guest.
pub(crate) const CELL: &str = "cell.json";
const ERROR: &str = "error";
const LOG: &str = "log";
const SENDER: &str = "sender.json";
const RECEIVER: &str = "receiver.json";
/// Where the host's folder stands in the guest.
const OUT: &str = "/run/out";
const SENDING: Namespace = Namespace("a");
const RECEIVING: Namespace = Namespace("b");
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// The paper's network was of 100 Mbit/s.
const LINK_RATE: &str = "100mbit";
/// Of packets; NetEm's own default.
const QUEUE_PACKETS: u32 = 1000;
const READY_AFTER: Duration = Duration::from_millis(50);
