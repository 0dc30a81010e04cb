use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_units::{Duration, Instant};

use super::address::{is_told, reaches};
use super::candidate::{Candidate, Kind};
use crate::crypto::Seed;
use crate::stun::{Message, Request, Success, Transaction};

/// A gatherer of an end's own addresses: those of its interfaces, set by the application, and those
/// seen by servers.
///
/// Sans-I/O. Each socket repeatedly asks each server that it reaches, so that the NAT in front of
/// it keeps the mapping. A changed mapping had expired, so its keep-alive interval is reduced.
#[derive(Debug)]
pub struct Gatherer {
    sockets: Vec<Socket>,
    servers: Vec<SocketAddr>,
    rng: ChaCha20Rng,
    told: Vec<Candidate>,
    /// Sockets whose address, as seen by a server, has changed, until [`Gatherer::poll_moved`]
    /// returns them.
    moved: BTreeSet<u8>,
}

#[derive(Debug)]
struct Socket {
    local: SocketAddr,
    hosts: Vec<IpAddr>,
    asks: Vec<Ask>,
}

/// State of the requests from one socket to one server.
#[derive(Debug)]
struct Ask {
    server: SocketAddr,
    /// Last request and its send time; `None` once it is answered.
    out: Option<(Transaction, Instant)>,
    /// Number of requests sent since the last answer; saturates.
    unanswered: u32,
    /// Time of the next request.
    due_at: Instant,
    /// Address of the socket that the server last saw; `None` before, and if it no longer answers.
    mapped: Option<SocketAddr>,
    /// Interval of requests that keep the NAT's mapping; halved whenever the mapping has changed,
    /// to [`KEEP_ALIVE_LEAST`] at least.
    keep_alive: Duration,
}

impl Gatherer {
    /// Creates the gatherer for sockets bound to `locals`, in the order of [`Route::socket`].
    ///
    /// [`Route::socket`]: crate::Route::socket
    pub fn new(locals: &[SocketAddr], seed: impl Into<Seed>) -> Self {
        let socket =
            |local: &SocketAddr| Socket { local: *local, hosts: Vec::new(), asks: Vec::new() };
        Self {
            sockets: locals.iter().map(socket).collect(),
            servers: Vec::new(),
            rng: seed.into().into_rng(),
            told: Vec::new(),
            moved: BTreeSet::new(),
        }
    }

    /// Sets the servers to ask; beyond the first four they are ignored. The results of servers that
    /// were set before and are again are kept, those of others dropped.
    pub fn set_servers(&mut self, servers: &[SocketAddr], now: Instant) {
        self.servers = servers.iter().copied().take(SERVERS_MAX).collect();
        for socket in &mut self.sockets {
            socket.ask(&self.servers, now);
        }
    }

    /// Returns the servers that are asked.
    pub fn servers(&self) -> &[SocketAddr] {
        &self.servers
    }

    /// Sets the local address of the socket `index`, and the addresses of the interfaces that it
    /// may send through. Any change drops the servers' answers for the socket and makes requests to
    /// all of them due now. An unknown index is ignored.
    pub fn set_hosts(&mut self, index: u8, local: SocketAddr, hosts: Vec<IpAddr>, now: Instant) {
        let Some(socket) = self.sockets.get_mut(usize::from(index)) else { return };
        if socket.local == local && socket.hosts == hosts {
            return;
        }
        (socket.local, socket.hosts) = (local, hosts);
        socket.asks.clear();
        socket.ask(&self.servers, now);
    }

    /// Makes a request to every server due now, except where one sent within the last 200 ms is
    /// unanswered: the connection to the peer is silent, and a NAT may have changed.
    pub fn hurry(&mut self, now: Instant) {
        for ask in self.sockets.iter_mut().flat_map(|socket| &mut socket.asks) {
            let asked = ask.out.is_some_and(|(_, at)| now.since(at) < HURRY_PAUSE);
            if !asked && ask.due_at > now {
                (ask.due_at, ask.unanswered) = (now, 0);
            }
        }
    }

    /// Handles a STUN datagram received from `from` on the socket `index`. The address that a
    /// server's answer states becomes a candidate; one that differs from the last halves the
    /// interval of the requests to that server.
    ///
    /// Returns false if it answers no outstanding request of that socket to that server. Only the
    /// server or an observer of the request can answer it.
    pub fn handle_datagram(
        &mut self,
        index: u8,
        from: SocketAddr,
        datagram: &[u8],
        now: Instant,
    ) -> bool {
        let Ok(message) = Message::parse(datagram) else { return false };
        let Some(socket) = self.sockets.get_mut(usize::from(index)) else { return false };
        let Message::Success(Success { transaction, mapped, .. }) = message else { return false };
        let answered = |ask: &&mut Ask| {
            ask.server == from && ask.out.is_some_and(|(asked, _)| asked == transaction)
        };
        let Some(ask) = socket.asks.iter_mut().find(answered) else { return false };
        if ask.mapped.is_some_and(|known| known != mapped) {
            ask.keep_alive = (ask.keep_alive / 2).max(KEEP_ALIVE_LEAST);
            tracing::info!(address = %mapped, keep_alive = ?ask.keep_alive, "the NAT's mapping \
                                                                             has changed");
            self.moved.insert(index);
        }
        (ask.mapped, ask.out, ask.unanswered) = (Some(mapped), None, 0);
        ask.due_at = now + ask.keep_alive;
        true
    }

    /// Returns the next request: index of the socket, destination, and bytes; `None` if none is due
    /// now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<(u8, SocketAddr, Vec<u8>)> {
        for (index, socket) in (0..=u8::MAX).zip(&mut self.sockets) {
            let Some(ask) = socket.asks.iter_mut().find(|ask| ask.due_at <= now) else { continue };
            let mut name = [0; 12];
            self.rng.fill_bytes(&mut name);
            ask.on_sent(Transaction(name), now);
            return Some((index, ask.server, Request::new(Transaction(name)).to_bytes()));
        }
        None
    }

    /// Returns when [`poll_transmit`](Self::poll_transmit) has the next request; `None` if no
    /// socket reaches a server.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let asks = self.sockets.iter().flat_map(|socket| &socket.asks);
        asks.map(|ask| ask.due_at).min()
    }

    /// Returns all of the end's candidates if they have changed since the last call, otherwise
    /// `None`.
    pub fn poll_candidates(&mut self) -> Option<&[Candidate]> {
        let found = self.candidates();
        if found == self.told {
            return None;
        }
        self.told = found;
        Some(&self.told)
    }

    /// Returns the index of a socket whose address, as seen by a server, has changed; once per
    /// change. `None` if there is no further one.
    pub fn poll_moved(&mut self) -> Option<u8> {
        self.moved.pop_first()
    }

    /// Returns whether, for each socket, every server has answered or has left five requests
    /// unanswered, so that waiting longer is useless.
    pub fn is_settled(&self) -> bool {
        let settled = |ask: &Ask| ask.mapped.is_some() || ask.unanswered >= SETTLED_AFTER;
        self.sockets.iter().flat_map(|socket| &socket.asks).all(settled)
    }

    /// Returns whether the address that a server sees is known for any socket.
    pub fn is_answered(&self) -> bool {
        self.sockets.iter().flat_map(|socket| &socket.asks).any(|ask| ask.mapped.is_some())
    }

    /// Returns the candidates of all sockets, at most [`CANDIDATES_MAX`]: for each socket, every
    /// address once, those of interfaces before those seen by servers.
    fn candidates(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        for (end, socket) in (0..=u8::MAX).zip(&self.sockets) {
            let mut known = BTreeSet::new();
            let port = socket.local.port();
            let hosts = socket.hosts.iter().map(|ip| (Kind::Host, SocketAddr::new(*ip, port)));
            let mapped = socket.asks.iter().filter_map(|ask| ask.mapped);
            let mapped = mapped.map(|address| (Kind::Reflexive, address));
            for (kind, address) in hosts.chain(mapped) {
                if is_told(address.ip()) && address.port() != 0 && known.insert(address) {
                    found.push(Candidate { kind, end, address });
                }
            }
        }
        found.truncate(CANDIDATES_MAX);
        found
    }
}

impl Socket {
    fn ask(&mut self, servers: &[SocketAddr], now: Instant) {
        self.asks.retain(|ask| servers.contains(&ask.server));
        for server in servers.iter().filter(|server| reaches(&self.local, server)) {
            if !self.asks.iter().any(|ask| ask.server == *server) {
                self.asks.push(Ask {
                    server: *server,
                    out: None,
                    unanswered: 0,
                    due_at: now,
                    mapped: None,
                    keep_alive: KEEP_ALIVE,
                });
            }
        }
    }
}

impl Ask {
    fn on_sent(&mut self, name: Transaction, now: Instant) {
        self.out = Some((name, now));
        self.unanswered = self.unanswered.saturating_add(1);
        if self.unanswered > FORGOTTEN_AFTER {
            self.mapped = None;
        }
        let pause = RESEND_FIRST * (1 << self.unanswered.saturating_sub(1).min(8));
        self.due_at = now + pause.min(RESEND_MOST);
    }
}

/// Maximum number of servers: two addresses of two families.
const SERVERS_MAX: usize = 4;
/// Maximum number of candidates: the capacity of a control plane message.
const CANDIDATES_MAX: usize = 32;
/// Time from the first unanswered request to the second; it doubles with each further one, up to
/// [`RESEND_MOST`]. A little above a mobile link's RTT; [RFC8489] demands 500 ms if that is
/// unknown.
const RESEND_FIRST: Duration = Duration::from_millis(100);
const RESEND_MOST: Duration = Duration::from_secs(5);
/// Number of unanswered requests, sent within 1.5 s, from which a server counts as unreachable.
const SETTLED_AFTER: u32 = 5;
/// Number of unanswered requests, 11 s, after which a mapping is no longer reported.
const FORGOTTEN_AFTER: u32 = 7;
/// Initial keep-alive interval: the minimum in ICE ([RFC8445] 11). The shortest lifetime of NAT
/// mappings without traffic is about twice as long.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const KEEP_ALIVE_LEAST: Duration = Duration::from_secs(2);
const HURRY_PAUSE: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stun;

    const SERVER: &str = "192.0.2.9:3478";

    fn server() -> SocketAddr {
        SERVER.parse().unwrap()
    }

    /// Answers due requests like a server that sees `mapped`; returns the number of requests.
    fn answer(gatherer: &mut Gatherer, mapped: &str, now: Instant) -> usize {
        let mut requests = 0;
        while let Some((socket, to, datagram)) = gatherer.poll_transmit(now) {
            let Ok(Message::Request(request)) = Message::parse(&datagram) else { panic!() };
            let answer = stun::answer(&request, mapped.parse().unwrap(), None);
            assert!(!gatherer.handle_datagram(socket, mapped.parse().unwrap(), &answer, now));
            assert!(gatherer.handle_datagram(socket, to, &answer, now));
            assert!(!gatherer.handle_datagram(socket, to, &answer, now), "once");
            requests += 1;
        }
        requests
    }

    fn told(gatherer: &mut Gatherer) -> Vec<String> {
        let found = gatherer.poll_candidates().unwrap_or_default();
        found.iter().map(|found| format!("{:?} {}", found.kind, found.address)).collect()
    }

    #[test]
    fn a_socket_learns_what_a_server_sees_and_says_so_once() {
        let mut gatherer = Gatherer::new(&["0.0.0.0:7".parse().unwrap()], 1);
        let now = Instant::from_millis(1);
        gatherer.set_hosts(0, "0.0.0.0:7".parse().unwrap(), vec!["10.0.0.1".parse().unwrap()], now);
        assert_eq!(told(&mut gatherer), ["Host 10.0.0.1:7"]);
        gatherer.set_servers(&[server(), "[2001:db8::9]:3478".parse().unwrap()], now);
        assert!(!gatherer.is_settled());
        assert_eq!(answer(&mut gatherer, "198.51.100.1:40000", now), 1);
        assert!(gatherer.is_settled() && gatherer.is_answered());
        assert_eq!(told(&mut gatherer), ["Host 10.0.0.1:7", "Reflexive 198.51.100.1:40000"]);
        assert!(gatherer.poll_candidates().is_none());
        assert_eq!(gatherer.poll_timeout(), Some(now + KEEP_ALIVE));
    }

    #[test]
    fn a_mapping_that_was_not_kept_is_asked_for_more_often() {
        let mut gatherer = Gatherer::new(&["0.0.0.0:7".parse().unwrap()], 1);
        gatherer.set_servers(&[server()], Instant::ZERO);
        let mut pauses = Vec::new();
        for port in 0..5_u16 {
            let now = gatherer.poll_timeout().unwrap();
            answer(&mut gatherer, &format!("198.51.100.1:{}", 40_000 + port), now);
            pauses.push(gatherer.poll_timeout().unwrap().since(now).as_millis());
        }
        assert_eq!(pauses, [15_000, 7_500, 3_750, 2_000, 2_000]);
    }

    #[test]
    fn a_silent_stun_server_is_queried_with_backoff_then_dropped() {
        let mut gatherer = Gatherer::new(&["0.0.0.0:7".parse().unwrap()], 1);
        gatherer.set_servers(&[server()], Instant::ZERO);
        answer(&mut gatherer, "198.51.100.1:40000", Instant::ZERO);
        assert_eq!(told(&mut gatherer).len(), 1);
        let mut asked = 0;
        while gatherer.poll_timeout().unwrap() < Instant::from_millis(60_000) {
            let now = gatherer.poll_timeout().unwrap();
            assert!(gatherer.poll_transmit(now).is_some());
            asked += 1;
        }
        assert!((10..20).contains(&asked), "{asked}");
        assert_eq!(gatherer.poll_candidates(), Some([].as_slice()));
        assert!(gatherer.is_settled() && !gatherer.is_answered());
    }

    #[test]
    fn hurried_requests_are_sent_at_once_but_rate_limited() {
        let mut gatherer = Gatherer::new(&["0.0.0.0:7".parse().unwrap()], 1);
        gatherer.set_servers(&[server()], Instant::ZERO);
        answer(&mut gatherer, "198.51.100.1:40000", Instant::ZERO);
        let mut requests = 0;
        for ms in 1_000..2_000 {
            gatherer.hurry(Instant::from_millis(ms));
            while gatherer.poll_transmit(Instant::from_millis(ms)).is_some() {
                requests += 1;
            }
        }
        assert!((2..=8).contains(&requests), "{requests}");
    }

    proptest! {
        #[test]
        fn any_datagram_that_answers_nothing_is_not_taken(index: u8, datagram: Vec<u8>, name: [u8; 12]) {
            let now = Instant::from_millis(1);
            let mut gatherer = Gatherer::new(&["0.0.0.0:7".parse().unwrap()], 1);
            gatherer.set_servers(&[server()], now);
            let _ = answer(&mut gatherer, "203.0.113.7:4000", now);
            let request = stun::Request::new(stun::Transaction(name));
            let foreign = stun::answer(&request, server(), None);
            for datagram in [datagram, foreign] {
                prop_assert!(!gatherer.handle_datagram(index, server(), &datagram, now));
            }
        }
    }
}
