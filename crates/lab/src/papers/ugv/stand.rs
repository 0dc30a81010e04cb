//! Latency files of switchboard, blind relay, vehicle and operator, as processes of this program in
//! network namespaces, with an emulated link at each end.
//!
//! ```text
//! vehicle <-> 10.77.0.1 [vehicle's link] 10.77.0.2 <-> 10.79.0.1 <-> 10.78.0.2 [operator's link] 10.78.0.1 <-> operator
//!                                                 switchboard, relay
//! ```
//!
//! Neither end has a route to the other: their traffic goes through the relay. Their TCP
//! connections to the switchboard use the same links.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use tautline_net::clock::Clock;
use tautline_net::emulate::{Config, Emulator, End, LinkConfig};
use tautline_net::latency::{Leg, Sample, files_in, read};
use tautline_net::tun::{Device, Namespace, iproute2};
use tautline_operator::recorder::INDEX;
use tautline_sim::link::Pair;
use tautline_sim::preset::Carrier;
use tautline_units::ByteCount;

use super::waits::Waits;
use crate::experiment::{Outcome, Row, Run};
use crate::pictures::footage::{Footage, Size};
use crate::workers;

/// Parameters of one drive.
#[derive(Clone, Debug)]
pub(super) struct Drive {
    /// Link between the vehicle and the switchboard's machine; up is from the vehicle.
    pub(super) vehicle_link: Pair,
    /// Link between the operator and the switchboard's machine; up is from the operator.
    pub(super) operator_link: Pair,
    /// The vehicle's settings from the section `transport` on.
    pub(super) vehicle: String,
    /// The operator's settings from the section `transport` on.
    pub(super) operator: String,
    /// Interval of the switchboard's pings on each connection, in ms. The switchboard compares
    /// clocks by the last ten.
    pub(super) ping_ms: u64,
    /// Seed of both links.
    pub(super) seed: u64,
    /// Number of the drive, unique among parallel ones.
    pub(super) number: usize,
}

/// Content of a drive's latency files, in sending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    samples: Vec<Sample>,
    /// H.264 bytes shown to the operator in the entire drive, and its duration.
    video: (ByteCount, Duration),
    /// Time that the drive's processes ran and waited for a processor during the measurement, and
    /// the duration of the measurement.
    waits: (Waits, Duration),
}

/// Part of a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    RoundTrip,
    /// From the writer of the file to the peer.
    Out,
}

/// Prerequisites of all drives on this machine.
pub(super) struct Program {
    file: PathBuf,
    clip: PathBuf,
    folder: tempfile::TempDir,
}

impl Program {
    /// Checks the prerequisites and renders the video to send; the outcome states what is missing.
    pub(super) fn ready(seed: u64) -> Result<Result<Self, Outcome>> {
        let file = std::env::current_exe().context("this program's own file is not known")?;
        let missing = |what: &str, remedy: &str| Ok(Err(Outcome::skipped(what, remedy)));
        if file.file_stem().is_none_or(|stem| stem != "tautline") {
            return missing(
                "the program that switchboard, relay, vehicle and operator are processes of",
                "`tautline lab run ugv` is it",
            );
        }
        if Command::new("ffmpeg").arg("-version").stdout(Stdio::null()).status().is_err() {
            return missing("ffmpeg, which makes a video of it", "`./setup ffmpeg`");
        }
        remove_left();
        if try_devices().is_err() {
            return missing(
                "network namespaces and TUN devices, over which TCP and UDP meet the same links",
                "run it as root, on a machine with iproute2 and /dev/net/tun",
            );
        }
        let folder = tempfile::tempdir().context("no temporary folder can be made")?;
        let clip = folder.path().join("seen.mp4");
        let pictures = PICTURES_A_SECOND as usize * CLIP_SECONDS;
        let footage = Footage::simulated(Size::SMALL, PICTURES_A_SECOND, pictures, seed)?;
        footage.with_noise(seed)?.write(&clip)?;
        Ok(Ok(Self { file, clip, folder }))
    }

    /// Performs drives, `at_a_time` of them in parallel, and reads their files. Drives whose
    /// processes waited for the machine are repeated once, with half the parallelism. An outcome
    /// states that the machine was too busy.
    ///
    /// # Errors
    /// If the two ends do not connect, or a process ends; includes its last log line.
    pub(super) fn drives(
        &self,
        run: &Run<'_>,
        drives: &[Drive],
        length: Duration,
        at_a_time: usize,
    ) -> Result<Result<Vec<Files>, Outcome>> {
        let mut made: Vec<Option<Files>> = vec![None; drives.len()];
        let mut longest = Duration::ZERO;
        for tried in 0..TRIES {
            let left: Vec<usize> = (0..drives.len()).filter(|at| made[*at].is_none()).collect();
            let (done, total) = (drives.len() - left.len(), drives.len() as u64);
            let told =
                |now: usize| run.progress((done + now).min(drives.len()) as u64, total, "drives");
            told(0);
            let threads = (at_a_time >> tried).max(1);
            let drive = |at: &usize| self.drive(&drives[*at], length);
            let files = workers::each(threads, &left, drive, |now, _| told(now))?;
            longest = files.iter().map(Files::wait).max().unwrap_or_default();
            for (at, files) in left.into_iter().zip(files) {
                made[at] = Some(files).filter(|files| files.wait() <= WAIT_MAX);
            }
            if longest <= WAIT_MAX {
                return Ok(Ok(made.into_iter().flatten().collect()));
            }
        }
        let missing = format!(
            "a machine that has time for it: what had something to do waited for a processor, {:.1} ms each time in the \
             mean, which is no link's doing",
            longest.as_secs_f64() * 1e3
        );
        Ok(Err(Outcome::skipped(missing, "run it while the machine does nothing else")))
    }

    /// Performs a drive and reads what its processes wrote during `length`, starting `WARM_UP`
    /// after the first end-to-end answer.
    ///
    /// # Errors
    /// If the two ends do not connect, or a process ends; includes its last log line.
    pub(super) fn drive(&self, drive: &Drive, length: Duration) -> Result<Files> {
        let number = drive.number;
        let folder = self.folder.path().join(format!("drive-{number}"));
        if folder.exists() {
            std::fs::remove_dir_all(&folder).context("a drive's folder cannot be removed")?;
        }
        std::fs::create_dir(&folder).context("no folder can be made")?;
        let laid = (1..LAY_TRIES).find_map(|_| {
            let laid = Places::lay(drive);
            // Remnants of an earlier drive may still be in removal.
            laid.inspect_err(|_| std::thread::sleep(LOOK)).ok()
        });
        let (places, emulators) = laid.map_or_else(|| Places::lay(drive), Ok)?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let ended = Ended(&stop);
            let links = emulators.map(|emulator| scope.spawn(|| emulator.run(&stop)));
            let samples = self.run(&places, &folder, drive, length);
            drop(ended);
            for link in links {
                link.join().map_err(|_| anyhow!("a link's thread broke"))??;
            }
            samples
        })
    }

    fn run(
        &self,
        places: &Places,
        folder: &Path,
        drive: &Drive,
        length: Duration,
    ) -> Result<Files> {
        let mut processes = Processes::default();
        self.start_all(places, folder, drive, &mut processes)?;
        let record = folder.join("record");
        let met = (0..MEET_TRIES).any(|_| {
            std::thread::sleep(LOOK);
            processes.all_run() && samples_in(&record).is_ok_and(|samples| !samples.is_empty())
        });
        ensure!(met, "vehicle and operator do not meet: {}", processes.last_words());
        let clock = Clock::start();
        let from = Duration::from_nanos(clock.unix_nanos(clock.now())) + WARM_UP;
        std::thread::sleep(WARM_UP);
        let before = processes.waits();
        std::thread::sleep(length);
        let waits = processes.waits().since(before);
        std::thread::sleep(LATEST);
        if !processes.all_run() {
            bail!("a process ended while driving: {}", processes.last_words());
        }
        drop(processes);
        let mut samples = Vec::new();
        for written in ["switchboard", "relay", "record"] {
            samples.extend(samples_in(&folder.join(written))?);
        }
        samples.retain(|sample| (from..from + length).contains(&sample.sent_at));
        samples.sort_by_key(|sample| sample.sent_at);
        Ok(Files { samples, video: video_in(&record)?, waits: (waits, length) })
    }

    fn start_all(
        &self,
        places: &Places,
        folder: &Path,
        drive: &Drive,
        processes: &mut Processes,
    ) -> Result<()> {
        let key = |name: &str| self.key(folder, name);
        let [switchboard, relay, vehicle, operator] =
            ["switchboard", "relay", "vehicle", "operator"].map(key);
        let (switchboard, relay, vehicle, operator) = (switchboard?, relay?, vehicle?, operator?);
        let common =
            format!("switchboard = \"{MIDDLE}:{PORT}\"\nswitchboard_key = \"{switchboard}\"\n");
        let texts = [
            (
                "switchboard",
                &places.middle,
                format!(
                    "listen = \"{MIDDLE}:{PORT}\"\nkey = \"switchboard.key\"\nlatency = \"switchboard\"\n\
                     ping_interval_ms = {}\nconnection_timeout_ms = 30000\n\
                     [[relays]]\nkey = \"{relay}\"\naddresses = [\"{MIDDLE}:{RELAY_PORT}\"]\n\
                     [vehicles]\ncar = \"{vehicle}\"\n[operators]\nanna = \"{operator}\"\n",
                    drive.ping_ms
                ),
            ),
            (
                "relay",
                &places.middle,
                format!(
                    "listen = [\"{MIDDLE}:{RELAY_PORT}\"]\nkey = \"relay.key\"\nlatency = \"relay\"\n\
                     switchboard_key = \"{switchboard}\"\n"
                ),
            ),
            (
                "vehicle",
                &places.vehicle,
                format!(
                    "name = \"car\"\nkey = \"vehicle.key\"\n{common}operators = [\"{operator}\"]\n\
                     links = [\"{}:0\"]\ntls = false\nguard = \"./guard.sock\"\nclip = {:?}\n{}",
                    address(VEHICLE_NETWORK, 1),
                    self.clip,
                    drive.vehicle
                ),
            ),
            (
                "operator",
                &places.operator,
                format!(
                    "name = \"anna\"\nkey = \"operator.key\"\n{common}vehicle = \"car\"\n\
                     vehicle_key = \"{vehicle}\"\nlinks = [\"{}:0\"]\nconsole = \"127.0.0.1:8080\"\n\
                     record = \"record\"\n{}",
                    address(OPERATOR_NETWORK, 1),
                    drive.operator
                ),
            ),
        ];
        for (name, place, text) in texts {
            std::fs::write(folder.join(format!("{name}.toml")), text)
                .context("no settings can be written")?;
            let log = folder.join(format!("{name}.log"));
            let output = File::create(&log).context("no log can be made")?;
            let mut command = Command::new(&self.file);
            if ["vehicle", "operator"].contains(&name) {
                command.args(["lab", "gate-alone"]);
            }
            if std::env::var_os(LOG).is_none() {
                command.env(LOG, "info");
            }
            command
                .args([name, "--config", &format!("{name}.toml")])
                .current_dir(folder)
                .env_remove("TAUTLINE_CONFIG")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(output);
            let child = place.within(|| command.spawn())?;
            let child = child.with_context(|| format!("{name} cannot be started"))?;
            processes.0.push(Process { name, child, log });
            // Each process waits for those that it depends on.
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Creates a secret key file, and returns the public key.
    fn key(&self, folder: &Path, name: &str) -> Result<String> {
        let made = Command::new(&self.file)
            .args(["keys", "new", &format!("{name}.key")])
            .current_dir(folder)
            .output()
            .context("this program cannot be started anew")?;
        ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr).trim_end());
        Ok(String::from_utf8_lossy(&made.stdout).trim().to_owned())
    }
}

impl Files {
    /// Adds the files of another drive.
    pub(super) fn append(&mut self, other: Files) {
        self.samples.extend(other.samples);
        self.video.0 += other.video.0;
        self.video.1 += other.video.1;
        self.waits = (self.waits.0.and(other.waits.0), self.waits.1 + other.waits.1);
    }

    /// Returns the mean wait of a runnable thread for a processor.
    fn wait(&self) -> Duration {
        self.waits.0.mean()
    }

    /// Returns the rate of the displayed H.264.
    pub(super) fn video_kbps(&self) -> f64 {
        self.video.0.get() as f64 * 8e-3 / self.video.1.as_secs_f64()
    }

    /// Returns two rows that are not judged: the mean wait of a runnable thread for a processor,
    /// and the mean number of processors in use.
    pub(super) fn machine_rows(&self) -> [Row; 2] {
        let (waits, length) = &self.waits;
        let processors = waits.ran().as_secs_f64() / length.as_secs_f64();
        let wait = Row::new(
            "wait of a thread that had something to do for a processor, mean",
            "ms",
            waits.mean().as_secs_f64() * 1e3,
        );
        let wait = wait.note(
            "As the kernel counts it. Where it is above 1 ms in a drive, that is made again.",
        );
        [
            wait.clocked(),
            Row::new("processors that a drive's processes took, mean", "", processors).clocked(),
        ]
    }

    /// Returns the delays of a leg, as [`sent`](Self::sent) does, without the sending times.
    pub(super) fn delays(&self, leg: Leg, way: Way) -> Vec<Duration> {
        self.sent(leg, way).into_iter().map(|(_, delay)| delay).collect()
    }

    /// Returns each delay of a leg after its sending time in Unix time, in sending order. For
    /// [`Way::Out`], samples without compared clocks are omitted and negative delays count as zero;
    /// for [`Way::RoundTrip`], no sample is omitted.
    pub(super) fn sent(&self, leg: Leg, way: Way) -> Vec<(Duration, Duration)> {
        let samples = self.samples.iter().filter(|sample| sample.leg == leg);
        let nanos = |nanos: i64| Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        let delay = |sample: &Sample| match way {
            Way::RoundTrip => Some(sample.round_trip()),
            Way::Out => sample.one_way.map(|way| nanos(way.out_nanos)),
        };
        samples.filter_map(|sample| Some((sample.sent_at, delay(sample)?))).collect()
    }
}

/// The three namespaces.
struct Places {
    vehicle: Namespace,
    operator: Namespace,
    middle: Namespace,
}

impl Places {
    /// Creates all three namespaces, and the links between them.
    fn lay(drive: &Drive) -> Result<(Self, [Emulator; 2])> {
        let [vehicle, operator, middle] = ["v", "o", "m"]
            .map(|end| Namespace::open_or_make(&name_of(&format!("{}-{end}", drive.number))));
        let places = Self { vehicle: vehicle?, operator: operator?, middle: middle? };
        let links = [
            (&places.vehicle, "vehicle", VEHICLE_NETWORK, &drive.vehicle_link, drive.seed),
            (&places.operator, "operator", OPERATOR_NETWORK, &drive.operator_link, !drive.seed),
        ];
        let [vehicle, operator] = links
            .map(|(end, name, network, link, seed)| places.link(end, name, network, link, seed));
        let emulators = [vehicle?, operator?];
        Ok((places, emulators))
    }

    /// Creates a link from an end to the middle, and the end's route to the switchboard over it;
    /// with the vehicle's link also the switchboard's address in the middle.
    fn link(
        &self,
        end: &Namespace,
        name: &str,
        network: [u8; 2],
        link: &Pair,
        seed: u64,
    ) -> Result<Emulator> {
        let config = LinkConfig {
            name: name.to_owned(),
            listen: None,
            target: None,
            wireless: None,
            preset: None,
            carrier: Carrier::default(),
            up: Some(link.up.clone()),
            down: Some(link.down.clone()),
            seed,
        };
        let config = Config { control: None, seed, links: vec![config] };
        let sides = [end, &self.middle].map(|namespace| End { namespace, device: name });
        let emulator = Emulator::between(config, sides, network)?;
        end.ip(&[format!("route add {MIDDLE} via {}", address(network, 2))])?;
        if network == VEHICLE_NETWORK {
            self.middle.ip(&[format!("addr add {MIDDLE}/32 dev lo")])?;
        }
        Ok(emulator)
    }
}

/// Running processes; dropping it kills them.
#[derive(Default)]
struct Processes(Vec<Process>);

struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Processes {
    fn all_run(&mut self) -> bool {
        self.0.iter_mut().all(|process| matches!(process.child.try_wait(), Ok(None)))
    }

    fn waits(&self) -> Waits {
        let all = self.0.iter().map(|process| Waits::of_process(process.child.id()));
        all.fold(Waits::default(), Waits::and)
    }

    /// Returns the name and the last log line of each process.
    fn last_words(&self) -> String {
        let words = self.0.iter().map(|process| {
            let log = std::fs::read_to_string(&process.log).unwrap_or_default();
            format!("{}: {}", process.name, log.lines().last().unwrap_or("nothing"))
        });
        words.collect::<Vec<_>>().join("; ")
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

/// A guard that signals the end when it is dropped, even by an error or a panic.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn address([a, b]: [u8; 2], host: u8) -> String {
    format!("{a}.{b}.0.{host}")
}

/// Returns the name of a namespace of this process.
fn name_of(what: &str) -> String {
    format!("{NAMES}{}-{what}", std::process::id())
}

/// Checks whether this process may create namespaces, and devices in them.
fn try_devices() -> Result<()> {
    let namespace = Namespace::open_or_make(&name_of("try"))?;
    Device::make("try", &namespace).map(drop)
}

/// Removes the network namespaces that earlier processes of this program left when they were
/// killed.
fn remove_left() {
    let names = std::fs::read_dir(NAMESPACES).into_iter().flatten().flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let is_left = |name: &String| {
        let process = name.strip_prefix(NAMES).and_then(|rest| rest.split('-').next());
        process.is_some_and(|id| !Path::new("/proc").join(id).exists())
    };
    let lines: Vec<String> =
        names.filter(is_left).map(|name| format!("netns del {name}")).collect();
    if !lines.is_empty() {
        // Missing permissions are reported when a namespace is created.
        let _ = iproute2("ip", &["-force"], &lines);
    }
}

/// Reads a folder of latency files. Malformed lines are left out: a killed writer may have
/// truncated the last.
fn samples_in(folder: &Path) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let files = files_in(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for (_, file) in files {
        let opened =
            File::open(&file).with_context(|| format!("cannot read {}", file.display()))?;
        read(BufReader::new(opened), |_, line| samples.extend(line.ok().map(|line| line.sample)))?;
    }
    Ok(samples)
}

/// Reads the displayed slices from an operator's recording: their bytes, and the time from the
/// first to the last. Malformed lines are left out; fewer than two slices are an error.
fn video_in(record: &Path) -> Result<(ByteCount, Duration)> {
    #[derive(serde::Deserialize)]
    struct Line {
        shown_us: u64,
        bytes: u64,
    }
    let mut reader =
        csv::Reader::from_path(record.join(INDEX)).context("no slices were recorded")?;
    // A last line truncated by a killed writer is not an error.
    let lines: Vec<Line> = reader.deserialize().filter_map(Result::ok).collect();
    let [first, .., last] = &lines[..] else { bail!("no video came") };
    let bytes = ByteCount::new(lines.iter().map(|line| line.bytes).sum());
    Ok((bytes, Duration::from_micros(last.shown_us.saturating_sub(first.shown_us))))
}

/// First part of the settings of a session in which only the gate is active; [`RATE`] is the last
/// part.
pub(super) const TRANSPORT: &str = "[transport]\nspread = false\nretransmit = false\n\
    ping_interval_ms = 50\nreport_interval_ms = 100\nmedia_deadline_ms = 500\n";
/// Last part of the settings that begin with [`TRANSPORT`]: a fixed rate, of which nine tenths are
/// for pictures.
pub(super) const RATE: &str = "[transport.rate]\ninitial_kbps = 560\n";
/// Note for the reader of both experiments on this stand.
pub(super) const SENT: &str =
    "Sessions at a fixed rate of 560 kbit/s, without repair packets, nothing sent again.";

/// Environment variable that selects what a process logs.
const LOG: &str = "TAUTLINE_LOG";
/// Picture rate of the video: that of the camera in the modelled runs, because the paper does not
/// state one.
const PICTURES_A_SECOND: u32 = 15;
/// Length of the clip in s; it repeats.
const CLIP_SECONDS: usize = 8;
const VEHICLE_NETWORK: [u8; 2] = [10, 77];
const OPERATOR_NETWORK: [u8; 2] = [10, 78];
/// Address of the switchboard and the relay, outside both link networks.
const MIDDLE: &str = "10.79.0.1";
/// Port of the switchboard, which also uses the next.
const PORT: u16 = 7443;
/// Port of the relay: [`PORT`] plus two, because the switchboard uses the port between them too.
const RELAY_PORT: u16 = 7445;
/// Prefix of the names of all network namespaces of the stand, before the process number.
const NAMES: &str = "tl-lab-";
/// Directory in which iproute2 stores the names of network namespaces.
const NAMESPACES: &str = "/run/netns";
/// Number of attempts to lay the links.
const LAY_TRIES: u32 = 5;
const TRIES: usize = 2;
/// Limit on the mean wait of a thread for a processor, above which a drive is repeated: a ping is
/// passed on three to six times, and a link's delay is at least 40 ms.
const WAIT_MAX: Duration = Duration::from_millis(1);
const LOOK: Duration = Duration::from_millis(200);
/// Number of checks, [`LOOK`] apart, after which the two ends count as unable to meet: twenty
/// seconds.
const MEET_TRIES: u32 = 100;
/// Time after the first end-to-end answer that is excluded from the measurement, for the handshakes
/// and the startup of the rate control.
const WARM_UP: Duration = Duration::from_secs(3);
/// Time for which the processes continue after the measurement, so that the last pings are
/// answered: an answer after that is missing in the files.
const LATEST: Duration = Duration::from_secs(4);
