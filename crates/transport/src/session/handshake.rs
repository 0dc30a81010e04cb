use std::collections::VecDeque;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_units::{Duration, Instant};

use super::called::{Called, CalledLinks};
use super::knocking::Knocking;
use crate::counters::{Counters, Discard};
use crate::crypto::{
    self, Accepted, Doorman, INIT_MESSAGE_BYTES, Identity, Initiator, Keys, PublicKey, Refusal,
    Seed,
};
use crate::event::Timer;
use crate::link::Route;
use crate::reach::Way;
use crate::wire::{
    self, KNOCK_TAG_BYTES, LinkNumber, REFUSAL_TAG_BYTES, VersionMismatch, Versions,
};

/// One end of the agreement on a session's keys.
// protocol 2
pub(super) struct Handshake {
    identity: Identity,
    peer: PublicKey,
    lease: [u8; 16],
    rng: ChaCha20Rng,
    role: Role,
    /// What this end speaks.
    versions: Versions,
    /// What the peer speaks, if that was found to have none in common with ours.
    refused: Option<Versions>,
    /// Likewise, until it is told.
    mismatch: Option<VersionMismatch>,
    /// Datagrams that are ready to leave.
    outbox: VecDeque<(Route, Vec<u8>)>,
}

enum Role {
    Initiator { called: CalledLinks, calling: Option<Calling>, knocked: Doorman },
    Responder { half_open: Vec<HalfOpen>, limiter: Limiter, doorman: Doorman, knocking: Knocking },
}

/// The session that is in place, as far as a handshake must know it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present<'a> {
    pub(super) session: u16,
    pub(super) peer_session: u16,
    /// The responder's: the first message that began it, and its answer.
    pub(super) begun_by: Option<&'a (Vec<u8>, Vec<u8>)>,
}

impl Handshake {
    /// Makes the initiator's handshake, which begins at once.
    pub(super) fn initiate(
        identity: &Identity,
        peer: PublicKey,
        lease: [u8; 16],
        routes: &[Route],
        versions: Versions,
        seed: Seed,
        now: Instant,
    ) -> Self {
        let called = CalledLinks::given(routes);
        let knocked = Doorman::new(&lease, &identity.public());
        let role = Role::Initiator { called, calling: None, knocked };
        let mut handshake = Self::new(identity, peer, lease, versions, seed, role);
        handshake.call(None, now);
        handshake
    }

    /// Makes the responder's handshake, which waits.
    pub(super) fn respond(
        identity: &Identity,
        peer: PublicKey,
        lease: [u8; 16],
        versions: Versions,
        seed: Seed,
    ) -> Self {
        let doorman = Doorman::new(&lease, &identity.public());
        let knocking = Knocking::new(Doorman::new(&lease, &peer));
        let (half_open, limiter) = (Vec::new(), Limiter::new());
        let role = Role::Responder { half_open, limiter, doorman, knocking };
        Self::new(identity, peer, lease, versions, seed, role)
    }

    fn new(
        identity: &Identity,
        peer: PublicKey,
        lease: [u8; 16],
        versions: Versions,
        seed: Seed,
        role: Role,
    ) -> Self {
        let (identity, rng, outbox) = (identity.clone(), seed.into_rng(), VecDeque::new());
        let (refused, mismatch) = (None, None);
        Self { identity, peer, lease, rng, role, versions, refused, mismatch, outbox }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn peer(&self) -> &PublicKey {
        &self.peer
    }

    /// Returns whether the peer calls a handshake under way by this id.
    pub(super) fn has_id(&self, session: u16) -> bool {
        match &self.role {
            Role::Initiator { calling, .. } => {
                calling.as_ref().is_some_and(|calling| calling.session == session)
            }
            Role::Responder { half_open, .. } => {
                half_open.iter().any(|half| half.session == session)
            }
        }
    }

    /// Returns whether a first message knows this lease; the initiator awaits none.
    pub(super) fn admits(&self, message: &[u8]) -> bool {
        match &self.role {
            Role::Initiator { .. } => false,
            Role::Responder { doorman, .. } => doorman.admits(message),
        }
    }

    pub(super) fn lease(&self) -> &[u8; 16] {
        &self.lease
    }

    /// Returns the initiator's links, by their numbers; none of the responder's.
    pub(super) fn called(&self) -> &[Called] {
        match &self.role {
            Role::Initiator { called, .. } => called,
            Role::Responder { .. } => &[],
        }
    }

    /// Takes the ways that the lease tells, and gives the places of the links that they are now: a
    /// session under way is called there at once.
    pub(super) fn offer(
        &mut self,
        ways: &[Way],
        is_up: impl Fn(usize) -> bool,
        now: Instant,
    ) -> Vec<usize> {
        let Role::Initiator { called, calling, .. } = &mut self.role else { return Vec::new() };
        let (places, is_any_new) = called.offer(ways, is_up);
        if let Some(calling) = calling.as_mut().filter(|_| is_any_new) {
            calling.hurry(now);
        }
        places
    }

    /// Takes a knock that came by `route` from the peer's socket `end`, and gives the place of the link
    /// that it tells, and whether it is new. While a session is called, the first message answers it.
    ///
    /// # Errors
    /// Why it is none, or tells nothing.
    // protocol 10
    pub(super) fn handle_knock(
        &mut self,
        route: Route,
        end: u8,
        signed: &[u8],
        tag: &[u8; KNOCK_TAG_BYTES],
        is_up: impl Fn(usize) -> bool,
    ) -> Result<(usize, bool), Discard> {
        let Role::Initiator { called, calling, knocked } = &mut self.role else {
            return Err(Discard::HandshakeUnexpected);
        };
        if !knocked.hears(signed, tag) {
            return Err(Discard::HandshakeForged);
        }
        let (at, is_new) = called.learn(route, end, is_up)?;
        let initiator = calling.as_ref().and_then(|calling| calling.initiator.as_ref());
        if let Some((initiator, link)) = initiator.zip(LinkNumber::new(at as u8))
            && self.outbox.len() < OUTBOX_MAX
        {
            // As many bytes as came from there.
            self.outbox.push_back((route, init_datagram(link, initiator)));
        }
        Ok((at, is_new))
    }

    /// Returns whether a knock knows this lease; the responder awaits none.
    pub(super) fn is_knock(&self, signed: &[u8], tag: &[u8; KNOCK_TAG_BYTES]) -> bool {
        match &self.role {
            Role::Initiator { knocked, .. } => knocked.hears(signed, tag),
            Role::Responder { .. } => false,
        }
    }

    /// Sets where the responder knocks.
    pub(super) fn knock(&mut self, routes: &[Route], now: Instant) {
        if let Role::Responder { knocking, .. } = &mut self.role {
            knocking.set_routes(routes, now);
        }
    }

    /// Knocks again soon, for nothing comes of the peer.
    pub(super) fn hurry_knocks(&mut self) {
        if let Role::Responder { knocking, .. } = &mut self.role {
            knocking.hurry();
        }
    }

    /// Begins a handshake beside the session in place, if it is the initiator's and none is under
    /// way.
    pub(super) fn call_anew(&mut self, present: Option<Present<'_>>, now: Instant) {
        if matches!(self.role, Role::Initiator { calling: None, .. }) {
            self.call(present.map(|present| present.session), now);
        }
    }

    /// Writes a handshake's first message, to be sent on every link.
    fn call(&mut self, taken: Option<u16>, now: Instant) {
        let id = fresh_id(&mut self.rng, |id| Some(id) == taken);
        let Role::Initiator { calling, .. } = &mut self.role else { return };
        let Self { identity, peer, lease, versions, rng, .. } = self;
        let initiator = Initiator::new(identity, peer, lease, id, *versions, rng);
        *calling = Some(Calling::new(initiator, id, now));
    }

    /// Ends what is under way: the peer knows the session in place.
    pub(super) fn stop_calling(&mut self) {
        if let Role::Initiator { calling, .. } = &mut self.role {
            *calling = None;
        }
    }

    /// Gives the next datagram and its route; the first message again when it is due.
    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<(Route, Vec<u8>)> {
        let due_at = match &self.role {
            Role::Initiator { calling, .. } => calling.as_ref().map(|calling| calling.due_at),
            Role::Responder { knocking, .. } => knocking.due_at(),
        };
        if due_at.is_some_and(|at| now >= at) {
            self.write_due(now);
        }
        self.outbox.pop_front()
    }

    /// Writes the first message again, or knocks: one of them is due.
    fn write_due(&mut self, now: Instant) {
        match &mut self.role {
            Role::Initiator { called, calling: Some(calling), .. } => {
                let Some(initiator) = &calling.initiator else { return };
                // What was learned is sent as much as comes from there: an answer for each knock.
                let told = (0..).zip(called.iter()).filter(|(_, called)| !called.is_learned);
                for (number, called) in told {
                    let Some(link) = LinkNumber::new(number) else { break };
                    self.outbox.push_back((called.route, init_datagram(link, initiator)));
                }
                calling.on_sent(now);
            }
            Role::Initiator { calling: None, .. } => {}
            Role::Responder { knocking, .. } => {
                if self.outbox.len() < OUTBOX_MAX {
                    self.outbox.extend(knocking.poll(now));
                }
            }
        }
    }

    /// Returns when the first message is due again, or the oldest half-open handshake expires.
    pub(super) fn next_timeout(&self) -> Option<(Instant, Timer)> {
        match &self.role {
            Role::Initiator { calling, .. } => {
                calling.as_ref().map(|calling| (calling.due_at, Timer::Handshake))
            }
            Role::Responder { half_open, knocking, .. } => {
                let expires_at = half_open.first().map(|half| half.expires_at);
                let due_at = [expires_at, knocking.due_at()].into_iter().flatten().min();
                due_at.map(|at| (at, Timer::Handshake))
            }
        }
    }

    /// Forgets the half-open handshakes that nothing has confirmed in time, keys and all.
    pub(super) fn handle_timeout(&mut self, counters: &mut Counters, now: Instant) {
        let Role::Responder { half_open, .. } = &mut self.role else { return };
        while half_open.first().is_some_and(|half| half.expires_at <= now) {
            half_open.remove(0);
            counters.discard(Discard::HandshakeExpired);
        }
    }

    /// Takes a first message and writes its answer, if it deserves one.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn handle_init(
        &mut self,
        route: Route,
        link: LinkNumber,
        message: &[u8],
        present: Option<Present<'_>>,
        counters: &mut Counters,
        now: Instant,
    ) -> Result<(), Discard> {
        let Role::Responder { half_open, limiter, doorman, .. } = &mut self.role else {
            return Err(Discard::HandshakeUnexpected);
        };
        if !doorman.admits(message) {
            return Err(Discard::HandshakeForged);
        }
        let known = half_open.iter().find(|half| half.init == message);
        let answered = known.map(|half| (half.peer_session, &half.response));
        let current = present.and_then(|present| {
            let (_, response) = present.begun_by.filter(|(init, _)| init == message)?;
            Some((present.peer_session, response))
        });
        if let Some((peer_session, response)) = answered.or(current) {
            let datagram = response_datagram(link, peer_session, response);
            return push_response(&mut self.outbox, route, datagram);
        }
        if !limiter.take(now) {
            return Err(Discard::HandshakeLimited);
        }
        let taken = present.map(|present| present.session);
        let session = fresh_id(&mut self.rng, |id| {
            Some(id) == taken || half_open.iter().any(|half| half.session == id)
        });
        let answer = crypto::answer(
            &self.identity,
            &self.peer,
            &self.lease,
            session,
            self.versions,
            message,
            &mut self.rng,
        );
        let answer = match answer {
            Ok(answer) => answer,
            Err(Refusal::Forged) => return Err(Discard::HandshakeForged),
            Err(Refusal::WrongPeer) => return Err(Discard::HandshakeWrongPeer),
            Err(Refusal::NoVersion { peer_session, theirs }) => {
                let tag = doorman.refuse(message, self.versions);
                let mut datagram = Vec::with_capacity(32);
                wire::write_refusal(&mut datagram, link, peer_session, self.versions, &tag);
                push_response(&mut self.outbox, route, datagram)?;
                self.on_refused(theirs);
                return Err(Discard::HandshakeVersion);
            }
        };
        let datagram = response_datagram(link, answer.peer_session, &answer.message);
        if half_open.len() == HALF_OPEN_MAX {
            half_open.remove(0);
            counters.discard(Discard::HandshakeEvicted);
        }
        half_open.push(HalfOpen {
            init: message.to_vec(),
            response: answer.message,
            keys: answer.keys,
            session,
            peer_session: answer.peer_session,
            version: answer.version,
            expires_at: now + HALF_OPEN_LIFE,
        });
        push_response(&mut self.outbox, route, datagram)
    }

    /// Takes the responder's refusal of the first message that is out.
    ///
    /// # Errors
    /// [`Discard::HandshakeVersion`], or why it is none.
    pub(super) fn handle_refusal(
        &mut self,
        session: u16,
        theirs: Versions,
        tag: &[u8; REFUSAL_TAG_BYTES],
    ) -> Result<(), Discard> {
        let Role::Initiator { calling: Some(calling), .. } = &self.role else {
            return Err(Discard::HandshakeUnexpected);
        };
        let initiator = calling.initiator.as_ref().filter(|_| calling.session == session);
        let initiator = initiator.ok_or(Discard::HandshakeUnexpected)?;
        if !initiator.is_refused(theirs, tag) {
            return Err(Discard::HandshakeForged);
        }
        self.on_refused(theirs);
        Err(Discard::HandshakeVersion)
    }

    /// Gives, once for each range that the peer is found to speak, that there is no version in
    /// common.
    pub(super) fn take_mismatch(&mut self) -> Option<VersionMismatch> {
        self.mismatch.take()
    }

    fn on_refused(&mut self, theirs: Versions) {
        if self.refused != Some(theirs) {
            self.refused = Some(theirs);
            self.mismatch = VersionMismatch::of(self.versions, theirs);
        }
    }

    /// Takes the answer to the first message that is out.
    ///
    /// # Errors
    /// Why it is none.
    pub(super) fn handle_response(
        &mut self,
        session: u16,
        message: &[u8],
    ) -> Result<Accepted, Discard> {
        let Role::Initiator { calling: slot, .. } = &mut self.role else {
            return Err(Discard::HandshakeUnexpected);
        };
        let Some(calling) = slot.as_mut().filter(|calling| calling.session == session) else {
            return Err(Discard::HandshakeUnexpected);
        };
        let Some(initiator) = calling.initiator.take() else {
            return Err(Discard::HandshakeUnexpected);
        };
        match initiator.accept(message) {
            Ok(accepted) => {
                *slot = None;
                self.refused = None;
                self.outbox.clear();
                Ok(accepted)
            }
            Err(initiator) => {
                calling.initiator = Some(initiator);
                Err(Discard::HandshakeForged)
            }
        }
    }

    /// Gives the half-open session `session` if `opens` says that a datagram confirms its keys.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn confirm(
        &mut self,
        session: u16,
        opens: impl Fn(&Keys) -> bool,
    ) -> Result<HalfOpen, Discard> {
        let Role::Responder { half_open, .. } = &mut self.role else {
            return Err(Discard::DatagramUnknownSession);
        };
        let Some(at) = half_open.iter().position(|half| half.session == session) else {
            return Err(Discard::DatagramUnknownSession);
        };
        match opens(&half_open[at].keys) {
            true => {
                self.refused = None;
                Ok(half_open.remove(at))
            }
            false => Err(Discard::DatagramForged),
        }
    }
}

fn init_datagram(link: LinkNumber, initiator: &Initiator) -> Vec<u8> {
    let mut datagram = Vec::with_capacity(150);
    wire::write_init_header(&mut datagram, link);
    datagram.extend_from_slice(initiator.message());
    datagram
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

/// The initiator's handshake under way: one message, resent with back-off until answered.
#[derive(Debug)]
struct Calling {
    initiator: Option<Initiator>,
    /// The id by which the responder shall call us.
    session: u16,
    due_at: Instant,
    pause: Duration,
}

impl Calling {
    fn new(initiator: Initiator, session: u16, now: Instant) -> Self {
        Self { initiator: Some(initiator), session, due_at: now, pause: RESEND_FIRST }
    }

    /// Sends the message at once, and again as if it were the first time: there are new addresses.
    fn hurry(&mut self, now: Instant) {
        (self.due_at, self.pause) = (now, RESEND_FIRST);
    }

    /// Notes that the message was sent on every link.
    fn on_sent(&mut self, now: Instant) {
        self.due_at = now + self.pause;
        self.pause = (self.pause * 2).min(RESEND_MOST);
    }
}

/// The responder's answer to one first message, until a sealed datagram confirms it.
#[derive(Debug)]
pub(super) struct HalfOpen {
    /// The first message: a resend of it gets the same answer.
    pub(super) init: Vec<u8>,
    pub(super) response: Vec<u8>,
    pub(super) keys: Keys,
    /// The id by which the initiator calls us.
    pub(super) session: u16,
    /// The id by which we call the initiator.
    pub(super) peer_session: u16,
    /// The version that is spoken.
    pub(super) version: u8,
    /// When it is given up; those that were answered later expire later.
    expires_at: Instant,
}

/// A limit on the first messages that are answered: each costs key agreements.
#[derive(Debug)]
struct Limiter {
    answered_at: VecDeque<Instant>,
}

impl Limiter {
    fn new() -> Self {
        Self { answered_at: VecDeque::with_capacity(ANSWERS_PER_SECOND) }
    }

    /// Takes one answer of this second's; false if they are spent.
    fn take(&mut self, now: Instant) -> bool {
        while self.answered_at.front().is_some_and(|at| now.since(*at) >= Duration::from_secs(1)) {
            self.answered_at.pop_front();
        }
        let free = self.answered_at.len() < ANSWERS_PER_SECOND;
        if free {
            self.answered_at.push_back(now);
        }
        free
    }
}

/// Returns a session id that is neither zero nor taken.
fn fresh_id(rng: &mut ChaCha20Rng, taken: impl Fn(u16) -> bool) -> u16 {
    loop {
        let id = rng.next_u32() as u16;
        if id != 0 && !taken(id) {
            return id;
        }
    }
}

/// Half-open handshakes kept: an honest initiator has one, two if it began anew.
const HALF_OPEN_MAX: usize = 4;
/// A mobile link's worst delays, 5.7 s one way ([UGV]), and some more: an initiator that comes later
/// begins anew.
// protocol 2
const HALF_OPEN_LIFE: Duration = Duration::from_secs(10);
/// Replays only: forgeries fail at the door. About 0.3 ms of work each: 2 % of a core.
const ANSWERS_PER_SECOND: usize = 64;
/// A little above a mobile link's RTT.
const RESEND_FIRST: Duration = Duration::from_millis(100);
const RESEND_MOST: Duration = Duration::from_millis(1_000);
/// Handshake datagrams that wait to leave: one for each link, and answers to a few forgeries.
const OUTBOX_MAX: usize = 64;

const _: () = assert!(INIT_MESSAGE_BYTES + 3 == 150, "an init fits the smallest packet size");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_limited_by_the_second() {
        let mut limiter = Limiter::new();
        let now = Instant::from_millis(5);
        assert_eq!((0..1_000).filter(|_| limiter.take(now)).count(), ANSWERS_PER_SECOND);
        assert!(!limiter.take(Instant::from_millis(1_004)));
        assert!(limiter.take(Instant::from_millis(1_005)));
    }
}
