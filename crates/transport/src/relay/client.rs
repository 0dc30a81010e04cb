use std::fmt;
use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_units::{ByteCount, Duration, Instant};

use super::handshake::{Caller, SEATS_OF_STREAMS_FROM, SOCKETS_MAX};
use super::token::Token;
use super::wire::{self, Cookie, LegId, Message, Probe, Proven, Reference, Refusal};
use crate::crypto::{Identity, MacKey, PublicKey, Seed};
use crate::link::Route;
use crate::reach::reaches;

/// An end's side of its relays. It proves the end's key and address on each socket to each relay,
/// repeats this when the address changes, and keeps the relay's state alive.
///
/// After that, everything the end sends from that socket to the relay's address reaches its peer,
/// and the peer's datagrams arrive from that address. For a session it is a route like any other.
///
/// Sans-I/O like the session: after [`admit`](Self::admit) and
/// [`handle_datagram`](Self::handle_datagram) drain [`poll_transmit`](Self::poll_transmit) and
/// re-arm the timer from [`poll_timeout`](Self::poll_timeout).
#[derive(Default)]
pub struct Client {
    legs: Vec<Leg>,
    /// Peers admitted last, newest first, at most [`PEERS_MAX`].
    peers: Vec<PublicKey>,
}

/// The relays assigned by the switchboard between an end and one peer.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Identity of this end.
    pub identity: Identity,
    /// Key of the peer to reach.
    pub peer: PublicKey,
    /// Relays to use; the first four count.
    pub tickets: Vec<Ticket>,
    /// Source of the handshakes' randomness: 32 random bytes, fresh each time; a number in virtual
    /// time.
    pub seed: Seed,
}

/// A relay, and the right to use it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Addresses of the relay; each socket uses the first one that it reaches. For an end with two
    /// peers at the same time, the first address differs per peer.
    pub addresses: Vec<SocketAddr>,
    /// Addresses for connections over TLS, for an end whose network blocks UDP.
    pub streams: Vec<SocketAddr>,
    /// Public key of the relay.
    pub relay: PublicKey,
    /// Token from the switchboard that permits this end to use the relay.
    pub token: Token,
}

/// A route through a relay, as seen by an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LegView {
    /// Local socket, and the relay's address.
    pub route: Route,
    /// Peer that the route leads to.
    pub peer: PublicKey,
    /// True while the relay forwards datagrams from this socket: it has confirmed a proof, and not
    /// left several messages since unanswered.
    pub is_proven: bool,
    /// Round-trip time to the relay at the last confirmed proof; `None` before the first.
    pub round_trip: Option<Duration>,
    /// Bytes of the socket that the relay has relayed, both directions together, as of the last
    /// confirmed proof; zero before the first.
    pub metered: ByteCount,
    /// Maximum of `metered` that the relay allows; zero while unknown.
    pub metered_max: ByteCount,
    /// Reason why the relay refused the last call; `None` if it did not, or has admitted this end
    /// since.
    pub refused: Option<Refusal>,
}

/// One socket of this end at one relay, on the way to one peer.
struct Leg {
    view: LegView,
    relay: PublicKey,
    identity: Identity,
    token: Token,
    rng: ChaCha20Rng,
    cookie: Cookie,
    state: State,
    /// Time of the next call or proof.
    due_at: Instant,
    /// Send time of the last call or proof; `None` before the first.
    said_at: Option<Instant>,
    /// Number of messages sent in a row without an answer.
    tries: u32,
    /// True if the relay reported another source address of a proven leg, until
    /// [`Client::poll_moved`] returns its socket.
    has_moved: bool,
    /// Newest unanswered probe of the relay: its send time by the relay's clock, and its arrival
    /// time by ours. `None` once it is answered.
    probe: Option<[Instant; 2]>,
}

enum State {
    Calling { reference: Reference, caller: Caller },
    Holding(Holding),
}

/// A leg's id and key from a completed handshake, with the state of what was exchanged since.
struct Holding {
    id: LegId,
    key: MacKey,
    /// Number of the newest proof sent; 0 before the first.
    number: u64,
    /// True if the relay is known to have the newest token; otherwise proofs carry it.
    token_is_told: bool,
    /// Send time of the newest probe received, by the relay's clock; one that is not newer is not
    /// answered. [`Instant::ZERO`] before the first.
    probed_at: Instant,
}

impl Client {
    /// Sets the relays for a peer, in place of its previous ones. Legs at relays that remain are
    /// kept and get the new token.
    ///
    /// `locals` are the sockets' own addresses, by which a relay's address is chosen. The two peers
    /// admitted last are kept, because a successor session may wait next to the present one.
    pub fn admit(&mut self, admission: &Admission, locals: &[SocketAddr], now: Instant) {
        let Admission { identity, peer, tickets, seed } = admission;
        self.peers.retain(|known| known != peer);
        self.peers.insert(0, *peer);
        self.peers.truncate(PEERS_MAX);
        let tickets = &tickets[..tickets.len().min(RELAYS_MAX)];
        let peers = &self.peers;
        let is_listed = |leg: &Leg| tickets.iter().any(|ticket| ticket.relay == leg.relay);
        self.legs.retain(|leg| {
            peers.contains(&leg.view.peer) && (leg.view.peer != *peer || is_listed(leg))
        });
        let mut rng = seed.clone().into_rng();
        for (ticket, route) in
            datagram_routes(tickets, locals).chain(stream_routes(tickets, locals))
        {
            let of_ticket = |leg: &&mut Leg| {
                leg.view.peer == *peer
                    && leg.relay == ticket.relay
                    && leg.view.route.socket == route.socket
            };
            if let Some(leg) = self.legs.iter_mut().find(of_ticket) {
                leg.renew(ticket.token, now);
            } else {
                // A new peer at the same address replaces the old one.
                self.legs.retain(|leg| leg.view.route != route);
                self.legs.push(Leg::new(identity, *peer, ticket, route, &mut rng, now));
            }
        }
    }

    /// Records that the connection of a stream's route was opened: makes the next message on it
    /// due, because the relay must identify this end again.
    pub fn handle_open(&mut self, route: Route, now: Instant) {
        for leg in self.legs.iter_mut().filter(|leg| leg.view.route == route) {
            (leg.due_at, leg.tries) = (now, 0);
        }
    }

    /// Returns the stream routes, each with the relay's key: connections to keep open.
    pub fn streams(&self) -> impl Iterator<Item = (Route, PublicKey)> + '_ {
        let streams = self.legs.iter().filter(|leg| leg.is_stream());
        streams.map(|leg| (leg.view.route, leg.relay))
    }

    /// Returns whether `route` leads to a relay in use, proven or not yet.
    pub fn has_route(&self, route: Route) -> bool {
        self.legs.iter().any(|leg| leg.view.route == route)
    }

    /// Handles a datagram received by `route`; returns false if it belongs to a session, not to a
    /// relay. A relay's message that is malformed, or comes by an unknown route, is ignored.
    pub fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) -> bool {
        if !wire::is_of_relay(datagram) {
            return false;
        }
        let leg = self.legs.iter_mut().find(|leg| leg.view.route == route);
        if let Some((leg, message)) = leg.zip(Message::parse(datagram)) {
            leg.handle(&message, now);
        }
        true
    }

    /// Writes the next datagram into `buffer`, replacing its content, and returns its route; `None`
    /// if nothing is due now.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        for leg in &mut self.legs {
            if leg.write_echo(buffer) {
                return Some(leg.view.route);
            }
        }
        let leg = self.legs.iter_mut().find(|leg| leg.due_at <= now)?;
        leg.write(buffer, now);
        Some(leg.view.route)
    }

    /// Returns when the next message is due, if nothing arrives before; `None` without relays.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = |leg: &Leg| leg.probe.map_or(leg.due_at, |[_, came_at]| came_at.min(leg.due_at));
        self.legs.iter().map(due).min()
    }

    /// Makes a new proof due on each proven leg over UDP whose last message was answered, at most
    /// five times a second, because nothing has arrived from the peer for a while. If the end's
    /// address has changed, the relay reports it.
    pub fn hurry(&mut self, now: Instant) {
        let is_settled = |leg: &&mut Leg| leg.view.is_proven && leg.tries == 0 && !leg.is_stream();
        for leg in self.legs.iter_mut().filter(is_settled) {
            if leg.said_at.is_none_or(|at| now.since(at) >= HURRY_PAUSE) {
                leg.due_at = now;
            }
        }
    }

    /// Returns the index of a socket whose source address has changed according to a relay, once
    /// per report; `None` if there is no further one.
    pub fn poll_moved(&mut self) -> Option<u8> {
        let leg = self.legs.iter_mut().find(|leg| leg.has_moved)?;
        leg.has_moved = false;
        Some(leg.view.route.socket)
    }

    /// Returns the relayed routes, proven or not yet.
    pub fn legs(&self) -> impl Iterator<Item = LegView> + '_ {
        self.legs.iter().map(|leg| leg.view)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.legs()).finish()
    }
}

impl Ticket {
    /// Returns the first address of the relay that a socket with the address `local` reaches;
    /// `None` if it reaches none.
    pub fn address_for(&self, local: &SocketAddr) -> Option<SocketAddr> {
        self.addresses.iter().find(|remote| reaches(local, remote)).copied()
    }
}

impl Leg {
    fn new(
        identity: &Identity,
        peer: PublicKey,
        ticket: &Ticket,
        route: Route,
        rng: &mut ChaCha20Rng,
        now: Instant,
    ) -> Self {
        let mut seed = [0; 32];
        rng.fill_bytes(&mut seed);
        let mut rng = Seed::from(seed).into_rng();
        let view = LegView {
            route,
            peer,
            is_proven: false,
            round_trip: None,
            metered: ByteCount::ZERO,
            metered_max: ByteCount::ZERO,
            refused: None,
        };
        let state = State::call(identity, ticket.relay, &ticket.token, seat(route), &mut rng);
        Self {
            view,
            relay: ticket.relay,
            identity: identity.clone(),
            token: ticket.token,
            rng,
            cookie: Cookie::default(),
            state,
            due_at: now,
            said_at: None,
            tries: 0,
            has_moved: false,
            probe: None,
        }
    }

    fn is_stream(&self) -> bool {
        self.view.route.stream_index().is_some()
    }

    fn renew(&mut self, token: Token, now: Instant) {
        if self.token == token {
            return;
        }
        self.token = token;
        match &mut self.state {
            State::Calling { .. } => self.call(now),
            State::Holding(holding) => {
                holding.token_is_told = false;
                (self.due_at, self.tries) = (now, 0);
            }
        }
    }

    /// Starts a new handshake with the relay, whose first message is due at `now`.
    fn call(&mut self, now: Instant) {
        let seat = seat(self.view.route);
        self.state = State::call(&self.identity, self.relay, &self.token, seat, &mut self.rng);
        self.view.is_proven = false;
        (self.due_at, self.tries) = (now, 0);
    }

    fn handle(&mut self, message: &Message<'_>, now: Instant) {
        match message {
            Message::Cookie { reference, cookie } => self.handle_cookie(*reference, *cookie, now),
            Message::Welcome { reference, message } => {
                self.handle_welcome(*reference, &message[..], now);
            }
            Message::Proven(proven) => self.handle_proven(proven, now),
            Message::Gone { leg } => {
                // The relay has restarted, or has not received anything from this end for long.
                let is_ours = matches!(&self.state, State::Holding(holding) if holding.id == *leg);
                if is_ours {
                    let pause = if self.tries > QUICK_TRIES { PAUSE_MAX } else { Duration::ZERO };
                    let tries = self.tries;
                    self.call(now + pause);
                    self.tries = tries;
                }
            }
            Message::Refused { reference, reason } => {
                if matches!(&self.state, State::Calling { reference: own, .. } if own == reference)
                {
                    tracing::info!(relay = %self.view.route.remote, ?reason, "a relay refuses");
                    self.view.refused = Some(*reason);
                    self.due_at = now + REFUSED_PAUSE;
                }
            }
            Message::Probe(probe) => self.handle_probe(probe, now),
            // Messages that only ends send.
            Message::Call { .. } | Message::Prove(_) | Message::Echo(_) => {}
        }
    }

    fn handle_cookie(&mut self, reference: Reference, cookie: Cookie, now: Instant) {
        let asked = match &self.state {
            State::Calling { reference, .. } => reference.0,
            State::Holding(holding) => holding.id.0,
        };
        if asked == reference.0 {
            // A cookie that was sent without success is not resent at once.
            if self.cookie != cookie {
                (self.cookie, self.due_at) = (cookie, now);
                // A stream's address is that of its connection, and changes with each.
                self.has_moved |= self.view.is_proven && !self.is_stream();
            }
        } else if self.view.is_proven
            && self.said_at.is_none_or(|at| now.since(at) >= STRANGER_PAUSE)
        {
            // The relay does not know the source of a session's datagram: the address has changed.
            self.due_at = now;
        }
    }

    fn handle_welcome(&mut self, reference: Reference, message: &[u8], now: Instant) {
        let unsaid = State::Holding(Holding::nobody());
        match std::mem::replace(&mut self.state, unsaid) {
            State::Calling { reference: own, caller } if own == reference => {
                match caller.finish(message) {
                    Ok((id, key)) => {
                        let holding = Holding { id, key, ..Holding::nobody() };
                        self.state = State::Holding(holding);
                        self.view.refused = None;
                        (self.due_at, self.tries) = (now, 0);
                    }
                    Err(caller) => self.state = State::Calling { reference: own, caller },
                }
            }
            other => self.state = other,
        }
    }

    fn handle_proven(&mut self, proven: &Proven<'_>, now: Instant) {
        let State::Holding(holding) = &mut self.state else { return };
        if proven.leg != holding.id
            || proven.number != holding.number
            || !proven.is_under(&holding.key)
        {
            return;
        }
        if !self.view.is_proven {
            tracing::info!(relay = %self.view.route.remote, "a relay forwards");
        }
        holding.token_is_told = true;
        self.view.is_proven = true;
        self.view.round_trip = self.said_at.map(|at| now.since(at));
        (self.view.metered, self.view.metered_max) = (proven.metered, proven.metered_max);
        (self.due_at, self.tries) = (now + KEEP_INTERVAL, 0);
    }

    fn handle_probe(&mut self, probe: &Probe<'_>, now: Instant) {
        let State::Holding(holding) = &mut self.state else { return };
        let is_new = probe.leg == holding.id && probe.sent_at > holding.probed_at;
        if is_new && probe.is_under(&holding.key) {
            holding.probed_at = probe.sent_at;
            self.probe = Some([probe.sent_at, now]);
        }
    }

    /// Writes the answer to a probe into `buffer`; returns false if none is due.
    fn write_echo(&mut self, buffer: &mut Vec<u8>) -> bool {
        let Some([sent_at, seen_at]) = self.probe.take() else { return false };
        let State::Holding(holding) = &self.state else { return false };
        wire::write_echo(buffer, holding.id, sent_at, seen_at, &holding.key);
        true
    }

    fn write(&mut self, buffer: &mut Vec<u8>, now: Instant) {
        match &mut self.state {
            State::Calling { reference, caller } => {
                wire::write_call(buffer, *reference, self.cookie, caller.message());
            }
            State::Holding(holding) => {
                holding.number += 1;
                let token = (!holding.token_is_told).then_some(self.token.as_bytes());
                let Holding { id, key, number, .. } = holding;
                wire::write_prove(buffer, *id, *number, self.cookie, token, key);
            }
        }
        if self.tries > VAIN_TRIES {
            self.view.is_proven = false;
        }
        let pause = PAUSE_MIN.saturating_mul(1 << self.tries.min(8)).min(PAUSE_MAX);
        (self.said_at, self.due_at) = (Some(now), now + pause);
        self.tries = self.tries.saturating_add(1);
    }
}

impl State {
    fn call(
        identity: &Identity,
        relay: PublicKey,
        token: &Token,
        seat: u8,
        rng: &mut ChaCha20Rng,
    ) -> Self {
        let mut reference = [0; 8];
        rng.fill_bytes(&mut reference);
        let caller = Caller::new(identity, &relay, token, seat, rng);
        Self::Calling { reference: Reference(reference), caller }
    }
}

impl Holding {
    /// Returns a placeholder for the time of a state change, without an id or a key.
    fn nobody() -> Self {
        let (id, key) = (LegId([0; 8]), MacKey::new([0; 32]));
        Self { id, key, number: 0, token_is_told: true, probed_at: Instant::ZERO }
    }
}

/// Returns the datagram routes to the relays of `tickets`: one for each relay and each of the first
/// twelve sockets that reaches it.
pub fn datagram_routes<'a>(
    tickets: &'a [Ticket],
    locals: &'a [SocketAddr],
) -> impl Iterator<Item = (&'a Ticket, Route)> {
    let of = move |ticket: &'a Ticket| {
        let sockets = (0..SEATS_OF_STREAMS_FROM).zip(locals);
        sockets.filter_map(move |(socket, local)| {
            Some((ticket, Route { socket, remote: ticket.address_for(local)? }))
        })
    };
    tickets.iter().flat_map(of)
}

/// Returns the stream routes to the relays of `tickets`, at most four: from the first socket's
/// interface to each relay that it reaches, then from the next, up to the fourth socket.
pub fn stream_routes<'a>(
    tickets: &'a [Ticket],
    locals: &'a [SocketAddr],
) -> impl Iterator<Item = (&'a Ticket, Route)> {
    let from = |(index, local): (u8, &'a SocketAddr)| {
        let reachable = tickets.iter().filter_map(move |ticket| {
            let remote = ticket.streams.iter().find(|remote| reaches(local, remote))?;
            Some((ticket, Route::stream(index, *remote)))
        });
        reachable.collect::<Vec<_>>()
    };
    (0..STREAM_LOCALS_MAX).zip(locals).flat_map(from).take(STREAMS_MAX)
}

/// Returns the socket number under which an end presents a route to a relay: the socket's index,
/// and 12 to 15 for streams, of which those from the fourth on share 15.
fn seat(route: Route) -> u8 {
    match route.stream_index() {
        Some(index) => SEATS_OF_STREAMS_FROM + index.min(STREAM_LOCALS_MAX - 1),
        None => route.socket,
    }
}

/// Maximum number of relays for one peer, beyond which they are ignored: two, each with a
/// replacement that succeeds a relay that is gone.
const RELAYS_MAX: usize = 4;
/// Maximum number of streams: as many as a session has next to its other links.
const STREAMS_MAX: usize = 4;
const STREAM_LOCALS_MAX: u8 = SOCKETS_MAX - SEATS_OF_STREAMS_FROM;
/// Maximum number of peers, beyond which the one admitted earliest is dropped: one of the present
/// session, and one of its successor.
const PEERS_MAX: usize = 2;
/// Initial interval between unanswered messages, as between the first resends of an init.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Number of unanswered messages up to which a relay that does not know a leg is called again
/// without a pause.
const QUICK_TRIES: u32 = 4;
/// Number of unanswered messages after which a leg no longer counts as proven: 2.5 s.
const VAIN_TRIES: u32 = 5;
/// Time from a refusal to the next call; a new token triggers a call sooner.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
/// Minimum time after the last call or proof before a relay's report of an unknown source address
/// makes a new proof due.
const STRANGER_PAUSE: Duration = Duration::from_millis(50);
const HURRY_PAUSE: Duration = Duration::from_millis(200);
/// Interval between proofs. It is below the 30 s after which a relay drops a leg, and below the
/// lifetime of NAT mappings. In practice these last 20 s and more; RFC 4787 demands two minutes.
const KEEP_INTERVAL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
