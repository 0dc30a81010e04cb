use flatbuffers::InvalidFlatbuffer;
use tautline_guard::description::Flaw;
use tautline_units::ByteCount;
use thiserror::Error;

/// A reason why bytes are not a message.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The message is longer than its kind allows.
    #[error("{length} is longer than the {max} allowed for a {kind}")]
    Oversized {
        /// Kind of the message.
        kind: &'static str,
        /// Length of the refused message.
        length: ByteCount,
        /// Maximum length of a message of this kind.
        max: ByteCount,
    },
    /// The bytes do not carry the file identifier of this kind of message.
    #[error("not a {kind}: the file identifier is missing or different")]
    WrongKind {
        /// Kind of the message.
        kind: &'static str,
    },
    /// The verifier rejects the bytes.
    #[error("malformed {kind}: {cause}")]
    Malformed {
        /// Kind of the message.
        kind: &'static str,
        /// The verifier's error.
        cause: InvalidFlatbuffer,
    },
    /// A number is not finite or outside its range.
    #[error("{field} is {value}, must be within {min} to {max}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// Value in the message.
        value: f64,
        /// Minimum of the field.
        min: f64,
        /// Maximum of the field.
        max: f64,
    },
    /// A string (counted in bytes) or a list (counted in items) is too long.
    #[error("{field} has a length of {length}, more than {max}")]
    TooLong {
        /// Name of the field.
        field: &'static str,
        /// Length in the message, in bytes or items.
        length: usize,
        /// Maximum of the field, in bytes or items.
        max: usize,
    },
    /// An enum field has a number without a variant.
    #[error("{field} is {value}, which has no meaning")]
    Unknown {
        /// Name of the field.
        field: &'static str,
        /// Number in the message.
        value: u8,
    },
    /// A machine cannot declare this item.
    #[error("{field}: {flaw}")]
    Flawed {
        /// Name of the list.
        field: &'static str,
        /// Reason why no machine can declare it.
        flaw: Flaw,
    },
    /// A text has a control character, or the items of a list are not in order.
    #[error("{field} has a control character or is not in order")]
    Disordered {
        /// Name of the field.
        field: &'static str,
    },
    /// A required field is missing.
    #[error("{field} is missing")]
    Missing {
        /// Name of the field.
        field: &'static str,
    },
    /// The bytes of a field are no valid frame of the guard.
    #[error("{field}: {cause}")]
    Frame {
        /// Name of the field.
        field: &'static str,
        /// Reason why the guard's decoder refuses the bytes.
        cause: tautline_guard::frame::Error,
    },
    /// The length of a point cloud's data is not a multiple of the record length.
    #[error("{length} of data are not a multiple of the record length {stride}")]
    Ragged {
        /// Length of the point cloud's data, no multiple of `stride`.
        length: ByteCount,
        /// Length of one point's record.
        stride: ByteCount,
    },
    /// A field of a point lies outside its record.
    #[error("a field of {length} at {offset} does not fit into a record of {stride}")]
    OutsideRecord {
        /// Offset of the field in the record.
        offset: ByteCount,
        /// Length of the field.
        length: ByteCount,
        /// Length of one point's record.
        stride: ByteCount,
    },
}
