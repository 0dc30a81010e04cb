use tautline_units::Duration;

use super::datagram::LinkNumber;
use super::field::{put_length, take};
use super::kind::KIND_CADENCE;
use super::malformed::Malformed;

/// The present interval of a link's reports, which are reduced because of a low-rate uplink.
///
/// ```text
///  0               1               3               4               6
/// +-------+-------+---------------+---------------+---------------+
/// |  11   |   0   | length        | link          | interval, ms  |
/// +-------+-------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cadence {
    /// Link that the reports cover.
    pub link: LinkNumber,
    /// Maximum interval of the reports while the link receives media, in whole milliseconds.
    pub interval: Duration,
}

impl Cadence {
    /// Length of a cadence on the wire, in bytes.
    pub const BYTES: usize = 6;

    /// Appends the cadence to `out` as a packet.
    pub fn write(self, out: &mut Vec<u8>) {
        out.push(KIND_CADENCE << 4);
        put_length(out, Self::BYTES - 3);
        out.push(self.link.get());
        let millis = u16::try_from(self.interval.as_millis()).unwrap_or(u16::MAX);
        out.extend_from_slice(&millis.to_be_bytes());
    }

    /// Reads link and interval from the front of `body`, which begins after kind and length.
    pub(super) fn parse(body: &mut &[u8]) -> Result<Self, Malformed> {
        let [link, high, low] = take(body)?;
        let link = LinkNumber::new(link).ok_or(Malformed("unknown link"))?;
        Ok(Self { link, interval: Duration::from_millis(u16::from_be_bytes([high, low]).into()) })
    }
}
