use core::fmt;

use serde::{Deserialize, Serialize};

use crate::description::{ACTIONS_MAX, ActionForm, ActionRule, ActionStop};

/// A set of declared actions, each by its number: those that are on, or that a person wants on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Actions(u32);

impl Actions {
    /// No action.
    pub const NONE: Self = Self(0);

    /// Returns the set with these bits: 1 << number for each action.
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the bits: 1 << number for each action.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether the action with this number is in the set; false from 32 on.
    pub const fn contains(self, number: u8) -> bool {
        (number as usize) < ACTIONS_MAX && self.0 & 1 << number != 0
    }

    /// Returns this set and, if `holds`, the action with this number; a number from 32 on adds
    /// nothing.
    #[must_use]
    pub const fn with_if(self, number: u8, holds: bool) -> Self {
        match (number as usize) < ACTIONS_MAX && holds {
            true => Self(self.0 | 1 << number),
            false => self,
        }
    }

    /// Returns the numbers of the actions in the set, in rising order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..ACTIONS_MAX as u8).filter(move |number| self.contains(*number))
    }
}

impl fmt::Debug for Actions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl FromIterator<u8> for Actions {
    fn from_iter<I: IntoIterator<Item = u8>>(numbers: I) -> Self {
        numbers.into_iter().fold(Self::NONE, |all, number| all.with_if(number, true))
    }
}

impl ActionRule {
    /// Returns whether the action is on in this step.
    ///
    /// `last` tells whether it was on in the step before, `wanted` whether the newest fresh command
    /// wants it on, `None` without one. `stopped` is `None` while a person drives or the machine is
    /// armed, else whether a stop is why the machine is held.
    ///
    /// A request is never on. While `stopped` is `None`, `wanted` decides. Otherwise the action is
    /// on after a stop by a fault if the rule says so; else `wanted` decides if the rule allows it
    /// while the machine is held; else a switch keeps its state, unless a stop switches it off.
    pub(crate) fn is_on(&self, last: bool, wanted: Option<bool>, stopped: Option<Stopped>) -> bool {
        if self.form == ActionForm::Request {
            return false;
        }
        let Some(stopped) = stopped else { return wanted.unwrap_or(false) };
        let by_stop = stopped == Stopped::ByFault && self.on_stop == ActionStop::On;
        let kept = match (self.form, self.on_stop) {
            (ActionForm::Switch, ActionStop::Keep | ActionStop::On) => last,
            _ => false,
        };
        by_stop || wanted.filter(|_| self.is_allowed_held).unwrap_or(kept)
    }
}

/// Reason for which a machine is held or being stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// Nothing went wrong: it was parked, or never driven.
    Parked,
    /// A stop that people around the machine must notice.
    ByFault,
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn rule(form: ActionForm, on_stop: ActionStop, is_allowed_held: bool) -> ActionRule {
        ActionRule { form, on_stop, is_allowed_held }
    }

    #[test]
    fn a_person_who_drives_switches_and_a_stop_decides_the_rest() {
        let horn = rule(ActionForm::Momentary, ActionStop::Off, true);
        let lights = rule(ActionForm::Switch, ActionStop::Keep, true);
        let hazard = rule(ActionForm::Switch, ActionStop::On, true);
        let blade = rule(ActionForm::Switch, ActionStop::Off, false);
        for rule in [horn, lights, hazard, blade] {
            assert!(rule.is_on(false, Some(true), None) && !rule.is_on(true, Some(false), None));
            assert!(!rule.is_on(true, None, None), "nobody wants it");
        }
        let fault = Some(Stopped::ByFault);
        assert!(!horn.is_on(true, None, fault) && lights.is_on(true, None, fault));
        assert!(hazard.is_on(false, Some(false), fault), "nobody switches it off before arming");
        assert!(!blade.is_on(true, Some(true), fault), "refused while held");
        let parked = Some(Stopped::Parked);
        assert!(horn.is_on(false, Some(true), parked) && !lights.is_on(true, Some(false), parked));
        assert!(!hazard.is_on(false, None, parked) && !blade.is_on(true, None, parked));
    }

    #[test]
    fn a_set_holds_numbers_below_32() {
        let set: Actions = [0, 31, 32, 255].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 31]);
        assert!(!set.contains(32) && !set.contains(64) && set.bits() == 1 | 1 << 31);
    }
}
