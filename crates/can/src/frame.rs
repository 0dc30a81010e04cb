use std::fmt;

use thiserror::Error;

/// A data frame of CAN or CAN FD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    id: Id,
    kind: Kind,
    length: u8,
    bytes: [u8; Self::BYTES_MAX],
}

/// An identifier of a CAN frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Id {
    /// 11 bits.
    Standard(u16),
    /// 29 bits.
    Extended(u32),
}

/// A format of frames.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// CAN 2.0, up to 8 bytes.
    Classic,
    /// CAN FD, up to 64 bytes.
    Fd {
        /// `true` if the data is sent at the higher bitrate of the bus.
        bit_rate_switch: bool,
    },
}

/// A reason why bytes are no data frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The length is not 16 or 72 bytes, as SocketCAN's frames have.
    #[error("{0} bytes, not 16 or 72")]
    Length(usize),
    /// The frame claims more data than its format has.
    #[error("{0} bytes of data")]
    Data(u8),
    /// The identifier has more bits than its format.
    #[error("identifier {0:#x}")]
    Id(u32),
    /// The frame requests data or reports an error of the bus.
    #[error("a frame without data")]
    NoData,
}

/// A frame in SocketCAN's layout: 16 bytes, or 72 for CAN FD.
///
/// | byte | field |
/// |---|---|
/// | 0 | identifier, little-endian; bit 31 marks 29 bits, bit 30 a request, bit 29 an error |
/// | 4 | bytes of data |
/// | 5 | of CAN FD: bit 0 bitrate switch, bit 2 CAN FD |
/// | 6 | 0 |
/// | 8 | data: 8 or 64 bytes |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SocketCan {
    bytes: [u8; Self::BYTES_MAX],
    length: usize,
}

impl Frame {
    /// Maximum length of a frame's data in bytes.
    pub const BYTES_MAX: usize = 64;

    /// Creates a frame of this data; `None` if the format does not have so much, or the identifier
    /// has too many bits. A CAN FD frame is padded with zeros to the next length that exists.
    pub fn new(id: Id, kind: Kind, data: &[u8]) -> Option<Self> {
        let length = match kind {
            Kind::Classic => Some(data.len()).filter(|length| *length <= CLASSIC_BYTES_MAX),
            Kind::Fd { .. } => FD_LENGTHS.into_iter().find(|length| *length >= data.len()),
        }?;
        let mut bytes = [0; Self::BYTES_MAX];
        bytes[..data.len()].copy_from_slice(data);
        Some(Self { id: id.checked()?, kind, length: u8::try_from(length).ok()?, bytes })
    }

    /// Returns the identifier of the frame.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the format of the frame.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the data of the frame.
    pub fn data(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Reads a frame in [`SocketCan`]'s layout.
    ///
    /// # Errors
    /// The reason why it is no data frame.
    pub fn from_socketcan(bytes: &[u8]) -> Result<Self, Malformed> {
        let is_fd = match bytes.len() {
            SocketCan::CLASSIC_BYTES => false,
            SocketCan::BYTES_MAX => true,
            length => return Err(Malformed::Length(length)),
        };
        let (head, data) = bytes.split_at(HEAD_BYTES);
        let word = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        if word & (REQUEST | ERROR) != 0 {
            return Err(Malformed::NoData);
        }
        let id = match word & EXTENDED {
            0 => u16::try_from(word).ok().map(Id::Standard),
            _ => Some(Id::Extended(word & !EXTENDED)),
        };
        let id = id.and_then(Id::checked).ok_or(Malformed::Id(word))?;
        let kind = match is_fd {
            true => Kind::Fd { bit_rate_switch: head[5] & BIT_RATE_SWITCH != 0 },
            false => Kind::Classic,
        };
        let data = data.get(..usize::from(head[4])).ok_or(Malformed::Data(head[4]))?;
        Self::new(id, kind, data).ok_or(Malformed::Data(head[4]))
    }

    /// Returns the frame in SocketCAN's layout.
    pub fn to_socketcan(&self) -> SocketCan {
        let mut bytes = [0; SocketCan::BYTES_MAX];
        bytes[..4].copy_from_slice(&self.id.word().to_le_bytes());
        bytes[4] = self.length;
        let length = match self.kind {
            Kind::Classic => SocketCan::CLASSIC_BYTES,
            Kind::Fd { bit_rate_switch } => {
                bytes[5] = FD | if bit_rate_switch { BIT_RATE_SWITCH } else { 0 };
                SocketCan::BYTES_MAX
            }
        };
        bytes[HEAD_BYTES..].copy_from_slice(&self.bytes);
        SocketCan { bytes, length }
    }
}

impl Id {
    /// Returns the identifier as a number, without its format.
    pub fn number(self) -> u32 {
        match self {
            Self::Standard(id) => id.into(),
            Self::Extended(id) => id,
        }
    }

    /// Returns the identifier unchanged; `None` if it has more bits than its format.
    pub(crate) fn checked(self) -> Option<Self> {
        let bits = match self {
            Self::Standard(_) => 11,
            Self::Extended(_) => 29,
        };
        (self.number() >> bits == 0).then_some(self)
    }

    fn word(self) -> u32 {
        match self {
            Self::Standard(id) => id.into(),
            Self::Extended(id) => id | EXTENDED,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard(id) => write!(f, "{id:03X}"),
            Self::Extended(id) => write!(f, "{id:08X}"),
        }
    }
}

impl SocketCan {
    /// Length in bytes of a classic frame in SocketCAN's layout.
    pub const CLASSIC_BYTES: usize = HEAD_BYTES + CLASSIC_BYTES_MAX;
    /// Length in bytes of a CAN FD frame in SocketCAN's layout.
    pub const BYTES_MAX: usize = HEAD_BYTES + Frame::BYTES_MAX;
}

impl AsRef<[u8]> for SocketCan {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Lengths in bytes that the data of a CAN FD frame may have.
const FD_LENGTHS: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64];
const CLASSIC_BYTES_MAX: usize = 8;
const HEAD_BYTES: usize = 8;
/// Flag in an identifier's word: 29 bits, not 11 (`linux/can.h`).
const EXTENDED: u32 = 1 << 31;
/// Flag in an identifier's word: a request for data.
const REQUEST: u32 = 1 << 30;
/// Flag in an identifier's word: a report of an error on the bus.
const ERROR: u32 = 1 << 29;
/// Flag of a CAN FD frame: its data is sent at the higher bitrate (`linux/can.h`).
const BIT_RATE_SWITCH: u8 = 1;
/// Flag that marks a frame as CAN FD.
const FD: u8 = 4;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_frame_has_the_layout_of_linux() {
        let frame = Frame::new(Id::Standard(0x2E4), Kind::Classic, &[0xBE, 0, 0, 0, 0xA9]).unwrap();
        let bytes = [0xE4, 2, 0, 0, 5, 0, 0, 0, 0xBE, 0, 0, 0, 0xA9, 0, 0, 0];
        assert_eq!(frame.to_socketcan().as_ref(), bytes);
        let fd = Kind::Fd { bit_rate_switch: true };
        let frame = Frame::new(Id::Extended(0x18DA_F110), fd, &[7; 9]).unwrap();
        assert_eq!(frame.data().len(), 12, "the next length that exists");
        let bytes = frame.to_socketcan();
        assert_eq!(bytes.as_ref()[..9], [0x10, 0xF1, 0xDA, 0x98, 12, 5, 0, 0, 7]);
        assert_eq!(bytes.as_ref().len(), 72);
    }

    #[test]
    fn what_no_bus_carries_is_refused_by_name() {
        let refused = |bytes: &[u8]| Frame::from_socketcan(bytes).unwrap_err();
        assert_eq!(refused(&[0; 15]), Malformed::Length(15));
        let mut bytes = [0; 16];
        bytes[4] = 9;
        assert_eq!(refused(&bytes), Malformed::Data(9));
        let word = |word: u32| [&word.to_le_bytes()[..], &[0; 12]].concat();
        assert_eq!(refused(&word(0x800)), Malformed::Id(0x800));
        assert_eq!(refused(&word(EXTENDED | 1 << 29)), Malformed::NoData);
        assert_eq!(refused(&word(REQUEST | 1)), Malformed::NoData);
        assert_eq!(Frame::new(Id::Standard(1), Kind::Classic, &[0; 9]), None);
        assert_eq!(Frame::new(Id::Extended(1 << 29), Kind::Classic, &[]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_refused(
            length in prop_oneof![Just(16), Just(72), 0_usize..100],
            bytes in proptest::collection::vec(any::<u8>(), 100),
            is_short: bool,
        ) {
            let mut bytes = bytes[..length].to_vec();
            if is_short && length > 4 {
                (bytes[1], bytes[2], bytes[3], bytes[4]) = (bytes[1] % 8, 0, 0, bytes[4] % 9);
            }
            if let Ok(frame) = Frame::from_socketcan(&bytes) {
                let again = Frame::from_socketcan(frame.to_socketcan().as_ref());
                prop_assert_eq!(again, Ok(frame));
                prop_assert_eq!(Frame::new(frame.id(), frame.kind(), frame.data()), Some(frame));
            }
        }
    }
}
