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

/// An end's side of its relays: proves its key and its address on each socket to each relay, again when
/// the address changes, and keeps the relays at it.
///
/// From then on whatever the end sends from that socket to the relay's address goes to its peer, and what
/// the peer sends there comes from that address: to a session it is a route like any other.
///
/// Sans-I/O, as the session is: after [`admit`](Self::admit) and
/// [`handle_datagram`](Self::handle_datagram) drain [`poll_transmit`](Self::poll_transmit) and re-arm the
/// timer from [`poll_timeout`](Self::poll_timeout).
#[derive(Default)]
pub struct Client {
    legs: Vec<Leg>,
    /// Those who were admitted last, the newest first.
    peers: Vec<PublicKey>,
}

/// What the switchboard says of an end's relays on the way to one peer.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Who this end is.
    pub identity: Identity,
    /// Whom it is to reach.
    pub peer: PublicKey,
    /// Through whom; the first four count.
    pub tickets: Vec<Ticket>,
    /// 32 random bytes, fresh each time; a number in virtual time.
    pub seed: Seed,
}

/// A relay, and the right to use it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Where it is: of each socket the first that it reaches counts. An end that reaches two peers at once
    /// puts another one first for each.
    pub addresses: Vec<SocketAddr>,
    /// Where it takes connections over TLS, for an end whose network lets no datagrams pass.
    pub streams: Vec<SocketAddr>,
    /// Who it is.
    pub relay: PublicKey,
    /// The right.
    pub token: Token,
}

/// A way through a relay, as an end sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// The socket, and the relay's address.
    pub route: Route,
    /// Whom it leads to.
    pub peer: PublicKey,
    /// Whether the relay forwards what comes from this socket.
    pub is_proven: bool,
    /// The way to the relay and back, when it was last measured.
    pub round_trip: Option<Duration>,
    /// What went through so far, both ways.
    pub metered: ByteCount,
    /// What may go through; zero while that is not known.
    pub metered_max: ByteCount,
    /// Why the relay does not let this end in.
    pub refused: Option<Refusal>,
}

/// One socket at one relay.
struct Leg {
    way: Way,
    relay: PublicKey,
    identity: Identity,
    token: Token,
    rng: ChaCha20Rng,
    cookie: Cookie,
    state: State,
    /// When something is to be said.
    due_at: Instant,
    said_at: Option<Instant>,
    /// How often it was said in vain.
    tries: u32,
    /// Whether the relay has said that what is proven came from another address, and nobody has been told.
    has_moved: bool,
    /// The newest probe that is not answered yet: when it was sent, and when it came.
    probe: Option<[Instant; 2]>,
}

enum State {
    Calling { reference: Reference, caller: Caller },
    Holding(Holding),
}

/// What a handshake has yielded.
struct Holding {
    id: LegId,
    key: MacKey,
    /// Of the newest proof.
    number: u64,
    /// Whether the relay knows the newest token.
    token_is_told: bool,
    /// When the newest probe was sent, by the relay's clock: what is said again is not answered.
    probed_at: Instant,
}

impl Client {
    /// Takes the relays on the way to a peer, in place of those that it had for the same one.
    ///
    /// `locals`: the sockets' own addresses, by which a relay's address is chosen. Of the peers the last
    /// two count: a session may wait beside another.
    pub fn admit(&mut self, admission: &Admission, locals: &[SocketAddr], now: Instant) {
        let Admission { identity, peer, tickets, seed } = admission;
        self.peers.retain(|known| known != peer);
        self.peers.insert(0, *peer);
        self.peers.truncate(PEERS_MAX);
        let tickets = &tickets[..tickets.len().min(RELAYS_MAX)];
        let peers = &self.peers;
        let is_listed = |leg: &Leg| tickets.iter().any(|ticket| ticket.relay == leg.relay);
        self.legs.retain(|leg| {
            peers.contains(&leg.way.peer) && (leg.way.peer != *peer || is_listed(leg))
        });
        let mut rng = seed.clone().into_rng();
        for (ticket, route) in
            datagram_routes(tickets, locals).chain(stream_routes(tickets, locals))
        {
            let of_ticket = |leg: &&mut Leg| {
                leg.way.peer == *peer
                    && leg.relay == ticket.relay
                    && leg.way.route.socket == route.socket
            };
            if let Some(leg) = self.legs.iter_mut().find(of_ticket) {
                leg.renew(ticket.token, now);
            } else {
                // Who comes by an address that another peer is reached by takes its place.
                self.legs.retain(|leg| leg.way.route != route);
                self.legs.push(Leg::new(identity, *peer, ticket, route, &mut rng, now));
            }
        }
    }

    /// Takes note that the connection of a stream's route is there, anew: the relay has to be told who comes by it.
    pub fn handle_open(&mut self, route: Route, now: Instant) {
        for leg in self.legs.iter_mut().filter(|leg| leg.way.route == route) {
            (leg.due_at, leg.tries) = (now, 0);
        }
    }

    /// Returns the routes by streams, each with the relay's key: connections that are to be kept.
    pub fn streams(&self) -> impl Iterator<Item = (Route, PublicKey)> + '_ {
        let streams = self.legs.iter().filter(|leg| leg.is_stream());
        streams.map(|leg| (leg.way.route, leg.relay))
    }

    /// Returns whether a relay is reached by `route`.
    pub fn has_route(&self, route: Route) -> bool {
        self.legs.iter().any(|leg| leg.way.route == route)
    }

    /// Takes a datagram that came by `route`; false if it is of no relay, but of a session.
    pub fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) -> bool {
        if !wire::is_of_relay(datagram) {
            return false;
        }
        let leg = self.legs.iter_mut().find(|leg| leg.way.route == route);
        if let Some((leg, message)) = leg.zip(Message::parse(datagram)) {
            leg.handle(&message, now);
        }
        true
    }

    /// Writes the next datagram into `buffer`, old content replaced, and says where it goes.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        for leg in &mut self.legs {
            if leg.write_echo(buffer) {
                return Some(leg.way.route);
            }
        }
        let leg = self.legs.iter_mut().find(|leg| leg.due_at <= now)?;
        leg.write(buffer, now);
        Some(leg.way.route)
    }

    /// Returns when there is something to be said, if nothing comes before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let due = |leg: &Leg| leg.probe.map_or(leg.due_at, |[_, came_at]| came_at.min(leg.due_at));
        self.legs.iter().map(due).min()
    }

    /// Proves each leg again that its relay knows: nothing has come of the peer for a while, and if the end's address
    /// has changed, the relay says so. At most five times a second.
    pub fn hurry(&mut self, now: Instant) {
        let is_settled = |leg: &&mut Leg| leg.way.is_proven && leg.tries == 0 && !leg.is_stream();
        for leg in self.legs.iter_mut().filter(is_settled) {
            if leg.said_at.is_none_or(|at| now.since(at) >= HURRY_PAUSE) {
                leg.due_at = now;
            }
        }
    }

    /// Gives a socket that a relay no longer hears from where it was, once for each time that it says so.
    pub fn poll_moved(&mut self) -> Option<u8> {
        let leg = self.legs.iter_mut().find(|leg| leg.has_moved)?;
        leg.has_moved = false;
        Some(leg.way.route.socket)
    }

    /// Returns the ways, proven or not yet.
    pub fn ways(&self) -> impl Iterator<Item = Way> + '_ {
        self.legs.iter().map(|leg| leg.way)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.ways()).finish()
    }
}

impl Ticket {
    /// Returns where a socket with the address `local` reaches the relay; the first address that it does.
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
        let way = Way {
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
            way,
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
        self.way.route.stream_index().is_some()
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

    /// Begins anew.
    fn call(&mut self, now: Instant) {
        let seat = seat(self.way.route);
        self.state = State::call(&self.identity, self.relay, &self.token, seat, &mut self.rng);
        self.way.is_proven = false;
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
                // The relay has begun anew, or was without this end for long.
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
                    tracing::info!(relay = %self.way.route.remote, ?reason, "a relay refuses");
                    self.way.refused = Some(*reason);
                    self.due_at = now + REFUSED_PAUSE;
                }
            }
            Message::Probe(probe) => self.handle_probe(probe, now),
            // What an end says, no relay does.
            Message::Call { .. } | Message::Prove(_) | Message::Echo(_) => {}
        }
    }

    fn handle_cookie(&mut self, reference: Reference, cookie: Cookie, now: Instant) {
        let asked = match &self.state {
            State::Calling { reference, .. } => reference.0,
            State::Holding(holding) => holding.id.0,
        };
        if asked == reference.0 {
            // One that was shown in vain is not shown again at once.
            if self.cookie != cookie {
                (self.cookie, self.due_at) = (cookie, now);
                // A stream's address is its connection's, and another with each.
                self.has_moved |= self.way.is_proven && !self.is_stream();
            }
        } else if self.way.is_proven
            && self.said_at.is_none_or(|at| now.since(at) >= STRANGER_PAUSE)
        {
            // The relay does not know where a session's datagram came from: the address has changed.
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
                        self.way.refused = None;
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
        if !self.way.is_proven {
            tracing::info!(relay = %self.way.route.remote, "a relay forwards");
        }
        holding.token_is_told = true;
        self.way.is_proven = true;
        self.way.round_trip = self.said_at.map(|at| now.since(at));
        (self.way.metered, self.way.metered_max) = (proven.metered, proven.metered_max);
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

    /// Writes the answer to a probe, if one is due.
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
            self.way.is_proven = false;
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
    /// Returns what stands in a state's place while it changes.
    fn nobody() -> Self {
        let (id, key) = (LegId([0; 8]), MacKey::new([0; 32]));
        Self { id, key, number: 0, token_is_told: true, probed_at: Instant::ZERO }
    }
}

/// Returns the routes by datagrams to these relays: of each one by each socket that reaches it.
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

/// Returns the routes over streams to these relays, four at most: of the first socket's interface to each, and then of
/// the next.
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

/// Returns as which of its sockets an end tells a relay a route's.
fn seat(route: Route) -> u8 {
    match route.stream_index() {
        Some(index) => SEATS_OF_STREAMS_FROM + index.min(STREAM_LOCALS_MAX - 1),
        None => route.socket,
    }
}

/// A relay in place of one that has gone, and one more each.
const RELAYS_MAX: usize = 4;
/// As many as a session has of them beside its other links.
const STREAMS_MAX: usize = 4;
const STREAM_LOCALS_MAX: u8 = SOCKETS_MAX - SEATS_OF_STREAMS_FROM;
/// One whose session is in place, and one whose waits beside.
const PEERS_MAX: usize = 2;
/// Between what is said in vain: as an init's first repetitions.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often a relay that does not know a leg is called at once.
const QUICK_TRIES: u32 = 4;
/// How often something is said in vain before the relay counts as gone: 2.5 s.
const VAIN_TRIES: u32 = 5;
/// Until a relay that refused is called again: another token comes by itself.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
/// Between two answers to a relay that does not know where datagrams come from.
const STRANGER_PAUSE: Duration = Duration::from_millis(50);
const HURRY_PAUSE: Duration = Duration::from_millis(200);
/// Between two proofs of what is proven: within the shortest life of a NAT's mapping that is met in
/// practice, 20 s and more (RFC 4787 asks for two minutes), and of the 30 s after which a relay forgets.
const KEEP_INTERVAL: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
