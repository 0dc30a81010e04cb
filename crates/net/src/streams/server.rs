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

use super::accepting::{Accepted, Accepting};
use super::connection::Connection;
use super::handshake_limit::HandshakeLimit;
use super::listening::listen;
use super::token::fresh;
use crate::connection_limit::network;
use crate::control::tls;
use crate::handover::Inlet;
use crate::open_files;

/// A relay's connections over TLS, each of which carries the datagrams of one leg.
///
/// A client may use any key, but must prove it; the relay's protocol within decides its rights.
/// Each connection has an outbound queue of [`WAITING_MAX`] datagrams and [`STALE_AFTER`]: TCP
/// alone would deliver all of them, late.
#[derive(Debug)]
pub struct Server {
    config: Arc<ServerConfig>,
    accepting: Option<Accepting>,
    address: Option<SocketAddr>,
    inlet: Option<Inlet>,
    handshake_limit: HandshakeLimit,
    legs: Vec<Leg>,
    legs_max: usize,
    next_token: usize,
    arrived: Arrived,
    closed: Vec<Route>,
    counters: Counters,
}

/// Counters of refused connections and dropped datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that were refused, evicted, ended by a failed handshake or malformed framing, or
    /// closed without a token in time.
    pub refused: u64,
    /// Connections that the kernel could not accept, for instance without a free file.
    pub not_accepted: u64,
    /// Datagrams dropped because they waited too long, their queue was full or their connection
    /// broke.
    pub stale: u64,
}

/// One connection of a relay's leg, and the queue of datagrams to it.
#[derive(Debug)]
struct Leg {
    connection: Connection,
    token: Token,
    /// `true` if the connection may have something to read, or to write from its queue.
    is_awake: bool,
    waiting: VecDeque<(Instant, Vec<u8>)>,
}

/// Datagrams received in one turn over all connections, concatenated.
#[derive(Debug, Default)]
struct Arrived {
    bytes: Vec<u8>,
    /// Route of each datagram, and the offset of its end.
    ends: Vec<(Route, usize)>,
}

impl Server {
    /// Listens on `address`, and accepts handed-over connections at `inlet`, if given.
    ///
    /// `tokens_from`: this token and the next are for the listeners, later ones for the
    /// connections.
    ///
    /// # Errors
    /// One line with the address or path that cannot be used, and the remedy.
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
            accepting: listening.map(Accepting::new),
            address,
            inlet,
            handshake_limit: HandshakeLimit::default(),
            legs: Vec::new(),
            legs_max: open_files::share(2, UNPROVEN_NETWORK_MAX, LEGS_MAX),
            next_token: tokens_from + 1,
            arrived: Arrived::default(),
            closed: Vec::new(),
            counters: Counters::default(),
        })
    }

    /// Returns the listening address, with the port that the system chose if none was requested;
    /// `None` if connections only come by the inlet.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Marks the connection of `token`, which the poller reports as ready, for the next
    /// [`turn`](Self::turn).
    pub fn wake(&mut self, token: Token) {
        if let Some(leg) = self.legs.iter_mut().find(|leg| leg.token == token) {
            leg.is_awake = true;
        }
    }

    /// Lets the next [`turn`](Self::turn) check every connection regardless of events, and closes
    /// those older than [`UNKNOWN_MAX`] whose route `is_known` rejects. Call it about ten times a
    /// second.
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

    /// Performs all work possible now; returns whether more may wait.
    /// [`take_arrived`](Self::take_arrived) then returns the received datagrams.
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
                    tracing::debug!(remote = %route.remote, %end, "a connection over TLS has ended");
                    counters.refused += u64::from(end.is_refusal());
                    closed.push(route);
                    false
                }
            }
        });
        more
    }

    /// Passes each received datagram with its route to `take`, and clears the buffer.
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

    /// Returns the route of a connection that has ended; each one once, in no particular order.
    /// `None` if all were returned.
    pub fn poll_closed(&mut self) -> Option<Route> {
        self.closed.pop()
    }

    /// Sends a datagram by `route`, as soon as its connection accepts it; returns `false` if there
    /// is no connection. A full queue drops its oldest datagram.
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

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Accepts new connections within the limits; returns whether more may wait.
    fn accept(&mut self, registry: &Registry, now: Instant) -> bool {
        for _ in 0..ACCEPTS_TURN {
            let accepted = match self.accepting.as_mut().map(|it| it.accept(now)) {
                Some(Accepted::Connection(socket, remote)) => Some((socket, remote)),
                Some(Accepted::Refused) => {
                    self.counters.not_accepted += 1;
                    self.give_up_unproven();
                    None
                }
                Some(Accepted::Nothing) | None => None,
            };
            let Some((socket, remote)) = accepted.or_else(|| self.handed_over()) else {
                return false;
            };
            self.admit(socket, remote, registry, now);
        }
        true
    }

    /// Closes the oldest connection without a finished handshake.
    fn give_up_unproven(&mut self) {
        let unproven = self.legs.iter().position(|leg| !leg.connection.is_open());
        if let Some(place) = unproven {
            self.counters.refused += 1;
            self.closed.push(self.legs.remove(place).route());
        }
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
        let has_room = self.legs.len() < self.legs_max && besides < UNPROVEN_NETWORK_MAX;
        if !has_room || !self.handshake_limit.admits(remote.ip(), now) {
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
            Err(end) => tracing::debug!(%remote, %end, "a connection was refused"),
        }
    }
}

impl Leg {
    fn route(&self) -> Route {
        Route::stream(0, self.connection.remote())
    }

    /// Sends waiting datagrams as far as the connection accepts them; returns how many were
    /// dropped, as too old or because the connection broke.
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
                // The next turn detects the broken connection.
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

/// Maximum connections, or half of the files that the process may open if that is less; a further
/// one is refused. They are those of 128 leases with four from each end; some kilobytes each.
const LEGS_MAX: usize = 1_024;
const UNPROVEN_NETWORK_MAX: usize = 8;
const ACCEPTS_TURN: usize = 16;
/// Maximum time until a new connection has presented a token; then it is closed.
const UNKNOWN_MAX: Duration = Duration::from_secs(10);
/// Maximum queued datagrams of one leg: 80 ms at 8 Mbit/s; the oldest is dropped for a newer one.
const WAITING_MAX: usize = 64;
/// Time after which a queued datagram is dropped: half of a slice's useful life.
const STALE_AFTER: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests;
