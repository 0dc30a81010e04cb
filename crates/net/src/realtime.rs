//! A thread that must not wait for others, where the system allows it.

use rustix::mm::{MlockAllFlags, mlockall};
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

/// How soon a thread must run that others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Behind the kernel's own: without it a machine stops.
    Safety,
    /// Behind those, before ordinary threads: what stands in for a network must not be late itself.
    Network,
}

/// Lets the calling thread go before all that are not as urgent (`SCHED_FIFO`). What the system does
/// not allow is said once, in the log, and nothing else changes.
pub fn raise_thread(what: &str, urgency: Urgency) {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let raised = ThreadPriorityValue::try_from(urgency.priority()).ok().and_then(|priority| {
        let priority = ThreadPriority::Crossplatform(priority);
        set_thread_priority_and_policy(thread_native_id(), priority, fifo).ok()
    });
    if raised.is_none() {
        tracing::warn!(
            "{what} shares the processors with all others: the system allows no SCHED_FIFO \
             (CAP_SYS_NICE or RLIMIT_RTPRIO)"
        );
    }
}

/// Keeps what the process has in memory now from being swapped out. What the system does not allow is
/// said once, in the log.
pub fn lock_memory(what: &str) {
    // Not what comes later: beyond the limit an allocation would fail, where now it may be swapped.
    if let Err(error) = mlockall(MlockAllFlags::CURRENT) {
        tracing::warn!(
            %error,
            "{what} may be swapped out: the system locks no memory (CAP_IPC_LOCK or RLIMIT_MEMLOCK)"
        );
    }
}

impl Urgency {
    /// Returns its priority of 99, in hundredths of the range.
    fn priority(self) -> u8 {
        match self {
            Self::Safety => 20,
            Self::Network => 10,
        }
    }
}
