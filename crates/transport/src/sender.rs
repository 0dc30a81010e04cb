//! The sending half: unit to packets, packets to links, links to their pace.

mod block;
mod budget;
mod failover;
pub mod planner;
pub mod protect;
mod recovery;
mod sharing;
mod stream;
mod tracker;

use std::collections::BTreeMap;

use tautline_units::{ByteCount, Duration, Instant};

use crate::channel::{ChannelNumber, Priority};
use crate::config::Config;
use crate::counters::{Counters, Discard};
use crate::error::SendError;
use crate::event::{Event, Timer, UnitNumber};
use crate::link::{Entry, Link, Settled};
use crate::links::Links;
use crate::shared::Shared;
use crate::wire::stream::REPAIRED_AROUND_BYTES;
use crate::wire::{Coded, SYMBOL_AROUND_BYTES, Tally};
use budget::Budget;
use planner::Policy;
use planner::price::Price;
use protect::Plan;
use recovery::Recovery;

/// What sending needs beside the links.
#[derive(Debug)]
pub(crate) struct Sender {
    /// `None`: size, repair and shares are chosen together.
    policy: Option<Box<dyn Policy>>,
    price: Price,
    budget: Budget,
    /// Whether something happened that the budget depends on.
    budget_stale: bool,
    budget_at: Instant,
    recovery: Recovery,
    /// The next unit's number of each channel but media's.
    next: BTreeMap<ChannelNumber, u64>,
    next_media: u64,
    /// Media units of this session that the peer has delivered, and given up, by its tallies.
    told: (u64, u64),
    /// The time that the last media unit was given.
    media_span: Duration,
    assignment: Vec<Option<usize>>,
    plaintext: Vec<u8>,
}

impl Sender {
    pub(crate) fn new(config: &Config, now: Instant) -> Self {
        let policy = config.schedule.policy();
        let copies = policy.as_ref().is_some_and(|policy| policy.copies());
        Self {
            policy,
            price: Price::new(config.protect.miss_target),
            budget: Budget::new(),
            budget_stale: true,
            budget_at: now,
            recovery: Recovery::new(config, copies),
            next: BTreeMap::new(),
            next_media: 0,
            told: (0, 0),
            media_span: config.media_deadline,
            assignment: Vec::new(),
            plaintext: Vec::new(),
        }
    }

    /// Accepts a unit: see [`crate::Session::send`].
    pub(crate) fn send(
        &mut self,
        channel: ChannelNumber,
        unit: &[u8],
        deadline: Duration,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        if deadline < Duration::from_millis(1) || deadline > DEADLINE_MOST {
            return Err(SendError::Deadline { found: deadline });
        }
        let configured = shared.config.datagram_bytes_max.get() as usize;
        let datagram_bytes_max = links.datagram_bytes_max(configured);
        let Some(priority) = shared.channels.get(channel).map(|channel| channel.priority) else {
            return Err(SendError::NotOpened { channel });
        };
        let beside = Coded::header_bytes(channel) - Coded::HEADER_BYTES;
        let symbol_bytes_max = datagram_bytes_max - SYMBOL_AROUND_BYTES - beside;
        match priority {
            Priority::Command | Priority::Feedback | Priority::Telemetry | Priority::Data => {
                let plan = protect::plan_copies(unit.len(), symbol_bytes_max);
                let plan = plan.map_err(|most| too_large(unit, most))?;
                self.send_copies(channel, &plan, unit, now + deadline, links, shared, now)
            }
            Priority::Media => {
                let symbol_bytes_max = match self.recovery.stream {
                    None => symbol_bytes_max,
                    Some(_) => datagram_bytes_max - REPAIRED_AROUND_BYTES,
                };
                let plan =
                    self.assign(unit, symbol_bytes_max, now + deadline, links, shared, now)?;
                self.send_media(&plan, unit, now + deadline, links, shared, now)
            }
        }
    }

    /// A copy on every link that is up; if none is, on every link that has been.
    // protocol 3, life of a link
    #[allow(clippy::too_many_arguments)]
    fn send_copies(
        &mut self,
        channel: ChannelNumber,
        plan: &Plan,
        unit: &[u8],
        deadline: Instant,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        let any_up = links.iter().any(Link::is_up);
        let live = |link: &Link| link.is_up() || (!any_up && link.has_been_up());
        if !links.iter().any(live) {
            return Err(SendError::NoLink);
        }
        let next = self.next.entry(channel).or_default();
        let number = *next;
        *next += 1;
        self.recovery.encoder.encode(plan, unit, now);
        for link in links.iter_mut().filter(|link| live(link)) {
            for index in 0..plan.packet_count {
                let header = header(channel, number, index as u8, plan, deadline);
                let buffer = self.recovery.buffer();
                let symbol = self.recovery.encoder.symbol(index);
                let entry = entry(number, &header, symbol, deadline, buffer);
                if let Some(pushed_out) = link.push_urgent(entry) {
                    shared.counters.discard(Discard::UrgentOverflow);
                    self.recovery.recycle(pushed_out.plaintext);
                }
            }
        }
        shared.counters.units_mut(channel).accepted += 1;
        Ok(UnitNumber::new(number))
    }

    /// Codes the unit and gives each packet to the link that was chosen.
    fn send_media(
        &mut self,
        plan: &Plan,
        unit: &[u8],
        deadline: Instant,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        let clock = links.clock(now);
        let copies = self.policy.as_ref().is_some_and(|policy| policy.copies());
        let carrying = links.carrying();
        self.recovery.expire_stream(links, now);
        let Self { recovery, assignment, plaintext, .. } = self;
        let in_time = assignment.iter().flatten().count();
        if in_time < plan.source_count {
            return Err(SendError::Congested);
        }
        shared
            .counters
            .discard_many(Discard::MediaUnschedulable, (plan.packet_count - in_time) as u64);
        let number = self.next_media;
        self.next_media += 1;
        let Recovery { encoder, stream, tracker, .. } = recovery;
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
            if choice.is_none() && (recovery.stream.is_none() || index >= source_count) {
                continue;
            }
            plaintext.clear();
            match &mut recovery.stream {
                None => {
                    let header = header(ChannelNumber::MEDIA, number, index as u8, plan, deadline);
                    header.write_header(plaintext);
                    plaintext.extend_from_slice(recovery.encoder.symbol(index));
                }
                Some(stream) if index < source_count => stream.write_source(index, plaintext),
                Some(stream) => stream.write_repair(plaintext),
            }
            let Some(choice) = choice else {
                if let Some(stream) = &mut recovery.stream {
                    stream.on_dropped(plaintext);
                }
                continue;
            };
            for place in 0..links.len() {
                let copy = copies && carrying.allows(&links[place]);
                if place != *choice && !copy {
                    continue;
                }
                let link = &mut links[place];
                let mut copy = recovery.buffer();
                copy.extend_from_slice(plaintext);
                let mut entry =
                    Entry { plaintext: copy, deadline, unit: number, standing: 0, again: false };
                let time = link.rate().time_for(entry.datagram_bytes());
                let end = link.free_at(now) + time;
                let spare = deadline.since(end + link.owd_out_or_guess(clock));
                entry.standing = link.standing(spare, &shared.config, now);
                if let Err(refused) = link.push(entry) {
                    shared.counters.discard(Discard::MediaUnschedulable);
                    recovery.write_off(refused);
                }
            }
        }
        shared.counters.units_mut(ChannelNumber::MEDIA).accepted += 1;
        recovery.repair_stream(links, shared, now);
        recovery.look_after(number, deadline, links, &shared.config, now);
        Ok(UnitNumber::new(number))
    }

    /// Takes what the peer says became of our media units.
    // protocol 4, tally
    pub(crate) fn on_tally(&mut self, tally: &Tally, counters: &mut Counters) {
        let (delivered, lost) = self.told;
        // One tally comes over every link, by a slow one after its successor.
        if tally.channel != ChannelNumber::MEDIA || tally.delivered < delivered || tally.lost < lost
        {
            return;
        }
        if tally.delivered + tally.lost > self.next_media {
            return counters.discard(Discard::ReportImpossible);
        }
        let units = counters.units_mut(ChannelNumber::MEDIA);
        units.told_delivered += tally.delivered - delivered;
        units.told_lost += tally.lost - lost;
        self.told = (tally.delivered, tally.lost);
        self.price.on_tally(tally.delivered, tally.lost);
    }

    /// Takes what became of media packets on the link at `place`.
    pub(crate) fn on_settled(
        &mut self,
        place: usize,
        settled: &mut Vec<Settled>,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) {
        self.recovery.on_settled(place, settled, links, shared, now);
    }

    /// Writes off a media packet that could not leave.
    pub(crate) fn write_off(&mut self, entry: Entry) {
        self.recovery.write_off(entry);
    }

    /// Keeps a buffer for the next packet.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        self.recovery.recycle(buffer);
    }

    /// Notes that what the budget depends on has changed.
    pub(crate) fn doubt_budget(&mut self) {
        self.budget_stale = true;
    }

    /// Sends fresh packets of units that lack some.
    pub(crate) fn handle_timeout(&mut self, links: &mut Links, shared: &mut Shared, now: Instant) {
        self.recovery.look(links, shared, now);
    }

    /// When a unit is to be looked after.
    pub(crate) fn next_timeout(&self) -> Option<(Instant, Timer)> {
        self.recovery.look_due_at().map(|at| (at, Timer::Deadline))
    }

    /// Moves media off links that may not carry it, and tells the budget if it has changed: what
    /// the links that can be in time may send.
    pub(crate) fn settle(&mut self, links: &mut Links, shared: &mut Shared, now: Instant) {
        failover::fail_over(&mut self.recovery, links, shared, now);
        if !self.budget_stale && now.since(self.budget_at) < BUDGET_INTERVAL {
            return;
        }
        (self.budget_stale, self.budget_at) = (false, now);
        let media = self.affordable(links, shared, now);
        if let Some(media) = self.budget.update(media) {
            shared.event(Event::Budget { media });
        }
    }

    /// Returns whether the application was told that it may send media.
    pub(crate) fn is_budget_told(&self) -> bool {
        self.budget.is_told()
    }

    /// For how long a media unit is worth something.
    pub(crate) fn media_span(&self) -> Duration {
        self.media_span
    }
}

fn header(
    channel: ChannelNumber,
    number: u64,
    index: u8,
    plan: &Plan,
    deadline: Instant,
) -> Coded<'static> {
    Coded {
        channel,
        unit_low: number as u32 & 0x00ff_ffff,
        index,
        source_count: plan.source_count as u8,
        deadline_low: deadline.as_nanos().div_ceil(1_000_000) as u16,
        symbol: &[],
    }
}

/// A packet in `plaintext`, old content replaced.
fn entry(
    unit: u64,
    header: &Coded<'_>,
    symbol: &[u8],
    deadline: Instant,
    mut plaintext: Vec<u8>,
) -> Entry {
    plaintext.clear();
    header.write_header(&mut plaintext);
    plaintext.extend_from_slice(symbol);
    Entry { plaintext, deadline, unit, standing: 0, again: false }
}
fn too_large(unit: &[u8], most: ByteCount) -> SendError {
    SendError::TooLarge { found: ByteCount::of(unit), most }
}

/// Half of what the wire's 16 bits of milliseconds can tell apart, with room for clock error.
const DEADLINE_MOST: Duration = Duration::from_secs(30);
/// Shorter than a slice's time: the budget is never older.
const BUDGET_INTERVAL: Duration = Duration::from_millis(2);
