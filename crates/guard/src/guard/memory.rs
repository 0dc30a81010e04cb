use serde::{Deserialize, Serialize};

use crate::act::{Act, Answer, Outcome};
use crate::identity::{ActNumber, Console};

/// Newest act of each of the consoles that acted last, and the answer to the newest of all.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Memory {
    last: [Option<(Console, ActNumber)>; CONSOLES_KEPT],
    answer: Option<Answer>,
}

impl Memory {
    pub(super) fn answer(&self) -> Option<Answer> {
        self.answer
    }

    /// Returns whether the act is not a repetition of its console's newest or an earlier act.
    pub(super) fn is_new(&self, act: &Act) -> bool {
        let last = self.last.iter().flatten().find(|(console, _)| *console == act.console);
        last.is_none_or(|(_, number)| act.number > *number)
    }

    pub(super) fn note(&mut self, act: &Act, outcome: Outcome) {
        let Act { console, number, .. } = *act;
        self.begin(act);
        self.answer = Some(Answer { console, number, outcome });
    }

    /// Remembers an act whose outcome is not known yet, so that it is begun once.
    pub(super) fn begin(&mut self, act: &Act) {
        let Act { console, number, .. } = *act;
        let is_its =
            |kept: &Option<(Console, ActNumber)>| kept.is_some_and(|(other, _)| other == console);
        let place = self.last.iter().position(is_its).unwrap_or(CONSOLES_KEPT - 1);
        // The newest comes first; the console silent for the longest time is dropped.
        self.last[..=place].rotate_right(1);
        self.last[0] = Some((console, number));
    }
}

/// Number of consoles whose last act is remembered; the one that acted longest ago is dropped, and
/// its acts are by then stale by their age.
const CONSOLES_KEPT: usize = 8;
