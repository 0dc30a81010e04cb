use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tautline_units::Instant;

/// A timer with the kernel's own resolution; epoll's timeouts have only milliseconds.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: OwnedFd,
    armed: Option<Instant>,
}

impl Timer {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self { fd: timerfd_create(TimerfdClockId::Monotonic, flags)?, armed: None })
    }

    pub(crate) fn register(&self, registry: &Registry, token: Token) -> std::io::Result<()> {
        registry.register(&mut SourceFd(&self.fd.as_raw_fd()), token, Interest::READABLE)
    }

    /// Sets the timer to `next`, or stops it for `None`; makes no system call if nothing changes. A
    /// time in the past fires immediately.
    pub(crate) fn arm(&mut self, next: Option<Instant>, now: Instant) -> rustix::io::Result<()> {
        if self.armed == next {
            return Ok(());
        }
        // Zero would stop the timer: a past time fires after a nanosecond.
        let wait = next.map(|at| at.since(now).clamp(Duration::from_nanos(1), WAIT_MAX));
        let it_value = timespec(wait.unwrap_or_default());
        let it_interval = timespec(Duration::ZERO);
        let value = Itimerspec { it_interval, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &value)?;
        self.armed = next;
        Ok(())
    }

    /// Marks the timer as expired, so that the next [`arm`](Self::arm) sets it anew. The kernel's
    /// count of expiries need not be read: epoll is edge-triggered, and the next setting clears it.
    pub(crate) fn acknowledge(&mut self) {
        self.armed = None;
    }
}

/// Maximum time until the timer fires: a day. Packets are never held longer, and it fits the
/// kernel's type.
const WAIT_MAX: Duration = Duration::from_secs(86_400);

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
