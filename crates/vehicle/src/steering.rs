//! The steering check: when a person is asked for it, and the file that records it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use tautline_guard::Mode;
use tautline_guard::act::{Act, Agreement, Deed, Outcome};
use tautline_guard::frame::Status;

use crate::config::SteeringCheck;

/// State of the steering check.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    asks: Option<SteeringCheck>,
    /// File that records the check across restarts.
    file: Option<PathBuf>,
    is_checked: AtomicBool,
    /// True from a completed check until its file has been requested for writing.
    is_unkept: AtomicBool,
}

impl Steering {
    /// Returns the state recorded in `file`, whose existence says that the steering was checked; a
    /// file that cannot be accessed counts as absent.
    pub(crate) fn open(asks: SteeringCheck, file: Option<PathBuf>) -> Self {
        let is_kept = file.as_ref().is_some_and(|file| file.exists());
        let is_checked = AtomicBool::new(is_kept && asks == SteeringCheck::FirstDrive);
        Self { asks: Some(asks), file, is_checked, is_unkept: AtomicBool::new(false) }
    }

    /// Handles the guard's status and the newest act proposed to it: an answer that the steering
    /// agrees, or that the person cannot see it, is recorded once the guard has accepted it. If
    /// every drive is to be checked, the mode "held" resets it.
    pub(crate) fn handle(&self, status: &Status, act: Option<&Act>) {
        if self.asks == Some(SteeringCheck::EveryDrive) && status.mode == Mode::Held {
            self.is_checked.store(false, Ordering::Relaxed);
        }
        let Some((act, answer)) = act.zip(status.answer) else { return };
        let is_done = answer.outcome == Outcome::Done
            && (answer.console, answer.number) == (act.console, act.number);
        match act.deed {
            Deed::Steering(Agreement::Agrees | Agreement::Unseen) if is_done => {
                let was_checked = self.is_checked.swap(true, Ordering::Relaxed);
                self.is_unkept.fetch_or(!was_checked, Ordering::Relaxed);
            }
            Deed::Steering(_)
            | Deed::CheckSteering
            | Deed::Arm
            | Deed::Reset(_)
            | Deed::Park
            | Deed::TakeOver
            | Deed::Request(_) => {}
        }
    }

    /// Returns whether a person who has armed the machine must be asked to check the steering.
    pub(crate) fn is_due(&self) -> bool {
        let asks = self.asks.is_some_and(|asks| asks != SteeringCheck::Never);
        asks && !self.is_checked.load(Ordering::Relaxed)
    }

    /// Returns the file in which to [`keep`] the check, once per check; `None` otherwise, and
    /// without a file.
    pub(crate) fn take_unkept(&self) -> Option<PathBuf> {
        let is_unkept = self.is_unkept.swap(false, Ordering::Relaxed);
        self.file.clone().filter(|_| is_unkept)
    }
}

/// Records in `file` that the steering was checked.
///
/// # Errors
/// Returns the system's error.
pub(crate) fn keep(file: &Path) -> anyhow::Result<()> {
    let write = || {
        let mut open = std::fs::File::create(file)?;
        open.write_all(b"steering checked\n")?;
        open.sync_all()
    };
    write().with_context(|| format!("steering_checked: cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use tautline_guard::config::Config;
    use tautline_guard::identity::{ActNumber, Console, Tick};
    use tautline_guard::{Guard, Input};
    use tautline_units::Instant;

    use super::*;

    fn said(agreement: Agreement, outcome: Outcome) -> (Status, Act) {
        let mut guard = Guard::new(Config::car(), Tick::new(7).unwrap());
        let status = guard.step(&Input::default(), Instant::from_millis(10)).status;
        let (console, number) = (Console::new(9).unwrap(), ActNumber::new(3).unwrap());
        let answer = tautline_guard::act::Answer { console, number, outcome };
        let act = Act { console, number, deed: Deed::Steering(agreement), age: None };
        (Status { answer: Some(answer), mode: Mode::Armed, ..status }, act)
    }

    #[test]
    fn a_machine_is_checked_once_and_that_outlives_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("steering");
        let open = || Steering::open(SteeringCheck::FirstDrive, Some(file.clone()));
        let steering = open();
        for (agreement, outcome) in [
            (Agreement::Wrong, Outcome::Done),
            (Agreement::Agrees, Outcome::Refused(tautline_guard::act::Blocker::Mode)),
        ] {
            let (status, act) = said(agreement, outcome);
            steering.handle(&status, Some(&act));
            assert!(steering.is_due() && steering.take_unkept().is_none());
        }
        let (status, act) = said(Agreement::Agrees, Outcome::Done);
        steering.handle(&status, None);
        assert!(steering.is_due(), "another's act");
        steering.handle(&status, Some(&act));
        steering.handle(&status, Some(&act));
        assert!(!steering.is_due());
        keep(&steering.take_unkept().unwrap()).unwrap();
        assert!(steering.take_unkept().is_none());
        assert!(!open().is_due(), "a restart");
    }

    #[test]
    fn an_owner_may_ask_for_it_before_every_drive_or_never() {
        let steering = Steering::open(SteeringCheck::EveryDrive, None);
        let (status, act) = said(Agreement::Unseen, Outcome::Done);
        steering.handle(&status, Some(&act));
        assert!(!steering.is_due());
        steering.handle(&Status { mode: Mode::Held, answer: None, ..status }, Some(&act));
        assert!(steering.is_due());
        assert!(!Steering::open(SteeringCheck::Never, None).is_due());
    }
}
