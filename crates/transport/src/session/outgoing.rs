use tautline_units::{Duration, Instant};

use super::Shared;
use super::active::Active;
use super::rescue::Carrying;
use super::sharing::too_large;
use crate::config::Config;
use crate::counters::{Counters, Discard};
use crate::crypto::Keys;
use crate::error::SendError;
use crate::event::UnitNumber;
use crate::link::{Link, Pings, Route};
use crate::send::protect::{self, Code, Plan};
use crate::send::quantile::Price;
use crate::send::schedule::Policy;
use crate::send::{Coder, Entry, Ledger, Stream};
use crate::wire::stream::REPAIRED_AROUND_BYTES;
use crate::wire::{
    self, Class, Coded, PADDING, Ping, Pong, SEALED_HEADER_BYTES, SYMBOL_AROUND_BYTES, TAG_BYTES,
    Tally,
};

/// What sending needs beside the links.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(super) coder: Coder,
    /// `None`: size, repair and shares are chosen together.
    pub(super) policy: Option<Box<dyn Policy>>,
    pub(super) price: Price,
    /// `None`: every unit is a block.
    pub(super) stream: Option<Box<Stream>>,
    pub(super) ledger: Ledger,
    next_control: u64,
    next_media: u64,
    /// Media units of this session that the peer has delivered, and given up, by its tallies.
    told: (u64, u64),
    /// The time that the last media unit was given.
    pub(super) media_span: Duration,
    /// The link that media is taken from next.
    turn: usize,
    /// The link whose report another one carries next.
    report_turn: usize,
    pub(super) assignment: Vec<Option<usize>>,
    plaintext: Vec<u8>,
    pub(super) spare: Vec<Vec<u8>>,
}

impl Outgoing {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            coder: Coder::default(),
            policy: config.schedule.policy(),
            price: Price::new(config.protect.miss_target),
            stream: match config.protect.code {
                Code::Block => None,
                Code::Stream => Some(Box::new(Stream::new())),
            },
            ledger: Ledger::default(),
            next_control: 0,
            next_media: 0,
            told: (0, 0),
            media_span: config.media_deadline,
            turn: 0,
            report_turn: 0,
            assignment: Vec::new(),
            plaintext: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Takes what the peer says became of our media units.
    pub(crate) fn on_tally(&mut self, tally: &Tally, counters: &mut Counters) {
        let (delivered, lost) = self.told;
        // One tally comes over every link, by a slow one after its successor.
        if tally.class != Class::Media || tally.delivered < delivered || tally.lost < lost {
            return;
        }
        if tally.delivered + tally.lost > self.next_media {
            return counters.discard(Discard::ReportImpossible);
        }
        let units = counters.units_mut(Class::Media);
        units.told_delivered += tally.delivered - delivered;
        units.told_lost += tally.lost - lost;
        self.told = (tally.delivered, tally.lost);
        self.price.on_tally(tally.delivered, tally.lost);
    }

    /// Writes off a media packet that never left, or that nothing will be heard of.
    pub(super) fn drop_media(&mut self, entry: Entry) {
        self.ledger.lose(entry.unit);
        self.forgo(entry);
    }

    /// Gives up a media packet that waits and that its unit can do without.
    pub(super) fn forgo(&mut self, entry: Entry) {
        if let Some(stream) = &mut self.stream {
            stream.on_dropped(&entry.plaintext);
        }
        self.recycle(entry.plaintext);
    }

    /// An empty buffer.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Keeps a buffer for the next packet.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(buffer);
        }
    }
}

impl Active {
    /// Accepts a unit: see [`super::Session::send`].
    pub(crate) fn send(
        &mut self,
        class: Class,
        unit: &[u8],
        deadline: Duration,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        if deadline < Duration::from_millis(1) || deadline > DEADLINE_MOST {
            return Err(SendError::Deadline { found: deadline });
        }
        let datagram_bytes_max = self.datagram_bytes_max(shared);
        let symbol_bytes_max = datagram_bytes_max - SYMBOL_AROUND_BYTES;
        match class {
            Class::Control => {
                let plan = protect::plan_control(unit.len(), symbol_bytes_max);
                let plan = plan.map_err(|most| too_large(unit, most))?;
                self.send_control(&plan, unit, now + deadline, shared, now)
            }
            Class::Media => {
                let symbol_bytes_max = match self.outgoing.stream {
                    None => symbol_bytes_max,
                    Some(_) => datagram_bytes_max - REPAIRED_AROUND_BYTES,
                };
                let plan = self.assign(unit, symbol_bytes_max, now + deadline, shared, now)?;
                self.send_media(&plan, unit, now + deadline, shared, now)
            }
        }
    }

    /// A copy on every link that is up; if none is, on every link that has been.
    fn send_control(
        &mut self,
        plan: &Plan,
        unit: &[u8],
        deadline: Instant,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        let any_up = self.links.iter().any(|link| link.gate.is_up());
        let live = |link: &Link| link.gate.is_up() || (!any_up && link.delay.rtt_min().is_some());
        if !self.links.iter().any(live) {
            return Err(SendError::NoLink);
        }
        let Outgoing { coder, spare, next_control, .. } = &mut self.outgoing;
        let number = *next_control;
        *next_control += 1;
        coder.encode(plan, unit, now);
        for link in self.links.iter_mut().filter(|link| live(link)) {
            for (index, symbol) in (0..).zip(coder.symbols()) {
                let header = header(Class::Control, number, index, plan, deadline);
                let entry = entry(number, &header, symbol, deadline, spare);
                if let Some(pushed_out) = link.control.push(entry) {
                    shared.counters.discard(Discard::ControlOverflow);
                    spare.push(pushed_out.plaintext);
                }
            }
        }
        shared.counters.units_mut(Class::Control).accepted += 1;
        Ok(UnitNumber::new(number))
    }

    /// Codes the unit and gives each packet to the link that was chosen.
    fn send_media(
        &mut self,
        plan: &Plan,
        unit: &[u8],
        deadline: Instant,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        let clock = self.clock(now);
        let copies = self.outgoing.policy.as_ref().is_some_and(|policy| policy.copies());
        let carrying = Carrying::of(&self.links);
        self.expire_stream(carrying, now);
        let Outgoing { coder, stream, ledger, spare, next_media, assignment, plaintext, .. } =
            &mut self.outgoing;
        let in_time = assignment.iter().flatten().count();
        if in_time < plan.source_count {
            return Err(SendError::Congested);
        }
        shared
            .counters
            .discard_many(Discard::MediaUnschedulable, (plan.packet_count - in_time) as u64);
        let number = *next_media;
        *next_media += 1;
        let source_count = match stream {
            None => {
                coder.encode(plan, unit, now);
                ledger.open(number, plan, in_time, coder.sources(plan), deadline);
                plan.source_count
            }
            Some(stream) => {
                ledger.open(number, plan, in_time, &[], deadline);
                stream.push(number, unit, plan.symbol_bytes, deadline, now)
            }
        };
        for (index, choice) in assignment.iter().enumerate() {
            if choice.is_none() && (stream.is_none() || index >= source_count) {
                continue;
            }
            plaintext.clear();
            match stream {
                None => {
                    let header = header(Class::Media, number, index as u8, plan, deadline);
                    header.write_header(plaintext);
                    plaintext.extend_from_slice(coder.symbol(index));
                }
                Some(stream) if index < source_count => stream.write_source(index, plaintext),
                Some(stream) => stream.write_repair(plaintext),
            }
            let Some(choice) = choice else {
                if let Some(stream) = stream {
                    stream.on_dropped(plaintext);
                }
                continue;
            };
            for (place, link) in self.links.iter_mut().enumerate() {
                let copy = copies && carrying.allows(link);
                if place != *choice && !copy {
                    continue;
                }
                let mut copy = spare.pop().unwrap_or_default();
                copy.clone_from(plaintext);
                let mut entry =
                    Entry { plaintext: copy, deadline, unit: number, standing: 0, again: false };
                let time = link.pacer.rate().time_for(entry.datagram_bytes());
                let end = link.pacer.free_at(now) + time;
                let spare_time = deadline.since(end + link.owd_out_or_guess(clock));
                entry.standing = link.standing(spare_time, &shared.config, now);
                if let Err(refused) = link.pacer.push(entry) {
                    shared.counters.discard(Discard::MediaUnschedulable);
                    ledger.lose(number);
                    if let Some(stream) = stream {
                        stream.on_dropped(&refused.plaintext);
                    }
                    spare.push(refused.plaintext);
                }
            }
        }
        shared.counters.units_mut(Class::Media).accepted += 1;
        if self.outgoing.stream.is_some() {
            self.repair_stream(shared, now);
        } else if shared.config.retransmit && !copies {
            self.look_after(number, deadline, shared, now);
        }
        Ok(UnitNumber::new(number))
    }

    /// Writes the next datagram: first what cannot wait, on any link, then paced media.
    pub(crate) fn poll_transmit(
        &mut self,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        for place in 0..self.links.len() {
            if let Some(route) = self.transmit_urgent(place, buffer, shared, now) {
                return Some(route);
            }
        }
        let count = self.links.len();
        for step in 0..count {
            let place = (self.outgoing.turn + step) % count;
            if let Some(route) = self.transmit_media(place, buffer, shared, now) {
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
            let (route, state) = (link.routing.route(), link.gate.state());
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
        if pings && !link.gate.is_up() && link.routing.is_shown() {
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
            let id = link.probe.send(route, link.gate.state(), interval, now);
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
        if now < link.probe.due_at() || !link.gate.is_trusted() || !link.routing.is_shown() {
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
        link.flight.was_probe();
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

    /// The next media packet of one link, if its pace allows; padding if the link probes.
    fn transmit_media(
        &mut self,
        place: usize,
        buffer: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Option<Route> {
        let clock = self.clock(now);
        let carrying = Carrying::of(&self.links);
        let link = &mut self.links[place];
        if !carrying.allows(link) || !link.pacer.is_ready(now) {
            return None;
        }
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
                link.flight.carry(entry);
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
    /// The delay that a packet will see; half the RTT, or a mobile link's usual, before it is
    /// known.
    pub(super) fn owd_out_or_guess(&self, clock: Option<crate::ClockEstimate>) -> Duration {
        let half = self.delay.rtt_smoothed().map(|rtt| rtt / 2);
        self.delay.owd_out(clock).or(half).unwrap_or(OWD_GUESS)
    }

    /// How the link's small pings fare: by that padded ones are judged.
    fn pings(&self) -> Pings {
        let rtt = self.delay.rtt_smoothed().unwrap_or(PONG_MOST);
        let jitter = self.delay.jitter().unwrap_or_default();
        let patience = (rtt * 2 + jitter * 4).clamp(PONG_LEAST, PONG_MOST);
        Pings { patience, answered: self.probe.answered() }
    }

    /// The least delay that a packet can see, the clock estimate's error in its favour.
    pub(super) fn owd_out_least(&self, clock: Option<crate::ClockEstimate>) -> Duration {
        match (clock, self.delay.owd_out(clock)) {
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
    link.flight.push(bytes, now);
    link.pacer.on_sent(bytes, now);
    tracing::trace!(link = link.number.get(), number, bytes, "sent");
    true
}

pub(super) fn header(
    class: Class,
    number: u64,
    index: u8,
    plan: &Plan,
    deadline: Instant,
) -> Coded<'static> {
    Coded {
        class,
        unit_low: number as u32 & 0x00ff_ffff,
        index,
        source_count: plan.source_count as u8,
        deadline_low: deadline.as_nanos().div_ceil(1_000_000) as u16,
        symbol: &[],
    }
}

pub(super) fn entry(
    unit: u64,
    header: &Coded<'_>,
    symbol: &[u8],
    deadline: Instant,
    spare: &mut Vec<Vec<u8>>,
) -> Entry {
    let mut plaintext = spare.pop().unwrap_or_default();
    plaintext.clear();
    header.write_header(&mut plaintext);
    plaintext.extend_from_slice(symbol);
    Entry { plaintext, deadline, unit, standing: 0, again: false }
}

/// Half of what the wire's 16 bits of milliseconds can tell apart, with room for clock error.
const DEADLINE_MOST: Duration = Duration::from_secs(30);
/// A link that brings no media is reported so much more seldom.
const IDLE_REPORT_INTERVALS: u32 = 10;
/// How long a padded ping's pong is waited for, at least and at most.
const PONG_LEAST: Duration = Duration::from_millis(100);
const PONG_MOST: Duration = Duration::from_millis(1_000);
/// A mobile link's usual one-way delay.
const OWD_GUESS: Duration = Duration::from_millis(40);
/// Padding never keeps a media packet waiting for longer.
const PADDING_TIME: Duration = Duration::from_millis(2);
/// As many packets as the queues of four links hold in a bad second.
const SPARE_MAX: usize = 4_096;
