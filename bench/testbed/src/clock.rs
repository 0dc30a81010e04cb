//! The machine's monotonic clock, which both ends of a flow share.

use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Returns the machine's monotonic time, in nanoseconds.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * NANOS + time.tv_nsec as u64
}

/// Sleeps until `at`, in nanoseconds; returns immediately if it is in the past.
pub(crate) fn sleep_until(at: u64) {
    let time = Timespec { tv_sec: (at / NANOS) as i64, tv_nsec: (at % NANOS) as i64 };
    // The program handles no signal that would end it early.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &time);
}

/// Sets the calling thread's timer slack to 1 ns, so that the kernel does not coalesce its sleeps.
pub(crate) fn wake_exactly() {
    // If this cannot be written, sleeps are 50 us late, which shows in the log.
    let _ = std::fs::write("/proc/self/timerslack_ns", "1");
}

/// Converts a duration to whole nanoseconds.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

const NANOS: u64 = 1_000_000_000;
