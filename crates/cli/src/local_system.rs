//! The whole system on one machine, each component as a process of its own.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal};
use tautline_net::free_port;
use tautline_transport::crypto::PublicKey;
use tautline_vehicle::SimulatedMachine;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::coding::Coding;
use crate::preset::Preset;
use crate::source::Source;
use crate::{keys, local};

/// Configuration of a system on one machine.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Address of the browser console; with port 0 a free port is taken.
    pub(crate) console: SocketAddr,
    /// Names by which browsers reach the console; the address if empty.
    pub(crate) console_names: Vec<String>,
    /// Preset of the emulated links.
    pub(crate) links: Links,
    /// Simulated machine.
    pub(crate) machine: SimulatedMachine,
    /// Source of pictures that replaces the simulated camera.
    pub(crate) source: Source,
    /// Pictures per second of the simulated camera.
    pub(crate) pictures_per_second: f64,
    /// Folder to record the received streams into; none if not given.
    pub(crate) record: Option<PathBuf>,
    /// Folder of the guard's black box; none if not given.
    pub(crate) blackbox: Option<PathBuf>,
    /// Coding of the vehicle's pictures.
    pub(crate) coding: Coding,
    /// Seed of the course and of the links.
    pub(crate) seed: u64,
}

/// Links between vehicle and operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Links {
    /// One link directly over the loopback interface, no emulator
    Direct,
    /// Four emulated links of a local network
    Lan,
    /// Four emulated LTE links of two carriers, standing still
    Lte,
    /// Four emulated LTE links of two carriers, driving: varying rates, handovers, outages
    LteDriving,
}

/// Running processes of the system; dropping it kills those that have not ended.
#[derive(Debug)]
pub(crate) struct LocalSystem {
    processes: Vec<Process>,
    /// Lines of the operator's standard output, about its console.
    printed: mpsc::Receiver<String>,
    metrics: SocketAddr,
    /// Fault of the vehicle's pictures that was reported last.
    trouble: Option<String>,
    folder: TempDir,
}

#[derive(Debug)]
struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl LocalSystem {
    /// Creates keys and settings in a temporary folder, starts every process and waits until
    /// vehicle and console answer.
    ///
    /// # Errors
    /// Fails if this binary lacks the encoder, the source of pictures does not exist, a port is in
    /// use, a process ends at once (its own words are in the error), or no answer comes within 20
    /// s.
    pub(crate) async fn raise(setup: &Setup) -> anyhow::Result<Self> {
        setup.coding.check()?;
        let console = match setup.console.port() {
            0 => free_port(setup.console.ip()),
            _ => Ok(setup.console),
        };
        // A port in use is for the person to resolve, before anything is started.
        let console =
            console.and_then(|it| TcpListener::bind(it)?.local_addr()).with_context(|| {
                format!("the console cannot listen on {}: choose another address", setup.console)
            })?;
        setup.source.check()?;
        let setup = &Setup { console, ..setup.clone() };
        let folder = tempfile::Builder::new()
            .prefix("tautline-")
            .tempdir()
            .context("no temporary folder can be made")?;
        let plan = Plan::draw(setup, folder.path())?;
        let (prints, printed) = mpsc::channel(LINES_MAX);
        let mut stand =
            Self { processes: Vec::new(), printed, metrics: plan.metrics, trouble: None, folder };
        for (name, settings) in &plan.settings {
            stand.start(name, settings, &prints)?;
        }
        match timeout(READY_MAX, stand.ready()).await {
            Ok(ready) => ready?,
            Err(_) => bail!("vehicle and console did not answer within {} s", READY_MAX.as_secs()),
        }
        Ok(stand)
    }

    /// Returns the address of the vehicle's `/metrics`.
    pub(crate) fn vehicle_metrics(&self) -> SocketAddr {
        self.metrics
    }

    /// Returns the names and ids of the processes that run.
    pub(crate) fn process_ids(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.processes.iter().filter_map(|p| p.child.id().map(|id| (p.name, id)))
    }

    /// Waits until a process ends unexpectedly; returns one line that names it.
    #[cfg(feature = "lab")]
    pub(crate) async fn ended(&mut self) -> String {
        loop {
            if let Some(words) = self.take_ended() {
                return words;
            }
            sleep(WATCH).await;
        }
    }

    /// Waits for the next line that the operator prints about its console. The first is the address
    /// to open, after the certificate's fingerprint if there is one; another follows each time an
    /// address is used. Waits forever once the operator has ended.
    pub(crate) async fn printed(&mut self) -> String {
        match self.printed.recv().await {
            Some(line) => line,
            None => std::future::pending().await,
        }
    }

    /// Waits for the next event: a line of the operator, an unexpected end of a process, or a new
    /// fault of the vehicle's pictures.
    pub(crate) async fn news(&mut self) -> String {
        for turn in 1_u32.. {
            if let Some(words) = self.take_ended() {
                return words;
            }
            if turn.is_multiple_of(TROUBLE_TURNS)
                && let Some(words) = self.take_trouble().await
            {
                return words;
            }
            if let Ok(line) = timeout(WATCH, self.printed()).await {
                return line;
            }
        }
        std::future::pending().await
    }

    /// Asks the vehicle for the fault of its pictures, and returns it in words if it differs from
    /// the last reported one; `None` if not, without a fault, or without an answer.
    async fn take_trouble(&mut self) -> Option<String> {
        // A vehicle that does not answer is reported by other means.
        let page = local::get(self.metrics, "/metrics").await.ok()?;
        let trouble =
            source_trouble(&page).filter(|trouble| Some(trouble) != self.trouble.as_ref())?;
        self.trouble = Some(trouble.clone());
        Some(format!("The vehicle's camera: {trouble}"))
    }

    /// Asks every process to end, in reverse order of starting, and waits up to 10 s for each, then
    /// kills it.
    pub(crate) async fn lower(mut self) {
        for process in self.processes.iter().rev() {
            process.ask_to_end();
        }
        for process in &mut self.processes {
            if timeout(END_MAX, process.child.wait()).await.is_err() {
                let _ = process.child.kill().await;
            }
        }
    }

    fn start(
        &mut self,
        name: &'static str,
        settings: &Path,
        prints: &mpsc::Sender<String>,
    ) -> anyhow::Result<()> {
        let program = std::env::current_exe().context("this program's own file is not known")?;
        let log = self.folder.path().join(format!("{name}.log"));
        let output = std::fs::File::create(&log).context("no log can be made")?;
        let is_heard = name == "operator";
        let mut child = Command::new(program)
            .args([OsStr::new(name), OsStr::new("--config"), settings.as_os_str()])
            .env(CHILD, "1")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(if is_heard { Stdio::piped() } else { Stdio::null() })
            .stderr(output)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{name} cannot be started"))?;
        if let Some(output) = child.stdout.take() {
            tokio::spawn(pass_on(output, prints.clone()));
        }
        self.processes.push(Process { name, child, log });
        Ok(())
    }

    async fn ready(&mut self) -> anyhow::Result<()> {
        while TcpStream::connect(self.metrics).await.is_err() || self.printed.is_empty() {
            if let Some(words) = self.take_ended() {
                bail!("{words}");
            }
            sleep(WATCH).await;
        }
        Ok(())
    }

    fn take_ended(&mut self) -> Option<String> {
        let index = self
            .processes
            .iter_mut()
            .position(|process| matches!(process.child.try_wait(), Ok(Some(_))))?;
        let mut process = self.processes.swap_remove(index);
        let status = process.child.try_wait().ok().flatten();
        Some(process.last_words(status))
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

    fn last_words(&self, status: Option<ExitStatus>) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let words = log.lines().last().and_then(|line| line.strip_prefix("tautline: "));
        match (words, status) {
            (Some(words), _) => format!("{} ended: {words}", self.name),
            (None, Some(status)) => format!("{} ended ({status})", self.name),
            (None, None) => format!("{} ended", self.name),
        }
    }
}

/// Returns the fault of the pictures in the text of a vehicle's metrics; `None` if there is none.
fn source_trouble(page: &str) -> Option<String> {
    let words = page.lines().find_map(|line| line.strip_prefix(TROUBLE)?.split_once("\"} 1"));
    words.map(|(words, _)| words.replace("\\\"", "\"").replace("\\\\", "\\"))
}

/// Forwards the lines of a process's output until it ends; lines that do not fit into the queue are
/// dropped.
async fn pass_on(output: ChildStdout, prints: mpsc::Sender<String>) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let _ = prints.try_send(line);
    }
}

/// Makes the system end this process when its parent ends, if it belongs to a [`LocalSystem`].
pub(crate) fn follow_parent() {
    if std::env::var_os(CHILD).is_some() {
        // Without it a killed stand would leave its processes behind; nothing else depends on it.
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    }
}

/// Settings files of all processes, in the order of starting, and the address of the vehicle's
/// metrics.
struct Plan {
    settings: Vec<(&'static str, PathBuf)>,
    metrics: SocketAddr,
}

impl Plan {
    fn draw(setup: &Setup, folder: &Path) -> anyhow::Result<Self> {
        let key = |name: &str| -> anyhow::Result<(PathBuf, PublicKey)> {
            let file = folder.join(format!("{name}.key"));
            let public = keys::create(&file)?;
            Ok((file, public))
        };
        let (switchboard_key, switchboard) = key("switchboard")?;
        let (vehicle_key, vehicle) = key("vehicle")?;
        let (operator_key, operator) = key("operator")?;
        let port = || free_port(Ipv4Addr::LOCALHOST.into()).context("no free port");
        let (rendezvous, metrics, control, target) = (port()?, port()?, port()?, port()?);
        let relays = LINK_NAMES.map(|_| port()).into_iter().collect::<anyhow::Result<Vec<_>>>()?;

        let mut plan = Self { settings: Vec::new(), metrics };
        let mut write = |name: &'static str, text: String| -> anyhow::Result<()> {
            let file = folder.join(format!("{name}.toml"));
            std::fs::write(&file, text).context("no settings can be written")?;
            plan.settings.push((name, file));
            Ok(())
        };
        let (state, epoch) = (folder.join("state"), folder.join("epoch"));
        write(
            "switchboard",
            format!(
                "listen = \"{rendezvous}\"\nkey = {switchboard_key:?}\nstate = {state:?}\n\
                 [vehicles]\n{VEHICLE} = \"{vehicle}\"\n[operators]\n{OPERATOR} = \"{operator}\"\n"
            ),
        )?;
        let advertise = match setup.links {
            Links::Direct => vec![target],
            Links::Lan | Links::Lte | Links::LteDriving => {
                write("emulate", emulate_settings(setup, target, &relays, control))?;
                relays
            }
        };
        let (vehicle_side, machine_side) =
            (folder.join("vehicle.sock"), folder.join("machine.sock"));
        let blackbox = setup.blackbox.as_ref().map(|folder| {
            format!(
                "key = {vehicle_key:?}\n[blackbox]\nfolder = {folder:?}\n\
                 keep_days = {BLACKBOX_DAYS}\nkeep_mib = {BLACKBOX_MIB}\n"
            )
        });
        write(
            "guard",
            format!(
                "vehicle = {vehicle_side:?}\nmachine = {machine_side:?}\nlatch = {:?}\n{}{}{SIMULATED}",
                folder.join("latch"),
                blackbox.unwrap_or_default(),
                Preset::simulated(setup.machine)
            ),
        )?;
        let machine_metrics = port()?;
        write(
            "machine",
            format!(
                "kind = \"{}\"\nguard = {machine_side:?}\nseed = {}\nmetrics = \"{machine_metrics}\"\n",
                setup.machine, setup.seed
            ),
        )?;
        let common =
            format!("switchboard = \"{rendezvous}\"\nswitchboard_key = \"{switchboard}\"\n");
        write(
            "vehicle",
            format!(
                "name = \"{VEHICLE}\"\nkey = {vehicle_key:?}\nepoch = {epoch:?}\n{common}\
                 operators = [\"{operator}\"]\nlinks = [\"127.0.0.1:0\"]\nguard = {vehicle_side:?}\nmachine = \"{}\"\nseed = {}\n\
                 pictures_per_second = {:?}\nmetrics = \"{metrics}\"\n{}{}",
                setup.machine,
                setup.seed,
                setup.pictures_per_second,
                setup.coding.to_toml(),
                setup.source.to_toml()
            ),
        )?;
        let record = setup.record.as_ref().map(|folder| format!("record = {folder:?}\n"));
        let emulator = match setup.links {
            Links::Direct => String::new(),
            Links::Lan | Links::Lte | Links::LteDriving => format!("emulator = \"{control}\"\n"),
        };
        write(
            "operator",
            format!(
                "name = \"{OPERATOR}\"\nkey = {operator_key:?}\n{common}vehicle = \"{VEHICLE}\"\nvehicle_key = \"{vehicle}\"\n\
                 links = [\"{target}\"]\nadvertise = {:?}\nconsole = \"{}\"\n\
                 console_names = {:?}\n{}{emulator}",
                advertise.iter().map(SocketAddr::to_string).collect::<Vec<_>>(),
                setup.console,
                setup.console_names,
                record.unwrap_or_default()
            ),
        )?;
        Ok(plan)
    }
}

fn emulate_settings(
    setup: &Setup,
    target: SocketAddr,
    relays: &[SocketAddr],
    control: SocketAddr,
) -> String {
    let head = format!("control = \"{control}\"\n");
    let preset = match setup.links {
        Links::Direct | Links::Lan => "lan",
        Links::Lte => "lte",
        Links::LteDriving => "lte-driving",
    };
    let links = LINK_NAMES.iter().zip(relays).enumerate().map(|(index, (name, listen))| {
        let carrier = &name[..1];
        let seed = setup.seed.wrapping_mul(1_000).wrapping_add(index as u64) & SEED_MAX;
        format!(
            "[[links]]\nname = \"{name}\"\nlisten = \"{listen}\"\ntarget = \"{target}\"\n\
             preset = \"{preset}\"\ncarrier = \"{carrier}\"\nseed = {seed}\n"
        )
    });
    links.fold(head, |text, link| text + &link)
}

/// Guard settings of a simulated machine, which endangers no one: a person who tries the system
/// need not hold a dead-man input.
const SIMULATED: &str = "[guard.presence]\ndead_man_required = false\n";
/// Maximum number of the operator's lines that wait to be printed; further ones are dropped.
const LINES_MAX: usize = 16;
/// Names of the emulated links: two modems with each of the carriers a and b.
const LINK_NAMES: [&str; 4] = ["a1", "b1", "a2", "b2"];
/// Days for which the guard's black box keeps a drive; [`BLACKBOX_MIB`] is its greatest size.
pub(crate) const BLACKBOX_DAYS: u64 = 30;
pub(crate) const BLACKBOX_MIB: u64 = 512;
/// Mask of a seed: TOML's integers are signed.
const SEED_MAX: u64 = i64::MAX as u64;
const VEHICLE: &str = "car-1";
const OPERATOR: &str = "operator-1";
/// Environment variable that marks processes which end with their parent.
pub(crate) const CHILD: &str = "TAUTLINE_STAND";
const READY_MAX: Duration = Duration::from_secs(20);
/// Time for which the end of a process is awaited before it is killed: a driving vehicle stops
/// first.
const END_MAX: Duration = Duration::from_secs(10);
const WATCH: Duration = Duration::from_millis(50);
/// Number of waits of [`WATCH`] between two queries for a fault of the vehicle's pictures: one
/// second.
const TROUBLE_TURNS: u32 = 20;
const TROUBLE: &str = "tautline_vehicle_source_trouble{words=\"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_vehicle_s_trouble_are_read_from_its_metrics() {
        let page =
            "tautline_vehicle_source_trouble{words=\"no mode \\\"h264\\\"; it has: none\"} 1.0\n";
        assert_eq!(source_trouble(page).as_deref(), Some("no mode \"h264\"; it has: none"));
        assert_eq!(source_trouble("tautline_vehicle_speed 1\n"), None);
    }
}
