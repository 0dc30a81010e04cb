//! The sending half: splits units into packets, assigns packets to links, and paces the links.

mod announcer;
mod block;
mod budget;
mod commands;
mod failover;
mod lanes;
mod packet;
mod recovery;
mod stream;
mod tracker;

use std::collections::BTreeMap;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::channel::{Channel, ChannelNumber, Channels, Priority};
use crate::config::Config;
use crate::counters::{Counters, Discard};
use crate::error::SendError;
use crate::event::{Timer, UnitNumber};
use crate::link::{Entry, Link, Missed, Settled};
use crate::links::Links;
use crate::planner::{self, Planner, Unit, UnitPlan};
use crate::protect::{self, Plan};
use crate::shared::Shared;
use crate::wire::{Acknowledgement, Coded, DeliveryReport, SYMBOL_AROUND_BYTES};
use announcer::Announcer;
use budget::Budget;
use commands::{Commands, Waiting};
use lanes::{COPIES_RATE, COPIES_SHARE, DATAGRAM_WITH_COMMANDS, Lanes};
use packet::{entry, header};
use recovery::Recovery;

/// The sending half of a session.
#[derive(Debug)]
pub(crate) struct Sender {
    planner: Box<dyn Planner>,
    budget: Budget,
    /// True if an input of the budget has changed since it was last computed.
    budget_stale: bool,
    /// Time at which the budget was last computed.
    budget_at: Instant,
    recovery: Recovery,
    /// Announcements of our channels that the peer has not acknowledged yet.
    announcer: Announcer,
    /// Rate limit of commands, and the command that waits for it.
    commands: Commands,
    /// Packets waiting for their channel's rate cap.
    lanes: Lanes,
    /// Time at which the application last sent a command; `None` before the first.
    commanded_at: Option<Instant>,
    /// Number of the next unit of each channel except media.
    next: BTreeMap<ChannelNumber, u64>,
    /// Number of the next media unit.
    next_media: u64,
    /// Number of media units of this session delivered, and number given up, according to the
    /// peer's delivery reports.
    told: (u64, u64),
    /// Lifetime of the last media unit; the configured one before the first.
    media_span: Duration,
    /// Links that may carry media, as last shown to the planner.
    views: Vec<planner::Link>,
    /// Index of the link of each packet of the unit being sent.
    assignment: Vec<Option<usize>>,
    plaintext: Vec<u8>,
}

impl Sender {
    pub(crate) fn new(config: &Config, channels: &Channels, now: Instant) -> Self {
        let planner = config.planner.planner(&config.planning());
        let recovery = Recovery::new(config, planner.copies());
        Self {
            planner,
            budget: Budget::default(),
            budget_stale: true,
            budget_at: now,
            recovery,
            announcer: Announcer::new(channels.iter(), now),
            commands: Commands::new(now),
            lanes: Lanes::new(now),
            commanded_at: None,
            next: BTreeMap::new(),
            next_media: 0,
            told: (0, 0),
            media_span: config.media_deadline,
            views: Vec::new(),
            assignment: Vec::new(),
            plaintext: Vec::new(),
        }
    }

    /// Queues a unit or refuses it; see [`crate::Session::send`].
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
        let Some(priority) = shared.channels.get(channel).map(|channel| channel.priority) else {
            return Err(SendError::NotOpened { channel });
        };
        match priority {
            Priority::Command => {
                self.commanded_at = Some(now);
                self.send_command(unit, now + deadline, links, shared, now)
            }
            Priority::Feedback | Priority::Telemetry | Priority::Data => {
                self.send_capped(channel, unit, now + deadline, links, shared, now)
            }
            Priority::Media => {
                let plan = self.plan(unit, now + deadline, links, &shared.config, now)?;
                self.send_media(&plan, unit, now + deadline, links, shared, now)
            }
        }
    }

    /// Queues a command on the links, or keeps it as the one that waits, in place of an older one,
    /// while the rate limit forbids sending it. Refuses it if it is too large, or if no link has
    /// ever been up.
    fn send_command(
        &mut self,
        unit: &[u8],
        deadline: Instant,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        let plan = plan_copies(unit, links, &shared.config)?;
        if links.copied_to() == 0 {
            return Err(SendError::NoLink);
        }
        let next = self.next.entry(ChannelNumber::COMMAND).or_default();
        let number = *next;
        *next += 1;
        if self.commands.take_turn(now) {
            self.queue_copies((number, unit), &plan, deadline, links, shared, now);
        } else if self.commands.wait(Waiting { number, unit: unit.to_vec(), deadline }) {
            shared.counters.units_mut(ChannelNumber::COMMAND).displaced += 1;
            shared.counters.discard(Discard::UnitDisplaced);
        }
        shared.counters.units_mut(ChannelNumber::COMMAND).accepted += 1;
        Ok(UnitNumber::new(number))
    }

    /// Queues the waiting command on the links once the rate limit allows it; drops it and counts
    /// it as expired if its deadline has passed, or if the datagrams have become too small for it.
    pub(crate) fn release_command(&mut self, links: &mut Links, shared: &mut Shared, now: Instant) {
        let Some(Waiting { number, unit, deadline }) = self.commands.pop(now) else { return };
        let in_time = deadline >= now;
        match plan_copies(&unit, links, &shared.config).ok().filter(|_| in_time) {
            Some(plan) => self.queue_copies((number, &unit), &plan, deadline, links, shared, now),
            None => {
                shared.counters.units_mut(ChannelNumber::COMMAND).expired += 1;
                shared.counters.discard(Discard::UnitExpired);
            }
        }
    }

    /// Queues a copy of a command on every link that carries copies; see [`Links::copied_to`].
    // protocol 3, life of a link
    fn queue_copies(
        &mut self,
        (number, unit): (u64, &[u8]),
        plan: &Plan,
        deadline: Instant,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) {
        let (channel, copied_to) = (ChannelNumber::COMMAND, links.copied_to());
        self.recovery.encoder.encode(plan, unit, now);
        for link in links.iter_mut().filter(|link| copied_to & link.bit() != 0) {
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
    }

    /// Cuts a unit of a capped channel into packets and queues them in the channel's lane. Refuses
    /// it if it is too large, if no link has ever been up, or if the lane does; see
    /// [`Lanes::push`].
    fn send_capped(
        &mut self,
        channel: ChannelNumber,
        unit: &[u8],
        deadline: Instant,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        let Some(opened) = shared.channels.get(channel) else {
            return Err(SendError::NotOpened { channel });
        };
        let commands = self.commanded_at.is_some_and(|at| now.since(at) < COMMANDING);
        let beside = if commands { DATAGRAM_WITH_COMMANDS.get() as usize } else { usize::MAX };
        let (headroom, rate) = match opened.priority {
            Priority::Data => {
                let rate = links.carriers().fold(0, |sum, link| sum + link.data_rate().bps());
                let headroom = links.carriers().map(|link| link.data_bytes_max().get()).min();
                (headroom, Bitrate::from_bps(rate))
            }
            _ => (None, COPIES_RATE),
        };
        let most = datagram_bytes_max(links, &shared.config).min(beside);
        let most = headroom.map_or(most, |headroom| most.min(headroom as usize));
        let around = SYMBOL_AROUND_BYTES + Coded::header_bytes(channel) - Coded::HEADER_BYTES;
        let plan = protect::plan_parts(unit.len(), most - around)
            .map_err(|most| SendError::TooLarge { found: ByteCount::of(unit), most })?;
        if !links.iter().any(|link| link.is_up() || link.has_been_up()) {
            return Err(SendError::NoLink);
        }
        let next = self.next.entry(channel).or_default();
        let number = *next;
        self.recovery.encoder.encode(&plan, unit, now);
        let packets = (0..plan.packet_count).map(|index| {
            let header = header(channel, number, index as u8, &plan, deadline);
            let symbol = self.recovery.encoder.symbol(index);
            entry(number, &header, symbol, deadline, Vec::new())
        });
        let packets = packets.collect();
        self.lanes.push(opened, packets, rate, &mut shared.counters, now)?;
        *next += 1;
        shared.counters.units_mut(channel).accepted += 1;
        Ok(UnitNumber::new(number))
    }

    /// Returns whether a waiting command may be sent now.
    #[inline]
    pub(crate) fn has_command(&self, now: Instant) -> bool {
        self.commands.due_at().is_some_and(|at| now >= at)
    }

    /// Returns whether feedback or telemetry waits that the caps allow to be sent now.
    #[inline]
    pub(crate) fn has_copies(&self, now: Instant) -> bool {
        !self.lanes.is_empty() && self.lanes.copies_due_at().is_some_and(|at| now >= at)
    }

    /// Queues a copy of the feedback and telemetry that is due now on every link that carries
    /// copies; see [`Links::copied_to`].
    // protocol 3, life of a link
    pub(crate) fn release_copies(
        &mut self,
        links: &mut Links,
        counters: &mut Counters,
        now: Instant,
    ) {
        while self.has_copies(now) {
            let slowest = links.iter().filter(|link| link.is_live()).map(Link::rate).min();
            let rate =
                slowest.map_or(COPIES_RATE, |rate| COPIES_RATE.min(rate.scale(COPIES_SHARE)));
            let Some(packet) = self.lanes.pop_copies(rate, counters, now) else { break };
            let copied_to = links.copied_to();
            for link in links.iter_mut().filter(|link| copied_to & link.bit() != 0) {
                let mut plaintext = self.recovery.buffer();
                plaintext.extend_from_slice(&packet.plaintext);
                if let Some(pushed_out) = link.push_urgent(Entry { plaintext, ..packet }) {
                    counters.discard(Discard::UrgentOverflow);
                    self.recovery.recycle(pushed_out.plaintext);
                }
            }
            self.recovery.recycle(packet.plaintext);
        }
    }

    /// Returns whether data waits that its caps allow to be sent now, and is not held back until a
    /// link has headroom.
    #[inline]
    pub(crate) fn has_data(&self, now: Instant) -> bool {
        !self.lanes.is_empty() && self.lanes.data_due_at().is_some_and(|at| now >= at)
    }

    /// Drops the packets whose deadline has passed. Removes and returns the next data packet that
    /// its channel's cap allows now and that `fits`, of the first packets of each channel; `None`
    /// if there is none.
    pub(crate) fn pop_data(
        &mut self,
        fits: impl Fn(&Entry) -> bool,
        counters: &mut Counters,
        now: Instant,
    ) -> Option<Entry> {
        self.lanes.pop_data(fits, counters, now)
    }

    /// Records that no link has headroom for data before `until`.
    pub(crate) fn hold_data(&mut self, until: Instant) {
        self.lanes.hold_data(until);
    }

    /// Drops the waiting command and the packets that wait for their channel's cap, because a new
    /// session replaces this one, and counts their units as expired.
    pub(crate) fn abandon(&mut self, counters: &mut Counters) {
        let commands = u64::from(self.commands.abandon());
        counters.units_mut(ChannelNumber::COMMAND).expired += commands;
        counters.discard_many(Discard::UnitExpired, commands);
        self.lanes.abandon(counters);
    }

    /// Plans a media unit, writes the links of its packets into `assignment`, and records its
    /// lifetime. Sets the reserve of the links that may carry media, and marks the budget as out of
    /// date, also if the planner refuses the unit.
    fn plan(
        &mut self,
        unit: &[u8],
        deadline: Instant,
        links: &mut Links,
        config: &Config,
        now: Instant,
    ) -> Result<Plan, SendError> {
        self.budget_stale = true;
        self.media_span = deadline.since(now);
        let places = links.carrier_places();
        self.view(links, config, now);
        let unit = Unit { bytes: ByteCount::of(unit), deadline };
        let Self { planner, views, assignment, .. } = self;
        let planned = planner.plan(&unit, views, now);
        let planned = planned.map(|plan| {
            let UnitPlan { packets, assignment: chosen } = plan;
            assignment.clear();
            assignment.extend(chosen.iter().map(|at| at.map(|at| places.get()[at])));
            packets
        });
        let reserve = planner.reserve();
        for place in places.get().iter().copied() {
            if links[place].reserve() != reserve {
                links[place].set_reserve(reserve);
            }
        }
        planned
    }

    /// Updates the planner's view of the links that may carry media, in order of link numbers.
    fn view(&mut self, links: &Links, config: &Config, now: Instant) {
        let clock = links.clock_for_sending(config, now);
        let datagram_bytes = ByteCount::new(datagram_bytes_max(links, config) as u64);
        let media_span = self.media_span;
        // Retransmissions take their share of the rate.
        let sent_again = |lost: f64| if config.retransmit { lost } else { 0.0 };
        self.views.clear();
        self.views.extend(links.carriers().map(|link| planner::Link {
            number: link.number(),
            free_at: link.free_at(now),
            rate: link.rate().scale(1.0 - sent_again(link.chance_loss().get())),
            sustained: link.budget(media_span),
            control_rate: link.control_rate(),
            owd: link.owd_out_or_guess(clock, now),
            queued: link.queued(),
            in_flight: link.bytes_in_flight(),
            window: link.window(),
            on_time: link.on_time(config, now),
            loss: link.chance_of_missing(media_span, clock, config, now),
            media_at: link.media_at(),
            datagram_bytes,
        }));
    }

    /// Encodes the unit and queues each packet on its assigned link; with a planner that copies, on
    /// every link that may carry media. Refuses the unit as congested if fewer packets than it has
    /// source packets are assigned.
    fn send_media(
        &mut self,
        plan: &Plan,
        unit: &[u8],
        deadline: Instant,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<UnitNumber, SendError> {
        let clock = links.clock_for_sending(&shared.config, now);
        let copies = self.planner.copies();
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
                let headroom = deadline.since(end + link.owd_out_or_guess(clock, now));
                entry.standing = link.standing(headroom, &shared.config, now);
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

    /// Begins to announce a channel to the peer, anew if it is announced already.
    pub(crate) fn announce(&mut self, channel: &Channel) {
        self.announcer.add(channel);
    }

    /// Records how much of an announcement the peer has acknowledged; see
    /// [`Announcer::on_acknowledged`].
    // protocol 4, acknowledgement
    pub(crate) fn on_acknowledged(&mut self, told: Acknowledgement) {
        self.announcer.on_acknowledged(told);
    }

    /// Returns when the next part of an announcement is due; `None` once all are acknowledged.
    pub(crate) fn announcement_due_at(&self) -> Option<Instant> {
        self.announcer.due_at()
    }

    /// Appends the part of an announcement that is due, for a link with the rate `link`; returns
    /// false if none is due.
    pub(crate) fn write_announcement(
        &mut self,
        plaintext: &mut Vec<u8>,
        link: Bitrate,
        now: Instant,
    ) -> bool {
        self.announcer.write_due(plaintext, link, now)
    }

    /// Counts the outcomes of our media units by the peer's report, and passes its totals to the
    /// planner. A report older than the last, or on another channel, is ignored; one on more units
    /// than were sent only counted as discarded.
    // protocol 4, delivery report
    pub(crate) fn on_delivery_report(&mut self, report: &DeliveryReport, counters: &mut Counters) {
        let (delivered, lost) = self.told;
        // The same report travels over every link; a slow link delivers it after its successor.
        if report.channel != ChannelNumber::MEDIA
            || report.delivered < delivered
            || report.lost < lost
        {
            return;
        }
        if report.delivered + report.lost > self.next_media {
            return counters.discard(Discard::ReportImpossible);
        }
        let units = counters.units_mut(ChannelNumber::MEDIA);
        units.told_delivered += report.delivered - delivered;
        units.told_lost += report.lost - lost;
        self.told = (report.delivered, report.lost);
        self.planner.on_delivery_report(report.delivered, report.lost);
    }

    /// Passes the outcomes of media packets on the link at index `place` to the link's statistics
    /// and the planner, makes up for lost packets (see [`Recovery::on_settled`]), and empties
    /// `settled`.
    pub(crate) fn on_settled(
        &mut self,
        place: usize,
        settled: &mut Vec<Settled>,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) {
        links[place].count_fates(settled);
        for packet in settled.iter() {
            if let Some(missed) = links[place].on_settled(packet, now) {
                self.planner.on_missed(missed == Missed::ByChance);
            }
        }
        self.recovery.on_settled(settled, links, shared, now);
    }

    /// Counts a media packet that could not be sent as lost.
    pub(crate) fn write_off(&mut self, entry: Entry) {
        self.recovery.write_off(entry);
    }

    /// Keeps a packet's buffer for reuse.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        self.recovery.recycle(buffer);
    }

    /// Marks the budget as out of date, so that it is computed anew.
    pub(crate) fn doubt_budget(&mut self) {
        self.budget_stale = true;
    }

    /// Sends more packets of units that lack some when they are checked, and postpones the next
    /// announcement if no link can speak.
    pub(crate) fn handle_timeout(&mut self, links: &mut Links, shared: &mut Shared, now: Instant) {
        self.recovery.look(links, shared, now);
        if !links.iter().any(Link::can_speak) {
            self.announcer.wait(now);
        }
    }

    /// Returns when the next unit check, announcement part or queued packet is due; `None` if there
    /// is nothing to wait for.
    pub(crate) fn next_timeout(&self) -> Option<(Instant, Timer)> {
        let look = self.recovery.look_due_at().map(|at| (at, Timer::Deadline));
        let announcement = self.announcer.due_at().map(|at| (at, Timer::Announce));
        let lanes = [self.commands.due_at(), self.lanes.copies_due_at(), self.lanes.data_due_at()];
        let lanes = lanes.into_iter().flatten().map(|at| (at, Timer::Pacing));
        look.into_iter().chain(announcement).chain(lanes).min()
    }

    /// Moves media off links that may not carry it. Computes the budget, the source rate that the
    /// links can deliver in time, if it is out of date or 2 ms old, and reports it if it changed.
    pub(crate) fn settle(&mut self, links: &mut Links, shared: &mut Shared, now: Instant) {
        failover::fail_over(&mut self.recovery, links, shared, now);
        if !self.budget_stale && now.since(self.budget_at) < BUDGET_INTERVAL {
            return;
        }
        (self.budget_stale, self.budget_at) = (false, now);
        self.view(links, &shared.config, now);
        let media = self.planner.budget(&self.views, now);
        let shown = links.carriers().fold(Bitrate::ZERO, |sum, link| sum + link.shown());
        if let Some(news) = self.budget.update(media, shown) {
            shared.event(news);
        }
    }

    /// Returns whether the last budget reported to the application is above zero.
    pub(crate) fn is_budget_told(&self) -> bool {
        self.budget.is_told()
    }

    /// Returns the lifetime of the last media unit; the configured one before the first.
    pub(crate) fn media_span(&self) -> Duration {
        self.media_span
    }
}

/// Plans the packets of a command for the smallest datagram size of all live links.
fn plan_copies(unit: &[u8], links: &Links, config: &Config) -> Result<Plan, SendError> {
    let symbol_bytes_max = datagram_bytes_max(links, config) - SYMBOL_AROUND_BYTES;
    protect::plan_copies(unit.len(), symbol_bytes_max)
        .map_err(|most| SendError::TooLarge { found: ByteCount::of(unit), most })
}

/// Returns the length of the largest datagram that fits every live link; the configured one if no
/// link is live.
fn datagram_bytes_max(links: &Links, config: &Config) -> usize {
    links.datagram_bytes_max(config.datagram_bytes_max.get() as usize)
}

/// Time after the last command for which an end keeps the packets of its capped channels small.
const COMMANDING: Duration = Duration::from_secs(2);
/// Maximum lifetime of a unit; one with a longer deadline is refused. It is half of the range of
/// the wire's 16-bit milliseconds, with a margin for clock error.
const DEADLINE_MOST: Duration = Duration::from_secs(30);
/// Age after which the budget is computed anew: shorter than the interval between slices.
const BUDGET_INTERVAL: Duration = Duration::from_millis(2);
