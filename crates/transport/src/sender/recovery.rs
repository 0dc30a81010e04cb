use tautline_units::{Duration, Instant};

use super::block::Encoder;
use super::packet::{entry, header};
use super::stream::Stream;
use super::tracker::{Lacking, Tracker};
use crate::channel::ChannelNumber;
use crate::config::Config;
use crate::counters::Discard;
use crate::link::{Entry, Fate, Settled};
use crate::links::Links;
use crate::protect::Code;
use crate::shared::Shared;

/// Recovery of lost media: sent units, and their retransmissions and additional repair packets.
#[derive(Debug)]
pub(super) struct Recovery {
    pub(super) encoder: Encoder,
    /// Sender side of the streaming code; `None` if every unit is a block.
    pub(super) stream: Option<Box<Stream>>,
    pub(super) tracker: Tracker,
    /// True if every packet goes over every link; then the loss of one copy means little.
    copies: bool,
    /// Spare buffers for packets.
    spare: Vec<Vec<u8>>,
}

impl Recovery {
    pub(super) fn new(config: &Config, copies: bool) -> Self {
        Self {
            encoder: Encoder::default(),
            stream: match config.protect.code {
                Code::Block => None,
                Code::Stream => Some(Box::new(Stream::new())),
            },
            tracker: Tracker::default(),
            copies,
            spare: Vec::new(),
        }
    }

    /// Returns an empty buffer for a packet, a used one if there is any.
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer
    }

    /// Keeps a packet's buffer for reuse, unless [`SPARE_MAX`] are kept.
    pub(super) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            self.spare.push(buffer);
        }
    }

    /// Counts a media packet as lost that was never sent or that no report will cover.
    pub(super) fn write_off(&mut self, entry: Entry) {
        self.tracker.lose(entry.unit);
        self.forgo(entry);
    }

    /// Drops a queued media packet that its unit does not need; under the streaming code it counts
    /// as lost.
    pub(super) fn forgo(&mut self, entry: Entry) {
        if let Some(stream) = &mut self.stream {
            stream.on_dropped(&entry.plaintext);
        }
        self.recycle(entry.plaintext);
    }

    /// Handles the outcome of media packets on one link, empties `settled`, and resends lost
    /// packets that a unit needs if `retransmit` is set; under the streaming code, sends repair
    /// packets instead.
    pub(super) fn on_settled(
        &mut self,
        settled: &mut Vec<Settled>,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) {
        if settled.is_empty() {
            return self.repair_stream(links, shared, now);
        }
        for packet in settled.drain(..) {
            let Settled { entry, fate, .. } = packet;
            let arrived = fate != Fate::Lost;
            let unit = entry.unit;
            if (arrived || !entry.again)
                && let Some(stream) = &mut self.stream
            {
                stream.on_settled(&entry.plaintext, arrived);
            }
            if arrived {
                self.tracker.arrive(unit);
            } else if entry.again {
                // Already counted as lost when its replacement was sent.
            } else if self.stream.is_some() {
                // The stream sends a repair packet if needed.
                self.tracker.lose(unit);
            } else if shared.config.retransmit && self.tracker.save(unit, 1) > 0 {
                self.send_again(entry, None, links, shared, now);
                continue;
            } else if !shared.config.retransmit {
                self.tracker.lose(unit);
            }
            self.recycle(entry.plaintext);
        }
        self.repair_stream(links, shared, now);
    }

    /// Queues a packet on the link that delivers it first, and counts it as moved. If no link
    /// delivers it in time, counts it as lost, and as discarded for the reason `what` if given.
    pub(super) fn send_again(
        &mut self,
        entry: Entry,
        what: Option<Discard>,
        links: &mut Links,
        shared: &mut Shared,
        now: Instant,
    ) {
        match links.send_again(entry, &shared.config, now) {
            Ok(()) => shared.counters.media_moved += 1,
            Err(entry) => {
                if let Some(what) = what {
                    shared.counters.discard(what);
                }
                self.write_off(entry);
            }
        }
    }

    /// Schedules a check of a unit's block for when its packets should have been reported, or for
    /// the last time at which new packets can arrive by `deadline`, whichever is earlier. Schedules
    /// none if no report can arrive before that time, under the streaming code, without
    /// retransmission, or if every packet goes over every link.
    pub(super) fn look_after(
        &mut self,
        number: u64,
        deadline: Instant,
        links: &Links,
        config: &Config,
        now: Instant,
    ) {
        if self.stream.is_some() || !config.retransmit || self.copies {
            return;
        }
        let clock = links.clock_for_sending(config, now);
        let Some(rtt) = links.carriers().filter_map(|link| link.rtt_min()).min() else { return };
        let owds = links.carriers().map(|link| link.owd_out_or_guess(clock, now));
        let Some(owd) = owds.min() else { return };
        let intervals = links.carriers().map(|link| link.feedback(config));
        let interval = intervals.min().unwrap_or(config.report_interval);
        let first = now + rtt + interval * 2 + LOOK_SLACK;
        let last = Instant::from_nanos(
            deadline.as_nanos().saturating_sub((owd + LOOK_SLACK).as_nanos() as u64),
        );
        if last >= now + rtt + interval {
            self.tracker.look_at(number, first.min(last));
        }
    }

    /// Returns when the next unit must be checked; `None` if no check is scheduled.
    pub(super) fn look_due_at(&self) -> Option<Instant> {
        self.tracker.look_due_at()
    }

    /// Checks the units that are due, sends new repair packets of those that lack packets, and
    /// schedules another check of these.
    pub(super) fn look(&mut self, links: &mut Links, shared: &mut Shared, now: Instant) {
        loop {
            let Self { tracker, encoder, spare, .. } = self;
            let config = &shared.config;
            let expected = |unit| {
                let heard_of = links.iter().filter(|link| !link.is_overdue(config, now));
                heard_of.map(|link| link.expected(unit)).sum()
            };
            let Some(lacking) = tracker.look(expected, now) else { break };
            let Lacking { number, plan, fresh, deadline, .. } = lacking;
            encoder.extend(&plan, lacking.sources, &fresh);
            let mut entries = Vec::with_capacity(fresh.len());
            for (index, symbol) in fresh.zip(encoder.symbols()) {
                let header = header(ChannelNumber::MEDIA, number, index as u8, &plan, deadline);
                let buffer = spare.pop().unwrap_or_default();
                entries.push(entry(number, &header, symbol, deadline, buffer));
            }
            for entry in entries {
                self.send_again(entry, None, links, shared, now);
            }
            self.look_after(number, deadline, links, &shared.config, now);
        }
    }

    /// Drops packets that can no longer arrive in time from the stream's coding window.
    pub(super) fn expire_stream(&mut self, links: &Links, now: Instant) {
        if let Some(stream) = &mut self.stream {
            let clock = links.clock(now);
            let least = links.carriers().map(|link| link.owd_out_least(clock, now)).min();
            stream.expire(now + least.unwrap_or_default());
        }
    }

    /// Sends repair packets of the stream while those in flight are insufficient, at most
    /// [`AT_ONCE`], each over the link that delivers it first. Sends none without retransmission,
    /// or if every packet goes over every link.
    // protocol 6
    pub(super) fn repair_stream(&mut self, links: &mut Links, shared: &mut Shared, now: Instant) {
        self.expire_stream(links, now);
        let Some(stream) = &mut self.stream else { return };
        if self.copies || !shared.config.retransmit {
            return stream.follow_reports();
        }
        for _ in 0..AT_ONCE {
            let mut plaintext = self.buffer();
            let Some(stream) = &mut self.stream else { break };
            let Some(deadline) = stream.deadline().filter(|_| stream.lacks()) else {
                self.recycle(plaintext);
                break;
            };
            stream.write_asked(&mut plaintext);
            let unit = Tracker::NO_UNIT;
            let entry = Entry { plaintext, deadline, unit, standing: 0, again: false };
            if let Err(refused) = links.send_again(entry, &shared.config, now) {
                self.forgo(refused);
                break;
            }
            shared.counters.repairs_asked += 1;
        }
    }
}

/// Time allowed for timers, pacing and a little jitter when a check is scheduled.
const LOOK_SLACK: Duration = Duration::from_millis(4);
/// Maximum number of repair packets that one call sends: more would delay the next unit; 64 packets
/// of 700 bytes take 45 ms at 8 Mbit/s.
const AT_ONCE: usize = 64;
/// Maximum number of kept buffers: the packets that four links queue in a bad second.
const SPARE_MAX: usize = 4_096;
