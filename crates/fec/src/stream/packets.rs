//! A fixed store of packets of one length.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// The alignment of each packet: one cache line, one vector of the widest kernel.
const LINE_BYTES: usize = 64;

/// A fixed number of packets, allocated once and zeroed; each begins at a cache line.
#[derive(Debug)]
pub(super) struct Packets {
    bytes: Vec<u8>,
    /// Bytes before the first packet.
    start: usize,
    /// Bytes from one packet to the next.
    stride: usize,
    symbol_bytes: usize,
}

impl Packets {
    pub(super) fn new(count: usize, symbol_bytes: usize) -> Packets {
        // An odd number of lines: with an even one, packets would compete for few cache sets.
        let stride = (symbol_bytes.div_ceil(LINE_BYTES) | 1) * LINE_BYTES;
        let bytes = vec![0; count * stride + LINE_BYTES];
        let start = bytes.as_ptr().align_offset(LINE_BYTES);
        let start = if start < LINE_BYTES { start } else { 0 };
        Packets { bytes, start, stride, symbol_bytes }
    }

    pub(super) fn get(&self, slot: usize) -> &[u8] {
        &self.bytes[self.start + slot * self.stride..][..self.symbol_bytes]
    }

    pub(super) fn get_mut(&mut self, slot: usize) -> &mut [u8] {
        &mut self.bytes[self.start + slot * self.stride..][..self.symbol_bytes]
    }

    /// Returns some packets that lie together.
    pub(super) fn range(&self, slots: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let bytes = &self.bytes[self.start..];
        bytes[slots.start * self.stride..slots.end * self.stride]
            .chunks(self.stride)
            .map(|packet| &packet[..self.symbol_bytes])
    }

    /// Returns all packets, to be written to at once.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let symbol_bytes = self.symbol_bytes;
        // The line of slack would be one packet more, were the buffer aligned and a packet a line.
        let packets_bytes = self.bytes.len() - LINE_BYTES;
        self.bytes[self.start..][..packets_bytes]
            .chunks_exact_mut(self.stride)
            .map(move |packet| &mut packet[..symbol_bytes])
    }

    /// Returns the size of what was allocated.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Clone for Packets {
    /// Returns the same packets, at cache lines of their own.
    fn clone(&self) -> Packets {
        let count = (self.bytes.len() - LINE_BYTES) / self.stride;
        let mut clone = Packets::new(count, self.symbol_bytes);
        for slot in 0..count {
            clone.get_mut(slot).copy_from_slice(self.get(slot));
        }
        clone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_has_as_many_packets_as_were_asked_for_wherever_it_lies() {
        // Allocations of many sizes, to meet some that are aligned and some that are not.
        for count in 1..if cfg!(miri) { 20 } else { 200 } {
            let mut stores = [0, 1, 64, 65].map(|symbol_bytes| Packets::new(count, symbol_bytes));
            for store in &mut stores {
                assert_eq!(store.iter_mut().count(), count);
            }
        }
    }
}
