use flatbuffers::InvalidFlatbuffer;
use tautline_units::ByteCount;
use thiserror::Error;

/// A reason why bytes are not a message.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The message as a whole is longer than its kind allows.
    #[error("{length} is longer than the {max} that a {kind} may have")]
    Oversized {
        /// The message's kind.
        kind: &'static str,
        /// What came.
        length: ByteCount,
        /// What is allowed.
        max: ByteCount,
    },
    /// The bytes do not carry the file identifier of this kind of message.
    #[error("not a {kind}: the file identifier is missing or another one")]
    WrongKind {
        /// The message's kind.
        kind: &'static str,
    },
    /// The verifier refuses the bytes.
    #[error("malformed {kind}: {cause}")]
    Malformed {
        /// The message's kind.
        kind: &'static str,
        /// What the verifier says.
        cause: InvalidFlatbuffer,
    },
    /// A number is not finite or outside its range.
    #[error("{field} is {value}, not within {min} to {max}")]
    OutOfRange {
        /// The field's name.
        field: &'static str,
        /// What came.
        value: f64,
        /// Least allowed value.
        min: f64,
        /// Greatest allowed value.
        max: f64,
    },
    /// A string (counted in bytes) or a list (counted in items) is too long.
    #[error("{field} has a length of {length}, over {max}")]
    TooLong {
        /// The field's name.
        field: &'static str,
        /// What came.
        length: usize,
        /// What is allowed.
        max: usize,
    },
    /// A choice has a number that stands for nothing.
    #[error("{field} is {value}, which stands for nothing")]
    Unknown {
        /// The field's name.
        field: &'static str,
        /// What came.
        value: u8,
    },
    /// A field that must be there is not.
    #[error("{field} is missing")]
    Missing {
        /// The field's name.
        field: &'static str,
    },
    /// A point cloud's data do not divide into whole records.
    #[error("{length} of data are no whole number of records of {stride}")]
    Ragged {
        /// Length of the data.
        length: ByteCount,
        /// Length of a record.
        stride: ByteCount,
    },
    /// A field of a point lies outside its record.
    #[error("a field of {length} at {offset} does not fit a record of {stride}")]
    OutsideRecord {
        /// The field's distance from the record's start.
        offset: ByteCount,
        /// The field's length.
        length: ByteCount,
        /// Length of a record.
        stride: ByteCount,
    },
}
