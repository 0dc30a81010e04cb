//! What to do when a link's pongs stop: before it is silent, others take over its media.

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::Shared;
use super::active::Active;
use super::outgoing::{entry, header};
use crate::config::Config;
use crate::counters::Discard;
use crate::link::{Entry, Link, Outlook, Settled};
use crate::sender::Lacking;
use crate::wire::Class;

/// Whether a link may carry media: it is trusted, or no link is and it is up.
///
/// Suspicion moves media to better links. Where there is none, a short stall is better waited for
/// than answered by a pause; silence ends that.
#[derive(Debug, Clone, Copy)]
pub(super) struct Carrying {
    any_trusted: bool,
}

impl Carrying {
    pub(super) fn of(links: &[Link]) -> Self {
        Self { any_trusted: links.iter().any(|link| link.liveness.is_trusted()) }
    }

    pub(super) fn allows(self, link: &Link) -> bool {
        link.liveness.is_trusted() || (!self.any_trusted && link.liveness.is_up())
    }
}

impl Link {
    /// How long a trusted link may be without a pong.
    pub(super) fn patience(&self, config: &Config) -> Duration {
        let jitter = self.rtt.jitter().unwrap_or_default();
        PATIENCE_LEAST.max(config.ping_interval * PONGS_MISSED + jitter * JITTERS)
    }

    /// When reports on what is on its way are overdue: later than a round trip after the oldest
    /// left, or than a pause that jitter explains after the last news.
    pub(super) fn news_overdue_at(&self, config: &Config) -> Option<Instant> {
        let jitter = self.rtt.jitter().unwrap_or_default();
        Some(self.news_due_at(config)? + config.report_interval + NEWS_PAUSE + jitter * JITTERS)
    }

    /// Whether a report on what is on its way should have come.
    fn is_overdue(&self, config: &Config, now: Instant) -> bool {
        self.news_due_at(config).is_some_and(|at| now > at + config.report_interval)
    }

    /// When the next report on what is on its way may be expected.
    fn news_due_at(&self, config: &Config) -> Option<Instant> {
        let trip = self.rtt.rtt_min()? + config.report_interval;
        self.in_flight.news_due_at(trip)
    }

    /// What is known of the link for a packet that would arrive `spare` before its deadline.
    pub(super) fn standing(&self, spare: Duration, config: &Config, now: Instant) -> u8 {
        let unheard_for = self.news_due_at(config).map_or(Duration::ZERO, |at| now.since(at));
        self.on_time.standing(&Outlook { unheard_for, spare }, now)
    }

    /// Whether `bytes` more may be on their way unreported.
    pub(super) fn has_room(&self, bytes: ByteCount) -> bool {
        let most = self.grant.window.map(|window| window + self.reserve);
        most.is_none_or(|most| self.in_flight.in_flight() + bytes < most)
    }

    /// Whether the packet that is next in the queue may leave as far as the window goes.
    pub(super) fn may_send_next(&self) -> bool {
        self.pacer.next_bytes().is_some_and(|bytes| self.has_room(bytes))
    }

    /// Paces at the granted rate, or below it while a queue stands in the link: the controller
    /// judges by what came in 400 ms, but within these a queue can grow past the deadline.
    pub(super) fn keep_pace(&mut self, now: Instant) {
        self.pacer.set_rate(self.grant.rate.scale(self.relief()), now);
    }

    /// The share of the granted rate that a standing queue leaves.
    fn relief(&self) -> f64 {
        if !self.controller.spares_queues() {
            return 1.0;
        }
        let queue = self.rtt.queueing_latest().unwrap_or_default();
        let over = queue.saturating_sub(QUEUE_FREE).as_secs_f64();
        (1.0 - over / QUEUE_SPAN.as_secs_f64()).max(RELIEF_LEAST)
    }

    /// The rate that the budget may count on: what is left beside the work of emptying, within
    /// [`BACKLOG_TIME`], a queue of more than a quarter of `span`.
    pub(super) fn to_hand_out(&self, span: Duration) -> Bitrate {
        let sustained = self.grant.sustained.scale(self.relief());
        let backlog = self.pacer.queued() - sustained * (span / 4);
        sustained - Bitrate::of(backlog, BACKLOG_TIME)
    }
}

impl Active {
    /// Finds links whose pongs or reports are overdue, and those that are silent.
    pub(super) fn doubt(&mut self, shared: &mut Shared, now: Instant) {
        for link in &mut self.links {
            let patience = link.patience(&shared.config);
            let overdue = link.news_overdue_at(&shared.config).is_some_and(|at| now >= at)
                && link.liveness.suspect();
            if overdue || link.liveness.on_doubt(patience, now) {
                self.unsettled = true;
                tracing::debug!(link = link.number.get(), ?patience, overdue, "suspect");
                if link.rtt.queueing_latest().is_some_and(|queue| queue < STALL_QUEUE_MOST) {
                    link.grant = link.controller.on_stall(now);
                    link.keep_pace(now);
                }
            }
            if let Some(state) = link.liveness.on_time(shared.config.silence, now) {
                self.unsettled = true;
                link.grant = link.controller.on_silence(now);
                link.keep_pace(now);
                super::active::announce(link.number, state, shared);
            }
        }
    }

    /// Moves to better links what waits on those that may not carry media, and sends again over
    /// them what such a link probably lost, as far as units lack it and are still fresh.
    pub(super) fn rescue(&mut self, shared: &mut Shared, now: Instant) {
        let carrying = Carrying::of(&self.links);
        for place in 0..self.links.len() {
            let link = &mut self.links[place];
            if carrying.allows(link) {
                continue;
            }
            let mut waiting = Vec::new();
            while let Some(entry) = link.pacer.pop() {
                link.media.withdrawn += 1;
                waiting.push(entry);
            }
            let mut units: Vec<u64> = waiting.iter().map(|entry| entry.unit).collect();
            if shared.config.retransmit {
                units.extend(link.in_flight.doubtful().map(|entry| entry.unit));
            }
            if units.is_empty() {
                continue;
            }
            units.sort_unstable();
            let mut allowed: Vec<(u64, usize)> = units
                .chunk_by(u64::eq)
                .filter_map(|group| Some((*group.first()?, group.len())))
                .map(|(unit, doubtful)| (unit, self.outgoing.tracker.save(unit, doubtful)))
                .collect();
            let mut grants = |unit: u64| {
                let at = allowed.binary_search_by_key(&unit, |(unit, _)| *unit).ok();
                let left = at.map(|at| &mut allowed[at].1).filter(|left| **left > 0);
                left.map(|left| *left -= 1).is_some()
            };
            // What has not left yet goes first: it cannot have arrived.
            let mut again = Vec::new();
            for entry in waiting {
                match grants(entry.unit) {
                    true => again.push((entry, false)),
                    false => {
                        shared.counters.discard(Discard::MediaSilenced);
                        self.outgoing.forgo(entry);
                    }
                }
            }
            if shared.config.retransmit {
                for entry in self.links[place].in_flight.doubtful() {
                    entry.again = true;
                    if grants(entry.unit) {
                        let copy = Entry { plaintext: entry.plaintext.clone(), ..*entry };
                        again.push((copy, true));
                    }
                }
            }
            again.sort_by_key(|(entry, left)| (entry.unit, *left));
            for (entry, left) in again {
                let what = if left { None } else { Some(Discard::MediaSilenced) };
                self.send_again(entry, what, carrying, shared, now);
            }
        }
    }

    /// Makes a unit be looked after when its packets should have been reported, at the latest when
    /// fresh ones can just be in time; not at all if that is before a report can have come.
    pub(super) fn look_after(
        &mut self,
        number: u64,
        deadline: Instant,
        shared: &Shared,
        now: Instant,
    ) {
        let carrying = Carrying::of(&self.links);
        let clock = self.clock(now);
        let links = || self.links.iter().filter(|link| carrying.allows(link));
        let Some(rtt) = links().filter_map(|link| link.rtt.rtt_min()).min() else { return };
        let Some(owd) = links().map(|link| link.owd_out_or_guess(clock)).min() else { return };
        let interval = shared.config.report_interval;
        let first = now + rtt + interval * 2 + LOOK_SLACK;
        let last = Instant::from_nanos(
            deadline.as_nanos().saturating_sub((owd + LOOK_SLACK).as_nanos() as u64),
        );
        if last >= now + rtt + interval {
            self.outgoing.tracker.look_at(number, first.min(last));
        }
    }

    /// Sends fresh packets of units that lack some when they are looked after.
    pub(super) fn look(&mut self, shared: &mut Shared, now: Instant) {
        let carrying = Carrying::of(&self.links);
        loop {
            let super::outgoing::Outgoing { tracker, encoder, spare, .. } = &mut self.outgoing;
            let config = &shared.config;
            let links = &self.links;
            let expected = |unit| {
                let of = links.iter().filter(|link| !link.is_overdue(config, now));
                of.map(|link| link.in_flight.carried(unit) + link.pacer.holds(unit)).sum()
            };
            let Some(lacking) = tracker.look(expected, now) else { break };
            let Lacking { number, plan, fresh, deadline, .. } = lacking;
            encoder.extend(&plan, lacking.sources, &fresh);
            let mut entries = Vec::with_capacity(fresh.len());
            for (index, symbol) in fresh.zip(encoder.symbols()) {
                let header = header(Class::Media, number, index as u8, &plan, deadline);
                entries.push(entry(number, &header, symbol, deadline, spare));
            }
            for entry in entries {
                self.send_again(entry, None, carrying, shared, now);
            }
            self.look_after(number, deadline, shared, now);
        }
    }

    /// Notes what became of media packets on a link, known since `known_at`; sends again what is
    /// lost, as far as a unit lacks it.
    pub(super) fn settle_packets(
        &mut self,
        place: usize,
        settled: &mut Vec<Settled>,
        known_at: Instant,
        shared: &mut Shared,
        now: Instant,
    ) {
        let carrying = Carrying::of(&self.links);
        // Many at once are no chance: the link failed for a while.
        let failed = settled.iter().filter(|packet| !packet.arrived).count() > CHANCE_MOST;
        for Settled { entry, arrived } in settled.drain(..) {
            let in_time = arrived && known_at <= entry.deadline;
            self.links[place].media.settle(arrived, in_time);
            let punctuality = &mut self.links[place].on_time;
            if arrived || failed {
                punctuality.observe(entry.standing, in_time, now);
            }
            if !failed {
                punctuality.observe_loss(!arrived);
            }
            let unit = entry.unit;
            if (arrived || !entry.again)
                && let Some(stream) = &mut self.outgoing.stream
            {
                stream.on_settled(&entry.plaintext, arrived);
            }
            if arrived {
                self.outgoing.tracker.arrive(unit);
            } else if entry.again {
                // It was written off when another was sent in its place.
            } else if self.outgoing.stream.is_some() {
                // The stream sends a repair packet if it must.
                self.outgoing.tracker.lose(unit);
            } else if shared.config.retransmit && self.outgoing.tracker.save(unit, 1) > 0 {
                self.send_again(entry, None, carrying, shared, now);
                continue;
            } else if !shared.config.retransmit {
                self.outgoing.tracker.lose(unit);
            }
            self.outgoing.recycle(entry.plaintext);
        }
        self.repair_stream(shared, now);
    }

    /// Gives a packet to the link that delivers it first, or writes it off, as `what` if that is
    /// to be counted.
    fn send_again(
        &mut self,
        entry: Entry,
        what: Option<Discard>,
        carrying: Carrying,
        shared: &mut Shared,
        now: Instant,
    ) {
        let clock = self.clock(now);
        match give(&mut self.links, entry, carrying, clock, &shared.config, now) {
            None => shared.counters.media_moved += 1,
            Some(entry) => {
                if let Some(what) = what {
                    shared.counters.discard(what);
                }
                self.outgoing.drop_media(entry);
            }
        }
    }
}

/// Gives a packet to the link that delivers it first, or back if none does in time.
pub(super) fn give(
    links: &mut [Link],
    mut entry: Entry,
    carrying: Carrying,
    clock: Option<crate::ClockEstimate>,
    config: &Config,
    now: Instant,
) -> Option<Entry> {
    let bytes = entry.datagram_bytes();
    let ends = links.iter().enumerate().filter(|(_, link)| carrying.allows(link));
    let ends = ends.filter(|(_, link)| link.has_room(link.pacer.queued() + bytes));
    let ends = ends.map(|(at, link)| {
        let free_at = link.pacer.free_before(entry.deadline, now);
        let end = free_at + link.pacer.rate().time_for(bytes) + link.owd_out_or_guess(clock);
        // A link that has told nothing of late is the one that brought this about.
        (link.is_overdue(config, now), end, at)
    });
    let Some((_, end, at)) = ends.min().filter(|(_, end, _)| *end <= entry.deadline) else {
        return Some(entry);
    };
    entry.standing = links[at].standing(entry.deadline.since(end), config, now);
    entry.again = false;
    let refused = links[at].pacer.push(entry).err();
    links[at].media.again += u64::from(refused.is_none());
    refused
}

/// Three pongs in a row are missing: less is jitter and a radio's own repeats.
const PONGS_MISSED: u32 = 3;
const JITTERS: u32 = 4;
/// More packets lost between two reports are not lost by chance, each for itself.
const CHANCE_MOST: usize = 12;
/// What a timer, a pace and a little jitter take.
const LOOK_SLACK: Duration = Duration::from_millis(4);
/// Reports come in time or not at all, but for this.
const NEWS_PAUSE: Duration = Duration::from_millis(10);
const PATIENCE_LEAST: Duration = Duration::from_millis(60);
/// A link whose queue was shorter than this when its pongs stopped did not stop for its queue.
const STALL_QUEUE_MOST: Duration = Duration::from_millis(60);
/// As long as a unit lives: a backlog is gone before the next ones are late.
const BACKLOG_TIME: Duration = Duration::from_millis(200);
/// A shorter queue is a radio's own repeats, or soon gone.
const QUEUE_FREE: Duration = Duration::from_millis(40);
/// How much more queue would bring the rate to zero, if it were not for the least share.
const QUEUE_SPAN: Duration = Duration::from_millis(120);
const RELIEF_LEAST: f64 = 0.25;
