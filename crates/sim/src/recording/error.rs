/// A fault in a recording's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The named column is missing, or none is named and `rtt_ms` is missing.
    #[error("no column {wanted:?} among {found}; name one with operator")]
    NoColumn {
        /// Name of the missing column, as requested.
        wanted: String,
        /// Names of the columns in the file.
        found: String,
    },
    /// The rows belong to several operators, and the requested one is missing or unknown.
    #[error("operator = {}: choose one of {found}", operator.as_deref().unwrap_or("none"))]
    Operator {
        /// The requested operator, if one was requested.
        operator: Option<String>,
        /// The operators in the file.
        found: String,
    },
    /// A line's number of fields differs from the first line's.
    #[error("line {line}: {found} fields in place of {expected}")]
    Fields {
        /// Number of the faulty line, from 1.
        line: usize,
        /// Number of fields in the faulty line.
        found: usize,
        /// Number of fields in the first line.
        expected: usize,
    },
    /// A field is not a number in its range.
    #[error("line {line}: {column} = {text:?} is no {what}")]
    Number {
        /// Number of the faulty line, from 1.
        line: usize,
        /// Name of the column of the faulty field.
        column: String,
        /// Beginning of the faulty field's text.
        text: String,
        /// Kind of value that the column must contain.
        what: &'static str,
    },
    /// A line does not come after the one before it in time.
    #[error("line {line}: its time does not come after the one before it")]
    Order {
        /// Number of the faulty line, from 1.
        line: usize,
    },
    /// The recording is longer than [`PERIOD_MAX`](super::PERIOD_MAX).
    #[error("line {line}: more than a day after the start")]
    TooLong {
        /// Number of the faulty line, from 1.
        line: usize,
    },
    /// There are more lines than [`LINES_MAX`].
    #[error("more than {LINES_MAX} lines")]
    TooManyLines,
    /// There is no line with a round trip.
    #[error("no line with a round trip")]
    Empty,
}

/// Maximum number of lines, a day at 20 Hz; a longer recording is refused.
pub const LINES_MAX: usize = 2_000_000;
