//! Links over TLS, for networks that block UDP: the event loop's TCP connections.
//!
//! Each connection carries the datagrams of one link, each after its length, within TLS that is
//! authenticated by both keys. The caller pins the other end's key; the listener admits only peers
//! of its sessions. The session encrypts the datagrams in addition. The end that made a connection
//! also restores it after it breaks.

mod accepting;
mod connection;
mod handshake_limit;
mod listening;
mod server;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use server::{Counters, Server};

use mio::{Registry, Token};
use rustls::{ClientConfig, ServerConfig};
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::{Route, relay};
use tautline_units::{Ecn, Instant};

use crate::clock::Clock;
use crate::connection_limit::network;
use crate::control::tls::{self, Admitted};
use crate::drops::Drops;
use crate::sessions::Sessions;
use crate::socket::Local;
use crate::unavailable::comes_by_itself;
use accepting::{Accepted, Accepting};
use connection::{Connection, End};
use handshake_limit::HandshakeLimit;
use listening::listen;
use token::fresh;

/// Settings of an event loop's links over TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Identity that this end shows and proves to the other one.
    pub identity: Identity,
    /// Address on which this end listens for a session's peer; `None` for an end that only calls.
    pub listen: Option<SocketAddr>,
}

/// TCP connections of one event loop, for its links over TLS.
#[derive(Debug)]
pub(crate) struct Streams {
    identity: Identity,
    /// Local ends for calls, in the order of [`Route::stream_index`].
    locals: Vec<Local>,
    listening: Option<Listening>,
    /// Address to listen on as soon as this machine has it, and the time of the last attempt;
    /// `None` if none is pending.
    absent: Option<(SocketAddr, Instant)>,
    incoming: Vec<Connection>,
    calls: Vec<Call>,
    next_token: usize,
}

#[derive(Debug)]
struct Listening {
    accepting: Accepting,
    address: SocketAddr,
    config: Arc<ServerConfig>,
    admitted: Admitted,
    handshake_limit: HandshakeLimit,
}

/// A connection that this end makes, and restores for as long as a session or a relay uses its
/// route.
#[derive(Debug)]
struct Call {
    route: Route,
    key: PublicKey,
    config: Arc<ClientConfig>,
    protocol: &'static [u8],
    asked_at: Instant,
    failures: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting { until: Instant },
    Made(Box<Connection>),
}

impl Streams {
    /// Opens the listening socket, if configured; later, if the machine does not have its address
    /// yet.
    ///
    /// # Errors
    /// One line that names the address and the remedy: it is in use or not permitted.
    pub(crate) fn open(
        tls: Tls,
        locals: &[Local],
        registry: &Registry,
        token: Token,
    ) -> anyhow::Result<Self> {
        let Tls { identity, listen } = tls;
        let (mut listening, mut absent) = (None, None);
        if let Some(address) = listen {
            match Listening::open(address, &identity, registry, token) {
                Ok(open) => listening = Some(open),
                Err(error) if comes_by_itself(&error) => {
                    tracing::warn!("{error:#}; retrying until it can be listened on");
                    absent = Some((address, Instant::ZERO));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Self {
            listening,
            absent,
            identity,
            locals: locals.to_vec(),
            incoming: Vec::new(),
            calls: Vec::new(),
            next_token: TOKENS_FROM,
        })
    }

    /// Returns the listening address, open or pending, with the port that the system chose if none
    /// was requested; `None` if this end only calls.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        let listening = self.listening.as_ref().map(|listening| listening.address);
        listening.or(self.absent.map(|(address, _)| address))
    }

    /// Retries a failed listen, if it is due.
    pub(crate) fn renew(&mut self, registry: &Registry, token: Token, now: Instant) {
        let due = self.absent.filter(|(_, tried_at)| now.since(*tried_at) >= LISTEN_RETRY);
        let Some((address, _)) = due else { return };
        match Listening::open(address, &self.identity, registry, token) {
            Ok(listening) => {
                tracing::info!(%address, "listening for links over TLS");
                (self.listening, self.absent) = (Some(listening), None);
            }
            Err(error) => {
                tracing::debug!("{error:#}");
                self.absent = Some((address, now));
            }
        }
    }

    /// Keeps a connection for each of `routes` that is a stream, with the holder of `key`, a
    /// session's peer, at the other end. Beyond [`CALLS_MAX`] a route is left out, with a warning.
    pub(crate) fn call(&mut self, routes: &[Route], key: PublicKey, now: Instant) {
        self.keep(routes, key, tls::LINK, now);
    }

    /// Keeps a connection over TLS for each route of `relays` that is a stream.
    pub(crate) fn call_relays(&mut self, relays: &relay::Client, now: Instant) {
        for (route, key) in relays.streams() {
            self.keep(&[route], key, tls::RELAY, now);
        }
    }

    fn keep(&mut self, routes: &[Route], key: PublicKey, protocol: &'static [u8], now: Instant) {
        let config = match tls::client(&self.identity, key, protocol) {
            Ok(config) => Arc::new(config),
            Err(error) => return tracing::warn!(%error, "cannot connect links over TLS"),
        };
        for route in routes.iter().filter(|route| route.stream_index().is_some()) {
            let present = self.calls.iter_mut().find(|call| call.route == *route);
            if let Some(call) = present.filter(|call| call.key == key) {
                call.asked_at = now;
                continue;
            }
            self.calls.retain(|call| call.route != *route);
            if self.calls.len() >= CALLS_MAX {
                tracing::warn!(remote = %route.remote, "a link over TLS is refused: there are too \
                                                        many");
                continue;
            }
            self.calls.push(Call::new(*route, key, (config.clone(), protocol), now));
        }
    }

    /// Closes the called connections whose route no session or relay uses, and that were not
    /// requested in the last second.
    pub(crate) fn prune(&mut self, sessions: &Sessions, relays: &relay::Client, now: Instant) {
        self.calls.retain(|call| {
            sessions.has_route(call.route)
                || relays.has_route(call.route)
                || now.since(call.asked_at) < UNUSED_MAX
        });
    }

    /// Makes, accepts, reads and writes connections as far as possible now; returns whether more
    /// may wait.
    pub(crate) fn turn(
        &mut self,
        registry: &Registry,
        (sessions, relays): (&mut Sessions, &mut relay::Client),
        drops: &mut Drops,
        clock: &Clock,
    ) -> bool {
        let now = clock.now();
        let mut more = self.accept(registry, sessions, drops, now);
        self.incoming.retain_mut(|connection| {
            let route = Route::stream(0, connection.remote());
            match serve(connection, route, (&mut *sessions, &mut *relays), drops, clock) {
                Ok(waits) => more |= waits,
                Err(end) => {
                    tracing::debug!(remote = %route.remote, %end, "a link over TLS has ended");
                    drops.stream_ended(&end);
                    sessions.handle_blocked(route, false, now);
                    return false;
                }
            }
            true
        });
        let Self { calls, locals, next_token, .. } = self;
        for call in calls {
            let places = (locals.as_slice(), registry, &mut *next_token);
            more |= call.turn(places, (&mut *sessions, &mut *relays), drops, clock);
        }
        more
    }

    /// Sends a datagram of a session over the connection of `route`; drops and counts it if there
    /// is none, or if it accepts no data now. Informs the sessions if the connection is full
    /// afterwards.
    pub(crate) fn send(
        &mut self,
        route: Route,
        datagram: &[u8],
        sessions: &mut Sessions,
        drops: &mut Drops,
        now: Instant,
    ) {
        let connection = self.connection(route).filter(|connection| connection.is_open());
        let Some(connection) = connection else {
            drops.stream_absent += 1;
            return;
        };
        match connection.send(datagram) {
            Ok(true) => {}
            Ok(false) => drops.send_full += 1,
            // The next turn detects the broken connection.
            Err(_) => drops.send_refused += 1,
        }
        if connection.is_full() {
            sessions.handle_blocked(route, true, now);
        }
    }

    fn connection(&mut self, route: Route) -> Option<&mut Connection> {
        match self.calls.iter_mut().find(|call| call.route == route).map(|call| &mut call.state) {
            Some(State::Made(connection)) => Some(connection),
            Some(State::Waiting { .. }) => None,
            None => self.incoming.iter_mut().find(|it| it.remote() == route.remote),
        }
    }

    /// Accepts new connections within the limits; returns whether more may wait.
    fn accept(
        &mut self,
        registry: &Registry,
        sessions: &Sessions,
        drops: &mut Drops,
        now: Instant,
    ) -> bool {
        let Self { listening: Some(listening), incoming, next_token, .. } = self else {
            return false;
        };
        listening.admitted.set(sessions.peers());
        let is_awaited = sessions.peers().next().is_some();
        for _ in 0..ACCEPTS_TURN {
            let (socket, remote) = match listening.accepting.accept(now) {
                Accepted::Connection(socket, remote) => (socket, remote),
                Accepted::Nothing => return false,
                Accepted::Refused => {
                    drops.stream_not_accepted += 1;
                    give_up(incoming, |it| !it.is_open(), Connection::began_at, drops);
                    return false;
                }
            };
            let unproven = |it: &&Connection| !it.is_open();
            let beside = |it: &&Connection| network(it.remote().ip()) == network(remote.ip());
            let besides = incoming.iter().filter(unproven).filter(beside).count();
            let is_let_in = is_awaited && besides < UNPROVEN_NETWORK_MAX;
            if !is_let_in || !listening.handshake_limit.admits(remote.ip(), now) {
                drops.stream_refused += 1;
                continue;
            }
            if incoming.iter().filter(unproven).count() >= UNPROVEN_MAX {
                give_up(incoming, |it| !it.is_open(), Connection::began_at, drops);
            }
            if incoming.len() >= INCOMING_MAX {
                give_up(incoming, Connection::is_open, Connection::heard_at, drops);
            }
            let config = &listening.config;
            let token = fresh(next_token);
            let config = (config, tls::LINK);
            match Connection::accepted(socket, remote, config, registry, token, now) {
                Ok(connection) => incoming.push(connection),
                Err(end) => tracing::debug!(%remote, %end, "a connection was refused"),
            }
        }
        true
    }
}

impl Listening {
    fn open(
        address: SocketAddr,
        identity: &Identity,
        registry: &Registry,
        token: Token,
    ) -> anyhow::Result<Self> {
        let admitted = Admitted::default();
        let config = Arc::new(tls::server(identity, Some(admitted.clone()), tls::LINK)?);
        let socket = listen(address, registry, token)?;
        let address = socket.local_addr()?;
        Ok(Self {
            accepting: Accepting::new(socket),
            address,
            config,
            admitted,
            handshake_limit: HandshakeLimit::default(),
        })
    }
}

impl Call {
    fn new(
        route: Route,
        key: PublicKey,
        (config, protocol): (Arc<ClientConfig>, &'static [u8]),
        now: Instant,
    ) -> Self {
        let state = State::Waiting { until: now };
        Self { route, key, config, protocol, asked_at: now, failures: 0, state }
    }

    fn turn(
        &mut self,
        (locals, registry, next_token): (&[Local], &Registry, &mut usize),
        (sessions, relays): (&mut Sessions, &mut relay::Client),
        drops: &mut Drops,
        clock: &Clock,
    ) -> bool {
        let (route, now) = (self.route, clock.now());
        let ended = match &mut self.state {
            State::Waiting { until } if now < *until => return false,
            State::Waiting { .. } => {
                let any = Local::default();
                let local = route.stream_index().and_then(|index| locals.get(usize::from(index)));
                let (local, token) = (local.unwrap_or(&any), fresh(next_token));
                let config = (&self.config, self.protocol);
                match Connection::dial(route.remote, local, config, registry, token, now) {
                    Ok(connection) => {
                        self.state = State::Made(Box::new(connection));
                        return true;
                    }
                    Err(end) => end,
                }
            }
            State::Made(connection) => {
                let was_open = connection.is_open();
                match serve(connection, route, (&mut *sessions, &mut *relays), drops, clock) {
                    Ok(more) => {
                        if connection.is_open() && !was_open {
                            relays.handle_open(route, now);
                            tracing::info!(remote = %route.remote, "a link over TLS is connected");
                        }
                        if connection.is_open() && now.since(connection.began_at()) >= SETTLED {
                            self.failures = 0;
                        }
                        return more;
                    }
                    Err(end) => end,
                }
            }
        };
        self.fail(&ended, drops, now);
        sessions.handle_blocked(route, false, now);
        false
    }

    fn fail(&mut self, end: &End, drops: &mut Drops, now: Instant) {
        drops.stream_ended(end);
        let wait = RETRY_MIN.saturating_mul(1 << self.failures.min(8)).min(RETRY_MAX);
        // A repeated failure usually has the same reason.
        match self.failures {
            0 => {
                tracing::warn!(remote = %self.route.remote, %end, "cannot connect a link over TLS")
            }
            _ => tracing::debug!(remote = %self.route.remote, %end, ?wait, "cannot connect a link \
                                                                            over TLS"),
        }
        self.failures = self.failures.saturating_add(1);
        self.state = State::Waiting { until: now + wait };
    }
}

impl Drops {
    fn stream_ended(&mut self, end: &End) {
        match end {
            End::Malformed | End::Protocol => self.stream_malformed += 1,
            End::Refused | End::Tls(_) => self.stream_refused += 1,
            End::Closed | End::Unanswered | End::Silent | End::Broken(_) => {}
        }
    }
}

/// Writes to and reads from one connection over TLS; returns whether more may wait to be read.
/// Informs the sessions if the connection has become full, or is full no longer.
///
/// The clock is read after each datagram: with an earlier time, a pong received meanwhile would
/// contradict the clocks.
fn serve(
    connection: &mut Connection,
    route: Route,
    (sessions, relays): (&mut Sessions, &mut relay::Client),
    drops: &mut Drops,
    clock: &Clock,
) -> Result<bool, End> {
    let was_full = connection.is_full();
    let more = connection.turn(
        |datagram| {
            let now = clock.now();
            if !relays.handle_datagram(route, datagram, now)
                && !sessions.handle_datagram(route, datagram, Ecn::NotEct, now)
            {
                drops.no_session += 1;
            }
        },
        clock.now(),
    )?;
    if connection.is_full() != was_full {
        sessions.handle_blocked(route, connection.is_full(), clock.now());
    }
    Ok(more)
}

/// Closes the connection with the earliest `at` among those that `may_go`, if there is one, and
/// counts it as refused.
fn give_up(
    incoming: &mut Vec<Connection>,
    may_go: impl Fn(&Connection) -> bool,
    at: impl Fn(&Connection) -> Instant,
    drops: &mut Drops,
) {
    let all = incoming.iter().enumerate().filter(|(_, connection)| may_go(connection));
    let oldest = all.min_by_key(|(_, connection)| at(connection)).map(|(place, _)| place);
    if let Some(place) = oldest {
        incoming.swap_remove(place);
        drops.stream_refused += 1;
    }
}

/// Maximum calls: link numbers have four bits. A further one is refused.
const CALLS_MAX: usize = 16;
/// Maximum incoming connections: those of a vehicle's sixteen links, dead ones not yet detected,
/// and unproven ones. For a further one, the one silent for the longest time is closed.
const INCOMING_MAX: usize = 48;
const UNPROVEN_MAX: usize = 16;
const UNPROVEN_NETWORK_MAX: usize = 4;
const ACCEPTS_TURN: usize = 16;
/// Time after which a call is ended that neither the session nor a relay uses: a session soon has a
/// route that was called in advance.
const UNUSED_MAX: Duration = Duration::from_secs(1);
/// Delay before the first new attempt of a call, the same as of the control connection: hardly
/// noticed. It doubles with each failure.
const RETRY_MIN: Duration = Duration::from_millis(200);
/// Maximum delay between two attempts of a call: cheap towards an absent peer.
const RETRY_MAX: Duration = Duration::from_secs(3);
const SETTLED: Duration = Duration::from_secs(3);
/// Interval of attempts to listen, the same as of attempts to open a missing link.
const LISTEN_RETRY: Duration = Duration::from_secs(1);
/// First token of a connection, beyond the tokens of sockets.
const TOKENS_FROM: usize = 1 << 16;

#[cfg(test)]
mod tests;
