use std::fmt::Debug;
use std::sync::Arc;

use tautline_units::{ByteCount, Duration, Instant};

use super::config::Config;
use super::grant::Grant;
use super::marks::Marked;
use super::sample::Sample;

/// A source of controllers, one for each link.
pub trait Factory: Debug + Send + Sync {
    /// Creates the controller of one link.
    fn controller(&self, config: &Config) -> Box<dyn Controller>;

    /// Returns the factory of one session's controllers, if they share state; `None` by default.
    fn for_session(&self) -> Option<Arc<dyn Factory>> {
        None
    }
}

/// A policy that grants one link's rate.
pub trait Controller: Debug + Send {
    /// Returns the grant before the first report.
    fn initial(&self) -> Grant;

    /// Handles one report and returns the new grant, about every 10 ms while media is sent.
    fn on_report(&mut self, evidence: &Evidence) -> Grant;

    /// Handles that the link has fallen silent, or has been on standby until now, and returns the
    /// new grant: earlier measurements say little about the future.
    fn on_silent(&mut self, now: Instant) -> Grant;

    /// Handles a stall without a queue of our own, and returns the new grant: arrivals say nothing
    /// about the capacity for a while. Treated as a silent link by default.
    fn on_stall(&mut self, now: Instant) -> Grant {
        self.on_silent(now)
    }

    /// Returns whether pacing may stay below the grant while the link has a standing queue; true by
    /// default.
    fn avoids_queues(&self) -> bool {
        true
    }

    /// Returns whether the controller responds to marks as an L4S queue expects ([RFC9331] 4.3), so
    /// that datagrams may be sent as ECT(1); false by default.
    fn answers_marks(&self) -> bool {
        false
    }
}

/// Input of a controller for one report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Rates of the last tenth of a second; `None` in reports between two samples.
    pub sample: Option<Sample>,
    /// Time on the peer's clock at which the report was taken.
    pub taken_at: Instant,
    /// Bytes that had arrived by `taken_at`, since the session began.
    pub received: ByteCount,
    /// Bytes sent by now, since the session began, without MTU probes.
    pub sent: ByteCount,
    /// Send time of the newest datagram that arrived, and the bytes sent up to and including it.
    /// `None` if the report covers no newer datagram.
    pub newest: Option<(Instant, ByteCount)>,
    /// Time from the first to the last send time in the run of missing datagrams that follows the
    /// newest one known from the previous report; zero without such a run.
    pub hole: Duration,
    /// Bytes of everything declared lost, since the session began, that has not arrived since.
    pub lost: ByteCount,
    /// Standing queue: minimum excess of the one-way delays of the last 60 ms over the minimum of
    /// ten seconds.
    pub queue: Duration,
    /// Smoothed difference between the delays of consecutive datagrams.
    pub jitter: Duration,
    /// Longest time by which datagrams of the last ten seconds were sent before newer ones that
    /// overtook them, plus a quarter; zero if that is too short to matter.
    pub reordering: Duration,
    /// Bytes that had not arrived at the time of the report but would have without queueing.
    pub waiting: ByteCount,
    /// Marks on the datagrams that this report is the first to cover; `None` without marking.
    pub marked: Option<Marked>,
    /// Queueing delay: smoothed RTT minus minimum RTT; `None` before the first pong.
    pub queueing: Option<Duration>,
    /// Minimum RTT of the last ten seconds; `None` before the first pong.
    pub rtt_min: Option<Duration>,
    /// Interval between reports that the peer announced; `None` if it is the configured one.
    pub feedback: Option<Duration>,
    /// Time on our clock at which the report is handled.
    pub now: Instant,
}

impl Evidence {
    /// Returns the input of an empty report received at `now`.
    pub fn nothing(now: Instant) -> Self {
        Self {
            sample: None,
            taken_at: now,
            received: ByteCount::ZERO,
            sent: ByteCount::ZERO,
            newest: None,
            hole: Duration::ZERO,
            lost: ByteCount::ZERO,
            queue: Duration::ZERO,
            jitter: Duration::ZERO,
            reordering: Duration::ZERO,
            waiting: ByteCount::ZERO,
            marked: None,
            queueing: None,
            rtt_min: None,
            feedback: None,
            now,
        }
    }
}
