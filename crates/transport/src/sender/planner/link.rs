use tautline_units::{Bitrate, ByteCount, Duration, Instant, Probability};

use crate::link::OnTimeCurve;
use crate::wire::LinkNumber;

/// A link as a planner sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Its number.
    pub number: LinkNumber,
    /// When all that waits there will have been sent at the rate.
    pub free_at: Instant,
    /// The rate at which it is paced.
    pub rate: Bitrate,
    /// The rate that the application's budget may count on.
    pub sustained: Bitrate,
    /// What leaves there that is no media: pings, reports, telemetry.
    pub beside: Bitrate,
    /// The one-way delay to the peer.
    pub owd: Duration,
    /// Media bytes that wait there.
    pub queued: ByteCount,
    /// Bytes that left and that no report has settled.
    pub in_flight: ByteCount,
    /// The most that may be on their way unreported, if there is a bound.
    pub window: Option<ByteCount>,
    /// The probability that what is given to it now is in time.
    pub on_time: OnTimeCurve,
    /// The probability that a packet is lost by chance, each for itself.
    pub loss: Probability,
    /// When media last left there.
    pub media_at: Instant,
    /// The largest datagram that this link and all others carry: units are cut for any of them.
    pub datagram_bytes: ByteCount,
}

impl Link {
    /// No link: what fills a row.
    pub(crate) const NONE: Self = Self {
        number: LinkNumber::new(0).expect("link 0 is one"),
        free_at: Instant::ZERO,
        rate: Bitrate::ZERO,
        sustained: Bitrate::ZERO,
        beside: Bitrate::ZERO,
        owd: Duration::ZERO,
        queued: ByteCount::ZERO,
        in_flight: ByteCount::ZERO,
        window: None,
        on_time: OnTimeCurve::SURE,
        loss: Probability::ZERO,
        media_at: Instant::ZERO,
        datagram_bytes: ByteCount::new(1_200),
    };

    /// Makes link 0, which is idle and of which no more is known.
    pub fn new(rate: Bitrate, owd: Duration) -> Self {
        Self { rate, sustained: rate, owd, ..Self::NONE }
    }
}
