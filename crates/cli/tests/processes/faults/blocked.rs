//! A drive in a network that blocks UDP: switchboard, guard, car and vehicle as processes of their
//! own. The vehicle is in a network of its own, and the test provides a lossy network between it
//! and the operator.
//!
//! `make blocked` runs it where `unshare -rn` succeeds, and reports where it does not.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tautline_guard::Mode;
use tautline_net::clock::Clock;

use crate::faults::operator::{Delays, Operator};
use crate::faults::remote::{Place, Remote};
use crate::faults::rig::Rig;
use crate::tries::tried;

#[test]
#[ignore = "needs a network of its own; make blocked runs it where there is one"]
fn blocked_from_the_beginning() {
    tried(|| {
        within_network("faults::blocked::inside_from_the_beginning");
    });
}

#[test]
#[ignore = "needs a network of its own; make blocked runs it where there is one"]
fn blocked_while_driving() {
    tried(|| {
        within_network("faults::blocked::inside_while_driving");
    });
}

#[test]
#[ignore = "runs in a network of its own"]
fn inside_from_the_beginning() {
    tried(|| {
        let (network, clock) = (Network::start(), Clock::start());
        let rig = Rig::patient_at(&network.place());
        println!("the first pictures after {} ms", clock.now().as_millis());
        let driven = drive(&rig, Duration::from_secs(30));
        tell("over TLS", &driven);
        let counts = network.end();
        assert!(count(&counts, "udp") > 0, "somebody tried: {counts:?}");
        assert!(driven.delays.len() > 1_000, "slices came all the while");
    });
}

#[test]
#[ignore = "runs in a network of its own"]
fn inside_while_driving() {
    tried(|| {
        let mut network = Network::start();
        network.say("pass");
        let rig = Rig::patient_at(&network.place());
        tell("over UDP", &drive(&rig, Duration::from_secs(10)));
        network.say("block");
        let blocked = drive(&rig, Duration::from_secs(10));
        tell("UDP dies", &blocked);
        network.say("pass");
        let passed = drive(&rig, Duration::from_secs(10));
        tell("and lives", &passed);
        let counts = network.end();
        assert!(count(&counts, "udp") > 0, "{counts:?}");
        assert!(blocked.freeze < Duration::from_secs(1), "{:?}", blocked.freeze);
        assert!(passed.freeze < Duration::from_secs(1), "{:?}", passed.freeze);
    });
}

/// Results of a part of a drive.
struct Driven {
    delays: Vec<Delays>,
    pictures: u64,
    lost: u64,
    /// Longest time without a slice.
    freeze: Duration,
}

/// Drives on for `span`; a stopped machine is a failure.
fn drive(rig: &Rig<Remote>, span: Duration) -> Driven {
    let operator = &rig.vehicle.operator;
    rig.drive(2.0);
    operator.throttle(0.3);
    operator.take_delays();
    let (pictures, lost) = (operator.pictures(), operator.slices_lost());
    let metres = rig.car("odometer_metres");
    let clock = Clock::start();
    while clock.now().as_millis() < span.as_millis() as u64 {
        std::thread::sleep(Duration::from_millis(50));
        let guard = operator.guard().expect("it was driven");
        let drives = [Mode::Driving, Mode::Limited, Mode::Armed];
        if !drives.contains(&guard.mode) {
            tell("until the stop", &Driven::since(operator, pictures, lost));
            panic!("{:?} after {} ms: {guard:?}", rig.cause(), clock.now().as_millis());
        }
    }
    assert!(rig.car("odometer_metres") > metres + 1.0, "it moves");
    Driven::since(operator, pictures, lost)
}

impl Driven {
    /// Returns the operator's results since it counted `pictures` and `lost`.
    fn since(operator: &Operator, pictures: u64, lost: u64) -> Self {
        let delays = operator.take_delays();
        let gaps = delays.windows(2).map(|pair| pair[1].came_at.since(pair[0].came_at));
        Self {
            freeze: gaps.max().unwrap_or_default(),
            pictures: operator.pictures() - pictures,
            lost: operator.slices_lost() - lost,
            delays,
        }
    }
}

/// Prints the latency of a part of a drive.
fn tell(what: &str, driven: &Driven) {
    let line = |name: &str, of: fn(&Delays) -> Duration| {
        let mut all: Vec<Duration> = driven.delays.iter().map(of).collect();
        all.sort_unstable();
        let at = |share: f64| {
            let place = (all.len().saturating_sub(1) as f64 * share).round() as usize;
            all.get(place).map_or(f64::NAN, |delay| delay.as_secs_f64() * 1e3)
        };
        println!(
            "{what}: {name}, ms: p50 {:.0}, p95 {:.0}, p99 {:.0}, worst {:.0}",
            at(0.5),
            at(0.95),
            at(0.99),
            at(1.0)
        );
    };
    line("from hand-over to delivery", |delays| delays.handed_over);
    line("from the start of readout to delivery", |delays| delays.captured);
    println!(
        "{what}: {} slices came, {} were lost or late; {} whole pictures; longest time without a slice {} ms",
        driven.delays.len(),
        driven.lost,
        driven.pictures,
        driven.freeze.as_millis()
    );
}

/// Runs the test of that name again as root of an empty network.
fn within_network(test: &str) {
    let myself = std::env::current_exe().expect("our own file");
    let mut inside = Command::new("unshare");
    inside.arg("-rn").arg(myself).args(["--ignored", "--exact", test, "--nocapture"]);
    let output = inside.output().expect("unshare");
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(told.contains("1 passed"), "{errors}");
}

/// The network between operator and vehicle: UDP blocked until enabled, 2 % loss, 20 ms and 10
/// Mbit/s each way.
struct Network {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Process that keeps the network in which the vehicle runs.
    holder: Child,
}

impl Network {
    fn start() -> Self {
        let holder = Command::new("unshare").args(["-n", "sleep", "600"]).spawn().expect("unshare");
        let own = std::fs::read_link("/proc/self/ns/net").expect("ours");
        let of_holder = format!("/proc/{}/ns/net", holder.id());
        for _ in 0..200 {
            if std::fs::read_link(&of_holder).is_ok_and(|network| network != own) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut process = Command::new("python3")
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/processes/faults/network.py"))
            .args(["here0", "there0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut output = BufReader::new(process.stdout.take().expect("piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("it speaks");
        assert_eq!(line, "ready\n", "no TUN devices here");
        let there = holder.id().to_string();
        run("ip", &["link", "set", "lo", "up"]);
        run("ip", &["addr", "add", "10.9.0.1", "peer", "10.9.0.2", "dev", "here0"]);
        run("ip", &["link", "set", "here0", "up"]);
        run("ip", &["link", "set", "there0", "netns", &there]);
        for arguments in
            ["link set lo up", "addr add 10.9.0.2 peer 10.9.0.1 dev there0", "link set there0 up"]
        {
            let mut inside = vec!["-t", &there, "-n", "ip"];
            inside.extend(arguments.split(' '));
            run("nsenter", &inside);
        }
        let input = process.stdin.take();
        Self { process, input, output, holder }
    }

    fn place(&self) -> Place {
        Place {
            relay: None,
            here: Ipv4Addr::new(10, 9, 0, 1),
            vehicle_at: "0.0.0.0:0",
            network_of: Some(self.holder.id()),
            tls_port: Some(443),
            state_at: None,
        }
    }

    fn say(&mut self, word: &str) {
        let input = self.input.as_mut().expect("it runs");
        writeln!(input, "{word}").expect("it listens");
    }

    /// Ends the network's process, and returns the counts that it prints.
    fn end(mut self) -> Vec<String> {
        self.input = None;
        let counts: Vec<String> = (&mut self.output).lines().map_while(Result::ok).collect();
        println!("the network: {}", counts.join(", "));
        counts
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for child in [&mut self.process, &mut self.holder] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn count(counts: &[String], name: &str) -> u64 {
    let found = counts.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect(program);
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
}
