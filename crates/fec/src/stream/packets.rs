//! A fixed store of packets of one length.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

/// Alignment of each packet in bytes: the size of a cache line, and of the widest kernel's vector.
const LINE_BYTES: usize = 64;

/// A fixed number of packets of one length in one allocation, all zero bytes at first. Each begins
/// at the start of a cache line.
#[derive(Debug)]
pub(super) struct Packets {
    bytes: Vec<u8>,
    /// Number of unused bytes before the first packet, which align it.
    start: usize,
    /// Number of bytes from the start of one packet to the start of the next.
    stride: usize,
    symbol_bytes: usize,
}

impl Packets {
    pub(super) fn new(count: usize, symbol_bytes: usize) -> Packets {
        // An odd number of lines: with an even number, packets would compete for few cache sets.
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

    /// Returns the packets in the given slots, in order.
    pub(super) fn range(&self, slots: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let bytes = &self.bytes[self.start..];
        bytes[slots.start * self.stride..slots.end * self.stride]
            .chunks(self.stride)
            .map(|packet| &packet[..self.symbol_bytes])
    }

    /// Returns the packets of all slots in order, so that several can be written at the same time.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        let symbol_bytes = self.symbol_bytes;
        // Without this limit, the slack line would count as a packet if the buffer is aligned and a
        // packet fills one line.
        let packets_bytes = self.bytes.len() - LINE_BYTES;
        self.bytes[self.start..][..packets_bytes]
            .chunks_exact_mut(self.stride)
            .map(move |packet| &mut packet[..symbol_bytes])
    }

    /// Returns the allocated size in bytes.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }
}

impl Clone for Packets {
    /// Returns the same packets, aligned to cache lines again.
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
    fn a_store_has_the_requested_packet_count_at_any_alignment() {
        // Many allocation sizes, so that some are aligned and some are not.
        for count in 1..if cfg!(miri) { 20 } else { 200 } {
            let mut stores = [0, 1, 64, 65].map(|symbol_bytes| Packets::new(count, symbol_bytes));
            for store in &mut stores {
                assert_eq!(store.iter_mut().count(), count);
            }
        }
    }
}
