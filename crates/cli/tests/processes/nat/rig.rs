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

/// The three, and the network between them.
pub(crate) struct Rig {
    processes: BTreeMap<String, Process>,
    folder: TempDir,
    network: Network,
    clock: Clock,
    introduced_at: Instant,
}

/// A process that ends when this is dropped.
pub(crate) struct Process(Child);

/// What there is beside the three.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setup {
    /// Relays that the lease tells of, two at most: machines called `relay0` and `relay1`.
    pub(crate) relays: usize,
    /// How they are reached where no UDP passes.
    pub(crate) tls: Tls,
    /// Whether the vehicle has a second link, straight into the world.
    pub(crate) has_second_link: bool,
}

/// How relays are reached where no UDP passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Tls {
    /// They are not.
    #[default]
    None,
    /// At port 443 of their own machines.
    OwnPort,
    /// At the switchboard's machine, where they run, and its port 443.
    SharedPort,
}

impl Rig {
    /// Starts all three, the operator when the vehicle knows its addresses, and waits for the introduction.
    pub(crate) fn start(network: Network, server: &str) -> Self {
        Self::start_with(network, server, &Setup::default())
    }

    /// Starts them, and what there is beside them.
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
                // Where nobody looks at the pictures and none are recorded, one in eight is sent.
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

    /// Starts another operator, beside the first, who would have the same vehicle.
    pub(crate) fn start_other(&mut self) {
        self.spawn("m1", "other");
    }

    /// Sends a signal to one of them by its name.
    pub(crate) fn signal(&self, name: &str, signal: &str) {
        let id = self.processes[name].0.id().to_string();
        assert!(
            Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success()
        );
    }

    /// Ends one of them by its name, as a crash would.
    pub(crate) fn kill(&mut self, name: &str) {
        drop(self.processes.remove(name));
    }

    /// Starts one of them again by its name, at its place, by the same settings.
    pub(crate) fn restart(&mut self, place: &str, name: &str) {
        self.spawn(place, name);
    }

    /// Returns the network.
    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// Returns what the switchboard that runs tells of who drives.
    pub(crate) fn who(&self) -> String {
        let mut command = inside(&self.network.namespace("w"));
        command.arg(env!("CARGO_BIN_EXE_tautline")).args(["switchboard", "who", "--config"]);
        command.arg(self.folder.path().join("switchboard.toml")).env_remove("TAUTLINE_CONFIG");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    /// Returns how often one of them has said these words.
    pub(crate) fn count(&self, name: &str, words: &str) -> usize {
        self.log(name).matches(words).count()
    }

    /// Returns when pictures have come at the operator, and feedback at the vehicle, if they do.
    pub(crate) fn meets_within(&self, most: Duration) -> Option<Duration> {
        let mut came = [false; 2];
        // What came after the time is up is as good as nothing; a look takes a while.
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

    /// Returns the longest time from one slice that the operator showed to the next.
    pub(crate) fn longest_gap(&mut self, during: Duration) -> Duration {
        self.longest_gap_while(during, |_| {})
    }

    /// Returns the same while `deed` is done, a tenth of a second after the beginning.
    ///
    /// By the operator's own record, which has each slice's time: its `/metrics` is made ten times a second.
    pub(crate) fn longest_gap_while(
        &mut self,
        during: Duration,
        deed: impl FnOnce(&mut Self),
    ) -> Duration {
        // Lines are on the disk a second after what they tell of.
        let (record, begun) = (self.record(), self.clock.now());
        std::thread::sleep(Duration::from_millis(100));
        deed(self);
        std::thread::sleep(during.saturating_sub(self.since(begun)) + WRITTEN_WITHIN);
        let (now, lasted) = (self.record(), self.since(begun));
        // The first and the last line may be parts of lines.
        let lines: Vec<&str> = now[record.len()..].lines().collect();
        let whole = lines.get(1..lines.len().saturating_sub(1)).unwrap_or_default();
        let shown = whole.iter().map(|line| line.split(',').nth(SHOWN_US).unwrap_or_default());
        let mut shown: Vec<u64> = shown.map(|shown| shown.parse().unwrap()).collect();
        shown.sort_unstable();
        let Some((first, last)) = shown.first().zip(shown.last()) else { return lasted };
        // Where nothing comes any more, no line says so.
        let told = Duration::from_micros(last - first);
        let silent = lasted.saturating_sub(told + WRITTEN_WITHIN);
        let gaps = shown.windows(2).map(|pair| Duration::from_micros(pair[1] - pair[0]));
        gaps.max().unwrap_or_default().max(silent)
    }

    /// Returns what the operator has recorded of slices, and written.
    fn record(&self) -> String {
        let file = self.folder.path().join("recorded-anna").join("slices.csv");
        std::fs::read_to_string(file).unwrap()
    }

    fn since(&self, instant: Instant) -> Duration {
        self.clock.now().since(instant)
    }

    /// Returns what all have said.
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

    /// Waits until one of them has said these words so often; returns how long that took.
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

    /// Returns the interface by which one of them has registered last.
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

    /// Returns how many units of a channel were delivered there.
    fn delivered(&self, place: &str, port: u16, channel: &str) -> u64 {
        let wanted = format!("channel_units_total{{channel=\"{channel}\",what=\"delivered\"}} ");
        self.figure(place, port, &wanted) as u64
    }

    /// Returns a figure of a page of metrics there; 0 while it tells none.
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

/// Moves this thread into the namespace, for good.
fn enter(namespace: &str) {
    let file = File::open(format!("/run/netns/{namespace}")).unwrap();
    nix::sched::setns(file, CloneFlags::CLONE_NEWNET).unwrap();
}

/// Returns a figure of the page of metrics at this port of the thread's own network.
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

/// Starts a switchboard that knows nobody, and answers who asks for its address.
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

/// Makes a key, and returns its public half.
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

/// The column of `slices.csv` that says when a slice was shown, from 0.
const SHOWN_US: usize = 5;
/// A second, as the operator's recorder has it, and what a disk takes.
const WRITTEN_WITHIN: Duration = Duration::from_millis(1_300);
