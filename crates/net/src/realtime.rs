//! Realtime scheduling of a thread, if the system permits it.

use rustix::mm::{MlockAllFlags, mlockall};
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};

/// Scheduling priority of a thread that others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// Above `Network` and ordinary threads, below the kernel's own: a delay of such a thread stops
    /// the machine.
    Safety,
    /// Above ordinary threads, below `Safety`: an emulated network must not add its own lateness.
    Network,
}

/// Raises the calling thread above all less urgent ones (`SCHED_FIFO`). Without the permission it
/// logs a warning that names `what`, and changes nothing.
pub fn raise_thread(what: &str, urgency: Urgency) {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let raised = ThreadPriorityValue::try_from(urgency.priority()).ok().and_then(|priority| {
        let priority = ThreadPriority::Crossplatform(priority);
        set_thread_priority_and_policy(thread_native_id(), priority, fifo).ok()
    });
    if raised.is_none() {
        tracing::warn!(
            "{what} shares the processors with all other threads: the system does not allow \
             SCHED_FIFO (CAP_SYS_NICE or RLIMIT_RTPRIO)"
        );
    }
}

/// Locks the process's current memory against swapping. Without the permission it logs a warning
/// that names `what`, and changes nothing.
pub fn lock_memory(what: &str) {
    // Not later allocations: beyond the limit they would fail instead of being swapped.
    if let Err(error) = mlockall(MlockAllFlags::CURRENT) {
        tracing::warn!(
            %error,
            "{what} may be swapped out: the system does not lock its memory (CAP_IPC_LOCK or \
             RLIMIT_MEMLOCK)"
        );
    }
}

impl Urgency {
    /// Returns the realtime priority of the thread, 1 to 99.
    fn priority(self) -> u8 {
        match self {
            Self::Safety => 20,
            Self::Network => 10,
        }
    }
}
