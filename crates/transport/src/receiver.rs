//! The receiving half: reassembles packets into blocks and blocks into units, or drops and counts
//! them at the deadline.

mod announced;
mod block;
mod inbox;
mod inboxes;
mod parts;
mod reports;
mod stream;

use tautline_units::{Duration, Instant};

use crate::channel::{ChannelNumber, Order, Priority};
use crate::clock::ClockEstimate;
use crate::counters::Discard;
use crate::event::{Event, Timer, UnitNumber};
use crate::sequence::expand;
use crate::shared::Shared;
use crate::wire::{Acknowledgement, Announcement, Coded, DeliveryReport, stream as wire};
use announced::Announced;
use inbox::{Inbox, Outcome};
use inboxes::Inboxes;
pub(crate) use reports::Arrivals;
use stream::Stream;

/// The receiving half of a session: the units of each channel, and the streaming decoder.
#[derive(Debug)]
pub(crate) struct Receiver {
    inboxes: Inboxes,
    /// Channels announced by the peer.
    announced: Announced,
    stream: Stream,
    /// Reusable storage for the outcomes of a packet.
    outcomes: Vec<Outcome>,
}

impl Receiver {
    pub(crate) fn new() -> Self {
        Self {
            inboxes: Inboxes::default(),
            announced: Announced::default(),
            stream: Stream::default(),
            outcomes: Vec::new(),
        }
    }

    /// Adds a packet of a block to its unit, of a channel with delivery order `order`, and reports
    /// units that are now delivered or lost as events.
    // protocol 5
    pub(crate) fn handle_coded(
        &mut self,
        coded: &Coded<'_>,
        order: Order,
        clock: Option<ClockEstimate>,
        shared: &mut Shared,
        now: Instant,
    ) {
        let inbox = self.inboxes.of(coded.channel, order);
        let deadline = match coded.channel {
            ChannelNumber::MEDIA => media_deadline(coded.deadline_low, clock, shared, now),
            _ => local_deadline(coded.deadline_low, clock, shared.config.command_deadline, now),
        };
        inbox.handle(coded, deadline, &mut shared.counters, &mut self.outcomes, now);
        tell(coded.channel, &mut self.outcomes, clock, shared, now);
    }

    /// Returns order and priority of a channel's units: as announced by the peer, otherwise as
    /// opened here; `None` if neither.
    pub(crate) fn treatment(
        &self,
        channel: ChannelNumber,
        shared: &Shared,
    ) -> Option<(Order, Priority)> {
        let opened = || shared.channels.get(channel).map(|opened| (opened.order, opened.priority));
        self.announced.get(channel).or_else(opened)
    }

    /// Handles a part of the peer's announcement of a channel: reports the channel as an event once
    /// its descriptor is complete, and counts an invalid part as discarded.
    // protocol 4, announcement
    pub(crate) fn handle_announcement(&mut self, part: &Announcement<'_>, shared: &mut Shared) {
        match self.announced.handle(part) {
            Ok(Some(descriptor)) => {
                shared.event(Event::Announced { channel: part.channel, descriptor });
            }
            Ok(None) => {}
            Err(what) => shared.counters.discard(what),
        }
    }

    /// Returns whether an announcement must be acknowledged.
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        self.announced.owes()
    }

    /// Returns the next acknowledgement that is due, which is then no longer due; `None` if
    /// none is due.
    pub(crate) fn acknowledge(&mut self) -> Option<Acknowledgement> {
        self.announced.acknowledge()
    }

    /// Adds a source packet of the stream, and those that it helps to recover, to their units. One
    /// too far ahead of the stream is counted as discarded.
    // protocol 6
    pub(crate) fn handle_source(
        &mut self,
        source: &wire::Source<'_>,
        clock: Option<ClockEstimate>,
        shared: &mut Shared,
        now: Instant,
    ) {
        let arrived = self.stream.handle_source(source, &mut shared.counters);
        if let Some(number) = arrived {
            let Self { inboxes, outcomes, .. } = self;
            let media = inboxes.of(ChannelNumber::MEDIA, Order::ByDeadline);
            handle_part(media, outcomes, number, &source.part, false, clock, shared, now);
            self.recover(arrived, clock, shared, now);
        }
    }

    /// Adds the source packets of the stream that a repair packet helps to recover to their units.
    // protocol 6
    pub(crate) fn handle_repair(
        &mut self,
        repair: &wire::Repair<'_>,
        clock: Option<ClockEstimate>,
        shared: &mut Shared,
        now: Instant,
    ) {
        self.stream.handle_repair(repair, &mut shared.counters);
        self.recover(None, clock, shared, now);
    }

    /// Adds the source packets of the stream that have become known to their units, except
    /// `arrived`, which has been added; counts malformed ones as discarded.
    fn recover(
        &mut self,
        arrived: Option<u64>,
        clock: Option<ClockEstimate>,
        shared: &mut Shared,
        now: Instant,
    ) {
        let Self { stream, inboxes, outcomes, .. } = self;
        let media = inboxes.of(ChannelNumber::MEDIA, Order::ByDeadline);
        stream.recover(arrived, |number, part| match part {
            Ok(part) => handle_part(media, outcomes, number, &part, true, clock, shared, now),
            Err(malformed) => {
                tracing::debug!(%malformed, number, "recovered source packet");
                shared.counters.discard(Discard::PacketInconsistent);
            }
        });
    }

    /// Gives up every open unit whose deadline has passed.
    pub(crate) fn handle_timeout(
        &mut self,
        clock: Option<ClockEstimate>,
        shared: &mut Shared,
        now: Instant,
    ) {
        let Self { inboxes, outcomes, .. } = self;
        for (channel, inbox) in inboxes.iter_mut() {
            inbox.expire(&mut shared.counters, outcomes, now);
            tell(channel, outcomes, clock, shared, now);
        }
    }

    /// Gives up every unit, as evicted, because no more of its packets will arrive.
    pub(crate) fn abandon(&mut self, shared: &mut Shared, now: Instant) {
        let Self { inboxes, outcomes, .. } = self;
        for (channel, inbox) in inboxes.iter_mut() {
            inbox.abandon(&mut shared.counters, outcomes);
            tell(channel, outcomes, None, shared, now);
        }
    }

    /// Returns when the next unit is lost unless it is complete by then; `None` without open units.
    pub(crate) fn next_timeout(&self) -> Option<(Instant, Timer)> {
        let due_at = self.inboxes.due_at()?;
        // A unit is in time up to its deadline and lost a nanosecond later.
        let lost_at = Instant::from_nanos(due_at.as_nanos().saturating_add(1));
        Some((lost_at, Timer::Deadline))
    }

    /// Returns the number of units of `channel` that may still be delivered.
    pub(crate) fn open_count(&self, channel: ChannelNumber) -> u64 {
        self.inboxes.get(channel).map_or(0, Inbox::open_count)
    }

    /// Returns the totals of the peer's media units by outcome; `None` before the first packet of
    /// one.
    pub(crate) fn delivery_report(&self) -> Option<DeliveryReport> {
        self.inboxes.get(ChannelNumber::MEDIA).map(Inbox::delivery_report)
    }
}

/// Adds source packet `number` of the stream, received or recovered, to its unit in `media`, and
/// reports units that are now delivered or lost as events.
#[allow(clippy::too_many_arguments)]
fn handle_part(
    media: &mut Inbox,
    outcomes: &mut Vec<Outcome>,
    number: u64,
    part: &wire::Part<'_>,
    recovered: bool,
    clock: Option<ClockEstimate>,
    shared: &mut Shared,
    now: Instant,
) {
    let deadline = media_deadline(part.deadline_low, clock, shared, now);
    let counters = &mut shared.counters;
    media.handle_part(number, part, recovered, deadline, counters, outcomes, now);
    tell(ChannelNumber::MEDIA, outcomes, clock, shared, now);
}

/// Drains the outcomes of `channel` into events. A unit dated ahead of now by more than the clock
/// error gets no send time, and is counted.
fn tell(
    channel: ChannelNumber,
    outcomes: &mut Vec<Outcome>,
    clock: Option<ClockEstimate>,
    shared: &mut Shared,
    now: Instant,
) {
    for outcome in outcomes.drain(..) {
        let event = match outcome {
            Outcome::Unit { number, bytes, prefix, repaired } => {
                let dated = clock.map(|clock| (clock, prefix.sent_at(clock.to_peer(now))));
                let sent_at = dated.and_then(|(clock, dated)| {
                    clock.age(dated, now).map(|_| clock.to_local(dated).min(now))
                });
                let is_ahead = dated.is_some() && sent_at.is_none();
                shared.counters.discard_many(Discard::TimeAhead, u64::from(is_ahead));
                Event::Unit { channel, number: UnitNumber::new(number), bytes, sent_at, repaired }
            }
            Outcome::Lost { number, reason } => {
                Event::UnitLost { channel, number: UnitNumber::new(number), reason }
            }
        };
        shared.event(event);
    }
}

/// Returns a media unit's deadline on our clock, from the low bits of the deadline on the peer's.
/// It is later than the midpoint of the clock's bounds says if that leaves media too little time;
/// see [`ClockEstimate::favour`].
// protocol 8
fn media_deadline(
    low: u16,
    clock: Option<ClockEstimate>,
    shared: &Shared,
    now: Instant,
) -> Instant {
    let span = shared.config.media_deadline;
    local_deadline(low, clock.map(|clock| clock.for_receiving(span)), span, now)
}

/// Returns a deadline on our clock, from the low 16 bits of the peer's milliseconds; `span` from
/// now before the clocks have been compared.
// protocol 4, source or repair packet
fn local_deadline(low: u16, clock: Option<ClockEstimate>, span: Duration, now: Instant) -> Instant {
    match clock {
        Some(clock) => {
            let millis = expand(clock.to_peer(now).as_millis(), u64::from(low), 16);
            clock.to_local(Instant::from_millis(millis))
        }
        None => now + span,
    }
}
