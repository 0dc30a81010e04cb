//! The receiving side: known source packets and those that repair packets recover.

use alloc::collections::VecDeque;

use super::elimination::Elimination;
use super::known::Known;
use super::packets::Packets;
use super::solve::Work;
use super::{Config, Repair};
use crate::Error;
use crate::kernel::{Kernel, ROWS_MAX};

/// A decoder that returns source packets as soon as they are known, from packets in any order.
///
/// All memory is allocated at construction. The invariant is `base <= floor <= edge <= next`:
/// packets below `base` are forgotten, those below `floor` are given up, those below `edge` are
/// known or given up, and `next` is one more than the highest number seen.
#[derive(Clone, Debug)]
pub struct Decoder {
    config: Config,
    kernel: Kernel,
    /// Bytes of the known packets; a packet's slot is its id modulo the capacity of `known`.
    packets: Packets,
    known: Known,
    base: u64,
    floor: u64,
    edge: u64,
    next: u64,
    /// Number of unknown packets in `edge..next`.
    missing: usize,
    lost: u64,
    equations: Elimination,
    /// Payloads of the held repair packets; `equations` lists each with its slot here.
    repairs: Packets,
    /// Ids of the packets that [`Decoder::poll`] has not returned yet, in the order in which they
    /// became known. Some may have been given up since.
    ready: VecDeque<u64>,
    /// One more than the id that [`Decoder::poll_in_order`] returned last; 0 before.
    unread: u64,
    discards: Discards,
    work: Work,
    /// True if the equations may determine packets that are not computed yet: the last computation
    /// reached its limit, or a repair packet was held since.
    behind: bool,
}

/// A reason for discarding a packet. Each is counted in [`Discards`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Discard {
    /// The packet's length differs from the stream's symbol length.
    #[error("the packet's length is wrong")]
    Length,
    /// The repair packet's header covers no packet, more than `window_max` packets, or numbers
    /// beyond `u64::MAX`.
    #[error("the header is not possible")]
    Header,
    /// The packet is, or covers, a source packet more than [`AHEAD_MAX`] ahead of the highest one
    /// seen.
    #[error("the packet lies too far ahead")]
    Ahead,
    /// The packet is, or covers, a source packet that the decoder no longer remembers.
    #[error("the packet is about forgotten ones")]
    Forgotten,
    /// The source packet is already known.
    #[error("the source packet is known already")]
    Duplicate,
    /// The repair packet covers only known source packets, or its equation follows from those held.
    #[error("the repair packet says nothing new")]
    Redundant,
    /// The decoder already holds `repairs_max` repair packets; the new one is dropped.
    #[error("too many repair packets are held")]
    Full,
}

/// Counts of discarded packets, and of repair packets dropped after they were held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discards {
    /// Number of packets discarded for [`Discard::Length`].
    pub length: u64,
    /// Number of packets discarded for [`Discard::Header`].
    pub header: u64,
    /// Number of packets discarded for [`Discard::Ahead`].
    pub ahead: u64,
    /// Number of packets discarded for [`Discard::Forgotten`].
    pub forgotten: u64,
    /// Number of packets discarded for [`Discard::Duplicate`].
    pub duplicate: u64,
    /// Number of packets discarded for [`Discard::Redundant`].
    pub redundant: u64,
    /// Number of packets discarded for [`Discard::Full`].
    pub full: u64,
    /// Repair packets that were held and then dropped unused: the decoder no longer remembers a
    /// packet that they cover, all packets that they cover were given up, to keep them would have
    /// taken too much work, or the caller [dropped](Decoder::drop_unwanted) them.
    pub expired: u64,
}

/// State of a decoder, as of the call of [`Decoder::report`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// Number below which every source packet is known or [given up](Decoder::forget_before); the
    /// sender passes it to [`Encoder::acknowledge`](super::Encoder::acknowledge).
    pub edge: u64,
    /// One more than the number of the highest source packet that arrived, was covered by a repair
    /// packet, or was given up.
    pub next: u64,
    /// Number of unknown source packets from `edge` to `next`.
    pub missing: usize,
    /// Number of independent equations held about the missing packets; at most `missing`.
    ///
    /// `missing - rank` more repair packets over all of them make all of them known.
    pub rank: usize,
    /// Total source packets given up before they were known.
    pub lost: u64,
}

impl Decoder {
    /// Returns a decoder of a stream that begins with packet 0, on the fastest kernel.
    ///
    /// # Errors
    /// [`Error::Window`] or [`Error::Repairs`].
    pub fn new(config: Config) -> Result<Decoder, Error> {
        Decoder::with_kernel(config, Kernel::best())
    }

    /// Returns a decoder as [`Decoder::new`] does, on the given kernel; all kernels compute the
    /// same bytes.
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

    /// Handles a source packet: stores it, and computes up to [`COMPUTED_MAX`] others that the
    /// equations now determine.
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

    /// Handles a repair packet.
    ///
    /// Packets before its coding window are [given up](Decoder::forget_before), even if it is then
    /// refused as redundant or for lack of room: the sender will not cover them again. The repair
    /// packet is held if it adds an equation. Packets that become known are computed, at most
    /// [`COMPUTED_MAX`] per call. A repair packet that covers no missing packet costs almost
    /// nothing.
    ///
    /// # Errors
    /// Any [`Discard`] except [`Discard::Duplicate`].
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
            // This call has already solved; packets determined by this one wait for the next call.
            self.behind = true;
        } else {
            self.solve();
        }
        Ok(())
    }

    /// Computes up to [`COMPUTED_MAX`] packets that earlier calls left uncomputed because of the
    /// limit per call. Returns false, having done nothing, if earlier calls left none.
    ///
    /// Call it to include them in [`Decoder::report`]. [`Decoder::poll`] and
    /// [`Decoder::poll_in_order`] do the same when they have nothing else to return, and so does
    /// the next packet handled.
    pub fn catch_up(&mut self) -> bool {
        let behind = self.behind;
        if behind {
            self.solve();
        }
        behind
    }

    /// Returns the next packet that has become known, in the order of becoming known; each once.
    ///
    /// `None` if nothing is left to return. The caller must copy the bytes before it handles the
    /// next packet. Packets given up before they are polled are not returned.
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

    /// Returns the packet with the next number, or `None` while that one is unknown; each once.
    ///
    /// Numbers are skipped only where packets were given up before they were polled. Independent of
    /// [`Decoder::poll`]: a caller that uses both gets every packet twice.
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

    /// Gives up all packets below `id`, for example because they have expired.
    ///
    /// They are no longer awaited, reported as missing, or returned; the unknown ones among them
    /// count as [`Report::lost`]. Known packets among them still help to decode others. All held
    /// repair packets are dropped, and counted as [`Discards::expired`], if none of them covers a
    /// newer packet, or if separating newer packets from these takes too much work. An `id` beyond
    /// all packets seen also gives up the packets up to it. No effect if all are given up already.
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

    /// Drops one held repair packet whose equation serves only to compute a packet given up, the
    /// oldest of these, and returns true; returns false if there is none. Call it when a repair
    /// packet is refused as [`Discard::Full`].
    ///
    /// Information about other packets is kept, unless the packet given up still arrives. The drop
    /// is counted as [`Discards::expired`]. O(repair packets held * (these + unknown packets)).
    pub fn drop_unwanted(&mut self) -> bool {
        let dropped = self.equations.drop_unwanted(self.floor);
        self.discards.expired += u64::from(dropped);
        dropped
    }

    /// Returns the decoder's state. O(repair packets held).
    pub fn report(&self) -> Report {
        Report {
            edge: self.edge,
            next: self.next,
            missing: self.missing,
            rank: self.equations.rank(self.floor),
            lost: self.lost,
        }
    }

    /// Returns the counts of discarded packets.
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

    /// Raises [`Report::next`] to `next` and forgets the packets more than `window_max` below it;
    /// no effect if it is not greater than now.
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

    /// Forgets all packets below `base`, which may lie ahead of all packets seen.
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

    /// Gives up the packets below `floor`, which is at most [`Report::next`].
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
            // Nobody polls: remove the forgotten packets, at least half of the list.
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

    /// Computes and stores up to [`COMPUTED_MAX`] of the packets that the equations now determine.
    ///
    /// The solved rows of the others stay for the next call: no packet that becomes known until
    /// then occurs in them.
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

/// Maximum number of packets by which one packet may raise [`Report::next`]: 2^20.
///
/// No outage that a stream survives reaches farther. A packet that claims more is refused, so that
/// it cannot make a decoder forget everything it holds. [`Decoder::forget_before`] may go farther.
pub const AHEAD_MAX: u64 = 1 << 20;

/// Maximum number of lost packets that a decoder computes in one pass over the payloads; handling a
/// packet takes one pass.
pub const COMPUTED_MAX: usize = ROWS_MAX;

#[cfg(test)]
impl Decoder {
    /// Returns the allocated size: bytes of stored packets, plus one for each element of a list.
    pub(super) fn memory_bytes(&self) -> usize {
        let Decoder { packets, repairs, ready, equations, work, .. } = self;
        packets.memory_bytes()
            + repairs.memory_bytes()
            + ready.capacity()
            + equations.memory_bytes()
            + work.memory_bytes()
    }
}
