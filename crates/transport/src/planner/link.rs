use tautline_units::{Bitrate, ByteCount, Duration, Instant, Probability};

use super::on_time_curve::OnTimeCurve;
use crate::wire::LinkNumber;

/// The state of a link that a planner uses: its rate, room, delay and reliability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Number of the link.
    pub number: LinkNumber,
    /// Time at which all media queued on the link will have been sent at the pacing rate.
    pub free_at: Instant,
    /// Pacing rate, less the share that retransmissions are expected to take.
    pub rate: Bitrate,
    /// Media rate of the link that the application's budget may count on: the granted one, less
    /// what drains its queues.
    pub sustained: Bitrate,
    /// Rate of non-media traffic on the link: pings, reports, telemetry.
    pub control_rate: Bitrate,
    /// Expected one-way delay to the peer.
    pub owd: Duration,
    /// Length of the datagrams of all media packets queued on the link, repair packets included.
    pub queued: ByteCount,
    /// Bytes sent that no report shows as arrived or lost yet, without those of data.
    pub in_flight: ByteCount,
    /// Maximum of `in_flight`; `None` without a limit.
    pub window: Option<ByteCount>,
    /// Probability that a packet queued now arrives in time, by its headroom before the deadline.
    pub on_time: OnTimeCurve,
    /// Probability that a packet and its retransmissions are all missed by chance, independently of
    /// other packets.
    pub loss: Probability,
    /// Time of the last media packet sent on the link; creation time of the link before the first.
    pub media_at: Instant,
    /// Largest datagram that fits this link and all others: units are cut for any of them.
    pub datagram_bytes: ByteCount,
}

impl Link {
    /// A placeholder in unused entries of arrays.
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

    /// Creates link 0 with `rate` and `owd`: idle, without losses or a window, always in time.
    pub fn new(rate: Bitrate, owd: Duration) -> Self {
        Self { rate, sustained: rate, owd, ..Self::NONE }
    }
}
