//! Bitmap of known packets.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// One bit per packet, 1 if it is known, for ranges of up to `capacity` ids: ids that are equal
/// modulo the capacity share a bit.
#[derive(Clone, Debug)]
pub(super) struct Known {
    words: Vec<u64>,
}

impl Known {
    /// Returns a map of at least `count` packets, none of them known.
    pub(super) fn new(count: usize) -> Known {
        Known { words: vec![0; count.div_ceil(WORD as usize).next_power_of_two()] }
    }

    /// Returns the number of ids with a bit of their own: a power of two, at least 64.
    pub(super) fn capacity(&self) -> usize {
        self.words.len() * WORD as usize
    }

    /// Returns a packet's slot: its id modulo the capacity.
    pub(super) fn slot(&self, id: u64) -> usize {
        id as usize & (self.capacity() - 1)
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.words[self.index(id)] >> (id % WORD) & 1 == 1
    }

    pub(super) fn insert(&mut self, id: u64) {
        let index = self.index(id);
        self.words[index] |= 1 << (id % WORD);
    }

    /// Marks all of `ids` unknown.
    pub(super) fn clear(&mut self, ids: Range<u64>) {
        for (base, mask) in words(ids) {
            let index = self.index(base);
            self.words[index] &= !mask;
        }
    }

    /// Returns the number of unknown packets among `ids`.
    pub(super) fn count_unknown(&self, ids: Range<u64>) -> usize {
        words(ids).map(|(base, mask)| (!self.word(base) & mask).count_ones() as usize).sum()
    }

    /// Returns the unknown packets among `ids`, ascending.
    pub(super) fn unknown(&self, ids: Range<u64>) -> impl Iterator<Item = u64> {
        words(ids).flat_map(move |(base, mask)| Bits { base, bits: !self.word(base) & mask })
    }

    /// Returns the known packets among `ids`, 64 consecutive ids at a time: a base id, and a word
    /// whose bit i is 1 if packet base + i is known and among `ids`.
    pub(super) fn known_words(&self, ids: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
        words(ids).map(move |(base, mask)| (base, self.word(base) & mask))
    }

    /// Returns the 64 bits of the packets from `base` on; `base` is a multiple of 64.
    fn word(&self, base: u64) -> u64 {
        self.words[self.index(base)]
    }

    fn index(&self, id: u64) -> usize {
        (id / WORD) as usize & (self.words.len() - 1)
    }
}

/// The number of bits in a word.
const WORD: u64 = u64::BITS as u64;

/// Returns, for each 64-aligned word that `ids` touches, its base id and a mask of the ids within
/// it.
fn words(ids: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let first = ids.start / WORD;
    let end = if ids.is_empty() { first } else { (ids.end - 1) / WORD + 1 };
    (first..end).map(move |word| {
        let base = word * WORD;
        let from = ids.start.saturating_sub(base);
        let to = (ids.end - base).min(WORD);
        (base, !0 << from & !0 >> (WORD - to))
    })
}

/// An iterator over the ones in a word: yields `base` plus the position of each, ascending.
pub(super) struct Bits {
    pub(super) base: u64,
    pub(super) bits: u64,
}

impl Iterator for Bits {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.bits == 0 {
            return None;
        }
        let id = self.base + u64::from(self.bits.trailing_zeros());
        self.bits &= self.bits - 1;
        Some(id)
    }
}
