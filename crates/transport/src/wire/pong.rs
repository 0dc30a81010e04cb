use tautline_units::Instant;

use super::field::take;
use super::kind::KIND_PONG;
use super::malformed::Malformed;

/// The answer to a ping, sent on the same link.
///
/// ```text
///  0               1               5                  13                 21
/// +-------+-------+---------------+------------------+------------------+
/// |   3   |   0   | the ping's id | received at, ns  | sent at, ns      |
/// +-------+-------+---------------+------------------+------------------+
/// ```
///
/// Both times are on the responder's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pong {
    /// Id of the ping that the pong answers.
    pub id: u32,
    /// Arrival time of the ping on the responder's clock.
    pub received_at: Instant,
    /// Sealing time of the pong on the responder's clock.
    pub sent_at: Instant,
}

impl Pong {
    /// Length of a pong on the wire, in bytes.
    pub const BYTES: usize = 21;

    /// Appends the pong to `out` as a packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(KIND_PONG << 4);
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&self.received_at.as_nanos().to_be_bytes());
        out.extend_from_slice(&self.sent_at.as_nanos().to_be_bytes());
    }

    pub(super) fn parse(rest: &mut &[u8]) -> Result<Self, Malformed> {
        let [_kind] = take(rest)?;
        let id = u32::from_be_bytes(take(rest)?);
        let received_at = Instant::from_nanos(u64::from_be_bytes(take(rest)?));
        let sent_at = Instant::from_nanos(u64::from_be_bytes(take(rest)?));
        Ok(Self { id, received_at, sent_at })
    }
}
