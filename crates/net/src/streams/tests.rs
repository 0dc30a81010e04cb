//! Links over TLS between two event loops, over real sockets of the loopback interface.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tautline_transport::crypto::Identity;
use tautline_transport::link::State;
use tautline_transport::{ChannelNumber, Config, Event, Route, Session};

use super::Tls;
use crate::clock::Clock;
use crate::control::tls;
use crate::driver::{Driver, Drops, Output};
use crate::socket::Local;

/// Output of a loop: events, and at each tick its drops and the media packets sent per link.
#[derive(Debug)]
enum Told {
    Event(Event),
    Tick(Drops, Vec<u64>),
}

struct End {
    driver: Driver,
    clock: Clock,
    told: Receiver<Told>,
}

impl End {
    fn start(tls: Option<Tls>) -> Self {
        let clock = Clock::start();
        let (tell, told) = channel();
        let local: Local = "127.0.0.1:0".parse().expect("an address");
        let driver = Driver::spawn_with(&[local], tls, clock, move |output| {
            let told = match output {
                Output::Event(event, _) => Told::Event(event),
                Output::Refused(..) => return,
                Output::Tick(session, _, drops) => {
                    Told::Tick(*drops, session.links().map(|link| link.media.sent).collect())
                }
            };
            // A failed send means that the test has ended.
            let _ = tell.send(told);
        });
        Self { driver: driver.expect("a free port"), clock, told }
    }

    fn operator(identity: &Identity) -> Self {
        let listen = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
        Self::start(Some(Tls { identity: identity.clone(), listen }))
    }

    fn vehicle(identity: &Identity) -> Self {
        Self::start(Some(Tls { identity: identity.clone(), listen: None }))
    }

    fn tls_address(&self) -> SocketAddr {
        self.driver.tls_address().expect("it listens")
    }

    /// Starts the operator's session, which responds to the vehicle with the first of [`keys`].
    fn respond(&self) {
        let [vehicle, operator] = keys();
        let now = self.clock.now();
        let session =
            Session::respond(Config::default(), &operator, vehicle.public(), LEASE, [3; 32], now);
        self.driver.handle().start(session.expect("a valid configuration"));
    }

    /// Starts the vehicle's session with the operator over `routes`; over TLS the holder of
    /// `pinned` must answer.
    fn call(&self, routes: &[Route], pinned: &Identity) {
        let [vehicle, operator] = keys();
        let (peer, now) = (operator.public(), self.clock.now());
        let session =
            Session::initiate(Config::default(), &vehicle, peer, LEASE, routes, [4; 32], now);
        self.driver.handle().call(routes, pinned.public());
        self.driver.handle().start(session.expect("a valid configuration"));
    }

    /// Sends `unit` repeatedly until `to` receives it.
    fn insists(&self, unit: &[u8], to: &Self) {
        for _ in 0..200 {
            self.media(unit);
            while let Ok(told) = to.told.recv_timeout(Duration::from_millis(50)) {
                if matches!(told, Told::Event(Event::Unit { ref bytes, .. }) if bytes == unit) {
                    return;
                }
                if matches!(told, Told::Tick(..)) {
                    break;
                }
            }
        }
        panic!("no unit")
    }

    /// Waits for output for which `wanted` returns a value.
    fn eventually<T>(&self, what: &str, mut wanted: impl FnMut(Told) -> Option<T>) -> T {
        let mut ticks = 0..200;
        loop {
            let told = self.told.recv_timeout(Duration::from_secs(20));
            let told = told.unwrap_or_else(|_| panic!("no {what} in 20 s"));
            if matches!(told, Told::Tick(..)) {
                assert!(ticks.next().is_some(), "no {what} in two hundred ticks");
            }
            if let Some(found) = wanted(told) {
                return found;
            }
        }
    }

    fn await_up(&self, number: u8) {
        self.eventually("link", |told| match told {
            Told::Event(Event::Link { link, state: State::Up }) => {
                (link.get() == number).then_some(())
            }
            Told::Event(_) | Told::Tick(..) => None,
        });
    }

    fn await_unit(&self, wanted: &[u8]) {
        self.eventually("unit", |told| match told {
            Told::Event(Event::Unit { bytes, .. }) => (bytes == wanted).then_some(()),
            Told::Event(_) | Told::Tick(..) => None,
        });
    }

    fn await_drops(&self, what: &str, wanted: impl Fn(&Drops) -> bool) {
        self.eventually(what, |told| match told {
            Told::Tick(drops, _) => wanted(&drops).then_some(()),
            Told::Event(_) => None,
        });
    }

    fn media(&self, unit: &[u8]) {
        assert!(self.driver.handle().send(ChannelNumber::MEDIA, unit.to_vec(), DEADLINE));
    }
}

fn keys() -> [Identity; 2] {
    [1, 2].map(|seed| Identity::from_seed(&[seed; 32]))
}

/// Returns two ends whose session is established over TLS only.
fn pair() -> (End, End) {
    let [a, b] = keys();
    let (vehicle, operator) = (End::vehicle(&a), End::operator(&b));
    operator.respond();
    vehicle.call(&[Route::stream(0, operator.tls_address())], &b);
    vehicle.await_up(0);
    operator.await_up(0);
    (vehicle, operator)
}

#[test]
fn units_cross_in_both_directions_where_udp_is_dead() {
    let [a, b] = keys();
    let (vehicle, operator) = (End::vehicle(&a), End::operator(&b));
    operator.respond();
    // No process reads from this socket.
    let dead = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let dead = Route { socket: 0, remote: dead.local_addr().expect("its address") };
    vehicle.call(&[dead, Route::stream(0, operator.tls_address())], &b);
    vehicle.await_up(1);
    operator.await_up(1);
    let slice: Vec<u8> = (0..5_000_u32).map(|byte| byte as u8).collect();
    vehicle.insists(&slice, &operator);
    assert!(operator.driver.handle().send(ChannelNumber::COMMAND, b"steer".to_vec(), DEADLINE));
    vehicle.await_unit(b"steer");
}

#[test]
fn media_goes_over_tls_while_udp_is_dead_and_back_when_it_lives() {
    let [a, b] = keys();
    let (vehicle, operator) = (End::vehicle(&a), End::operator(&b));
    operator.respond();
    let gate = Gate::open(operator.driver.local_addresses()[0]);
    let udp = Route { socket: 0, remote: gate.address };
    vehicle.call(&[udp, Route::stream(0, operator.tls_address())], &b);
    vehicle.await_up(1);
    operator.await_up(0);
    let sent = |vehicle: &End| {
        vehicle.media(b"slice");
        vehicle.eventually("tick", |told| match told {
            Told::Tick(_, sent) => Some(sent),
            Told::Event(_) => None,
        })
    };
    for shut in [true, false] {
        gate.shut(shut);
        let over_tls = usize::from(shut);
        let begun = sent(&vehicle);
        let carries = (0..200).any(|_| sent(&vehicle)[over_tls] > begun[over_tls] + 5);
        assert!(carries, "shut: {shut}");
    }
}

#[test]
fn an_operator_with_another_key_is_refused_in_the_handshake() {
    let [a, b] = keys();
    let other = Identity::from_seed(&[9; 32]);
    let (vehicle, operator) = (End::vehicle(&a), End::operator(&b));
    operator.respond();
    vehicle.call(&[Route::stream(0, operator.tls_address())], &other);
    vehicle.await_drops("refusal", |drops| drops.stream_refused > 1 && drops.stream_absent > 0);
}

#[test]
fn a_vehicle_of_another_key_is_refused_by_the_operator() {
    let [_, b] = keys();
    let stranger = Identity::from_seed(&[9; 32]);
    let (vehicle, operator) = (End::vehicle(&stranger), End::operator(&b));
    operator.respond();
    vehicle.call(&[Route::stream(0, operator.tls_address())], &b);
    operator.await_drops("refusal", |drops| drops.stream_refused > 1);
    vehicle.await_drops("refusal", |drops| drops.stream_refused > 1);
}

#[test]
fn a_connection_that_breaks_is_made_anew() {
    let [a, b] = keys();
    let (vehicle, operator) = (End::vehicle(&a), End::operator(&b));
    operator.respond();
    let between = Between::start(operator.tls_address());
    vehicle.call(&[Route::stream(0, between.address)], &b);
    vehicle.await_up(0);
    operator.await_up(0);
    vehicle.insists(b"first", &operator);
    between.cut();
    vehicle.insists(b"back", &operator);
}

#[test]
fn hostile_bytes_and_silent_sockets_end_no_session() {
    let (vehicle, operator) = pair();
    let address = operator.tls_address();
    let silent: Vec<TcpStream> =
        (0..100).filter_map(|_| TcpStream::connect(address).ok()).collect();
    for length in [1, 5, 40, 4_000, 70_000] {
        for first in [0x16, 0x17, 0x00, b'G'] {
            let Ok(mut stream) = TcpStream::connect(address) else { continue };
            let mut bytes = vec![0x5a; length];
            bytes[0] = first;
            // The connection may be closed before all is written.
            let _ = stream.write_all(&bytes);
        }
    }
    operator.await_drops("refusals", |drops| drops.stream_refused > 50);
    vehicle.insists(b"still here", &operator);
    drop(silent);
}

#[test]
fn an_admitted_stream_with_malformed_datagrams_is_closed() {
    let [a, b] = keys();
    let operator = End::operator(&b);
    operator.respond();
    let mut stream = tls_client(&a, &b, operator.tls_address());
    stream.write_all(&[0xff; 64]).expect("it is open");
    operator.await_drops("malformed", |drops| drops.stream_malformed == 1);
    let mut rest = Vec::new();
    // Closed in any manner.
    let _ = stream.read_to_end(&mut rest);
}

/// Connects as the vehicle does, for arbitrary data.
fn tls_client(
    own: &Identity,
    peer: &Identity,
    address: SocketAddr,
) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let config = tls::client(own, peer.public(), tls::LINK).expect("a certificate");
    let name = "operator.invalid".try_into().expect("a name");
    let tls = rustls::ClientConnection::new(Arc::new(config), name).expect("a configuration");
    rustls::StreamOwned::new(tls, TcpStream::connect(address).expect("it listens"))
}

/// A UDP network between one vehicle and `to`, which can be blocked.
struct Gate {
    address: SocketAddr,
    is_shut: Arc<Mutex<bool>>,
}

impl Gate {
    fn open(to: SocketAddr) -> Self {
        let [inner, outer] = [0, 1].map(|_| UdpSocket::bind("127.0.0.1:0").expect("a free port"));
        outer.connect(to).expect("loopback");
        let address = inner.local_addr().expect("its address");
        let is_shut = Arc::<Mutex<bool>>::default();
        let from = Arc::<Mutex<Option<SocketAddr>>>::default();
        let (back_from, back_shut) = (outer.try_clone().expect("a socket"), is_shut.clone());
        let (back_to, back_at) = (inner.try_clone().expect("a socket"), from.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 2_048];
            while let Ok(length) = back_from.recv(&mut bytes) {
                let at = *back_at.lock().expect("nobody panics with it");
                if let Some(at) = at.filter(|_| !*back_shut.lock().expect("nobody panics with it"))
                {
                    let _ = back_to.send_to(&bytes[..length], at);
                }
            }
        });
        let shut = is_shut.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 2_048];
            while let Ok((length, at)) = inner.recv_from(&mut bytes) {
                *from.lock().expect("nobody panics with it") = Some(at);
                if !*shut.lock().expect("nobody panics with it") {
                    let _ = outer.send(&bytes[..length]);
                }
            }
        });
        Self { address, is_shut }
    }

    fn shut(&self, is_shut: bool) {
        *self.is_shut.lock().expect("nobody panics with it") = is_shut;
    }
}

/// A TCP network that can break every connection.
struct Between {
    address: SocketAddr,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Between {
    fn start(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let streams = Arc::<Mutex<Vec<TcpStream>>>::default();
        let kept = streams.clone();
        std::thread::spawn(move || {
            for here in listener.incoming().map_while(Result::ok) {
                let there = TcpStream::connect(to).expect("it listens");
                for (mut from, mut to) in [
                    (here.try_clone().expect("a socket"), there.try_clone().expect("a socket")),
                    (there.try_clone().expect("a socket"), here.try_clone().expect("a socket")),
                ] {
                    std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                }
                kept.lock().expect("nobody panics with it").extend([here, there]);
            }
        });
        Self { address, streams }
    }

    fn cut(&self) {
        for stream in self.streams.lock().expect("nobody panics with it").drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

const LEASE: [u8; 16] = [7; 16];
const DEADLINE: Duration = Duration::from_secs(2);
