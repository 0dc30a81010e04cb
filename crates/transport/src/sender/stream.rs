//! Sender side of a stream: tracks missing packets and creates repair packets for them.

use std::collections::VecDeque;

use tautline_fec::stream::{self, Encoder};
use tautline_units::Instant;

use crate::sequence::expand;
use crate::wire::stream::{
    Part, Repair, SOURCE_NUMBER_BITS, SYMBOL_BYTES, SYMBOL_HEADER_BYTES, Source, WINDOW_MOST,
};
use crate::wire::{Packet, Packets, Prefix};

/// The sender side of a stream. It numbers source packets, encodes repair packets over those that
/// may be missing, and tracks the outcome of each.
///
/// Its 1.5 MB are allocated at construction and do not grow.
#[derive(Debug)]
pub(crate) struct Stream {
    encoder: Encoder,
    /// Units with source packets in the coding window, oldest first.
    units: VecDeque<Unit>,
    /// Outcome of each source packet in the coding window, in order of numbers.
    fates: VecDeque<Fate>,
    /// Number of the source packet of the first element of `fates`.
    first: u64,
    /// Sent repair packets that may still help to recover these source packets, oldest first, at
    /// most [`REPAIRS_MOST`].
    repairs: VecDeque<Sum>,
    /// Number of the next repair packet; its low 16 bits are its seed.
    next_repair: u64,
    /// Smoothed share of sent source and repair packets that were lost.
    erasure_rate: f64,
    /// Payloads of the last unit, concatenated.
    block: Vec<u8>,
    /// Reusable buffer for one symbol.
    symbol: Vec<u8>,
    /// Reusable list of [`Stream::missing`]: numbers of the lost source packets.
    lost: Vec<u64>,
    /// Reusable list of [`Stream::missing`]: end and start of the arrived repair packets' windows.
    arrived: Vec<(u64, u64)>,
}

/// A unit in the coding window.
#[derive(Debug, Clone, Copy)]
struct Unit {
    number: u64,
    /// Number of the unit's first source packet; its packets are `first..end`.
    first: u64,
    end: u64,
    deadline: Instant,
    /// Deadline as its packets state it: milliseconds, modulo 65536.
    deadline_low: u16,
    /// Length of the payload of each packet, except the last, whose payload may be shorter.
    payload_bytes: usize,
}

/// A sent repair packet; it covers the source packets `first..end`.
#[derive(Debug, Clone, Copy)]
struct Sum {
    number: u64,
    first: u64,
    end: u64,
    /// True if the packet was sent because source packets were known to be lost; false if it was
    /// sent by the code rate.
    asked: bool,
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The packet is in flight or queued.
    Flying,
    Arrived,
    Lost,
}

impl Stream {
    pub(crate) fn new() -> Self {
        let config = stream::Config::new(SYMBOL_BYTES, WINDOW_MOST);
        Self {
            encoder: Encoder::new(config).expect("a window of 512 packets is valid"),
            units: VecDeque::new(),
            fates: VecDeque::with_capacity(WINDOW_MOST),
            first: 0,
            repairs: VecDeque::new(),
            next_repair: 0,
            erasure_rate: 0.0,
            block: Vec::new(),
            symbol: Vec::new(),
            lost: Vec::new(),
            arrived: Vec::new(),
        }
    }

    /// Adds a unit to the coding window, cut into source packets with payloads of `payload_bytes`,
    /// and returns how many there are. If the window has no room for all of them, it restarts with
    /// this unit. [`Stream::write_source`] then writes each.
    pub(crate) fn push(
        &mut self,
        number: u64,
        unit: &[u8],
        payload_bytes: usize,
        deadline: Instant,
        now: Instant,
    ) -> usize {
        self.block.clear();
        self.block.extend_from_slice(&Prefix::new(unit.len(), now).to_bytes());
        self.block.extend_from_slice(unit);
        let source_count = self.block.len().div_ceil(payload_bytes);
        assert!(source_count <= SOURCES_MOST, "the plan fits the unit");
        let first = self.encoder.window().end;
        // A repair packet covers all packets of a unit or none: a full window restarts before the
        // unit.
        self.encoder.make_room(source_count);
        let unit = Unit {
            number,
            first,
            end: first + source_count as u64,
            deadline,
            deadline_low: deadline.as_nanos().div_ceil(1_000_000) as u16,
            payload_bytes,
        };
        for index in 0..source_count {
            part(&unit, &self.block, index).write_symbol(&mut self.symbol);
            self.encoder.push(&self.symbol).expect("all symbols have one length");
            self.fates.push_back(Fate::Flying);
        }
        self.units.push_back(unit);
        self.follow_window();
        source_count
    }

    /// Appends source packet `index` of the last unit to `out`.
    pub(crate) fn write_source(&self, index: usize, out: &mut Vec<u8>) {
        let Some(unit) = self.units.back() else { return };
        let number_low = (unit.first + index as u64) as u32 & ((1 << SOURCE_NUMBER_BITS) - 1);
        Source { number_low, part: part(unit, &self.block, index) }.write(out);
    }

    /// Appends a repair packet over the coding window to `out` and records it as in flight; does
    /// nothing if the window is empty.
    pub(crate) fn write_repair(&mut self, out: &mut Vec<u8>) {
        self.symbol.resize(SYMBOL_BYTES, 0);
        let header = self.encoder.repair(self.next_repair as u16, &mut self.symbol);
        self.write_sum(header.ok(), false, out);
    }

    /// Appends a repair packet over the coding window up to the newest source packet known to be
    /// lost, and records it as in flight; does nothing if none is.
    pub(crate) fn write_asked(&mut self, out: &mut Vec<u8>) {
        let lost = self.fates.iter().rposition(|fate| *fate == Fate::Lost);
        let end = lost.map_or(0, |at| self.first + at as u64 + 1);
        self.symbol.resize(SYMBOL_BYTES, 0);
        let header = self.encoder.repair_before(end, self.next_repair as u16, &mut self.symbol);
        self.write_sum(header.ok(), true, out);
    }

    fn write_sum(&mut self, header: Option<stream::Repair>, asked: bool, out: &mut Vec<u8>) {
        let Some(header) = header else { return };
        let seed = header.seed;
        let sum = &self.symbol[..self.longest(header.covers().end)];
        let first_low = header.first as u32 & ((1 << SOURCE_NUMBER_BITS) - 1);
        Repair { first_low, count: header.count, seed, sum }.write(out);
        if self.repairs.len() == REPAIRS_MOST {
            self.repairs.pop_front();
        }
        let covers = header.covers();
        let (number, fate) = (self.next_repair, Fate::Flying);
        self.repairs.push_back(Sum { number, first: covers.start, end: covers.end, asked, fate });
        self.next_repair += 1;
    }

    /// Returns the deadline of the oldest unit in the coding window; `None` if that is empty, so
    /// that nothing may be missing.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.units.front().map(|unit| unit.deadline)
    }

    /// Records that a sent source or repair packet arrived or was lost, also for the erasure rate.
    /// One known to have arrived stays so.
    pub(crate) fn on_settled(&mut self, plaintext: &[u8], arrived: bool) {
        let (fate, lost) = if arrived { (Fate::Arrived, 0.0) } else { (Fate::Lost, 1.0) };
        self.settle(plaintext, fate);
        self.erasure_rate += (lost - self.erasure_rate) / ERASURES;
    }

    /// Records that a source or repair packet was never sent: it counts as lost, but not for the
    /// erasure rate.
    pub(crate) fn on_dropped(&mut self, plaintext: &[u8]) {
        self.settle(plaintext, Fate::Lost);
    }

    fn settle(&mut self, plaintext: &[u8], fate: Fate) {
        match Packets::of(plaintext).next() {
            Some(Ok(Packet::Source(source))) => {
                let next = self.encoder.window().end;
                let number = expand(next, u64::from(source.number_low), SOURCE_NUMBER_BITS);
                let place = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
                if let Some(known) = place.and_then(|at| self.fates.get_mut(at)) {
                    // A packet sent over two links has arrived if either copy has.
                    if *known != Fate::Arrived {
                        *known = fate;
                    }
                }
            }
            Some(Ok(Packet::Repair(repair))) => {
                let number = expand(self.next_repair, u64::from(repair.seed), 16);
                let place = self.repairs.partition_point(|sum| sum.number < number);
                if let Some(known) = self.repairs.get_mut(place).filter(|r| r.number == number)
                    && known.fate != Fate::Arrived
                {
                    known.fate = fate;
                }
            }
            Some(_) | None => {}
        }
    }

    /// Drops units whose deadline is before `time` from the coding window; `time` is when something
    /// sent now arrives at the earliest.
    pub(crate) fn expire(&mut self, time: Instant) {
        if self.deadline().is_none_or(|deadline| deadline >= time) {
            return;
        }
        self.missing();
        while let Some(unit) = self.units.front().filter(|unit| unit.deadline < time) {
            let leaving = (unit.end - self.first) as usize;
            if self.fates.iter().take(leaving).any(|fate| *fate == Fate::Lost) {
                self.encoder.give_up_before(unit.end);
            } else {
                self.encoder.forget_before(unit.end);
            }
            self.follow_window();
        }
    }

    /// Drops the source packets that the receiver must have from the coding window. Returns whether
    /// more repair packets are needed: some are missing, the repair packets in flight that were
    /// sent because of known losses recover them with a probability below [`SURE`], and are fewer
    /// than [`ASKED_MOST`] for each missing packet. See docs/protocol.md, section 6.
    pub(crate) fn lacks(&mut self) -> bool {
        let missing = self.missing();
        if missing == 0 {
            return false;
        }
        let flying = |fate: Fate| fate == Fate::Flying;
        let sources = self.fates.iter().filter(|fate| flying(**fate)).count() as f64;
        let repairs = self.repairs.iter().filter(|sum| flying(sum.fate));
        let (asked, due) = repairs.fold((0, 0.0), |(asked, due), sum| match sum.asked {
            true => (asked + 1, due),
            false => (asked, due + 1.0),
        });
        // Scheduled repair packets first cover the expected losses among the source packets in
        // flight.
        let e = self.erasure_rate;
        let headroom = ((1.0 - e) * due - e * sources).max(0.0) as usize;
        let needed = missing.saturating_sub(headroom);
        asked < ASKED_MOST * needed && at_least(needed, asked, 1.0 - e) < SURE
    }

    /// Drops the source packets from the start of the coding window that the receiver must have
    /// received or recovered, by the fates known so far.
    pub(crate) fn follow_reports(&mut self) {
        self.missing();
    }

    /// Returns the number of repair packets that must still arrive for all lost source packets to
    /// be recovered, and drops the source packets that the receiver must have from the coding
    /// window.
    ///
    /// It is the number of lost source packets that no arrived repair packet can make up for, plus
    /// those that stay undetermined because repair packets are linearly dependent.
    ///
    /// Repair packets are taken in the order in which their windows end. Each covers the oldest
    /// lost packet in its window that no earlier one took; no other choice leaves fewer.
    fn missing(&mut self) -> usize {
        let Self { fates, repairs, lost, arrived, first, .. } = self;
        let unsettled = fates.iter().position(|fate| *fate == Fate::Flying);
        let settled = *first + unsettled.unwrap_or(fates.len()) as u64;
        lost.clear();
        lost.extend(fates.iter().zip(*first..).filter(|(f, _)| **f == Fate::Lost).map(|(_, n)| n));
        let mut known = lost.first().map_or(settled, |oldest| settled.min(*oldest));
        if !lost.is_empty() {
            arrived.clear();
            let there = repairs.iter().filter(|sum| sum.fate == Fate::Arrived);
            arrived.extend(there.map(|sum| (sum.end, sum.first)));
            arrived.sort_unstable();
            for (end, first) in arrived.iter() {
                let covered = lost.iter().position(|number| number >= first);
                if let Some(at) = covered.filter(|at| lost[*at] < *end) {
                    lost.remove(at);
                }
                // Solved: every lost packet has a repair packet, and all others in their windows
                // arrived.
                let next = lost.first().copied().unwrap_or(settled);
                if *end <= settled && next >= *end {
                    known = known.max(next.min(settled));
                }
            }
        }
        let mut missing = lost.len();
        let undetermined = self.undetermined(known);
        if undetermined > 0 {
            missing += undetermined;
            known = self.lost_before(known).next().unwrap_or(known);
        }
        if known > self.first {
            self.encoder.acknowledge(known).expect("only sent packets are known");
        }
        self.move_to(known);
        missing
    }

    /// Returns how many of the lost source packets below `end` remain undetermined although as many
    /// repair packets arrived, because some of those are linearly dependent.
    fn undetermined(&self, end: u64) -> usize {
        let lost: Vec<u64> = self.lost_before(end).collect();
        // A single one is always determined: no coefficient is 0.
        if lost.len() < 2 {
            return 0;
        }
        let there = self.repairs.iter().filter(|sum| sum.fate == Fate::Arrived && sum.end <= end);
        lost.len() - stream::rank(&lost, there.map(|sum| (sum.number as u16, sum.first..sum.end)))
    }

    fn lost_before(&self, end: u64) -> impl Iterator<Item = u64> {
        let fates = self.fates.iter().zip(self.first..end);
        fates.filter(|(fate, _)| **fate == Fate::Lost).map(|(_, number)| number)
    }

    /// Returns the length in bytes, without padding, of the longest symbol of a source packet in
    /// the coding window below `end`.
    fn longest(&self, end: u64) -> usize {
        let units = self.units.iter().take_while(|unit| unit.first < end);
        let longest = units.map(|unit| unit.payload_bytes).max();
        SYMBOL_HEADER_BYTES + longest.unwrap_or(0)
    }

    /// Moves the lists to the present start of the coding window. If a packet before it may be
    /// missing at the receiver, also drops the repair packets that depend on it.
    fn follow_window(&mut self) {
        let first = self.encoder.window().start;
        let left = (first - self.first) as usize;
        let known = self.fates.iter().take(left).all(|fate| *fate == Fate::Arrived);
        if !known {
            // These repair packets depend on packets that may never arrive.
            self.repairs.retain(|sum| sum.first >= first);
        }
        self.move_to(first);
    }

    fn move_to(&mut self, first: u64) {
        self.fates.drain(..(first - self.first) as usize);
        self.first = first;
        while self.units.front().is_some_and(|unit| unit.end <= first) {
            self.units.pop_front();
        }
        self.repairs.retain(|sum| sum.end > first && sum.fate != Fate::Lost);
    }
}

/// Returns the probability that at least `needed` of `count` packets arrive, each with
/// `probability`; above [`MANY`] packets, 1 if the mean number of arrivals suffices, otherwise 0.
fn at_least(needed: usize, count: usize, probability: f64) -> f64 {
    if needed > count || probability <= 0.0 {
        return 0.0;
    }
    if count > MANY {
        return if count as f64 * probability >= needed as f64 { 1.0 } else { 0.0 };
    }
    // Sums down from the case that all arrive.
    let mut term = probability.powi(count as i32);
    let mut sum = term;
    for arrived in (needed..count).rev() {
        let ways = (arrived + 1) as f64 / (count - arrived) as f64;
        term *= ways * (1.0 - probability) / probability;
        sum += term;
    }
    sum
}

/// Returns part `index` of a unit with the content `block`.
fn part<'a>(unit: &Unit, block: &'a [u8], index: usize) -> Part<'a> {
    let start = index * unit.payload_bytes;
    let last = unit.first + index as u64 + 1 == unit.end;
    let end = if last { block.len() } else { start + unit.payload_bytes };
    Part {
        last,
        unit_low: unit.number as u16,
        index: index as u8,
        deadline_low: unit.deadline_low,
        payload: &block[start..end],
    }
}

/// Probability of recovering all missing source packets below which more repair packets are sent.
/// docs/decisions/0011-streaming-on-the-wire.md compares other values and rules.
const SURE: f64 = 0.95;
/// Packet count above which the mean number of arrivals decides, as 1 or 0, instead of the exact
/// probability: powers of small probabilities underflow to zero.
const MANY: usize = 100;
/// Number of repair packets in flight because of known losses, for each missing packet, from which
/// no more are sent, whatever the loss rate: the repair traffic itself must not cause the losses.
const ASKED_MOST: usize = 6;
/// Maximum number of source packets of a unit: a part's index has one byte.
pub(crate) const SOURCES_MOST: usize = 255;
/// Maximum number of tracked repair packets: two for each source packet of the largest coding
/// window.
const REPAIRS_MOST: usize = 2 * WINDOW_MOST;
/// Number of packets over which the erasure rate is smoothed: a quarter of a second at a thousand
/// packets per second.
const ERASURES: f64 = 256.0;

#[cfg(test)]
mod tests;
