//! The receiver's side: what is known, and what the repair packets make known.

use alloc::collections::VecDeque;

use super::elimination::Elimination;
use super::known::Known;
use super::packets::Packets;
use super::solve::Work;
use super::{AHEAD_MAX, Config, Repair, Report};
use crate::Error;
use crate::kernel::{Kernel, ROWS_MAX};

/// A receiver that gives source packets as soon as they are known, from packets in any order.
///
/// All memory is allocated at construction. The numbers obey `base <= floor <= edge <= next`:
/// packets below `base` are forgotten, those below `floor` not wanted any more.
#[derive(Clone, Debug)]
pub struct Decoder {
    config: Config,
    kernel: Kernel,
    /// By id, modulo the capacity of `known`.
    packets: Packets,
    known: Known,
    base: u64,
    floor: u64,
    edge: u64,
    next: u64,
    /// Unknown packets in `edge..next`.
    missing: usize,
    lost: u64,
    equations: Elimination,
    /// Payloads of held repair packets, by slot.
    repairs: Packets,
    /// Known packets, in the order in which they became known, for [`Decoder::poll`].
    ready: VecDeque<u64>,
    /// The first packet that [`Decoder::poll_in_order`] has not given.
    unread: u64,
    discards: Discards,
    work: Work,
    /// Whether the equations determine packets that are not computed yet.
    behind: bool,
}

/// A reason why a packet was not taken. Each is counted in [`Discards`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Discard {
    /// It does not have as many bytes as all packets of the stream.
    #[error("the packet's length is wrong")]
    Length,
    /// Its header covers nothing, or more than the decoder remembers, or passes the last number.
    #[error("the header is not possible")]
    Header,
    /// It lies more than [`AHEAD_MAX`] ahead of all packets seen.
    #[error("the packet lies too far ahead")]
    Ahead,
    /// It is, or covers, a source packet that is forgotten already.
    #[error("the packet is about forgotten ones")]
    Forgotten,
    /// The source packet is known.
    #[error("the source packet is known already")]
    Duplicate,
    /// The repair packet says nothing that is not known.
    #[error("the repair packet says nothing new")]
    Redundant,
    /// As many repair packets as may be are held.
    #[error("too many repair packets are held")]
    Full,
}

/// Counts of packets that were not taken, and of repair packets that were dropped later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discards {
    /// See [`Discard::Length`].
    pub length: u64,
    /// See [`Discard::Header`].
    pub header: u64,
    /// See [`Discard::Ahead`].
    pub ahead: u64,
    /// See [`Discard::Forgotten`].
    pub forgotten: u64,
    /// See [`Discard::Duplicate`].
    pub duplicate: u64,
    /// See [`Discard::Redundant`].
    pub redundant: u64,
    /// See [`Discard::Full`].
    pub full: u64,
    /// Repair packets that were held in vain until packets that they cover were forgotten, until all
    /// of these were given up, or until they were [dropped](Decoder::drop_unwanted).
    pub expired: u64,
}

impl Decoder {
    /// Returns a decoder of a stream that begins with packet 0, on the fastest kernel.
    ///
    /// # Errors
    /// [`Error::Window`] or [`Error::Repairs`].
    pub fn new(config: Config) -> Result<Decoder, Error> {
        Decoder::with_kernel(config, Kernel::best())
    }

    /// Returns the same decoder on a given kernel; all give the same bytes.
    ///
    /// # Errors
    /// [`Error::Window`] or [`Error::Repairs`].
    pub fn with_kernel(config: Config, kernel: Kernel) -> Result<Decoder, Error> {
        config.check()?;
        let Config { symbol_bytes, window_max, repairs_max } = config;
        let known = Known::new(window_max);
        let capacity = known.capacity();
        Ok(Decoder {
            config,
            kernel,
            packets: Packets::new(capacity, symbol_bytes),
            known,
            base: 0,
            floor: 0,
            edge: 0,
            next: 0,
            missing: 0,
            lost: 0,
            equations: Elimination::new(kernel, repairs_max, window_max, capacity),
            repairs: Packets::new(repairs_max, symbol_bytes),
            ready: VecDeque::with_capacity(2 * window_max),
            unread: 0,
            discards: Discards::default(),
            work: Work::new(config),
            behind: false,
        })
    }

    /// Takes a source packet.
    ///
    /// # Errors
    /// [`Discard::Length`], [`Discard::Ahead`], [`Discard::Forgotten`] or [`Discard::Duplicate`].
    pub fn handle_source(&mut self, id: u64, symbol: &[u8]) -> Result<(), Discard> {
        let result = self.check_source(id, symbol);
        self.count(result)?;
        self.advance(id + 1);
        self.packets.get_mut(self.known.slot(id)).copy_from_slice(symbol);
        self.learn(id);
        self.equations.know(id);
        self.solve();
        Ok(())
    }

    /// Takes a repair packet.
    ///
    /// What lies before its coding window is [given up](Decoder::forget_before): the sender will
    /// cover it no more. It is held if it says something new; and if it makes packets known, these
    /// are computed, [`COMPUTED_MAX`] of them at once. One that covers no missing packet costs next to
    /// nothing.
    ///
    /// # Errors
    /// Any [`Discard`] but [`Discard::Duplicate`].
    pub fn handle_repair(&mut self, repair: &Repair, payload: &[u8]) -> Result<(), Discard> {
        let result = self.check_repair(repair, payload);
        self.count(result)?;
        let covers = repair.covers();
        self.advance(covers.end);
        self.forget_before(covers.start);
        let full = self.behind && self.equations.is_full();
        if full {
            self.solve();
        }
        let result = self.hold(repair, payload);
        self.count(result)?;
        if full {
            // What the packet determines waits for the next call: this one has solved.
            self.behind = true;
        } else {
            self.solve();
        }
        Ok(())
    }

    /// Computes the next [`COMPUTED_MAX`] packets that are determined and were too many to be computed
    /// with the packet that determined them; false if there can be none.
    ///
    /// For whoever wants [`Decoder::report`] to know of them: [`Decoder::poll`] and
    /// [`Decoder::poll_in_order`] do the same when they have nothing else to give, and so does the
    /// next packet that is handled.
    pub fn catch_up(&mut self) -> bool {
        let behind = self.behind;
        if behind {
            self.solve();
        }
        behind
    }

    /// Returns the next packet that has become known, in the order of becoming so; each once.
    ///
    /// The bytes must be taken before the next packet is handled; packets not polled for until
    /// they are forgotten are not given.
    pub fn poll(&mut self) -> Option<(u64, &[u8])> {
        let id = loop {
            match self.ready.pop_front() {
                Some(id) if id >= self.floor => break id,
                Some(_) => {}
                None if self.catch_up() => {}
                None => return None,
            }
        };
        Some((id, self.packets.get(self.known.slot(id))))
    }

    /// Returns the next packet in the order of numbers, if it is known; each once.
    ///
    /// Numbers are left out only where packets were given up or, in want of polling, forgotten.
    /// Independent of [`Decoder::poll`]: whoever uses both gets every packet twice.
    pub fn poll_in_order(&mut self) -> Option<(u64, &[u8])> {
        let id = self.unread.max(self.floor);
        while id >= self.edge {
            if !self.catch_up() {
                return None;
            }
        }
        self.unread = id + 1;
        Some((id, self.packets.get(self.known.slot(id))))
    }

    /// Gives up all packets below `id`: those that are worthless by now.
    ///
    /// They are not waited for, not reported as missing and not given. What is known of them
    /// still helps to decode others; equations about nothing else are dropped, and counted as
    /// [`Discards::expired`].
    pub fn forget_before(&mut self, id: u64) {
        if id <= self.floor {
            return;
        }
        if id > self.next {
            self.advance(id);
        }
        self.raise_floor(id);
        self.discards.expired += self.equations.give_up(self.floor) as u64;
    }

    /// Drops the held repair packet that waits for the oldest packet given up, if there is one: what
    /// to do when a repair packet is refused as [`Discard::Full`].
    ///
    /// All that is known of other packets stays, unless the one given up should still come. It is
    /// counted as [`Discards::expired`]. O(repair packets held * (these + unknown packets)).
    pub fn drop_unwanted(&mut self) -> bool {
        let dropped = self.equations.drop_unwanted(self.floor);
        self.discards.expired += u64::from(dropped);
        dropped
    }

    /// Returns where the decoder stands. O(repair packets held).
    pub fn report(&self) -> Report {
        Report {
            edge: self.edge,
            next: self.next,
            missing: self.missing,
            rank: self.equations.rank(self.floor),
            lost: self.lost,
        }
    }

    /// Returns the counts of packets that were not taken.
    pub fn discards(&self) -> Discards {
        self.discards
    }

    fn check_source(&self, id: u64, symbol: &[u8]) -> Result<(), Discard> {
        if symbol.len() != self.config.symbol_bytes {
            return Err(Discard::Length);
        }
        if id < self.base {
            return Err(Discard::Forgotten);
        }
        if id >= self.next.saturating_add(AHEAD_MAX) {
            return Err(Discard::Ahead);
        }
        if id < self.next && self.known.contains(id) {
            return Err(Discard::Duplicate);
        }
        Ok(())
    }

    fn check_repair(&self, repair: &Repair, payload: &[u8]) -> Result<(), Discard> {
        if payload.len() != self.config.symbol_bytes {
            return Err(Discard::Length);
        }
        let count = u64::from(repair.count);
        if count == 0 || usize::from(repair.count) > self.config.window_max {
            return Err(Discard::Header);
        }
        let end = repair.first.checked_add(count).ok_or(Discard::Header)?;
        if repair.first < self.base {
            return Err(Discard::Forgotten);
        }
        if end > self.next.saturating_add(AHEAD_MAX) {
            return Err(Discard::Ahead);
        }
        Ok(())
    }

    fn hold(&mut self, repair: &Repair, payload: &[u8]) -> Result<(), Discard> {
        let mut unknowns = self.known.unknown(repair.covers()).peekable();
        if unknowns.peek().is_none() {
            return Err(Discard::Redundant);
        }
        if self.equations.is_full() {
            return Err(Discard::Full);
        }
        let slot = self.equations.insert(*repair, unknowns).ok_or(Discard::Redundant)?;
        self.repairs.get_mut(usize::from(slot)).copy_from_slice(payload);
        Ok(())
    }

    /// Makes room for all packets below `next`.
    fn advance(&mut self, next: u64) {
        if next <= self.next {
            return;
        }
        let base = next.saturating_sub(self.config.window_max as u64);
        if base > self.base {
            self.forget(base);
        }
        self.missing += (next - self.next.max(base)) as usize;
        self.next = next;
    }

    /// Forgets all packets below `base`, which may lie ahead of all that were heard of.
    fn forget(&mut self, base: u64) {
        let heard_of = base.min(self.next);
        self.raise_floor(heard_of);
        self.known.clear(self.base..heard_of);
        self.lost += base - heard_of;
        self.base = base;
        self.floor = self.floor.max(base);
        self.edge = self.edge.max(base);
        self.discards.expired += self.equations.forget(base, self.floor) as u64;
    }

    /// Wants no packets below `floor` any more; all of them have been heard of.
    fn raise_floor(&mut self, floor: u64) {
        if floor <= self.floor {
            return;
        }
        self.floor = floor;
        if floor > self.edge {
            let unknown = self.known.count_unknown(self.edge..floor);
            self.missing -= unknown;
            self.lost += unknown as u64;
            self.edge = floor;
            self.raise_edge();
        }
    }

    fn learn(&mut self, id: u64) {
        self.known.insert(id);
        if id < self.floor {
            return;
        }
        self.missing -= 1;
        if self.ready.len() == 2 * self.config.window_max {
            // Nobody polls: what is forgotten goes, which is at least half.
            let base = self.base;
            self.ready.retain(|&ready| ready >= base);
        }
        self.ready.push_back(id);
        if id == self.edge {
            self.raise_edge();
        }
    }

    fn raise_edge(&mut self) {
        self.edge = self.known.unknown(self.edge..self.next).next().unwrap_or(self.next);
    }

    /// Computes and takes [`COMPUTED_MAX`] of the packets that the equations determine by now.
    ///
    /// The rows of others stay, solved: whatever becomes known meanwhile does not occur in them.
    fn solve(&mut self) {
        let Decoder { work, equations, known, packets, repairs, .. } = self;
        self.behind = work.solve(self.kernel, equations, known, packets, repairs);
        for position in 0..self.work.solved.len() {
            let id = self.equations.pivot(usize::from(self.work.solved[position]));
            self.learn(id);
        }
        self.equations.remove_solved(&mut self.work.solved);
    }

    fn count(&mut self, result: Result<(), Discard>) -> Result<(), Discard> {
        let Err(discard) = result else { return result };
        let counter = match discard {
            Discard::Length => &mut self.discards.length,
            Discard::Header => &mut self.discards.header,
            Discard::Ahead => &mut self.discards.ahead,
            Discard::Forgotten => &mut self.discards.forgotten,
            Discard::Duplicate => &mut self.discards.duplicate,
            Discard::Redundant => &mut self.discards.redundant,
            Discard::Full => &mut self.discards.full,
        };
        *counter += 1;
        result
    }
}

/// How many packets one call computes at most: as many as one pass over the payloads gives.
pub const COMPUTED_MAX: usize = ROWS_MAX;

#[cfg(test)]
impl Decoder {
    /// Returns the size of what was allocated; elements of lists count as one.
    pub(super) fn memory_bytes(&self) -> usize {
        let Decoder { packets, repairs, ready, equations, work, .. } = self;
        packets.memory_bytes()
            + repairs.memory_bytes()
            + ready.capacity()
            + equations.memory_bytes()
            + work.memory_bytes()
    }
}
