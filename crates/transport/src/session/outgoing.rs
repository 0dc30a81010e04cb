use tautline_units::{Duration, Instant};

use super::Shared;
use super::active::Active;
use super::rescue::Carrying;
use super::sharing::too_large;
use crate::config::Config;
use crate::counters::{Counters, Discard};
use crate::error::SendError;
use crate::event::UnitNumber;
use crate::link::{Entry, Link};
use crate::sender::planner::Policy;
use crate::sender::planner::price::Price;
use crate::sender::protect::{self, Code, Plan};
use crate::sender::{Encoder, Stream, Tracker};
use crate::wire::stream::REPAIRED_AROUND_BYTES;
use crate::wire::{Class, Coded, SYMBOL_AROUND_BYTES, Tally};

/// What sending needs beside the links.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(super) encoder: Encoder,
    /// `None`: size, repair and shares are chosen together.
    pub(super) policy: Option<Box<dyn Policy>>,
    pub(super) price: Price,
    /// `None`: every unit is a block.
    pub(super) stream: Option<Box<Stream>>,
    pub(super) tracker: Tracker,
    next_control: u64,
    next_media: u64,
    /// Media units of this session that the peer has delivered, and given up, by its tallies.
    told: (u64, u64),
    /// The time that the last media unit was given.
    pub(super) media_span: Duration,
    /// The link that media is taken from next.
    pub(super) turn: usize,
    /// The link whose report another one carries next.
    pub(super) report_turn: usize,
    pub(super) assignment: Vec<Option<usize>>,
    pub(super) plaintext: Vec<u8>,
    pub(super) spare: Vec<Vec<u8>>,
}

impl Outgoing {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            encoder: Encoder::default(),
            policy: config.schedule.policy(),
            price: Price::new(config.protect.miss_target),
            stream: match config.protect.code {
                Code::Block => None,
                Code::Stream => Some(Box::new(Stream::new())),
            },
            tracker: Tracker::default(),
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
        self.tracker.lose(entry.unit);
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
        let any_up = self.links.iter().any(|link| link.liveness.is_up());
        let live = |link: &Link| link.liveness.is_up() || (!any_up && link.rtt.rtt_min().is_some());
        if !self.links.iter().any(live) {
            return Err(SendError::NoLink);
        }
        let Outgoing { encoder, spare, next_control, .. } = &mut self.outgoing;
        let number = *next_control;
        *next_control += 1;
        encoder.encode(plan, unit, now);
        for link in self.links.iter_mut().filter(|link| live(link)) {
            for (index, symbol) in (0..).zip(encoder.symbols()) {
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
        let Outgoing { encoder, stream, tracker, spare, next_media, assignment, plaintext, .. } =
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
                encoder.encode(plan, unit, now);
                tracker.open(number, plan, in_time, encoder.sources(plan), deadline);
                plan.source_count
            }
            Some(stream) => {
                tracker.open(number, plan, in_time, &[], deadline);
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
                    plaintext.extend_from_slice(encoder.symbol(index));
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
                    tracker.lose(number);
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
/// As many packets as the queues of four links hold in a bad second.
const SPARE_MAX: usize = 4_096;
