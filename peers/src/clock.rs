//! The one place that reads a clock.

use std::time::{Duration, Instant};

/// Returns how long `work` took.
#[allow(clippy::disallowed_methods)]
pub(crate) fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}
