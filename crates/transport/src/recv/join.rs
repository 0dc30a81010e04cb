use std::collections::BTreeMap;

use tautline_units::Instant;

use super::dedup::Finished;
use super::recover::{Added, Block};
use crate::counters::{Counters, Discard};
use crate::crypto::{Verdict, expand};
use crate::event::LossReason;
use crate::wire::{Class, Coded, Prefix, Tally, UNIT_NUMBER_BITS};

/// The units of one class that are on their way in.
///
/// Bounded: at most [`UNITS_MAX`] units and [`BYTES_MAX`] bytes, whatever arrives.
#[derive(Debug)]
pub(crate) struct Inbox {
    class: Class,
    /// One past the highest unit number heard of.
    next: u64,
    /// The newest control unit delivered.
    delivered: Option<u64>,
    finished: Finished,
    units: BTreeMap<u64, Coming>,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    /// Units delivered, and given up, since the session began.
    tally: (u64, u64),
}

/// A unit on its way in; without a block until its first packet.
#[derive(Debug)]
struct Coming {
    deadline: Instant,
    block: Option<Block>,
}

/// What became of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is whole and in time.
    Unit { number: u64, bytes: Vec<u8>, prefix: Prefix, repaired: bool },
    /// It will never be delivered.
    Lost { number: u64, reason: LossReason },
}

impl Inbox {
    pub(crate) fn new(class: Class) -> Self {
        Self {
            class,
            next: 0,
            delivered: None,
            finished: Finished::new(),
            units: BTreeMap::new(),
            bytes: 0,
            spare: Vec::new(),
            tally: (0, 0),
        }
    }

    /// What became of the units that were followed.
    pub(crate) fn tally(&self) -> Tally {
        Tally { class: self.class, delivered: self.tally.0, lost: self.tally.1 }
    }

    /// When the next unit's deadline passes.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.units.values().map(|coming| coming.deadline).min()
    }

    /// Takes a packet whose unit is worthless after `deadline`, on our clock.
    pub(crate) fn handle(
        &mut self,
        packet: &Coded<'_>,
        deadline: Instant,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
        now: Instant,
    ) {
        self.expire(counters, outcomes, now);
        let number = expand(self.next, u64::from(packet.unit_low), UNIT_NUMBER_BITS);
        if !self.units.contains_key(&number) {
            match self.finished.check(number) {
                Verdict::New => {}
                Verdict::Replayed => return counters.discard(Discard::PacketSurplus),
                Verdict::Stale => return counters.discard(Discard::PacketOutOfRange),
            }
            if self.class == Class::Control && self.delivered.is_some_and(|newest| number < newest)
            {
                self.finished.note(number);
                return counters.discard(Discard::ControlSuperseded);
            }
            self.open(number, deadline, counters, outcomes);
            if now > deadline {
                counters.discard(Discard::PacketLate);
                self.lose(number, LossReason::Late, counters, outcomes);
                return;
            }
        }
        self.add(number, packet, deadline, counters, outcomes);
    }

    /// Gives up every unit whose deadline has passed.
    pub(crate) fn expire(
        &mut self,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
        now: Instant,
    ) {
        while let Some((&number, coming)) =
            self.units.iter().find(|(_, coming)| coming.deadline < now)
        {
            let reason = match coming.block {
                Some(_) => LossReason::Incomplete,
                None => LossReason::Missing,
            };
            self.lose(number, reason, counters, outcomes);
        }
    }

    /// Makes room for a unit and takes note of those before it that have not shown themselves.
    fn open(
        &mut self,
        number: u64,
        deadline: Instant,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
    ) {
        if number >= self.next {
            let gap = number - self.next;
            // Commands overtake each other: a gap among them means nothing.
            let followed = if self.class == Class::Media { gap.min(GAP_MAX) } else { 0 };
            if self.class == Class::Media {
                counters.discard_many(Discard::UnitMissing, gap - followed);
            }
            for skipped in number - followed..number {
                self.units.insert(skipped, Coming { deadline, block: None });
            }
            self.next = number + 1;
        }
        self.units.insert(number, Coming { deadline, block: None });
        while self.units.len() > UNITS_MAX {
            self.evict(counters, outcomes);
        }
    }

    fn add(
        &mut self,
        number: u64,
        packet: &Coded<'_>,
        deadline: Instant,
        counters: &mut Counters,
        outcomes: &mut Vec<Outcome>,
    ) {
        let Some(coming) = self.units.get_mut(&number) else { return };
        if coming.block.is_none() {
            // A skipped unit's deadline was a guess.
            coming.deadline = deadline;
        }
        let block = coming.block.get_or_insert_with(|| Block::of(packet));
        let spare = &mut self.spare;
        match block.add(packet, || spare.pop().unwrap_or_default()) {
            Added::Incomplete => {
                self.bytes += packet.symbol.len();
                while self.bytes > BYTES_MAX {
                    self.evict(counters, outcomes);
                }
            }
            Added::Complete => {
                self.bytes += packet.symbol.len();
                self.deliver(number, counters, outcomes);
            }
            Added::Duplicate => counters.discard(Discard::PacketDuplicate),
            Added::Inconsistent => counters.discard(Discard::PacketInconsistent),
        }
    }

    fn deliver(&mut self, number: u64, counters: &mut Counters, outcomes: &mut Vec<Outcome>) {
        let Some(block) = self.units.get(&number).and_then(|coming| coming.block.as_ref()) else {
            return;
        };
        let repaired = block.needs_repair();
        let Some((prefix, bytes)) = block.recover().and_then(join) else {
            return self.lose(number, LossReason::Malformed, counters, outcomes);
        };
        self.finish(number);
        if self.class == Class::Control {
            self.delivered = Some(number);
            self.overtake(number, counters);
        }
        if repaired {
            counters.units_repaired += 1;
        }
        match self.class {
            Class::Control => counters.control_delivered += 1,
            Class::Media => counters.media_delivered += 1,
        }
        self.tally.0 += 1;
        outcomes.push(Outcome::Unit { number, bytes, prefix, repaired });
    }

    /// Gives up all units older than the one just delivered.
    fn overtake(&mut self, newest: u64, counters: &mut Counters) {
        while let Some((&number, _)) = self.units.range(..newest).next() {
            counters.discard(Discard::ControlSuperseded);
            self.finish(number);
        }
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
        self.finish(number);
        self.tally.1 += 1;
        outcomes.push(Outcome::Lost { number, reason });
    }

    fn finish(&mut self, number: u64) {
        self.finished.note(number);
        let block = self.units.remove(&number).and_then(|coming| coming.block);
        if let Some(block) = block {
            self.bytes -= block.bytes();
            let room = SPARE_MAX.saturating_sub(self.spare.len());
            self.spare.extend(block.into_buffers().take(room));
        }
    }
}

/// Takes the unit out of its block, or `None` if the block is none.
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

/// More than a second of slices at 60 pictures a second.
const UNITS_MAX: usize = 512;
/// A second at 64 Mbit/s.
const BYTES_MAX: usize = 8 << 20;
/// A skip of more units than this is no longer told unit by unit: 0.7 s of slices.
const GAP_MAX: u64 = 256;
const SPARE_MAX: usize = 1_024;

#[cfg(test)]
mod tests;
