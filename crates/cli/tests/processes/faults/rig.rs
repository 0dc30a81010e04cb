//! Guard and machine as processes of their own, and a vehicle that proposes to the guard.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::faults::garbage::Garbage;
use tautline_guard::act::{Act, Deed};
use tautline_guard::frame::{self, Proposal, Status};
use tautline_guard::identity::{ActNumber, Console, Session};
use tautline_guard::{Controls, Mode, PERIOD};
use tautline_net::clock::Clock;
use tautline_net::datagram::{Address, Client};
use tautline_net::{free_port, realtime};
use tautline_testtrack::Kind;

/// Deviations from the guard's ordinary settings.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// Kind of the simulated machine, for which the guard has its settings.
    pub(crate) kind: Kind,
    /// Flags of the car; `None` without a car, if another machine connects.
    pub(crate) car: Option<Vec<&'static str>>,
    /// Flags of a `tautline can` in place of the car; its log is the file [`CAN_LOG`].
    pub(crate) can: Option<Vec<String>>,
    /// File of the socket to which the machine connects; the guard listens at [`MACHINE`].
    pub(crate) machine_at: &'static str,
    /// Limits after which the machine is stopped.
    pub(crate) limits: Limits,
    /// Black box of the guard.
    pub(crate) black_box: BlackBox,
    /// Folder of the black box; `None` for one with the other files.
    pub(crate) box_at: Option<PathBuf>,
    /// File of the guard's latch.
    pub(crate) latch: &'static str,
    /// Process in whose network guard and car run; `None` for the test's own.
    pub(crate) network_of: Option<u32>,
}

/// State of a guard's black box.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum BlackBox {
    /// No black box.
    #[default]
    Absent,
    /// Black box that records.
    Records,
    /// Black box that cannot record, because the system limits the guard's files to 512 bytes:
    /// enough for a latch only.
    Refused,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            kind: Kind::Car,
            car: None,
            can: None,
            machine_at: MACHINE,
            limits: Limits::Soon,
            black_box: BlackBox::Absent,
            box_at: None,
            latch: "latch",
            network_of: None,
        }
    }
}

/// Time limits of guard and car: no shorter than a computer allows that runs other load, without
/// real-time threads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limits {
    /// Guard and car stop after 0.1 s without a message of each other.
    Soon,
    /// Guard and car stop after 0.5 s without a message of each other; pictures and commands may be
    /// late too: for drives that must not stop.
    Late,
}

impl Limits {
    /// Returns how long guard and car may be without a message of the other.
    pub(crate) fn silence(self) -> Duration {
        match self {
            Self::Soon => Duration::from_millis(100),
            Self::Late => Duration::from_millis(500),
        }
    }

    /// Returns the section `[guard.latency]` of the guard's settings for these limits.
    fn latency(self) -> String {
        let ms = self.silence().as_millis();
        let silence = format!(
            "proposal_timeout_ms = {ms}\nmachine_timeout_ms = {ms}\nstep_gap_max_ms = {ms}\n"
        );
        let ages = match self {
            Self::Soon => "",
            Self::Late => {
                "loop_age_full_ms = 1000\nloop_age_max_ms = 2000\ncommand_age_max_ms = 1000\n\
                 command_timeout_ms = 2000\n"
            }
        };
        silence + ages
    }
}

/// Folder of the Python adapter.
pub(crate) const ADAPTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../adapters/python");
/// File of the log of `tautline can`.
pub(crate) const CAN_LOG: &str = "can.log";
/// File of the guard's socket for the machine.
pub(crate) const MACHINE: &str = "machine.sock";

/// Processes of guard and machine, and the vehicle: one played by this test, or a
/// [`Remote`](crate::faults::remote::Remote).
pub(crate) struct Rig<V = Vehicle> {
    /// Vehicle; the first field, so that it ends before its peer, the guard.
    pub(crate) vehicle: V,
    folder: tempfile::TempDir,
    setup: Setup,
    guard: Child,
    machine: Child,
    metrics: Option<String>,
}

/// A vehicle whose operator sees every picture at once.
pub(crate) struct Vehicle {
    wanted: Arc<Mutex<Wanted>>,
    newest: Arc<Mutex<Option<Status>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Default)]
struct Wanted {
    controls: Controls,
    act: Option<(u32, Deed)>,
    emergency_stop: Option<ActNumber>,
    is_silent: bool,
    garbage: Garbage,
}

impl Rig {
    pub(crate) fn start(setup: &Setup) -> Self {
        Self::with(setup, |folder| Vehicle::start(Address::Path(folder.join("vehicle.sock"))))
    }

    /// Arms and applies throttle until the machine is faster than `speed` m/s. Repeats this if it
    /// was stopped before, as it must be if this computer stalls for 0.1 s.
    pub(crate) fn drive(&self, speed: f32) {
        for _ in 0..ARMED_MOST {
            self.vehicle.arm();
            self.vehicle.throttle(1.0);
            let fast =
                |status: &Status| status.machine.is_some_and(|(machine, _)| machine.speed > speed);
            let status = self
                .vehicle
                .eventually("it drives", |status| fast(status) || status.mode == Mode::Held);
            if fast(&status) {
                return;
            }
            eprintln!("it was stopped before it drove: {:?}", status.why);
        }
        panic!("it is stopped each time: {:?}", self.vehicle.status());
    }
}

impl<V> Rig<V> {
    /// Starts guard and machine, and the vehicle returned by `start`, with its files in the same
    /// folder.
    pub(crate) fn with(setup: &Setup, start: impl FnOnce(&Path) -> V) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let guard = start_guard(folder.path(), setup);
        let at = folder.path().join(setup.machine_at);
        let (machine, metrics) = match (&setup.car, &setup.can) {
            (_, Some(flags)) => {
                let log = File::create(folder.path().join(CAN_LOG)).expect("a folder of ours");
                let can = tautline()
                    .args(["can", "--guard"])
                    .arg(&at)
                    .arg("--control-timeout-ms")
                    .arg(setup.limits.silence().as_millis().to_string())
                    .args(flags)
                    .stderr(log)
                    .spawn()
                    .expect("our own binary");
                (can, None)
            }
            (Some(flags), None) => {
                let metrics = free_port(Ipv4Addr::LOCALHOST.into()).expect("a port").to_string();
                let car = tautline_in(setup.network_of)
                    .arg("machine")
                    .arg("--guard")
                    .arg(&at)
                    .args(["--metrics", &metrics, "--control-timeout-ms"])
                    .arg(setup.limits.silence().as_millis().to_string())
                    .args(["--kind", name_of(setup.kind)])
                    .args(flags)
                    .spawn()
                    .expect("our own binary");
                (car, Some(metrics))
            }
            (None, None) => {
                let silence = setup.limits.silence().as_secs_f64();
                let machine = Command::new("python3")
                    .arg("-B")
                    .arg(Path::new(ADAPTERS).join("machine.py"))
                    .arg(&at)
                    .env("MACHINE_SILENCE", silence.to_string())
                    .env("MACHINE_PRINTS", "1")
                    .stdout(Stdio::piped())
                    .spawn()
                    .expect("python3");
                (machine, None)
            }
        };
        let vehicle = start(folder.path());
        Self { vehicle, folder, setup: setup.clone(), guard, machine, metrics }
    }

    /// Returns how long guard and car may be without a message of each other.
    pub(crate) fn silence(&self) -> Duration {
        self.setup.limits.silence()
    }

    pub(crate) fn signal_guard(&self, signal: &str) {
        self::signal(self.guard.id(), signal);
    }

    pub(crate) fn signal_machine(&self, signal: &str) {
        self::signal(self.machine.id(), signal);
    }

    /// Kills the guard like a crash, and waits for its end.
    pub(crate) fn kill_guard(&mut self) {
        self.signal_guard("KILL");
        self.guard.wait().expect("it was started");
    }

    /// Ends the guard like its service manager, and waits for its end.
    pub(crate) fn end_guard(&mut self) {
        self.signal_guard("TERM");
        self.guard.wait().expect("it was started");
    }

    /// Ends the machine's process like its service manager, and waits for its end.
    pub(crate) fn end_machine(&mut self) -> ExitStatus {
        self.signal_machine("TERM");
        self.machine.wait().expect("it was started")
    }

    /// Returns the output of `tautline blackbox` for this guard, and whether it succeeded.
    pub(crate) fn black_box(&self, action: &str) -> (String, bool) {
        let folder = self.setup.box_at.clone().unwrap_or_else(|| self.path("box"));
        let read = tautline().args(["blackbox", action]).arg(folder).output();
        let read = read.expect("our own binary");
        (String::from_utf8_lossy(&read.stdout).into_owned(), read.status.success())
    }

    pub(crate) fn restart_guard(&mut self) {
        self.guard = start_guard(self.folder.path(), &self.setup);
    }

    /// Returns a value of the car's own metrics, which do not pass through other processes.
    pub(crate) fn car(&self, what: &str) -> f64 {
        let address = self.metrics.as_ref().expect("a car");
        let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
        let page = match self.setup.network_of {
            Some(process) => ask_within(process, address, &request),
            None => {
                let mut stream = TcpStream::connect(address).expect("it runs");
                stream.write_all(request.as_bytes()).expect("it listens");
                let mut page = String::new();
                stream.read_to_string(&mut page).expect("it answers");
                page
            }
        };
        let name = format!("tautline_machine_{what} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&name));
        line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{what}: {page}"))
    }

    pub(crate) fn guard_id(&self) -> u32 {
        self.guard.id()
    }

    pub(crate) fn machine_id(&self) -> u32 {
        self.machine.id()
    }

    /// Waits until the car stands with both brakes applied; returns the metres travelled from
    /// `begun`.
    pub(crate) fn stands_after(&self, begun: f64) -> f64 {
        self.stands_from(begun).0
    }

    /// Waits until the car stands with both brakes applied; returns the metres travelled from
    /// `begun`, and the top speed meanwhile in m/s.
    pub(crate) fn stands_from(&self, begun: f64) -> (f64, f64) {
        let mut fastest = 0.0_f64;
        for _ in 0..2_000 {
            let speed = self.car("speed_metres_per_second");
            fastest = fastest.max(speed);
            let turns = self.car("yaw_rate_radians_per_second");
            if speed == 0.0 && turns == 0.0 && self.car("parking_brake") == 1.0 {
                return (self.car("odometer_metres") - begun, fastest);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not stand: {} m/s", self.car("speed_metres_per_second"));
    }

    /// Returns the guard's log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path(LOG)).unwrap_or_default()
    }

    /// Returns the cause of the guard's newest stop, from its log; `None` before one.
    pub(crate) fn cause(&self) -> Option<String> {
        self.logged("the guard stops the machine", "cause=")
    }

    /// Returns how many frames of strangers one end of the guard has received, from its log, which
    /// reports it every ten seconds; `None` before.
    pub(crate) fn foreign(&self, end: &str) -> Option<u64> {
        let count = self.logged(&format!("frames from the {end} were rejected"), "foreign: ")?;
        count.trim_end_matches(',').parse().ok()
    }

    /// Returns the word after `name` in the newest line of the guard's log that contains `what`;
    /// `None` if there is no such line or word.
    fn logged(&self, what: &str, name: &str) -> Option<String> {
        let log = self.log();
        let line = log.lines().rfind(|line| line.contains(what))?;
        let (_, word) = line.split_once(name)?;
        word.split_whitespace().next().map(str::to_owned)
    }

    /// Watches for half a second with the throttle pressed: the car must stand.
    pub(crate) fn stays(&self) {
        let begun = self.car("odometer_metres");
        std::thread::sleep(Duration::from_millis(500));
        let end = (self.car("speed_metres_per_second"), self.car("odometer_metres"));
        assert_eq!(end, (0.0, begun), "nobody armed it");
    }

    /// Returns the path of a file or socket of this test.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the lines that the machine prints, from the first: its speed in metres per second,
    /// and its position in metres. May be called once.
    pub(crate) fn printed(&mut self) -> Box<dyn Iterator<Item = (f64, f64)> + Send> {
        let output = self.machine.stdout.take().expect("piped");
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        Box::new(lines.filter_map(|line| {
            let (speed, x) = line.split_once(' ')?;
            Some((speed.parse().ok()?, x.parse().ok()?))
        }))
    }
}

impl<V> Drop for Rig<V> {
    fn drop(&mut self) {
        for child in [&mut self.guard, &mut self.machine] {
            signal(child.id(), "CONT");
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Vehicle {
    fn start(guard: Address) -> Self {
        let wanted = Arc::<Mutex<Wanted>>::default();
        let (newest, stop) =
            (Arc::<Mutex<Option<Status>>>::default(), Arc::<AtomicBool>::default());
        let thread = {
            let (wanted, newest, stop) = (wanted.clone(), newest.clone(), stop.clone());
            std::thread::spawn(move || propose(&guard, &wanted, &newest, &stop))
        };
        Self { wanted, newest, stop, thread: Some(thread) }
    }

    fn want(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted.lock().expect("nobody panics with it"));
    }

    pub(crate) fn throttle(&self, throttle: f32) {
        self.control(Controls { throttle, ..Controls::default() });
    }

    pub(crate) fn control(&self, controls: Controls) {
        self.want(|wanted| wanted.controls = controls);
    }

    pub(crate) fn silence(&self, is_silent: bool) {
        self.want(|wanted| wanted.is_silent = is_silent);
    }

    pub(crate) fn garble(&self, garbage: Garbage) {
        self.want(|wanted| wanted.garbage = garbage);
    }

    pub(crate) fn act(&self, number: u32, deed: Deed) {
        self.want(|wanted| wanted.act = Some((number, deed)));
    }

    pub(crate) fn emergency_stop(&self, number: u32) {
        self.want(|wanted| wanted.emergency_stop = ActNumber::new(number));
    }

    /// Asks for arming until the guard has armed.
    pub(crate) fn arm(&self) {
        self.throttle(0.0);
        for _ in 0..100 {
            let last = self.status().and_then(|status| status.answer);
            let number = last.map_or(1, |answer| answer.number.get() + 1);
            self.act(number, Deed::Arm);
            self.eventually("the act is reported", |status| {
                status.answer.is_some_and(|answer| answer.number.get() == number)
            });
            if self.status().is_some_and(|status| status.mode == Mode::Armed) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("not armed: {:?}", self.status());
    }

    pub(crate) fn status(&self) -> Option<Status> {
        *self.newest.lock().expect("nobody panics with it")
    }

    pub(crate) fn eventually(&self, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
        for _ in 0..2_000 {
            if let Some(status) = self.status().filter(|status| holds(status)) {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("never: {what}: {:?}", self.status());
    }
}

impl Drop for Vehicle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn propose(
    guard: &Address,
    wanted: &Mutex<Wanted>,
    newest: &Mutex<Option<Status>>,
    stop: &AtomicBool,
) {
    realtime::raise_thread("the test's vehicle", realtime::Urgency::Safety);
    let (clock, mut sequence) = (Clock::start(), 0);
    // Does the work of a `Proposer`, but with access to its bytes.
    let (mut client, mut sender) = (Client::new(guard), frame::Sender::default());
    let mut receiver = frame::Receiver::<Status>::default();
    let mut buffer = [0; frame::BYTES_MAX + 1];
    let console = Console::new(7).expect("not 0");
    while !stop.load(Ordering::Relaxed) {
        let now = clock.now();
        while let Some(length) = client.receive(&mut buffer) {
            if let Ok(status) = receiver.receive(&buffer[..length]) {
                *newest.lock().expect("nobody panics with it") = Some(status);
            }
        }
        let wanted = *wanted.lock().expect("nobody panics with it");
        sequence += 1;
        let command = frame::Command {
            sequence,
            console,
            successor: None,
            controls: wanted.controls,
            dead_man: frame::DeadMan::Held,
            absences: frame::Absences::NONE,
            cited: newest.lock().expect("nobody panics with it").map(|status| status.tick),
            age: Some(Duration::from_millis(20)),
        };
        let act = wanted.act.map(|(number, deed)| Act {
            console,
            number: ActNumber::new(number).expect("not 0"),
            deed,
            age: Some(Duration::from_millis(20)),
        });
        let proposal = Proposal {
            source: now,
            session: Session::new(3),
            command: Some(command),
            emergency_stop: wanted.emergency_stop,
            act,
            ..Proposal::default()
        };
        if !wanted.is_silent {
            let bytes = sender.encode(&proposal);
            wanted.garbage.mix(bytes.as_ref(), sequence, |bytes| {
                let _ = client.send(bytes);
            });
        }
        clock.sleep_until(now + PERIOD);
    }
}

/// Returns the name of a kind of machine in settings.
pub(crate) fn name_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Car => "car",
        Kind::Robot => "robot",
        Kind::Rover => "rover",
        Kind::Cart => "cart",
    }
}

/// Returns the guard's settings of a simulated machine, except for the limits of latency.
fn simulated(kind: Kind) -> String {
    let mut guard = toml::Table::try_from(kind.settings()).expect("plain numbers");
    guard.remove("latency");
    toml::Table::from_iter([("guard".to_owned(), guard.into())]).to_string()
}

fn start_guard(folder: &Path, setup: &Setup) -> Child {
    let settings = folder.join("guard.toml");
    let (key, section) = match setup.black_box {
        BlackBox::Absent => (String::new(), String::new()),
        BlackBox::Records | BlackBox::Refused => {
            let key = folder.join("guard.key");
            if !key.exists() {
                let made = tautline().args(["keys", "new"]).arg(&key).output();
                assert!(made.expect("our own binary").status.success());
            }
            let section = format!(
                "[blackbox]\nfolder = {:?}\nbefore_s = 2\nafter_s = 2\n",
                setup.box_at.clone().unwrap_or_else(|| folder.join("box"))
            );
            (format!("key = {key:?}\n"), section)
        }
    };
    let text = format!(
        "vehicle = {:?}\nmachine = {:?}\nlatch = {:?}\n{key}{section}{}[guard.latency]\n{}",
        folder.join("vehicle.sock"),
        folder.join(MACHINE),
        folder.join(setup.latch),
        simulated(setup.kind),
        setup.limits.latency(),
    );
    std::fs::write(&settings, text).expect("a folder of ours");
    let guard = match setup.black_box {
        BlackBox::Absent | BlackBox::Records => {
            let log = std::fs::File::options().create(true).append(true).open(folder.join(LOG));
            let mut command = tautline_in(setup.network_of);
            command.stderr(log.expect("a folder of ours"));
            command.arg("guard").arg("--config").arg(settings).spawn()
        }
        BlackBox::Refused => {
            // The system's refusal becomes an error if its signal is ignored.
            let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" guard --config \"$1\"";
            let mut shell = Command::new("sh");
            shell.args(["-c", limited, env!("CARGO_BIN_EXE_tautline")]).arg(settings);
            shell.stderr(Stdio::null()).env_remove("TAUTLINE_CONFIG").spawn()
        }
    };
    guard.expect("our own binary")
}

const LOG: &str = "guard.log";
/// Maximum number of armings per test.
const ARMED_MOST: usize = 10;

/// Returns a command that runs our own binary without error output.
pub(crate) fn tautline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tautline"));
    command.stderr(Stdio::null()).env_remove("TAUTLINE_CONFIG");
    command
}

/// Sends a request to `address` in the network of another process, and returns the answer.
fn ask_within(process: u32, address: &str, request: &str) -> String {
    let place = address.replace(':', "/");
    let ask = format!("exec 3<>/dev/tcp/{place} && printf %s \"$0\" >&3 && cat <&3");
    let mut inside = Command::new("nsenter");
    inside.arg(format!("--net=/proc/{process}/ns/net")).args(["bash", "-c", &ask, request]);
    let output = inside.output().expect("nsenter");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns a command that runs our own binary without error output in the network of another
/// process; `None` is the test's own.
pub(crate) fn tautline_in(network_of: Option<u32>) -> Command {
    let Some(process) = network_of else { return tautline() };
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/proc/{process}/ns/net")).arg(env!("CARGO_BIN_EXE_tautline"));
    command.stderr(Stdio::null()).env_remove("TAUTLINE_CONFIG");
    command
}

pub(crate) fn signal(id: u32, signal: &str) {
    let mut kill = Command::new("kill");
    kill.args([&format!("-{signal}"), &id.to_string()]).stderr(Stdio::null());
    let sent = kill.status();
    assert!(sent.is_ok(), "kill");
}
