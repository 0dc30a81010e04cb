//! A session with agreed keys: the control flow behind [`Session`](super::Session).

use tautline_units::{Ecn, Instant};

use super::handshake::{HalfOpen, Present};
use super::remote_links::RemoteLink;
use super::sealer::Sealer;
use super::timers::{Owner, Timers};
use crate::channel::Priority;
use crate::config::Config;
use crate::counters::Discard;
use crate::crypto::{Accepted, Keys};
use crate::event::Event;
use crate::link::{Change, Link, Route, Routing, Settled};
use crate::links::Links;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sequence::Window;
use crate::shared::Shared;
use crate::wire::{Cadence, LinkNumber, Packet, Packets, Ping, Pong, Report, Standing};

/// A session with agreed keys.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) sealer: Sealer,
    /// Our session id, which the peer puts into its datagrams.
    pub(super) session: u16,
    /// Responder only: the first message that began the session, and its answer.
    pub(super) begun_by: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) links: Links,
    pub(super) receiver: Receiver,
    pub(super) sender: Sender,
    /// Time of the last authentic datagram, or of the session's start.
    pub(super) heard_at: Instant,
    /// Index of the link that may send the next media packet first: the one after the last that
    /// did.
    pub(super) media_turn: usize,
    /// Counter of reports, modulo the number of links, which decides which other link's report
    /// travels with the next one.
    pub(super) report_turn: usize,
    /// Index of the link that carried the last announcement or acknowledgement.
    pub(super) announce_turn: usize,
    /// Reusable storage for the media packets that a report settles.
    pub(super) settled: Vec<Settled>,
    /// Standby link that last received a datagram since [`Active::poll_transmit`] was last called;
    /// `None` if none did.
    pub(super) heard_beside: Option<LinkNumber>,
    /// Standby links as the initiator last chose them; `None` before its first choice.
    pub(super) standing: Option<Standing>,
}

/// A sealed datagram as received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sealed<'a> {
    pub(super) route: Route,
    pub(super) link: LinkNumber,
    pub(super) number_low: u32,
    pub(super) ciphertext: &'a [u8],
    pub(super) bytes: usize,
    pub(super) ecn: Ecn,
}

impl Active {
    /// Creates the initiator's session, with a link for every route in `called`.
    pub(super) fn initiated(
        accepted: Accepted,
        session: u16,
        called: &[RemoteLink],
        shared: &Shared,
        now: Instant,
    ) -> Self {
        let sealer = Sealer::new(accepted.keys, accepted.peer_session);
        let mut active = Self::new(sealer, session, None, shared, now);
        for (at, called) in called.iter().enumerate() {
            active.enlist(at, called, &shared.config, now);
        }
        active
    }

    /// Creates the responder's session; links are learned from datagrams.
    pub(super) fn responded(half: HalfOpen, shared: &Shared, now: Instant) -> Self {
        let sealer = Sealer::new(half.keys, half.peer_session);
        Self::new(sealer, half.session, Some((half.init, half.response)), shared, now)
    }

    fn new(
        sealer: Sealer,
        session: u16,
        begun_by: Option<(Vec<u8>, Vec<u8>)>,
        shared: &Shared,
        now: Instant,
    ) -> Self {
        Self {
            sealer,
            session,
            begun_by,
            links: Links::new(),
            receiver: Receiver::new(),
            sender: Sender::new(&shared.config, &shared.channels, now),
            heard_at: now,
            media_turn: 0,
            report_turn: 0,
            announce_turn: 0,
            settled: Vec::new(),
            heard_beside: None,
            standing: None,
        }
    }

    pub(super) fn present(&self) -> Present<'_> {
        Present {
            session: self.session,
            peer_session: self.sealer.peer_session,
            begun_by: self.begun_by.as_ref(),
        }
    }
}

/// Inputs: datagrams received, and timeouts.
impl Active {
    /// Authenticates a datagram, decrypts it into `plaintext`, records its arrival and returns the
    /// index of its link. The responder adds a link that it does not know yet.
    ///
    /// # Errors
    /// The reason for discarding the datagram: [`Discard::DatagramUnknownLink`],
    /// [`Discard::DatagramForged`], [`Discard::DatagramReplayed`] or [`Discard::DatagramStale`].
    // protocol 3
    pub(super) fn open(
        &mut self,
        sealed: &Sealed<'_>,
        plaintext: &mut Vec<u8>,
        config: &Config,
        now: Instant,
    ) -> Result<usize, Discard> {
        let known = self.links.place(sealed.link);
        let number = match known {
            Some(place) => self.links[place].expand(sealed.number_low)?,
            None if self.begun_by.is_none() => return Err(Discard::DatagramUnknownLink),
            None => Window::new().expand(sealed.number_low),
        };
        if !self.sealer.keys.open(sealed.link, number, sealed.ciphertext, plaintext) {
            return Err(Discard::DatagramForged);
        }
        let place = known.unwrap_or_else(|| {
            let routing = Routing::learned(sealed.route, now);
            let mut link = Link::new(sealed.link, routing, config, now);
            link.set_stands_by(
                self.standing.is_some_and(|standing| standing.has(sealed.link)),
                now,
            );
            self.links.insert(link)
        });
        self.heard_at = now;
        self.links.hear(now);
        let carried = (sealed.bytes, sealed.ecn);
        self.links[place].on_datagram(number, sealed.route, carried, config, now);
        Ok(place)
    }

    /// Handles each packet of an authentic datagram received on the link at index `place`, then
    /// selects anew which links carry media.
    pub(super) fn handle_plaintext(
        &mut self,
        place: usize,
        sealed: &Sealed<'_>,
        plaintext: &[u8],
        shared: &mut Shared,
        now: Instant,
    ) {
        for packet in Packets::of(plaintext) {
            match packet {
                Ok(packet) => self.handle_packet(place, sealed.route, packet, shared, now),
                Err(malformed) => {
                    tracing::debug!(%malformed, link = sealed.link.get(), "authentic datagram");
                    shared.counters.discard(Discard::PacketMalformed);
                }
            }
        }
        if self.links[place].stands_by() {
            self.heard_beside = Some(sealed.link);
        }
        self.links.call_streams(&shared.config, now);
        self.elect(now);
        self.sender.settle(&mut self.links, shared, now);
    }

    fn handle_packet(
        &mut self,
        place: usize,
        route: Route,
        packet: Packet<'_>,
        shared: &mut Shared,
        now: Instant,
    ) {
        match packet {
            Packet::Coded(coded) => {
                let Some((order, priority)) = self.receiver.treatment(coded.channel, shared) else {
                    return shared.counters.discard(Discard::ChannelUnknown);
                };
                if let Priority::Media | Priority::Data = priority {
                    self.links[place].on_media(&shared.config, now);
                }
                let clock = self.links.clock(now);
                self.receiver.handle_coded(&coded, order, clock, shared, now);
            }
            Packet::Source(source) => {
                self.links[place].on_media(&shared.config, now);
                self.receiver.handle_source(&source, self.links.clock(now), shared, now);
            }
            Packet::Repair(repair) => {
                self.links[place].on_media(&shared.config, now);
                self.receiver.handle_repair(&repair, self.links.clock(now), shared, now);
            }
            Packet::Ping(ping) => self.handle_ping(place, route, &ping, shared, now),
            Packet::Pong(pong) => self.handle_pong(place, &pong, shared, now),
            Packet::Report(report) => self.handle_report(&report, shared, now),
            Packet::DeliveryReport(report) => {
                self.sender.on_delivery_report(&report, &mut shared.counters);
            }
            Packet::Announcement(part) => self.receiver.handle_announcement(&part, shared),
            Packet::Acknowledgement(told) => self.sender.on_acknowledged(told),
            Packet::Standing(standing) => self.handle_standing(standing, now),
            Packet::Cadence(Cadence { link, interval }) => match self.links.place(link) {
                Some(place) => self.links[place].on_cadence(interval, &shared.config, now),
                None => shared.counters.discard(Discard::ReportImpossible),
            },
            Packet::Unknown { kind } => {
                tracing::debug!(kind, "a packet of a later version");
                shared.counters.discard(Discard::PacketUnknown);
            }
            Packet::UnknownFields => shared.counters.discard(Discard::FieldsUnknown),
        }
    }

    fn handle_ping(
        &mut self,
        place: usize,
        route: Route,
        ping: &Ping,
        shared: &mut Shared,
        now: Instant,
    ) {
        let clock = self.links.clock(now);
        let Shared { config, counters, .. } = shared;
        self.links[place].on_ping(route, ping, clock, config, counters, now);
    }

    /// Applies the initiator's choice of standby links, if this end is the responder and the choice
    /// is newer than the last one.
    // protocol 10
    fn handle_standing(&mut self, standing: Standing, now: Instant) {
        let is_news = self.standing.is_none_or(|known| standing.is_newer_than(known));
        if self.begun_by.is_none() || !is_news {
            return;
        }
        self.standing = Some(standing);
        for link in self.links.iter_mut() {
            link.set_stands_by(standing.has(link.number()), now);
        }
        self.sender.doubt_budget();
    }

    /// Selects anew, if this end is the initiator, the link of each group that is not on standby. A
    /// changed choice travels to the responder with the next pings.
    pub(super) fn elect(&mut self, now: Instant) {
        if self.begun_by.is_some() || !self.links.elect(now) {
            return;
        }
        let turn = self.standing.map_or(1, |standing| standing.turn.wrapping_add(1));
        let standing = Standing { turn, links: self.links.standing_by() };
        self.standing = Some(standing);
        self.sender.doubt_budget();
        tracing::info!(
            links = format_args!("{:016b}", standing.links),
            "these links are on standby"
        );
    }

    fn handle_pong(&mut self, place: usize, pong: &Pong, shared: &mut Shared, now: Instant) {
        let change = self.links.on_pong(place, pong, &mut shared.counters, now);
        note(change, self.links[place].number(), &mut self.sender, shared);
    }

    fn handle_report(&mut self, report: &Report, shared: &mut Shared, now: Instant) {
        let Self { links, sender, settled, .. } = self;
        let clock = links.clock(now);
        let Some(place) = links.place(report.link) else {
            return shared.counters.discard(Discard::ReportImpossible);
        };
        let link = &mut links[place];
        match link.on_report(report, clock, settled, &shared.config, now) {
            Ok(true) => {
                sender.doubt_budget();
                sender.on_settled(place, settled, links, shared, now);
            }
            Ok(false) => {}
            Err(what) => shared.counters.discard(what),
        }
    }

    /// Runs what is due: first deadlines of received units, then the liveness of links, then the
    /// retransmissions that follow from it.
    pub(super) fn handle_timeout(&mut self, timers: &Timers, shared: &mut Shared, now: Instant) {
        let Self { links, receiver, sender, settled, .. } = self;
        receiver.handle_timeout(links.clock(now), shared, now);
        for place in 0..links.len() {
            if links[place].is_expiring(now) {
                links[place].expire(settled, now);
            }
            sender.on_settled(place, settled, links, shared, now);
        }
        for place in 0..links.len() {
            if timers.is_due(Owner::Link(place), now) {
                let change = links.on_timeout(place, &shared.config, now);
                note(change, links[place].number(), sender, shared);
            }
        }
        self.links.call_streams(&shared.config, now);
        self.elect(now);
        let Self { links, sender, .. } = self;
        sender.handle_timeout(links, shared, now);
        sender.settle(links, shared, now);
    }
}

/// Outputs: the next datagram to send, in the order of priority given in `session.rs`.
impl Active {
    pub(super) fn poll_transmit(
        &mut self,
        plaintext: &mut Vec<u8>,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        // Checked only now: packets of the carrying link may have been queued behind this one.
        let beside = self.heard_beside.take().and_then(|number| self.links.place(number));
        if beside.is_some_and(|place| self.links.doubt_beside(place, now)) {
            self.sender.doubt_budget();
            self.elect(now);
            self.sender.settle(&mut self.links, shared, now);
        }
        let count = self.links.len();
        if self.sender.has_command(now) {
            self.sender.release_command(&mut self.links, shared, now);
        }
        if self.sender.has_copies(now) {
            self.sender.release_copies(&mut self.links, &mut shared.counters, now);
        }
        for place in 0..count {
            if self.links[place].is_urgent(now)
                && let Some(route) = self.transmit_urgent(place, plaintext, buffer, shared, now)
            {
                return Some(route);
            }
        }
        if let Some(route) = self.transmit_announcement(plaintext, buffer, shared, now) {
            return Some(route);
        }
        for step in 0..count {
            let place = (self.media_turn + step) % count;
            let link = &self.links[place];
            if link.has_media(now)
                && self.links.carrying().allows(link)
                && let Some(route) = self.transmit_media(place, buffer, shared, now)
            {
                self.media_turn = place + 1;
                return Some(route);
            }
        }
        match self.sender.has_data(now) {
            true => self.transmit_data(buffer, shared, now),
            false => None,
        }
    }
}

/// Returns whether `sealed` opens with `keys` as the first datagram of its link.
pub(super) fn opens(keys: &Keys, sealed: &Sealed<'_>) -> bool {
    let number = Window::new().expand(sealed.number_low);
    keys.open(sealed.link, number, sealed.ciphertext, &mut Vec::new())
}

/// Reports a link's change of state to the application, and marks the budget as out of date if the
/// change affects it.
fn note(change: Change, link: LinkNumber, sender: &mut Sender, shared: &mut Shared) {
    if change.budget {
        sender.doubt_budget();
    }
    if let Some(state) = change.state {
        tracing::info!(link = link.get(), ?state, "link");
        shared.event(Event::Link { link, state });
    }
}
