use tautline_units::Instant;

use crate::event::Timer;
use crate::wire::LinkNumber;

/// A table of the next timeout of each part of a session, with its purpose.
///
/// Each part updates its entry when the timeout may have changed. Fixed size: 460 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Timers {
    due: [Option<(Instant, Timer)>; OWNERS],
    /// Number of leading slots that were ever set.
    used: usize,
}

/// A part of a session with a timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Handshake,
    Receiver,
    Sender,
    /// The link at this index in [`Links`](crate::links::Links).
    Link(usize),
}

impl Timers {
    pub(super) fn new() -> Self {
        Self { due: [None; OWNERS], used: 0 }
    }

    /// Sets the next timeout of `owner`; `None` disarms it.
    pub(super) fn set(&mut self, owner: Owner, due: Option<(Instant, Timer)>) {
        self.due[owner.slot()] = due;
        self.used = self.used.max(owner.slot() + 1);
    }

    /// Returns whether the timeout of `owner` has passed.
    pub(super) fn is_due(&self, owner: Owner, now: Instant) -> bool {
        self.due[owner.slot()].is_some_and(|(at, _)| at <= now)
    }

    /// Returns the earliest timeout; `None` if none is set.
    pub(super) fn first(&self) -> Option<(Instant, Timer)> {
        self.due[..self.used].iter().flatten().min().copied()
    }
}

impl Owner {
    fn slot(self) -> usize {
        match self {
            Self::Handshake => 0,
            Self::Receiver => 1,
            Self::Sender => 2,
            Self::Link(place) => LINKS_FROM + place,
        }
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
        assert!(timers.is_due(Owner::Link(0), at(5)) && !timers.is_due(Owner::Receiver, at(5)));
        timers.set(Owner::Link(0), Some((at(9), Timer::Probe)));
        assert_eq!(timers.first(), Some((at(5), Timer::Pacing)));
        timers.set(Owner::Link(15), None);
        assert_eq!(timers.first(), Some((at(7), Timer::Deadline)));
    }
}
