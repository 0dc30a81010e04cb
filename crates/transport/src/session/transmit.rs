//! What leaves on which link, and when: one datagram at a time.

use tautline_units::{Duration, Instant};

use super::Shared;
use super::active::Active;
use super::rescue::Carrying;
use crate::counters::Discard;
use crate::crypto::Keys;
use crate::link::{Link, Pings, Route};
use crate::wire::{self, PADDING, Ping, Pong, SEALED_HEADER_BYTES, TAG_BYTES, Tally};

impl Active {
    /// Writes the next datagram: first what cannot wait, on any link, then paced media.
    pub(crate) fn poll_transmit(
        &mut self,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        let count = self.links.len();
        for place in 0..count {
            if self.links[place].is_urgent(now)
                && let Some(route) = self.transmit_urgent(place, buffer, shared, now)
            {
                return Some(route);
            }
        }
        let carrying = Carrying::of(&self.links);
        for step in 0..count {
            let place = (self.outgoing.turn + step) % count;
            if self.links[place].has_media(carrying, now)
                && let Some(route) = self.transmit_media(place, buffer, shared, now)
            {
                self.outgoing.turn = place + 1;
                return Some(route);
            }
        }
        None
    }

    /// Pongs, pings, reports and control of one link.
    fn transmit_urgent(
        &mut self,
        place: usize,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        if let Some(route) = self.transmit_to_candidate(place, buffer, shared, now) {
            return Some(route);
        }
        if let Some(route) = self.transmit_probe(place, buffer, shared, now) {
            return Some(route);
        }
        let mut plaintext = std::mem::take(&mut self.outgoing.plaintext);
        plaintext.clear();
        self.write_reports(place, &mut plaintext, shared, now);
        let link = &mut self.links[place];
        let most = link.mtu.size() - SEALED_HEADER_BYTES - TAG_BYTES;
        while plaintext.len() + Pong::BYTES <= most
            && let Some(pong) = link.pongs.pop_front()
        {
            pong.pong(now).write(&mut plaintext);
        }
        let pings = now >= link.probe.due_at() && plaintext.len() + Ping::BYTES <= most;
        if pings {
            let (route, state) = (link.routing.route(), link.liveness.state());
            let id = link.probe.send(route, state, shared.config.ping_interval, now);
            Ping { id, sent_at: now }.write(&mut plaintext);
        }
        while let Some(control) = link.control.front() {
            if now > control.deadline {
                shared.counters.discard(Discard::ControlExpired);
            } else if plaintext.len() + control.plaintext.len() <= most {
                plaintext.extend_from_slice(&control.plaintext);
            } else {
                break;
            }
            let in_time = now <= control.deadline;
            if let Some(entry) = link.control.pop() {
                self.outgoing.recycle(entry.plaintext);
            }
            if in_time {
                // A source packet reaches to the end of its datagram.
                break;
            }
        }
        if pings && !link.liveness.is_up() && link.routing.is_shown() {
            // So that the answer may be as long as it needs: see the rule against amplification.
            let padded = plaintext.len().max(150 - SEALED_HEADER_BYTES - TAG_BYTES);
            plaintext.resize(padded, PADDING);
        }
        let route = link.routing.route();
        let sealed =
            seal(&self.keys, self.peer_session, link, route, &plaintext, buffer, shared, now);
        self.outgoing.plaintext = plaintext;
        sealed.then_some(route)
    }

    /// Pings and pongs for an address that a link may have moved to.
    fn transmit_to_candidate(
        &mut self,
        place: usize,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        let link = &mut self.links[place];
        let active = link.routing.route();
        let mut plaintext = Vec::new();
        let interval = shared.config.ping_interval;
        let pinged = SEALED_HEADER_BYTES + Ping::BYTES + TAG_BYTES;
        let route = if let Some(at) = link.pongs.iter().position(|pong| pong.route != active) {
            let pong = link.pongs.remove(at)?;
            pong.pong(now).write(&mut plaintext);
            pong.route
        } else {
            let route = link.routing.ping_candidate(pinged, interval, now)?;
            let id = link.probe.send(route, link.liveness.state(), interval, now);
            Ping { id, sent_at: now }.write(&mut plaintext);
            route
        };
        seal(&self.keys, self.peer_session, link, route, &plaintext, buffer, shared, now)
            .then_some(route)
    }

    /// A ping padded to a size that is to be found out, when a ping is due on a sound link.
    ///
    /// It travels alone: nothing else is lost with it.
    fn transmit_probe(
        &mut self,
        place: usize,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        let link = &mut self.links[place];
        if now < link.probe.due_at() || !link.liveness.is_trusted() || !link.routing.is_shown() {
            return None;
        }
        let pings = link.pings();
        let bytes = link.mtu.due(pings, now)?;
        let route = link.routing.route();
        let id = link.probe.send_padded(route, now);
        let mut plaintext = std::mem::take(&mut self.outgoing.plaintext);
        plaintext.clear();
        Ping { id, sent_at: now }.write(&mut plaintext);
        plaintext.resize(bytes - SEALED_HEADER_BYTES - TAG_BYTES, PADDING);
        let sealed =
            seal(&self.keys, self.peer_session, link, route, &plaintext, buffer, shared, now);
        self.outgoing.plaintext = plaintext;
        if !sealed {
            return None;
        }
        link.loss.was_probe(bytes);
        link.in_flight.was_probe();
        link.mtu.on_sent(id, bytes, now);
        Some(route)
    }

    /// What arrived on a link, if that is due; and on another one in turn, in case the way back of
    /// that one fails.
    fn write_reports(
        &mut self,
        place: usize,
        plaintext: &mut Vec<u8>,
        shared: &Shared,
        now: Instant,
    ) {
        let tally = self.media_tally();
        let count = self.links.len();
        let link = &mut self.links[place];
        if now < link.arrivals.report_due_at() {
            return;
        }
        let most = link.mtu.size() - SEALED_HEADER_BYTES - TAG_BYTES;
        let pause = shared.config.report_interval * IDLE_REPORT_INTERVALS;
        link.arrivals.take_report(link.number, &link.replay, pause, now);
        let Some(own) = link.arrivals.report() else { return };
        own.write(plaintext);
        if tally.delivered + tally.lost > 0 && plaintext.len() + Tally::BYTES <= most {
            tally.write(plaintext);
        }
        self.outgoing.report_turn = (self.outgoing.report_turn + 1) % count;
        let other = (place + 1 + self.outgoing.report_turn) % count;
        if other != place
            && let Some(report) = self.links[other].arrivals.report()
            && plaintext.len() + report.bytes_on_wire() <= most
        {
            report.write(plaintext);
        }
    }

    /// The next media packet of one link that has it; padding if the link probes.
    fn transmit_media(
        &mut self,
        place: usize,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        let clock = self.clock(now);
        let link = &mut self.links[place];
        let route = link.routing.route();
        let owd = link.owd_out_least(clock);
        while link.may_send_next()
            && let Some(entry) = link.pacer.pop()
        {
            let in_time = now + owd <= entry.deadline;
            let sealed = in_time
                && seal(
                    &self.keys,
                    self.peer_session,
                    link,
                    route,
                    &entry.plaintext,
                    buffer,
                    shared,
                    now,
                );
            if sealed {
                link.media_at = now;
                link.in_flight.carry(entry);
                link.media.sent += 1;
                return Some(route);
            }
            link.media.dropped += 1;
            if !in_time {
                shared.counters.discard(Discard::MediaExpired);
            }
            self.outgoing.drop_media(entry);
        }
        if !link.grant.probing {
            return None;
        }
        let bytes = (link.grant.rate * PADDING_TIME).get() as usize;
        let most = link.mtu.size().min(bytes).max(100) - SEALED_HEADER_BYTES - TAG_BYTES;
        let padding = [PADDING; 1_500];
        seal(&self.keys, self.peer_session, link, route, &padding[..most], buffer, shared, now)
            .then_some(route)
    }
}

impl Link {
    /// Whether something may have to leave that does not wait for the pace.
    fn is_urgent(&self, now: Instant) -> bool {
        !self.pongs.is_empty()
            || self.control.front().is_some()
            || now >= self.probe.due_at()
            || now >= self.arrivals.report_due_at()
            || self.routing.is_moving()
    }

    /// Whether its pace allows media now, and there is some, or padding in its place.
    fn has_media(&self, carrying: Carrying, now: Instant) -> bool {
        (self.grant.probing || self.pacer.next_bytes().is_some())
            && self.pacer.is_ready(now)
            && carrying.allows(self)
    }

    /// The delay that a packet will see; half the RTT, or a mobile link's usual, before it is
    /// known.
    pub(super) fn owd_out_or_guess(&self, clock: Option<crate::ClockEstimate>) -> Duration {
        let half = self.rtt.rtt_smoothed().map(|rtt| rtt / 2);
        self.rtt.owd_out(clock).or(half).unwrap_or(OWD_GUESS)
    }

    /// How the link's small pings fare: by that padded ones are judged.
    fn pings(&self) -> Pings {
        let rtt = self.rtt.rtt_smoothed().unwrap_or(PONG_MOST);
        let jitter = self.rtt.jitter().unwrap_or_default();
        let patience = (rtt * 2 + jitter * 4).clamp(PONG_LEAST, PONG_MOST);
        Pings { patience, answered: self.probe.answered() }
    }

    /// The least delay that a packet can see, the clock estimate's error in its favour.
    pub(super) fn owd_out_least(&self, clock: Option<crate::ClockEstimate>) -> Duration {
        match (clock, self.rtt.owd_out(clock)) {
            (Some(clock), Some(owd)) => owd.saturating_sub(clock.error()),
            (Some(_) | None, _) => Duration::ZERO,
        }
    }
}

/// Seals `plaintext` into `buffer` for `route`; false if it is empty or the route is not allowed
/// so much.
#[allow(clippy::too_many_arguments)]
fn seal(
    keys: &Keys,
    peer_session: u16,
    link: &mut Link,
    route: Route,
    plaintext: &[u8],
    buffer: &mut Vec<u8>,
    shared: &mut Shared,
    now: Instant,
) -> bool {
    if plaintext.is_empty() {
        return false;
    }
    let bytes = SEALED_HEADER_BYTES + plaintext.len() + TAG_BYTES;
    if !link.routing.allows(route, bytes) {
        shared.counters.discard(Discard::AmplificationHeld);
        return false;
    }
    let number = link.next_number;
    link.next_number += 1;
    buffer.clear();
    wire::write_sealed_header(buffer, link.number, peer_session, number);
    keys.seal(link.number, number, plaintext, buffer);
    link.routing.spend(route, bytes);
    link.loss.on_sent(bytes, now);
    link.in_flight.push(bytes, now);
    link.pacer.on_sent(bytes, now);
    tracing::trace!(link = link.number.get(), number, bytes, "sent");
    true
}

/// A link that brings no media is reported so much more seldom.
const IDLE_REPORT_INTERVALS: u32 = 10;
/// How long a padded ping's pong is waited for, at least and at most.
const PONG_LEAST: Duration = Duration::from_millis(100);
const PONG_MOST: Duration = Duration::from_millis(1_000);
/// A mobile link's usual one-way delay.
const OWD_GUESS: Duration = Duration::from_millis(40);
/// Padding never keeps a media packet waiting for longer.
const PADDING_TIME: Duration = Duration::from_millis(2);
