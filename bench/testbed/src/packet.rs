//! One packet: its number, its due time, and zeros, whatever its content.

use anyhow::{Result, anyhow};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// A packet as the application sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    /// Number in the flow, from 0; the maximum marks the end of the flow.
    pub(crate) number: u32,
    /// Due time in nanoseconds, on the machine's monotonic clock.
    pub(crate) due_nanos: u64,
}

impl Packet {
    /// Bytes of every packet, as in the paper.
    pub(crate) const BYTES: usize = 1328;
    /// Bytes of the number and the due time.
    pub(crate) const HEADER_BYTES: usize = 12;

    /// Returns the packet that marks the end of the flow.
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

    /// Returns whether the padding is all zero, as it was sent.
    pub(crate) fn is_whole(bytes: &[u8; Self::BYTES]) -> bool {
        bytes[Self::HEADER_BYTES..].iter().all(|byte| *byte == 0)
    }

    /// Returns the packet with everything behind its header sealed by the cipher of Tautline's
    /// datagrams.
    pub(crate) fn sealed(self) -> Result<[u8; Self::BYTES]> {
        let mut bytes = self.to_bytes();
        let (header, rest) = bytes.split_at_mut(Self::HEADER_BYTES);
        let (zeros, tag) = rest.split_at_mut(rest.len() - TAG_BYTES);
        let sealed = key()?.seal_in_place_separate_tag(nonce(header), Aad::from(&*header), zeros);
        tag.copy_from_slice(sealed.map_err(|_| anyhow!("not sealed"))?.as_ref());
        Ok(bytes)
    }

    /// Returns whether a sealed packet is authentic.
    pub(crate) fn opens(bytes: &[u8; Self::BYTES]) -> bool {
        let mut bytes = *bytes;
        let (header, rest) = bytes.split_at_mut(Self::HEADER_BYTES);
        let opened =
            key().map(|key| key.open_in_place(nonce(header), Aad::from(&*header), rest).is_ok());
        opened.unwrap_or(false)
    }

    /// Parses the number and the due time of a packet, sealed or not; `None` for another length
    /// than [`BYTES`](Self::BYTES).
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

/// Returns a fixed key: the measurement concerns bit errors, not secrecy.
fn key() -> Result<LessSafeKey> {
    let key = UnboundKey::new(&CHACHA20_POLY1305, &[7; 32]);
    Ok(LessSafeKey::new(key.map_err(|_| anyhow!("no key"))?))
}

fn nonce(header: &[u8]) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce.copy_from_slice(&header[..NONCE_LEN]);
    Nonce::assume_unique_for_key(nonce)
}

const TAG_BYTES: usize = 16;

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

    #[test]
    fn one_bit_spoils_what_is_sealed_and_marks_what_is_not() {
        let packet = Packet { number: 7, due_nanos: 9 };
        let (mut plain, mut sealed) = (packet.to_bytes(), packet.sealed().unwrap());
        assert!(Packet::is_whole(&plain) && Packet::opens(&sealed));
        assert_eq!(Packet::parse(&sealed), Some(packet));
        plain[700] ^= 4;
        sealed[700] ^= 4;
        assert!(!Packet::is_whole(&plain) && !Packet::opens(&sealed));
    }
}
