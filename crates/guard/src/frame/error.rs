/// An error in the bytes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The length is wrong, or differs from the one in the header.
    #[error("{bytes} bytes, {said} by the header: the frame has {wanted}")]
    Length {
        /// Number of bytes received.
        bytes: usize,
        /// Length in the header; 0 if there are fewer than two bytes.
        said: u16,
        /// Length of a frame of this kind with all its optional numbers.
        wanted: usize,
    },
    /// The data id is that of another kind or version of frame.
    #[error("data id {got:#010x}, not {wanted:#010x}")]
    DataId {
        /// Data id in the header.
        got: u32,
        /// Expected data id.
        wanted: u32,
    },
    /// The bytes changed in transit.
    #[error("CRC {got:#010x}, not {wanted:#010x}")]
    Crc {
        /// CRC in the header.
        got: u32,
        /// CRC computed over the bytes.
        wanted: u32,
    },
    /// The frame is a repetition: E2E's state REPEATED.
    #[error("frame {counter} was repeated")]
    Repeated {
        /// Counter of the frame.
        counter: u16,
    },
    /// Too many frames are missing before this one, or it is older than the previous one: E2E's
    /// state WRONGSEQUENCE. The next frame is checked against this one.
    #[error("frame {counter} follows {last}: more than {LOST_MAX} are missing")]
    WrongSequence {
        /// Counter of the frame.
        counter: u16,
        /// Counter of the previous frame.
        last: u16,
    },
    /// A field of the payload holds an invalid value.
    #[error("byte {at}: not a valid value of this field")]
    Value {
        /// Offset of the field from the begin of the frame, in bytes.
        at: usize,
    },
}

/// Maximum number of frames missing before an accepted one, E2E's MaxDeltaCounter less one: after a
/// gap of more than a tenth of a second the sequence is a new one.
pub const LOST_MAX: u16 = 9;
