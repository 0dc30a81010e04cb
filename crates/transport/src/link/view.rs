use tautline_units::{Bitrate, ByteCount, Duration, Probability};

use super::media::Media;
use super::route::Route;
use super::spread::Percentiles;
use crate::life::State;
use crate::rate::Cause;
use crate::wire::LinkNumber;

/// The state of one link at one instant, for policies, operators and records.
///
/// `out` is the direction from us to the peer, `in` that from the peer to us.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct View {
    /// The link's number.
    pub number: LinkNumber,
    /// Local socket and remote address of the link.
    pub route: Route,
    /// Liveness state of the link.
    pub state: State,
    /// True if the link is on standby among the candidate pairs of its group, whatever its state:
    /// it carries media only while no link outside standby is trusted.
    pub stands_by: bool,
    /// Rate at which media may be sent now, as granted by rate control.
    pub granted: Bitrate,
    /// Cause of the last change of the granted rate.
    pub cause: Cause,
    /// Standing queue in the link: the smallest recent excess of the one-way delay over its minimum
    /// of the last ten seconds.
    pub queueing: Duration,
    /// Media rate that the application's budget counts on this link for, including repair packets
    /// and headers; zero while the link may not carry media.
    pub budget: Bitrate,
    /// Rate at which datagrams were sent, without MTU probes, over the last 100 ms or more that
    /// reports covered; zero before the second report.
    pub sent: Bitrate,
    /// Rate at which datagrams arrived at the peer over the last 100 ms or more that reports
    /// covered; zero before the second report.
    pub received: Bitrate,
    /// Rate at which datagrams arrived from the peer, as last measured over 95 ms or more up to one
    /// of our reports; zero before the first measurement.
    pub incoming: Bitrate,
    /// Smoothed RTT ([RFC6298]); `None` before the first pong.
    pub rtt: Option<Duration>,
    /// Minimum RTT of the last ten seconds; `None` before the first pong.
    pub rtt_min: Option<Duration>,
    /// Smoothed one-way delay from us to the peer, accurate to the clock estimate's error; `None`
    /// before the first sample or clock estimate.
    pub owd_out: Option<Duration>,
    /// Smoothed one-way delay from the peer to us, accurate to the clock estimate's error; `None`
    /// before the first sample or clock estimate.
    pub owd_in: Option<Duration>,
    /// Jitter of the one-way delay from the peer to us ([RFC3550] 6.4.1); `None` before the first
    /// sample.
    pub jitter: Option<Duration>,
    /// Share of our datagrams of about the last second that the peer's reports show as missing;
    /// zero before the second report.
    pub loss_out: Probability,
    /// Datagrams from the peer that are missing although later ones arrived.
    pub datagrams_missing: u64,
    /// Size of the largest datagrams that we send at present, in bytes of UDP payload.
    pub datagram_bytes: ByteCount,
    /// Length of the queued media packets' datagrams.
    pub queued: ByteCount,
    /// Bytes sent that no report shows as arrived or lost yet, without MTU probes.
    pub in_flight: ByteCount,
    /// Maximum of the bytes in flight that media and data may reach; `None` without a limit.
    pub window: Option<ByteCount>,
    /// Number of datagrams sent on the link.
    pub datagrams_sent: u64,
    /// Counts of the media packets assigned to the link, by outcome.
    pub media: Media,
    /// Bytes of all datagrams sent, including their headers and MTU probes.
    pub bytes_sent: ByteCount,
    /// Number of our datagrams that the peer's last report shows as received.
    pub datagrams_reported: u64,
    /// Number of our datagrams that the peer's last report shows as missing, below the newest that
    /// it received.
    pub datagrams_lost: u64,
    /// Number of datagrams received from the peer, authentic and without duplicates.
    pub datagrams_received: u64,
    /// Bytes of the datagrams received from the peer.
    pub bytes_received: ByteCount,
}

/// Distribution of one link's one-way delays over the last ten seconds, for people and records. It
/// is too expensive to compute for each datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spreads {
    /// The link's number.
    pub number: LinkNumber,
    /// Percentiles of the delay from us to the peer, by the clock estimate at the time of each
    /// sample; `None` without samples.
    pub owd_out: Option<Percentiles>,
    /// Percentiles of the delay from the peer to us, by the clock estimate at the time of each
    /// sample; `None` without samples.
    pub owd_in: Option<Percentiles>,
}
