use super::field::{put_length, put_u48, take_u48};
use super::kind::KIND_FIELDS;
use super::malformed::Malformed;

/// ECN mark counts of the datagrams that arrived on a report's link ([RFC3168]): fields after the
/// report, if any was marked.
///
/// ```text
///  0               1               3               9              15
/// +-------+-------+---------------+---------------+---------------+
/// |  15   |   0   | length        | ECT(1)        | CE            |
/// +-------+-------+---------------+---------------+---------------+
/// ```
///
/// Totals since the session began, of authentic datagrams, each counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// Number of datagrams that arrived as ECT(1), below 2^48.
    pub ect1: u64,
    /// Number of datagrams that arrived marked (CE), below 2^48.
    pub ce: u64,
}

impl Marks {
    /// Length of the fields on the wire, in bytes.
    pub const BYTES: usize = 15;

    /// Appends kind, length and both counts to `out`.
    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.push(KIND_FIELDS << 4);
        put_length(out, Self::BYTES - 3);
        put_u48(out, self.ect1);
        put_u48(out, self.ce);
    }

    /// Reads the two counts from the front of `body`, which begins after kind and length.
    pub(super) fn parse(body: &mut &[u8]) -> Result<Self, Malformed> {
        Ok(Self { ect1: take_u48(body)?, ce: take_u48(body)? })
    }
}
