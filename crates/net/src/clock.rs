//! The one clock: everything else takes `now` as an argument.

use std::time::{Duration, SystemTime};

use tautline_units::Instant;

/// A process's monotonic clock, tied once, at its start, to Unix time.
///
/// Steps of the machine's Unix time after the start change nothing: safety must not hang on a
/// clock that jumps.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: std::time::Instant,
    started_unix_nanos: u64,
}

impl Clock {
    /// Returns a clock whose [`Instant::ZERO`] is now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads a clock")]
    pub fn start() -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            started: std::time::Instant::now(),
            started_unix_nanos: u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Returns the present instant.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads a clock")]
    pub fn now(&self) -> Instant {
        let elapsed = std::time::Instant::now().duration_since(self.started);
        Instant::ZERO + elapsed
    }

    /// Returns nanoseconds of Unix time at `instant`.
    pub fn unix_nanos(&self, instant: Instant) -> u64 {
        self.started_unix_nanos.saturating_add(instant.as_nanos())
    }

    /// Returns the Unix time of [`Instant::ZERO`] by what the machine's clock is set to now: one that was started before
    /// its machine knew the time knows it here.
    pub fn unix_zero(&self) -> Duration {
        let anew = Self::start();
        let elapsed = anew.started.saturating_duration_since(self.started);
        Duration::from_nanos(anew.started_unix_nanos).saturating_sub(elapsed)
    }

    /// Returns the machine's monotonic clock, by which its drivers tell times.
    pub fn monotonic() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    }

    /// Returns how long ago it was `at` by the machine's [monotonic](Self::monotonic) clock.
    pub fn age_of_monotonic(at: Duration) -> Duration {
        Self::monotonic().saturating_sub(at)
    }

    /// Sleeps the calling thread until `instant`; returns at once if it has passed.
    pub fn sleep_until(&self, instant: Instant) {
        let wait = instant.since(self.now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
    }
}

/// Returns what the calling thread has had of a processor so far.
///
/// On a shared machine it tells what work costs, where a clock tells also how long others had it.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
