//! What to do when a link's pongs stop: before it is silent, others take over its media.

use tautline_units::{Bitrate, Duration, Instant};

use super::Shared;
use super::active::Active;
use crate::config::Config;
use crate::counters::Discard;
use crate::link::Link;
use crate::send::Entry;

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
        Self { any_trusted: links.iter().any(|link| link.gate.is_trusted()) }
    }

    pub(super) fn allows(self, link: &Link) -> bool {
        link.gate.is_trusted() || (!self.any_trusted && link.gate.is_up())
    }
}

impl Link {
    /// How long a trusted link may be without a pong.
    pub(super) fn patience(&self, config: &Config) -> Duration {
        let jitter = self.delay.jitter().unwrap_or_default();
        PATIENCE_LEAST.max(config.ping_interval * PONGS_MISSED + jitter * JITTERS)
    }

    /// Paces at the granted rate, or below it while a queue stands in the link: the controller
    /// judges by what came in 400 ms, but within these a queue can grow past the deadline.
    pub(super) fn keep_pace(&mut self) {
        self.pacer.set_rate(self.grant.rate.scale(self.relief()));
    }

    /// The share of the granted rate that a standing queue leaves.
    fn relief(&self) -> f64 {
        if !self.controller.spares_queues() {
            return 1.0;
        }
        let queue = self.delay.queueing_latest().unwrap_or_default();
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
    /// Finds links whose pongs are overdue, and those that are silent.
    pub(super) fn doubt(&mut self, shared: &mut Shared, now: Instant) {
        for link in &mut self.links {
            let patience = link.patience(&shared.config);
            if link.gate.on_doubt(patience, now) {
                tracing::debug!(link = link.number.get(), ?patience, "suspect");
                if link.delay.queueing_latest().is_some_and(|queue| queue < STALL_QUEUE_MOST) {
                    link.grant = link.controller.on_stall(now);
                    link.keep_pace();
                }
            }
            if let Some(state) = link.gate.on_time(shared.config.silence, now) {
                link.grant = link.controller.on_silence(now);
                link.keep_pace();
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
            let idle = link.pacer.queued().get() == 0 && link.flight.is_empty();
            if idle || carrying.allows(link) {
                continue;
            }
            let mut doubtful = Vec::new();
            while let Some(entry) = link.pacer.pop() {
                doubtful.push((false, entry));
            }
            while let Some(entry) = link.flight.pop() {
                doubtful.push((true, entry));
            }
            // What has not left yet goes first: it cannot have arrived.
            doubtful.sort_by_key(|(left, entry)| (entry.unit, *left));
            self.save(doubtful, carrying, shared, now);
        }
    }

    /// Gives each unit's doubtful packets to other links, or writes them off.
    fn save(
        &mut self,
        doubtful: Vec<(bool, Entry)>,
        carrying: Carrying,
        shared: &mut Shared,
        now: Instant,
    ) {
        let clock = self.clock(now);
        let (mut unit, mut again) = (None, 0);
        let counts = counts(&doubtful);
        for (left, entry) in doubtful {
            if unit != Some(entry.unit) {
                unit = Some(entry.unit);
                let count = counts.iter().find(|(unit, _)| *unit == entry.unit);
                again = self.outgoing.ledger.save(entry.unit, count.map_or(0, |(_, count)| *count));
            }
            let refused = if again == 0 {
                Some(entry)
            } else {
                again -= 1;
                let refused = give(&mut self.links, entry, carrying, clock, now);
                match &refused {
                    Some(entry) => self.outgoing.ledger.lose(entry.unit),
                    None => shared.counters.media_moved += 1,
                }
                refused
            };
            if let Some(entry) = refused {
                if !left {
                    shared.counters.discard(Discard::MediaSilenced);
                }
                self.outgoing.recycle(entry.plaintext);
            }
        }
    }
}

/// Gives a packet to the link that delivers it first, or back if none does in time.
fn give(
    links: &mut [Link],
    entry: Entry,
    carrying: Carrying,
    clock: Option<crate::ClockEstimate>,
    now: Instant,
) -> Option<Entry> {
    let bytes = entry.datagram_bytes();
    let ends = links.iter().enumerate().filter(|(_, link)| carrying.allows(link));
    let ends = ends.map(|(at, link)| {
        let free_at = link.pacer.free_before(entry.deadline, now);
        let end = free_at + link.pacer.rate().time_for(bytes) + link.owd_out_or_guess(clock);
        (end, at)
    });
    match ends.min().filter(|(end, _)| *end <= entry.deadline) {
        Some((_, at)) => links[at].pacer.push(entry).err(),
        None => Some(entry),
    }
}

/// How many packets each unit has in a list sorted by units.
fn counts(doubtful: &[(bool, Entry)]) -> Vec<(u64, usize)> {
    let groups = doubtful.chunk_by(|(_, a), (_, b)| a.unit == b.unit);
    groups.filter_map(|group| Some((group.first()?.1.unit, group.len()))).collect()
}

/// Three pongs in a row are missing: less is jitter and a radio's own repeats.
const PONGS_MISSED: u32 = 3;
const JITTERS: u32 = 4;
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
