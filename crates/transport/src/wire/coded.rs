use super::{KIND_CODED, Malformed, take};

/// How a unit travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A copy on every live link at once; the newest wins at the receiver.
    Control,
    /// Protected by a code across the links, paced at their granted rates.
    Media,
}

impl Class {
    /// Every class, in order of its number on the wire.
    pub const ALL: [Self; 2] = [Self::Control, Self::Media];

    /// Its number on the wire.
    pub const fn number(self) -> u8 {
        match self {
            Self::Control => 0,
            Self::Media => 1,
        }
    }

    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.number() == number)
    }
}

/// A source or repair packet: one symbol of a unit's block, to the end of the datagram.
///
/// ```text
///  0               1               2               3
/// +-------+-------+---------------+---------------+---------------+
/// |   1   | class | unit number, low 24 bits                      |
/// +-------+-------+---------------+---------------+---------------+
/// | index         | k             | deadline, ms mod 65536        |
/// +---------------+---------------+---------------+---------------+
/// | symbol ..
/// ```
///
/// `index < k` is a source packet, any other a repair packet. The deadline is on the sender's
/// clock, rounded up to a millisecond. All symbols of a block have the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coded<'a> {
    /// How the unit travels.
    pub class: Class,
    /// The low 24 bits of the unit's number within its class.
    pub unit_low: u32,
    /// Which packet of the block.
    pub index: u8,
    /// Source packets of the block, at least 1.
    pub source_count: u8,
    /// The deadline: the sender's clock in milliseconds, modulo 65536.
    pub deadline_low: u16,
    /// The symbol.
    pub symbol: &'a [u8],
}

impl<'a> Coded<'a> {
    /// Bytes in front of the symbol.
    pub const HEADER_BYTES: usize = 8;

    /// Appends the header alone; the symbol follows it.
    pub fn write_header(&self, out: &mut Vec<u8>) {
        out.push(KIND_CODED << 4 | self.class.number());
        out.extend_from_slice(&self.unit_low.to_be_bytes()[1..]);
        out.extend_from_slice(&[self.index, self.source_count]);
        out.extend_from_slice(&self.deadline_low.to_be_bytes());
    }

    pub(super) fn parse(mut bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [head, a, b, c, index, source_count] = take::<6>(&mut bytes)?;
        let deadline_low = u16::from_be_bytes(take(&mut bytes)?);
        let class = Class::from_number(head & 0x0f).ok_or(Malformed("unknown class"))?;
        if source_count == 0 || bytes.is_empty() {
            return Err(Malformed("empty block"));
        }
        let unit_low = u32::from_be_bytes([0, a, b, c]);
        Ok(Self { class, unit_low, index, source_count, deadline_low, symbol: bytes })
    }
}

/// Bits of a unit's number on the wire.
pub const UNIT_NUMBER_BITS: u32 = 24;
