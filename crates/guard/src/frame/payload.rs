use tautline_units::Instant;

use super::bytes::{Reader, Writer};
use super::error::Error;

/// Payload of a frame, which follows its header.
///
/// ```text
///  0  length   u16  bytes of the whole frame
///  2  counter  u16  one more with each frame, 0 after 65535
///  4  data id  u32  the kind of frame, and its version
///  8  CRC      u32  CRC-32/P4 over all other bytes
/// 12  source   u64  nanoseconds by the sender's clock
/// 20  payload
/// ```
/// All fields are big-endian; real numbers are IEEE 754.
pub trait Frame: Copy {
    /// Kind and version of the frame.
    const DATA_ID: u32;
    /// Length of the complete frame in bytes, with all optional numbers that this build knows.
    const BYTES: usize;
    /// Length without the optional numbers at the end of a machine's or a status's frame. Earlier
    /// builds send fewer of those numbers; later builds send more, which are skipped.
    const BYTES_LEAST: usize = Self::BYTES;
    /// An array of [`BYTES`](Self::BYTES) bytes.
    type Bytes: AsRef<[u8]> + AsMut<[u8]> + Copy;
    /// Zeroed array of [`BYTES`](Self::BYTES) bytes.
    const ZEROS: Self::Bytes;

    /// Returns the time of sending, by the sender's clock.
    fn source(&self) -> Instant;

    #[doc(hidden)]
    fn write(&self, writer: &mut Writer<'_>);

    #[doc(hidden)]
    fn read(source: Instant, reader: &mut Reader<'_>) -> Result<Self, Error>;
}

/// Size in bytes of each optional number at the end of a frame.
pub(super) const TRAILING_BYTES: usize = 4;
/// Offset of the payload in a frame, in bytes.
pub(super) const PAYLOAD_AT: usize = 20;
