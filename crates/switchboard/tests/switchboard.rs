//! The switchboard with its clients, over loopback sockets.
#![expect(clippy::unwrap_used, reason = "a failed test panics")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tautline_message::{Control, Held, Order, Refusal, VehicleState};
use tautline_net::clock::Clock;
use tautline_net::control::{Client, Event};
use tautline_switchboard::store::Kept;
use tautline_switchboard::{Config, Counters, Server, Store};
use tautline_transport::crypto::Identity;
use tautline_units::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn an_operator_takes_a_vehicle_and_a_second_operator_is_refused() {
    let switchboard = Switchboard::start(0).await;
    let mut rover = switchboard.vehicle("10.0.0.1:7000");
    let mut anna = switchboard.operator(ANNA, "anna", "0.0.0.0:8000");
    let mut bert = switchboard.operator(BERT, "bert", "10.0.0.3:8000");
    anna.vehicle_is(VehicleState::Free).await;
    anna.take();
    let (lease, address) = anna.introduction("rover", ROVER).await;
    assert_eq!(address, "10.0.0.1:7000");
    let (same, address) = rover.introduction("anna", ANNA).await;
    assert_eq!((same, &*address), (lease, "127.0.0.1:8000"));

    bert.vehicle_is(VehicleState::Taken).await;
    bert.take();
    let Control::Refused { reason_code, text } = bert.next().await else { panic!() };
    assert_eq!((reason_code, &*text), (Refusal::VehicleTaken, "vehicle rover is driven by anna"));

    anna.say(Control::Release);
    let over = Control::Released { lease, reason: "operator anna has released it".into() };
    assert_eq!(rover.next().await, over);
    assert_eq!(anna.next().await, over);
    bert.take();
    bert.introduction("rover", ROVER).await;
    rover.introduction("bert", BERT).await;
}

#[tokio::test]
async fn either_end_may_restart_and_the_two_are_introduced_again() {
    let switchboard = Switchboard::start(0).await;
    let mut rover = switchboard.vehicle("10.0.0.1:7000");
    let mut anna = switchboard.operator(ANNA, "anna", "10.0.0.2:8000");
    anna.vehicle_is(VehicleState::Free).await;
    anna.take();
    let (first, _) = anna.introduction("rover", ROVER).await;
    rover.introduction("anna", ANNA).await;

    // The vehicle's process is killed.
    drop(rover);
    let mut rover = switchboard.vehicle("10.0.0.1:7001");
    let (second, address) = anna.introduction("rover", ROVER).await;
    assert_eq!(address, "10.0.0.1:7001");
    assert_eq!(rover.introduction("anna", ANNA).await.0, second);
    assert_ne!(second, first);

    // The operator's process is killed: its lease is kept.
    drop(anna);
    let mut anna = switchboard.operator(ANNA, "anna", "10.0.0.2:8001");
    let (third, _) = anna.introduction("rover", ROVER).await;
    assert_eq!(rover.introduction("anna", ANNA).await, (third, "10.0.0.2:8001".into()));

    // The operator's process ends and does not return.
    anna.client.close().await;
    let Control::Released { lease, reason } = rover.next().await else { panic!() };
    assert_eq!((lease, &*reason), (third, "operator anna has been away for 0.5 s"));
}

#[tokio::test]
async fn after_a_restart_of_the_switchboard_everybody_registers_again() {
    let switchboard = Switchboard::start(0).await;
    let port = switchboard.address.port();
    let mut rover = switchboard.vehicle("10.0.0.1:7000");
    let mut anna = switchboard.operator(ANNA, "anna", "10.0.0.2:8000");
    anna.vehicle_is(VehicleState::Free).await;
    anna.take();
    let (first, _) = anna.introduction("rover", ROVER).await;
    rover.introduction("anna", ANNA).await;
    switchboard.stop().await;

    let switchboard = Switchboard::start(port).await;
    let mut bert = switchboard.operator(BERT, "bert", "10.0.0.3:8000");
    let (second, _) = anna.introduction("rover", ROVER).await;
    assert_eq!(rover.introduction("anna", ANNA).await.0, second);
    assert_ne!(second, first);
    bert.vehicle_is(VehicleState::Taken).await;
    switchboard.stop().await;
}

#[tokio::test]
async fn a_lease_survives_a_switchboard_restart_without_introduction() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Store::open(folder.path()).unwrap();
    let switchboard = Switchboard::start_with(0, open()).await;
    let port = switchboard.address.port();
    let mut rover = switchboard.vehicle("10.0.0.1:7000");
    let mut anna = switchboard.operator(ANNA, "anna", "10.0.0.2:8000");
    anna.vehicle_is(VehicleState::Free).await;
    anna.take();
    let (lease, _) = anna.introduction("rover", ROVER).await;
    rover.introduction("anna", ANNA).await;
    anna.hold(lease, ROVER);
    rover.hold(lease, ANNA);
    switchboard.stop().await;
    let kept = open().load().unwrap();

    let switchboard = Switchboard::start_with(port, open()).await;
    let mut bert = switchboard.operator(BERT, "bert", "10.0.0.3:8000");
    bert.connected().await;
    // The lease is known before its ends have returned.
    bert.say(Control::Take { vehicle_name: "rover".into() });
    let Control::Refused { reason_code, .. } = bert.next().await else { panic!() };
    assert_eq!(reason_code, Refusal::VehicleTaken);
    for peer in [&mut anna, &mut rover] {
        peer.again().await;
    }
    bert.vehicle_is(VehicleState::Taken).await;
    anna.say(Control::ListVehicles);
    let next = anna.next().await;
    assert!(matches!(next, Control::VehicleList { .. } | Control::Refused { .. }), "{next:?}");
    switchboard.stop().await;
    assert_eq!(open().load().unwrap(), kept);
}

#[tokio::test]
async fn keys_are_added_and_taken_away_while_it_serves() {
    let switchboard = Switchboard::start(0).await;
    let mut rover = switchboard.vehicle("10.0.0.1:7000");
    let mut anna = switchboard.operator(ANNA, "anna", "10.0.0.2:8000");
    anna.vehicle_is(VehicleState::Free).await;
    anna.take();
    let (lease, _) = anna.introduction("rover", ROVER).await;
    rover.introduction("anna", ANNA).await;
    // Anna leaves and Carl is added; for the vehicle only the end of its lease changes.
    let mut config = switchboard.config.clone();
    config.operators.remove("anna");
    config.operators.insert("carl".into(), identity(CARL).public());
    switchboard.settings.send(config).await.unwrap();
    let over = Control::Released { lease, reason: "operator anna is no longer listed".into() };
    assert_eq!(anna.next().await, over);
    let Control::Refused { reason_code, .. } = anna.next().await else { panic!() };
    assert_eq!(reason_code, Refusal::NotAllowed);
    assert_eq!(rover.next().await, over);
    let mut carl = switchboard.operator(CARL, "carl", "10.0.0.4:8000");
    carl.vehicle_is(VehicleState::Free).await;
    carl.take();
    let (lease, _) = carl.introduction("rover", ROVER).await;
    assert_eq!(rover.introduction("carl", CARL).await.0, lease);
}

#[tokio::test]
async fn only_the_switchboards_own_key_gets_a_backup() {
    let switchboard = Switchboard::start(0).await;
    let mut rover = switchboard.vehicle("10.0.0.1:7000");
    let mut anna = switchboard.operator(ANNA, "anna", "10.0.0.2:8000");
    anna.vehicle_is(VehicleState::Free).await;
    anna.take();
    let (lease, _) = anna.introduction("rover", ROVER).await;
    rover.introduction("anna", ANNA).await;
    let order = Control::Order(Order::Backup);
    let mut own = switchboard.client(SWITCHBOARD, vec![order.encode()]);
    let Control::OrderPart { bytes, is_last: true } = own.next().await else { panic!() };
    let kept = Kept::decode(&bytes).unwrap();
    let record = &kept.vehicles[&identity(ROVER).public()];
    let kept_lease = record.lease.as_ref().unwrap();
    let expected = (1, identity(ANNA).public(), Some(lease));
    assert_eq!((record.epoch, kept_lease.operator, kept_lease.name), expected);
    anna.say(order);
    let Control::Refused { reason_code, .. } = anna.next().await else { panic!() };
    assert_eq!(reason_code, Refusal::NotAllowed);
}

#[tokio::test]
async fn an_unknown_key_is_answered_with_the_line_to_add() {
    let switchboard = Switchboard::start(0).await;
    let mut carl = switchboard.operator(CARL, "carl", "10.0.0.4:8000");
    let Control::Refused { reason_code, text } = carl.next().await else { panic!() };
    assert_eq!(reason_code, Refusal::NotAllowed);
    let line = format!("add NAME = \"{}\" to [vehicles] or [operators]", identity(CARL).public());
    assert!(text.contains(&line), "{text}");
}

#[tokio::test]
async fn frames_that_are_no_message_are_refused_and_harm_nobody() {
    let switchboard = Switchboard::start(0).await;
    let mut rover = switchboard.vehicle("10.0.0.1:7000");
    let register = Control::RegisterOperator {
        name: "anna".into(),
        addresses: vec!["10.0.0.2:8000".into()],
        versions: None,
        relays: false,
        candidates: vec![],
        held: None,
    };
    let good = register.encode();
    let mut malformed = vec![vec![], vec![0; 7], vec![0xff; 65_536]];
    malformed.extend((1..good.len()).step_by(7).map(|end| good[..end].to_vec()));
    // A frame truncated at the very end may only lack padding.
    malformed.retain(|frame| Control::decode(frame).is_err());
    assert!(malformed.len() > 3);
    for frame in malformed {
        let mut anna = switchboard.client(ANNA, vec![frame.clone()]);
        let Control::Refused { reason_code, .. } = anna.next().await else { panic!("{frame:?}") };
        assert_eq!(reason_code, Refusal::BadRequest);
    }
    let mut anna = switchboard.operator(ANNA, "anna", "10.0.0.2:8000");
    anna.vehicle_is(VehicleState::Free).await;
    anna.take();
    rover.introduction("anna", ANNA).await;
}

/// The idle connections come from the vehicle's own address, as behind a carrier's NAT, or each
/// from another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vehicle_registers_within_a_second_despite_1100_idle_ones() {
    allow_open_files(4_096);
    for is_spread in [false, true] {
        let switchboard = Switchboard::start(0).await;
        let mut anna = switchboard.operator(ANNA, "anna", "10.0.0.2:8000");
        anna.vehicle_is(VehicleState::Away).await;
        let mut flood = JoinSet::new();
        for number in 0..1_100_u32 {
            let [.., high, low] = number.to_be_bytes();
            let from = if is_spread { [127, 1, high, low] } else { [127, 0, 0, 1] };
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((from, 0).into()).unwrap();
            let stream = socket.connect(switchboard.address).await.unwrap();
            flood.spawn(dawdle(stream, number % 2 == 0));
        }
        // Strangers who prove a key, are refused, and reconnect.
        let strangers: Vec<_> =
            (100..130).map(|seed| switchboard.operator(seed, "carl", "10.0.0.4:8000")).collect();
        let clock = Clock::start();
        let mut rover = switchboard.vehicle("10.0.0.1:7000");
        anna.vehicle_is(VehicleState::Free).await;
        let took = clock.now().since(Instant::ZERO);
        assert!(took < Duration::from_secs(1), "spread: {is_spread}: {took:?}");
        anna.take();
        anna.introduction("rover", ROVER).await;
        rover.introduction("anna", ANNA).await;
        // Idle connections were evicted and counted, and hold no more than their places.
        let turned_away = switchboard.counters.turned_away.load(Ordering::Relaxed);
        assert!(turned_away > 800, "{turned_away}");
        println!("spread: {is_spread}: registered after {took:?}, {turned_away} gave way");
        drop(strangers);
        flood.abort_all();
    }
}

#[tokio::test]
async fn idle_connections_are_evicted_by_later_ones_of_the_address() {
    let switchboard = Switchboard::start(0).await;
    let mut flood = Vec::new();
    for _ in 0..200 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 9], 0).into()).unwrap();
        flood.push(socket.connect(switchboard.address).await.unwrap());
    }
    // The oldest are closed; the newest hold the network's places.
    for stream in flood.iter_mut().take(200 - 64) {
        let ended = timeout(ANSWER_TIMEOUT, stream.read(&mut [0])).await.expect("it is still open");
        assert!(matches!(ended, Ok(0) | Err(_)));
    }
    let held = flood[199].try_read(&mut [0]).unwrap_err();
    assert_eq!(held.kind(), std::io::ErrorKind::WouldBlock);
}

/// Sends nothing, or the begin of a handshake byte by byte, for as long as permitted.
async fn dawdle(mut stream: TcpStream, is_slow: bool) {
    let begun = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3].into_iter().chain(std::iter::repeat(0));
    for byte in begun {
        if is_slow && stream.write_all(&[byte]).await.is_err() {
            return;
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Raises this process's limit of open files, if the system allows it.
fn allow_open_files(count: u64) {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.map(|current| current.max(count));
    let raised = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    raised.expect("this test needs 4096 open files: raise the hard limit (ulimit -Hn)");
}

#[tokio::test]
async fn the_vehicle_list_has_round_trip_times() {
    let switchboard = Switchboard::start(0).await;
    let _rover = switchboard.vehicle("10.0.0.1:7000");
    let mut anna = switchboard.operator(ANNA, "anna", "10.0.0.2:8000");
    anna.connected().await;
    let measured = async {
        loop {
            anna.say(Control::ListVehicles);
            let Control::VehicleList { vehicles } = anna.next().await else { panic!() };
            if let Some(round_trip) = vehicles[0].round_trip_ms {
                return round_trip;
            }
        }
    };
    let round_trip = timeout(ANSWER_TIMEOUT, measured).await.unwrap();
    assert!((0.0..1_000.0).contains(&round_trip), "{round_trip} ms over loopback");
}

#[tokio::test]
async fn a_taken_port_gets_one_clear_line() {
    let switchboard = Switchboard::start(0).await;
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let config = Config { listen: switchboard.address, state, ..Config::default() };
    let stop = std::future::pending();
    let (clock, again) = (Clock::start(), async || std::future::pending().await);
    let error = tautline_switchboard::run(config, identity(9), clock, [0; 32], stop, again);
    let error = error.await.unwrap_err();
    assert_eq!(
        format!("{error:#}"),
        format!("cannot listen on {}: another program uses the address", switchboard.address)
    );
}

struct Switchboard {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    config: Config,
    settings: mpsc::Sender<Config>,
    counters: Arc<Counters>,
    task: JoinHandle<()>,
}

impl Switchboard {
    async fn start(port: u16) -> Self {
        Self::start_with(port, Store::in_memory().unwrap()).await
    }

    async fn start_with(port: u16, store: Store) -> Self {
        let mut seed = [0; 32];
        seed[..2].copy_from_slice(&port.to_be_bytes());
        let key = |seed| identity(seed).public();
        let config = Config {
            listen: (Ipv4Addr::LOCALHOST, port).into(),
            lease_grace_ms: 500,
            ping_interval_ms: 50,
            vehicles: [("rover".into(), key(ROVER))].into(),
            operators: [("anna".into(), key(ANNA)), ("bert".into(), key(BERT))].into(),
            ..Config::default()
        };
        let own = identity(SWITCHBOARD);
        let server = Server::bind(&config, &own, store, Clock::start(), seed).await.unwrap();
        let (address, settings, counters) = (server.local(), server.settings(), server.counters());
        let (stop, stopped) = oneshot::channel();
        let serve = server.serve(async { stopped.await.unwrap_or_default() });
        let task = tokio::spawn(async { serve.await.unwrap() });
        Self { address, stop, config, settings, counters, task }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }

    fn vehicle(&self, address: &str) -> Peer {
        let (name, addresses) = ("rover".into(), vec![address.into()]);
        self.client(ROVER, vec![register_vehicle(name, addresses).encode()])
    }

    fn operator(&self, seed: u8, name: &str, address: &str) -> Peer {
        let (name, addresses) = (name.into(), vec![address.into()]);
        self.client(seed, vec![register_operator(name, addresses).encode()])
    }

    fn client(&self, seed: u8, greeting: Vec<Vec<u8>>) -> Peer {
        let answer = |frame: &[u8]| match Control::decode(frame) {
            Ok(Control::Ping { t }) => Some(Control::Pong { t, seen_at: None }.encode()),
            _ => None,
        };
        let key = identity(SWITCHBOARD).public();
        let address = self.address.to_string();
        let (client, events) =
            Client::start(address, key, &identity(seed), greeting.clone(), answer).unwrap();
        Peer { client, events, greeting }
    }
}

/// A simplified vehicle or operator.
struct Peer {
    client: Client,
    events: mpsc::Receiver<Event>,
    greeting: Vec<Vec<u8>>,
}

impl Peer {
    /// Returns the next message from the switchboard.
    async fn next(&mut self) -> Control {
        loop {
            let event = timeout(ANSWER_TIMEOUT, self.events.recv()).await.expect("nothing came");
            if let Event::Frame(frame) = event.expect("the client lives") {
                return Control::decode(&frame).unwrap();
            }
        }
    }

    async fn connected(&self) {
        while !self.client.handle().is_connected() {
            tokio::task::yield_now().await;
        }
    }

    fn say(&self, message: Control) {
        self.client.handle().send(message.encode()).unwrap();
    }

    /// Reports this lease in every later registration.
    fn hold(&mut self, lease: [u8; 16], peer: u8) {
        let peer_key = *identity(peer).public().as_bytes();
        let now = Held { lease: Some(lease), epoch: 1, peer_key };
        let mut register = Control::decode(&self.greeting[0]).unwrap();
        match &mut register {
            Control::RegisterVehicle { held, .. } | Control::RegisterOperator { held, .. } => {
                *held = Some(now);
            }
            other => panic!("{other:?}"),
        }
        self.greeting[0] = register.encode();
        self.client.handle().set_greeting(self.greeting.clone());
    }

    /// Waits until this end has connected to the switchboard again.
    async fn again(&mut self) {
        let back =
            async { while !matches!(self.events.recv().await, Some(Event::Connected { .. })) {} };
        timeout(ANSWER_TIMEOUT, back).await.expect("it does not come back");
        self.connected().await;
    }

    /// Takes rover, now and after every restart of the switchboard.
    fn take(&mut self) {
        let take = Control::Take { vehicle_name: "rover".into() };
        self.greeting.truncate(1);
        self.greeting.push(take.encode());
        self.client.handle().set_greeting(self.greeting.clone());
        self.say(take);
    }

    /// Waits until the list shows rover in this state.
    async fn vehicle_is(&mut self, state: VehicleState) {
        self.connected().await;
        let seen = async {
            loop {
                self.say(Control::ListVehicles);
                let Control::VehicleList { vehicles } = self.next().await else { panic!() };
                if vehicles[0].state == state {
                    break;
                }
            }
        };
        timeout(ANSWER_TIMEOUT, seen).await.expect("the vehicle's state does not come");
    }

    /// Returns lease and address of the introduction to this peer, which is the next message.
    async fn introduction(&mut self, name: &str, seed: u8) -> ([u8; 16], String) {
        let mut message = self.next().await;
        if let Control::Refused { reason_code: Refusal::VehicleAway, .. } = message {
            // It returned before the vehicle did.
            message = self.next().await;
        }
        let Control::Introduce { lease, peer_name, peer_key, peer_addresses, .. } = message else {
            panic!("{message:?} instead of an introduction")
        };
        assert_eq!((&*peer_name, &peer_key), (name, identity(seed).public().as_bytes()));
        (lease, peer_addresses.join(" "))
    }
}

fn register_vehicle(name: String, addresses: Vec<String>) -> Control {
    Control::RegisterVehicle {
        name,
        addresses,
        versions: None,
        relays: false,
        candidates: vec![],
        held: None,
        place: None,
    }
}

fn register_operator(name: String, addresses: Vec<String>) -> Control {
    Control::RegisterOperator {
        name,
        addresses,
        versions: None,
        relays: false,
        candidates: vec![],
        held: None,
    }
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
const SWITCHBOARD: u8 = 1;
const ROVER: u8 = 2;
const ANNA: u8 = 3;
const BERT: u8 = 4;
const CARL: u8 = 5;
