//! The only place that reads a clock.

use std::time::{Duration, Instant};

/// Returns the duration of `work`.
#[allow(clippy::disallowed_methods)]
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
