use super::datagram::LinkNumber;
use super::field::{put_length, take};
use super::kind::KIND_STANDING;
use super::malformed::Malformed;

/// The set of links on standby in their groups, as the initiator chose them. They carry media only
/// while no link outside standby is trusted.
///
/// ```text
///  0               1               3               4               6
/// +-------+-------+---------------+---------------+---------------+
/// |  10   |   0   | length        | turn          | links         |
/// +-------+-------+---------------+---------------+---------------+
/// ```
///
/// Bit n, from the least significant, belongs to link n. The turn increases by one, modulo 256,
/// with each change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Sequence number of the choice, modulo 256; one more with each change.
    pub turn: u8,
    /// One bit per link, the least significant for link 0: 1 if that is on standby.
    pub links: u16,
}

impl Standing {
    /// Length of a choice of standby links on the wire, in bytes.
    pub const BYTES: usize = 6;

    /// Returns whether link `number` is on standby.
    pub fn has(self, number: LinkNumber) -> bool {
        self.links & 1 << number.get() != 0
    }

    /// Returns whether this choice is newer than `other`, by their turns. Assumes that fewer than
    /// 128 changes lie between the two.
    pub fn is_newer_than(self, other: Self) -> bool {
        (1..128).contains(&self.turn.wrapping_sub(other.turn))
    }

    /// Appends the choice of standby links to `out` as a packet.
    pub fn write(self, out: &mut Vec<u8>) {
        out.push(KIND_STANDING << 4);
        put_length(out, Self::BYTES - 3);
        out.push(self.turn);
        out.extend_from_slice(&self.links.to_be_bytes());
    }

    /// Reads turn and links from the front of `body`, which begins after kind and length.
    pub(super) fn parse(body: &mut &[u8]) -> Result<Self, Malformed> {
        let [turn, high, low] = take(body)?;
        Ok(Self { turn, links: u16::from_be_bytes([high, low]) })
    }
}
