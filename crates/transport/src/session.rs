//! Control flow of a session.
//!
//! Every input (a datagram, a unit, the time) passes through here to the part that owns it.
//! [`Handshake`] owns the keys. In an [`Active`] session, [`Links`](crate::links::Links) owns the
//! state of each link, [`Receiver`](crate::receiver::Receiver) the inbound units and
//! [`Sender`](crate::sender::Sender) the outbound units. Receiver and sender do not know each
//! other.
//!
//! [`Session::poll_transmit`] writes in this order:
//! 1. handshake datagrams;
//! 2. link by link, urgent packets: a pong or ping for an address that the link may have moved to;
//!    an MTU probe, which is a padded ping alone in its datagram; one datagram with the link's
//!    report, the delivery report and another link's report when due, with pongs, a ping when due,
//!    and one packet of a channel that bypasses pacing;
//! 3. a part of an announcement of our channels, or an acknowledgement of the peer's;
//! 4. one media packet from the links in turn, as pacing and congestion window allow, or padding
//!    while rate control probes;
//! 5. data, on the first link with headroom.

mod active;
mod handshake;
mod hole_punching;
mod pairs;
mod remote_links;
mod sealer;
mod timers;
mod transmit;

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

/// A session between one vehicle (the initiator) and one operator (the responder).
///
/// Sans-I/O: the crate's page shows how to drive it. It holds about 150 kB with four links, plus
/// its queues. The streaming code adds 1.5 MB for sending and 2.3 MB for receiving. Each datagram
/// costs one AEAD pass; buffers are reused.
pub struct Session {
    shared: Shared,
    handshake: Handshake,
    active: Option<Box<Active>>,
    timers: Timers,
    /// True while the timer table may be out of date.
    timers_stale: bool,
    /// Packets of the datagram being opened or written.
    plaintext: Vec<u8>,
    /// Codepoint of the datagram written last.
    ecn: Ecn,
    now: Instant,
}

/// Creation of a session.
impl Session {
    /// Creates the end that begins a session with `peer` over `routes`: route i becomes link i.
    ///
    /// `lease` is the id under which the switchboard introduced the two ends. `seed` is 32 random
    /// bytes, fresh for every session, or a number in virtual time.
    ///
    /// # Errors
    /// [`Error::Config`], or [`Error::Routes`] without routes or with more than sixteen.
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

    /// Creates the end that waits, without blocking, for `peer` to begin a session. Links are
    /// learned from authentic datagrams.
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

/// Inputs: what the application hands over, datagrams received, and the time.
impl Session {
    /// Opens a channel, or replaces an open one of the same number, to give it another cap. The
    /// peer keeps the order, priority and descriptor that were announced first in a session.
    ///
    /// The command and media channels are open from the start. The channel is announced to the
    /// peer, and again at the start of each later session. From the announcement on, the peer
    /// accepts units of a channel that it has not opened itself.
    ///
    /// # Errors
    /// [`OpenError`]; nothing changes then.
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

    /// Queues a unit that expires `deadline` from now, and returns its number.
    ///
    /// Media is queued on the links immediately; commands overtake it. Poll for datagrams next.
    ///
    /// # Errors
    /// [`SendError`]; then no part of the unit is sent and it gets no number.
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

    /// Handles a datagram received by `route`. No content can end the session.
    pub fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) {
        self.handle_marked(route, datagram, Ecn::NotEct, now);
    }

    /// Handles a datagram as [`handle_datagram`](Self::handle_datagram) does, with its ECN
    /// codepoint.
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
            Ok(Datagram::HolePunch { end, signed, tag }) => {
                self.handle_hole_punch(route, end, signed, tag)
            }
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

    /// Handles the kernel's error that a datagram of `length` exceeds the MTU towards `route`.
    ///
    /// The datagram counts as lost, and the link chooses a new datagram size.
    pub fn handle_too_large(&mut self, route: Route, length: ByteCount, now: Instant) {
        self.now = self.now.max(now);
        let Some(active) = &mut self.active else { return };
        for link in active.links.iter_mut().filter(|link| link.route() == route) {
            link.on_too_large(length.get() as usize, self.now);
        }
        self.timers_stale = true;
    }

    /// Sets whether the stream of `route` is blocked and takes no datagrams.
    ///
    /// While it is blocked, its packets wait here, media in order of deadlines, and expired packets
    /// are dropped. A datagram handed over anyway counts as lost.
    pub fn handle_blocked(&mut self, route: Route, is_blocked: bool, now: Instant) {
        self.now = self.now.max(now);
        let Some(active) = &mut self.active else { return };
        active.links.set_blocked(route, is_blocked);
        self.timers_stale = true;
    }

    /// Runs everything that is due: deadlines, liveness, reports. Poll for datagrams and events
    /// next.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let now = self.now;
        self.arm();
        self.timers_stale = true;
        self.handshake.handle_timeout(&mut self.shared.counters, now);
        let Some(active) = &mut self.active else { return };
        active.handle_timeout(&self.timers, &mut self.shared, now);
        if now.since(active.heard_at) > PUNCH_AGAIN_AFTER {
            self.handshake.hurry_hole_punching();
        }
        if now.since(active.heard_at) > CALL_ANEW_AFTER {
            // The responder may have restarted and lost our session. The present session stays
            // until a new one is confirmed.
            self.handshake.call_anew(Some(active.present()), now);
        }
    }

    /// Sets the largest datagram that we send on `link`, clamped to 150 to 1500 bytes.
    ///
    /// A size above 1200 bytes is probed first. The next units are cut to the smallest size in use
    /// on all live links. Returns false if the link does not exist.
    pub fn set_datagram_bytes_max(&mut self, link: LinkNumber, most: ByteCount) -> bool {
        let Some(active) = &mut self.active else { return false };
        let Some(place) = active.links.place(link) else { return false };
        let most = most.get().clamp(150, 1_500) as usize;
        active.links[place].set_datagram_bytes_max(most, self.now);
        self.timers_stale = true;
        true
    }
}

/// Outputs: datagrams to send, events, and the time of the next timeout.
impl Session {
    /// Writes the next datagram into `buffer`, replacing its content, and returns the route to send
    /// it on; `None` if there is nothing to send now.
    ///
    /// After every other call that takes the time, call this until it returns `None`.
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
        // Packets that were written but may not be sent change the timers too.
        self.timers_stale = true;
        match route {
            Some(_) => self.shared.counters.datagrams_sent += 1,
            None => self.arm(),
        }
        route
    }

    /// Returns the codepoint for the datagram that [`poll_transmit`](Self::poll_transmit) wrote
    /// last. A caller that cannot set codepoints ignores it.
    pub fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// Removes and returns the oldest pending event; `None` if there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.shared.poll_event()
    }

    /// Returns when [`Session::handle_timeout`] must be called next, and why.
    ///
    /// A time in the past means that the call is due now. `None` while no timer is armed.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        if self.timers_stale {
            return self.timers_anew().first();
        }
        debug_assert_eq!(self.timers, self.timers_anew(), "every change updates the timers");
        self.timers.first()
    }

    /// Updates the timer table from every part that may have changed, if it may be out of date. It
    /// runs once after all inputs and outputs, not once per datagram.
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

    /// Returns a new timer table, computed from all parts.
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

/// Observation: the present state of links, clock and counters, without changing any.
impl Session {
    /// Returns a view of each link, in order of link numbers; none before the handshake is
    /// complete.
    pub fn links(&self) -> impl Iterator<Item = link::View> + '_ {
        let active = self.active.iter();
        active.flat_map(|active| active.links.views(active.sender.media_span(), self.now))
    }

    /// Returns the distribution of each link's one-way delays over the last ten seconds, in the
    /// order of [`Session::links`].
    pub fn spreads(&self) -> impl Iterator<Item = link::Spreads> + '_ {
        let active = self.active.iter();
        active.flat_map(|active| active.links.iter().map(|link| link.spreads(self.now)))
    }

    /// Returns the newest round trips of small pings on all links, oldest first, at most 128. A gap
    /// in the numbers between two calls means that a round trip was recorded and evicted in
    /// between.
    pub fn round_trips(&self) -> impl Iterator<Item = &RoundTrip> {
        self.active.iter().flat_map(|active| active.links.round_trips())
    }

    /// Returns the counters of activity and of discards.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Returns the counts of units of `channel` in both directions, by outcome.
    pub fn units(&self, channel: ChannelNumber) -> Units {
        let open = self.active.as_ref().map_or(0, |active| active.receiver.open_count(channel));
        Units { open, ..self.shared.counters.units(channel) }
    }

    /// Returns every channel with units sent or received, in order of channel numbers.
    pub fn channels(&self) -> impl Iterator<Item = ChannelNumber> + '_ {
        self.shared.counters.channels()
    }

    /// Returns the estimate of the peer's clock relative to ours; `None` before the first pong.
    pub fn clock(&self) -> Option<ClockEstimate> {
        self.active.as_ref()?.links.clock(self.now)
    }

    /// Returns whether a handshake has been completed; true even while no link is up.
    pub fn is_established(&self) -> bool {
        self.active.is_some()
    }

    /// Returns whether units can be exchanged: at least one link is up.
    pub fn is_up(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.links.iter().any(Link::is_up))
    }

    /// Returns the peer's public key.
    pub fn peer(&self) -> &PublicKey {
        self.handshake.peer()
    }

    /// Returns whether a link of the session uses `route`, or is to use it.
    pub fn has_route(&self, route: Route) -> bool {
        self.handshake.called().iter().any(|called| called.route == route)
            || self.links().any(|link| link.route == route)
    }

    /// Returns the id of the lease under which the two ends were introduced.
    pub fn lease(&self) -> &[u8; 16] {
        self.handshake.lease()
    }

    /// Returns the time of the last authentic datagram or of session establishment, whichever is
    /// later; `None` before establishment.
    pub fn heard_at(&self) -> Option<Instant> {
        self.active.as_ref().map(|active| active.heard_at)
    }

    /// Returns whether a session is established and the peer initiated it.
    pub fn is_begun_by_peer(&self) -> bool {
        self.active.as_ref().is_some_and(|active| active.begun_by.is_some())
    }

    /// Returns whether `datagram` is addressed to this session, where several share their sockets.
    /// It carries one of our session ids, or is a first message or hole punch that proves knowledge
    /// of our lease. It may still be forged.
    pub fn is_addressed_by(&self, datagram: &[u8]) -> bool {
        match Datagram::parse(datagram) {
            Ok(Datagram::Init { message, .. }) => self.handshake.admits(message),
            Ok(Datagram::HolePunch { signed, tag, .. }) => {
                self.handshake.is_hole_punch(signed, tag)
            }
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

/// Handshake and session establishment.
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

    /// Checks the responder's refusal and, if its versions are new, reports that the two ends share
    /// none. A present session continues. So does the handshake, because the peer may get updated.
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

    /// Replaces the present session, whose units are given up, with `active`, and reports this to
    /// the application: first a budget of zero if the last reported one was above zero, then
    /// [`Event::Established`].
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
    /// Formats the session without its keys and lease.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("identity", self.handshake.identity())
            .field("peer", self.handshake.peer())
            .field("established", &self.active.is_some())
            .finish_non_exhaustive()
    }
}

/// Time without an authentic datagram on any link after which the responder punches again: its NAT
/// may have dropped the mapping.
const PUNCH_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Time without an authentic datagram on any link after which the initiator starts a new handshake
/// next to the old session.
// protocol 2
const CALL_ANEW_AFTER: Duration = Duration::from_secs(2);
