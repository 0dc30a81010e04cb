use std::net::TcpStream as Plain;
use std::sync::Arc;

use mio::Poll;

use super::super::connection::{Connection, End};
use super::*;
use crate::handover::Outlet;
use crate::socket::Local;

/// A relay's server and its clients; time only advances explicitly.
struct Bench {
    poll: Poll,
    server: Server,
    clients: Vec<Connection>,
    now: Instant,
}

impl Bench {
    fn new(inlet: Option<&Path>) -> Self {
        let poll = Poll::new().unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let registry = poll.registry();
        let server = Server::open(&identity(9), Some(listen), inlet, registry, 3).unwrap();
        Self { poll, server, clients: Vec::new(), now: Instant::from_millis(1) }
    }

    fn connect(&mut self, seed: u8) {
        let config = tls::client(&identity(seed), identity(9).public(), tls::RELAY).unwrap();
        let config = (&Arc::new(config), tls::RELAY);
        let (remote, local) = (self.server.address().unwrap(), Local::default());
        let token = Token(1_000 + self.clients.len());
        let registry = self.poll.registry();
        let dialled = Connection::dial(remote, &local, config, registry, token, self.now);
        self.clients.push(dialled.unwrap());
    }

    /// Runs all ends until `wanted` returns a value for the clients' received datagrams.
    fn until<T>(&mut self, mut wanted: impl FnMut(&mut Self, &[Vec<u8>]) -> Option<T>) -> T {
        for _ in 0..2_000 {
            let mut came = Vec::new();
            self.server.sweep(|_| true, self.now);
            self.server.turn(self.poll.registry(), self.now);
            for client in &mut self.clients {
                client.turn(|datagram| came.push(datagram.to_vec()), self.now).unwrap();
            }
            if let Some(found) = wanted(self, &came) {
                return found;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("never")
    }

    /// Connects, sends a datagram, and returns the route under which the server knows the client.
    fn route_of(&mut self, seed: u8) -> Route {
        self.connect(seed);
        self.until(|bench, _| bench.clients.last().unwrap().is_open().then_some(()));
        let client = self.clients.last_mut().unwrap();
        assert!(client.send(b"here").unwrap());
        self.until(|bench, _| {
            let mut from = None;
            bench.server.take_arrived(|_, route, datagram| {
                assert_eq!(datagram, b"here");
                from = Some(route);
            });
            from
        })
    }
}

#[test]
fn datagrams_cross_whole_between_two_connections() {
    let mut bench = Bench::new(None);
    let (first, second) = (bench.route_of(1), bench.route_of(2));
    assert!(first != second && first.stream_index() == Some(0));
    for datagram in [&[7; 1_200][..], &[8; 1], &[9; 1_500]] {
        assert!(bench.clients[0].send(datagram).unwrap());
        bench.until(|bench, came| {
            let now = bench.now;
            bench.server.take_arrived(|server, from, datagram| {
                assert_eq!(from, first);
                assert!(server.send(second, datagram, now));
            });
            (came == [datagram.to_vec()]).then_some(())
        });
    }
    assert_eq!(bench.server.counters(), Counters::default());
    let nowhere = Route::stream(0, ([192, 0, 2, 1], 9).into());
    assert!(!bench.server.send(nowhere, b"x", bench.now));
}

#[test]
fn a_connection_handed_over_is_served_like_an_accepted_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("port");
    let mut bench = Bench::new(Some(&path));
    let owner = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = tls::client(&identity(1), identity(9).public(), tls::RELAY).unwrap();
    let (remote, local) = (owner.local_addr().unwrap(), Local::default());
    let config = (&Arc::new(config), tls::RELAY);
    let registry = bench.poll.registry();
    let dialled = Connection::dial(remote, &local, config, registry, Token(99), bench.now);
    bench.clients.push(dialled.unwrap());
    Outlet::new(&path).hand_over(owner.accept().unwrap().0).unwrap();
    bench.until(|bench, _| bench.clients[0].is_open().then_some(()));
}

#[test]
fn a_streams_send_queue_is_bounded_in_number_and_time() {
    let mut bench = Bench::new(None);
    let route = bench.route_of(1);
    // It stops reading: TCP's buffers fill, and then the queue.
    for _ in 0..100_000 {
        assert!(bench.server.send(route, &[7; 1_500], bench.now));
        if bench.server.counters().stale > 0 {
            break;
        }
    }
    assert_eq!(bench.server.counters().stale, 1, "the oldest of more than wait");
    bench.now = Instant::from_millis(1) + STALE_AFTER;
    bench.server.sweep(|_| true, bench.now);
    bench.server.turn(bench.poll.registry(), bench.now);
    assert_eq!(bench.server.counters().stale, 1 + WAITING_MAX as u64, "what is late");
}

#[test]
fn a_connection_without_a_token_is_closed_after_ten_seconds() {
    let mut bench = Bench::new(None);
    let (first, second) = (bench.route_of(1), bench.route_of(2));
    bench.now += UNKNOWN_MAX;
    bench.server.sweep(|route| route == first, bench.now);
    assert_eq!(bench.server.poll_closed(), Some(second));
    assert_eq!(bench.server.poll_closed(), None);
    assert!(!bench.server.send(second, b"x", bench.now));
    assert_eq!(bench.server.counters().refused, 1);
}

#[test]
fn handshakes_per_network_are_limited_and_non_tls_is_refused() {
    let mut bench = Bench::new(None);
    let address = bench.server.address().unwrap();
    let _idle: Vec<_> = (0..20).map(|_| Plain::connect(address).unwrap()).collect();
    bench.until(|bench, _| {
        (bench.server.counters().refused == 20 - UNPROVEN_NETWORK_MAX as u64).then_some(())
    });
    // In the next second, after those connections have ended.
    bench.now += Duration::from_secs(4);
    bench.until(|bench, _| bench.server.legs.is_empty().then_some(()));
    let refused = bench.server.counters().refused;
    let mut noise = Plain::connect(address).unwrap();
    std::io::Write::write_all(&mut noise, &[0x55; 600]).unwrap();
    bench.until(|bench, _| (bench.server.counters().refused == refused + 1).then_some(()));
    let another = tls::client(&identity(1), identity(9).public(), tls::LINK).unwrap();
    let config = (&Arc::new(another), tls::LINK);
    let registry = bench.poll.registry();
    let local = Local::default();
    let dialled = Connection::dial(address, &local, config, registry, Token(7), bench.now);
    let mut dialled = dialled.unwrap();
    let ended = (0..2_000).find_map(|_| {
        bench.server.sweep(|_| true, bench.now);
        bench.server.turn(bench.poll.registry(), bench.now);
        std::thread::sleep(Duration::from_millis(1));
        dialled.turn(|_| {}, bench.now).err()
    });
    assert!(matches!(ended, Some(End::Tls(_) | End::Closed | End::Broken(_))), "{ended:?}");
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}
