/// Errors of pictures and their coding.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A picture has sides that its use does not allow: coded sides are multiples of 16 from 16 to
    /// 8192, within what a level of H.264 and the codec allow.
    #[error(
        "a picture of {width}x{height} is not possible: both sides must be multiples of 16, 16 to 8192"
    )]
    Dimensions {
        /// Pixels in a row.
        width: usize,
        /// Rows of the picture.
        height: usize,
    },
    /// This build lacks the codec that was requested.
    #[error("this binary was built without {feature}: build it with --features {feature}")]
    NotBuilt {
        /// Cargo feature that contains the codec.
        feature: &'static str,
    },
    /// A picture has fewer macroblock rows than strips.
    #[error("a picture of {height} rows cannot be cut into six strips: 96 rows are the least")]
    TooFewRows {
        /// Rows of the picture.
        height: usize,
    },
    /// The requested rows are outside the picture or are not complete macroblock rows.
    #[error("rows {start}..{end} of a picture of {height} rows are not whole macroblock rows")]
    Rows {
        /// First of the requested rows.
        start: usize,
        /// Row after the last requested one.
        end: usize,
        /// Rows of the picture.
        height: usize,
    },
    /// Two related pictures differ in size.
    #[error(
        "a picture of {width}x{height} was given where {expected_width}x{expected_height} belongs"
    )]
    SizeMismatch {
        /// Pixels in a row of the picture passed.
        width: usize,
        /// Rows of the picture passed.
        height: usize,
        /// Pixels in a row of the expected picture.
        expected_width: usize,
        /// Rows of the expected picture.
        expected_height: usize,
    },
    /// The data ends before the structure that it contains.
    #[error("{what} ends too early")]
    Truncated {
        /// Structure being parsed.
        what: &'static str,
    },
    /// A field or a parameter has an invalid value.
    #[error("{what}: {value} is not possible")]
    Invalid {
        /// Name of the field.
        what: &'static str,
        /// Invalid value that the field has.
        value: u64,
    },
    /// A stream uses a part of H.264 that concealment, joining or decoding does not support.
    #[error("{what} is not supported")]
    Unsupported {
        /// Name of the part of H.264.
        what: &'static str,
    },
    /// A slice refers to a parameter set that never arrived.
    #[error("{set} parameter set {id} is missing")]
    MissingParameters {
        /// Kind of the parameter set: `sequence` or `picture`.
        set: &'static str,
        /// Id of the missing parameter set.
        id: u32,
    },
    /// An encoder could not be set up or failed on a picture.
    #[error("the encoder failed in {call}: code {code}")]
    Encoder {
        /// Name of the library's call that failed.
        call: &'static str,
        /// Return code of the call.
        code: i32,
    },
    /// A decoder refused its input.
    #[error("the decoder failed: {reason}")]
    Decoder {
        /// The decoder's own message.
        reason: String,
    },
    /// A picture of a source was lost; the next one may be complete.
    #[error("{reason}")]
    PictureLost {
        /// Source and reason, in one line.
        reason: String,
    },
    /// A source of pictures failed.
    #[error("{reason}")]
    Sensor {
        /// Source and reason, in one line.
        reason: String,
    },
}
