//! A vehicle, its switchboard and an operator in the test's own process, over loopback sockets.
#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tautline_guard::config::Latency;
use tautline_guard::frame::DeadMan;
use tautline_guard::identity::Tick;
use tautline_guard::{self as guard, Controls, Fault, Guard, Machine, MachineState, Mode};
use tautline_message::snapshot::End;
use tautline_message::{Act, Command, Control, Deed, Telemetry};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::control::{Connection, Listener};
use tautline_net::datagram::{Address, Server};
use tautline_net::driver::{Driver, Output};
use tautline_net::stats::Latest;
use tautline_port::keeper::Keeper;
use tautline_port::serve;
use tautline_port::serve::Settings;
use tautline_transport::crypto::Identity;
use tautline_transport::order::SignedOrder;
use tautline_transport::order::answer::{Outcome, SignedAnswer};
use tautline_transport::{Config as Transport, Event, Session};
use tautline_units::Instant;
use tautline_vehicle::{Config, Follow, OpenSensor};
use tautline_video::{Error, Layout, Picture, Sensor, Slice};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// A vehicle with its switchboard, which the test controls.
pub(crate) struct Stand {
    pub(crate) listener: Listener,
    pub(crate) connection: Option<Connection>,
    pub(crate) car: Arc<Mutex<Car>>,
    pub(crate) stop: Arc<Notify>,
    /// The vehicle's program, as a task in the test.
    pub(crate) run: JoinHandle<anyhow::Result<()>>,
    pub(crate) latest: Latest,
    _guarding: Guarding,
    _folder: tempfile::TempDir,
}

/// Guard and machine, in place of their processes.
pub(crate) struct Guarding {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Guarding {
    /// Starts guard and machine; also returns the address at which the guard listens for the
    /// vehicle.
    pub(crate) fn start(car: Arc<Mutex<Car>>) -> (Self, Address) {
        let open = || Server::open(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let (vehicle, machine) = (open(), open());
        let (at, port) = (vehicle.local_address().unwrap(), machine.local_address().unwrap());
        // A busy test machine must not look like a fault of the vehicle.
        let latency = Latency {
            loop_age_full: Duration::from_secs(1),
            loop_age_max: Duration::from_secs(2),
            command_age_max: Duration::from_secs(1),
            command_timeout: Duration::from_secs(2),
            proposal_timeout: Duration::from_millis(500),
            machine_timeout: Duration::from_millis(500),
            step_gap_max: Duration::from_millis(500),
            ..Latency::default()
        };
        let config = guard::Config { latency, ..guard::Config::car() };
        config.validate().unwrap();
        let guard = Guard::new(config, Tick::new(1).unwrap());
        let keeper = Keeper::new(guard, vehicle, machine);
        let stop = Arc::<AtomicBool>::default();
        let keeping = stop.clone();
        let keeping = std::thread::spawn(move || keeper.run(Clock::start(), &keeping));
        let serving = stop.clone();
        let serving = std::thread::spawn(move || {
            let driven = Driven { car, moved_until: None };
            let control_timeout = Duration::from_millis(500);
            let settings = Settings { control_timeout, ..Settings::default() };
            serve(driven, &port, settings, Clock::start(), &serving);
        });
        (Self { stop, threads: vec![keeping, serving] }, at)
    }
}

impl Drop for Guarding {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Stand {
    pub(crate) async fn start(car: Car, open: OpenSensor) -> Self {
        Self::start_with(car, open, None).await
    }

    pub(crate) async fn start_with(
        car: Car,
        open: OpenSensor,
        metrics: Option<SocketAddr>,
    ) -> Self {
        let own = identity(SWITCHBOARD);
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), &own).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config {
            switchboard: listener.local().to_string(),
            switchboard_key: own.public().to_string(),
            operators: [ANNA, BERT].map(|seed| identity(seed).public().to_string()).to_vec(),
            links: vec!["127.0.0.1:0".parse().unwrap()],
            supervisors: [("eva".to_owned(), identity(EVA).public().to_string())].into(),
            orders: Some(folder.path().join("orders")),
            metrics,
            ..Config::default()
        };
        let (car, stop) = (Arc::new(Mutex::new(car)), Arc::new(Notify::new()));
        let (guarding, guard) = Guarding::start(car.clone());
        config.guard = guard;
        let follow: Follow = Box::new(|_| Vec::new());
        let latest = Latest::of(End::Vehicle);
        let (asked, shown) = (stop.clone(), latest.clone());
        let run = std::thread::spawn(move || {
            let stop = async || asked.notified().await;
            let work = tautline_vehicle::run(config, identity(ROVER), follow, open, shown, stop);
            Runtime::new().unwrap().block_on(work)
        });
        let connection = Some(accept(&listener).await);
        Self { listener, connection, car, stop, run, latest, _guarding: guarding, _folder: folder }
    }

    /// Closes the switchboard's connection to the vehicle, and accepts the next.
    pub(crate) async fn restart(&mut self) {
        self.connection = None;
        self.connection = Some(accept(&self.listener).await);
    }

    pub(crate) async fn say(&mut self, message: &Control) {
        self.send(&message.encode()).await;
    }

    pub(crate) async fn send(&mut self, frame: &[u8]) {
        self.connection.as_mut().unwrap().send(frame).await.unwrap();
    }

    /// Returns the vehicle's next answer, which must be its own to this order.
    pub(crate) async fn answer(&mut self, supervisor: u8, order: &[u8]) -> Outcome {
        let connection = self.connection.as_mut().unwrap();
        let answered = async {
            loop {
                let frame = connection.recv().await.unwrap().unwrap();
                if let Ok(Control::Answered { signed }) = Control::decode(&frame) {
                    return signed;
                }
            }
        };
        let signed = timeout(LONG, answered).await.unwrap();
        let (supervisor, number) =
            (identity(supervisor).public(), SignedOrder::read(order).unwrap().number());
        let awaited = (&supervisor, number);
        SignedAnswer::read(&signed, &identity(ROVER).public(), awaited).unwrap().outcome
    }

    pub(crate) async fn introduce(&mut self, operator: &Operator, lease: [u8; 16]) {
        self.introduce_at(operator, lease, 0).await;
    }

    pub(crate) async fn introduce_at(&mut self, operator: &Operator, lease: [u8; 16], epoch: u64) {
        let message = Control::Introduce {
            lease,
            peer_name: "somebody".to_owned(),
            peer_key: *identity(operator.seed).public().as_bytes(),
            peer_addresses: vec![operator.driver.local_addresses()[0].to_string()],
            peer_versions: channels::versions(),
            peer_candidates: vec![],
            epoch,
        };
        self.say(&message).await;
    }

    pub(crate) fn car(&self) -> std::sync::MutexGuard<'_, Car> {
        self.car.lock().unwrap()
    }
}

/// An operator's end, controlled by the test.
pub(crate) struct Operator {
    pub(crate) seed: u8,
    pub(crate) driver: Driver,
    pub(crate) clock: Clock,
    pub(crate) told: Receiver<Event>,
    pub(crate) sequence: u64,
    pub(crate) pictures: usize,
    pub(crate) telemetry: Option<Telemetry>,
    /// Guard tick of the newest picture.
    pub(crate) cited: u32,
    /// True if the operator cites the tick from telemetry in place of a picture's.
    pub(crate) cites_told: bool,
    pub(crate) act: Option<Act>,
}

impl Operator {
    pub(crate) fn start(seed: u8) -> Self {
        let clock = Clock::start();
        let (tell, told) = channel();
        let driver = Driver::spawn(&["127.0.0.1:0".parse().unwrap()], clock, move |output| {
            if let Output::Event(event, _) = output {
                // The test has ended if the receiver is gone.
                let _ = tell.send(event);
            }
        });
        let driver = driver.unwrap();
        Self {
            seed,
            driver,
            clock,
            told,
            sequence: 0,
            pictures: 0,
            telemetry: None,
            cited: 0,
            cites_told: false,
            act: None,
        }
    }

    /// Starts the operator's end of a session under this lease, which waits for the vehicle.
    pub(crate) fn respond(&self, lease: [u8; 16]) {
        let (own, vehicle) = (identity(self.seed), identity(ROVER).public());
        let (seed, now) = ([lease[0]; 32], self.clock.now());
        let session = Session::respond(Transport::default(), &own, vehicle, lease, seed, now);
        let mut session = session.unwrap();
        channels::open(&mut session).unwrap();
        self.driver.handle().start(session);
    }

    pub(crate) fn command(&mut self, throttle: f32, steering: f32) {
        self.send(Command { throttle, steering, ..Command::default() });
    }

    pub(crate) fn brake(&mut self) {
        self.send(Command { brake: 1.0, ..Command::default() });
    }

    pub(crate) fn send(&mut self, command: Command) {
        self.sequence += 1;
        let told = self
            .newest()
            .map_or(0, |telemetry| telemetry.status().map_or(0, |status| status.tick.get()));
        let command = Command {
            sequence: self.sequence,
            sent_at: self.clock.now(),
            console: u64::from(self.seed),
            cited: if self.cites_told { told } else { self.cited },
            act: self.act,
            dead_man: DeadMan::Held,
            ..command
        };
        let deadline = Duration::from_secs(1);
        self.driver.handle().send(channels::COMMAND, command.encode(), deadline);
    }

    /// Waits for more than `count` further slices, and sends commands without throttle meanwhile;
    /// panics if they do not come within [`LONG`].
    pub(crate) async fn see(&mut self, count: usize) {
        self.newest();
        self.pictures = 0;
        for _ in 0..LONG.as_millis() / TURN.as_millis() {
            self.command(0.0, 0.0);
            self.newest();
            if self.pictures > count {
                return;
            }
            sleep(TURN).await;
        }
        panic!("{} slices came, more than {count} were expected", self.pictures);
    }

    /// Asks the guard for arming, again if it refused the last time.
    pub(crate) fn ask_to_arm(&mut self) {
        let guard = self.newest().and_then(|telemetry| telemetry.status().copied());
        let Some(guard) = guard.filter(|guard| guard.mode == Mode::Held) else { return };
        let console = u64::from(self.seed);
        let answered = guard.answer.filter(|answer| answer.console.get() == console);
        let last = answered.map_or(0, |answer| answer.number.get());
        self.act = Some(Act { number: last + 1, stop: 0, deed: Deed::Arm });
    }

    /// Asks for arming until the guard has armed the machine.
    pub(crate) async fn arm(&mut self) {
        for _ in 0..LONG.as_millis() / TURN.as_millis() {
            let guard = self.newest().and_then(|telemetry| telemetry.status().copied());
            if guard.is_some_and(|guard| guard.mode == Mode::Armed) {
                return;
            }
            self.ask_to_arm();
            self.command(0.0, 0.0);
            sleep(TURN).await;
        }
        panic!("not armed: {:?}", self.newest());
    }

    /// Sends a command with this throttle and steering every 20 ms, for `millis` milliseconds.
    pub(crate) async fn drive_for(&mut self, throttle: f32, steering: f32, millis: u64) {
        for _ in 0..millis / 20 {
            self.command(throttle, steering);
            sleep(TURN).await;
        }
    }

    /// Sends a command with this throttle and steering every 20 ms until `is_so` holds; panics if
    /// it does not within [`LONG`].
    pub(crate) async fn drive(&mut self, throttle: f32, steering: f32, is_so: impl Fn() -> bool) {
        for _ in 0..LONG.as_millis() / TURN.as_millis() {
            if is_so() {
                return;
            }
            self.command(throttle, steering);
            sleep(TURN).await;
        }
        panic!("it does not come true: {:?}", self.newest());
    }

    /// Returns the newest telemetry, if any has arrived.
    pub(crate) fn newest(&mut self) -> Option<Telemetry> {
        for event in self.told.try_iter() {
            match event {
                Event::Unit { channel: channels::TELEMETRY, bytes, .. } => {
                    self.telemetry = Some(Telemetry::decode(&bytes).unwrap());
                }
                Event::Unit { channel: channels::VIDEO, bytes, .. } => {
                    self.pictures += 1;
                    let slice = Slice::parse(bytes).unwrap();
                    // A picture counts as seen with its last strip.
                    if usize::from(slice.strip) + 1 == Layout::STRIP_COUNT {
                        self.cited = slice.tick;
                    }
                }
                _ => {}
            }
        }
        self.telemetry.clone()
    }

    pub(crate) fn telemetry(&mut self) -> Telemetry {
        self.newest().unwrap()
    }
}

/// State of the machine, the controls it got, and faults that the test gives it.
#[derive(Default)]
pub(crate) struct Car {
    pub(crate) state: MachineState,
    pub(crate) controls: Controls,
    pub(crate) turns_braked: usize,
    pub(crate) is_brakeless: bool,
}

/// A machine moved by throttle and brake.
pub(crate) struct Driven {
    car: Arc<Mutex<Car>>,
    moved_until: Option<Instant>,
}

impl Machine for Driven {
    fn period(&self) -> Duration {
        Duration::from_millis(10)
    }

    fn state(&mut self, now: Instant) -> MachineState {
        let passed = self.moved_until.map_or(0.0, |until| now.since(until).as_secs_f32());
        self.moved_until = Some(now);
        let mut car = self.car.lock().unwrap();
        let brake = if car.is_brakeless { 0.0 } else { 8.0 * car.controls.brake };
        let force = 4.0 * car.controls.throttle - brake;
        car.state.speed = (car.state.speed + force * passed).clamp(0.0, 8.0);
        car.state.measured_at = now;
        car.state
    }

    fn apply(&mut self, controls: &Controls, _now: Instant) -> Result<(), Fault> {
        let mut car = self.car.lock().unwrap();
        car.controls = *controls;
        car.turns_braked += usize::from(controls.brake > 0.0);
        Ok(())
    }
}

/// Source of grey pictures, with a number of pictures left and a way to end.
pub(crate) struct Grey {
    pub(crate) left: usize,
    pub(crate) ending: Ending,
}

#[derive(Clone, Copy)]
pub(crate) enum Ending {
    Ends,
    Fails,
    Panics,
}

impl Sensor for Grey {
    fn layout(&self) -> Layout {
        Layout::of(640, 96).unwrap()
    }

    fn pictures_per_second(&self) -> f64 {
        // A low rate, so that a source may be missing as long as other resources: half a second.
        8.0
    }

    fn next_picture(&mut self) -> Result<bool, Error> {
        if self.left > 0 {
            self.left -= 1;
            return Ok(true);
        }
        match self.ending {
            Ending::Ends => Ok(false),
            Ending::Fails => Err(Error::Sensor { reason: "the lens fell off".to_owned() }),
            Ending::Panics => panic!("a fault of the camera's driver, on purpose"),
        }
    }

    fn read(&mut self, strip: usize, rows: &mut Picture) {
        // No two captures are alike, and they are not uniform.
        rows.planes_mut().0.fill(20 * (1 + strip as u8));
        rows.planes_mut().0[..8].copy_from_slice(&self.left.to_le_bytes());
    }
}

pub(crate) fn grey() -> OpenSensor {
    Box::new(|| Ok(Box::new(Grey { left: usize::MAX, ending: Ending::Ends })))
}

pub(crate) async fn accept(listener: &Listener) -> Connection {
    let accepted = async { listener.accept().await.unwrap().handshake().await.unwrap() };
    timeout(LONG, accepted).await.unwrap()
}

pub(crate) fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

pub(crate) const SWITCHBOARD: u8 = 1;
pub(crate) const ROVER: u8 = 2;
pub(crate) const ANNA: u8 = 3;
pub(crate) const BERT: u8 = 4;
pub(crate) const STRANGER: u8 = 5;
pub(crate) const EVA: u8 = 6;
/// Interval between two commands.
pub(crate) const TURN: Duration = Duration::from_millis(20);
/// Upper bound for any operation on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);
