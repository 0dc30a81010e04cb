/// Failures of pictures and their coding.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A picture's sides are not multiples of 16 from 16 to 8192.
    #[error(
        "a picture of {width}x{height} is not possible: both sides must be multiples of 16, 16 to 8192"
    )]
    Dimensions {
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// A codec that this build lacks.
    #[error("this binary was built without {feature}: build it with --features {feature}")]
    NotBuilt {
        /// The feature of the build that has it.
        feature: &'static str,
    },
    /// A picture has fewer macroblock rows than strips.
    #[error("a picture of {height} rows cannot be cut into six strips: 96 rows are the least")]
    TooFewRows {
        /// Rows of the picture.
        height: usize,
    },
    /// Rows asked for lie outside the picture or are not whole macroblocks.
    #[error("rows {start}..{end} of a picture of {height} rows are not whole macroblock rows")]
    Rows {
        /// First row.
        start: usize,
        /// Row after the last.
        end: usize,
        /// Rows of the picture.
        height: usize,
    },
    /// Two pictures that belong together differ in size.
    #[error(
        "a picture of {width}x{height} was given where {expected_width}x{expected_height} belongs"
    )]
    SizeMismatch {
        /// Pixels in a row of the picture given.
        width: usize,
        /// Rows of the picture given.
        height: usize,
        /// Pixels in a row wanted.
        expected_width: usize,
        /// Rows wanted.
        expected_height: usize,
    },
    /// Bytes end before the thing they describe does.
    #[error("{what} ends too early")]
    Truncated {
        /// What was being read.
        what: &'static str,
    },
    /// A field has a value that it cannot have.
    #[error("{what}: {value} is not possible")]
    Invalid {
        /// The field.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// A stream uses a part of H.264 that the receiver does not conceal.
    #[error("{what} is not supported")]
    Unsupported {
        /// The part of H.264.
        what: &'static str,
    },
    /// A slice refers to a parameter set that never came.
    #[error("{set} parameter set {id} is missing")]
    MissingParameters {
        /// Sequence or picture.
        set: &'static str,
        /// The number asked for.
        id: u32,
    },
    /// An encoder could not be set up or failed on a picture.
    #[error("the encoder failed in {call}: code {code}")]
    Encoder {
        /// The call that failed.
        call: &'static str,
        /// What it returned.
        code: i32,
    },
    /// A decoder refused its input.
    #[error("the decoder failed: {reason}")]
    Decoder {
        /// The decoder's own words.
        reason: String,
    },
    /// A picture of a source was lost; the next one may be whole.
    #[error("{reason}")]
    PictureLost {
        /// One line that says which and why.
        reason: String,
    },
    /// A source of pictures failed.
    #[error("{reason}")]
    Sensor {
        /// One line that says which and why.
        reason: String,
    },
}
