use tautline_transport::clock::ClockEstimate;
use tautline_units::{Duration, Instant};

/// A round trip split into one-way delays, by compared clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneWay {
    /// Outbound delay in nanoseconds. A negative value shows that a clock drifts by more than
    /// assumed, at least by this amount.
    pub out_nanos: i64,
    /// Return delay in nanoseconds. A negative value shows that a clock drifts by more than
    /// assumed, at least by this amount.
    pub in_nanos: i64,
    /// Maximum error of each delay: by what one is too long, the other is too short. It is valid
    /// only if neither delay is negative.
    pub error: Duration,
}

impl OneWay {
    /// Splits the round trip of a probe: sent (local clock), seen and answered (far end's clock),
    /// and returned (local clock).
    pub fn of([sent, seen, answered, back]: [Instant; 4], clock: &ClockEstimate) -> Self {
        let offset = clock.offset_nanos();
        Self {
            out_nanos: seen.signed_nanos_since(sent).saturating_sub(offset),
            in_nanos: back.signed_nanos_since(answered).saturating_add(offset),
            error: clock.error(),
        }
    }
}
