//! The only clock: all other code takes `now` as an argument.

use std::time::{Duration, SystemTime};

use tautline_units::Instant;

/// A process's monotonic clock, tied to Unix time once, at its start.
///
/// Later steps of the machine's Unix time have no effect: safety must not depend on a clock that
/// jumps.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: std::time::Instant,
    started_unix_nanos: u64,
}

impl Clock {
    /// Starts a clock whose [`Instant::ZERO`] is now.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads a clock")]
    pub fn start() -> Self {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            started: std::time::Instant::now(),
            started_unix_nanos: u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// Returns the current instant.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads a clock")]
    pub fn now(&self) -> Instant {
        let elapsed = std::time::Instant::now().duration_since(self.started);
        Instant::ZERO + elapsed
    }

    /// Returns the Unix time at `instant` in nanoseconds.
    pub fn unix_nanos(&self, instant: Instant) -> u64 {
        self.started_unix_nanos.saturating_add(instant.as_nanos())
    }

    /// Returns the Unix time of [`Instant::ZERO`] by the machine's current clock setting, which may
    /// have been corrected since the start.
    pub fn unix_zero(&self) -> Duration {
        let anew = Self::start();
        let elapsed = anew.started.saturating_duration_since(self.started);
        Duration::from_nanos(anew.started_unix_nanos).saturating_sub(elapsed)
    }

    /// Returns the machine's monotonic clock, the time base of its drivers.
    pub fn monotonic() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    }

    /// Returns the time since `at` on the machine's [monotonic](Self::monotonic) clock; zero if
    /// `at` is in the future.
    pub fn age_of_monotonic(at: Duration) -> Duration {
        Self::monotonic().saturating_sub(at)
    }

    /// Returns the machine's Unix time, which may be set anew at any time.
    pub fn unix() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    }

    /// Returns the time since `at` by the machine's Unix time; zero if `at` is in the future.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads a clock")]
    pub fn age_of_unix(at: SystemTime) -> Duration {
        SystemTime::now().duration_since(at).unwrap_or_default()
    }

    /// Sleeps the calling thread until `instant`; returns at once if it has passed.
    pub fn sleep_until(&self, instant: Instant) {
        let wait = instant.since(self.now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
    }
}

/// Returns the CPU time of the calling thread.
///
/// On a shared machine this measures the cost of work without the time of other processes.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
