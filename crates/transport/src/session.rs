mod active;
mod budget;
mod handshake;
mod outgoing;
mod rescue;
mod sharing;
mod streaming;
mod transmit;

use std::collections::VecDeque;
use std::fmt;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::clock::ClockEstimate;
use crate::config::Config;
use crate::counters::{Counters, Discard, Units};
use crate::crypto::{self, Doorman, Identity, Initiator, PublicKey, Refusal, Seed};
use crate::error::{Error, SendError};
use crate::event::{Event, Timer, UnitNumber};
use crate::link::{self, Route};
use crate::wire::{self, Class, Datagram, LinkNumber};
use active::{Active, Sealed};
use handshake::{Calling, HALF_OPEN_MAX, HalfOpen, Limiter};

/// One session between one vehicle (the initiator) and one operator (the responder).
///
/// Sans-I/O: see the crate's page for how to drive it. Holds about 150 kB at four links, under the
/// streaming code 1.5 MB more to send and 2.3 MB to receive, and what waits in its queues; per
/// datagram one AEAD pass, and buffers that are used again.
pub struct Session {
    shared: Shared,
    identity: Identity,
    peer: PublicKey,
    lease: [u8; 16],
    rng: ChaCha20Rng,
    role: Role,
    active: Option<Box<Active>>,
    /// Handshake datagrams, ready to leave.
    outbox: VecDeque<(Route, Vec<u8>)>,
    now: Instant,
}

/// What every part of a session writes to.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    events: VecDeque<Event>,
}

#[derive(Debug)]
enum Role {
    Initiator { routes: Vec<Route>, calling: Option<Calling> },
    Responder { half_open: Vec<HalfOpen>, limiter: Limiter, doorman: Doorman },
}

impl Shared {
    pub(crate) fn event(&mut self, event: Event) {
        if self.events.len() >= EVENTS_MAX {
            self.counters.discard(Discard::EventOverflow);
            return;
        }
        self.events.push_back(event);
    }
}

impl Session {
    /// Begins a session with `peer` over `routes`: route i is link i.
    ///
    /// `lease` is the id under which the switchboard introduced the two; `seed` is 32 random
    /// bytes, fresh for every session, or a number in virtual time.
    ///
    /// # Errors
    /// [`Error::Config`] or [`Error::Routes`].
    pub fn initiate(
        config: Config,
        identity: &Identity,
        peer: PublicKey,
        lease: [u8; 16],
        routes: &[Route],
        seed: impl Into<Seed>,
        now: Instant,
    ) -> Result<Self, Error> {
        if routes.is_empty() || routes.len() > LinkNumber::COUNT {
            return Err(Error::Routes { found: routes.len() });
        }
        let role = Role::Initiator { routes: routes.to_vec(), calling: None };
        let mut session = Self::new(config, identity, peer, lease, seed.into(), role, now)?;
        session.call(now);
        Ok(session)
    }

    /// Waits for `peer` to begin a session; its links are learned from authentic datagrams.
    ///
    /// # Errors
    /// [`Error::Config`].
    pub fn respond(
        config: Config,
        identity: &Identity,
        peer: PublicKey,
        lease: [u8; 16],
        seed: impl Into<Seed>,
        now: Instant,
    ) -> Result<Self, Error> {
        let doorman = Doorman::new(&lease, &identity.public());
        let role = Role::Responder { half_open: Vec::new(), limiter: Limiter::new(), doorman };
        Self::new(config, identity, peer, lease, seed.into(), role, now)
    }

    fn new(
        config: Config,
        identity: &Identity,
        peer: PublicKey,
        lease: [u8; 16],
        seed: Seed,
        role: Role,
        now: Instant,
    ) -> Result<Self, Error> {
        config.validate()?;
        Ok(Self {
            shared: Shared { config, counters: Counters::new(), events: VecDeque::new() },
            identity: identity.clone(),
            peer,
            lease,
            rng: seed.into_rng(),
            role,
            active: None,
            outbox: VecDeque::new(),
            now,
        })
    }

    /// Hands over a unit that is worthless `deadline` from now, and gives its number.
    ///
    /// Media is queued on the links at once, control goes ahead of it; poll for datagrams next.
    ///
    /// # Errors
    /// [`SendError`]; nothing of the unit is then sent, and it has no number.
    pub fn send(
        &mut self,
        class: Class,
        unit: &[u8],
        deadline: Duration,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        self.now = self.now.max(now);
        let sent = match &mut self.active {
            Some(active) => active.send(class, unit, deadline, &mut self.shared, self.now),
            None => Err(SendError::NotEstablished),
        };
        let units = self.shared.counters.units_mut(class);
        units.offered += 1;
        if let Err(error) = &sent {
            units.refuse(error);
            self.shared.counters.discard(match error {
                SendError::NotEstablished | SendError::NoLink => Discard::SendNoLink,
                SendError::TooLarge { .. } | SendError::Deadline { .. } => Discard::SendInvalid,
                SendError::Congested => Discard::SendCongested,
            });
        }
        sent
    }

    /// Takes a datagram that came by `route`. Whatever it holds, the session goes on.
    pub fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) {
        self.now = self.now.max(now);
        self.shared.counters.datagrams_received += 1;
        let outcome = match Datagram::parse(datagram) {
            Ok(Datagram::Init { link, message }) => self.handle_init(route, link, message),
            Ok(Datagram::Response { session, message, .. }) => {
                self.handle_response(route, session, message)
            }
            Ok(Datagram::Sealed { link, session, number_low, ciphertext }) => {
                let sealed = Sealed { route, link, number_low, ciphertext, bytes: datagram.len() };
                self.handle_sealed(session, &sealed)
            }
            Err(_) => Err(Discard::DatagramMalformed),
        };
        if let Err(what) = outcome {
            self.shared.counters.discard(what);
        }
    }

    /// Writes the next datagram into `buffer`, old content replaced, and says where it goes.
    ///
    /// Call until `None` after every other call that takes the time.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        self.now = self.now.max(now);
        let now = self.now;
        self.call_again(now);
        let route = match self.outbox.pop_front() {
            Some((route, datagram)) => {
                buffer.clear();
                buffer.extend_from_slice(&datagram);
                Some(route)
            }
            None => self.active.as_mut()?.poll_transmit(buffer, &mut self.shared, now),
        };
        if route.is_some() {
            self.shared.counters.datagrams_sent += 1;
        }
        route
    }

    /// Gives the next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.events.pop_front()
    }

    /// Says when [`Session::handle_timeout`] wants to be called, and why.
    ///
    /// May lie in the past: then it is due now. `None` while there is nothing to wait for.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        let calling = match &self.role {
            Role::Initiator { calling: Some(calling), .. } => {
                Some((calling.due_at, Timer::Handshake))
            }
            Role::Initiator { calling: None, .. } | Role::Responder { .. } => None,
        };
        let active = self.active.as_ref().and_then(|active| active.poll_timeout(&self.shared));
        calling.into_iter().chain(active).min()
    }

    /// Does what time demands: deadlines, silence, reports. Poll for datagrams and events next.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let now = self.now;
        let Some(active) = &mut self.active else { return };
        active.handle_timeout(&mut self.shared, now);
        let lost = active.quiet_for(now) > CALL_ANEW_AFTER;
        let idle = matches!(self.role, Role::Initiator { calling: None, .. });
        if lost && idle {
            // The responder may have begun anew and forgotten us; the present session stays
            // until a new one is confirmed.
            self.call(now);
        }
    }

    /// What is known of each link, in order of their numbers; none before the handshake.
    pub fn links(&self) -> impl Iterator<Item = link::View> + '_ {
        let clock = self.clock();
        self.active.iter().flat_map(move |active| active.links(clock))
    }

    /// How each link's delays were spread of late, in the order of [`Session::links`].
    pub fn spreads(&self) -> impl Iterator<Item = link::Spreads> + '_ {
        self.active.iter().flat_map(|active| active.spreads(self.now))
    }

    /// What was done and what was thrown away.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Units of `class`, both ways, and what became of them.
    pub fn units(&self, class: Class) -> Units {
        let open = self.active.as_ref().map_or(0, |active| active.units_open(class));
        Units { open, ..self.shared.counters.units(class).clone() }
    }

    /// The peer's clock against ours; `None` before the first pong.
    pub fn clock(&self) -> Option<ClockEstimate> {
        self.active.as_ref()?.clock(self.now)
    }

    /// Whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.active.is_some()
    }

    /// Sets the largest datagram that `link` may carry from us: 150 to 1500 bytes, held within.
    ///
    /// What is above 1200 bytes, or was found not to pass, is probed for first. The next units are
    /// cut to the smallest size in use on all links that are up. False if there is no such link.
    pub fn set_datagram_bytes_max(&mut self, link: LinkNumber, most: ByteCount) -> bool {
        let now = self.now;
        self.active.as_mut().is_some_and(|active| active.set_datagram_bytes_max(link, most, now))
    }

    /// Takes the kernel's word that a datagram of `length` is too large for the way to `route`.
    ///
    /// It is lost as any other; the link's size is chosen anew.
    pub fn handle_too_large(&mut self, route: Route, length: ByteCount, now: Instant) {
        self.now = self.now.max(now);
        let now = self.now;
        if let Some(active) = &mut self.active {
            active.on_too_large(route, length.get() as usize, now);
        }
    }

    /// Writes a handshake's first message, to be sent on every link.
    fn call(&mut self, now: Instant) {
        let taken = self.active.as_ref().map(|active| active.session_id());
        let id = fresh_id(&mut self.rng, |id| Some(id) == taken);
        let Role::Initiator { calling, .. } = &mut self.role else { return };
        let initiator = Initiator::new(&self.identity, &self.peer, &self.lease, id, &mut self.rng);
        *calling = Some(Calling::new(initiator, id, now));
    }

    /// Sends the first message again when it is due.
    fn call_again(&mut self, now: Instant) {
        let Role::Initiator { routes, calling: Some(calling) } = &mut self.role else { return };
        let Some(initiator) = calling.initiator.as_ref().filter(|_| now >= calling.due_at) else {
            return;
        };
        for (number, route) in (0..).zip(routes.iter()) {
            let Some(link) = LinkNumber::new(number) else { break };
            let mut datagram = Vec::with_capacity(150);
            wire::write_init_header(&mut datagram, link);
            datagram.extend_from_slice(initiator.message());
            self.outbox.push_back((*route, datagram));
        }
        calling.on_sent(now);
    }

    fn handle_init(
        &mut self,
        route: Route,
        link: LinkNumber,
        message: &[u8],
    ) -> Result<(), Discard> {
        let Role::Responder { half_open, limiter, doorman } = &mut self.role else {
            return Err(Discard::HandshakeUnexpected);
        };
        if !doorman.admits(message) {
            return Err(Discard::HandshakeForged);
        }
        let known = half_open.iter().find(|half| half.init == message);
        let answered = known.map(|half| (half.peer_session, &half.response));
        let current = self.active.as_ref().and_then(|active| active.answered(message));
        if let Some((peer_session, response)) = answered.or(current) {
            let datagram = response_datagram(link, peer_session, response);
            return push_response(&mut self.outbox, route, datagram);
        }
        if !limiter.take(self.now) {
            return Err(Discard::HandshakeLimited);
        }
        let taken = self.active.as_ref().map(|active| active.session_id());
        let session = fresh_id(&mut self.rng, |id| {
            Some(id) == taken || half_open.iter().any(|half| half.session == id)
        });
        let answer = crypto::answer(
            &self.identity,
            &self.peer,
            &self.lease,
            session,
            message,
            &mut self.rng,
        )
        .map_err(|refusal| match refusal {
            Refusal::Forged => Discard::HandshakeForged,
            Refusal::WrongPeer => Discard::HandshakeWrongPeer,
        })?;
        let datagram = response_datagram(link, answer.peer_session, &answer.message);
        if half_open.len() == HALF_OPEN_MAX {
            half_open.remove(0);
            self.shared.counters.discard(Discard::HandshakeEvicted);
        }
        half_open.push(HalfOpen {
            init: message.to_vec(),
            response: answer.message,
            keys: answer.keys,
            session,
            peer_session: answer.peer_session,
        });
        push_response(&mut self.outbox, route, datagram)
    }

    fn handle_response(
        &mut self,
        route: Route,
        session: u16,
        message: &[u8],
    ) -> Result<(), Discard> {
        let Role::Initiator { routes, calling: slot } = &mut self.role else {
            return Err(Discard::HandshakeUnexpected);
        };
        let Some(calling) = slot.as_mut().filter(|calling| calling.session == session) else {
            return Err(Discard::HandshakeUnexpected);
        };
        let Some(initiator) = calling.initiator.take() else {
            return Err(Discard::HandshakeUnexpected);
        };
        let accepted = match initiator.accept(message) {
            Ok(accepted) => accepted,
            Err(initiator) => {
                calling.initiator = Some(initiator);
                return Err(Discard::HandshakeForged);
            }
        };
        tracing::info!(session, remote = %route.remote, "session established");
        let now = self.now;
        let active = Active::initiated(&self.shared, accepted, session, routes.as_slice(), now);
        *slot = None;
        self.outbox.clear();
        self.begin(active);
        Ok(())
    }

    /// Makes `active` the session, in place of the one before it.
    fn begin(&mut self, active: Active) {
        if let Some(old) = &mut self.active {
            old.end(&mut self.shared, self.now);
            if old.budget_told() {
                // No link of the new session is up yet.
                self.shared.event(Event::Budget { media: Bitrate::ZERO });
            }
        }
        self.active = Some(Box::new(active));
        self.shared.counters.handshakes += 1;
        self.shared.event(Event::Established);
    }

    fn handle_sealed(&mut self, session: u16, sealed: &Sealed<'_>) -> Result<(), Discard> {
        let now = self.now;
        if let Some(active) = &mut self.active
            && active.session_id() == session
        {
            let handled = active.handle_sealed(sealed, &mut self.shared, now);
            if let (Ok(()), Role::Initiator { calling, .. }) = (&handled, &mut self.role) {
                // The peer knows this session: no need for another.
                *calling = None;
            }
            return handled;
        }
        let Role::Responder { half_open, .. } = &mut self.role else {
            return Err(Discard::DatagramUnknownSession);
        };
        let Some(at) = half_open.iter().position(|half| half.session == session) else {
            return Err(Discard::DatagramUnknownSession);
        };
        if !active::opens(&half_open[at].keys, sealed) {
            return Err(Discard::DatagramForged);
        }
        let half = half_open.remove(at);
        tracing::info!(session, remote = %sealed.route.remote, "session established");
        let active = Active::responded(&self.shared, half, now);
        self.begin(active);
        match &mut self.active {
            Some(active) => active.handle_sealed(sealed, &mut self.shared, now),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Session {
    /// Neither keys nor the lease.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("identity", &self.identity)
            .field("peer", &self.peer)
            .field("established", &self.active.is_some())
            .finish_non_exhaustive()
    }
}

fn response_datagram(link: LinkNumber, peer_session: u16, response: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::with_capacity(64);
    wire::write_response_header(&mut datagram, link, peer_session);
    datagram.extend_from_slice(response);
    datagram
}

fn push_response(
    outbox: &mut VecDeque<(Route, Vec<u8>)>,
    route: Route,
    datagram: Vec<u8>,
) -> Result<(), Discard> {
    if outbox.len() >= OUTBOX_MAX {
        return Err(Discard::AnswerOverflow);
    }
    outbox.push_back((route, datagram));
    Ok(())
}

/// A session id that is neither zero nor taken.
fn fresh_id(rng: &mut ChaCha20Rng, taken: impl Fn(u16) -> bool) -> u16 {
    loop {
        let id = rng.next_u32() as u16;
        if id != 0 && !taken(id) {
            return id;
        }
    }
}

/// Events that wait for the application: seconds of slices.
const EVENTS_MAX: usize = 4_096;
/// Handshake datagrams that wait to leave: one for each link, and answers to a few forgeries.
const OUTBOX_MAX: usize = 64;
/// With every link silent for so long, the initiator tries a new handshake beside the old session.
const CALL_ANEW_AFTER: Duration = Duration::from_secs(2);
