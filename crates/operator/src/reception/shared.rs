//! What the operator's threads know together: the vehicle that is wanted, the session, and what came of either.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_message::snapshot::End;
use tautline_message::{
    Budget, ClockOffset, EmulatedLink, OperatorStatus, SessionState, Snapshot, StripReport,
    VideoFeedback,
};
use tautline_transport::crypto::PublicKey;
use tautline_units::{ByteCount, Instant};
use tokio::sync::Notify;

use crate::probe::watch::Watch;
use crate::rendezvous::Standing;

/// What other threads put in and take out.
#[derive(Debug)]
pub(crate) struct Shared {
    strips: Mutex<Strips>,
    /// Woken when a strip has lost something: its encoder is to hear of that at once.
    lost: Notify,
    pub(super) standing: Mutex<Standing>,
    pub(super) vehicle_key: Mutex<Option<PublicKey>>,
    pub(super) emulated_links: Mutex<Vec<EmulatedLink>>,
    /// What the vehicle told last of its side.
    pub(super) vehicle: Mutex<Snapshot>,
    /// What a probe notes, while one runs.
    pub(super) watch: Mutex<Option<Watch>>,
    /// Bytes of all units that were handed over.
    pub(super) sent_bytes: AtomicU64,
    /// How old a command may be, as the guard says, ms.
    command_age_max_ms: AtomicU64,
    /// The vehicle that is wanted; empty: a person has to pick one.
    vehicle_name: Mutex<String>,
    pub(super) expected: Mutex<Expected>,
    /// When the vehicle last told that it is held, or that nobody holds it who could let it drive.
    pub(super) rests_at: Mutex<Option<Instant>>,
    /// When a session last told where it stands.
    pub(super) told_at: Mutex<Option<Instant>>,
}

/// Which sessions count: the loop tells of one that was left until it has heard that it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expected {
    /// Whatever there is.
    Any,
    /// None: the vehicle was let go of.
    Nobody,
    /// The one under this lease, and from then on any.
    Under([u8; 16]),
}

impl Expected {
    /// Returns whether what comes of the session under this lease counts.
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

/// What the vehicle is to know of the strips.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Strips {
    /// Those that need an IDR, as bits.
    pub(crate) keyframes: u8,
    /// What has come of each.
    pub(crate) reports: [Option<StripReport>; VideoFeedback::STRIPS_MAX],
}

impl Shared {
    /// Returns what is known before the session with `vehicle`, or with one that is yet to be picked: nothing.
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
            watch: Mutex::new(None),
            sent_bytes: AtomicU64::new(0),
            command_age_max_ms: AtomicU64::new(COMMAND_AGE_MAX_MS),
            vehicle_name: Mutex::new(vehicle.to_owned()),
            expected: Mutex::new(Expected::Any),
            rests_at: Mutex::new(None),
            told_at: Mutex::new(None),
        }
    }

    /// Takes note of the vehicle that a person has picked.
    pub(crate) fn set_vehicle(&self, name: &str) {
        name.clone_into(&mut lock(&self.vehicle_name));
        self.set_standing(Standing::new(SessionState::Waiting, "the switchboard is asked for it"));
    }

    /// Forgets the vehicle that was let go of: nothing that still comes of it counts.
    pub(crate) fn leave(&self) {
        // Held until the end: the loop's thread may be in the midst of what it tells.
        let mut expected = lock(&self.expected);
        *expected = Expected::Nobody;
        lock(&self.vehicle_name).clear();
        *lock(&self.vehicle_key) = None;
        *lock(&self.vehicle) = Snapshot::empty(End::Vehicle);
        *lock(&self.rests_at) = None;
        self.command_age_max_ms.store(COMMAND_AGE_MAX_MS, Ordering::Relaxed);
        self.set_standing(Standing::new(SessionState::Waiting, PICK));
    }

    /// Takes note that the session under this lease is the one to come, if another was let go of.
    pub(crate) fn expect(&self, lease: [u8; 16]) {
        let mut expected = lock(&self.expected);
        if *expected != Expected::Any {
            *expected = Expected::Under(lease);
        }
    }

    /// Returns whether the vehicle may be let go of: it is held, or nothing is heard of it.
    pub(crate) fn may_leave(&self, now: Instant) -> bool {
        let rests = lock(&self.rests_at).is_some_and(|at| now.since(at) < MACHINE_AGE_MAX);
        rests || lock(&self.standing).state != SessionState::Established
    }

    /// Returns the name of the vehicle that is wanted; empty if a person has to pick one.
    pub(crate) fn vehicle_name(&self) -> String {
        lock(&self.vehicle_name).clone()
    }

    /// Returns the status of an operator without a session, unless one has told its own a moment ago.
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

    /// Takes the guard's latency budget, if it was told.
    pub(super) fn note_budget(&self, budget: Option<Budget>) {
        if let Some(Budget { command_age_max, .. }) = budget {
            // A deadline of nothing would be refused.
            let millis = (command_age_max.as_millis() as u64).max(1);
            self.command_age_max_ms.store(millis, Ordering::Relaxed);
        }
    }

    /// Returns how old a command may be: as the vehicle's guard says, once it has.
    pub(crate) fn command_age_max(&self) -> Duration {
        Duration::from_millis(self.command_age_max_ms.load(Ordering::Relaxed))
    }

    /// Returns what has come of the strips, and which need an IDR.
    pub(crate) fn strips(&self) -> Strips {
        *lock(&self.strips)
    }

    /// Resolves when a strip has lost something since it last did.
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

    /// Sets where the session stands.
    pub(crate) fn set_standing(&self, standing: Standing) {
        *lock(&self.standing) = standing;
    }

    /// Sets where the session stands, unless the vehicle is heard: its own traffic is the better
    /// witness.
    pub(crate) fn set_standing_unless_heard(&self, state: SessionState, reason: &str) {
        let mut standing = lock(&self.standing);
        if standing.state != SessionState::Established {
            *standing = Standing::new(state, reason);
        }
    }

    /// Sets what is waited for, if nothing has come of a vehicle yet.
    pub(crate) fn set_waiting(&self, state: SessionState, reason: &str) {
        let mut standing = lock(&self.standing);
        if matches!(standing.state, SessionState::Registering | SessionState::Waiting) {
            *standing = Standing::new(state, reason);
        }
    }

    /// Says why a vehicle that was introduced is not heard; false if it has been heard since.
    pub(crate) fn set_unheard(&self, reason: &str) -> bool {
        let mut standing = lock(&self.standing);
        let is_unheard = standing.state == SessionState::Connecting;
        if is_unheard {
            *standing = Standing::new(SessionState::Connecting, reason);
        }
        is_unheard
    }

    /// Returns the key of the vehicle that this process has had a session with.
    pub(crate) fn vehicle_key(&self) -> Option<PublicKey> {
        *lock(&self.vehicle_key)
    }

    /// Returns where the session stands.
    pub(crate) fn standing(&self) -> Standing {
        lock(&self.standing).clone()
    }

    /// Returns what the vehicle told last of its side of the session.
    pub(crate) fn vehicle(&self) -> Snapshot {
        lock(&self.vehicle).clone()
    }

    /// Returns whether a probe notes what comes.
    pub(crate) fn is_watched(&self) -> bool {
        lock(&self.watch).is_some()
    }

    /// Returns what a probe notes, while one runs.
    pub(crate) fn watch(&self) -> &Mutex<Option<Watch>> {
        &self.watch
    }

    /// Notes that a unit of `bytes` is handed over.
    pub(crate) fn note_sent(&self, bytes: ByteCount) {
        self.sent_bytes.fetch_add(bytes.get(), Ordering::Relaxed);
    }

    /// Sets what the emulator says of its links.
    pub(crate) fn set_emulated_links(&self, links: Vec<EmulatedLink>) {
        *lock(&self.emulated_links) = links;
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a person is told who has to pick a vehicle.
pub(crate) const PICK: &str = "no vehicle is picked: pick one of the list";
/// A session tells where it stands ten times a second.
const IDLE_MIN: Duration = Duration::from_millis(250);
/// A machine says every 10 ms how fast it is.
pub(super) const MACHINE_AGE_MAX: Duration = Duration::from_millis(300);
/// Until the guard has told its own: its default.
const COMMAND_AGE_MAX_MS: u64 = 250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vehicle_is_let_go_of_when_it_is_held_or_not_heard_and_what_still_comes_counts_for_nothing()
    {
        let (shared, now) = (Shared::new("car-1"), Instant::from_millis(5_000));
        assert!(shared.may_leave(now), "nothing is heard of it");
        shared.set_standing(Standing::new(SessionState::Established, ""));
        assert!(!shared.may_leave(now));
        *lock(&shared.rests_at) = Some(now);
        assert!(shared.may_leave(now + Duration::from_millis(299)));
        assert!(!shared.may_leave(now + MACHINE_AGE_MAX), "that was long ago");
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
