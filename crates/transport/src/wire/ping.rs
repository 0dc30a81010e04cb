use tautline_units::Instant;

use super::field::take;
use super::kind::KIND_PING;
use super::malformed::Malformed;

/// A request for the peer's time, which also proves liveness of a link.
///
/// ```text
///  0               1               5                              13
/// +-------+-------+---------------+------------------------------+
/// |   2   |   0   | id            | sent at, ns, pinger's clock  |
/// +-------+-------+---------------+------------------------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ping {
    /// Id chosen by the pinger, unique within link and session for 2^32 pings.
    pub id: u32,
    /// Sealing time on the pinger's clock.
    pub sent_at: Instant,
}

impl Ping {
    /// Length of a ping on the wire, in bytes.
    pub const BYTES: usize = 13;

    /// Appends the ping to `out` as a packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(KIND_PING << 4);
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.sent_at.as_nanos().to_be_bytes());
    }

    pub(super) fn parse(rest: &mut &[u8]) -> Result<Self, Malformed> {
        let [_kind] = take(rest)?;
        let id = u32::from_be_bytes(take(rest)?);
        Ok(Self { id, sent_at: Instant::from_nanos(u64::from_be_bytes(take(rest)?)) })
    }
}
