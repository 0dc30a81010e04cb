use tautline_units::{Bitrate, ByteCount, Duration, Instant, Probability};

use super::on_time_curve::OnTimeCurve;
use crate::wire::LinkNumber;

/// A link as a planner sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Its number.
    pub number: LinkNumber,
    /// Time at which everything queued there will have been sent at `rate`.
    pub free_at: Instant,
    /// Pacing rate.
    pub rate: Bitrate,
    /// Rate that the application's budget may count on.
    pub sustained: Bitrate,
    /// Rate of non-media traffic on the link: pings, reports, telemetry.
    pub control_rate: Bitrate,
    /// One-way delay to the peer.
    pub owd: Duration,
    /// Media bytes queued on the link.
    pub queued: ByteCount,
    /// Bytes sent and not settled by a report.
    pub in_flight: ByteCount,
    /// Maximum number of unreported bytes in flight; `None` without a limit.
    pub window: Option<ByteCount>,
    /// Probability that a packet queued now arrives in time.
    pub on_time: OnTimeCurve,
    /// Probability of a random, independent packet loss.
    pub loss: Probability,
    /// Time of the last media packet sent on the link.
    pub media_at: Instant,
    /// Largest datagram that fits this link and all others: units are cut for any of them.
    pub datagram_bytes: ByteCount,
}

impl Link {
    /// A placeholder that fills unused entries.
    pub(crate) const NONE: Self = Self {
        number: LinkNumber::new(0).expect("link 0 exists"),
        free_at: Instant::ZERO,
        rate: Bitrate::ZERO,
        sustained: Bitrate::ZERO,
        control_rate: Bitrate::ZERO,
        owd: Duration::ZERO,
        queued: ByteCount::ZERO,
        in_flight: ByteCount::ZERO,
        window: None,
        on_time: OnTimeCurve::SURE,
        loss: Probability::ZERO,
        media_at: Instant::ZERO,
        datagram_bytes: ByteCount::new(1_200),
    };

    /// Creates link 0, idle, with default values otherwise.
    pub fn new(rate: Bitrate, owd: Duration) -> Self {
        Self { rate, sustained: rate, owd, ..Self::NONE }
    }
}
