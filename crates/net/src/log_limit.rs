use std::time::Duration;

use tautline_units::Instant;

/// A limit on how often a line of one kind is logged, so that whoever causes it cannot fill a disk.
///
/// ```
/// use tautline_net::LogLimit;
/// use tautline_units::Instant;
///
/// let mut limit = LogLimit::default();
/// assert_eq!(limit.take(Instant::from_millis(0)), Some(0));
/// assert_eq!(limit.take(Instant::from_millis(9_999)), None);
/// assert_eq!(limit.take(Instant::from_millis(10_000)), Some(1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct LogLimit {
    logged_at: Option<Instant>,
    left_out: u64,
}

impl LogLimit {
    /// Returns how many lines were left out since the last one, if a line may be logged at `now`; else
    /// counts it as left out. One in ten seconds may.
    pub fn take(&mut self, now: Instant) -> Option<u64> {
        if self.logged_at.is_some_and(|at| now.since(at) < INTERVAL) {
            self.left_out += 1;
            return None;
        }
        self.logged_at = Some(now);
        Some(std::mem::take(&mut self.left_out))
    }
}

const INTERVAL: Duration = Duration::from_secs(10);
