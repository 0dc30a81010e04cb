use tautline_units::{ByteCount, Duration, Instant};

use super::Shared;
use super::active::Active;
use super::rescue::Carrying;
use crate::config::Config;
use crate::counters::Discard;
use crate::crypto::Keys;
use crate::error::SendError;
use crate::event::UnitNumber;
use crate::link::{Link, Route};
use crate::send::protect::{self, Plan};
use crate::send::schedule::{self, Policy};
use crate::send::{Coder, Entry, Ledger};
use crate::wire::{
    self, Class, Coded, LinkNumber, PADDING, Ping, Pong, Report, SEALED_HEADER_BYTES,
    SYMBOL_AROUND_BYTES, TAG_BYTES,
};

/// What sending needs beside the links.
#[derive(Debug)]
pub(crate) struct Outgoing {
    coder: Coder,
    policy: Box<dyn Policy>,
    pub(super) ledger: Ledger,
    next_control: u64,
    next_media: u64,
    /// The time that the last media unit was given.
    media_span: Duration,
    /// The link that media is taken from next.
    turn: usize,
    assignment: Vec<Option<usize>>,
    plaintext: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl Outgoing {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            coder: Coder::default(),
            policy: config.schedule.policy(),
            ledger: Ledger::default(),
            next_control: 0,
            next_media: 0,
            media_span: config.media_deadline,
            turn: 0,
            assignment: Vec::new(),
            plaintext: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// How long media units are worth something.
    pub(crate) fn media_span(&self) -> Duration {
        self.media_span
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
        let symbol_bytes_max = self.datagram_bytes_max(shared) - SYMBOL_AROUND_BYTES;
        let plan = match class {
            Class::Control => protect::plan_control(unit.len(), symbol_bytes_max),
            Class::Media => {
                protect::plan_media(&shared.config.protect, unit.len(), symbol_bytes_max)
            }
        };
        let plan = plan.map_err(|most| SendError::TooLarge { found: ByteCount::of(unit), most })?;
        match class {
            Class::Control => self.send_control(&plan, unit, now + deadline, shared, now),
            Class::Media => self.send_media(&plan, unit, now + deadline, shared, now),
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
        shared.counters.control_sent += 1;
        Ok(UnitNumber::new(number))
    }

    /// Codes the unit and gives each packet to the link that the policy chooses.
    fn send_media(
        &mut self,
        plan: &Plan,
        unit: &[u8],
        deadline: Instant,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        self.budget.on_unit(now);
        self.outgoing.media_span = deadline.since(now);
        let clock = self.clock(now);
        let mut places = [0; LinkNumber::COUNT];
        let mut views = [IDLE; LinkNumber::COUNT];
        let mut count = 0;
        let carrying = Carrying::of(&self.links);
        for (place, link) in self.links.iter().enumerate().filter(|(_, l)| carrying.allows(l)) {
            places[count] = place;
            views[count] = schedule::Link {
                free_at: link.pacer.free_at(now),
                rate: link.pacer.rate(),
                owd: link.owd_out_or_guess(clock),
            };
            count += 1;
        }
        if count == 0 {
            return Err(SendError::NoLink);
        }
        let Outgoing { coder, policy, ledger, spare, next_media, assignment, .. } =
            &mut self.outgoing;
        let block = schedule::Block {
            source_count: plan.source_count,
            packet_count: plan.packet_count,
            datagram_bytes: ByteCount::new((plan.symbol_bytes + SYMBOL_AROUND_BYTES) as u64),
            deadline,
            spread: shared.config.spread,
            now,
        };
        policy.assign(&block, &views[..count], assignment);
        let in_time = assignment.iter().flatten().count();
        if in_time < plan.source_count {
            return Err(SendError::Congested);
        }
        shared
            .counters
            .discard_many(Discard::MediaUnschedulable, (plan.packet_count - in_time) as u64);
        let number = *next_media;
        *next_media += 1;
        ledger.open(number, plan.source_count, in_time);
        coder.encode(plan, unit, now);
        for ((index, symbol), choice) in (0..).zip(coder.symbols()).zip(assignment.iter()) {
            let Some(choice) = choice else { continue };
            let header = header(Class::Media, number, index, plan, deadline);
            let entry = entry(number, &header, symbol, deadline, spare);
            if let Err(refused) = self.links[places[*choice]].pacer.push(entry) {
                shared.counters.discard(Discard::MediaUnschedulable);
                ledger.lose(number);
                spare.push(refused.plaintext);
            }
        }
        shared.counters.media_sent += 1;
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
        let mut plaintext = std::mem::take(&mut self.outgoing.plaintext);
        plaintext.clear();
        self.write_reports(place, &mut plaintext);
        let link = &mut self.links[place];
        let most = link.datagram_bytes_max - SEALED_HEADER_BYTES - TAG_BYTES;
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

    /// The reports that are due on a link: its own first, then as many others as fit.
    fn write_reports(&mut self, place: usize, plaintext: &mut Vec<u8>) {
        let link = &mut self.links[place];
        if !std::mem::take(&mut link.reports_due) {
            return;
        }
        let most = link.datagram_bytes_max - SEALED_HEADER_BYTES - TAG_BYTES;
        let count = self.links.len();
        for step in 0..count {
            let other = &self.links[(place + step) % count];
            if plaintext.len() + Report::BYTES > most {
                break;
            }
            if let Some(report) = other.arrivals.report() {
                report.write(plaintext);
            }
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
        while let Some(entry) = link.pacer.pop() {
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
                if let Some(spare) = link.flight.push(entry, now) {
                    self.outgoing.recycle(spare);
                }
                return Some(route);
            }
            if !in_time {
                shared.counters.discard(Discard::MediaExpired);
            }
            self.outgoing.ledger.lose(entry.unit);
            self.outgoing.recycle(entry.plaintext);
        }
        if !link.grant.probing {
            return None;
        }
        let bytes = (link.grant.rate * PADDING_TIME).get() as usize;
        let most = link.datagram_bytes_max.min(bytes).max(100) - SEALED_HEADER_BYTES - TAG_BYTES;
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

    /// The least delay that a packet can see, the clock estimate's error in its favour.
    fn owd_out_least(&self, clock: Option<crate::ClockEstimate>) -> Duration {
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
    link.pacer.on_sent(bytes, now);
    tracing::trace!(link = link.number.get(), number, bytes, "sent");
    true
}

fn header(class: Class, number: u64, index: u8, plan: &Plan, deadline: Instant) -> Coded<'static> {
    Coded {
        class,
        unit_low: number as u32 & 0x00ff_ffff,
        index,
        source_count: plan.source_count as u8,
        deadline_low: deadline.as_nanos().div_ceil(1_000_000) as u16,
        symbol: &[],
    }
}

fn entry(
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
    Entry { plaintext, deadline, unit }
}

/// Half of what the wire's 16 bits of milliseconds can tell apart, with room for clock error.
const DEADLINE_MOST: Duration = Duration::from_secs(30);
/// A mobile link's usual one-way delay.
const OWD_GUESS: Duration = Duration::from_millis(40);
/// Padding never keeps a media packet waiting for longer.
const PADDING_TIME: Duration = Duration::from_millis(2);
/// As many packets as the queues of four links hold in a bad second.
const SPARE_MAX: usize = 4_096;
const IDLE: schedule::Link = schedule::Link {
    free_at: Instant::ZERO,
    rate: tautline_units::Bitrate::ZERO,
    owd: Duration::ZERO,
};
