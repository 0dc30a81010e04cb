use super::datagram::LinkNumber;
use super::field::{put_length, take};
use super::kind::KIND_STANDING;
use super::malformed::Malformed;

/// Which links stand by: they live, and carry no media, for others of their group do.
///
/// ```text
///  0               1               3               4               6
/// +-------+-------+---------------+---------------+---------------+
/// |  10   |   0   | length        | turn          | links         |
/// +-------+-------+---------------+---------------+---------------+
/// ```
///
/// Bit n, from the least significant, is link n's. The turn is one more, modulo 256, with each change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Tells newer from older.
    pub turn: u8,
    /// A bit for each link.
    pub links: u16,
}

impl Standing {
    /// Its length on the wire.
    pub const BYTES: usize = 6;

    /// Returns whether link `number` stands by.
    pub fn has(self, number: LinkNumber) -> bool {
        self.links & 1 << number.get() != 0
    }

    /// Returns whether this was said after `other`: fewer than 128 changes lie between two that are on
    /// their way.
    pub fn is_newer_than(self, other: Self) -> bool {
        (1..128).contains(&self.turn.wrapping_sub(other.turn))
    }

    /// Appends the packet.
    pub fn write(self, out: &mut Vec<u8>) {
        out.push(KIND_STANDING << 4);
        put_length(out, Self::BYTES - 3);
        out.push(self.turn);
        out.extend_from_slice(&self.links.to_be_bytes());
    }

    /// Reads what stands behind the length.
    pub(super) fn parse(body: &mut &[u8]) -> Result<Self, Malformed> {
        let [turn, high, low] = take(body)?;
        Ok(Self { turn, links: u16::from_be_bytes([high, low]) })
    }
}
