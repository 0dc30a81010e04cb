use tautline_fec::block::Code;

use crate::wire::Coded;

/// The packets of one unit received so far.
#[derive(Debug)]
pub(crate) struct Block {
    source_count: usize,
    symbol_bytes: usize,
    deadline_low: u16,
    /// Index and symbol of each packet, in order of arrival. With `source_count` of them, the unit
    /// can be recovered.
    packets: Vec<(u8, Vec<u8>)>,
    /// One bit per packet index: 1 if that packet was added.
    seen: [u64; 4],
}

/// The result of adding a packet to the packets of its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// The packet was added; the unit needs more.
    Incomplete,
    /// The packet was added, and the unit can be recovered.
    Complete,
    /// The packet was added before; nothing changed.
    Duplicate,
    /// The packet's header contradicts the others of its unit; nothing changed.
    Inconsistent,
}

impl Block {
    /// Creates an empty block with the parameters in the header of `packet`.
    pub(crate) fn of(packet: &Coded<'_>) -> Self {
        Self {
            source_count: usize::from(packet.source_count),
            symbol_bytes: packet.symbol.len(),
            deadline_low: packet.deadline_low,
            packets: Vec::with_capacity(usize::from(packet.source_count)),
            seen: [0; 4],
        }
    }

    /// Returns the number of bytes in the packets held.
    pub(crate) fn bytes(&self) -> usize {
        self.packets.len() * self.symbol_bytes
    }

    /// Adds a packet; calls `buffer` for storage if it keeps the bytes.
    pub(crate) fn add(&mut self, packet: &Coded<'_>, buffer: impl FnOnce() -> Vec<u8>) -> Added {
        let consistent = usize::from(packet.source_count) == self.source_count
            && packet.symbol.len() == self.symbol_bytes
            && packet.deadline_low == self.deadline_low;
        if !consistent {
            return Added::Inconsistent;
        }
        let (word, bit) = (usize::from(packet.index / 64), 1_u64 << (packet.index % 64));
        if self.seen[word] & bit != 0 {
            return Added::Duplicate;
        }
        self.seen[word] |= bit;
        let mut bytes = buffer();
        bytes.clear();
        bytes.extend_from_slice(packet.symbol);
        self.packets.push((packet.index, bytes));
        if self.packets.len() < self.source_count { Added::Incomplete } else { Added::Complete }
    }

    /// Returns whether one of the packets held is a repair packet.
    pub(crate) fn needs_repair(&self) -> bool {
        self.packets.iter().any(|(index, _)| usize::from(*index) >= self.source_count)
    }

    /// Returns the block's content, the concatenated symbols of its source packets, computed from
    /// repair packets where needed; `None` if there are too few packets.
    pub(crate) fn recover(&self) -> Option<Vec<u8>> {
        let mut content = vec![0; self.source_count * self.symbol_bytes];
        if self.packets.len() >= self.source_count && !self.needs_repair() {
            for (index, bytes) in &self.packets {
                let start = usize::from(*index) * self.symbol_bytes;
                content[start..start + self.symbol_bytes].copy_from_slice(bytes);
            }
            return Some(content);
        }
        let mut slots: Vec<Option<&mut [u8]>> =
            content.chunks_exact_mut(self.symbol_bytes).map(Some).collect();
        for (index, bytes) in &self.packets {
            if let Some(slot) = slots.get_mut(usize::from(*index)).and_then(Option::take) {
                slot.copy_from_slice(bytes);
            }
        }
        let mut missing: Vec<(usize, &mut [u8])> = slots
            .into_iter()
            .enumerate()
            .filter_map(|(index, slot)| slot.map(|slot| (index, slot)))
            .collect();
        if !missing.is_empty() {
            let received: Vec<(usize, &[u8])> = self
                .packets
                .iter()
                .map(|(index, bytes)| (usize::from(*index), bytes.as_slice()))
                .collect();
            let code = Code::new(self.source_count, PACKETS_MAX).ok()?;
            code.recover(&received, &mut missing).ok()?;
        }
        Some(content)
    }

    /// Returns the buffers of the packets for reuse.
    pub(crate) fn into_buffers(self) -> impl Iterator<Item = Vec<u8>> {
        self.packets.into_iter().map(|(_, bytes)| bytes)
    }
}

/// Number of packets of a block for which the decoder is created: its coefficients do not depend on
/// how many the sender made.
const PACKETS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::ChannelNumber;

    fn packet(index: u8, symbol: &[u8]) -> Coded<'_> {
        Coded {
            channel: ChannelNumber::MEDIA,
            unit_low: 0,
            index,
            source_count: 3,
            deadline_low: 9,
            symbol,
        }
    }

    #[test]
    fn any_three_of_five_recover_the_block() {
        let sources: [&[u8]; 3] = [b"abcd", b"efgh", b"ijkl"];
        let (mut p3, mut p4) = ([0; 4], [0; 4]);
        let code = Code::new(3, 5).unwrap();
        code.encode(&sources, &mut [&mut p3, &mut p4]).unwrap();
        let all = [sources[0], sources[1], sources[2], &p3, &p4];
        for a in 0..5 {
            for b in a + 1..5 {
                for c in b + 1..5 {
                    let mut block = Block::of(&packet(c as u8, all[c]));
                    for index in [c, a, a, b] {
                        block.add(&packet(index as u8, all[index]), Vec::new);
                    }
                    assert_eq!(block.recover().unwrap(), b"abcdefghijkl", "{a} {b} {c}");
                    assert_eq!(block.needs_repair(), c > 2);
                }
            }
        }
    }

    #[test]
    fn a_packet_that_contradicts_the_others_is_refused() {
        let mut block = Block::of(&packet(0, b"abcd"));
        assert_eq!(block.add(&packet(0, b"abcd"), Vec::new), Added::Incomplete);
        assert_eq!(block.add(&packet(0, b"abcd"), Vec::new), Added::Duplicate);
        assert_eq!(block.add(&packet(1, b"abc"), Vec::new), Added::Inconsistent);
        let other = Coded { source_count: 2, ..packet(1, b"abcd") };
        assert_eq!(block.add(&other, Vec::new), Added::Inconsistent);
        let other = Coded { deadline_low: 8, ..packet(1, b"abcd") };
        assert_eq!(block.add(&other, Vec::new), Added::Inconsistent);
        assert_eq!(block.add(&packet(200, b"abcd"), Vec::new), Added::Incomplete);
        assert_eq!(block.add(&packet(2, b"abcd"), Vec::new), Added::Complete);
    }
}
