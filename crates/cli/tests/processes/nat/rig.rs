//! Switchboard, vehicle and operator, each in its namespace.

use std::fmt::Write;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tautline_net::clock::Clock;
use tautline_units::Instant;
use tempfile::TempDir;

use crate::nat::network::{Network, inside};

/// The three, and the network between them.
pub(crate) struct Rig {
    processes: Vec<Process>,
    folder: TempDir,
    network: Network,
    clock: Clock,
    introduced_at: Instant,
}

/// A process that ends when this is dropped.
pub(crate) struct Process(Child);

impl Rig {
    /// Starts all three, the operator when the vehicle knows its addresses, and waits for the introduction.
    pub(crate) fn start(network: Network, server: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let [switchboard, vehicle, operator] =
            ["switchboard", "vehicle", "operator"].map(|name| key(at, name));
        let second = if server.starts_with('[') { "" } else { "second_address = \"192.0.2.2\"\n" };
        let text = format!(
            "listen = \"{server}:7443\"\n{second}key = {:?}\n\
             [vehicles]\ncar = \"{vehicle}\"\n[operators]\nanna = \"{operator}\"\n",
            at.join("switchboard.key")
        );
        let clock = Clock::start();
        let introduced_at = clock.now();
        let mut rig = Self { processes: Vec::new(), folder, network, clock, introduced_at };
        rig.run("w", "switchboard", &text);
        std::thread::sleep(Duration::from_millis(300));
        let common =
            format!("switchboard = \"{server}:7443\"\nswitchboard_key = \"{switchboard}\"\n");
        let guard = rig.folder.path().join("vehicle.sock");
        let text = format!(
            "name = \"car\"\nkey = {:?}\n{common}operators = [\"{operator}\"]\nguard = {guard:?}\n\
             links = [\"out\"]\npictures_per_second = 30\nmetrics = \"127.0.0.1:9100\"\n",
            rig.folder.path().join("vehicle.key")
        );
        rig.run("m0", "vehicle", &text);
        rig.await_words("vehicle", "may be reached at");
        let text = format!(
            "name = \"anna\"\nkey = {:?}\n{common}vehicle = \"car\"\nvehicle_key = \"{vehicle}\"\n\
             links = [\"out\"]\nconsole = \"127.0.0.1:8080\"\nrecord = {:?}\n",
            rig.folder.path().join("operator.key"),
            // Where nobody looks at the pictures and none are recorded, one in eight is sent.
            rig.folder.path().join("recorded")
        );
        rig.run("m1", "operator", &text);
        rig.await_words("operator", "introduced");
        rig.introduced_at = rig.clock.now();
        rig
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

    /// Returns the longest time in which no new picture came at the operator.
    pub(crate) fn longest_gap(&self, during: Duration) -> Duration {
        let begun = self.clock.now();
        let (mut count, mut changed_at, mut longest) = (0, begun, Duration::ZERO);
        while self.since(begun) < during {
            let now = self.delivered("m1", 8080, "video");
            if now != count {
                longest = longest.max(self.since(changed_at));
                (count, changed_at) = (now, self.clock.now());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        longest.max(self.since(changed_at))
    }

    fn since(&self, instant: Instant) -> Duration {
        self.clock.now().since(instant)
    }

    /// Returns what the three have said.
    pub(crate) fn words(&self) -> String {
        let mut all = String::new();
        for name in ["switchboard", "vehicle", "operator"] {
            let log = std::fs::read_to_string(self.folder.path().join(format!("{name}.log")));
            let _ = writeln!(all, "{name}:\n{}", log.unwrap_or_default());
        }
        all
    }

    fn run(&mut self, place: &str, name: &str, settings: &str) {
        let file = self.folder.path().join(format!("{name}.toml"));
        std::fs::write(&file, settings).unwrap();
        let log = File::create(self.folder.path().join(format!("{name}.log"))).unwrap();
        let mut command = inside(&self.network.namespace(place));
        command.arg(env!("CARGO_BIN_EXE_tautline")).arg(name).arg("--config").arg(file);
        command.env_remove("TAUTLINE_CONFIG").env("TAUTLINE_LOG", "info");
        command.stdout(Stdio::null()).stderr(log);
        self.processes.push(Process(command.spawn().unwrap()));
    }

    fn await_words(&self, name: &str, words: &str) {
        let log = self.folder.path().join(format!("{name}.log"));
        for _ in 0..2_000 {
            if std::fs::read_to_string(&log).unwrap_or_default().contains(words) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("{name} does not say {words:?}: {}", self.words());
    }

    /// Returns how many units of a channel were delivered there.
    fn delivered(&self, place: &str, port: u16, channel: &str) -> u64 {
        let ask = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port} && \
             printf 'GET /metrics HTTP/1.0\\r\\nHost: 127.0.0.1:{port}\\r\\n\\r\\n' >&3 && cat <&3"
        );
        let mut command = inside(&self.network.namespace(place));
        let output = command.args(["bash", "-c", &ask]).stderr(Stdio::null()).output().unwrap();
        let page = String::from_utf8_lossy(&output.stdout);
        let wanted = format!("channel_units_total{{channel=\"{channel}\",what=\"delivered\"}} ");
        let count = page.lines().find_map(|line| line.split_once(&wanted));
        count.and_then(|(_, count)| count.trim().parse().ok()).unwrap_or(0)
    }
}

/// Starts a switchboard that knows nobody, and answers who asks for its address.
pub(crate) fn switchboard_alone(network: &Network) -> (Process, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    key(folder.path(), "switchboard");
    let mut command = inside(&network.namespace("w"));
    command.arg(env!("CARGO_BIN_EXE_tautline")).arg("switchboard");
    command.args(["--listen", "192.0.2.1:7443", "--second-address", "192.0.2.2", "--key"]);
    command.arg(folder.path().join("switchboard.key")).env_remove("TAUTLINE_CONFIG");
    command.stderr(Stdio::null());
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
