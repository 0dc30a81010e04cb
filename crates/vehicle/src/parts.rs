//! Supervision of the threads and tasks of the vehicle's process: each failure is logged, and the
//! task restarted.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_message::snapshot::Value;
use tautline_net::LogLimit;
use tautline_units::Instant;

/// Failure counts of the supervised tasks, and the state of the source of pictures.
#[derive(Debug, Default)]
pub struct Parts {
    /// Failures of camera and encoders.
    pub video_uplink: AtomicU64,
    /// Failures of the server of the metrics page.
    pub metrics: AtomicU64,
    /// Disconnections from the switchboard.
    pub switchboard: AtomicU64,
    /// Messages of the switchboard that ended in no session: its refusals, malformed messages,
    /// leases and orders that the vehicle refused.
    pub refusals: AtomicU64,
    /// State of the source of pictures.
    pub source: SourceState,
}

/// Presence of the source of pictures.
#[derive(Debug, Default)]
pub struct SourceState {
    losses: AtomicU64,
    /// Time of the loss in nanoseconds of the vehicle's clock plus one; 0 while the source is
    /// present.
    lost_at: AtomicU64,
    told: Mutex<Told>,
}

/// Newest error of a lost source, and its logging.
#[derive(Debug, Default)]
struct Told {
    reason: String,
    /// Error that was logged last.
    logged: String,
    /// True if the present loss was logged.
    is_logged: bool,
    limit: LogLimit,
}

impl SourceState {
    /// Records at `now` that the source has stopped delivering, or still does not deliver, and
    /// counts the first loss of an outage. Logs each loss and each other error, at most one line in
    /// ten seconds, and fewer while the error is the same.
    pub fn handle_lost(&self, error: &anyhow::Error, now: Instant) {
        let lost_at = now.as_nanos().saturating_add(1);
        let was = self.lost_at.compare_exchange(0, lost_at, Ordering::Relaxed, Ordering::Relaxed);
        if was.is_ok() {
            self.losses.fetch_add(1, Ordering::Relaxed);
        }
        let mut told = self.told();
        told.reason = format!("{error:#}");
        let Told { reason, logged, is_logged, limit } = &mut *told;
        if (!*is_logged || reason != logged)
            && let Some(left_out) = limit.take_of(reason, now)
        {
            logged.clone_from(reason);
            *is_logged = true;
            tracing::warn!(
                event = "source lost",
                error = reason,
                left_out,
                "no pictures: the source is lost, and opened again once it is available"
            );
        }
    }

    /// Records that the source has delivered a picture, and logs that an outage is over if its
    /// begin was logged.
    pub fn handle_found(&self, now: Instant) {
        let lost_for = self.lost_for(now);
        self.lost_at.store(0, Ordering::Relaxed);
        let was_logged = std::mem::take(&mut self.told().is_logged);
        if let Some(lost_for) = lost_for.filter(|_| was_logged) {
            tracing::warn!(
                event = "source back",
                ?lost_for,
                "the picture source is available again"
            );
        }
    }

    /// Returns why the source is lost; `None` while it is present.
    pub fn reason(&self) -> Option<String> {
        let is_lost = self.lost_at.load(Ordering::Relaxed) > 0;
        is_lost.then(|| self.told().reason.clone())
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long the source has been lost; `None` while it is present.
    pub fn lost_for(&self, now: Instant) -> Option<Duration> {
        let lost_at = self.lost_at.load(Ordering::Relaxed).checked_sub(1)?;
        Some(now.since(Instant::from_nanos(lost_at)))
    }
}

impl Parts {
    /// Returns the failure counts as values, without those that are zero.
    pub fn values(&self) -> impl Iterator<Item = Value> + '_ {
        let counts = [
            ("camera or encoder failures", &self.video_uplink),
            ("metrics failures", &self.metrics),
            ("switchboard disconnections", &self.switchboard),
            ("switchboard refusals", &self.refusals),
            ("source losses", &self.source.losses),
        ];
        let counts = counts.map(|(name, count)| (name, count.load(Ordering::Relaxed)));
        let failed = counts.into_iter().filter(|(_, count)| *count > 0);
        failed.map(|(name, count)| Value::total(name, count))
    }
}

/// Runs a task forever: counts and logs each failure, then restarts the task after a pause of at
/// most `pause_max`. Repeated failures of the same kind are logged once.
pub(crate) async fn keep(
    name: &str,
    failures: &AtomicU64,
    pause_max: Duration,
    now: impl Fn() -> Instant,
    mut part: impl AsyncFnMut() -> anyhow::Error,
) -> Infallible {
    let mut told = String::new();
    restart(failures, pause_max, now, async || {
        let error = part().await;
        let words = format!("{error:#}");
        if words == told {
            tracing::debug!(error = words, "{name} failed again");
        } else {
            tracing::warn!(error = words, "{name} failed; it is started again");
        }
        told = words;
        error
    })
    .await
}

/// Runs a task forever that logs its own failures: counts each, then restarts the task after a
/// pause of at most `pause_max`.
pub(crate) async fn restart(
    failures: &AtomicU64,
    pause_max: Duration,
    now: impl Fn() -> Instant,
    mut part: impl AsyncFnMut() -> anyhow::Error,
) -> Infallible {
    let mut pauses = Pauses::default();
    loop {
        let begun = now();
        let error = part().await;
        failures.fetch_add(1, Ordering::Relaxed);
        let pause = pauses.next(now().since(begun)).min(pause_max);
        tracing::debug!(error = format!("{error:#}"), ?pause, "restart");
        tokio::time::sleep(pause).await;
    }
}

/// Pauses before restarts: 250 ms, each twice as long as the last, up to 2 s.
#[derive(Debug, Default)]
struct Pauses {
    failures: u32,
}

impl Pauses {
    /// Returns the next pause; `ran` is how long the task ran. After 10 s or more, the pauses start
    /// again with the shortest.
    fn next(&mut self, ran: Duration) -> Duration {
        if ran >= SETTLED {
            self.failures = 0;
        }
        let pause = PAUSE_MIN.saturating_mul(1 << self.failures.min(8)).min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        pause
    }
}

/// Shortest pause before a restart: an operator with a black screen hardly notices it.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// Longest pause before a restart, reached during a longer outage.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Longest pause before the source is opened again: an available source must deliver within 2 s, of
/// which opening takes a part.
pub(crate) const SOURCE_PAUSE_MAX: Duration = Duration::from_millis(500);
/// Running time after which a start counts as successful: the next pause is the shortest again.
const SETTLED: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_failures_restart_with_bounded_backoff() {
        let mut pauses = Pauses::default();
        let at_once = |pauses: &mut Pauses| pauses.next(Duration::ZERO).as_millis();
        let steps: Vec<_> = (0..6).map(|_| at_once(&mut pauses)).collect();
        assert_eq!(steps, [250, 500, 1_000, 2_000, 2_000, 2_000]);
        assert_eq!(pauses.next(SETTLED), PAUSE_MIN);
        assert_eq!(at_once(&mut pauses), 500);
    }

    #[test]
    fn a_source_is_lost_from_its_first_failure_until_it_reopens() {
        let at = Instant::from_millis;
        let source = SourceState::default();
        assert_eq!(source.lost_for(at(1)), None);
        let error = anyhow::anyhow!("unplugged");
        for now in [0, 500] {
            source.handle_lost(&error, at(now));
        }
        assert_eq!(source.lost_for(at(700)), Some(Duration::from_millis(700)));
        assert_eq!(source.reason().as_deref(), Some("unplugged"));
        source.handle_found(at(800));
        assert_eq!((source.lost_for(at(900)), source.reason()), (None, None));
        assert_eq!(source.losses.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_error_is_logged_once_and_another_within_ten_seconds() {
        let at = Instant::from_millis;
        let source = SourceState::default();
        let lost = |words: &'static str, now: u64| {
            source.handle_lost(&anyhow::anyhow!(words), at(now));
            source.told().logged.clone()
        };
        assert_eq!(lost("unplugged", 0), "unplugged");
        assert_eq!(lost("refused", 500), "unplugged");
        assert_eq!(lost("refused", 10_000), "refused");
        // A source that comes and goes.
        for turn in 0..20_u64 {
            source.handle_found(at(10_500 + 1_000 * turn));
            lost("refused", 11_000 + 1_000 * turn);
        }
        assert_eq!(source.losses.load(Ordering::Relaxed), 21);
        let left_out = source.told().limit.end();
        assert!(left_out.is_some_and(|count| count >= 8), "{left_out:?}");
    }

    #[test]
    fn only_failed_parts_are_reported() {
        let parts = Parts::default();
        assert_eq!(parts.values().count(), 0);
        parts.video_uplink.store(2, Ordering::Relaxed);
        let told: Vec<_> = parts.values().collect();
        assert_eq!(told, [Value::total("camera or encoder failures", 2)]);
    }
}
