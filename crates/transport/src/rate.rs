//! How fast a link may send: controllers, one file each.
//!
//! A controller sees what was sent and what arrived, report by report, and grants a rate. It
//! touches nothing else; the session paces by it.

mod delay_rate;
mod fixed;
mod losses;
mod meter;
mod rival;
mod two_state;

use std::fmt::Debug;

pub use delay_rate::DelayRate;
pub use fixed::Fixed;
use serde::Deserialize;
use tautline_units::{Bitrate, ByteCount, Duration, Instant, Probability};
pub use two_state::TwoState;

use crate::error::ConfigError;
pub use crate::link::loss::Sample;
use crate::setting::{check, kbps};

/// A policy that grants one link's rate.
pub trait Controller: Debug + Send {
    /// Returns what is granted before the first report.
    fn initial(&self) -> Grant;

    /// Decides on one report, about every 10 ms while media is sent.
    fn on_report(&mut self, evidence: &Evidence) -> Grant;

    /// Notes that the link fell silent: what was seen before says little about what comes.
    fn on_silent(&mut self, now: Instant) -> Grant;

    /// Notes that the link stands still without a queue of ours: what arrives for a while says
    /// nothing about its capacity. As a silent link, unless a controller knows better.
    fn on_stall(&mut self, now: Instant) -> Grant {
        self.on_silent(now)
    }

    /// Returns whether pacing may stay below the grant while a queue stands in the link; yes by
    /// default.
    fn spares_queues(&self) -> bool {
        true
    }
}

/// What a controller judges by when a report comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// The rates of the last tenth of a second, once for each.
    pub sample: Option<Sample>,
    /// When the report was taken, on the peer's clock.
    pub taken_at: Instant,
    /// Bytes that had arrived by then, since the session began.
    pub received: ByteCount,
    /// Bytes that have left by now, since the session began.
    pub sent: ByteCount,
    /// When the newest datagram that arrived left, and the bytes that had left by then, its own
    /// included. `None` if the report brings no newer datagram.
    pub newest: Option<(Instant, ByteCount)>,
    /// Over how long what left in a row before the newest did not arrive, counted from the newest that the
    /// report before knew.
    pub hole: Duration,
    /// Bytes of all that is held lost.
    pub lost: ByteCount,
    /// How much longer than the least of ten seconds every datagram of the last 60 ms took: a queue
    /// that stands.
    pub queue: Duration,
    /// How much the time of one datagram differs from that of the next, smoothed.
    pub jitter: Duration,
    /// How much later than newer ones datagrams have come.
    pub reordering: Duration,
    /// Bytes that had not arrived when the report was taken, although they would have if nothing waited.
    pub waiting: ByteCount,
    /// Bytes that left and that no report has settled.
    pub in_flight: ByteCount,
    /// Share of the datagrams of the last second that did not arrive.
    pub loss: Probability,
    /// How long a datagram waits in the link's queue: RTT less the least RTT.
    pub queueing: Option<Duration>,
    /// The least RTT of the last ten seconds.
    pub rtt_min: Option<Duration>,
    /// Whether no other link probes.
    pub may_probe: bool,
    /// The time between two reports, if the peer says that it is more than usual.
    pub feedback: Option<Duration>,
    /// Now.
    pub now: Instant,
}

/// A controller's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// The rate at which to pace.
    pub rate: Bitrate,
    /// The rate that the application's budget may count on.
    pub sustained: Bitrate,
    /// The most bytes that may be on their way unreported, if there is a bound: a link that falls
    /// silent is sent no more.
    pub window: Option<ByteCount>,
    /// Whether this is an experiment: the pacer fills the rate with padding, and no other link
    /// may begin one.
    pub probing: bool,
    /// Why the rate is what it is.
    pub cause: Cause,
}

/// A reason for which a granted rate changed last.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[strum(serialize_all = "kebab-case")]
#[non_exhaustive]
pub enum Cause {
    /// Nothing is known of the link yet.
    Beginning,
    /// It is set.
    Fixed,
    /// Nothing waits in the link: the rate grows, as far as it is used.
    Growth,
    /// What was sent stands in the link's queue: the rate is that at which it arrives, less what drains
    /// the queue.
    Queue,
    /// Much less arrives than was sent: the link fails or has become slower.
    Stall,
    /// Losses end where the rate is lower: a policer, or a queue too short to be seen.
    Policer,
    /// Losses are looked into at a lower rate.
    LossTrial,
    /// A queue stands that is another's: losses lead the rate.
    ForeignQueue,
    /// Delays wander without a queue.
    Jitter,
    /// The rate is raised and lowered as an experiment.
    Probation,
    /// Nothing came back for long.
    Silence,
}

/// The choice of a controller, and its numbers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The controller; default delay-rate.
    pub controller: Kind,
    /// The rate of `fixed`, and of the others before the first report; default 8000 kbit/s
    /// (1 MB/s, [LLMLNCL]).
    #[serde(rename = "initial_kbps", deserialize_with = "kbps")]
    pub initial: Bitrate,
    /// The least that `two-state` grants; default 800 kbit/s (100 kB/s, [LLMLNCL]).
    #[serde(rename = "floor_kbps", deserialize_with = "kbps")]
    pub floor: Bitrate,
    /// The most that is granted; default 80000 kbit/s (10 MB/s, [LLMLNCL]).
    #[serde(rename = "ceiling_kbps", deserialize_with = "kbps")]
    pub ceiling: Bitrate,
}

/// The name of a controller, as settings, tests and the lab have it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::IntoStaticStr, strum::VariantArray,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// [`TwoState`].
    TwoState,
    /// [`DelayRate`].
    DelayRate,
    /// [`Fixed`].
    Fixed,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            controller: Kind::DelayRate,
            initial: Bitrate::from_mbps(8),
            floor: Bitrate::from_kbps(800),
            ceiling: Bitrate::from_mbps(80),
        }
    }
}

impl Config {
    /// Makes a controller for one link.
    pub fn controller(&self) -> Box<dyn Controller> {
        match self.controller {
            Kind::TwoState => Box::new(TwoState::new(self.initial, self.floor, self.ceiling)),
            Kind::DelayRate => Box::new(DelayRate::new(self.initial, self.ceiling)),
            Kind::Fixed => Box::new(Fixed::new(self.initial)),
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ConfigError`] naming the first field that cannot work.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check("rate.floor_kbps", self.floor >= Bitrate::from_kbps(8), || {
            format!("{} is below 8 kbit/s, which pings and reports need", self.floor)
        })?;
        check("rate.initial_kbps", self.initial >= self.floor, || {
            format!("{} is below the floor of {}", self.initial, self.floor)
        })?;
        check("rate.ceiling_kbps", self.ceiling >= self.initial, || {
            format!("{} is below the initial rate of {}", self.ceiling, self.initial)
        })
    }
}
