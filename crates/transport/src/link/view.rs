use tautline_units::{Bitrate, ByteCount, Duration, Probability};

use super::media::Media;
use super::route::Route;
use super::spread::Percentiles;
use crate::life::State;
use crate::rate::Cause;
use crate::wire::LinkNumber;

/// A view of one link for policies, for the operator, for records.
///
/// `out` is our sending, `in` our receiving.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct View {
    /// The link's number.
    pub number: LinkNumber,
    /// Where its datagrams go.
    pub route: Route,
    /// Whether it is alive.
    pub state: State,
    /// Whether it lives, and another way of its group carries media in its place.
    pub stands_by: bool,
    /// The rate at which media may be sent now.
    pub granted: Bitrate,
    /// Why it changed last.
    pub cause: Cause,
    /// The queue that stands in the link: how much longer than the least of the last ten seconds every
    /// datagram of late was on its way.
    pub queueing: Duration,
    /// The media bits per second that the application's budget counts on here, repair and our bytes
    /// included; zero while the link may carry no media.
    pub budget: Bitrate,
    /// The rate that was sent, over the last report's span.
    pub sent: Bitrate,
    /// The rate that arrived at the peer, by its last report.
    pub received: Bitrate,
    /// The rate that arrives here, over the last report interval.
    pub incoming: Bitrate,
    /// RTT, smoothed ([RFC6298]); `None` before the first pong.
    pub rtt: Option<Duration>,
    /// The smallest RTT of the last ten seconds.
    pub rtt_min: Option<Duration>,
    /// One-way delay from us to the peer, smoothed; exact to the clock estimate's error.
    pub owd_out: Option<Duration>,
    /// One-way delay from the peer to us, smoothed; exact to the clock estimate's error.
    pub owd_in: Option<Duration>,
    /// How much the delay from the peer to us varies ([RFC3550] 6.4.1).
    pub jitter: Option<Duration>,
    /// Share of our datagrams of the last second or so that the peer has not received.
    pub loss_out: Probability,
    /// The peer's datagrams that have not arrived, though later ones have.
    pub datagrams_missing: u64,
    /// The size that our datagrams may have, as far as probing has come.
    pub datagram_bytes: ByteCount,
    /// Media bytes that wait here.
    pub queued: ByteCount,
    /// Bytes that left and that no report has settled.
    pub in_flight: ByteCount,
    /// The most that may be on their way unreported, if there is a bound.
    pub window: Option<ByteCount>,
    /// Datagrams sent.
    pub datagrams_sent: u64,
    /// Media packets on their way out, and what became of them.
    pub media: Media,
    /// Bytes sent, headers included.
    pub bytes_sent: ByteCount,
    /// Our datagrams that the peer reports.
    pub datagrams_reported: u64,
    /// Our datagrams that the peer's reports show to be lost.
    pub datagrams_lost: u64,
    /// Datagrams that arrived here, authentic and each once.
    pub datagrams_received: u64,
    /// Their bytes.
    pub bytes_received: ByteCount,
}

/// The spread of one link's delays over the last ten seconds: for people and records, too much work
/// for every datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spreads {
    /// The link's number.
    pub number: LinkNumber,
    /// From us to the peer, as far as the clock estimate of the time tells.
    pub owd_out: Option<Percentiles>,
    /// From the peer to us.
    pub owd_in: Option<Percentiles>,
}
