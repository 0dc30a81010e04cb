//! The parts of a vehicle's process that may fail: each is started again, and said.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tautline_message::snapshot::Value;
use tautline_units::Instant;

/// How often each part has failed.
#[derive(Debug, Default)]
pub struct Parts {
    /// Camera and encoders.
    pub eyes: AtomicU64,
    /// The page of metrics.
    pub metrics: AtomicU64,
    /// The connection to the switchboard.
    pub switchboard: AtomicU64,
    /// What the switchboard refused.
    pub refusals: AtomicU64,
}

impl Parts {
    /// Returns how often each part has failed, as values; of one that never did, nothing.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        let counts = [
            ("camera or encoder failures", &self.eyes),
            ("metrics failures", &self.metrics),
            ("switchboard disconnections", &self.switchboard),
            ("switchboard refusals", &self.refusals),
        ];
        let counts = counts.map(|(name, count)| (name, count.load(Ordering::Relaxed)));
        let failed = counts.into_iter().filter(|(_, count)| *count > 0);
        failed.map(|(name, count)| Value::total(name, count))
    }
}

/// Runs a part for ever: after each failure it is counted, told, and started again a little later.
pub(crate) async fn keep(
    name: &str,
    failures: &AtomicU64,
    now: impl Fn() -> Instant,
    mut part: impl AsyncFnMut() -> anyhow::Error,
) -> Infallible {
    let mut pauses = Pauses::default();
    loop {
        let begun = now();
        let error = part().await;
        failures.fetch_add(1, Ordering::Relaxed);
        let pause = pauses.next(now().since(begun));
        tracing::warn!(error = format!("{error:#}"), again_in = ?pause, "{name} failed");
        tokio::time::sleep(pause).await;
    }
}

/// How long to wait before a part is started again: twice as long each time, up to a bound.
#[derive(Debug, Default)]
struct Pauses {
    failures: u32,
}

impl Pauses {
    /// Returns the next pause, after the part has run for so long.
    fn next(&mut self, ran: Duration) -> Duration {
        if ran >= SETTLED {
            self.failures = 0;
        }
        let pause = PAUSE_MIN.saturating_mul(1 << self.failures.min(8)).min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        pause
    }
}

/// A driver that looks at a black screen notices little of it.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// A camera that is plugged in again is seen with two seconds later.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A part that ran for so long was started well.
const SETTLED: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_again_and_again_is_started_ever_more_seldom_up_to_a_bound() {
        let mut pauses = Pauses::default();
        let at_once = |pauses: &mut Pauses| pauses.next(Duration::ZERO).as_millis();
        let steps: Vec<_> = (0..6).map(|_| at_once(&mut pauses)).collect();
        assert_eq!(steps, [250, 500, 1_000, 2_000, 2_000, 2_000]);
        assert_eq!(pauses.next(SETTLED), PAUSE_MIN);
        assert_eq!(at_once(&mut pauses), 500);
    }

    #[test]
    fn only_what_failed_is_told() {
        let parts = Parts::default();
        assert_eq!(parts.values().count(), 0);
        parts.eyes.store(2, Ordering::Relaxed);
        let told: Vec<_> = parts.values().collect();
        assert_eq!(told, [Value::total("camera or encoder failures", 2)]);
    }
}
