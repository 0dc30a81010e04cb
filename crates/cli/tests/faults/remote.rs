//! The vehicle and the switchboard as processes of their own, and the test in the operator's place.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tautline_message::{Act, Command, Control, Deed, GuardMode, GuardState, Telemetry};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::control::{Client, Event as Word};
use tautline_net::driver::{Driver, Output};
use tautline_transport::crypto::Identity;
use tautline_transport::{Config as Transport, Event, Session};
use tautline_video::Slice;

use crate::rig::{PATIENT, Rig, Setup, signal, tautline};

/// A real vehicle, the switchboard, and an operator who sees every picture that comes whole.
pub(crate) struct Remote {
    pub(crate) operator: Operator,
    pub(crate) vehicle: Child,
    pub(crate) switchboard: Child,
    settings: PathBuf,
}

/// The operator that this test plays.
pub(crate) struct Operator {
    wanted: Arc<Mutex<Wanted>>,
    told: Arc<Mutex<Told>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy, Default)]
struct Wanted {
    throttle: f32,
    is_arming: bool,
}

/// What the vehicle and the switchboard have told.
#[derive(Clone, Default)]
struct Told {
    telemetry: Option<Telemetry>,
    pictures: u64,
    introductions: u64,
}

impl Rig<Remote> {
    /// Starts all of it, with these settings beside the vehicle's ordinary ones.
    pub(crate) fn remote(settings: &str) -> Self {
        Self::remote_with(settings, &Setup::default())
    }

    /// Starts all of it under a guard whose stop by a picture's or a command's age is not the test's subject.
    pub(crate) fn patient() -> Self {
        Self::remote_with("", &Setup { latency: PATIENT, ..Setup::default() })
    }

    fn remote_with(settings: &str, setup: &Setup) -> Self {
        let setup = Setup { car: Some(Vec::new()), ..setup.clone() };
        let rig = Self::with(&setup, |folder| Remote::start(folder, settings));
        rig.vehicle.operator.eventually("pictures", |operator| operator.pictures() > 3);
        rig
    }

    /// Arms and gives throttle until the car is faster than `speed` m/s; a machine that is too busy for
    /// young pictures may stop it, and is tried again.
    pub(crate) fn drive(&self, speed: f64) {
        let operator = &self.vehicle.operator;
        for _ in 0..10 {
            operator.arm();
            operator.throttle(1.0);
            for _ in 0..1_000 {
                if self.car("speed_metres_per_second") > speed {
                    return;
                }
                if operator.guard().is_some_and(|guard| guard.mode == GuardMode::Held) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        panic!("it does not drive: {:?}, {:?}", operator.guard(), self.cause());
    }
}

impl Remote {
    fn start(folder: &Path, settings: &str) -> Self {
        let [switchboard, vehicle, operator] =
            [1, 2, 3].map(|seed| Identity::from_seed(&[seed; 32]));
        let key = |name: &str, identity: &Identity| {
            let file = folder.join(name);
            let opened =
                std::fs::File::options().write(true).create_new(true).mode(0o600).open(&file);
            opened
                .expect("new")
                .write_all(identity.to_text().as_bytes())
                .expect("a folder of ours");
            file
        };
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = port.local_addr().expect("its number").to_string();
        drop(port);
        let write = |name: &str, text: String| {
            let file = folder.join(name);
            std::fs::write(&file, text).expect("a folder of ours");
            file
        };
        let known = format!(
            "listen = \"{at}\"\nkey = {:?}\n[vehicles]\n{NAME} = \"{}\"\n[operators]\nanna = \"{}\"\n",
            key("switchboard.key", &switchboard),
            vehicle.public(),
            operator.public()
        );
        let known = write("switchboard.toml", known);
        let text = format!(
            "name = \"{NAME}\"\nkey = {:?}\nswitchboard = \"{at}\"\nswitchboard_key = \"{}\"\n\
             operators = [\"{}\"]\nlinks = [\"127.0.0.1:0\"]\nguard = {:?}\n\
             pictures_per_second = 20.0\n{settings}\n",
            key("vehicle.key", &vehicle),
            switchboard.public(),
            operator.public(),
            folder.join("vehicle.sock"),
        );
        let settings = write("vehicle.toml", text);
        let start = |name: &str, settings: &Path| {
            let mut command = tautline();
            let started =
                command.stdout(Stdio::null()).arg(name).arg("--config").arg(settings).spawn();
            started.expect("our own binary")
        };
        Self {
            switchboard: start("switchboard", &known),
            vehicle: start("vehicle", &settings),
            operator: Operator::start(operator, &vehicle, at, switchboard.public()),
            settings,
        }
    }

    /// Starts another process by the vehicle's own settings.
    pub(crate) fn another(&self) -> Child {
        tautline()
            .stdout(Stdio::null())
            .arg("vehicle")
            .arg("--config")
            .arg(&self.settings)
            .spawn()
            .expect("our own binary")
    }

    /// Returns the vehicle's children: what it reads a clip by.
    pub(crate) fn children(&self) -> Vec<u32> {
        let tasks =
            std::fs::read_dir(format!("/proc/{}/task", self.vehicle.id())).expect("it runs");
        let lists = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
        let lists: Vec<String> = lists.collect();
        lists
            .iter()
            .flat_map(|list| list.split_whitespace())
            .filter_map(|id| id.parse().ok())
            .collect()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        for child in [&mut self.vehicle, &mut self.switchboard] {
            signal(child.id(), "CONT");
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Operator {
    fn start(
        own: Identity,
        vehicle: &Identity,
        switchboard: String,
        switchboard_key: tautline_transport::crypto::PublicKey,
    ) -> Self {
        let (wanted, told) = (Arc::<Mutex<Wanted>>::default(), Arc::<Mutex<Told>>::default());
        let stop = Arc::<AtomicBool>::default();
        let mut seat = Seat::new(own, vehicle.public());
        let thread = {
            let (wanted, told, stop) = (wanted.clone(), told.clone(), stop.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let work = seat.sit(&switchboard, switchboard_key, &wanted, &told, &stop);
                runtime.expect("the system gives one").block_on(work);
            })
        };
        Self { wanted, told, stop, thread: Some(thread) }
    }

    pub(crate) fn throttle(&self, throttle: f32) {
        self.want(|wanted| wanted.throttle = throttle);
    }

    /// Asks for arming until the guard has done it, unless the machine is driven.
    pub(crate) fn arm(&self) {
        self.want(|wanted| *wanted = Wanted { throttle: 0.0, is_arming: true });
        self.eventually("armed", |operator| {
            operator.guard().is_some_and(|guard| match guard.mode {
                GuardMode::Armed | GuardMode::Driving | GuardMode::Limited => true,
                GuardMode::Held | GuardMode::Manoeuvre => false,
            })
        });
        self.want(|wanted| wanted.is_arming = false);
    }

    /// Returns the guard's state as the newest telemetry tells it.
    pub(crate) fn guard(&self) -> Option<GuardState> {
        self.told().telemetry.and_then(|telemetry| telemetry.guard)
    }

    /// Returns how often the switchboard has introduced the vehicle.
    pub(crate) fn introductions(&self) -> u64 {
        self.told().introductions
    }

    /// Returns how many pictures came whole.
    pub(crate) fn pictures(&self) -> u64 {
        self.told().pictures
    }

    pub(crate) fn eventually(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..3_000 {
            if holds(self) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("never: {what}: {:?}, {} pictures", self.guard(), self.pictures());
    }

    fn want(&self, change: impl FnOnce(&mut Wanted)) {
        change(&mut self.wanted.lock().expect("nobody panics with it"));
    }

    fn told(&self) -> Told {
        self.told.lock().expect("nobody panics with it").clone()
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Where the operator's thread keeps its things.
struct Seat {
    own: Identity,
    vehicle: tautline_transport::crypto::PublicKey,
    clock: Clock,
    driver: Driver,
    events: Receiver<Event>,
    sequence: u64,
    act: Option<Act>,
    cited: u32,
    /// Which strips have come of each picture that is not whole.
    strips: BTreeMap<u32, u64>,
    /// All that a picture has.
    whole: u64,
}

impl Seat {
    fn new(own: Identity, vehicle: tautline_transport::crypto::PublicKey) -> Self {
        let (clock, (tell, events)) = (Clock::start(), channel());
        let driver =
            Driver::spawn(&["127.0.0.1:0".parse().expect("local")], clock, move |output| {
                if let Output::Event(event, _) = output {
                    // Nobody listens once the test has ended.
                    let _ = tell.send(event);
                }
            });
        Self {
            own,
            vehicle,
            clock,
            driver: driver.expect("loopback"),
            events,
            sequence: 0,
            act: None,
            cited: 0,
            strips: BTreeMap::new(),
            whole: 0,
        }
    }

    async fn sit(
        &mut self,
        switchboard: &str,
        key: tautline_transport::crypto::PublicKey,
        wanted: &Mutex<Wanted>,
        told: &Mutex<Told>,
        stop: &AtomicBool,
    ) {
        let register = Control::RegisterOperator {
            name: "anna".to_owned(),
            addresses: vec![self.driver.local_addresses()[0].to_string()],
            versions: channels::versions(),
        };
        let take = Control::Take { vehicle_name: NAME.to_owned() }.encode();
        let greeting = vec![register.encode(), take.clone()];
        let answer = |frame: &[u8]| match Control::decode(frame) {
            Ok(Control::Ping { t }) => Some(Control::Pong { t }.encode()),
            Ok(_) | Err(_) => None,
        };
        let begun = Client::start(switchboard, key, &self.own, greeting, answer);
        let (client, mut words) = begun.expect("a key");
        let mut due = tokio::time::interval(TURN);
        while !stop.load(Ordering::Relaxed) {
            tokio::select! {
                _ = due.tick() => self.turn(wanted, told),
                Some(Word::Frame(frame)) = words.recv() => match Control::decode(&frame) {
                    Ok(Control::Introduce { lease, .. }) => {
                        told.lock().expect("nobody panics with it").introductions += 1;
                        self.begin(lease);
                    }
                    Ok(Control::Refused { .. } | Control::Released { .. }) => {
                        tokio::time::sleep(AGAIN).await;
                        let _ = client.handle().send(take.clone());
                    }
                    _ => {}
                },
            }
        }
        client.close().await;
    }

    fn begin(&self, lease: [u8; 16]) {
        let (now, seed) = (self.clock.now(), [lease[0]; 32]);
        let session =
            Session::respond(Transport::default(), &self.own, self.vehicle, lease, seed, now);
        let mut session = session.expect("keys that fit");
        channels::open(&mut session).expect("free channels");
        self.driver.handle().start(session);
    }

    fn turn(&mut self, wanted: &Mutex<Wanted>, told: &Mutex<Told>) {
        let mut told = told.lock().expect("nobody panics with it");
        for event in self.events.try_iter() {
            match event {
                Event::Established => (self.cited, self.strips) = (0, BTreeMap::new()),
                Event::Unit { channel: channels::TELEMETRY, bytes, .. } => {
                    told.telemetry = Telemetry::decode(&bytes).ok();
                }
                Event::Unit { channel: channels::VIDEO, bytes, .. } => {
                    let slice = Slice::parse(bytes).expect("the vehicle's own");
                    let strips = self.strips.entry(slice.picture).or_default();
                    *strips |= 1 << slice.strip;
                    self.whole |= *strips;
                    if *strips == self.whole {
                        (self.cited, told.pictures) = (slice.tick, told.pictures + 1);
                        let picture = slice.picture;
                        self.strips.retain(|other, _| *other > picture);
                    }
                }
                _ => {}
            }
        }
        let wanted = *wanted.lock().expect("nobody panics with it");
        let guard = told.telemetry.as_ref().and_then(|telemetry| telemetry.guard.as_ref());
        self.act =
            guard.filter(|guard| wanted.is_arming && guard.mode == GuardMode::Held).map(|guard| {
                let answered = guard.answer.filter(|answer| answer.console == CONSOLE);
                Act {
                    number: answered.map_or(0, |answer| answer.number) + 1,
                    stop: 0,
                    deed: Deed::Arm,
                }
            });
        self.sequence += 1;
        let command = Command {
            sequence: self.sequence,
            sent_at: self.clock.now(),
            console: CONSOLE,
            cited: self.cited,
            act: self.act,
            throttle: wanted.throttle,
            ..Command::default()
        };
        self.driver.handle().send(channels::COMMAND, command.encode(), DEADLINE);
    }
}

const NAME: &str = "rover";
const CONSOLE: u64 = 7;
const TURN: Duration = Duration::from_millis(20);
/// Until a vehicle that was refused is taken again.
const AGAIN: Duration = Duration::from_millis(300);
/// As a command's own.
const DEADLINE: Duration = Duration::from_millis(250);
