//! State shared by the operator's threads: the wanted vehicle, the session, and their status.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_guard::config::Latency;
use tautline_guard::frame::{Budget, Status};
use tautline_message::snapshot::End;
use tautline_message::{
    ClockOffset, EmulatedLink, OperatorStatus, SessionState, Snapshot, StripReport, VideoFeedback,
};
use tautline_transport::crypto::PublicKey;
use tautline_units::{ByteCount, Instant};
use tokio::sync::Notify;

use crate::reception::described::DescribedMachine;
use crate::standing::Standing;
use crate::watch::Watch;

/// State of the wanted vehicle, its session and this process that several of the operator's threads
/// write and read.
#[derive(Debug)]
pub(crate) struct Shared {
    strips: Mutex<Strips>,
    /// Notified when a strip has a new loss, so that its encoder learns of it at once.
    lost: Notify,
    pub(super) standing: Mutex<Standing>,
    pub(super) vehicle_key: Mutex<Option<PublicKey>>,
    pub(super) emulated_links: Mutex<Vec<EmulatedLink>>,
    /// Latest snapshot of the vehicle; empty before a session's first.
    pub(super) vehicle: Mutex<Snapshot>,
    /// Newest description and values of the vehicle's machine; empty before a session's first.
    pub(super) machine: Mutex<DescribedMachine>,
    /// Observations of the running probe; `None` while none runs.
    pub(super) watch: Mutex<Option<Watch>>,
    /// Total bytes of all units sent to the vehicle since this process began.
    pub(super) sent_bytes: AtomicU64,
    /// Maximum age of a command in milliseconds: the guard's, or its default before the guard's
    /// first report.
    command_age_max_ms: AtomicU64,
    /// Name of the wanted vehicle; empty if a person has to pick one.
    vehicle_name: Mutex<String>,
    pub(super) expected: Mutex<Expected>,
    /// Arrival time of the vehicle's latest report, if it said that the machine stands still and is
    /// held, or that its guard is silent; `None` otherwise.
    pub(super) rests_at: Mutex<Option<Instant>>,
    /// Time at which a session last reported this operator's status to the consoles; `None` before
    /// the first.
    pub(super) told_at: Mutex<Option<Instant>>,
}

/// Sessions that count. The event loop still reports a session that was left until the leave
/// reaches it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expected {
    /// All sessions count.
    Any,
    /// No session counts: the vehicle was released.
    Nobody,
    /// Only the session under this lease counts; once it has reported anything, all do.
    Under([u8; 16]),
}

impl Expected {
    /// Returns whether events of the session under this lease count. The expected session's first
    /// event ends the restriction.
    pub(super) fn admits(&mut self, lease: &[u8; 16]) -> bool {
        match self {
            Self::Any => true,
            Self::Nobody => false,
            Self::Under(expected) => {
                let is_expected = expected == lease;
                if is_expected {
                    *self = Self::Any;
                }
                is_expected
            }
        }
    }
}

/// Feedback to the vehicle about the strips.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Strips {
    /// Strips that need an IDR: bit n for strip n, counted from the top.
    pub(crate) keyframes: u8,
    /// Reception report of each strip, by its number; `None` for a strip without a report.
    pub(crate) reports: [Option<StripReport>; VideoFeedback::STRIPS_MAX],
}

impl Shared {
    /// Creates the empty state before the session with `vehicle`; its name is empty if it is not
    /// picked yet.
    pub(crate) fn new(vehicle: &str) -> Self {
        Self {
            strips: Mutex::default(),
            lost: Notify::new(),
            standing: Mutex::new(Standing::new(
                SessionState::Registering,
                "waiting for the switchboard",
            )),
            vehicle_key: Mutex::new(None),
            emulated_links: Mutex::new(Vec::new()),
            vehicle: Mutex::new(Snapshot::empty(End::Vehicle)),
            machine: Mutex::default(),
            watch: Mutex::new(None),
            sent_bytes: AtomicU64::new(0),
            command_age_max_ms: AtomicU64::new(default_command_age_ms()),
            vehicle_name: Mutex::new(vehicle.to_owned()),
            expected: Mutex::new(Expected::Any),
            rests_at: Mutex::new(None),
            told_at: Mutex::new(None),
        }
    }

    /// Records the vehicle that a person has picked; it is now awaited.
    pub(crate) fn set_vehicle(&self, name: &str) {
        name.clone_into(&mut lock(&self.vehicle_name));
        self.set_standing(Standing::new(
            SessionState::Waiting,
            "requesting it from the switchboard",
        ));
    }

    /// Forgets the released vehicle and its reports; its later events do not count. The guard's
    /// default limits the age of commands again, and a person has to pick a vehicle.
    pub(crate) fn leave(&self) {
        // Held until the end, because the loop's thread may be reporting at the same time.
        let mut expected = lock(&self.expected);
        *expected = Expected::Nobody;
        lock(&self.vehicle_name).clear();
        *lock(&self.vehicle_key) = None;
        *lock(&self.vehicle) = Snapshot::empty(End::Vehicle);
        *lock(&self.machine) = DescribedMachine::default();
        *lock(&self.rests_at) = None;
        self.command_age_max_ms.store(default_command_age_ms(), Ordering::Relaxed);
        self.set_standing(Standing::new(SessionState::Waiting, PICK));
    }

    /// Makes the session under this lease the next that counts, if a vehicle was released before;
    /// otherwise does nothing.
    pub(crate) fn expect(&self, lease: [u8; 16]) {
        let mut expected = lock(&self.expected);
        if *expected != Expected::Any {
            *expected = Expected::Under(lease);
        }
    }

    /// Returns whether the vehicle may be released: it recently reported that it stands still and
    /// is held or that its guard is silent, or no session is established.
    pub(crate) fn may_leave(&self, now: Instant) -> bool {
        let rests = lock(&self.rests_at).is_some_and(|at| now.since(at) < Status::MACHINE_AGE_MAX);
        rests || lock(&self.standing).state != SessionState::Established
    }

    /// Returns the name of the wanted vehicle; empty if a person has to pick one.
    pub(crate) fn vehicle_name(&self) -> String {
        lock(&self.vehicle_name).clone()
    }

    /// Returns the idle status: that of the operator while no session reports one. `None` if a
    /// session reported one in the 250 ms before `now`.
    pub(crate) fn idle_status(&self, unix_ns: u64, now: Instant) -> Option<OperatorStatus> {
        let is_told = lock(&self.told_at).is_some_and(|at| now.since(at) < IDLE_MIN);
        (!is_told).then(|| self.status(unix_ns, None))
    }

    pub(super) fn status(&self, unix_ns: u64, clock: Option<ClockOffset>) -> OperatorStatus {
        let standing = self.standing();
        OperatorStatus {
            unix_ns,
            vehicle_name: self.vehicle_name(),
            session_state: standing.state,
            session_reason: standing.reason,
            clock,
            emulated_links: lock(&self.emulated_links).clone(),
        }
    }

    /// Records the maximum age of a command in the guard's latency budget, at least 1 ms; does
    /// nothing without a budget.
    pub(super) fn note_budget(&self, budget: Option<Budget>) {
        if let Some(Budget { command_age_max, .. }) = budget {
            // A deadline of zero would be refused.
            let millis = (command_age_max.as_millis() as u64).max(1);
            self.command_age_max_ms.store(millis, Ordering::Relaxed);
        }
    }

    /// Returns the maximum age of a command: the guard's default, or its own limit once it has
    /// reported.
    pub(crate) fn command_age_max(&self) -> Duration {
        Duration::from_millis(self.command_age_max_ms.load(Ordering::Relaxed))
    }

    /// Returns the reports on the strips, and which strips need an IDR.
    pub(crate) fn strips(&self) -> Strips {
        *lock(&self.strips)
    }

    /// Waits for the next new loss in a strip; returns at once if there was one since the last
    /// call.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }

    pub(super) fn set_strips(&self, strips: Strips) {
        let before = std::mem::replace(&mut *lock(&self.strips), strips);
        let lost = |report: &Option<StripReport>| {
            let report = report.filter(StripReport::is_corrupt)?;
            Some(report.newest.wrapping_sub(report.lost_before?.into()))
        };
        let mut both = strips.reports.iter().zip(&before.reports);
        if both.any(|(now, before)| lost(now).is_some() && lost(now) != lost(before)) {
            self.lost.notify_one();
        }
    }

    /// Sets the state of the session and its reason, in any case.
    pub(crate) fn set_standing(&self, standing: Standing) {
        *lock(&self.standing) = standing;
    }

    /// Sets the state of the session, unless it is established: the vehicle's own traffic is more
    /// reliable evidence.
    pub(crate) fn set_standing_unless_heard(&self, state: SessionState, reason: &str) {
        let mut standing = lock(&self.standing);
        if standing.state != SessionState::Established {
            *standing = Standing::new(state, reason);
        }
    }

    /// Sets the session's state and its reason while that is registering or waiting; does nothing
    /// in any other state, which a vehicle has only once it was introduced.
    pub(crate) fn set_waiting(&self, state: SessionState, reason: &str) {
        let mut standing = lock(&self.standing);
        if matches!(standing.state, SessionState::Registering | SessionState::Waiting) {
            *standing = Standing::new(state, reason);
        }
    }

    /// Records why nothing arrives from an introduced vehicle, and returns true, if the session is
    /// in the state connecting; otherwise does nothing and returns false.
    pub(crate) fn set_unheard(&self, reason: &str) -> bool {
        let mut standing = lock(&self.standing);
        let is_unheard = standing.state == SessionState::Connecting;
        if is_unheard {
            *standing = Standing::new(SessionState::Connecting, reason);
        }
        is_unheard
    }

    /// Returns the key of the wanted vehicle, once this process has had a session with it; `None`
    /// before, and after its release.
    pub(crate) fn vehicle_key(&self) -> Option<PublicKey> {
        *lock(&self.vehicle_key)
    }

    /// Returns the state of the session and its reason.
    pub(crate) fn standing(&self) -> Standing {
        lock(&self.standing).clone()
    }

    /// Returns the latest snapshot of the vehicle; an empty one before a session's first.
    pub(crate) fn vehicle(&self) -> Snapshot {
        lock(&self.vehicle).clone()
    }

    /// Returns the newest description and values of the vehicle's machine.
    pub(crate) fn machine(&self) -> DescribedMachine {
        lock(&self.machine).clone()
    }

    /// Returns whether a probe observes the session.
    pub(crate) fn is_watched(&self) -> bool {
        lock(&self.watch).is_some()
    }

    /// Returns the place of a probe's observations; `None` in it while no probe runs.
    pub(crate) fn watch(&self) -> &Mutex<Option<Watch>> {
        &self.watch
    }

    /// Adds the bytes of a unit sent to the vehicle to the total.
    pub(crate) fn note_sent(&self, bytes: ByteCount) {
        self.sent_bytes.fetch_add(bytes.get(), Ordering::Relaxed);
    }

    /// Records the emulator's report of its links.
    pub(crate) fn set_emulated_links(&self, links: Vec<EmulatedLink>) {
        *lock(&self.emulated_links) = links;
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the guard's default of the maximum command age in milliseconds, for the time until it
/// has reported its own.
fn default_command_age_ms() -> u64 {
    Latency::default().command_age_max.as_millis() as u64
}

/// Status text while a person has to pick a vehicle.
pub(crate) const PICK: &str = "no vehicle is picked: pick one from the list";
/// Age of a session's newest report of the operator's status from which the [idle
/// status](Shared::idle_status) replaces it: more than the 100 ms between two reports.
const IDLE_MIN: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vehicle_is_released_only_if_held_or_silent() {
        let (shared, now) = (Shared::new("car-1"), Instant::from_millis(5_000));
        assert!(shared.may_leave(now), "nothing is heard of it");
        shared.set_standing(Standing::new(SessionState::Established, ""));
        assert!(!shared.may_leave(now));
        *lock(&shared.rests_at) = Some(now);
        assert!(shared.may_leave(now + Duration::from_millis(299)));
        assert!(!shared.may_leave(now + Status::MACHINE_AGE_MAX), "that was long ago");
        let admits = |lease: u8| lock(&shared.expected).admits(&[lease; 16]);
        assert!(admits(1));
        shared.expect([2; 16]);
        assert!(admits(1), "what runs goes on");
        shared.leave();
        assert!(!admits(1) && !admits(2));
        assert_eq!((shared.standing().state, &*shared.vehicle_name()), (SessionState::Waiting, ""));
        shared.expect([3; 16]);
        assert!(!admits(1) && admits(3) && admits(4), "from then on all");
    }
}
