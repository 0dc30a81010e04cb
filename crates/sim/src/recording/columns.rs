use std::time::Duration;

/// Selection of the columns that contain the round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns<'a> {
    /// Operator whose rows are used, in a file with a column `operator`; in another file, the
    /// column to read in place of `rtt_ms`. `None` for a file of one operator.
    pub operator: Option<&'a str>,
    /// Time between two lines of a file without a time column; above zero.
    pub interval: Duration,
}

impl Columns<'_> {
    /// Returns [`interval`](Self::interval) in nanoseconds.
    pub(super) fn interval_nanos(&self) -> u64 {
        u64::try_from(self.interval.as_nanos()).unwrap_or(u64::MAX)
    }
}
