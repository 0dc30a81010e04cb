use super::field::take;
use super::malformed::Malformed;
use super::versions::Versions;

/// A link's number within its session: 0 to 15, chosen by the initiator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkNumber(u8);

impl LinkNumber {
    /// Maximum number of links in a session.
    pub const COUNT: usize = 16;

    /// Creates the link number `number`; `None` above 15.
    pub const fn new(number: u8) -> Option<Self> {
        if number < Self::COUNT as u8 { Some(Self(number)) } else { None }
    }

    /// Returns the link number as an integer, 0 to 15.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// One UDP datagram, with its ciphertext still sealed.
///
/// ```text
///  0               1               2               3
/// +-------+-------+---------------+---------------+
/// | type  | link  | receiver's session id         |
/// +-------+-------+---------------+---------------+---------------+
/// | packet number, low 32 bits (sealed only)                      |
/// +---------------------------------------------------------------+
/// | Noise message (types 1, 2) or ciphertext and 16-byte tag (3) ..
/// ```
///
/// Type 1 is the handshake's first message (session id 0), 2 its second, 3 sealed. Type 4 is a
/// refusal: the lowest and the highest version that its sender supports, one byte each, and a tag
/// of 16 bytes. Type 5 is a hole punch: 150 bytes in total, with a tag of 16 bytes at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Datagram<'a> {
    /// The initiator's handshake message.
    Init {
        /// Link that the message was sent on.
        link: LinkNumber,
        /// Noise message 1.
        message: &'a [u8],
    },
    /// The responder's handshake message.
    Response {
        /// Link that the answered message was sent on.
        link: LinkNumber,
        /// The initiator's session id.
        session: u16,
        /// Noise message 2.
        message: &'a [u8],
    },
    /// The responder's refusal: no version in common.
    Refusal {
        /// The initiator's session id.
        session: u16,
        /// Versions that the responder supports.
        versions: Versions,
        /// Tag that only an end with the lease can compute.
        tag: &'a [u8; REFUSAL_TAG_BYTES],
    },
    /// The responder's hole punch: it opens the responder's own NAT and reveals its address.
    HolePunch {
        /// Index of the responder's socket.
        end: u8,
        /// Bytes that the tag authenticates.
        signed: &'a [u8],
        /// Tag that only an end with the lease can compute.
        tag: &'a [u8; HOLE_PUNCH_TAG_BYTES],
    },
    /// Packets under the session's key.
    Sealed {
        /// Link that the datagram was sent on.
        link: LinkNumber,
        /// The receiver's session id.
        session: u16,
        /// The low 32 bits of the packet number.
        number_low: u32,
        /// Ciphertext and tag.
        ciphertext: &'a [u8],
    },
}

impl<'a> Datagram<'a> {
    /// Reads the header of `bytes`.
    ///
    /// # Errors
    /// [`Malformed`] for an unknown type, fewer bytes than the type needs, an init or a hole punch
    /// with a session id, or an invalid range of versions.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let (&[head, id_high, id_low], rest) =
            bytes.split_first_chunk::<3>().ok_or(Malformed("truncated datagram"))?;
        let link = LinkNumber(head & 0x0f);
        let session = u16::from_be_bytes([id_high, id_low]);
        match head >> 4 {
            TYPE_INIT if session == 0 => Ok(Self::Init { link, message: rest }),
            TYPE_RESPONSE => Ok(Self::Response { link, session, message: rest }),
            TYPE_SEALED => {
                let (number, ciphertext) =
                    rest.split_first_chunk::<4>().ok_or(Malformed("truncated datagram"))?;
                if ciphertext.len() <= TAG_BYTES {
                    return Err(Malformed("truncated datagram"));
                }
                let number_low = u32::from_be_bytes(*number);
                Ok(Self::Sealed { link, session, number_low, ciphertext })
            }
            TYPE_REFUSAL => {
                let mut rest = rest;
                let [lowest, highest] = take(&mut rest)?;
                let versions = Versions::new(lowest, highest);
                let versions = versions.ok_or(Malformed("an invalid range of versions"))?;
                let tag = rest.first_chunk().ok_or(Malformed("truncated datagram"))?;
                Ok(Self::Refusal { session, versions, tag })
            }
            TYPE_HOLE_PUNCH if session == 0 && bytes.len() == HOLE_PUNCH_BYTES => {
                let (signed, tag) =
                    bytes.split_last_chunk().ok_or(Malformed("truncated datagram"))?;
                Ok(Self::HolePunch { end: link.0, signed, tag })
            }
            0..=15 => Err(Malformed("unknown datagram type")),
            16.. => unreachable!("a nibble is at most 15"),
        }
    }
}

/// Appends the header of a handshake's first datagram.
pub fn write_init_header(out: &mut Vec<u8>, link: LinkNumber) {
    out.extend_from_slice(&[TYPE_INIT << 4 | link.0, 0, 0]);
}

/// Appends the header of a handshake's second datagram; `session` is the initiator's id.
pub fn write_response_header(out: &mut Vec<u8>, link: LinkNumber, session: u16) {
    let [high, low] = session.to_be_bytes();
    out.extend_from_slice(&[TYPE_RESPONSE << 4 | link.0, high, low]);
}

/// Appends a refusal; `session` is the initiator's id.
pub fn write_refusal(
    out: &mut Vec<u8>,
    link: LinkNumber,
    session: u16,
    versions: Versions,
    tag: &[u8; REFUSAL_TAG_BYTES],
) {
    let [high, low] = session.to_be_bytes();
    out.extend_from_slice(&[TYPE_REFUSAL << 4 | link.0, high, low]);
    out.extend_from_slice(&[versions.lowest, versions.highest]);
    out.extend_from_slice(tag);
}

/// Appends a hole punch without its tag. `end` is the index of the responder's socket, 0 to 15, and
/// `number` makes each hole punch different.
pub fn write_hole_punch(out: &mut Vec<u8>, end: u8, number: u64) {
    out.extend_from_slice(&[TYPE_HOLE_PUNCH << 4 | (end & 0x0f), 0, 0]);
    out.extend_from_slice(&number.to_be_bytes());
    out.resize(HOLE_PUNCH_BYTES - HOLE_PUNCH_TAG_BYTES, 0);
}

/// Appends the header of a sealed datagram; `session` is the receiver's id, and `number` the packet
/// number, of which the low 32 bits are written.
pub fn write_sealed_header(out: &mut Vec<u8>, link: LinkNumber, session: u16, number: u64) {
    let [high, low] = session.to_be_bytes();
    out.extend_from_slice(&[TYPE_SEALED << 4 | link.0, high, low]);
    out.extend_from_slice(&(number as u32).to_be_bytes());
}

/// Bytes before a sealed datagram's ciphertext.
pub const SEALED_HEADER_BYTES: usize = 7;
/// Bytes of a refusal's tag.
pub const REFUSAL_TAG_BYTES: usize = 16;
/// Bytes of a hole punch: as many as the init that it may trigger.
pub const HOLE_PUNCH_BYTES: usize = 150;
/// Bytes of a hole punch's tag.
pub const HOLE_PUNCH_TAG_BYTES: usize = 16;
/// Bytes of the AEAD's tag.
pub const TAG_BYTES: usize = 16;

const TYPE_INIT: u8 = 1;
const TYPE_RESPONSE: u8 = 2;
const TYPE_SEALED: u8 = 3;
const TYPE_REFUSAL: u8 = 4;
const TYPE_HOLE_PUNCH: u8 = 5;
