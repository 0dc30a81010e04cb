//! State and decisions of a relay, without sockets and clocks.

mod cookies;
mod lease;
mod probing;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tautline_transport::crypto::{Identity, MacKey};
use tautline_transport::relay::wire::{
    self, Cookie, Echo, LegId, Message, Prove, Reference, Refusal,
};
use tautline_transport::relay::{Call, Grant, Side, Token, TokenError};
use tautline_transport::stun::{self, CHANGE_REQUEST};
use tautline_transport::{LinkNumber, PublicKey, Route};
use tautline_units::{ByteCount, Duration, Instant};

use crate::config::Limits;
use crate::counters::{Counters, Dropped};
use cookies::Cookies;
use lease::{Bound, Lease, Seat};
pub use probing::RoundTrip;
use probing::{Probing, RoundTrips};

/// The leases of a relay, the addresses of their ends, and the routes between them.
///
/// Invariants: a datagram of a session goes only between addresses that the two ends of the same
/// lease have proven. An answer is never longer than its request, except for STUN, which has its
/// own rate limit. Nothing sent before a proof affects the ends that are present.
pub struct Table {
    identity: Identity,
    switchboard: PublicKey,
    limits: Limits,
    /// Unix time at [`Instant::ZERO`].
    unix_start: Duration,
    rng: ChaCha20Rng,
    cookies: Cookies,
    leases: BTreeMap<LeaseNumber, Lease>,
    by_keys: BTreeMap<[PublicKey; 2], LeaseNumber>,
    next_lease: u32,
    legs: BTreeMap<LegId, Leg>,
    by_route: BTreeMap<Route, Place>,
    /// Admitted legs without a proof yet, the oldest first.
    unproven: VecDeque<LegId>,
    budget: Budget,
    counters: Counters,
    round_trips: RoundTrips,
    swept_at: Instant,
}

/// Outcome of a received datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// To be forwarded unchanged over this route.
    Forwarded(Route),
    /// Not forwarded: the bytes in the answer buffer are to be sent back to its source.
    Answered,
    /// Neither forwarded nor answered: dropped, or the answer to one of the relay's probes.
    Dropped,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct LeaseNumber(u32);

/// One socket of one end of one lease.
#[derive(Clone, Copy, Debug)]
struct Place {
    lease: LeaseNumber,
    seat: Seat,
}

/// An admitted socket of an end, before and after it has proven its address.
#[derive(Debug)]
struct Leg {
    place: Place,
    key: MacKey,
    /// Number of the newest accepted proof of the address, 0 before the first; a proof with no
    /// higher number is a repetition.
    number: u64,
    heard_at: Instant,
    /// Latest expiry of the tokens that the leg has presented.
    ends_at: Instant,
    probing: Probing,
}

/// Counts of calls, of hints (cookies in answer to sessions' datagrams) and of requests for an
/// address in the current second, for the rate limits of senders without a proof.
#[derive(Debug, Default)]
struct Budget {
    since: Instant,
    calls: u32,
    by_network: BTreeMap<IpAddr, u32>,
    hints: u32,
    addresses: BTreeMap<IpAddr, u32>,
}

impl Table {
    /// Creates the table of a relay without ends.
    ///
    /// `unix_start`: the Unix time at [`Instant::ZERO`], which determines when tokens expire.
    /// `seed`: 32 random bytes.
    pub fn new(
        identity: Identity,
        switchboard: PublicKey,
        limits: Limits,
        unix_start: Duration,
        seed: [u8; 32],
    ) -> Self {
        let mut rng = ChaCha20Rng::from_seed(seed);
        let mut key = [0; MacKey::BYTES];
        rng.fill_bytes(&mut key);
        Self {
            identity,
            switchboard,
            limits,
            unix_start,
            rng,
            cookies: Cookies::new(key),
            leases: BTreeMap::new(),
            by_keys: BTreeMap::new(),
            next_lease: 0,
            legs: BTreeMap::new(),
            by_route: BTreeMap::new(),
            unproven: VecDeque::new(),
            budget: Budget::default(),
            counters: Counters::default(),
            round_trips: RoundTrips::default(),
            swept_at: Instant::ZERO,
        }
    }

    /// Handles a datagram from `from`, the receiving socket and the sender's address; returns what
    /// is to be done, and counts a drop. `answer` is replaced by the answer, or cleared if there is
    /// none.
    pub fn handle_datagram(
        &mut self,
        from: Route,
        datagram: &[u8],
        answer: &mut Vec<u8>,
        now: Instant,
    ) -> Fate {
        answer.clear();
        if stun::is_stun(datagram) {
            return match self.tell_address(from, datagram, answer, now) {
                Ok(()) => Fate::Answered,
                Err(why) => {
                    self.counters.drop(why);
                    Fate::Dropped
                }
            };
        }
        let handled = match wire::is_of_relay(datagram) {
            false => match self.forward(from, datagram, now) {
                Err(Dropped::Unproven) => {
                    self.hint(from, datagram, answer, now);
                    Err(Dropped::Unproven)
                }
                handled => handled.map(Some),
            },
            true => self.handle_message(from, datagram, answer, now).map(|()| None),
        };
        // A longer answer would make the relay an amplifier for reflection attacks.
        debug_assert!(answer.len() <= datagram.len(), "an answer longer than its question");
        match handled {
            Ok(Some(to)) => Fate::Forwarded(to),
            // The answer to a probe is itself not answered.
            Ok(None) if answer.is_empty() => Fate::Dropped,
            Ok(None) => Fate::Answered,
            Err(why) => {
                self.counters.drop(why);
                if answer.is_empty() { Fate::Dropped } else { Fate::Answered }
            }
        }
    }

    /// Removes legs without a recent proof or with expired tokens, and leases that are over; does
    /// nothing within a second of the last time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if now.since(self.swept_at) < SWEEP_INTERVAL {
            return;
        }
        self.swept_at = now;
        let leases = &self.leases;
        let over = self.legs.iter().filter(|(id, leg)| {
            let lease = leases.get(&leg.place.lease);
            let bound = lease.and_then(|lease| lease.bound(leg.place.seat));
            let longest = match bound.is_some_and(|bound| bound.leg == **id) {
                true => LEG_TIMEOUT,
                false => UNPROVEN_MAX,
            };
            leg.ends_at <= now || now.since(leg.heard_at) >= longest
        });
        let over: Vec<LegId> = over.map(|(id, _)| *id).collect();
        for id in over {
            self.forget(id);
        }
        let legs = &self.legs;
        self.unproven.retain(|id| legs.contains_key(id));
        self.leases.retain(|_, lease| !lease.is_over(now));
        let leases = &self.leases;
        self.by_keys.retain(|_, number| leases.contains_key(number));
    }

    /// Handles the end of the connection at `route`: its leg is removed.
    pub fn handle_closed(&mut self, route: Route) {
        let Some(place) = self.by_route.get(&route) else { return };
        let lease = self.leases.get(&place.lease);
        let bound = lease.and_then(|lease| lease.bound(place.seat));
        if let Some(bound) = bound.filter(|bound| bound.route == route) {
            self.forget(bound.leg);
        }
    }

    /// Returns whether an end has proven its address at `route`.
    pub fn is_proven(&self, route: Route) -> bool {
        self.by_route.contains_key(&route)
    }

    /// Returns whether an end has proven its address at a route of this socket.
    pub(crate) fn has_socket(&self, socket: u8) -> bool {
        self.by_route.keys().any(|route| route.socket == socket)
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        let (leases, legs) = (self.leases.len() as u64, self.by_route.len() as u64);
        Counters { leases, legs, ..self.counters.clone() }
    }

    /// Counts datagrams to be forwarded, answers and probes that could not be sent.
    pub fn count_unsent(&mut self, datagrams: usize) {
        for _ in 0..datagrams {
            self.counters.drop(Dropped::NotSent);
        }
    }

    /// Returns the legs to probe at `now`: each once a second, if its end answers probes.
    pub fn due_probes(&self, now: Instant) -> Vec<LegId> {
        let due = self.legs.iter().filter(|(_, leg)| leg.probing.is_due(now));
        due.map(|(id, _)| *id).collect()
    }

    /// Writes a probe of a leg into `out`, replacing its content, makes its next one due a second
    /// later, and returns its route. Returns `None` without a probe if the leg is unknown or has
    /// not proven its address.
    pub fn write_probe(&mut self, id: LegId, out: &mut Vec<u8>, now: Instant) -> Option<Route> {
        let leg = self.legs.get_mut(&id)?;
        leg.probing.send(now);
        let lease = self.leases.get(&leg.place.lease)?;
        let bound = lease.bound(leg.place.seat).filter(|bound| bound.leg == id)?;
        wire::write_probe(out, id, now, &leg.key);
        Some(bound.route)
    }

    /// Returns the oldest measured round trip that was not returned yet; `None` if all were.
    pub fn poll_round_trip(&mut self) -> Option<RoundTrip> {
        self.round_trips.pop()
    }

    fn handle_echo(&mut self, echo: &Echo<'_>, now: Instant) -> Result<(), Dropped> {
        let leg = self.legs.get_mut(&echo.leg).ok_or(Dropped::Unproven)?;
        if !echo.is_under(&leg.key) {
            return Err(Dropped::Forged);
        }
        if !leg.probing.answer(echo.sent_at) {
            return Err(Dropped::Replayed);
        }
        let lease = self.leases.get(&leg.place.lease).expect("a leg has a lease");
        let Seat { side, socket } = leg.place.seat;
        let (sent_at, seen_at) = (echo.sent_at, echo.seen_at);
        let one_way = leg.probing.compare(sent_at, seen_at, now);
        let key = lease.key(side);
        let trip = RoundTrip { side, key, socket, sent_at, seen_at, back_at: now, one_way };
        self.counters.latency_lost += u64::from(!self.round_trips.push(trip));
        Ok(())
    }

    fn forward(&mut self, from: Route, datagram: &[u8], now: Instant) -> Result<Route, Dropped> {
        let place = *self.by_route.get(&from).ok_or(Dropped::Unproven)?;
        let link = link_of(datagram).ok_or(Dropped::Malformed)?;
        let lease = self.leases.get_mut(&place.lease).expect("a known leg has a lease");
        let bytes = ByteCount::of(datagram);
        let to = lease.forward(place.seat, link, bytes, &self.limits, now)?;
        self.counters.forwarded += 1;
        self.counters.bytes_forwarded += bytes;
        Ok(to)
    }

    /// Answers a STUN request with its source address ([RFC8489]), or with a refusal if it has an
    /// attribute that a relay does not support. Fails if it is malformed or beyond the limit per
    /// second.
    fn tell_address(
        &mut self,
        from: Route,
        datagram: &[u8],
        answer: &mut Vec<u8>,
        now: Instant,
    ) -> Result<(), Dropped> {
        let Ok(stun::Message::Request(mut request)) = stun::Message::parse(datagram) else {
            return Err(Dropped::Malformed);
        };
        if !self.budget.address(from.remote.ip(), now) {
            return Err(Dropped::OverAddresses);
        }
        if request.change != stun::Change::default() {
            request.unknown.push(CHANGE_REQUEST);
        }
        let asked_from = SocketAddr::new(from.remote.ip().to_canonical(), from.remote.port());
        *answer = stun::answer(&request, asked_from, None);
        self.counters.addresses_told += 1;
        Ok(())
    }

    /// Answers a session's datagram from an unproven address with a cookie, because the address of
    /// a known end may have changed. Does nothing if the datagram is shorter than the answer, or
    /// beyond the limit per second.
    fn hint(&mut self, from: Route, datagram: &[u8], answer: &mut Vec<u8>, now: Instant) {
        let is_told = datagram.len() >= wire::COOKIE_BYTES && link_of(datagram).is_some();
        if let Some(reference) = wire::reference_of(datagram).filter(|_| is_told)
            && self.budget.hint(now)
        {
            wire::write_cookie(answer, reference, self.cookies.bake(from, now));
        }
    }

    fn handle_message(
        &mut self,
        from: Route,
        datagram: &[u8],
        answer: &mut Vec<u8>,
        now: Instant,
    ) -> Result<(), Dropped> {
        match Message::parse(datagram).ok_or(Dropped::Malformed)? {
            Message::Call { reference, cookie, message } => {
                let call = Called { reference, cookie, message };
                self.handle_call(from, &call, answer, now)
            }
            Message::Prove(prove) => self.handle_prove(from, &prove, answer, now),
            Message::Echo(echo) => self.handle_echo(&echo, now),
            // A relay only sends these, it never accepts them.
            Message::Cookie { .. }
            | Message::Welcome { .. }
            | Message::Proven(_)
            | Message::Gone { .. }
            | Message::Probe(_)
            | Message::Refused { .. } => Err(Dropped::Malformed),
        }
    }

    fn handle_call(
        &mut self,
        from: Route,
        call: &Called<'_>,
        answer: &mut Vec<u8>,
        now: Instant,
    ) -> Result<(), Dropped> {
        if !self.cookies.is_of(call.cookie, from, now) {
            wire::write_cookie(answer, call.reference, self.cookies.bake(from, now));
            return Ok(());
        }
        if !self.budget.call(from.remote.ip(), now) {
            return Err(Dropped::OverCalls);
        }
        let read = Call::read(&self.identity, call.message, &mut self.rng);
        let read = read.ok_or(Dropped::Forged)?;
        let admitted = self.grant(&read, now).and_then(|grant| {
            let lease = self.lease(&grant, now)?;
            Ok((lease, grant))
        });
        let (lease, grant) = match admitted {
            Ok(admitted) => admitted,
            Err(reason) => {
                wire::write_refused(answer, call.reference, reason);
                return Err(Dropped::Refused);
            }
        };
        let seat = Seat { side: grant.side, socket: read.socket() };
        let (mut key, id) = ([0; MacKey::BYTES], self.draw_id());
        self.rng.fill_bytes(&mut key);
        let (key, place) = (MacKey::new(key), Place { lease, seat });
        let ends_at = self.instant(grant.until, now);
        wire::write_welcome(answer, call.reference, &read.welcome(id, &key));
        let probing = Probing::default();
        self.legs.insert(id, Leg { place, key, number: 0, heard_at: now, ends_at, probing });
        self.unproven.push_back(id);
        if self.unproven.len() > UNPROVEN_COUNT_MAX
            && let Some(oldest) = self.unproven.pop_front()
        {
            self.forget(oldest);
        }
        self.counters.welcomed += 1;
        Ok(())
    }

    fn handle_prove(
        &mut self,
        from: Route,
        prove: &Prove<'_>,
        answer: &mut Vec<u8>,
        now: Instant,
    ) -> Result<(), Dropped> {
        let Some(leg) = self.legs.get(&prove.leg) else {
            wire::write_gone(answer, prove.leg);
            return Ok(());
        };
        if !prove.is_under(&leg.key) {
            return Err(Dropped::Forged);
        }
        if prove.number <= leg.number {
            return Err(Dropped::Replayed);
        }
        let place = leg.place;
        let lease = self.leases.get(&place.lease).expect("a leg has a lease");
        let old = lease.bound(place.seat).filter(|bound| bound.leg == prove.leg);
        let is_there = old.is_some_and(|bound| bound.route == from);
        if !is_there && !self.cookies.is_of(prove.cookie, from, now) {
            wire::write_cookie(answer, Reference(prove.leg.0), self.cookies.bake(from, now));
            return Ok(());
        }
        let later = prove.token.and_then(|token| self.later(place, token.into(), now));
        let ends_at = later.unwrap_or(leg.ends_at).max(leg.ends_at);
        if ends_at <= now {
            self.forget(prove.leg);
            wire::write_gone(answer, prove.leg);
            return Err(Dropped::Expired);
        }
        self.seat(Bound { leg: prove.leg, route: from, ends_at }, place);
        self.counters.proven += 1;
        self.counters.moved += u64::from(old.is_some() && !is_there);
        let leg = self.legs.get_mut(&prove.leg).expect("found above");
        (leg.number, leg.heard_at, leg.ends_at) = (prove.number, now, ends_at);
        leg.probing.is_answered = prove.answers_probes;
        let lease = self.leases.get_mut(&place.lease).expect("a leg has a lease");
        lease.ends_at = lease.ends_at.max(ends_at);
        let metered = [lease.metered(place.seat), self.limits.link_bytes_max];
        let has_peer = lease.is_there(place.seat.side.other(), now);
        wire::write_proven(answer, prove.leg, prove.number, metered, has_peer, &leg.key);
        Ok(())
    }

    /// Returns the grant in the caller's token, or why the token does not admit the caller to this
    /// relay.
    fn grant(&self, call: &Call, now: Instant) -> Result<Grant, Refusal> {
        let read = call.token().read(&self.switchboard, self.unix(now));
        let grant = read.map_err(|error| match error {
            TokenError::Expired => Refusal::Expired,
            _forged => Refusal::Forged,
        })?;
        if grant.relay != self.identity.public() {
            return Err(Refusal::OtherRelay);
        }
        if !call.is_of(&grant.holder) {
            return Err(Refusal::OtherKey);
        }
        Ok(grant)
    }

    /// Returns the expiry of `token`; `None` if it is not valid for the end at `place`.
    fn later(&self, place: Place, token: Token, now: Instant) -> Option<Instant> {
        let grant = token.read(&self.switchboard, self.unix(now)).ok()?;
        let lease = self.leases.get(&place.lease)?;
        let is_its = grant.relay == self.identity.public()
            && grant.side == place.seat.side
            && keys(&grant) == lease.keys;
        is_its.then(|| self.instant(grant.until, now))
    }

    /// Returns the lease of a grant, which it keeps until the grant ends, and creates it if
    /// necessary; refuses a new one if the relay is full.
    fn lease(&mut self, grant: &Grant, now: Instant) -> Result<LeaseNumber, Refusal> {
        let keys = keys(grant);
        let ends_at = self.instant(grant.until, now);
        if let Some(number) = self.by_keys.get(&keys) {
            // A lease outlives its legs, those without a proof too.
            let lease = self.leases.get_mut(number).expect("keys are removed with their lease");
            lease.ends_at = lease.ends_at.max(ends_at);
            return Ok(*number);
        }
        if self.leases.len() >= self.limits.leases_max {
            return Err(Refusal::Full);
        }
        let number = LeaseNumber(self.next_lease);
        self.next_lease = self.next_lease.wrapping_add(1);
        let mut lease = Lease::new(keys, &self.limits, now);
        lease.ends_at = ends_at;
        self.leases.insert(number, lease);
        self.by_keys.insert(keys, number);
        Ok(number)
    }

    /// Binds a leg to the address that it has proven. The previous leg of its socket is removed, as
    /// is the leg of any other socket that had this address.
    fn seat(&mut self, bound: Bound, place: Place) {
        let lease = self.leases.get_mut(&place.lease).expect("a leg has a lease");
        let old = lease.bind(place.seat, Some(bound));
        if let Some(old) = old.filter(|old| old.route != bound.route) {
            self.by_route.remove(&old.route);
        }
        if let Some(old) = old.filter(|old| old.leg != bound.leg) {
            self.legs.remove(&old.leg);
        }
        let other = self.by_route.insert(bound.route, place);
        let other = other.filter(|other| other.lease != place.lease || other.seat != place.seat);
        if let Some(other) = other
            && let Some(lease) = self.leases.get_mut(&other.lease)
            && let Some(gone) = lease.bind(other.seat, None)
        {
            self.legs.remove(&gone.leg);
        }
        self.unproven.retain(|id| *id != bound.leg);
    }

    /// Removes a leg, and the binding of its socket unless that has another leg by now.
    fn forget(&mut self, id: LegId) {
        let Some(leg) = self.legs.remove(&id) else { return };
        let Some(lease) = self.leases.get_mut(&leg.place.lease) else { return };
        if let Some(bound) = lease.bound(leg.place.seat).filter(|bound| bound.leg == id) {
            lease.bind(leg.place.seat, None);
            self.by_route.remove(&bound.route);
        }
    }

    fn draw_id(&mut self) -> LegId {
        loop {
            let mut id = LegId([0; LegId::BYTES]);
            self.rng.fill_bytes(&mut id.0);
            if id.0 != [0; LegId::BYTES] && !self.legs.contains_key(&id) {
                return id;
            }
        }
    }

    /// Returns the Unix time at `now`.
    fn unix(&self, now: Instant) -> Duration {
        self.unix_start + now.since(Instant::ZERO)
    }

    /// Updates the Unix time at [`Instant::ZERO`], which changes when the machine's clock is set.
    pub(crate) fn handle_unix_start(&mut self, unix_start: Duration) {
        self.unix_start = unix_start;
    }

    /// Converts a Unix time to an instant of this clock: at most a day after `now`.
    fn instant(&self, unix: Duration, now: Instant) -> Instant {
        (Instant::ZERO + unix.saturating_sub(self.unix_start)).min(now + TOKEN_LIFE_MAX)
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("counters", &self.counters()).finish_non_exhaustive()
    }
}

/// A call of an end for admission, with a valid envelope but its message not parsed yet.
struct Called<'a> {
    reference: Reference,
    cookie: Cookie,
    message: &'a [u8],
}

impl Budget {
    /// Returns whether another call from the network of `from` may be processed in this second, and
    /// counts it if so: it costs two key agreements.
    fn call(&mut self, from: IpAddr, now: Instant) -> bool {
        self.renew(now);
        if self.calls >= CALLS_MAX {
            return false;
        }
        let of_network = self.by_network.entry(network(from)).or_default();
        let has_room = *of_network < NETWORK_CALLS_MAX;
        if has_room {
            self.calls += 1;
            *of_network += 1;
        }
        has_room
    }

    fn hint(&mut self, now: Instant) -> bool {
        self.renew(now);
        self.hints += 1;
        self.hints <= HINTS_MAX
    }

    /// Returns whether another request for an address from the network of `from` is answered in
    /// this second, and counts it, except for a network beyond [`ADDRESS_NETWORKS_MAX`].
    fn address(&mut self, from: IpAddr, now: Instant) -> bool {
        self.renew(now);
        let networks = self.addresses.len();
        let network = network(from);
        if networks >= ADDRESS_NETWORKS_MAX && !self.addresses.contains_key(&network) {
            return false;
        }
        let of_network = self.addresses.entry(network).or_default();
        *of_network += 1;
        *of_network <= NETWORK_ADDRESSES_MAX
    }

    fn renew(&mut self, now: Instant) {
        if now.since(self.since) >= Duration::from_secs(1) {
            *self = Self { since: now, ..Self::default() };
        }
    }
}

/// Returns the keys of a lease's ends, the initiator's first.
fn keys(grant: &Grant) -> [PublicKey; 2] {
    match grant.side {
        Side::Initiator => [grant.holder, grant.peer],
        Side::Responder => [grant.peer, grant.holder],
    }
}

/// Returns the link of a session's datagram, which is in the first byte in every version; `None` if
/// the bytes cannot be a session's datagram.
fn link_of(datagram: &[u8]) -> Option<LinkNumber> {
    let is_whole = (DATAGRAM_BYTES_MIN..=DATAGRAM_BYTES_MAX).contains(&datagram.len());
    let head = *datagram.first().filter(|head| is_whole && **head >> 4 != 0)?;
    LinkNumber::new(head & 0x0f)
}

/// Returns the network of an address: for IPv6 its /64, for IPv4 the address itself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

/// Length in bytes of a refusal, the shortest datagram of a session; a shorter one is malformed.
const DATAGRAM_BYTES_MIN: usize = 21;
const DATAGRAM_BYTES_MAX: usize = 1_500;
/// Time after its last proof at which a leg is removed: six times the interval between two proofs.
const LEG_TIMEOUT: Duration = Duration::from_secs(30);
/// Time after which an admitted leg without a proof is removed: longer than a mobile link's worst
/// delay, 5.7 s ([UGV]).
const UNPROVEN_MAX: Duration = Duration::from_secs(10);
const UNPROVEN_COUNT_MAX: usize = 1_024;
/// Maximum calls parsed per second, a twentieth of a processor; further ones are dropped.
const CALLS_MAX: u32 = 256;
/// Maximum calls from one network per second, those of every socket of an end during two
/// consecutive restarts of relays; further ones are dropped.
const NETWORK_CALLS_MAX: u32 = 32;
/// Maximum cookies per second that are sent to unproven addresses in answer to sessions' datagrams;
/// further datagrams are not answered.
const HINTS_MAX: u32 = 256;
/// Maximum answered requests for an address per network and second, those of several machines with
/// several links; further ones are dropped.
const NETWORK_ADDRESSES_MAX: u32 = 64;
/// Maximum networks whose requests for an address are answered per second; those of further ones
/// are dropped.
const ADDRESS_NETWORKS_MAX: usize = 4_096;
/// Maximum time from now to a token's expiry; a later expiry counts as this, as no switchboard
/// issues longer tokens.
const TOKEN_LIFE_MAX: Duration = Duration::from_secs(86_400);
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
