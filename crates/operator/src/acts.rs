//! Deliberate acts and cited pictures, on behalf of a page that sends neither.
//!
//! This is the place where the page's own come in: a command that cites a picture passes as it is.

use tautline_message::{Act, Command, Deed, GuardMode, GuardState};

/// Completes the commands of a page that says only where wheel and pedals are.
///
/// The first press of the throttle after it was let go of arms a machine that is held, or resets the
/// stop that is latched; until the guard has armed it, the throttle is held back. What is cited is the
/// newest picture handed to the page whole, which is not yet what a person saw.
#[derive(Debug)]
pub(crate) struct Acts {
    console: u64,
    number: u32,
    act: Option<Act>,
    /// Whether the press that goes on asks to drive.
    asks_to_drive: bool,
    was_pressed: bool,
    was_stopped: bool,
    emergency_stop_number: u32,
}

impl Acts {
    /// Returns the acts of a page that has asked for nothing; `console` is drawn at random, not 0.
    pub(crate) fn new(console: u64) -> Self {
        Self {
            console: console.max(1),
            number: 0,
            act: None,
            asks_to_drive: false,
            was_pressed: true,
            was_stopped: false,
            emergency_stop_number: (console >> 33) as u32,
        }
    }

    /// Returns `command` with what it leaves out. `guard` is the guard's newest word, `shown` the tick
    /// of the newest picture that was handed to the page whole.
    pub(crate) fn complete(
        &mut self,
        command: Command,
        guard: Option<&GuardState>,
        shown: u32,
    ) -> Command {
        if command.cited != 0 {
            return command;
        }
        let is_pressed = command.throttle > RELEASED_THROTTLE;
        let is_press = !std::mem::replace(&mut self.was_pressed, is_pressed) && is_pressed;
        let is_stop = command.emergency_stop;
        if !std::mem::replace(&mut self.was_stopped, is_stop) && is_stop {
            self.emergency_stop_number = self.emergency_stop_number.wrapping_add(1).max(1);
        }
        let is_held = guard.is_none_or(|guard| guard.mode == GuardMode::Held);
        self.asks_to_drive = is_pressed && is_held && !is_stop && (is_press || self.asks_to_drive);
        if let Some(guard) = guard.filter(|_| self.asks_to_drive)
            && (is_press || self.is_refused(guard))
        {
            self.number += 1;
            let (deed, stop) = match guard.is_latched {
                true => (Deed::Reset, guard.stop),
                false => (Deed::Arm, 0),
            };
            self.act = Some(Act { number: self.number, stop, deed });
        }
        Command {
            console: if command.console == 0 { self.console } else { command.console },
            cited: shown,
            act: self.act,
            emergency_stop_number: if is_stop { self.emergency_stop_number } else { 0 },
            throttle: if is_held { 0.0 } else { command.throttle },
            ..command
        }
    }

    fn is_refused(&self, guard: &GuardState) -> bool {
        guard.answer.is_some_and(|answer| answer.number == self.number && answer.refused.is_some())
    }
}

/// A pedal's dead zone: below this it counts as let go.
const RELEASED_THROTTLE: f32 = 0.02;

#[cfg(test)]
mod tests {
    use tautline_message::{ActAnswer, Blocker};

    use super::*;

    fn pressed(throttle: f32) -> Command {
        Command { throttle, ..Command::default() }
    }

    fn guard(mode: GuardMode) -> GuardState {
        GuardState { mode, stop: 8, ..GuardState::default() }
    }

    #[test]
    fn a_press_after_release_arms_and_drives_once_it_is_armed() {
        let (mut acts, held) = (Acts::new(5), guard(GuardMode::Held));
        let mut say = |throttle, guard| acts.complete(pressed(throttle), Some(guard), 70);
        assert_eq!(say(0.8, &held).act, None, "it was pressed from the beginning");
        assert_eq!((say(0.0, &held).act, say(0.0, &held).console), (None, 5));
        let asked = say(0.8, &held);
        assert_eq!(asked.act, Some(Act { number: 1, stop: 0, deed: Deed::Arm }));
        assert_eq!((asked.throttle, asked.cited), (0.0, 70));
        assert_eq!(say(0.8, &held).act, asked.act, "repeated until it is reported");
        let armed = guard(GuardMode::Armed);
        assert_eq!(say(0.8, &armed).throttle, 0.8);
        let stopped = say(0.8, &held);
        assert_eq!((stopped.act, stopped.throttle), (asked.act, 0.0), "a new press it takes");
        say(0.0, &held);
        assert_eq!(say(0.8, &held).act.map(|act| act.number), Some(2));
    }

    #[test]
    fn what_is_refused_is_asked_again_while_the_press_goes_on() {
        let (mut acts, mut held) = (Acts::new(5), guard(GuardMode::Held));
        acts.complete(pressed(0.0), Some(&held), 1);
        acts.complete(pressed(0.8), Some(&held), 1);
        held.answer = Some(ActAnswer { console: 5, number: 1, refused: Some(Blocker::PictureAge) });
        let again = acts.complete(pressed(0.8), Some(&held), 1);
        assert_eq!(again.act.map(|act| act.number), Some(2));
        let released = acts.complete(pressed(0.0), Some(&held), 1);
        assert_eq!(released.act.map(|act| act.number), Some(2));
    }

    #[test]
    fn a_latched_stop_is_reset_by_its_name_before_anything_is_armed() {
        let mut acts = Acts::new(5);
        let latched = GuardState { is_latched: true, ..guard(GuardMode::Held) };
        let stop = Command { emergency_stop: true, ..pressed(0.0) };
        let first = acts.complete(stop, Some(&latched), 1).emergency_stop_number;
        assert_eq!(acts.complete(stop, Some(&latched), 1).emergency_stop_number, first);
        assert_eq!(acts.complete(pressed(0.0), Some(&latched), 1).emergency_stop_number, 0);
        let act = acts.complete(pressed(0.8), Some(&latched), 1).act.unwrap();
        assert_eq!((act.deed, act.stop), (Deed::Reset, 8));
        assert_ne!(acts.complete(stop, Some(&latched), 1).emergency_stop_number, first);
    }

    #[test]
    fn a_page_that_cites_speaks_for_itself() {
        let command = Command { cited: 9, throttle: 0.7, ..Command::default() };
        assert_eq!(Acts::new(5).complete(command, None, 70), command);
    }
}
