use tautline_units::{Bitrate, ByteCount, Duration, Probability};

use super::media::Media;
use super::route::Route;
use super::spread::Percentiles;
use crate::life::State;
use crate::rate::Cause;
use crate::wire::LinkNumber;

/// A view of one link for policies, operators and records.
///
/// `out` is our sending, `in` our receiving.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct View {
    /// The link's number.
    pub number: LinkNumber,
    /// Destination of its datagrams.
    pub route: Route,
    /// Liveness state.
    pub state: State,
    /// True if the link is alive and on standby while another of its group carries media.
    pub stands_by: bool,
    /// Rate at which media may be sent now.
    pub granted: Bitrate,
    /// Cause of the last rate change.
    pub cause: Cause,
    /// Standing queue in the link: the smallest recent excess of the one-way delay over its minimum
    /// of the last ten seconds.
    pub queueing: Duration,
    /// Media rate that the application's budget counts on here, including repair and our overhead;
    /// zero while the link may not carry media.
    pub budget: Bitrate,
    /// Sending rate over the last report's span.
    pub sent: Bitrate,
    /// Rate of arrival at the peer, from its last report.
    pub received: Bitrate,
    /// Rate of arrival here, over the last report interval.
    pub incoming: Bitrate,
    /// Smoothed RTT ([RFC6298]); `None` before the first pong.
    pub rtt: Option<Duration>,
    /// Minimum RTT of the last ten seconds.
    pub rtt_min: Option<Duration>,
    /// Smoothed one-way delay from us to the peer, accurate to the clock estimate's error.
    pub owd_out: Option<Duration>,
    /// Smoothed one-way delay from the peer to us, accurate to the clock estimate's error.
    pub owd_in: Option<Duration>,
    /// Jitter of the delay from the peer to us ([RFC3550] 6.4.1).
    pub jitter: Option<Duration>,
    /// Share of our datagrams of about the last second that the peer has not received.
    pub loss_out: Probability,
    /// Datagrams from the peer that are missing although later ones arrived.
    pub datagrams_missing: u64,
    /// Largest confirmed size of our datagrams.
    pub datagram_bytes: ByteCount,
    /// Queued media bytes.
    pub queued: ByteCount,
    /// Bytes sent and not settled by a report.
    pub in_flight: ByteCount,
    /// Maximum number of unreported bytes in flight; `None` without a limit.
    pub window: Option<ByteCount>,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Media packets sent, by outcome.
    pub media: Media,
    /// Bytes sent, including headers.
    pub bytes_sent: ByteCount,
    /// Datagrams that the peer reported as received.
    pub datagrams_reported: u64,
    /// Datagrams that the peer's reports show to be lost.
    pub datagrams_lost: u64,
    /// Datagrams received here, authentic and without duplicates.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: ByteCount,
}

/// Distribution of one link's delays over the last ten seconds, for people and records. It is too
/// expensive to compute per datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spreads {
    /// The link's number.
    pub number: LinkNumber,
    /// From us to the peer, by the clock estimate at the time.
    pub owd_out: Option<Percentiles>,
    /// From the peer to us.
    pub owd_in: Option<Percentiles>,
}
