use tautline_units::Instant;

use crate::event::Timer;
use crate::wire::LinkNumber;

/// When each part of a session next wants to be called, and why.
///
/// A part says so whenever that may have changed; the table gives the earliest. Fixed: 450 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Timers {
    due: [Option<(Instant, Timer)>; OWNERS],
}

/// A part of a session that wants to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Handshake,
    Receiver,
    Sender,
    /// The link at this place.
    Link(usize),
}

impl Timers {
    pub(super) fn new() -> Self {
        Self { due: [None; OWNERS] }
    }

    /// Takes when `owner` next wants to be called; `None` if it does not.
    pub(super) fn set(&mut self, owner: Owner, due: Option<(Instant, Timer)>) {
        let slot = match owner {
            Owner::Handshake => 0,
            Owner::Receiver => 1,
            Owner::Sender => 2,
            Owner::Link(place) => LINKS_FROM + place,
        };
        self.due[slot] = due;
    }

    /// Gives the earliest of all.
    pub(super) fn first(&self) -> Option<(Instant, Timer)> {
        self.due.iter().flatten().min().copied()
    }
}

const LINKS_FROM: usize = 3;
const OWNERS: usize = LINKS_FROM + LinkNumber::COUNT;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_given_until_its_owner_says_otherwise() {
        let at = Instant::from_millis;
        let mut timers = Timers::new();
        assert_eq!(timers.first(), None);
        timers.set(Owner::Receiver, Some((at(7), Timer::Deadline)));
        timers.set(Owner::Link(15), Some((at(5), Timer::Pacing)));
        timers.set(Owner::Link(0), Some((at(5), Timer::Probe)));
        assert_eq!(timers.first(), Some((at(5), Timer::Probe)));
        timers.set(Owner::Link(0), Some((at(9), Timer::Probe)));
        assert_eq!(timers.first(), Some((at(5), Timer::Pacing)));
        timers.set(Owner::Link(15), None);
        assert_eq!(timers.first(), Some((at(7), Timer::Deadline)));
    }
}
