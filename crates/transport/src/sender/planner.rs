//! How a media unit is cut, protected and shared among the links, and how large the application may
//! make it.
//!
//! A planner sees the links ([`Link`]) and decides; it touches none of them. [`Quantile`] plans
//! size, repair and shares together; [`FixedRate`] codes at one rate and shares out by a
//! [`Schedule`]. docs/transport.md tells what was learned of each.

mod fixed_rate;
pub(crate) mod kind;
mod price;
mod quantile;
mod rhythm;
mod schedule;
mod shares;

use std::fmt::Debug;

use tautline_units::{Bitrate, ByteCount, Duration, Instant, Probability};

pub use fixed_rate::FixedRate;
pub use kind::Kind;
pub use quantile::Quantile;
pub use schedule::{Block, Schedule};

use super::protect::Plan;
use crate::config::Config;
use crate::error::SendError;
pub use crate::link::on_time::OnTimeCurve;
use crate::wire::LinkNumber;

/// A policy that plans media units.
pub trait Planner: Debug + Send {
    /// Plans a unit for `links`, those that may carry media, in order of their numbers.
    ///
    /// # Errors
    /// [`SendError::NoLink`], [`SendError::TooLarge`] or [`SendError::Congested`].
    fn plan(
        &mut self,
        unit: &Unit,
        links: &[Link],
        now: Instant,
    ) -> Result<UnitPlan<'_>, SendError>;

    /// Returns the source bits per second that the application may send over `links`.
    fn budget(&self, links: &[Link], now: Instant) -> Bitrate;

    /// Returns the bytes that may be on their way beyond each link's window, since the last unit.
    fn reserve(&self) -> ByteCount {
        ByteCount::ZERO
    }

    /// Takes the totals of a delivery report: units delivered and lost. Older ones than before say
    /// nothing.
    fn on_delivery_report(&mut self, _delivered: u64, _lost: u64) {}

    /// Returns whether every packet that is assigned a link shall go over all others too.
    fn copies(&self) -> bool {
        false
    }
}

/// A media unit as a planner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Its length.
    pub bytes: ByteCount,
    /// When it must have arrived, on our clock.
    pub deadline: Instant,
}

/// A decision how a unit is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitPlan<'a> {
    /// How it is cut and protected.
    pub packets: Plan,
    /// For each packet the link's place among those given, or `None` for one that is not sent.
    pub assignment: &'a [Option<usize>],
}

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

impl Kind {
    /// Makes the planner of this name.
    pub(crate) fn planner(self, config: &Config) -> Box<dyn Planner> {
        let fixed = |schedule| Box::new(FixedRate::new(config, schedule));
        match self {
            Self::Quantile => Box::new(Quantile::new(config)),
            Self::EarliestDelivery => fixed(Schedule::EarliestDelivery),
            Self::TransmissionEnd => fixed(Schedule::TransmissionEnd),
            Self::RoundRobin => fixed(Schedule::RoundRobin { next: 0 }),
            Self::Redundant => fixed(Schedule::Redundant),
            Self::BestLink => fixed(Schedule::BestLink),
        }
    }
}
