use super::field::take;
use super::kind::KIND_CODED;
use super::malformed::Malformed;
use crate::channel::ChannelNumber;

/// A source or repair packet: one symbol of a unit's block, to the end of the datagram.
///
/// ```text
///  0               1               2               3
/// +-------+-------+---------------+---------------+---------------+
/// |   1   |channel| unit number, low 24 bits                      |
/// +-------+-------+---------------+---------------+---------------+
/// | index         | k             | deadline, ms mod 65536        |
/// +---------------+---------------+---------------+---------------+
/// | symbol ..
/// ```
///
/// A channel number from 15 on follows the first byte in a byte of its own; the nibble is then 15.
///
/// `index < k` is a source packet, any other a repair packet. The deadline is on the sender's
/// clock, rounded up to a millisecond. All symbols of a block have the same length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coded<'a> {
    /// Channel of the unit.
    pub channel: ChannelNumber,
    /// The low 24 bits of the unit's number within its channel.
    pub unit_low: u32,
    /// Index of the packet in the block.
    pub index: u8,
    /// Number of source packets of the block (k), at least 1.
    pub source_count: u8,
    /// Deadline of the unit: milliseconds on the sender's clock, modulo 65536.
    pub deadline_low: u16,
    /// Bytes of the packet's symbol, at least 1.
    pub symbol: &'a [u8],
}

impl<'a> Coded<'a> {
    /// Bytes before the symbol, on a channel whose number fits the nibble.
    pub const HEADER_BYTES: usize = 8;

    /// Returns the number of bytes before the symbol in a packet of `channel`.
    pub const fn header_bytes(channel: ChannelNumber) -> usize {
        Self::HEADER_BYTES + (channel.get() >= CHANNEL_BESIDE) as usize
    }

    /// Appends the header alone; the symbol follows it.
    pub fn write_header(&self, out: &mut Vec<u8>) {
        out.push(KIND_CODED << 4 | self.channel.get().min(CHANNEL_BESIDE));
        if self.channel.get() >= CHANNEL_BESIDE {
            out.push(self.channel.get());
        }
        out.extend_from_slice(&self.unit_low.to_be_bytes()[1..]);
        out.extend_from_slice(&[self.index, self.source_count]);
        out.extend_from_slice(&self.deadline_low.to_be_bytes());
    }

    pub(super) fn parse(mut bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [head] = take(&mut bytes)?;
        let channel = match head & 0x0f {
            CHANNEL_BESIDE => {
                let [channel] = take(&mut bytes)?;
                if channel < CHANNEL_BESIDE {
                    return Err(Malformed("a byte for a channel that fits into a nibble"));
                }
                channel
            }
            channel => channel,
        };
        let [a, b, c, index, source_count] = take::<5>(&mut bytes)?;
        let deadline_low = u16::from_be_bytes(take(&mut bytes)?);
        if source_count == 0 || bytes.is_empty() {
            return Err(Malformed("empty block"));
        }
        let unit_low = u32::from_be_bytes([0, a, b, c]);
        let channel = ChannelNumber::new(channel);
        Ok(Self { channel, unit_low, index, source_count, deadline_low, symbol: bytes })
    }
}

/// Nibble that indicates a channel number in a byte of its own.
const CHANNEL_BESIDE: u8 = 15;
/// Number of bits of a unit's number on the wire.
pub const UNIT_NUMBER_BITS: u32 = 24;
