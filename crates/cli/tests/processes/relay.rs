//! Switchboard and relays as processes, and two ends that reach each other only through relays.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tautline_message::{Control, Refusal};
use tautline_net::clock::Clock;
use tautline_net::control::{Client, Event as Said};
use tautline_net::driver::{Driver, Output};
use tautline_net::{Local, Relays, free_port};
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::relay::LegView;
use tautline_transport::{ChannelNumber, Config, Event, Session};
use tautline_units::Instant;

use crate::faults::rig::signal;
use crate::tries::tried;

#[test]
fn a_second_relay_takes_over_when_the_first_is_killed() {
    tried(|| in_a_runtime(the_first_relay_fails("KILL")));
}

#[test]
fn a_second_relay_takes_over_when_the_first_hangs() {
    tried(|| in_a_runtime(the_first_relay_fails("STOP")));
}

fn in_a_runtime(work: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads of its own").block_on(work);
}

#[test]
fn a_relay_paused_for_any_time_carries_a_link_again() {
    tried(|| {
        in_a_runtime(async {
            let (stand, vehicle, operator) = in_session().await;
            for pause in [100, 1_000, 5_000].map(Duration::from_millis) {
                let gap = drive(&vehicle, &operator, pause + Duration::from_secs(2), || {
                    let id = stand.processes[0].id();
                    signal(id, "STOP");
                    std::thread::spawn(move || {
                        std::thread::sleep(pause);
                        signal(id, "CONT");
                    });
                });
                println!("longest without a slice, and a command: {gap:?} by a pause of {pause:?}");
                assert!(gap.iter().all(|gap| *gap < Duration::from_secs(1)), "{gap:?}");
                operator.until("both relays are back", |told| match told {
                    Told::Legs(legs) => legs.iter().filter(|leg| leg.is_proven).count() == 2,
                    Told::Event(_) => false,
                });
            }
        });
    });
}

/// Sends `signal` to the first relay of a session, so that it fails; the second, which was warm,
/// must take over.
async fn the_first_relay_fails(signal: &str) {
    let (stand, vehicle, operator) = in_session().await;
    let before = drive(&vehicle, &operator, Duration::from_secs(1), || {});
    let gap = drive(&vehicle, &operator, Duration::from_secs(4), || stand.signal_first(signal));
    println!("longest without a slice, and a command: {before:?} before, {gap:?} by SIG{signal}");
    assert!(gap.iter().all(|gap| *gap < Duration::from_secs(1)), "{gap:?}");
    vehicle.until("the first relay is known to be gone", |told| match told {
        Told::Legs(legs) => legs.iter().filter(|leg| leg.is_proven).count() == 1,
        Told::Event(_) => false,
    });
}

/// Starts a session over two relays.
async fn in_session() -> (Stand, End, End) {
    let stand = Stand::start();
    let (mut vehicle, mut operator) = (stand.end(VEHICLE), stand.end(OPERATOR));
    tokio::join!(vehicle.meet(), operator.meet());
    let are_proven = |legs: &[LegView]| legs.len() == 2 && legs.iter().all(|leg| leg.is_proven);
    operator.until("both relays", |told| match told {
        Told::Legs(legs) => are_proven(legs),
        Told::Event(_) => false,
    });
    // Either may come first, and is reported once.
    let (mut proven, mut granted) = (false, false);
    vehicle.until("both relays and a budget", |told| {
        match told {
            Told::Legs(legs) => proven = are_proven(legs),
            Told::Event(Event::Budget { media, .. }) => granted = media.bps() > 0,
            Told::Event(_) => {}
        }
        proven && granted
    });
    (stand, vehicle, operator)
}

/// Sends a slice and a command every 20 ms for `long`; calls `then` after a quarter of it. Returns
/// the longest gaps between arrivals of slices and of commands.
fn drive(vehicle: &End, operator: &End, long: Duration, then: impl FnOnce()) -> [Duration; 2] {
    let (begun, mut then) = (vehicle.clock.now(), Some(then));
    let (mut heard_at, mut gap) = ([begun; 2], [Duration::ZERO; 2]);
    loop {
        let now = vehicle.clock.now();
        if now.since(begun) >= long {
            return gap;
        }
        if now.since(begun) >= long / 4
            && let Some(then) = then.take()
        {
            then();
        }
        let deadline = Duration::from_millis(250);
        operator.driver.handle().send(ChannelNumber::COMMAND, b"steer".to_vec(), deadline);
        vehicle.driver.handle().send(ChannelNumber::MEDIA, vec![7; 3_000], deadline);
        std::thread::sleep(Duration::from_millis(20));
        let ends = [(operator, ChannelNumber::MEDIA), (vehicle, ChannelNumber::COMMAND)];
        for (at, (end, wanted)) in ends.into_iter().enumerate() {
            let is_wanted = |told| matches!(told, Told::Event(Event::Unit { channel, .. }) if channel == wanted);
            let came = end.told.try_iter().filter_map(|told| is_wanted(told).then_some(())).count();
            let now = vehicle.clock.now();
            gap[at] = gap[at].max(now.since(heard_at[at]));
            if came > 0 {
                heard_at[at] = now;
            }
        }
    }
}

#[test]
fn a_relay_says_what_is_wrong_with_its_settings() {
    let complain = |arguments: &[&str]| {
        let output = tautline().arg("relay").args(arguments).output().expect("our own binary");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(complain(&[]).contains("switchboard_key is missing"));
    let key = Identity::from_seed(&[1; 32]).public().to_string();
    let words = complain(&["--switchboard-key", &key, "--lease-mbps", "0"]);
    assert!(words.contains("lease_mbps = 0: must be 1 to 10000"), "{words}");
    let words = complain(&["--switchboard-key", &key, "--key", "/nonexistent/relay.key"]);
    assert!(words.contains("tautline keys new"), "{words}");
}

enum Told {
    Event(Event),
    Legs(Vec<LegView>),
}

struct Stand {
    _folder: tempfile::TempDir,
    processes: Vec<Child>,
    switchboard: SocketAddr,
}

impl Stand {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let port = || free_port(Ipv4Addr::LOCALHOST.into()).expect("a port");
        let switchboard = port();
        let mut processes = Vec::new();
        let mut named = String::new();
        for relay in [RELAY, RELAY + 1] {
            let address = port().to_string();
            let settings = folder.path().join(format!("relay-{relay}.toml"));
            let key_file = write_key(folder.path(), relay);
            let text = format!(
                "listen = [\"{address}\"]\nkey = {key_file:?}\nswitchboard_key = \"{}\"\n",
                key(SWITCHBOARD)
            );
            std::fs::write(&settings, text).expect("a folder of ours");
            processes.push(spawn("relay", &settings));
            let key = key(relay);
            named += &format!("[[relays]]\nkey = \"{key}\"\naddresses = [\"{address}\"]\n");
        }
        let settings = folder.path().join("switchboard.toml");
        let key_file = write_key(folder.path(), SWITCHBOARD);
        let (car, anna) = (key(VEHICLE), key(OPERATOR));
        let text = format!(
            "listen = \"{switchboard}\"\nkey = {key_file:?}\n{named}\
             [vehicles]\ncar = \"{car}\"\n[operators]\nanna = \"{anna}\"\n"
        );
        std::fs::write(&settings, text).expect("a folder of ours");
        processes.push(spawn("switchboard", &settings));
        Self { _folder: folder, processes, switchboard }
    }

    fn signal_first(&self, name: &str) {
        signal(self.processes[0].id(), name);
    }

    fn end(&self, who: u8) -> End {
        let clock = Clock::start();
        let (tell, told) = channel();
        let local: Local = "127.0.0.1:0".parse().expect("an address");
        let driver = Driver::spawn(&[local], clock, move |output| {
            let told = match output {
                Output::Event(event, _) => Told::Event(event),
                Output::Refused(..) => return,
                Output::Tick(_, legs, _) => Told::Legs(legs.to_vec()),
            };
            // The test has ended if the receiver is gone.
            let _ = tell.send(told);
        });
        let driver = driver.expect("a free port");
        End { who, clock, driver, told, client: None, switchboard: self.switchboard }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A vehicle without its machine, or an operator without its page.
struct End {
    who: u8,
    clock: Clock,
    driver: Driver,
    told: Receiver<Told>,
    client: Option<Client>,
    switchboard: SocketAddr,
}

impl End {
    /// Registers, gets the relays, is introduced, and begins a session without a direct path.
    async fn meet(&mut self) {
        let identity = Identity::from_seed(&[self.who; 32]);
        let addresses = vec!["192.0.2.1:1".to_owned()];
        let (versions, relays) = (tautline_net::channels::versions(), true);
        let take = Control::Take { vehicle_name: "car".to_owned() }.encode();
        let greeting = match self.who {
            VEHICLE => {
                let name = "car".to_owned();
                vec![
                    Control::RegisterVehicle {
                        name,
                        addresses,
                        versions,
                        relays,
                        candidates: vec![],
                        held: None,
                        place: None,
                    }
                    .encode(),
                ]
            }
            _operator => {
                let name = "anna".to_owned();
                let register = Control::RegisterOperator {
                    name,
                    addresses,
                    versions,
                    relays,
                    candidates: vec![],
                    held: None,
                };
                vec![register.encode(), take]
            }
        };
        let answer = |frame: &[u8]| match Control::decode(frame) {
            Ok(Control::Ping { t }) => Some(Control::Pong { t, seen_at: None }.encode()),
            Ok(_) | Err(_) => None,
        };
        let address = self.switchboard.to_string();
        let started = Client::start(address, key(SWITCHBOARD), &identity, greeting, answer);
        let (client, mut events) = started.expect("sound keys");
        let mut named = Relays::default();
        while let Some(event) = events.recv().await {
            let Said::Frame(frame) = event else { continue };
            match Control::decode(&frame).expect("a switchboard of ours") {
                Control::Relays { peer_key, relays } => {
                    let admission = named.take(&identity, peer_key, &relays).expect("a peer");
                    self.driver.handle().admit(admission);
                }
                Control::Introduce { lease, peer_key, .. } => {
                    let peer = PublicKey::from_bytes(peer_key).expect("a key");
                    self.begin(&identity, peer, lease, &named);
                    break;
                }
                Control::Refused { reason_code: Refusal::VehicleAway, .. } => {}
                other => panic!("{other:?}"),
            }
        }
        self.client = Some(client);
    }

    fn begin(&self, identity: &Identity, peer: PublicKey, lease: [u8; 16], named: &Relays) {
        let (config, seed, now) = (Config::default(), [self.who; 32], self.clock.now());
        let session = match self.who {
            VEHICLE => {
                let routes = named.routes(&peer, &self.driver.local_addresses());
                assert_eq!(routes.len(), 2);
                Session::initiate(config, identity, peer, lease, &routes, seed, now)
            }
            _operator => Session::respond(config, identity, peer, lease, seed, now),
        };
        self.driver.handle().start(session.expect("sound settings"));
    }

    fn until(&self, what: &str, mut holds: impl FnMut(&Told) -> bool) {
        let begun: Instant = self.clock.now();
        while self.clock.now().since(begun) < Duration::from_secs(20) {
            let told = self.told.recv_timeout(Duration::from_secs(20));
            if holds(&told.unwrap_or_else(|_| panic!("no report: {what}"))) {
                return;
            }
        }
        panic!("never: {what}");
    }
}

fn key(seed: u8) -> PublicKey {
    Identity::from_seed(&[seed; 32]).public()
}

fn write_key(folder: &Path, seed: u8) -> std::path::PathBuf {
    let file = folder.join(format!("{seed}.key"));
    let mut open = std::fs::OpenOptions::new();
    let mut output = open.write(true).create_new(true).mode(0o600).open(&file).expect("a folder");
    let text = Identity::from_seed(&[seed; 32]).to_text();
    std::io::Write::write_all(&mut output, text.as_bytes()).expect("a file");
    file
}

fn spawn(name: &str, settings: &Path) -> Child {
    let mut command = tautline();
    command.arg(name).arg("--config").arg(settings).stderr(Stdio::null());
    command.spawn().expect("our own binary")
}

fn tautline() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tautline"));
    command.env_remove("TAUTLINE_CONFIG").stdout(Stdio::null());
    command
}

const VEHICLE: u8 = 1;
const OPERATOR: u8 = 2;
const RELAY: u8 = 3;
const SWITCHBOARD: u8 = 9;
