//! Inside the guest: its init process, which sets up the network, runs one cell and powers off.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::counters::Counters;
use crate::host_folder::{CELL, SCHEDULE};
use crate::log::Log;
use crate::place::Place;
use crate::schedule::Schedule;
use crate::transport::Transport;
use crate::{air, end, host_folder, native};

/// Results of the guest, apart from the log.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Told {
    /// Packets accepted by the transport.
    pub(crate) sent: u64,
    /// Packets abandoned by the application before the transport.
    pub(crate) abandoned: u64,
    /// Packets that arrived damaged at the receiving application, or failed its authentication.
    pub(crate) damaged: u64,
    /// Counters of the wireless network, if there is one.
    pub(crate) air: Option<air::Told>,
    /// Kernel counters of the sending end.
    pub(crate) sender: Counters,
    /// Kernel counters of the receiving end.
    pub(crate) receiver: Counters,
}

/// One of the guest's network namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Namespace {
    name: &'static str,
    /// Prefix of its interface names, followed by the link number.
    device: &'static str,
    /// Last byte of its addresses.
    host: u8,
}

/// Runs the cell prepared by the host, and powers off the machine, which ends this process.
pub(crate) fn init() -> Result<()> {
    let outcome = mount_all().and_then(|()| run());
    if let Err(error) = outcome {
        // Until the host's folder is mounted, only the console is available.
        if fs::write(out(ERROR), format!("{error:#}")).is_err() {
            println!("{error:#}");
        }
    }
    Err(native::power_off()).context("the machine does not end")
}

/// Runs the sending end in its namespace, and writes its results.
pub(crate) fn send() -> Result<()> {
    SENDING.enter()?;
    let sent = end::send(&cell()?, &Schedule::read(&out(SCHEDULE))?, Place::Guest)?;
    leave(SENDER, &(sent.packets, sent.abandoned, sent.counters))
}

/// Runs the receiving end in its namespace, and writes its log and results.
pub(crate) fn receive() -> Result<()> {
    RECEIVING.enter()?;
    let received = end::Listener::open(&cell()?, Place::Guest)?.run()?;
    fs::write(out(LOG), received.log.to_bytes())?;
    leave(RECEIVER, &(received.damaged, received.counters))
}

/// Carries packets between the namespaces through the wireless model, until its input is closed.
pub(crate) fn carry() -> Result<()> {
    let cell = cell()?;
    let air = cell.air.context("the cell has a wire")?;
    let device = |end: Namespace| {
        end.enter()?;
        native::tun(&format!("{}0", end.device)).context("no TUN device")
    };
    let devices = [device(SENDING)?, device(RECEIVING)?];
    fs::write(AIR_READY, "")?;
    let input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    leave(AIR, &air::carry(air, cell.seed, devices, &input)?)
}

/// Reads, on the host, the results of a guest in `folder`.
///
/// # Errors
/// The guest's own error, or that it ended without results.
pub(crate) fn left(folder: &Path) -> Result<(Told, Log)> {
    if let Ok(error) = fs::read_to_string(folder.join(ERROR)) {
        anyhow::bail!("in the guest: {error}");
    }
    let read = |name: &str| {
        fs::read(folder.join(name)).with_context(|| format!("the guest left no {name}"))
    };
    let (sent, abandoned, sender) = serde_json::from_slice(&read(SENDER)?)?;
    let (damaged, receiver) = serde_json::from_slice(&read(RECEIVER)?)?;
    let air = read(AIR).ok().map(|told| serde_json::from_slice(&told)).transpose()?;
    let told = Told { sent, abandoned, damaged, air, sender, receiver };
    Ok((told, Log::read(&folder.join(LOG))?))
}

fn mount_all() -> Result<()> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run")] {
        command("mount", &format!("-n -t {kind} {kind} {place}"))?;
    }
    // The only place on the host that the guest can write to.
    fs::create_dir_all(OUT)?;
    command("mount", &format!("-n -t hostfs -o {} none {OUT}", host_folder::OUT))
}

fn run() -> Result<()> {
    let cell = cell()?;
    let air = lay(&cell)?;
    let mut receiver = start("receive")?;
    std::thread::sleep(READY_AFTER);
    let mut sender = start("send")?;
    ensure!(sender.wait()?.success(), "the sender failed");
    ensure!(receiver.wait()?.success(), "the receiver failed");
    if let Some(mut air) = air {
        drop(air.stdin.take());
        ensure!(air.wait()?.success(), "the wireless network failed");
    }
    Ok(())
}

fn cell() -> Result<Cell> {
    let text = fs::read(out(CELL)).context("the host left no cell")?;
    serde_json::from_slice(&text).context("what the host left is no cell")
}

/// Sets up the cell's links, and returns the process that carries the packets of wireless ones.
fn lay(cell: &Cell) -> Result<Option<Child>> {
    run_all("ip", &[], &ENDS.map(|end| format!("netns add {}", end.name)))?;
    let air = match cell.air {
        Some(_) => Some(lay_air()?),
        None => {
            lay_wires(cell)?;
            None
        }
    };
    if cell.transport == Transport::Mptcp {
        join_links()?;
    }
    Ok(air)
}

/// Creates a TUN device in each namespace, and starts the process that carries packets between
/// them.
fn lay_air() -> Result<Child> {
    let mut command = program("air");
    let air = command.stdin(Stdio::piped()).spawn().context("air does not start")?;
    while !Path::new(AIR_READY).exists() {
        std::thread::sleep(READY_EVERY);
    }
    for Namespace { name, device, host } in ENDS {
        let lines = [
            "link set lo up".to_owned(),
            format!("addr add 10.0.0.{host}/24 dev {device}0"),
            format!("link set {device}0 up"),
        ];
        run_all("ip", &["-n", name], &lines)?;
    }
    Ok(air)
}

/// Sets up wires: half the round-trip time each way, and losses towards the receiver.
fn lay_wires(cell: &Cell) -> Result<()> {
    let micros = Duration::from_millis(cell.rtt_ms.into()).as_micros() / 2;
    let links = 0..cell.transport.links();
    let [(a, va), (b, vb)] = ENDS.map(|end| (end.name, end.device));
    let pair = |link| {
        let [here, there] = ENDS.map(|end| end.hardware(link));
        format!(
            "link add {va}{link} address {here} netns {a} type veth \
             peer name {vb}{link} address {there} netns {b}"
        )
    };
    run_all("ip", &[], &links.clone().map(pair).collect::<Vec<_>>())?;
    for (end, other) in [(SENDING, RECEIVING), (RECEIVING, SENDING)] {
        let Namespace { name, device, host } = end;
        let loss = if end == SENDING { cell.loss_percent } else { 0.0 };
        let mut lines = vec!["link set lo up".to_owned()];
        lines.extend(links.clone().flat_map(|link| {
            [
                format!("addr add 10.0.{link}.{host}/24 dev {device}{link}"),
                format!("link set {device}{link} up"),
                // NetEm drops whole GSO packets: this makes it drop single packets.
                format!("link set {device}{link} gso_max_segs 1"),
                // An ARP request could be lost too, and is repeated only after a second.
                format!(
                    "neigh add 10.0.{link}.{} lladdr {} dev {device}{link} nud permanent",
                    other.host,
                    other.hardware(link)
                ),
            ]
        }));
        run_all("ip", &["-n", name], &lines)?;
        let qdisc = |link| {
            format!(
                "qdisc add dev {device}{link} root netem delay {micros}us loss {loss}% \
                 rate {LINK_RATE} limit {QUEUE_PACKETS}"
            )
        };
        run_all("tc", &["-n", name], &links.clone().map(qdisc).collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Lets MPTCP use the second link: the receiver announces its address there, and the sender
/// connects to it.
fn join_links() -> Result<()> {
    let limits = "mptcp limits set subflow 2 add_addr_accepted 2";
    let here = format!("mptcp endpoint add 10.0.1.{} dev va1 subflow", SENDING.host);
    let there = format!("mptcp endpoint add 10.0.1.{} dev vb1 signal", RECEIVING.host);
    for (end, line) in [(SENDING, here), (RECEIVING, there)] {
        run_all("ip", &["-n", end.name], &[limits.to_owned(), line])?;
    }
    Ok(())
}

impl Namespace {
    /// Returns the hardware address of this end on a link.
    fn hardware(self, link: u8) -> String {
        format!("02:00:00:00:{link:02x}:{:02x}", self.host)
    }

    /// Moves the calling process into this namespace.
    fn enter(self) -> Result<()> {
        let place = File::open(Path::new("/run/netns").join(self.name))
            .with_context(|| format!("no namespace {}", self.name))?;
        Ok(move_into_link_name_space(place.as_fd(), Some(LinkNameSpaceType::Network))?)
    }
}

/// Starts this program as another process of the guest, with the subcommand `what`.
fn start(what: &str) -> Result<Child> {
    program(what).spawn().with_context(|| format!("{what} does not start"))
}

fn program(what: &str) -> Command {
    let mut command = Command::new(host_folder::PROGRAM);
    command.arg(what).env("PATH", PATH).stdin(Stdio::null());
    command
}

/// Runs an iproute2 program once for all lines: starting it takes longer than its work.
fn run_all(name: &str, arguments: &[&str], lines: &[String]) -> Result<()> {
    let mut command = Command::new(name);
    command.args(arguments).args(["-b", "-"]).env("PATH", PATH);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{name} does not start"))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    stdin.write_all((lines.join("\n") + "\n").as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} {}: {}", lines.join("; "), said.trim());
    Ok(())
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

const ERROR: &str = "error";
const LOG: &str = "log";
const AIR: &str = "air.json";
/// File in the guest that signals that the wireless network's devices exist.
const AIR_READY: &str = "/run/air";
const READY_EVERY: Duration = Duration::from_millis(1);
const SENDER: &str = "sender.json";
const RECEIVER: &str = "receiver.json";
/// Mount point of the host's folder in the guest.
const OUT: &str = "/run/out";
const SENDING: Namespace = Namespace { name: "a", device: "va", host: 1 };
const RECEIVING: Namespace = Namespace { name: "b", device: "vb", host: 2 };
const ENDS: [Namespace; 2] = [SENDING, RECEIVING];
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
/// Rate of a link, as in the paper's network.
const LINK_RATE: &str = "100mbit";
/// Queue size in packets; NetEm's own default.
const QUEUE_PACKETS: u32 = 1000;
const READY_AFTER: Duration = Duration::from_millis(50);
