use std::fmt::Debug;

use tautline_units::{ByteCount, Duration, Instant, Probability};

use super::grant::Grant;
use super::marks::Marked;
use super::sample::Sample;

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

    /// Returns whether it answers marks as an L4S queue expects ([RFC9331] 4.3), so that what leaves may be ECT(1); no by
    /// default.
    fn answers_marks(&self) -> bool {
        false
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
    /// What the network marked of the datagrams of which the report is the first to tell; `None` while it marks none.
    pub marked: Option<Marked>,
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

#[cfg(test)]
impl Evidence {
    /// Returns what a report shows that came at `now` and tells of nothing.
    pub(super) fn nothing(now: Instant) -> Self {
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
            in_flight: ByteCount::ZERO,
            marked: None,
            loss: Probability::ZERO,
            queueing: None,
            rtt_min: None,
            may_probe: true,
            feedback: None,
            now,
        }
    }
}
