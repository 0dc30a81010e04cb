//! Prerequisites of a drive that a vehicle waits for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tautline_units::Instant;

/// A prerequisite of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// Status messages from the machine's guard.
    Guard,
    /// Pictures from their source.
    Pictures,
    /// Registration at the switchboard.
    Switchboard,
    /// Introduction of an operator who takes the vehicle.
    Operator,
    /// An authentic datagram from the introduced operator.
    Session,
}

/// Observed progress towards a session with an operator.
#[derive(Debug, Default)]
pub struct Met(Mutex<Steps>);

#[derive(Debug, Default)]
struct Steps {
    is_registered: bool,
    /// Name of the operator introduced last, until it releases the vehicle; `None` without one.
    introduced: Option<String>,
    /// True if a link over TLS also leads to the introduced operator.
    is_over_tls: bool,
    heard_at: Option<Instant>,
}

/// Missing prerequisites, each with the time since when, and whether it was logged.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    missing: [Option<Missing>; Requirement::ALL.len()],
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    since: Instant,
    told: bool,
}

impl Requirement {
    /// All prerequisites, in the order in which they are met.
    pub const ALL: [Self; 5] =
        [Self::Guard, Self::Pictures, Self::Switchboard, Self::Operator, Self::Session];

    /// Returns the name of the prerequisite in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Pictures => "pictures",
            Self::Switchboard => "switchboard",
            Self::Operator => "operator",
            Self::Session => "session",
        }
    }
}

impl Met {
    /// Records whether the switchboard is connected.
    pub(crate) fn set_registered(&self, is_registered: bool) {
        self.steps().is_registered = is_registered;
    }

    /// Records which operator was introduced, and whether a link over TLS leads to it.
    pub(crate) fn handle_introduction(&self, operator: &str, is_over_tls: bool) {
        let mut steps = self.steps();
        steps.introduced = Some(operator.to_owned());
        steps.is_over_tls = is_over_tls;
    }

    /// Returns whether a link over TLS leads to the operator introduced last.
    pub(crate) fn is_over_tls(&self) -> bool {
        self.steps().is_over_tls
    }

    /// Records that the operator released the vehicle.
    pub(crate) fn handle_release(&self) {
        self.steps().introduced = None;
    }

    /// Records when the latest authentic packet of the operator arrived; `None` if none has.
    pub(crate) fn set_heard_at(&self, heard_at: Option<Instant>) {
        self.steps().heard_at = heard_at;
    }

    /// Returns the name of the operator introduced last, until it releases the vehicle; `None`
    /// without one.
    pub(crate) fn introduced(&self) -> Option<String> {
        self.steps().introduced.clone()
    }

    /// Returns whether a prerequisite is missing, given whether guard messages and pictures arrive.
    /// While packets of an operator arrive, no switchboard, operator or session is missing. An
    /// operator is missing only while registered, and a session only once an operator was
    /// introduced.
    pub(crate) fn lacks(
        &self,
        awaited: Requirement,
        [hears_guard, sees]: [bool; 2],
        now: Instant,
    ) -> bool {
        let Steps { is_registered, introduced, heard_at, .. } = &*self.steps();
        let hears = heard_at.is_some_and(|at| now.since(at) < HEARD);
        match awaited {
            Requirement::Guard => !hears_guard,
            Requirement::Pictures => !sees,
            Requirement::Switchboard => !hears && !is_registered,
            Requirement::Operator => !hears && *is_registered && introduced.is_none(),
            Requirement::Session => !hears && introduced.is_some(),
        }
    }

    fn steps(&self) -> MutexGuard<'_, Steps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Records whether a prerequisite is missing. Returns true once when it has been missing for
    /// [`MISSING_AGE_MAX`].
    pub(crate) fn observe(&mut self, awaited: Requirement, is_missing: bool, now: Instant) -> bool {
        let missing = &mut self.missing[awaited as usize];
        if !is_missing {
            *missing = None;
            return false;
        }
        let missing = missing.get_or_insert(Missing { since: now, told: false });
        let is_due = !missing.told && now.since(missing.since) >= MISSING_AGE_MAX;
        missing.told |= is_due;
        is_due
    }
}

/// Outage after which a missing prerequisite is logged.
const MISSING_AGE_MAX: Duration = Duration::from_secs(5);
/// Age of the operator's newest packet from which the session counts as missing.
const HEARD: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_to_an_operator_is_awaited_until_it_is_taken() {
        let met = Met::default();
        let at = |second: u64| Instant::from_millis(second * 1_000);
        let lacks = |hears_guard: bool, now: Instant| -> Vec<&str> {
            let missing = |awaited: &Requirement| met.lacks(*awaited, [hears_guard, true], now);
            Requirement::ALL.into_iter().filter(missing).map(Requirement::name).collect()
        };
        assert_eq!(lacks(false, at(0)), ["guard", "switchboard"]);
        assert!(met.lacks(Requirement::Pictures, [true, false], at(0)));
        met.set_registered(true);
        assert_eq!(lacks(true, at(1)), ["operator"]);
        met.handle_introduction("anna", false);
        assert_eq!(lacks(true, at(2)), ["session"]);
        met.set_heard_at(Some(at(3)));
        assert_eq!(lacks(true, at(3)), [""; 0]);
        // A session outlives the switchboard.
        met.set_registered(false);
        assert_eq!(lacks(true, at(3)), [""; 0]);
        assert_eq!(lacks(true, at(5)), ["switchboard", "session"]);
        met.handle_release();
        assert_eq!(lacks(true, at(5)), ["switchboard"]);
    }

    #[test]
    fn a_lasting_absence_is_reported_once_each_time() {
        let mut waiting = Waiting::default();
        let mut told = Vec::new();
        for second in 0..20_u64 {
            let is_missing = second != 8;
            if waiting.observe(
                Requirement::Operator,
                is_missing,
                Instant::from_millis(second * 1_000),
            ) {
                told.push(second);
            }
        }
        assert_eq!(told, [5, 14]);
    }
}
