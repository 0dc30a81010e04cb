use tautline_units::{ByteCount, Instant};

use super::{KIND_REPORT, LinkNumber, Malformed, put_u48, take, take_u48};

/// What has arrived on one link so far; sent on every live link, every 100 ms.
///
/// ```text
///  0               1          9           15          21          27
/// +-------+-------+----------+-----------+-----------+-----------+
/// |   4   | link  | taken at | highest   | datagrams | bytes     |
/// +-------+-------+----------+-----------+-----------+-----------+
/// ```
///
/// Counts are totals since the session began, so that a lost report costs nothing. `taken at` is
/// the reporter's clock in nanoseconds and orders reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// The link it speaks of.
    pub link: LinkNumber,
    /// When the counts were taken, on the reporter's clock.
    pub taken_at: Instant,
    /// The highest packet number that arrived, below 2^48.
    pub highest: u64,
    /// Datagrams that arrived and were authentic, each once.
    pub datagrams: u64,
    /// Their bytes, headers included.
    pub bytes: ByteCount,
}

impl Report {
    /// Its length on the wire.
    pub const BYTES: usize = 27;

    /// Appends the packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(KIND_REPORT << 4 | self.link.get());
        out.extend_from_slice(&self.taken_at.as_nanos().to_be_bytes());
        put_u48(out, self.highest);
        put_u48(out, self.datagrams);
        put_u48(out, self.bytes.get());
    }

    pub(super) fn parse(rest: &mut &[u8]) -> Result<Self, Malformed> {
        let [head] = take(rest)?;
        let link = LinkNumber::new(head & 0x0f).ok_or(Malformed("unknown link"))?;
        let taken_at = Instant::from_nanos(u64::from_be_bytes(take(rest)?));
        let highest = take_u48(rest)?;
        let datagrams = take_u48(rest)?;
        let bytes = ByteCount::new(take_u48(rest)?);
        Ok(Self { link, taken_at, highest, datagrams, bytes })
    }
}
