//! A vehicle under a switchboard, parts and orders that would end its drive: over loopback sockets.
#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command as Process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::anyhow;
use tautline_guard::config::Latency;
use tautline_guard::identity::Tick;
use tautline_guard::{self as guard, Controls, Fault, Guard, Machine, MachineState};
use tautline_message::snapshot::End;
use tautline_message::{
    Act, Command, Control, Deed, GuardMode, Mode, Refusal, RelayTicket, Telemetry,
};
use tautline_net::channels;
use tautline_net::clock::Clock;
use tautline_net::control::{Connection, Listener};
use tautline_net::datagram::{Address, Server};
use tautline_net::driver::{Driver, Output};
use tautline_net::free_port;
use tautline_net::stats::Latest;
use tautline_port::keeper::Keeper;
use tautline_port::serve;
use tautline_port::serve::Settings;
use tautline_transport::crypto::Identity;
use tautline_transport::order::answer::{Outcome, SignedAnswer};
use tautline_transport::order::{Order, SignedOrder};
use tautline_transport::relay::Token;
use tautline_transport::relay::wire::Message;
use tautline_transport::{Config as Transport, Event, Session};
use tautline_units::Instant;
use tautline_vehicle::camera::clip::ClipSensor;
use tautline_vehicle::{Config, Follow, OpenSensor};
use tautline_video::{Error, Layout, Picture, Sensor, Slice};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Runs a test in real time, as those of real processes are run.
fn tried(test: impl AsyncFn()) {
    crate::tries::tried(|| Runtime::new().unwrap().block_on(test()));
}

#[test]
fn no_word_of_the_switchboard_ends_a_drive() {
    tried(async || {
        let mut stand = Stand::start(Car::default(), grey()).await;
        let mut anna = Operator::start(ANNA);
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 2.0).await;
        stand.car().turns_braked = 0;

        // It ends leases and introduces the same pair, in turn, and nobody answers.
        for lease in 2..8 {
            let reason = "because I can".to_owned();
            stand.say(&Control::Released { lease: [1; 16], reason }).await;
            stand.introduce(&anna, [lease; 16]).await;
            anna.drive_for(0.5, 0.0, 100).await;
        }
        // A stranger, and another who is listed: nobody is there.
        let nowhere = Operator::start(STRANGER);
        stand.introduce(&nowhere, [9; 16]).await;
        stand.introduce(&Operator { seed: BERT, ..nowhere }, [10; 16]).await;
        anna.drive_for(0.5, 0.0, 300).await;
        // It refuses, by every name that it has, and restarts.
        for reason_code in
            [Refusal::NotAllowed, Refusal::NameTaken, Refusal::Full, Refusal::BadRequest]
        {
            stand.say(&Control::Refused { reason_code, text: "no".to_owned() }).await;
            // No attempt of the vehicle's comes sooner than its last one failed, up to 1.6 s: it is driven meanwhile.
            tokio::join!(stand.restart(), anna.drive_for(0.5, 0.0, 2_000));
        }
        // It says what makes no sense.
        for length in [0, 1, 7, 40, 400, 4_000] {
            stand.send(&vec![0xa5; length]).await;
        }
        stand.say(&Control::ListVehicles).await;
        stand.say(&Control::Release).await;
        anna.drive_for(0.5, 0.0, 300).await;
        // It takes the connection and says nothing any more; then nothing is left of it.
        anna.drive_for(0.5, 0.0, 3_500).await;
        stand.connection = None;
        drop(stand.listener);
        anna.drive_for(0.5, 0.0, 1_000).await;

        assert!(!stand.run.is_finished());
        let turns_braked = stand.car.lock().unwrap().turns_braked;
        assert_eq!(turns_braked, 0, "{:?}", anna.telemetry().guard);
        // The session is still the first one.
        let steering = || stand.car.lock().unwrap().controls.steering;
        anna.drive(0.5, -0.25, || steering() == -0.25).await;
        assert_eq!(anna.telemetry().mode, Mode::Driving);
    });
}

/// Nobody is at the operator's own address: the vehicle calls the relay that it was named, and sends its
/// session's first datagrams there too.
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_the_switchboard_names_is_called_and_is_a_way_to_the_operator() {
    let mut stand = Stand::start(Car::default(), grey()).await;
    let anna = Operator::start(ANNA);
    let relay = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let ticket = RelayTicket {
        addresses: vec![relay.local_addr().unwrap().to_string()],
        key: *identity(STRANGER).public().as_bytes(),
        token: vec![7; Token::BYTES],
    };
    let peer_key = *identity(ANNA).public().as_bytes();
    stand.say(&Control::Relays { peer_key, relays: vec![ticket] }).await;
    stand.introduce(&anna, [1; 16]).await;
    let (mut calls, mut inits, mut buffer) = (0, 0, [0; 2_048]);
    while calls == 0 || inits == 0 {
        let heard = timeout(Duration::from_secs(10), relay.recv_from(&mut buffer)).await;
        let (length, _vehicle) = heard.expect("nothing comes").unwrap();
        match Message::parse(&buffer[..length]) {
            Some(Message::Call { .. }) => calls += 1,
            Some(other) => panic!("{other:?}"),
            // An init of link 1, behind the direct one.
            None => inits += usize::from(buffer[0] == 0x11),
        }
    }
}

#[test]
fn another_operator_waits_for_standstill_and_is_told_why() {
    tried(async || {
        let mut stand = Stand::start(Car::default(), grey()).await;
        let (mut anna, mut bert) = (Operator::start(ANNA), Operator::start(BERT));
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 1.0).await;
        stand.introduce(&bert, [2; 16]).await;
        bert.respond([2; 16]);
        stand.car().turns_braked = 0;
        let mut told = String::new();
        for _ in 0..1_000 {
            anna.command(0.5, 0.0);
            bert.command(0.0, 0.75);
            sleep(TURN).await;
            if let Some(telemetry) = bert.newest() {
                told = telemetry.mode_reason;
                break;
            }
        }
        assert_eq!(told, "the vehicle moves under another operator");
        assert_eq!(stand.car().turns_braked, 0);
        assert_eq!(stand.car().controls.steering, 0.0);
        // One brakes, and the other has let go of the throttle.
        for _ in 0..1_000 {
            anna.brake();
            bert.ask_to_arm();
            bert.command(0.0, 0.75);
            sleep(TURN).await;
            let car = stand.car();
            if car.controls.steering == 0.75 {
                break;
            }
            assert!(car.state.speed < 0.05 || car.controls.steering == 0.0);
        }
        assert_eq!(stand.car().controls.steering, 0.75);
        bert.drive(0.5, 0.75, || stand.car().state.speed > 1.0).await;
    });
}

#[test]
fn an_order_to_end_stops_the_machine_first() {
    tried(async || {
        let mut stand = Stand::start(Car::default(), grey()).await;
        let mut anna = Operator::start(ANNA);
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 3.0).await;
        stand.stop.notify_one();
        anna.drive(1.0, 0.0, || stand.run.is_finished()).await;
        let car = stand.car();
        assert_eq!((car.state.speed, car.controls.throttle, car.controls.brake), (0.0, 0.0, 1.0));
        drop(car);
        stand.run.join().unwrap().unwrap();
    });
}

/// What the switchboard carries stops nothing unless a supervisor of the vehicle's own list has signed it, for this
/// vehicle, now, and once.
#[test]
fn a_supervisors_order_alone_ends_a_drive_and_nothing_that_a_switchboard_makes_of_it() {
    tried(async || {
        let mut stand = Stand::start(Car::default(), grey()).await;
        let mut anna = Operator::start(ANNA);
        stand.introduce(&anna, [1; 16]).await;
        anna.respond([1; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 2.0).await;
        stand.car().turns_braked = 0;
        let order = signed(EVA, ROVER, Duration::ZERO);
        let mut forged = order.clone();
        forged[140] ^= 1;
        let foreign = signed(EVA, BERT, Duration::ZERO);
        let expired = signed(EVA, ROVER, Duration::from_secs(61));
        let strangers = signed(STRANGER, ROVER, Duration::ZERO);
        let switchboards = signed(SWITCHBOARD, ROVER, Duration::ZERO);
        let malformed = [vec![], vec![7; 146]];
        let signed = [&forged, &foreign, &expired, &strangers, &switchboards];
        for signed in signed.into_iter().chain(&malformed).cloned() {
            stand.say(&Control::Ordered { signed, is_answered: true }).await;
            anna.drive_for(0.5, 0.0, 100).await;
        }
        assert_eq!(stand.car().turns_braked, 0, "{:?}", anna.telemetry().guard);
        let count = |stand: &Stand, name: &str| {
            let snapshot = stand.latest.snapshot();
            snapshot.drops().find(|(told, _)| *told == name).map_or(0, |(_, count)| count)
        };
        anna.drive(0.5, 0.0, || count(&stand, "order: malformed") == 2).await;
        let names = ["order: forged", "order: for another vehicle", "order: expired"];
        assert_eq!(names.map(|name| count(&stand, name)), [1; 3]);
        assert_eq!(count(&stand, "order: of no supervisor"), 2);
        // Who has signed an order for this vehicle is answered, and nobody else.
        assert_eq!(stand.answer(EVA, &expired).await, Outcome::Expired);
        assert_eq!(stand.answer(STRANGER, &strangers).await, Outcome::Stranger);
        assert_eq!(stand.answer(SWITCHBOARD, &switchboards).await, Outcome::Stranger);

        // The throttle stays pressed all the while.
        stand.say(&Control::Ordered { signed: order.clone(), is_answered: true }).await;
        let mut words = String::new();
        let stands = |stand: &Stand| stand.car().state.speed == 0.0;
        let mut hardest = 0.0_f32;
        for turn in 0..1_000 {
            anna.command(0.5, 0.0);
            if turn % 20 == 0 {
                stand.say(&Control::Ping { t: Instant::ZERO }).await;
            }
            if stand.car().state.speed > 0.2 {
                hardest = hardest.max(stand.car().controls.brake);
            }
            words = anna.newest().map_or(words, |telemetry| telemetry.mode_reason);
            sleep(TURN).await;
            if stands(&stand) {
                break;
            }
        }
        assert!(stands(&stand), "{:?}", anna.telemetry().guard);
        assert_eq!(words, "supervisor eva has ended the drive");
        assert!(hardest < 0.9, "{hardest}: the ramp of a manoeuvre, no full brake");
        assert_eq!(stand.answer(EVA, &order).await, Outcome::Begun);
        assert_eq!(stand.answer(EVA, &order).await, Outcome::Held);
        // It stands, whatever is asked for, and no session is left.
        for _ in 0..100 {
            anna.ask_to_arm();
            anna.command(0.5, 0.0);
            sleep(TURN).await;
        }
        assert!(stands(&stand) && stand.car().controls.parking_brake);

        // A new lease drives, and the same order ends it no more. The switchboard was silent for too long meanwhile.
        stand.restart().await;
        stand.introduce(&anna, [2; 16]).await;
        anna.respond([2; 16]);
        anna.arm().await;
        anna.drive(0.5, 0.0, || stand.car().state.speed > 1.0).await;
        stand.car().turns_braked = 0;
        stand.say(&Control::Ordered { signed: order.clone(), is_answered: true }).await;
        anna.drive(0.5, 0.0, || count(&stand, "order: repeated") == 1).await;
        assert_eq!(stand.answer(EVA, &order).await, Outcome::Repeated);
        anna.drive_for(0.5, 0.0, 300).await;
        assert_eq!(stand.car().turns_braked, 0);
        assert!(!stand.run.is_finished());
    });
}

#[test]
fn no_order_ends_the_process_of_a_machine_that_moves() {
    tried(async || {
        let stand = Stand::start(Car { is_brakeless: true, ..Car::default() }, grey()).await;
        stand.car().state.speed = 5.0;
        sleep(Duration::from_millis(500)).await;
        for _ in 0..6 {
            stand.stop.notify_one();
            sleep(Duration::from_millis(500)).await;
            assert!(!stand.run.is_finished());
        }
        stand.car().is_brakeless = false;
        let ends = async {
            while !stand.run.is_finished() {
                sleep(TURN).await;
            }
        };
        timeout(LONG, ends).await.expect("it stands");
        assert_eq!(stand.car().state.speed, 0.0);
        stand.run.join().unwrap().unwrap();
    });
}

/// As a camera that is unplugged and plugged in again: the file of a clip is emptied amid its reading, and filled.
#[tokio::test(flavor = "multi_thread")]
async fn a_clip_that_goes_is_seen_with_again_once_it_is_back() {
    let clip = std::env::temp_dir().join(format!("tautline-goes-{}.mp4", std::process::id()));
    let made = Process::new("ffmpeg")
        .args(["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=640x96:rate=30"])
        // More than ffmpeg reads ahead.
        .args(["-frames:v", "30", "-c:v", "libx264", "-qp", "1", "-g", "1", "-pix_fmt", "yuv420p"])
        .arg(&clip)
        .status()
        .expect("needs ffmpeg: ./setup ffmpeg");
    assert!(made.success());
    let bytes = std::fs::read(&clip).unwrap();
    let path = clip.clone();
    let open = move || Ok(Box::new(ClipSensor::open(&path)?) as Box<dyn Sensor>);
    let mut stand = Stand::start(Car::default(), Box::new(open)).await;
    let mut anna = Operator::start(ANNA);
    stand.introduce(&anna, [1; 16]).await;
    anna.respond([1; 16]);
    anna.see(20).await;
    std::fs::write(&clip, []).unwrap();
    let ended = async {
        let mut turns_unseen = 0;
        while turns_unseen < 100 {
            let before = anna.pictures;
            anna.command(0.0, 0.0);
            anna.newest();
            turns_unseen = if anna.pictures == before { turns_unseen + 1 } else { 0 };
            sleep(TURN).await;
        }
    };
    timeout(LONG, ended).await.expect("an empty clip gives no pictures");
    std::fs::write(&clip, &bytes).unwrap();
    anna.see(20).await;
    assert!(!stand.run.is_finished());
    std::fs::remove_file(&clip).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_camera_that_fails_or_panics_is_opened_again() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = opened.clone();
    let open = move || match count.fetch_add(1, Ordering::Relaxed) {
        0 => Ok(Box::new(Grey { left: 3, ending: Ending::Fails }) as Box<dyn Sensor>),
        1 => Ok(Box::new(Grey { left: 3, ending: Ending::Panics }) as Box<dyn Sensor>),
        2 => Err(anyhow!("unplugged")),
        3 => Ok(Box::new(Grey { left: 3, ending: Ending::Ends }) as Box<dyn Sensor>),
        _ => Ok(Box::new(Grey { left: usize::MAX, ending: Ending::Ends }) as Box<dyn Sensor>),
    };
    let mut stand = Stand::start(Car::default(), Box::new(open)).await;
    let mut anna = Operator::start(ANNA);
    stand.introduce(&anna, [1; 16]).await;
    anna.respond([1; 16]);
    anna.drive(0.0, 0.0, || opened.load(Ordering::Relaxed) == 5).await;
    // Slices come of the last one.
    anna.see(20).await;
    assert!(!stand.run.is_finished());
    let values = stand.latest.snapshot();
    let failures = values.values().iter().find(|value| value.name.starts_with("camera"));
    assert_eq!(failures.map(|value| value.number), Some(4.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_metrics_port_that_is_taken_is_tried_again() {
    let address = free_port(Ipv4Addr::LOCALHOST.into()).unwrap();
    let taken = std::net::TcpListener::bind(address).unwrap();
    let stand = Stand::start_with(Car::default(), grey(), Some(address)).await;
    sleep(Duration::from_millis(300)).await;
    assert!(!stand.run.is_finished());
    drop(taken);
    let reached = async {
        while tokio::net::TcpStream::connect(address).await.is_err() {
            sleep(TURN).await;
        }
    };
    timeout(LONG, reached).await.unwrap();
}

/// A vehicle with its switchboard, which does what the test says.
struct Stand {
    listener: Listener,
    connection: Option<Connection>,
    car: Arc<Mutex<Car>>,
    stop: Arc<Notify>,
    /// The vehicle's process, as far as a test has one.
    run: JoinHandle<anyhow::Result<()>>,
    latest: Latest,
    _guarding: Guarding,
    _folder: tempfile::TempDir,
}

/// Guard and machine, in the place of their processes.
struct Guarding {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Guarding {
    /// Starts both; gives where the guard listens for the vehicle.
    fn start(car: Arc<Mutex<Car>>) -> (Self, Address) {
        let open = || Server::open(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let (vehicle, machine) = (open(), open());
        let (at, port) = (vehicle.local_address().unwrap(), machine.local_address().unwrap());
        // A busy machine that runs the test is no fault of the vehicle's.
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
        let config = guard::Config { latency, ..guard::Config::default() };
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
    async fn start(car: Car, open: OpenSensor) -> Self {
        Self::start_with(car, open, None).await
    }

    async fn start_with(car: Car, open: OpenSensor, metrics: Option<SocketAddr>) -> Self {
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

    /// Cuts the connection and takes the next.
    async fn restart(&mut self) {
        self.connection = None;
        self.connection = Some(accept(&self.listener).await);
    }

    async fn say(&mut self, message: &Control) {
        self.send(&message.encode()).await;
    }

    async fn send(&mut self, frame: &[u8]) {
        self.connection.as_mut().unwrap().send(frame).await.unwrap();
    }

    /// Returns what the vehicle answers next, which is to be its own word to this order.
    async fn answer(&mut self, supervisor: u8, order: &[u8]) -> Outcome {
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

    async fn introduce(&mut self, operator: &Operator, lease: [u8; 16]) {
        self.introduce_at(operator, lease, 0).await;
    }

    async fn introduce_at(&mut self, operator: &Operator, lease: [u8; 16], epoch: u64) {
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

    fn car(&self) -> std::sync::MutexGuard<'_, Car> {
        self.car.lock().unwrap()
    }
}

/// An operator's end, in the test's hands.
struct Operator {
    seed: u8,
    driver: Driver,
    clock: Clock,
    told: Receiver<Event>,
    sequence: u64,
    pictures: usize,
    telemetry: Option<Telemetry>,
    /// The guard's tick of the newest picture.
    cited: u32,
    act: Option<Act>,
}

impl Operator {
    fn start(seed: u8) -> Self {
        let clock = Clock::start();
        let (tell, told) = channel();
        let driver = Driver::spawn(&["127.0.0.1:0".parse().unwrap()], clock, move |output| {
            if let Output::Event(event, _) = output {
                // The test has ended when nobody listens.
                let _ = tell.send(event);
            }
        });
        let driver = driver.unwrap();
        let (cited, act) = (0, None);
        Self { seed, driver, clock, told, sequence: 0, pictures: 0, telemetry: None, cited, act }
    }

    /// Waits for the vehicle under this lease.
    fn respond(&self, lease: [u8; 16]) {
        let (own, vehicle) = (identity(self.seed), identity(ROVER).public());
        let (seed, now) = ([lease[0]; 32], self.clock.now());
        let session = Session::respond(Transport::default(), &own, vehicle, lease, seed, now);
        let mut session = session.unwrap();
        channels::open(&mut session).unwrap();
        self.driver.handle().start(session);
    }

    fn command(&mut self, throttle: f32, steering: f32) {
        self.send(Command { throttle, steering, ..Command::default() });
    }

    fn brake(&mut self) {
        self.send(Command { brake: 1.0, ..Command::default() });
    }

    fn send(&mut self, command: Command) {
        self.sequence += 1;
        self.newest();
        let command = Command {
            sequence: self.sequence,
            sent_at: self.clock.now(),
            console: u64::from(self.seed),
            cited: self.cited,
            act: self.act,
            ..command
        };
        let deadline = Duration::from_secs(1);
        self.driver.handle().send(channels::COMMAND, command.encode(), deadline);
    }

    /// Waits for more than so many slices from now on.
    async fn see(&mut self, count: usize) {
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

    /// Asks the guard for arming, anew if it refused the last time.
    fn ask_to_arm(&mut self) {
        let guard = self.newest().and_then(|telemetry| telemetry.guard);
        let Some(guard) = guard.filter(|guard| guard.mode == GuardMode::Held) else { return };
        let console = u64::from(self.seed);
        let answered = guard.answer.filter(|answer| answer.console == console);
        let last = answered.map_or(0, |answer| answer.number);
        self.act = Some(Act { number: last + 1, stop: 0, deed: Deed::Arm });
    }

    /// Asks for it until the guard has armed the machine.
    async fn arm(&mut self) {
        for _ in 0..LONG.as_millis() / TURN.as_millis() {
            let guard = self.newest().and_then(|telemetry| telemetry.guard);
            if guard.is_some_and(|guard| guard.mode == GuardMode::Armed) {
                return;
            }
            self.ask_to_arm();
            self.command(0.0, 0.0);
            sleep(TURN).await;
        }
        panic!("not armed: {:?}", self.newest());
    }

    /// Commands the same for so many milliseconds.
    async fn drive_for(&mut self, throttle: f32, steering: f32, millis: u64) {
        for _ in 0..millis / 20 {
            self.command(throttle, steering);
            sleep(TURN).await;
        }
    }

    /// Commands the same until something has come true.
    async fn drive(&mut self, throttle: f32, steering: f32, is_so: impl Fn() -> bool) {
        for _ in 0..LONG.as_millis() / TURN.as_millis() {
            if is_so() {
                return;
            }
            self.command(throttle, steering);
            sleep(TURN).await;
        }
        panic!("it does not come true: {:?}", self.newest());
    }

    /// Returns the newest telemetry, if some has come.
    fn newest(&mut self) -> Option<Telemetry> {
        for event in self.told.try_iter() {
            match event {
                Event::Unit { channel: channels::TELEMETRY, bytes, .. } => {
                    self.telemetry = Some(Telemetry::decode(&bytes).unwrap());
                }
                Event::Unit { channel: channels::VIDEO, bytes, .. } => {
                    self.pictures += 1;
                    self.cited = Slice::parse(bytes).unwrap().tick;
                }
                _ => {}
            }
        }
        self.telemetry.clone()
    }

    fn telemetry(&mut self) -> Telemetry {
        self.newest().unwrap()
    }
}

/// What a test sees of the machine.
#[derive(Default)]
struct Car {
    state: MachineState,
    controls: Controls,
    turns_braked: usize,
    is_brakeless: bool,
}

/// A machine that throttle and brake move.
struct Driven {
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

/// Grey pictures, and how they end.
struct Grey {
    left: usize,
    ending: Ending,
}

#[derive(Clone, Copy)]
enum Ending {
    Ends,
    Fails,
    Panics,
}

impl Sensor for Grey {
    fn layout(&self) -> Layout {
        Layout::of(640, 96).unwrap()
    }

    fn pictures_per_second(&self) -> f64 {
        // So few that they may be away as long as anything else: half a second.
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

    fn read(&mut self, _strip: usize, _rows: &mut Picture) {}
}

fn grey() -> OpenSensor {
    Box::new(|| Ok(Box::new(Grey { left: usize::MAX, ending: Ending::Ends })))
}

async fn accept(listener: &Listener) -> Connection {
    let accepted = async { listener.accept().await.unwrap().handshake().await.unwrap() };
    timeout(LONG, accepted).await.unwrap()
}

/// Returns an order to a vehicle to end its drive, made so long ago.
fn signed(supervisor: u8, vehicle: u8, ago: Duration) -> Vec<u8> {
    let (own, clock) = (identity(supervisor), Clock::start());
    let now = Duration::from_millis(clock.unix_nanos(clock.now()) / 1_000_000);
    let (made_at, until) = (now - ago, now - ago + Duration::from_secs(60));
    let (supervisor, vehicle) = (own.public(), identity(vehicle).public());
    Order { supervisor, vehicle, made_at, until }.sign(&own).as_bytes().to_vec()
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

const SWITCHBOARD: u8 = 1;
const ROVER: u8 = 2;
const ANNA: u8 = 3;
const BERT: u8 = 4;
const STRANGER: u8 = 5;
const EVA: u8 = 6;
/// From one command to the next.
const TURN: Duration = Duration::from_millis(20);
/// As long as anything may take on a busy machine.
const LONG: Duration = Duration::from_secs(60);
