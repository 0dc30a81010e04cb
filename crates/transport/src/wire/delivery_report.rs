use super::field::{put_u48, take, take_u48};
use super::kind::KIND_DELIVERY_REPORT;
use super::malformed::Malformed;
use crate::channel::ChannelNumber;

/// Outcome of the units of one channel that the end which receives this packet has sent: totals
/// since the session began.
///
/// ```text
///  0               1           7          13
/// +-------+-------+-----------+-----------+
/// |   5   |channel| delivered | lost      |
/// +-------+-------+-----------+-----------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryReport {
    /// Channel of the units, below 15.
    pub channel: ChannelNumber,
    /// Number of units delivered complete and in time, below 2^48.
    pub delivered: u64,
    /// Number of units lost, below 2^48.
    pub lost: u64,
}

impl DeliveryReport {
    /// Length of a delivery report on the wire, in bytes.
    pub const BYTES: usize = 13;

    /// Appends the delivery report to `out` as a packet.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(KIND_DELIVERY_REPORT << 4 | self.channel.get() & 0x0f);
        put_u48(out, self.delivered);
        put_u48(out, self.lost);
    }

    pub(super) fn parse(rest: &mut &[u8]) -> Result<Self, Malformed> {
        let [head] = take(rest)?;
        let channel = ChannelNumber::new(head & 0x0f);
        Ok(Self { channel, delivered: take_u48(rest)?, lost: take_u48(rest)? })
    }
}
