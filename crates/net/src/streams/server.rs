use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustls::ServerConfig;
use tautline_transport::Route;
use tautline_transport::crypto::Identity;
use tautline_units::Instant;

use super::connection::Connection;
use super::door::Door;
use super::{fresh, listen};
use crate::control::tls;
use crate::handover::Inlet;
use crate::log_limit::LogLimit;
use crate::places::network;

/// A relay's connections over TLS, each of which carries the datagrams of one leg.
///
/// Whoever connects may hold any key, and proves it; what it may do says what crosses. Outward each connection has a
/// queue of [`WAITING_MAX`] datagrams and [`STALE_AFTER`]: TCP would bring them all, late.
#[derive(Debug)]
pub struct Server {
    config: Arc<ServerConfig>,
    listening: Option<TcpListener>,
    address: Option<SocketAddr>,
    inlet: Option<Inlet>,
    door: Door,
    legs: Vec<Leg>,
    next_token: usize,
    arrived: Arrived,
    closed: Vec<Route>,
    counters: Counters,
    /// Connections that the kernel could not hand over.
    not_taken: LogLimit,
}

/// What such a server could not do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that were turned away, or ended for a failed handshake or what is no row of datagrams.
    pub refused: u64,
    /// Datagrams that waited in vain.
    pub stale: u64,
}

/// One connection, and what waits for it.
#[derive(Debug)]
struct Leg {
    connection: Connection,
    token: Token,
    /// Whether there may be something to be done.
    is_awake: bool,
    waiting: VecDeque<(Instant, Vec<u8>)>,
}

/// Datagrams of one turn, end to end.
#[derive(Debug, Default)]
struct Arrived {
    bytes: Vec<u8>,
    /// From where each came, and where it ends.
    ends: Vec<(Route, usize)>,
}

impl Server {
    /// Listens at `address`, and takes what is handed over at `inlet`, if these are given.
    ///
    /// `tokens_from`: this and the next are the listeners', later ones the connections'.
    ///
    /// # Errors
    /// One line that names what cannot be listened at, and what to do.
    pub fn open(
        identity: &Identity,
        address: Option<SocketAddr>,
        inlet: Option<&Path>,
        registry: &Registry,
        tokens_from: usize,
    ) -> anyhow::Result<Self> {
        let config = Arc::new(tls::server(identity, None, tls::RELAY)?);
        let listening = address.map(|address| listen(address, registry, Token(tokens_from)));
        let listening = listening.transpose()?;
        let address = listening.as_ref().map(TcpListener::local_addr).transpose()?;
        let inlet = inlet.map(Inlet::open).transpose()?;
        if let Some(inlet) = &inlet {
            let raw = inlet.as_fd().as_raw_fd();
            registry.register(&mut SourceFd(&raw), Token(tokens_from + 1), Interest::READABLE)?;
        }
        Ok(Self {
            config,
            listening,
            address,
            inlet,
            door: Door::default(),
            legs: Vec::new(),
            next_token: tokens_from + 1,
            arrived: Arrived::default(),
            closed: Vec::new(),
            counters: Counters::default(),
            not_taken: LogLimit::default(),
        })
    }

    /// Returns where it listens, with the port that the system chose where none was asked for.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Takes note that the poller has found something for `token`.
    pub fn wake(&mut self, token: Token) {
        if let Some(leg) = self.legs.iter_mut().find(|leg| leg.token == token) {
            leg.is_awake = true;
        }
    }

    /// Looks at each connection, whatever the poller says; closes those by which nobody came whom `is_known` knows. To
    /// be called ten times a second or so.
    pub fn sweep(&mut self, is_known: impl Fn(Route) -> bool, now: Instant) {
        for leg in &mut self.legs {
            leg.is_awake = true;
        }
        let Self { legs, closed, counters, .. } = self;
        legs.retain(|leg| {
            let stays = now.since(leg.connection.began_at()) < UNKNOWN_MAX || is_known(leg.route());
            if !stays {
                counters.refused += 1;
                closed.push(leg.route());
            }
            stays
        });
    }

    /// Does what can be done now; true if more may wait. What came is then there to be [taken](Self::take_arrived).
    pub fn turn(&mut self, registry: &Registry, now: Instant) -> bool {
        let mut more = self.accept(registry, now);
        let Self { legs, arrived, closed, counters, .. } = self;
        legs.retain_mut(|leg| {
            if !std::mem::take(&mut leg.is_awake) {
                return true;
            }
            let route = leg.route();
            match leg.connection.turn(|datagram| arrived.push(route, datagram), now) {
                Ok(waits) => {
                    leg.is_awake = waits;
                    more |= waits;
                    counters.stale += leg.flush(now);
                    true
                }
                Err(end) => {
                    tracing::debug!(remote = %route.remote, %end, "a connection over TLS ends");
                    counters.refused += u64::from(end.is_refusal());
                    closed.push(route);
                    false
                }
            }
        });
        more
    }

    /// Gives each datagram that came to `take`, with the route that it came by, and forgets them.
    pub fn take_arrived(&mut self, mut take: impl FnMut(&mut Self, Route, &[u8])) {
        let mut arrived = std::mem::take(&mut self.arrived);
        let mut begin = 0;
        for (route, end) in &arrived.ends {
            take(self, *route, &arrived.bytes[begin..*end]);
            begin = *end;
        }
        arrived.bytes.clear();
        arrived.ends.clear();
        self.arrived = arrived;
    }

    /// Gives the route of a connection that has ended.
    pub fn poll_closed(&mut self) -> Option<Route> {
        self.closed.pop()
    }

    /// Sends a datagram by `route`, as soon as its connection takes it; false if there is none.
    pub fn send(&mut self, route: Route, datagram: &[u8], now: Instant) -> bool {
        let Some(leg) = self.legs.iter_mut().find(|leg| leg.route() == route) else { return false };
        if leg.waiting.len() == WAITING_MAX {
            leg.waiting.pop_front();
            self.counters.stale += 1;
        }
        leg.waiting.push_back((now, datagram.to_vec()));
        self.counters.stale += leg.flush(now);
        true
    }

    /// Returns what could not be done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes those who have connected, as far as bounds allow it.
    fn accept(&mut self, registry: &Registry, now: Instant) -> bool {
        for _ in 0..ACCEPTS_TURN {
            let Self { listening, not_taken, .. } = self;
            let accepted = listening.as_ref().and_then(|socket| match socket.accept() {
                Ok(accepted) => Some(accepted),
                Err(error) => {
                    if error.kind() != std::io::ErrorKind::WouldBlock
                        && let Some(left_out) = not_taken.take(now)
                    {
                        tracing::warn!(%error, left_out, "no connection for TLS can be taken");
                    }
                    None
                }
            });
            let Some((socket, remote)) = accepted.or_else(|| self.handed_over()) else {
                return false;
            };
            self.admit(socket, remote, registry, now);
        }
        true
    }

    fn handed_over(&self) -> Option<(TcpStream, SocketAddr)> {
        let socket = self.inlet.as_ref()?.take()?;
        let remote = socket.peer_addr().ok()?;
        socket.set_nonblocking(true).ok()?;
        Some((TcpStream::from_std(socket), remote))
    }

    fn admit(&mut self, socket: TcpStream, remote: SocketAddr, registry: &Registry, now: Instant) {
        let beside = |leg: &&Leg| {
            !leg.connection.is_open() && network(leg.route().remote.ip()) == network(remote.ip())
        };
        let besides = self.legs.iter().filter(beside).count();
        let has_room = self.legs.len() < LEGS_MAX && besides < UNPROVEN_NETWORK_MAX;
        if !has_room || !self.door.admits(remote.ip(), now) {
            self.counters.refused += 1;
            return;
        }
        let token = fresh(&mut self.next_token);
        match Connection::accepted(socket, remote, (&self.config, tls::RELAY), registry, token, now)
        {
            Ok(connection) => {
                let waiting = VecDeque::new();
                self.legs.push(Leg { connection, token, is_awake: true, waiting });
            }
            Err(end) => tracing::debug!(%remote, %end, "a connection is not taken"),
        }
    }
}

impl Leg {
    fn route(&self) -> Route {
        Route::stream(0, self.connection.remote())
    }

    /// Gives the connection what waits, as far as it takes it; gives how many have waited too long.
    fn flush(&mut self, now: Instant) -> u64 {
        let mut stale = 0;
        while let Some((since, _)) = self.waiting.front() {
            let is_stale = now.since(*since) >= STALE_AFTER;
            if !is_stale && !self.connection.takes() {
                break;
            }
            let Some((_, datagram)) = self.waiting.pop_front() else { break };
            if is_stale {
                stale += 1;
            } else if self.connection.send(&datagram).is_err() {
                // The next turn finds it broken.
                self.is_awake = true;
                stale += 1;
            }
        }
        stale
    }
}

impl Arrived {
    fn push(&mut self, route: Route, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push((route, self.bytes.len()));
    }
}

/// Those of a relay's most leases, four of each end, on a machine that allows so many files; some kilobytes each.
const LEGS_MAX: usize = 1_024;
const UNPROVEN_NETWORK_MAX: usize = 8;
const ACCEPTS_TURN: usize = 16;
/// Until somebody who has connected has shown a token.
const UNKNOWN_MAX: Duration = Duration::from_secs(10);
/// Of one leg: 80 ms at 8 Mbit/s.
const WAITING_MAX: usize = 64;
/// Half of what a slice is worth something for.
const STALE_AFTER: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
