//! Addresses and interfaces that disappear and return, in a network namespace of the test.
//!
//! The kernel creates such a namespace if user namespaces are permitted. `cargo test` reports these
//! tests as ignored; `make unit` runs them if `unshare -rn` succeeds, and otherwise logs that it
//! does not.
#![allow(clippy::unwrap_used, reason = "a network that cannot be set up has failed")]

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tautline_net::clock::Clock;
use tautline_net::driver::{Driver, Output};
use tautline_net::{Local, routes};
use tautline_transport::crypto::Identity;
use tautline_transport::link::State;
use tautline_transport::{ChannelNumber, Config, Event, Session};

#[test]
#[ignore = "needs a user namespace; make unit runs it where there is one"]
fn a_session_survives_an_address_that_goes_away_and_comes_back() {
    within_network("inside_address_goes_and_comes");
}

#[test]
#[ignore = "needs a user namespace; make unit runs it where there is one"]
fn a_socket_is_opened_again_when_its_interface_is_another_one() {
    within_network("inside_interface_goes_and_comes");
}

#[test]
#[ignore = "needs a user namespace; make unit runs it where there is one"]
fn an_interface_that_comes_after_the_start_becomes_a_link() {
    within_network("inside_interface_comes_late");
}

#[test]
#[ignore = "runs in a network of its own"]
fn inside_interface_comes_late() {
    ip("link set lo up");
    ip("addr add 10.77.0.1/32 dev lo");
    ip("addr add 10.77.0.2/32 dev lo");
    // The second modem and the vehicle's second address do not exist yet.
    let locals = ["10.77.0.1:0", "wwan9", "10.77.0.3:0"];
    let (vehicle, operator) = (End::start_all(&locals), End::start("10.77.0.2:7000"));
    operator.answer();
    vehicle.call(&["10.77.0.2:7000".to_owned()]);
    vehicle.await_state(State::Up);
    assert_eq!(vehicle.driver.local_addresses()[1].port(), 0);
    // Only existing ends are announced: one without a port would be refused.
    assert_eq!(vehicle.driver.open_addresses().len(), 1);
    ip("addr add 10.77.0.3/32 dev lo");
    ip("link add wwan9 type veth peer name far9");
    ip("addr add 10.79.0.1/24 dev wwan9");
    ip("link set far9 up");
    ip("link set wwan9 arp off up");
    vehicle.await_state(State::Up);
    let is_open = || vehicle.driver.local_addresses()[1..].iter().all(|it| it.port() != 0);
    for _ in 0..60 {
        if is_open() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{:?}", vehicle.driver.local_addresses());
}

#[test]
#[ignore = "runs in a network of its own"]
fn inside_address_goes_and_comes() {
    ip("link set lo up");
    ip("addr add 10.77.0.1/32 dev lo");
    ip("addr add 10.77.0.2/32 dev lo");
    let (vehicle, operator) = pair("10.77.0.1:0", "10.77.0.2:0");
    vehicle.await_state(State::Up);
    ip("addr del 10.77.0.1/32 dev lo");
    vehicle.await_state(State::Silent);
    // Longer than the time after which a useless socket is reopened.
    std::thread::sleep(Duration::from_millis(1_800));
    let refused = vehicle.refused.load(Ordering::Relaxed);
    assert!(refused > 5, "{refused}");
    ip("addr add 10.77.0.1/32 dev lo");
    vehicle.await_state(State::Up);
    let deadline = Duration::from_secs(1);
    assert!(vehicle.driver.handle().send(ChannelNumber::MEDIA, b"back".to_vec(), deadline));
    operator.await_event("unit", |event| {
        matches!(event, Event::Unit { bytes, .. } if bytes == b"back").then_some(())
    });
}

#[test]
#[ignore = "runs in a network of its own"]
fn inside_interface_goes_and_comes() {
    let plug = || {
        ip("link add wwan7 type veth peer name far7");
        ip("addr add 10.78.0.1/24 dev wwan7");
        ip("link set far7 up");
        ip("link set wwan7 arp off up");
    };
    plug();
    // Nobody answers: the test only checks whether the kernel accepts the datagrams.
    let vehicle = End::start("wwan7");
    vehicle.call(&["10.78.0.2:7000".to_owned()]);
    std::thread::sleep(Duration::from_millis(400));
    assert_eq!(vehicle.refused.load(Ordering::Relaxed), 0);
    ip("link del wwan7");
    let refused = || vehicle.refused.load(Ordering::Relaxed);
    for _ in 0..100 {
        if refused() >= 2 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(refused() >= 2, "the kernel refuses what goes nowhere");
    plug();
    let counts: Vec<u64> = (0..8)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(500));
            refused()
        })
        .collect();
    assert_eq!(counts[4], counts[7], "inits leave again: {counts:?}");
}

/// Reruns the test of that name as root of an empty network namespace.
fn within_network(test: &str) {
    let myself = std::env::current_exe().unwrap();
    let mut inside = Command::new("unshare");
    inside.arg("-rn").arg(myself).args(["--ignored", "--exact", test, "--nocapture"]);
    let output = inside.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{errors}");
    assert!(told.contains("1 passed"), "{told}");
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
}

struct End {
    driver: Driver,
    clock: Clock,
    events: Receiver<Event>,
    refused: Arc<AtomicU64>,
}

impl End {
    fn start(local: &str) -> Self {
        Self::start_all(&[local])
    }

    fn start_all(locals: &[&str]) -> Self {
        let locals: Vec<Local> = locals.iter().map(|local| local.parse().unwrap()).collect();
        let clock = Clock::start();
        let (tell, events) = channel();
        let refused = Arc::new(AtomicU64::new(0));
        let count = refused.clone();
        let driver = Driver::spawn(&locals, clock, move |output| {
            match output {
                Output::Event(event, _) => {
                    // A failed send means that the test has ended.
                    let _ = tell.send(event);
                }
                Output::Refused(..) => {}
                Output::Tick(_, _, drops) => count.store(drops.send_refused, Ordering::Relaxed),
            }
        });
        Self { driver: driver.unwrap(), clock, events, refused }
    }

    fn call(&self, peer: &[String]) {
        let routes = routes(&self.driver.local_addresses(), peer);
        let [vehicle, operator] = keys();
        let (config, now) = (Config::default(), self.clock.now());
        let peer = operator.public();
        let session =
            Session::initiate(config, vehicle, peer, [7; 16], &routes, [4; 32], now).unwrap();
        self.driver.handle().start(session);
    }

    fn answer(&self) {
        let [vehicle, operator] = keys();
        let (config, now) = (Config::default(), self.clock.now());
        let session = Session::respond(config, operator, vehicle.public(), [7; 16], [3; 32], now);
        self.driver.handle().start(session.unwrap());
    }

    fn await_event<T>(&self, what: &str, wanted: impl Fn(Event) -> Option<T>) -> T {
        while let Ok(event) = self.events.recv_timeout(Duration::from_secs(10)) {
            if let Some(found) = wanted(event) {
                return found;
            }
        }
        panic!("no {what} in 10 s")
    }

    fn await_state(&self, wanted: State) {
        self.await_event("change of state", |event| {
            matches!(event, Event::Link { state, .. } if state == wanted).then_some(())
        });
    }
}

fn pair(vehicle: &str, operator: &str) -> (End, End) {
    let (vehicle, operator) = (End::start(vehicle), End::start(operator));
    operator.answer();
    vehicle.call(&[operator.driver.local_addresses()[0].to_string()]);
    (vehicle, operator)
}

fn keys() -> &'static [Identity; 2] {
    static KEYS: OnceLock<[Identity; 2]> = OnceLock::new();
    KEYS.get_or_init(|| [1, 2].map(|seed| Identity::from_seed(&[seed; 32])))
}
