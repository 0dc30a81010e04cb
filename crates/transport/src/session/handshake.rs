use std::collections::VecDeque;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_units::{Duration, Instant};

use super::hole_punching::HolePunching;
use super::remote_links::{RemoteLink, RemoteLinks};
use crate::counters::{Counters, Discard};
use crate::crypto::{
    self, Accepted, Doorman, INIT_MESSAGE_BYTES, Identity, Initiator, Keys, PublicKey, Refusal,
    Seed,
};
use crate::event::Timer;
use crate::link::Route;
use crate::reach::CandidatePair;
use crate::wire::{
    self, HOLE_PUNCH_TAG_BYTES, LinkNumber, REFUSAL_TAG_BYTES, VersionMismatch, Versions,
};

/// One end of the key agreement of a session.
// protocol 2
pub(super) struct Handshake {
    identity: Identity,
    peer: PublicKey,
    lease: [u8; 16],
    rng: ChaCha20Rng,
    role: Role,
    /// Versions that this end supports.
    versions: Versions,
    /// Versions of the peer's last refused handshake or last refusal; `None` before, and after a
    /// handshake with a common version.
    refused: Option<Versions>,
    /// Version mismatch with the peer, until [`Handshake::take_mismatch`] returns it; `None` if
    /// none is new.
    mismatch: Option<VersionMismatch>,
    /// Datagrams ready to send.
    outbox: VecDeque<(Route, Vec<u8>)>,
}

enum Role {
    Initiator {
        called: RemoteLinks,
        calling: Option<Calling>,
        punched: Doorman,
    },
    Responder {
        half_open: Vec<HalfOpen>,
        limiter: Limiter,
        doorman: Doorman,
        hole_punching: HolePunching,
    },
}

/// The established session, as far as a handshake needs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Present<'a> {
    pub(super) session: u16,
    pub(super) peer_session: u16,
    /// Responder only: the first message that began the session, and its answer.
    pub(super) begun_by: Option<&'a (Vec<u8>, Vec<u8>)>,
}

impl Handshake {
    /// Creates the initiator's handshake, whose first message is due now.
    pub(super) fn initiate(
        identity: &Identity,
        peer: PublicKey,
        lease: [u8; 16],
        routes: &[Route],
        versions: Versions,
        seed: Seed,
        now: Instant,
    ) -> Self {
        let called = RemoteLinks::given(routes);
        let punched = Doorman::new(&lease, &identity.public());
        let role = Role::Initiator { called, calling: None, punched };
        let mut handshake = Self::new(identity, peer, lease, versions, seed, role);
        handshake.call(None, now);
        handshake
    }

    /// Creates the responder's handshake, which waits for a first message.
    pub(super) fn respond(
        identity: &Identity,
        peer: PublicKey,
        lease: [u8; 16],
        versions: Versions,
        seed: Seed,
    ) -> Self {
        let doorman = Doorman::new(&lease, &identity.public());
        let hole_punching = HolePunching::new(Doorman::new(&lease, &peer));
        let (half_open, limiter) = (Vec::new(), Limiter::new());
        let role = Role::Responder { half_open, limiter, doorman, hole_punching };
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

    /// Returns whether a handshake in progress uses `session` as our session id.
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

    /// Returns whether a first message proves knowledge of this lease; always false at the
    /// initiator.
    pub(super) fn admits(&self, message: &[u8]) -> bool {
        match &self.role {
            Role::Initiator { .. } => false,
            Role::Responder { doorman, .. } => doorman.admits(message),
        }
    }

    pub(super) fn lease(&self) -> &[u8; 16] {
        &self.lease
    }

    /// Returns the initiator's links by link number; empty at the responder.
    pub(super) fn called(&self) -> &[RemoteLink] {
        match &self.role {
            Role::Initiator { called, .. } => called,
            Role::Responder { .. } => &[],
        }
    }

    /// Adds the candidate pairs of the lease and returns their link indices; none at the responder.
    /// If any is new, the first message of a handshake in progress becomes due.
    pub(super) fn offer(
        &mut self,
        pairs: &[CandidatePair],
        is_up: impl Fn(usize) -> bool,
        now: Instant,
    ) -> Vec<usize> {
        let Role::Initiator { called, calling, .. } = &mut self.role else { return Vec::new() };
        let (places, is_any_new) = called.offer(pairs, is_up);
        if let Some(calling) = calling.as_mut().filter(|_| is_any_new) {
            calling.hurry(now);
        }
        places
    }

    /// Handles a hole punch received by `route` from the peer's socket `end`. Returns the index of
    /// its link and whether it is new. During a handshake the first message answers the hole punch.
    ///
    /// # Errors
    /// [`Discard::HandshakeUnexpected`] at the responder, [`Discard::HandshakeForged`], or
    /// [`Discard::AnswerOverflow`] if there is no room for another address.
    // protocol 10
    pub(super) fn handle_hole_punch(
        &mut self,
        route: Route,
        end: u8,
        signed: &[u8],
        tag: &[u8; HOLE_PUNCH_TAG_BYTES],
        is_up: impl Fn(usize) -> bool,
    ) -> Result<(usize, bool), Discard> {
        let Role::Initiator { called, calling, punched } = &mut self.role else {
            return Err(Discard::HandshakeUnexpected);
        };
        if !punched.hears(signed, tag) {
            return Err(Discard::HandshakeForged);
        }
        let (at, is_new) = called.learn(route, end, is_up)?;
        let initiator = calling.as_ref().and_then(|calling| calling.initiator.as_ref());
        if let Some((initiator, link)) = initiator.zip(LinkNumber::new(at as u8))
            && self.outbox.len() < OUTBOX_MAX
        {
            // The answer has as many bytes as the hole punch.
            self.outbox.push_back((route, init_datagram(link, initiator)));
        }
        Ok((at, is_new))
    }

    /// Returns whether a hole punch proves knowledge of this lease; always false at the responder.
    pub(super) fn is_hole_punch(&self, signed: &[u8], tag: &[u8; HOLE_PUNCH_TAG_BYTES]) -> bool {
        match &self.role {
            Role::Initiator { punched, .. } => punched.hears(signed, tag),
            Role::Responder { .. } => false,
        }
    }

    /// Sets the routes on which this end punches, if it is the responder.
    pub(super) fn punch(&mut self, routes: &[Route], now: Instant) {
        if let Role::Responder { hole_punching, .. } = &mut self.role {
            hole_punching.set_routes(routes, now);
        }
    }

    /// Makes hole punches due sooner, if this end is the responder: no packets arrive from the
    /// peer.
    pub(super) fn hurry_hole_punching(&mut self) {
        if let Role::Responder { hole_punching, .. } = &mut self.role {
            hole_punching.hurry();
        }
    }

    /// Starts a handshake next to the established session `present`, if this end is the initiator
    /// and no handshake is in progress.
    pub(super) fn call_anew(&mut self, present: Option<Present<'_>>, now: Instant) {
        if matches!(self.role, Role::Initiator { calling: None, .. }) {
            self.call(present.map(|present| present.session), now);
        }
    }

    /// Creates a handshake's first message, to be sent on every link, with a session id other than
    /// `taken`.
    fn call(&mut self, taken: Option<u16>, now: Instant) {
        let id = fresh_id(&mut self.rng, |id| Some(id) == taken);
        let Role::Initiator { calling, .. } = &mut self.role else { return };
        let Self { identity, peer, lease, versions, rng, .. } = self;
        let initiator = Initiator::new(identity, peer, lease, id, *versions, rng);
        *calling = Some(Calling::new(initiator, id, now));
    }

    /// Ends the initiator's handshake in progress, because the peer has the established session.
    pub(super) fn stop_calling(&mut self) {
        if let Role::Initiator { calling, .. } = &mut self.role {
            *calling = None;
        }
    }

    /// Returns the next datagram and its route, including a due resend of the first message; `None`
    /// if there is none to send now.
    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<(Route, Vec<u8>)> {
        let due_at = match &self.role {
            Role::Initiator { calling, .. } => calling.as_ref().map(|calling| calling.due_at),
            Role::Responder { hole_punching, .. } => hole_punching.due_at(),
        };
        if due_at.is_some_and(|at| now >= at) {
            self.write_due(now);
        }
        self.outbox.pop_front()
    }

    /// Queues the first message for every link except those learned from hole punches, or the
    /// responder's hole punches; call it when they are due.
    fn write_due(&mut self, now: Instant) {
        match &mut self.role {
            Role::Initiator { called, calling: Some(calling), .. } => {
                let Some(initiator) = &calling.initiator else { return };
                // A learned address gets one answer per hole punch and no more
                // (anti-amplification).
                let told = (0..).zip(called.iter()).filter(|(_, called)| !called.is_learned);
                for (number, called) in told {
                    let Some(link) = LinkNumber::new(number) else { break };
                    self.outbox.push_back((called.route, init_datagram(link, initiator)));
                }
                calling.on_sent(now);
            }
            Role::Initiator { calling: None, .. } => {}
            Role::Responder { hole_punching, .. } => {
                if self.outbox.len() < OUTBOX_MAX {
                    self.outbox.extend(hole_punching.poll(now));
                }
            }
        }
    }

    /// Returns when the first message or a hole punch is due, or the oldest half-open handshake
    /// expires; `None` if there is nothing to wait for.
    pub(super) fn next_timeout(&self) -> Option<(Instant, Timer)> {
        match &self.role {
            Role::Initiator { calling, .. } => {
                calling.as_ref().map(|calling| (calling.due_at, Timer::Handshake))
            }
            Role::Responder { half_open, hole_punching, .. } => {
                let expires_at = half_open.first().map(|half| half.expires_at);
                let due_at = [expires_at, hole_punching.due_at()].into_iter().flatten().min();
                due_at.map(|at| (at, Timer::Handshake))
            }
        }
    }

    /// Drops the half-open handshakes, with their keys, that were not confirmed in time.
    pub(super) fn handle_timeout(&mut self, counters: &mut Counters, now: Instant) {
        let Role::Responder { half_open, .. } = &mut self.role else { return };
        while half_open.first().is_some_and(|half| half.expires_at <= now) {
            half_open.remove(0);
            counters.discard(Discard::HandshakeExpired);
        }
    }

    /// Handles a first message, and queues the answer if it is acceptable or a refusal if there is
    /// no common version. A known message gets the same answer again.
    ///
    /// # Errors
    /// The reason for discarding the message.
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

    /// Checks the responder's refusal of our first message and, if it is valid and its versions are
    /// new, keeps the mismatch for [`Handshake::take_mismatch`].
    ///
    /// # Errors
    /// [`Discard::HandshakeVersion`], or the reason why the refusal is invalid.
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

    /// Removes and returns a version mismatch, once for each version range found at the peer;
    /// `None` if there is no new one.
    pub(super) fn take_mismatch(&mut self) -> Option<VersionMismatch> {
        self.mismatch.take()
    }

    fn on_refused(&mut self, theirs: Versions) {
        if self.refused != Some(theirs) {
            self.refused = Some(theirs);
            self.mismatch = VersionMismatch::of(self.versions, theirs);
        }
    }

    /// Completes the handshake with the answer to our first message, and drops the datagrams that
    /// are queued.
    ///
    /// # Errors
    /// The reason for discarding the answer.
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

    /// Removes and returns the half-open session `session` if `opens` accepts its keys for a
    /// datagram.
    ///
    /// # Errors
    /// [`Discard::DatagramUnknownSession`] if there is none, [`Discard::DatagramForged`] if `opens`
    /// returns false.
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

/// The initiator's handshake in progress: one message, resent with back-off until answered.
#[derive(Debug)]
struct Calling {
    initiator: Option<Initiator>,
    /// Our session id, which the responder is to put into its datagrams.
    session: u16,
    due_at: Instant,
    pause: Duration,
}

impl Calling {
    fn new(initiator: Initiator, session: u16, now: Instant) -> Self {
        Self { initiator: Some(initiator), session, due_at: now, pause: RESEND_FIRST }
    }

    /// Makes the message due now and resets the back-off: there are new addresses.
    fn hurry(&mut self, now: Instant) {
        (self.due_at, self.pause) = (now, RESEND_FIRST);
    }

    /// Records that the message was sent on every link: schedules the next resend after the present
    /// pause, then doubles the pause, up to [`RESEND_MOST`].
    fn on_sent(&mut self, now: Instant) {
        self.due_at = now + self.pause;
        self.pause = (self.pause * 2).min(RESEND_MOST);
    }
}

/// The responder's answer to one first message, kept until a sealed datagram confirms it.
#[derive(Debug)]
pub(super) struct HalfOpen {
    /// First message; a resend of it gets the same answer.
    pub(super) init: Vec<u8>,
    pub(super) response: Vec<u8>,
    pub(super) keys: Keys,
    /// Our session id, which the initiator puts into its datagrams.
    pub(super) session: u16,
    /// The initiator's session id, which we put into our datagrams.
    pub(super) peer_session: u16,
    /// Protocol version of the session: the highest that both ends support.
    pub(super) version: u8,
    /// Time at which the handshake is dropped unless confirmed.
    expires_at: Instant,
}

/// A rate limit on answered first messages: each one costs key agreements.
#[derive(Debug)]
struct Limiter {
    answered_at: VecDeque<Instant>,
}

impl Limiter {
    fn new() -> Self {
        Self { answered_at: VecDeque::with_capacity(ANSWERS_PER_SECOND) }
    }

    /// Counts one more answer; returns false, without counting it, if [`ANSWERS_PER_SECOND`] were
    /// counted within the last second.
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

/// Maximum number of half-open handshakes; a further one evicts the oldest. An honest initiator
/// needs one, or two after a restart.
const HALF_OPEN_MAX: usize = 4;
/// Time after which a half-open handshake that is not confirmed is dropped: the worst one-way delay
/// of a mobile link, 5.7 s ([UGV]), plus a margin. A slower initiator restarts.
// protocol 2
const HALF_OPEN_LIFE: Duration = Duration::from_secs(10);
/// Maximum number of new first messages answered in a second. Only replays reach it, because
/// forgeries fail at the doorman. At about 0.3 ms of work each: 2 % of a core.
const ANSWERS_PER_SECOND: usize = 64;
/// First resend interval: a little above a mobile link's RTT.
const RESEND_FIRST: Duration = Duration::from_millis(100);
const RESEND_MOST: Duration = Duration::from_millis(1_000);
/// Maximum number of queued handshake datagrams, beyond which answers are dropped and hole punches
/// wait: one per link, plus answers to a few forgeries.
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
