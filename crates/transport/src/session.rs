//! The one control flow of a session.
//!
//! Whatever comes in (a datagram, a unit, the time) goes through here to the parts that own it:
//! [`Handshake`] the keys, and of an [`Active`] session [`Links`](crate::links::Links) what is known of
//! each link, [`Receiver`](crate::receiver::Receiver) what is on its way in,
//! [`Sender`](crate::sender::Sender) what is on its way out. Receiver and sender know nothing of each
//! other.
//!
//! What leaves, in [`Session::poll_transmit`], in this order:
//! 1. datagrams of a handshake;
//! 2. link by link what cannot wait: a pong or ping for an address that the link may have moved to;
//!    a ping padded to a size that is to be found out, alone in its datagram; one datagram with the
//!    link's report, the media's delivery report and another link's report if they are due, with
//!    pongs, a ping if it is due, and one packet of a channel that waits for no pace;
//! 3. a part of what the peer is to know of our channels, or what we know of its own;
//! 4. of the links in turn, as pace and window allow it, one media packet; padding instead where
//!    rate control is at an experiment;
//! 5. data, on the link that has something to spare first.

mod active;
mod called;
mod handshake;
mod knocking;
mod sealer;
mod timers;
mod transmit;
mod ways;

use std::fmt;

use tautline_units::{Bitrate, ByteCount, Duration, Ecn, Instant};

use crate::channel::{Channel, ChannelNumber, OpenError};
use crate::clock::ClockEstimate;
use crate::config::Config;
use crate::counters::{Counters, Discard, Units};
use crate::crypto::{Identity, PublicKey, Seed};
use crate::error::{Error, SendError};
use crate::event::{Event, Timer, UnitNumber};
use crate::link::{self, Link, Route};
use crate::round_trips::RoundTrip;
use crate::shared::Shared;
use crate::wire::{Datagram, LinkNumber, REFUSAL_TAG_BYTES, Versions};
use active::{Active, Sealed, opens};
use handshake::Handshake;
use timers::{Owner, Timers};

/// One session between one vehicle (the initiator) and one operator (the responder).
///
/// Sans-I/O: see the crate's page for how to drive it. Holds about 150 kB at four links, under the
/// streaming code 1.5 MB more to send and 2.3 MB to receive, and what waits in its queues; per
/// datagram one AEAD pass, and buffers that are used again.
pub struct Session {
    shared: Shared,
    handshake: Handshake,
    active: Option<Box<Active>>,
    timers: Timers,
    /// True while a part may want to be called at another time than the table has.
    timers_stale: bool,
    /// The packets of the datagram that is opened or written.
    plaintext: Vec<u8>,
    /// The codepoint of the datagram that was written last.
    ecn: Ecn,
    now: Instant,
}

/// The beginning.
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
        config.validate()?;
        let (versions, seed) = (config.versions, seed.into());
        let handshake = Handshake::initiate(identity, peer, lease, routes, versions, seed, now);
        Ok(Self::new(config, handshake, now))
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
        config.validate()?;
        let handshake = Handshake::respond(identity, peer, lease, config.versions, seed.into());
        Ok(Self::new(config, handshake, now))
    }

    fn new(config: Config, handshake: Handshake, now: Instant) -> Self {
        let (shared, plaintext) = (Shared::new(config), Vec::new());
        let (timers, timers_stale) = (Timers::new(), true);
        let ecn = Ecn::NotEct;
        Self { shared, handshake, active: None, timers, timers_stale, plaintext, ecn, now }
    }
}

/// What comes in.
impl Session {
    /// Opens a channel, or gives one that is open another cap or descriptor.
    ///
    /// The command's and the media's are open from the beginning. The peer is told of the channel
    /// once in a session; it takes units of a channel that it has not opened itself from then on.
    ///
    /// # Errors
    /// [`OpenError`]; nothing has changed then.
    pub fn open(&mut self, channel: Channel) -> Result<(), OpenError> {
        let number = channel.number;
        self.shared.channels.open(channel)?;
        let opened = self.shared.channels.get(number);
        if let Some((active, channel)) = self.active.as_mut().zip(opened) {
            active.sender.announce(channel);
            self.timers_stale = true;
        }
        Ok(())
    }

    /// Hands over a unit that is worthless `deadline` from now, and gives its number.
    ///
    /// Media is queued on the links at once, a command goes ahead of it; poll for datagrams next.
    ///
    /// # Errors
    /// [`SendError`]; nothing of the unit is then sent, and it has no number.
    pub fn send(
        &mut self,
        channel: ChannelNumber,
        unit: &[u8],
        deadline: Duration,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        self.now = self.now.max(now);
        let sent = match self.active.as_deref_mut() {
            Some(active) => {
                let Active { sender, links, .. } = active;
                self.timers_stale = true;
                sender.send(channel, unit, deadline, links, &mut self.shared, self.now)
            }
            None => Err(SendError::NotEstablished),
        };
        let units = self.shared.counters.units_mut(channel);
        units.offered += 1;
        if let Err(error) = &sent {
            units.refuse(error);
            self.shared.counters.discard(match error {
                SendError::NotEstablished | SendError::NoLink => Discard::SendNoLink,
                SendError::Deadline { .. } | SendError::NotOpened { .. } => Discard::SendInvalid,
                SendError::TooLarge { .. } => Discard::SendTooLarge,
                SendError::OverCap { .. } => Discard::SendOverCap,
                SendError::Congested => Discard::SendCongested,
            });
        }
        sent
    }

    /// Takes a datagram that came by `route`. Whatever it holds, the session goes on.
    pub fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) {
        self.handle_marked(route, datagram, Ecn::NotEct, now);
    }

    /// Takes a datagram as [`handle_datagram`](Self::handle_datagram) does, with its codepoint.
    pub fn handle_marked(&mut self, route: Route, datagram: &[u8], ecn: Ecn, now: Instant) {
        self.now = self.now.max(now);
        self.shared.counters.datagrams_received += 1;
        let outcome = match Datagram::parse(datagram) {
            Ok(Datagram::Init { link, message }) => self.handle_init(route, link, message),
            Ok(Datagram::Response { session, message, .. }) => {
                self.handle_response(route, session, message)
            }
            Ok(Datagram::Refusal { session, versions, tag }) => {
                self.handle_refusal(session, versions, tag)
            }
            Ok(Datagram::Knock { end, signed, tag }) => self.handle_knock(route, end, signed, tag),
            Ok(Datagram::Sealed { link, session, number_low, ciphertext }) => {
                let bytes = datagram.len();
                let sealed = Sealed { route, link, number_low, ciphertext, bytes, ecn };
                self.handle_sealed(session, &sealed)
            }
            Err(_) => Err(Discard::DatagramMalformed),
        };
        if let Err(what) = outcome {
            self.shared.counters.discard(what);
        }
        self.timers_stale = true;
    }

    /// Takes the kernel's word that a datagram of `length` is too large for the way to `route`.
    ///
    /// It is lost as any other; the link's size is chosen anew.
    pub fn handle_too_large(&mut self, route: Route, length: ByteCount, now: Instant) {
        self.now = self.now.max(now);
        let Some(active) = &mut self.active else { return };
        for link in active.links.iter_mut().filter(|link| link.route() == route) {
            link.on_too_large(length.get() as usize, self.now);
        }
        self.timers_stale = true;
    }

    /// Takes the word that the stream of `route` takes no datagram at present, or takes them again.
    ///
    /// Meanwhile what is meant for it waits here, media in order of deadlines, and what is stale by then is
    /// dropped. A datagram that is handed over all the same is lost as any other.
    pub fn handle_blocked(&mut self, route: Route, is_blocked: bool, now: Instant) {
        self.now = self.now.max(now);
        let Some(active) = &mut self.active else { return };
        active.links.set_blocked(route, is_blocked);
        self.timers_stale = true;
    }

    /// Does what is due: deadlines, liveness, reports. Poll for datagrams and events next.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let now = self.now;
        self.arm();
        self.timers_stale = true;
        self.handshake.handle_timeout(&mut self.shared.counters, now);
        let Some(active) = &mut self.active else { return };
        active.handle_timeout(&self.timers, &mut self.shared, now);
        if now.since(active.heard_at) > KNOCK_ANEW_AFTER {
            self.handshake.hurry_knocks();
        }
        if now.since(active.heard_at) > CALL_ANEW_AFTER {
            // The responder may have begun anew and forgotten us; the present session stays
            // until a new one is confirmed.
            self.handshake.call_anew(Some(active.present()), now);
        }
    }

    /// Sets the largest datagram that `link` may carry from us: 150 to 1500 bytes, held within.
    ///
    /// What is above 1200 bytes, or was found not to pass, is probed for first. The next units are
    /// cut to the smallest size in use on all links that are up. False if there is no such link.
    pub fn set_datagram_bytes_max(&mut self, link: LinkNumber, most: ByteCount) -> bool {
        let Some(active) = &mut self.active else { return false };
        let Some(place) = active.links.place(link) else { return false };
        let most = most.get().clamp(150, 1_500) as usize;
        active.links[place].set_datagram_bytes_max(most, self.now);
        self.timers_stale = true;
        true
    }
}

/// What goes out.
impl Session {
    /// Writes the next datagram into `buffer`, old content replaced, and says where it goes.
    ///
    /// Call until `None` after every other call that takes the time.
    pub fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        self.now = self.now.max(now);
        let now = self.now;
        let Self { handshake, active, plaintext, shared, ecn, .. } = self;
        *ecn = Ecn::NotEct;
        let route = match handshake.poll_transmit(now) {
            Some((route, datagram)) => {
                buffer.clear();
                buffer.extend_from_slice(&datagram);
                Some(route)
            }
            None => match active {
                Some(active) => {
                    let route = active.poll_transmit(plaintext, buffer, shared, now);
                    *ecn = active.sealer.ecn;
                    route
                }
                None => None,
            },
        };
        // What was written and may not leave changes them too.
        self.timers_stale = true;
        match route {
            Some(_) => self.shared.counters.datagrams_sent += 1,
            None => self.arm(),
        }
        route
    }

    /// Returns the codepoint with which the datagram is to leave that [`poll_transmit`](Self::poll_transmit) wrote last;
    /// who cannot set one leaves it out.
    pub fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// Gives the next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.poll_event()
    }

    /// Says when [`Session::handle_timeout`] wants to be called, and why.
    ///
    /// May lie in the past: then it is due now. `None` while there is nothing to wait for.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        if self.timers_stale {
            return self.timers_anew().first();
        }
        debug_assert_eq!(self.timers, self.timers_anew(), "who changes says so");
        self.timers.first()
    }

    /// Brings the table of timers up to date: every part that may have changed is asked when it next
    /// wants to be called. Once for all that came in and went out, not once a datagram.
    fn arm(&mut self) {
        if !std::mem::replace(&mut self.timers_stale, false) {
            return;
        }
        self.timers.set(Owner::Handshake, self.handshake.next_timeout());
        if let Some(Active { links, receiver, sender, .. }) = self.active.as_deref_mut() {
            self.timers.set(Owner::Receiver, receiver.next_timeout());
            self.timers.set(Owner::Sender, sender.next_timeout());
            for (place, due) in links.take_timeouts(&self.shared.config) {
                self.timers.set(Owner::Link(place), Some(due));
            }
        }
    }

    /// Asks every part.
    fn timers_anew(&self) -> Timers {
        let mut timers = Timers::new();
        timers.set(Owner::Handshake, self.handshake.next_timeout());
        if let Some(Active { links, receiver, sender, .. }) = self.active.as_deref() {
            timers.set(Owner::Receiver, receiver.next_timeout());
            timers.set(Owner::Sender, sender.next_timeout());
            for (place, link) in links.iter().enumerate() {
                let may_carry = links.carrying().allows(link);
                let due = link.next_timeout(&self.shared.config, may_carry);
                timers.set(Owner::Link(place), Some(due));
            }
        }
        timers
    }
}

/// What is observed.
impl Session {
    /// Returns what is known of each link, in order of their numbers; none before the handshake.
    pub fn links(&self) -> impl Iterator<Item = link::View> + '_ {
        let active = self.active.iter();
        active.flat_map(|active| active.links.views(active.sender.media_span(), self.now))
    }

    /// Returns how each link's delays were spread of late, in the order of [`Session::links`].
    pub fn spreads(&self) -> impl Iterator<Item = link::Spreads> + '_ {
        let active = self.active.iter();
        active.flat_map(|active| active.links.iter().map(|link| link.spreads(self.now)))
    }

    /// Returns the newest round trips of small pings on all links, oldest first: at most 128. A number
    /// that is missing between two looks is of one that came and went meanwhile.
    pub fn round_trips(&self) -> impl Iterator<Item = &RoundTrip> {
        self.active.iter().flat_map(|active| active.links.round_trips())
    }

    /// Returns what was done and what was thrown away.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Returns the units of `channel`, both ways, and what became of them.
    pub fn units(&self, channel: ChannelNumber) -> Units {
        let open = self.active.as_ref().map_or(0, |active| active.receiver.open_count(channel));
        Units { open, ..self.shared.counters.units(channel) }
    }

    /// Returns every channel of which units were handed over or heard, in order of their numbers.
    pub fn channels(&self) -> impl Iterator<Item = ChannelNumber> + '_ {
        self.shared.counters.channels()
    }

    /// Returns the peer's clock against ours; `None` before the first pong.
    pub fn clock(&self) -> Option<ClockEstimate> {
        self.active.as_ref()?.links.clock(self.now)
    }

    /// Returns whether the handshake is complete.
    pub fn is_established(&self) -> bool {
        self.active.is_some()
    }

    /// Returns whether units can cross: the peer answers on one link at least.
    pub fn is_up(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.links.iter().any(Link::is_up))
    }

    /// Returns who the peer is.
    pub fn peer(&self) -> &PublicKey {
        self.handshake.peer()
    }

    /// Returns whether one of the session's links has `route`, or is to have it.
    pub fn has_route(&self, route: Route) -> bool {
        self.handshake.called().iter().any(|called| called.route == route)
            || self.links().any(|link| link.route == route)
    }

    /// Returns the id of the lease under which the two were introduced.
    pub fn lease(&self) -> &[u8; 16] {
        self.handshake.lease()
    }

    /// Returns when the last authentic datagram came, or the session was established; `None` before.
    pub fn heard_at(&self) -> Option<Instant> {
        self.active.as_ref().map(|active| active.heard_at)
    }

    /// Returns whether the peer has begun the session that is established.
    pub fn is_begun_by_peer(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.begun_by.is_some())
    }

    /// Returns whether `datagram` is meant for this session, where several share their sockets: it
    /// names one of our ids, or is a first message that knows our lease. It may still be forged.
    pub fn is_addressed_by(&self, datagram: &[u8]) -> bool {
        match Datagram::parse(datagram) {
            Ok(Datagram::Init { message, .. }) => self.handshake.admits(message),
            Ok(Datagram::Knock { signed, tag, .. }) => self.handshake.is_knock(signed, tag),
            Ok(
                Datagram::Response { session, .. }
                | Datagram::Refusal { session, .. }
                | Datagram::Sealed { session, .. },
            ) => {
                let is_ours = |active: &Active| active.session == session;
                self.active.as_deref().is_some_and(is_ours) || self.handshake.has_id(session)
            }
            Err(_) => false,
        }
    }
}

/// The handshake, and the session that comes of it.
// protocol 2
impl Session {
    fn handle_init(
        &mut self,
        route: Route,
        link: LinkNumber,
        message: &[u8],
    ) -> Result<(), Discard> {
        let present = self.active.as_ref().map(|active| active.present());
        let counters = &mut self.shared.counters;
        let handled = self.handshake.handle_init(route, link, message, present, counters, self.now);
        self.tell_refused();
        handled
    }

    /// Takes the responder's word that there is no version in common. A present session goes on, and
    /// so does the calling, for the peer may be updated.
    fn handle_refusal(
        &mut self,
        session: u16,
        theirs: Versions,
        tag: &[u8; REFUSAL_TAG_BYTES],
    ) -> Result<(), Discard> {
        let handled = self.handshake.handle_refusal(session, theirs, tag);
        self.tell_refused();
        handled
    }

    fn tell_refused(&mut self) {
        if let Some(mismatch) = self.handshake.take_mismatch() {
            self.shared.event(Event::Refused { mismatch });
        }
    }

    fn handle_response(
        &mut self,
        route: Route,
        session: u16,
        message: &[u8],
    ) -> Result<(), Discard> {
        let accepted = self.handshake.handle_response(session, message)?;
        let version = accepted.version;
        tracing::info!(session, version, remote = %route.remote, "session established");
        let called = self.handshake.called();
        self.begin(Active::initiated(accepted, session, called, &self.shared, self.now));
        Ok(())
    }

    fn handle_sealed(&mut self, session: u16, sealed: &Sealed<'_>) -> Result<(), Discard> {
        let now = self.now;
        let known = self.active.as_ref().is_some_and(|active| active.session == session);
        if !known {
            let half = self.handshake.confirm(session, |keys| opens(keys, sealed))?;
            let (version, remote) = (half.version, sealed.route.remote);
            tracing::info!(session, version, %remote, "session established");
            self.begin(Active::responded(half, &self.shared, now));
        }
        let Some(active) = &mut self.active else { return Ok(()) };
        let place = active.open(sealed, &mut self.plaintext, &self.shared.config, now)?;
        active.handle_plaintext(place, sealed, &self.plaintext, &mut self.shared, now);
        self.handshake.stop_calling();
        Ok(())
    }

    /// Makes `active` the session, in place of the one before it.
    fn begin(&mut self, active: Active) {
        if let Some(old) = &mut self.active {
            old.receiver.abandon(&mut self.shared, self.now);
            old.links.abandon(&mut self.shared.counters);
            old.sender.abandon(&mut self.shared.counters);
            if old.sender.is_budget_told() {
                // No link of the new session is up yet.
                self.shared.event(Event::Budget { media: Bitrate::ZERO, shown: Bitrate::ZERO });
            }
        }
        self.active = Some(Box::new(active));
        (self.timers, self.timers_stale) = (Timers::new(), true);
        self.shared.counters.handshakes += 1;
        self.shared.event(Event::Established);
    }
}

impl fmt::Debug for Session {
    /// Writes neither keys nor the lease.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("identity", self.handshake.identity())
            .field("peer", self.handshake.peer())
            .field("established", &self.active.is_some())
            .finish_non_exhaustive()
    }
}

/// With every link silent for so long, the responder knocks again: its NAT may have forgotten.
const KNOCK_ANEW_AFTER: Duration = Duration::from_millis(500);
/// With every link silent for so long, the initiator tries a new handshake beside the old session.
// protocol 2
const CALL_ANEW_AFTER: Duration = Duration::from_secs(2);
