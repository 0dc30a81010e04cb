use tautline_units::{Duration, Instant};

use crate::life::State;

/// Liveness of one link: its state, and the times and counts that decide when it changes.
#[derive(Debug, Clone)]
pub(crate) struct Liveness {
    life: Life,
    /// Time from which the wait for a pong counts: the last pong, the last [`Liveness::renew`], or
    /// creation.
    heard_at: Instant,
    /// Time at which the link last ceased to be trusted, or was created.
    doubted_at: Instant,
    /// Pongs since the link was last silent; saturates. [`PONGS_SETTLED`] from the start, as a link
    /// that was never silent need not settle.
    pongs: u8,
}

/// State of a link, with trust while it is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    Validating,
    Trusted,
    /// Pongs or reports are overdue: the link is still up, but its media moves to trusted links if
    /// there are any.
    Suspect,
    Silent,
}

impl Liveness {
    pub(crate) fn new(now: Instant) -> Self {
        Self { life: Life::Validating, heard_at: now, doubted_at: now, pongs: PONGS_SETTLED }
    }

    pub(crate) fn state(&self) -> State {
        match self.life {
            Life::Validating => State::Validating,
            Life::Trusted | Life::Suspect => State::Up,
            Life::Silent => State::Silent,
        }
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state() == State::Up
    }

    /// Returns whether the link is up and neither its pongs nor its reports are overdue.
    pub(crate) fn is_trusted(&self) -> bool {
        self.life == Life::Trusted
    }

    /// Returns whether the link is trusted and, if it has ever been silent, [`PONGS_SETTLED`] pongs
    /// have arrived since.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_trusted() && self.pongs >= PONGS_SETTLED
    }

    /// Returns when the link last ceased to be trusted; its creation time if it never has.
    pub(crate) fn doubted_at(&self) -> Instant {
        self.doubted_at
    }

    /// Returns the time from which the wait for a pong counts: the last pong or the last
    /// [`Liveness::renew`], whichever is later, or creation.
    pub(crate) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// Records a pong, after which the link is trusted; returns [`State::Up`] if it was not up, and
    /// `None` otherwise.
    pub(crate) fn on_pong(&mut self, now: Instant) -> Option<State> {
        self.heard_at = now;
        self.pongs = self.pongs.saturating_add(1);
        match std::mem::replace(&mut self.life, Life::Trusted) {
            Life::Trusted | Life::Suspect => None,
            Life::Validating | Life::Silent => Some(State::Up),
        }
    }

    /// Lets the wait for a pong begin now, because pings are more frequent from now on.
    pub(crate) fn renew(&mut self, now: Instant) {
        self.heard_at = self.heard_at.max(now);
    }

    /// Marks a trusted link suspect; returns true if it was trusted until now.
    pub(crate) fn suspect(&mut self, now: Instant) -> bool {
        let suspected = self.life == Life::Trusted;
        if suspected {
            (self.life, self.doubted_at) = (Life::Suspect, now);
        }
        suspected
    }

    /// Records a report with new information: a suspect link is trusted again.
    pub(crate) fn on_news(&mut self) {
        if self.life == Life::Suspect {
            self.life = Life::Trusted;
        }
    }

    /// Marks a trusted link suspect after `suspect_after` without a pong; returns true if it has
    /// just become so, and false in every other state.
    pub(crate) fn on_doubt(&mut self, suspect_after: Duration, now: Instant) -> bool {
        match self.life {
            Life::Trusted if now >= self.heard_at + suspect_after => {
                (self.life, self.doubted_at) = (Life::Suspect, now);
                true
            }
            Life::Validating | Life::Trusted | Life::Suspect | Life::Silent => false,
        }
    }

    /// Marks a link that is up silent after `link_timeout` without a pong, and restarts the count
    /// of pongs until it is settled; returns [`State::Silent`] if it has just become so, and `None`
    /// otherwise.
    pub(crate) fn on_timeout(&mut self, link_timeout: Duration, now: Instant) -> Option<State> {
        match self.life {
            Life::Trusted | Life::Suspect if now >= self.heard_at + link_timeout => {
                if self.is_trusted() {
                    self.doubted_at = now;
                }
                (self.life, self.pongs) = (Life::Silent, 0);
                Some(State::Silent)
            }
            Life::Validating | Life::Trusted | Life::Suspect | Life::Silent => None,
        }
    }

    /// Returns when the link becomes suspect or silent if no pong arrives; `None` if it is not up.
    pub(crate) fn due_at(
        &self,
        suspect_after: Duration,
        link_timeout: Duration,
    ) -> Option<Instant> {
        match self.life {
            Life::Trusted => Some(self.heard_at + suspect_after.min(link_timeout)),
            Life::Suspect => self.silent_at(link_timeout),
            Life::Validating | Life::Silent => None,
        }
    }

    /// Returns when the link becomes silent if no pong arrives; `None` if it is not up.
    pub(crate) fn silent_at(&self, link_timeout: Duration) -> Option<Instant> {
        self.is_up().then(|| self.heard_at + link_timeout)
    }
}

/// Number of pongs since a link was last silent from which it counts as settled: 160 ms at a ping
/// every 20 ms. While a stream serves in its place, the link gets media back only then, because it
/// may be intermittent.
const PONGS_SETTLED: u8 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_was_silent_is_settled_after_eight_pongs() {
        let (suspect_after, link_timeout) = (Duration::from_millis(60), Duration::from_millis(250));
        let at = Instant::from_millis;
        let mut liveness = Liveness::new(at(5));
        assert_eq!((liveness.is_settled(), liveness.doubted_at()), (false, at(5)));
        liveness.on_pong(at(100));
        assert!(liveness.is_settled(), "it was never silent");
        assert!(liveness.on_doubt(suspect_after, at(160)));
        assert_eq!((liveness.is_settled(), liveness.doubted_at()), (false, at(160)));
        liveness.on_pong(at(170));
        assert!(liveness.is_settled());
        assert_eq!(liveness.on_timeout(link_timeout, at(420)), Some(State::Silent));
        assert_eq!(liveness.doubted_at(), at(420), "it was trusted until then");
        for pong in 0..8 {
            assert!(!liveness.is_settled());
            liveness.on_pong(at(500 + pong * 20));
        }
        assert!(liveness.is_settled());
    }

    #[test]
    fn a_link_is_up_from_its_first_pong_until_they_stop() {
        let link_timeout = Duration::from_millis(250);
        let mut liveness = Liveness::new(Instant::ZERO);
        assert_eq!(liveness.on_timeout(link_timeout, Instant::from_millis(9_000)), None);
        assert_eq!(liveness.state(), State::Validating);
        assert_eq!(liveness.on_pong(Instant::from_millis(9_000)), Some(State::Up));
        assert_eq!(liveness.on_timeout(link_timeout, Instant::from_millis(9_249)), None);
        assert_eq!(liveness.silent_at(link_timeout), Some(Instant::from_millis(9_250)));
        assert_eq!(
            liveness.on_timeout(link_timeout, Instant::from_millis(9_250)),
            Some(State::Silent)
        );
        assert_eq!(liveness.on_pong(Instant::from_millis(9_300)), Some(State::Up));
    }

    #[test]
    fn a_link_turns_suspect_then_silent_and_a_pong_restores_trust() {
        let (suspect_after, link_timeout) = (Duration::from_millis(80), Duration::from_millis(250));
        let at = Instant::from_millis;
        let mut liveness = Liveness::new(Instant::ZERO);
        assert!(!liveness.on_doubt(suspect_after, at(500)));
        liveness.on_pong(at(1_000));
        assert!(liveness.is_trusted());
        assert_eq!(liveness.due_at(suspect_after, link_timeout), Some(at(1_080)));
        assert!(!liveness.on_doubt(suspect_after, at(1_079)));
        assert!(liveness.on_doubt(suspect_after, at(1_080)));
        assert!(!liveness.on_doubt(suspect_after, at(1_081)));
        assert_eq!((liveness.is_trusted(), liveness.state()), (false, State::Up));
        assert_eq!(liveness.due_at(suspect_after, link_timeout), Some(at(1_250)));
        assert_eq!(liveness.on_pong(at(1_100)), None);
        assert!(liveness.is_trusted());
        assert_eq!(liveness.on_timeout(link_timeout, at(1_350)), Some(State::Silent));
        assert_eq!(liveness.due_at(suspect_after, link_timeout), None);
    }
}
