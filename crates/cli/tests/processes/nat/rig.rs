//! Switchboard, vehicle and operator, each in its namespace.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sched::CloneFlags;
use tautline_net::clock::Clock;
use tautline_units::Instant;
use tempfile::TempDir;

use crate::nat::network::{Network, RELAYS, SERVERS, inside};

/// Switchboard, vehicle and operator as processes, with optional relays, and the network between
/// them.
pub(crate) struct Rig {
    processes: BTreeMap<String, Process>,
    folder: TempDir,
    network: Network,
    clock: Clock,
    introduced_at: Instant,
}

/// A process that ends on drop.
pub(crate) struct Process(Child);

/// Optional parts of the rig.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup {
    /// Number of relays in the lease, at most two: machines called `relay0` and `relay1`.
    pub(crate) relays: usize,
    /// Way to the relays for an end whose network blocks UDP.
    pub(crate) tls: Tls,
    /// True if the vehicle has a second link, directly into the world.
    pub(crate) has_second_link: bool,
}

/// Way to relays for an end whose network blocks UDP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Tls {
    /// None: relays are reached by UDP only.
    #[default]
    None,
    /// By TLS, at port 443 of the relays' own machines.
    OwnPort,
    /// By TLS, at port 443 of the switchboard's machine, where the relays run.
    SharedPort,
}

impl Rig {
    /// Starts the three processes, the operator once the vehicle knows its addresses, and waits for
    /// the introduction. The ends know the switchboard by the address `server`.
    pub(crate) fn start(network: Network, server: &str) -> Self {
        Self::start_with(network, server, &Setup::default())
    }

    /// Starts the processes as [`start`](Self::start) does, with optional parts.
    pub(crate) fn start_with(mut network: Network, server: &str, setup: &Setup) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = ["switchboard", "vehicle", "operator", "other"];
        let [switchboard, vehicle, operator, other] = names.map(|name| key(folder.path(), name));
        let own = |name: &str| folder.path().join(format!("{name}.key"));
        let (mut named, mut settings) = (String::new(), Vec::new());
        let shares = setup.tls == Tls::SharedPort;
        let port = if shares { 443 } else { 7443 };
        for (index, address) in RELAYS.iter().enumerate().take(setup.relays) {
            let name = format!("relay{index}");
            let key = key(folder.path(), &name);
            let (place, address) = match shares {
                true => ("w", SERVERS[0]),
                false => (name.as_str(), *address),
            };
            if !shares {
                network.machine(place, address);
            }
            let (told, own_tls) = match setup.tls {
                Tls::None => (String::new(), String::new()),
                Tls::OwnPort => {
                    (format!("tls = [\"{address}:443\"]\n"), format!("tls = \"{address}:443\"\n"))
                }
                Tls::SharedPort => {
                    (format!("tls = [\"{address}:443\"]\n"), "shared_port = \"port\"\n".to_owned())
                }
            };
            let addresses = format!("[\"{address}:7444\", \"{address}:7445\"]");
            let _ = write!(named, "[[relays]]\nkey = \"{key}\"\naddresses = {addresses}\n{told}");
            let text = format!(
                "listen = {addresses}\n{own_tls}key = {:?}\nswitchboard_key = \"{switchboard}\"\n\
                 metrics = \"127.0.0.1:9103\"\n",
                own(&name)
            );
            settings.push((place.to_owned(), name, text));
        }
        let second = if server.starts_with('[') { "" } else { "second_address = \"192.0.2.2\"\n" };
        let shared = if shares { "shared_port = \"port\"\n" } else { "" };
        let text = format!(
            "listen = \"{server}:{port}\"\n{second}{shared}key = {:?}\nstate = \"state\"\n{named}\
             [vehicles]\ncar = \"{vehicle}\"\n\
             [operators]\nanna = \"{operator}\"\nbert = \"{other}\"\n",
            own("switchboard")
        );
        let common =
            format!("switchboard = \"{server}:{port}\"\nswitchboard_key = \"{switchboard}\"\n");
        let links = match setup.has_second_link {
            true => {
                network.second_link(0);
                "[\"out\", \"out2\"]"
            }
            false => "[\"out\"]",
        };
        let vehicle_text = format!(
            "name = \"car\"\nkey = {:?}\n{common}operators = [\"{operator}\", \"{other}\"]\n\
             guard = {:?}\nlinks = {links}\npictures_per_second = 30\n\
             metrics = \"127.0.0.1:9100\"\n",
            own("vehicle"),
            folder.path().join("vehicle.sock")
        );
        let operator_text = |name: &str, key: &str, port: u16| {
            format!(
                "name = \"{name}\"\nkey = {:?}\n{common}vehicle = \"car\"\n\
                 vehicle_key = \"{vehicle}\"\nlinks = [\"out\"]\nconsole = \"127.0.0.1:{port}\"\n\
                 record = {:?}\n",
                own(key),
                // Without a viewer or a recording, only one picture in eight is sent.
                folder.path().join(format!("recorded-{name}"))
            )
        };
        let texts = [operator_text("anna", "operator", 8080), operator_text("bert", "other", 8081)];
        let clock = Clock::start();
        let introduced_at = clock.now();
        let processes = BTreeMap::new();
        let mut rig = Self { processes, folder, network, clock, introduced_at };
        for (place, name, text) in settings {
            rig.run(&place, &name, &text);
        }
        rig.run("w", "switchboard", &text);
        std::thread::sleep(Duration::from_millis(300));
        rig.run("m0", "vehicle", &vehicle_text);
        rig.await_words("vehicle", "may be reached at");
        let [operator_text, other_text] = texts;
        rig.run("m1", "operator", &operator_text);
        rig.await_words("operator", "introduced");
        rig.introduced_at = rig.clock.now();
        rig.write("other", &other_text);
        rig
    }

    /// Starts another operator, in addition to the first, that wants the same vehicle.
    pub(crate) fn start_other(&mut self) {
        self.spawn("m1", "other");
    }

    /// Sends a signal to a process, by name.
    pub(crate) fn signal(&self, name: &str, signal: &str) {
        let id = self.processes[name].0.id().to_string();
        assert!(
            Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success()
        );
    }

    /// Kills a process like a crash, by name.
    pub(crate) fn kill(&mut self, name: &str) {
        drop(self.processes.remove(name));
    }

    /// Starts an ended process again at `place`, with the same settings, by name.
    pub(crate) fn restart(&mut self, place: &str, name: &str) {
        self.spawn(place, name);
    }

    /// Returns the network in which the processes run.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Returns the running switchboard's list of who drives.
    pub(crate) fn who(&self) -> String {
        let mut command = inside(&self.network.namespace("w"));
        command.arg(env!("CARGO_BIN_EXE_tautline")).args(["switchboard", "who", "--config"]);
        command.arg(self.folder.path().join("switchboard.toml")).env_remove("TAUTLINE_CONFIG");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// Returns how often a process has logged these words.
    pub(crate) fn count(&self, name: &str, words: &str) -> usize {
        self.log(name).matches(words).count()
    }

    /// Returns the time from the introduction until pictures have arrived at the operator and
    /// feedback at the vehicle; `None` if that exceeds `most` by more than 0.3 s, the time of one
    /// look.
    pub(crate) fn meets_within(&self, most: Duration) -> Option<Duration> {
        let mut came = [false; 2];
        // Arrivals after the time limit count as none; a look takes a while.
        while self.since(self.introduced_at) < most + Duration::from_millis(300) {
            for (came, (place, port, channel)) in
                came.iter_mut().zip([("m1", 8080, "video"), ("m0", 9100, "video feedback")])
            {
                *came = *came || self.delivered(place, port, channel) > 0;
            }
            if came == [true; 2] {
                return Some(self.since(self.introduced_at));
            }
        }
        None
    }

    /// Returns the longest time between two slices that the operator showed within a span of
    /// `during`.
    pub(crate) fn longest_gap(&mut self, during: Duration) -> Duration {
        self.longest_gap_while(during, |_| {})
    }

    /// Returns the longest time between two slices that the operator showed within a span of
    /// `during`; `deed` is done 0.1 s after its beginning.
    ///
    /// The source is the operator's own recording, which has the time of each slice; `/metrics` is
    /// updated only ten times per second.
    pub(crate) fn longest_gap_while(
        &mut self,
        during: Duration,
        deed: impl FnOnce(&mut Self),
    ) -> Duration {
        // Lines are on the disk one second after their events.
        let (record, begun) = (self.record(), self.clock.now());
        std::thread::sleep(Duration::from_millis(100));
        deed(self);
        std::thread::sleep(during.saturating_sub(self.since(begun)) + WRITTEN_WITHIN);
        let (now, lasted) = (self.record(), self.since(begun));
        // The first and the last line may be partial.
        let lines: Vec<&str> = now[record.len()..].lines().collect();
        let whole = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
        let shown = whole.iter().map(|line| line.split(',').nth(SHOWN_US).unwrap_or_default());
        let mut shown: Vec<u64> = shown.map(|shown| shown.parse().unwrap()).collect();
        shown.sort_unstable();
        let Some((first, last)) = shown.first().zip(shown.last()) else { return lasted };
        // If no slice arrives any more, there is no line.
        let told = Duration::from_micros(last - first);
        let silent = lasted.saturating_sub(told + WRITTEN_WITHIN);
        let gaps = shown.windows(2).map(|pair| Duration::from_micros(pair[1] - pair[0]));
        gaps.max().unwrap_or_default().max(silent)
    }

    /// Returns the operator's recording of slices, as far as it is written.
    fn record(&self) -> String {
        let file = self.folder.path().join("recorded-anna").join("slices.csv");
        std::fs::read_to_string(file).unwrap()
    }

    fn since(&self, instant: Instant) -> Duration {
        self.clock.now().since(instant)
    }

    /// Returns the logs of all processes that run, each after its name.
    pub(crate) fn words(&self) -> String {
        let names = self.processes.keys();
        names.map(|name| format!("{name}:\n{}\n", self.log(name))).collect()
    }

    fn log(&self, name: &str) -> String {
        let file = self.folder.path().join(format!("{name}.log"));
        std::fs::read_to_string(file).unwrap_or_default()
    }

    fn write(&self, name: &str, settings: &str) {
        std::fs::write(self.folder.path().join(format!("{name}.toml")), settings).unwrap();
    }

    fn run(&mut self, place: &str, name: &str, settings: &str) {
        self.write(name, settings);
        self.spawn(place, name);
    }

    fn spawn(&mut self, place: &str, name: &str) {
        let log = self.folder.path().join(format!("{name}.log"));
        let log = File::options().create(true).append(true).open(log).unwrap();
        let what = match name {
            "other" => "operator",
            relay if relay.starts_with("relay") => "relay",
            other => other,
        };
        let mut command = inside(&self.network.namespace(place));
        command.arg(env!("CARGO_BIN_EXE_tautline")).arg(what).arg("--config");
        command.arg(self.folder.path().join(format!("{name}.toml")));
        command.env_remove("TAUTLINE_CONFIG").env("TAUTLINE_LOG", "info");
        command.stdout(Stdio::null()).stderr(log);
        self.processes.insert(name.to_owned(), Process(command.spawn().unwrap()));
    }

    /// Waits until a process has logged these words `count` times; returns how long that took.
    pub(crate) fn await_count(&self, name: &str, words: &str, count: usize) -> Duration {
        let begun = self.clock.now();
        while self.count(name, words) < count {
            assert!(
                self.since(begun) < Duration::from_secs(20),
                "{name}: {words}: {}",
                self.words()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        self.since(begun)
    }

    /// Returns the interface with which a process last registered.
    pub(crate) fn last_link(&self, name: &str) -> String {
        let log = self.log(name);
        let (_, last) = log.rsplit_once("by=\"interface ").unwrap_or_default();
        last.split('"').next().unwrap_or_default().to_owned()
    }

    fn await_words(&self, name: &str, words: &str) {
        for _ in 0..2_000 {
            if self.log(name).contains(words) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{name} does not say {words:?}: {}", self.words());
    }

    /// Returns the number of units of a channel delivered to the process at `place`, from its
    /// metrics at `port`.
    fn delivered(&self, place: &str, port: u16, channel: &str) -> u64 {
        let wanted = format!("channel_units_total{{channel=\"{channel}\",what=\"delivered\"}} ");
        self.figure(place, port, &wanted) as u64
    }

    /// Returns a figure of the metrics page at `port` of the machine at `place`; 0 while it is
    /// missing.
    pub(crate) fn figure(&self, place: &str, port: u16, name: &str) -> f64 {
        let namespace = self.network.namespace(place);
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| {
                enter(&namespace);
                figure(port, name)
            });
            asked.join().unwrap()
        })
    }
}

/// Moves this thread into the namespace permanently.
fn enter(namespace: &str) {
    let file = File::open(format!("/run/netns/{namespace}")).unwrap();
    nix::sched::setns(file, CloneFlags::CLONE_NEWNET).unwrap();
}

/// Returns a figure of the metrics server at this port of the thread's own network; 0 while it is
/// missing.
fn figure(port: u16, name: &str) -> f64 {
    let page = page(port).unwrap_or_default();
    let figure = page.lines().find_map(|line| line.split_once(name));
    figure.and_then(|(_, figure)| figure.trim().parse().ok()).unwrap_or(0.0)
}

fn page(port: u16) -> std::io::Result<String> {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&at, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    write!(stream, "GET /metrics HTTP/1.0\r\nHost: {at}\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

/// Starts a switchboard that knows no machines, and answers address requests.
pub(crate) fn switchboard_alone(network: &Network) -> (Process, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    key(folder.path(), "switchboard");
    let mut command = inside(&network.namespace("w"));
    command.arg(env!("CARGO_BIN_EXE_tautline")).arg("switchboard");
    command.args(["--listen", "192.0.2.1:7443", "--second-address", "192.0.2.2", "--key"]);
    command.arg(folder.path().join("switchboard.key")).env_remove("TAUTLINE_CONFIG");
    command.current_dir(folder.path()).stderr(Stdio::null());
    let process = Process(command.spawn().unwrap());
    std::thread::sleep(Duration::from_millis(300));
    (process, folder)
}

/// Creates a key file in the folder, and returns the public key.
fn key(folder: &Path, name: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tautline"));
    let output = command.args(["keys", "new"]).arg(folder.join(format!("{name}.key"))).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    output.split_whitespace().find(|word| word.len() == 64).unwrap().to_owned()
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Index of the column of `slices.csv` with the time at which a slice was shown.
const SHOWN_US: usize = 5;
/// Time within which a shown slice is in the file: one second in the operator's recorder, and a
/// disk write.
const WRITTEN_WITHIN: Duration = Duration::from_millis(1_300);
