use std::collections::BTreeMap;

use tautline_units::Instant;

use super::block::{Added, Block};
use super::parts::Parts;
use crate::channel::{ChannelNumber, Order};
use crate::counters::{Counters, Discard};
use crate::event::LossReason;
use crate::sequence::{Verdict, Window, expand};
use crate::wire::stream::{PART_UNIT_BITS, Part};
use crate::wire::{Coded, DeliveryReport, Prefix, UNIT_NUMBER_BITS};

/// The units of one channel being received.
///
/// Bounded for any input: at most [`UNITS_MAX`] open units with together [`MEDIA_BYTES_MAX`] bytes
/// of media, or [`BYTES_MAX`] of any other channel. Beyond that, the oldest unit is given up.
#[derive(Debug)]
pub(crate) struct Inbox {
    channel: ChannelNumber,
    order: Order,
    /// One past the highest unit number received.
    next: u64,
    /// Number of the newest unit delivered, on a newest-wins channel; otherwise `None`.
    delivered: Option<u64>,
    /// Units delivered, lost or overtaken: further packets of them are surplus.
    finished: Window,
    /// Open units by number: those that may still be delivered.
    units: BTreeMap<u64, Coming>,
    /// Bytes of the packets held for open units.
    bytes: usize,
    /// Spare buffers for packets.
    spare: Vec<Vec<u8>>,
    /// Number of units delivered, then number of units given up, since the session began.
    totals: (u64, u64),
}

/// A unit that may still be delivered.
#[derive(Debug)]
struct Coming {
    /// Deadline on our clock; a guess before the first packet of the unit.
    deadline: Instant,
    content: Content,
}

/// The received packets of a unit, by the code that protects it.
#[derive(Debug)]
enum Content {
    /// No packet yet: the unit is known by a packet of a later one.
    Nothing,
    /// Packets of a block.
    Block(Block),
    /// Source packets under the streaming code.
    Parts(Parts),
}

/// The outcome of a unit at the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The unit is complete and in time.
    Unit { number: u64, bytes: Vec<u8>, prefix: Prefix, repaired: bool },
    /// The unit will never be delivered.
    Lost { number: u64, reason: LossReason },
}

impl Inbox {
    pub(crate) fn new(channel: ChannelNumber, order: Order) -> Self {
        Self {
            channel,
            order,
            next: 0,
            delivered: None,
            finished: Window::new(),
            units: BTreeMap::new(),
            bytes: 0,
            spare: Vec::new(),
            totals: (0, 0),
        }
    }

    /// Returns the totals of units delivered, and given up, since the session began.
    pub(crate) fn delivery_report(&self) -> DeliveryReport {
        DeliveryReport { channel: self.channel, delivered: self.totals.0, lost: self.totals.1 }
    }

    /// Returns the number of units that may still be delivered.
    pub(crate) fn open_count(&self) -> u64 {
        self.units.len() as u64
    }

    /// Returns the earliest deadline of an open unit; `None` without open units.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.units.values().map(|coming| coming.deadline).min()
    }

    /// Adds a packet of a block to its unit, which expires at `deadline` on our clock, and delivers
    /// the unit if it is then complete. A late or superfluous packet is counted as discarded.
    pub(crate) fn handle(
        &mut self,
        packet: &Coded<'_>,
        deadline: Instant,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
        now: Instant,
    ) {
        let number = expand(self.next, u64::from(packet.unit_low), UNIT_NUMBER_BITS);
        if self.admit(number, deadline, true, counters, outcomes, now) {
            let added = self.content(number, deadline).and_then(|(content, spare)| {
                let block = content.block(packet)?;
                Some(block.add(packet, || spare.pop().unwrap_or_default()))
            });
            self.on_added(number, packet.symbol.len(), added, true, counters, outcomes);
        }
    }

    /// Adds source packet `source` of the stream, received or recovered, to its unit, which expires
    /// at `deadline` on our clock, and delivers the unit if it is then complete. A received packet
    /// that is late or superfluous is counted as discarded.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn handle_part(
        &mut self,
        source: u64,
        part: &Part<'_>,
        recovered: bool,
        deadline: Instant,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
        now: Instant,
    ) {
        let number = expand(self.next, u64::from(part.unit_low), PART_UNIT_BITS);
        if self.admit(number, deadline, !recovered, counters, outcomes, now) {
            let added = self.content(number, deadline).and_then(|(content, spare)| {
                let parts = content.parts(source, part)?;
                Some(parts.add(source, part, recovered, || spare.pop().unwrap_or_default()))
            });
            self.on_added(number, part.payload.len(), added, !recovered, counters, outcomes);
        }
    }

    /// Returns whether the unit `number` accepts a packet, which expires at `deadline`. Opens an
    /// unknown unit, unless it is overtaken by the last delivered one of a newest-wins channel:
    /// then it counts as superseded. First gives up the open units whose deadline has passed.
    /// `came` is true for a packet that was received and not recovered: only such a one counts as
    /// discarded.
    fn admit(
        &mut self,
        number: u64,
        deadline: Instant,
        came: bool,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
        now: Instant,
    ) -> bool {
        self.expire(counters, outcomes, now);
        // A skipped unit takes its deadline from its first packet.
        let known = self.units.get(&number).map(|coming| &coming.content);
        match known {
            Some(Content::Block(_) | Content::Parts(_)) => return true,
            Some(Content::Nothing) => {
                return self.is_fresh(number, deadline, came, counters, outcomes, now);
            }
            None => {}
        }
        let refusal = match self.finished.check(number) {
            Verdict::New => None,
            Verdict::Replayed => Some(Discard::PacketSurplus),
            Verdict::Stale => Some(Discard::PacketOutOfRange),
        };
        if let Some(refusal) = refusal {
            counters.discard_many(refusal, u64::from(came));
            return false;
        }
        if self.order == Order::NewestWins && self.delivered.is_some_and(|newest| number < newest) {
            self.finished.note(number);
            counters.units_mut(self.channel).heard += 1;
            self.supersede(counters);
            return false;
        }
        self.open(number, deadline, counters, outcomes);
        self.is_fresh(number, deadline, came, counters, outcomes, now)
    }

    /// Returns whether a unit is in time whose first packet has come; if not, gives it up as late.
    fn is_fresh(
        &mut self,
        number: u64,
        deadline: Instant,
        came: bool,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
        now: Instant,
    ) -> bool {
        if now > deadline {
            counters.discard_many(Discard::PacketLate, u64::from(came));
            self.lose(number, LossReason::Late, counters, outcomes);
        }
        now <= deadline
    }

    /// Gives up every open unit whose deadline has passed: as missing without any packet, otherwise
    /// as incomplete.
    pub(crate) fn expire(
        &mut self,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
        now: Instant,
    ) {
        while let Some((&number, coming)) =
            self.units.iter().find(|(_, coming)| coming.deadline < now)
        {
            let reason = match coming.content {
                Content::Block(_) | Content::Parts(_) => LossReason::Incomplete,
                Content::Nothing => LossReason::Missing,
            };
            self.lose(number, reason, counters, outcomes);
        }
    }

    /// Gives up every unit, as evicted, because no more of its packets will arrive.
    pub(crate) fn abandon(&mut self, counters: &mut Counters, outcomes: &mut Vec<Outcome>) {
        while !self.units.is_empty() {
            self.evict(counters, outcomes);
        }
    }

    /// Opens a unit. On a channel that keeps every unit, also opens the skipped units before it, at
    /// most [`GAP_MAX`]; those before them count as missing immediately. Evicts the oldest open
    /// units beyond [`UNITS_MAX`].
    fn open(
        &mut self,
        number: u64,
        deadline: Instant,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
    ) {
        if number >= self.next {
            let gap = number - self.next;
            // On a newest-wins channel, units overtake each other: a gap means nothing.
            let every = self.order == Order::ByDeadline;
            let followed = if every { gap.min(GAP_MAX) } else { 0 };
            if every {
                let skipped = gap - followed;
                counters.units_mut(self.channel).heard += gap;
                counters.units_mut(self.channel).lose(LossReason::Missing, skipped);
                counters.discard_many(Discard::UnitMissing, skipped);
                self.totals.1 += skipped;
                // A late packet must not reopen one of these.
                let last = number - followed;
                let first = self.next.max(last.saturating_sub(Window::SPAN));
                (first..last).for_each(|skipped| self.finished.note(skipped));
            }
            for skipped in number - followed..number {
                self.units.insert(skipped, Coming { deadline, content: Content::Nothing });
            }
            self.next = number + 1;
        }
        counters.units_mut(self.channel).heard += 1;
        self.units.insert(number, Coming { deadline, content: Content::Nothing });
        while self.units.len() > UNITS_MAX {
            self.evict(counters, outcomes);
        }
    }

    /// Returns the content of an open unit, and the spare buffers; `None` if the unit is not open.
    /// The first packet's `deadline` becomes the unit's.
    fn content(
        &mut self,
        number: u64,
        deadline: Instant,
    ) -> Option<(&mut Content, &mut Vec<Vec<u8>>)> {
        let coming = self.units.get_mut(&number)?;
        if matches!(coming.content, Content::Nothing) {
            // The deadline of a skipped unit was a guess.
            coming.deadline = deadline;
        }
        Some((&mut coming.content, &mut self.spare))
    }

    /// Acts on the result of adding a packet of `bytes` bytes to a unit: delivers the unit if it is
    /// complete, gives up the oldest units if all hold too many bytes, or counts the packet as
    /// discarded. `added` is `None` for a packet of another code than the unit's others; `came` is
    /// false for a recovered packet, which is counted if it was added.
    fn on_added(
        &mut self,
        number: u64,
        bytes: usize,
        added: Option<Added>,
        came: bool,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
    ) {
        let taken = matches!(added, Some(Added::Incomplete | Added::Complete));
        if taken {
            self.bytes += bytes;
            counters.sources_recovered += u64::from(!came);
        }
        match added {
            Some(Added::Incomplete) => {
                while self.bytes > self.bytes_max() {
                    self.evict(counters, outcomes);
                }
            }
            Some(Added::Complete) => self.deliver(number, counters, outcomes),
            Some(Added::Duplicate) => {
                counters.discard_many(Discard::PacketDuplicate, u64::from(came));
            }
            Some(Added::Inconsistent) | None => counters.discard(Discard::PacketInconsistent),
        }
    }

    fn bytes_max(&self) -> usize {
        if self.channel == ChannelNumber::MEDIA { MEDIA_BYTES_MAX } else { BYTES_MAX }
    }

    fn deliver(&mut self, number: u64, counters: &mut Counters, outcomes: &mut Vec<Outcome>) {
        let Some(coming) = self.units.get(&number) else { return };
        let (repaired, block) = match &coming.content {
            Content::Nothing => return,
            Content::Block(block) => (block.needs_repair(), block.recover()),
            Content::Parts(parts) => (parts.needed_repair(), Some(parts.join())),
        };
        let Some((prefix, bytes)) = block.and_then(join) else {
            return self.lose(number, LossReason::Malformed, counters, outcomes);
        };
        self.finish(number);
        if self.order == Order::NewestWins {
            self.delivered = Some(number);
            self.overtake(number, counters);
        }
        let units = counters.units_mut(self.channel);
        units.delivered += 1;
        units.repaired += u64::from(repaired);
        self.totals.0 += 1;
        outcomes.push(Outcome::Unit { number, bytes, prefix, repaired });
    }

    /// Finishes all open units older than `newest`, which was just delivered, as superseded.
    fn overtake(&mut self, newest: u64, counters: &mut Counters) {
        while let Some((&number, _)) = self.units.range(..newest).next() {
            self.supersede(counters);
            self.finish(number);
        }
    }

    fn supersede(&self, counters: &mut Counters) {
        counters.units_mut(self.channel).superseded += 1;
        counters.discard(Discard::UnitSuperseded);
    }

    fn evict(&mut self, counters: &mut Counters, outcomes: &mut Vec<Outcome>) {
        if let Some((&oldest, _)) = self.units.first_key_value() {
            self.lose(oldest, LossReason::Evicted, counters, outcomes);
        }
    }

    fn lose(
        &mut self,
        number: u64,
        reason: LossReason,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
    ) {
        counters.discard(match reason {
            LossReason::Missing => Discard::UnitMissing,
            LossReason::Incomplete => Discard::UnitIncomplete,
            LossReason::Late => Discard::UnitLate,
            LossReason::Evicted => Discard::UnitEvicted,
            LossReason::Malformed => Discard::UnitMalformed,
        });
        counters.units_mut(self.channel).lose(reason, 1);
        self.finish(number);
        self.totals.1 += 1;
        outcomes.push(Outcome::Lost { number, reason });
    }

    fn finish(&mut self, number: u64) {
        self.finished.note(number);
        let content = self.units.remove(&number).map(|coming| coming.content);
        let room = SPARE_MAX.saturating_sub(self.spare.len());
        match content {
            Some(Content::Block(block)) => {
                self.bytes -= block.bytes();
                self.spare.extend(block.into_buffers().take(room));
            }
            Some(Content::Parts(parts)) => {
                self.bytes -= parts.bytes();
                self.spare.extend(parts.into_buffers().take(room));
            }
            Some(Content::Nothing) | None => {}
        }
    }
}

impl Content {
    /// Returns the unit's block, created from `packet` if there is no content; `None` if the unit
    /// has packets of the streaming code.
    fn block(&mut self, packet: &Coded<'_>) -> Option<&mut Block> {
        if let Self::Nothing = self {
            *self = Self::Block(Block::of(packet));
        }
        match self {
            Self::Block(block) => Some(block),
            Self::Nothing | Self::Parts(_) => None,
        }
    }

    /// Returns the unit's parts, created from `part` if there is no content; `None` if the unit has
    /// packets of a block, or would begin before the stream.
    fn parts(&mut self, source: u64, part: &Part<'_>) -> Option<&mut Parts> {
        if let Self::Nothing = self {
            *self = Self::Parts(Parts::of(source, part)?);
        }
        match self {
            Self::Parts(parts) => Some(parts),
            Self::Nothing | Self::Block(_) => None,
        }
    }
}

/// Splits a block's content into its prefix and the unit, without the padding; `None` if it is
/// shorter than the prefix, or than the prefix states.
fn join(mut content: Vec<u8>) -> Option<(Prefix, Vec<u8>)> {
    let prefix = Prefix::parse(&content)?;
    let end = Prefix::BYTES.checked_add(prefix.length as usize)?;
    if end > content.len() {
        return None;
    }
    content.copy_within(Prefix::BYTES..end, 0);
    content.truncate(prefix.length as usize);
    Some((prefix, content))
}

/// Maximum number of open units, beyond which the oldest is evicted: more than a second of slices
/// at 60 pictures a second.
const UNITS_MAX: usize = 512;
/// Maximum bytes held of media, beyond which the oldest unit is evicted: a second at 64 Mbit/s.
const MEDIA_BYTES_MAX: usize = 8 << 20;
/// Maximum bytes held of any other channel, beyond which its oldest unit is evicted: a second at 4
/// Mbit/s. 64 channels hold at most 32 MiB.
const BYTES_MAX: usize = 512 << 10;
/// Maximum number of skipped units reported one by one; those before them are only counted, as
/// missing: 0.7 s of slices.
const GAP_MAX: u64 = 256;
const SPARE_MAX: usize = 1_024;

#[cfg(test)]
mod tests;
