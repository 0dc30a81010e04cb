use std::sync::Arc;

use tautline_units::Duration;

use super::leg::Leg;
use super::one_way::OneWay;

/// One answered probe of the delay of a leg.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Leg whose delay was measured.
    pub leg: Leg,
    /// Name of the far end, or its key if no name is known.
    pub peer: Arc<str>,
    /// Name of the link; empty if there is only one.
    pub link: Arc<str>,
    /// Send time of the probe, in Unix time by the sender's clock.
    pub sent_at: Duration,
    /// Arrival time by the far end's clock, since the start of its process; `None` from an older
    /// build.
    pub seen_at: Option<Duration>,
    /// Arrival time of the answer, in Unix time by the clock of the probe's sender.
    pub back_at: Duration,
    /// Time from the probe's arrival to its answer, as reported by the far end.
    pub held: Duration,
    /// One-way delays; `None` if the two clocks were not compared.
    pub one_way: Option<OneWay>,
}

impl Sample {
    /// Returns the round-trip time of probe and answer, without the far end's processing time.
    pub fn round_trip(&self) -> Duration {
        self.back_at.saturating_sub(self.sent_at).saturating_sub(self.held)
    }
}
