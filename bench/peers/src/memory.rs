//! Packets laid out as in a receiver's ring: one slot each, aligned to cache lines.

/// Bytes of a cache line and of the widest vector.
const LINE_BYTES: usize = 64;
/// Bytes of a page: the offset in a page determines which packets conflict in the caches.
const PAGE_BYTES: usize = 4096;

/// Memory of one contender; [`Packets`] divides it.
pub(crate) struct Memory(Vec<u8>);

impl Memory {
    pub(crate) fn new(packet_count: usize, packet_bytes: usize, shift: usize) -> Memory {
        Memory(vec![0; packet_count * slot_bytes(packet_bytes, shift) + PAGE_BYTES])
    }

    /// Returns an allocator of packets of `packet_bytes`, each `shift` bytes after the start of a
    /// cache line.
    pub(crate) fn packets(&mut self, packet_bytes: usize, shift: usize) -> Packets<'_> {
        let start = self.0.as_ptr().align_offset(PAGE_BYTES);
        let slots = self.0[start..].chunks_exact_mut(slot_bytes(packet_bytes, shift));
        Packets { slots, packet_bytes, shift }
    }
}

/// An allocator of zeroed packets from a [`Memory`].
pub(crate) struct Packets<'a> {
    slots: std::slice::ChunksExactMut<'a, u8>,
    packet_bytes: usize,
    shift: usize,
}

impl<'a> Packets<'a> {
    /// Takes the next `count` packets. Panics if the memory has fewer left.
    pub(crate) fn take(&mut self, count: usize) -> Vec<&'a mut [u8]> {
        let range = self.shift..self.shift + self.packet_bytes;
        let packets = self.slots.by_ref().take(count).map(|slot| &mut slot[range.clone()]);
        let packets: Vec<_> = packets.collect();
        assert_eq!(packets.len(), count, "the memory was made for fewer packets");
        packets
    }
}

fn slot_bytes(packet_bytes: usize, shift: usize) -> usize {
    (packet_bytes + shift).next_multiple_of(LINE_BYTES)
}

/// Converts mutable to shared references.
pub(crate) fn frozen(packets: Vec<&mut [u8]>) -> Vec<&[u8]> {
    packets.into_iter().map(|packet| &*packet).collect()
}
