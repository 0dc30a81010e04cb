//! Packets of the streaming code, and the symbols that it computes with.

use super::datagram::{SEALED_HEADER_BYTES, TAG_BYTES};
use super::field::take;
use super::kind::{KIND_STREAM_REPAIR, KIND_STREAM_SOURCE};
use super::malformed::Malformed;
use crate::channel::ChannelNumber;

/// A source packet of the streaming code: a part of a unit, to the end of the datagram.
///
/// ```text
///  0               1               2               3
/// +-------+-------+---------------+---------------+---------------+
/// |   6   |L chan.| source number, low 24 bits                    |
/// +-------+-------+---------------+---------------+---------------+
/// | unit number, low 16 bits      | index         | deadline, ms ..
/// +---------------+---------------+---------------+---------------+
/// .. mod 65536    | payload ..
/// ```
///
/// L marks the last source packet of its unit. The channel is media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// Low 24 bits of the source packet's number in the stream.
    pub number_low: u32,
    /// Part of a unit that the packet carries; repair packets protect all of it.
    pub part: Part<'a>,
}

/// A part of a unit, as carried by a source packet or recovered by the code.
///
/// As a symbol, 1469 bytes long:
///
/// ```text
///  0                       2               4       5               7
/// +-----------------------+---------------+-------+---------------+------------------------
/// |L| bytes of payload     | unit, low 16  | index | deadline      | payload, zeros to the end
/// +-----------------------+---------------+-------+---------------+------------------------
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// True if the part is the last of its unit.
    pub last: bool,
    /// The low 16 bits of the unit's number within its channel.
    pub unit_low: u16,
    /// Index of the part in the unit, from 0.
    pub index: u8,
    /// Deadline of the unit: milliseconds on the sender's clock, modulo 65536.
    pub deadline_low: u16,
    /// Bytes of the unit, 1 to [`Part::PAYLOAD_MOST`].
    pub payload: &'a [u8],
}

/// A repair packet of the streaming code: the sum of a coding window, to the end of the datagram.
///
/// ```text
///  0               1               2               3
/// +-------+-------+---------------+---------------+---------------+
/// |   7   |channel| number of the first source packet, low 24 bits|
/// +-------+-------+---------------+---------------+---------------+
/// | count of source packets       | seed                          |
/// +---------------+---------------+---------------+---------------+
/// | sum, without the zeros at its end ..
/// ```
///
/// The channel is media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repair<'a> {
    /// Low 24 bits of the number of the window's first source packet.
    pub first_low: u32,
    /// Number of source packets in the window, at least 1.
    pub count: u16,
    /// Seed of the coefficients.
    pub seed: u16,
    /// Bytes of the sum, as many as the longest symbol in the window has without padding.
    pub sum: &'a [u8],
}

impl<'a> Source<'a> {
    /// Length of a source packet before its payload, in bytes.
    pub const HEADER_BYTES: usize = 9;

    /// Appends the source packet to `out`: header and payload.
    pub fn write(&self, out: &mut Vec<u8>) {
        let last = if self.part.last { LAST } else { 0 };
        out.push(KIND_STREAM_SOURCE << 4 | last | ChannelNumber::MEDIA.get());
        out.extend_from_slice(&self.number_low.to_be_bytes()[1..]);
        self.part.write_body(out);
    }

    pub(super) fn parse(mut bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [head, a, b, c] = take::<4>(&mut bytes)?;
        if head & 0x07 != ChannelNumber::MEDIA.get() {
            return Err(Malformed("unknown stream"));
        }
        let part = Part::parse_body(head & LAST != 0, bytes)?;
        Ok(Self { number_low: u32::from_be_bytes([0, a, b, c]), part })
    }
}

impl<'a> Part<'a> {
    /// Maximum length of a payload in bytes.
    pub const PAYLOAD_MOST: usize = SYMBOL_BYTES - SYMBOL_HEADER_BYTES;

    /// Returns the length of the part's symbol in bytes, without the zero padding.
    pub fn symbol_bytes(&self) -> usize {
        SYMBOL_HEADER_BYTES + self.payload.len()
    }

    /// Writes the part's symbol into `out`, replacing its content.
    ///
    /// # Panics
    /// If the payload is longer than [`Part::PAYLOAD_MOST`].
    pub fn write_symbol(&self, out: &mut Vec<u8>) {
        assert!(self.payload.len() <= Self::PAYLOAD_MOST, "a payload longer than a datagram");
        let last = if self.last { SYMBOL_LAST } else { 0 };
        out.clear();
        out.extend_from_slice(&(last | self.payload.len() as u16).to_be_bytes());
        self.write_body(out);
        out.resize(SYMBOL_BYTES, 0);
    }

    /// Reads a symbol recovered by the code.
    ///
    /// # Errors
    /// [`Malformed`] if the symbol is invalid: the sender is faulty, or a packet was forged.
    pub fn parse_symbol(mut symbol: &'a [u8]) -> Result<Self, Malformed> {
        let head = u16::from_be_bytes(take(&mut symbol)?);
        let length = usize::from(head & !SYMBOL_LAST);
        let body = symbol.get(..BODY_HEADER_BYTES + length).ok_or(Malformed("no symbol"))?;
        Self::parse_body(head & SYMBOL_LAST != 0, body)
    }

    fn write_body(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.unit_low.to_be_bytes());
        out.push(self.index);
        out.extend_from_slice(&self.deadline_low.to_be_bytes());
        out.extend_from_slice(self.payload);
    }

    fn parse_body(last: bool, mut bytes: &'a [u8]) -> Result<Self, Malformed> {
        let unit_low = u16::from_be_bytes(take(&mut bytes)?);
        let [index] = take(&mut bytes)?;
        let deadline_low = u16::from_be_bytes(take(&mut bytes)?);
        if bytes.is_empty() || bytes.len() > Self::PAYLOAD_MOST {
            return Err(Malformed("a payload of an invalid length"));
        }
        Ok(Self { last, unit_low, index, deadline_low, payload: bytes })
    }
}

impl<'a> Repair<'a> {
    /// Length of a repair packet before its sum, in bytes.
    pub const HEADER_BYTES: usize = 8;

    /// Appends the repair packet to `out`: header and sum.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(KIND_STREAM_REPAIR << 4 | ChannelNumber::MEDIA.get());
        out.extend_from_slice(&self.first_low.to_be_bytes()[1..]);
        out.extend_from_slice(&self.count.to_be_bytes());
        out.extend_from_slice(&self.seed.to_be_bytes());
        out.extend_from_slice(self.sum);
    }

    pub(super) fn parse(mut bytes: &'a [u8]) -> Result<Self, Malformed> {
        let [head, a, b, c] = take::<4>(&mut bytes)?;
        if head & 0x0f != ChannelNumber::MEDIA.get() {
            return Err(Malformed("unknown stream"));
        }
        let count = u16::from_be_bytes(take(&mut bytes)?);
        let seed = u16::from_be_bytes(take(&mut bytes)?);
        if count == 0 || !(SYMBOL_HEADER_BYTES + 1..=SYMBOL_BYTES).contains(&bytes.len()) {
            return Err(Malformed("a sum of no packets"));
        }
        Ok(Self { first_low: u32::from_be_bytes([0, a, b, c]), count, seed, sum: bytes })
    }
}

/// Bytes of a symbol: the room of a repair packet in the largest datagram.
pub const SYMBOL_BYTES: usize = 1_500 - REPAIR_AROUND_BYTES;
/// Bytes of a symbol of the streaming code that come before the source packet's payload.
pub const SYMBOL_HEADER_BYTES: usize = 2 + BODY_HEADER_BYTES;
/// Bytes around the payload in the datagram of a source packet.
pub const SOURCE_AROUND_BYTES: usize = SEALED_HEADER_BYTES + Source::HEADER_BYTES + TAG_BYTES;
/// Bytes around the sum in the datagram of a repair packet.
pub const REPAIR_AROUND_BYTES: usize = SEALED_HEADER_BYTES + Repair::HEADER_BYTES + TAG_BYTES;
/// Bytes by which a datagram must be longer than the longest payload, so that a repair packet over
/// it fits: those around the sum, and the header of a symbol.
pub const REPAIRED_AROUND_BYTES: usize = REPAIR_AROUND_BYTES + SYMBOL_HEADER_BYTES;
/// Number of bits of a source packet's number on the wire.
pub const SOURCE_NUMBER_BITS: u32 = 24;
/// Number of bits of a unit's number in a source packet.
pub const PART_UNIT_BITS: u32 = 16;
/// Maximum number of source packets in a coding window.
pub const WINDOW_MOST: usize = 512;

const _: () = assert!(SOURCE_AROUND_BYTES <= 32, "guaranteed by the wire format");
const _: () = assert!(SYMBOL_BYTES < SYMBOL_LAST as usize, "the length leaves a bit free");

/// Bytes of a part before its payload, on the wire and in its symbol: unit, index and deadline.
const BODY_HEADER_BYTES: usize = 5;
const LAST: u8 = 0x08;
const SYMBOL_LAST: u16 = 0x8000;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::{Packet, Packets};

    fn part() -> impl Strategy<Value = (bool, u16, u8, u16, Vec<u8>)> {
        let payload = prop::collection::vec(any::<u8>(), 1..=Part::PAYLOAD_MOST);
        (any::<bool>(), any::<u16>(), any::<u8>(), any::<u16>(), payload)
    }

    proptest! {
        #[test]
        fn a_source_packet_and_its_symbol_come_back(
            number_low in 0_u32..1 << 24,
            (last, unit_low, index, deadline_low, payload) in part(),
        ) {
            let part = Part { last, unit_low, index, deadline_low, payload: &payload };
            let source = Source { number_low, part };
            let (mut bytes, mut symbol) = (Vec::new(), vec![7; 9]);
            source.write(&mut bytes);
            prop_assert_eq!(bytes.len(), Source::HEADER_BYTES + payload.len());
            let packets: Vec<_> = Packets::of(&bytes).collect();
            prop_assert_eq!(packets, [Ok(Packet::Source(source))]);
            part.write_symbol(&mut symbol);
            prop_assert_eq!(symbol.len(), SYMBOL_BYTES);
            prop_assert_eq!(&symbol[2..part.symbol_bytes()], &bytes[4..]);
            prop_assert!(symbol[part.symbol_bytes()..].iter().all(|byte| *byte == 0));
            prop_assert_eq!(Part::parse_symbol(&symbol), Ok(part));
        }

        #[test]
        fn a_repair_packet_comes_back(
            first_low in 0_u32..1 << 24,
            count in 1_u16..,
            seed in any::<u16>(),
            sum in prop::collection::vec(any::<u8>(), SYMBOL_HEADER_BYTES + 1..=SYMBOL_BYTES),
        ) {
            let repair = Repair { first_low, count, seed, sum: &sum };
            let mut bytes = Vec::new();
            repair.write(&mut bytes);
            prop_assert_eq!(bytes.len(), Repair::HEADER_BYTES + sum.len());
            let packets: Vec<_> = Packets::of(&bytes).collect();
            prop_assert_eq!(packets, [Ok(Packet::Repair(repair))]);
        }

        #[test]
        fn any_bytes_are_a_packet_that_writes_them_or_malformed(
            repair in any::<bool>(),
            mut bytes in prop::collection::vec(any::<u8>(), 1..1_600),
        ) {
            let kind = if repair { KIND_STREAM_REPAIR } else { KIND_STREAM_SOURCE };
            bytes[0] = kind << 4 | bytes[0] & 0x0f;
            let mut back = Vec::new();
            match Packets::of(&bytes).next() {
                Some(Ok(Packet::Source(source))) => source.write(&mut back),
                Some(Ok(Packet::Repair(repair))) => repair.write(&mut back),
                Some(Err(_)) => back.clone_from(&bytes),
                other => prop_assert!(false, "{other:?}"),
            }
            prop_assert_eq!(back, bytes);
        }

        #[test]
        fn any_symbol_is_a_part_or_malformed(
            mut symbol in prop::collection::vec(any::<u8>(), 0..=SYMBOL_BYTES),
            length in 0_u16..2_000,
        ) {
            if let Some(head) = symbol.first_chunk_mut() {
                *head = length.to_be_bytes();
            }
            if let Ok(part) = Part::parse_symbol(&symbol) {
                prop_assert_eq!(part.payload.len(), usize::from(length));
                prop_assert!((1..=Part::PAYLOAD_MOST).contains(&part.payload.len()));
            }
        }
    }

    #[test]
    fn invalid_stream_packets_are_malformed() {
        let malformed = |bytes: &[u8]| matches!(Packets::of(bytes).next(), Some(Err(_)));
        // The command channel has no stream; a payload or sum must not be empty.
        assert!(malformed(&[0x60; 30]) && malformed(&[0x70; 30]));
        assert!(malformed(&[0x61; 9]) && !malformed(&[0x61; 10]));
        assert!(malformed(&[0x71; 15]) && !malformed(&[0x71; 16]));
        assert!(malformed(&[0x79; 30]) && !malformed(&[0x69; 30]));
        assert!(malformed(&[0x71, 0, 0, 0, 0, 0, 1, 1, 9, 9, 9, 9, 9, 9, 9, 9]));
        assert!(malformed(&[0x61; 9 + Part::PAYLOAD_MOST + 1]));
        assert!(malformed(&[0x71; 8 + SYMBOL_BYTES + 1]));
    }
}
