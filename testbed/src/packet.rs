//! One packet: its number, when it was due, and zeros, whatever it stands for.

/// A packet as the application hands it over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// 0, 1, 2 ..; the largest number says that no more will come.
    pub(crate) number: u32,
    /// When the application had it, by the machine's monotonic clock.
    pub(crate) due_nanos: u64,
}

impl Packet {
    /// Bytes of every packet, the paper's.
    pub(crate) const BYTES: usize = 1328;
    /// Bytes that say something.
    pub(crate) const HEADER_BYTES: usize = 12;

    /// Returns the packet that says that no more will come.
    pub(crate) fn last() -> Self {
        Self { number: u32::MAX, due_nanos: 0 }
    }

    pub(crate) fn is_last(self) -> bool {
        self.number == u32::MAX
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.due_nanos.to_le_bytes());
        bytes
    }

    /// Reads a packet; `None` of what is none.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::BYTES {
            return None;
        }
        let (number, rest) = bytes.split_first_chunk()?;
        let due = rest.first_chunk()?;
        let (number, due_nanos) = (u32::from_le_bytes(*number), u64::from_le_bytes(*due));
        Some(Self { number, due_nanos })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let packet = Packet { number: 7, due_nanos: 1 << 40 };
        assert_eq!(Packet::parse(&packet.to_bytes()), Some(packet));
        assert!(Packet::last().is_last() && !packet.is_last());
        assert_eq!(Packet::parse(&[0; Packet::BYTES - 1]), None);
    }
}
