//! One link: its route, what is known of it, and what waits to be sent on it.

mod in_flight;
mod liveness;
mod loss;
mod media;
mod mtu;
mod on_time;
mod pacing;
mod probe;
mod route;
mod rtt;
mod spread;

use std::collections::VecDeque;

pub use liveness::State;
pub use loss::Sample;
pub use media::Media;
pub use route::Route;
pub use spread::Percentiles;
use tautline_units::{Bitrate, ByteCount, Duration, Instant, Probability};

pub(crate) use in_flight::{InFlight, Settled};
pub(crate) use liveness::Liveness;
pub(crate) use loss::{Loss, Told};
pub(crate) use mtu::{Mtu, Pings};
pub(crate) use on_time::{OnTime, Outlook};
pub(crate) use pacing::{ControlQueue, Entry, Pacer};
pub(crate) use probe::{Asked, Probe};
pub(crate) use route::{Arrival, Routing};
pub(crate) use rtt::Rtt;

use crate::clock::ClockEstimate;
use crate::rate::{Controller, Grant};
use crate::receiver::Arrivals;
use crate::sequence::Window;
use crate::wire::{LinkNumber, Pong};

/// All that a session keeps of one link.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) number: LinkNumber,
    pub(crate) routing: Routing,
    pub(crate) liveness: Liveness,
    pub(crate) probe: Probe,
    pub(crate) rtt: Rtt,
    /// What the peer's reports say about our sending.
    pub(crate) loss: Loss,
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) grant: Grant,
    /// What units of the floor may have on their way beyond the window.
    pub(crate) reserve: ByteCount,
    pub(crate) pacer: Pacer,
    pub(crate) in_flight: InFlight,
    pub(crate) on_time: OnTime,
    /// When media last left on the link.
    pub(crate) media_at: Instant,
    pub(crate) control: ControlQueue,
    pub(crate) pongs: VecDeque<PongDue>,
    pub(crate) next_number: u64,
    pub(crate) media: Media,
    pub(crate) replay: Window,
    /// What arrived here.
    pub(crate) arrivals: Arrivals,
    /// How large our datagrams may be.
    pub(crate) mtu: Mtu,
}

/// A pong to be sent: to the route that asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PongDue {
    pub(crate) route: Route,
    pub(crate) id: u32,
    pub(crate) received_at: Instant,
}

impl PongDue {
    pub(crate) fn pong(&self, now: Instant) -> Pong {
        Pong { id: self.id, received_at: self.received_at, sent_at: now }
    }
}

/// Pongs that wait for their turn, at most.
pub(crate) const PONGS_MAX: usize = 8;

/// What is known of one link: for policies, for the operator, for records.
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
    /// The rate at which media may be sent now.
    pub granted: Bitrate,
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
    /// Share of the peer's datagrams that have not arrived, since the session began.
    pub loss_in: Probability,
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

/// How one link's delays were spread over the last ten seconds: for people and records, too much
/// work for every datagram.
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

impl Link {
    pub(crate) fn spreads(&self, now: Instant) -> Spreads {
        Spreads {
            number: self.number,
            owd_out: self.rtt.owd_out_spread(now),
            owd_in: self.rtt.owd_in_spread(now),
        }
    }

    /// `budget`: see [`View::budget`].
    pub(crate) fn view(&self, budget: Bitrate, clock: Option<ClockEstimate>) -> View {
        View {
            number: self.number,
            route: self.routing.route(),
            state: self.liveness.state(),
            granted: self.grant.rate,
            budget,
            sent: self.loss.sent(),
            received: self.loss.received(),
            incoming: self.arrivals.rate(),
            rtt: self.rtt.rtt_smoothed(),
            rtt_min: self.rtt.rtt_min(),
            owd_out: self.rtt.owd_out(clock),
            owd_in: self.rtt.owd_in(clock),
            jitter: self.rtt.jitter(),
            loss_out: self.loss.recent(),
            loss_in: self.arrivals.lost_share(),
            datagram_bytes: ByteCount::new(self.mtu.size() as u64),
            queued: self.pacer.queued(),
            in_flight: self.in_flight.in_flight(),
            window: self.grant.window,
            datagrams_sent: self.next_number,
            media: Media {
                given: self.pacer.given(),
                waiting: self.pacer.waiting(),
                open: self.in_flight.media_open(),
                lost: self.media.lost + self.in_flight.media_forgotten(),
                ..self.media
            },
            bytes_sent: self.loss.bytes_sent(),
            datagrams_reported: self.loss.datagrams_reported(),
            datagrams_lost: self.loss.datagrams_lost(),
            datagrams_received: self.arrivals.datagrams(),
            bytes_received: self.arrivals.bytes(),
        }
    }
}
