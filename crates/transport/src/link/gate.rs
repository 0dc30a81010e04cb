use tautline_units::{Duration, Instant};

/// Whether a link is alive ([TGV]: no video on a path that does not answer).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No pong has come yet: pings only.
    Validating,
    /// Pongs come.
    Up,
    /// Pongs have stopped: pings and, if no link is up, commands.
    Silent,
}

/// Keeps a link's state.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    state: State,
    /// When the last pong came, or the state began.
    heard_at: Instant,
}

impl Gate {
    pub(crate) fn new(now: Instant) -> Self {
        Self { state: State::Validating, heard_at: now }
    }

    pub(crate) fn state(&self) -> State {
        self.state
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state == State::Up
    }

    /// Notes a pong; gives the state if it changed.
    pub(crate) fn on_pong(&mut self, now: Instant) -> Option<State> {
        self.heard_at = now;
        match self.state {
            State::Up => None,
            State::Validating | State::Silent => {
                self.state = State::Up;
                Some(State::Up)
            }
        }
    }

    /// Notes that time passed; gives the state if it changed.
    pub(crate) fn on_time(&mut self, silence: Duration, now: Instant) -> Option<State> {
        match self.state {
            State::Up if now >= self.heard_at + silence => {
                self.state = State::Silent;
                Some(State::Silent)
            }
            State::Up | State::Validating | State::Silent => None,
        }
    }

    /// When a link that is up will be silent unless a pong comes.
    pub(crate) fn silent_at(&self, silence: Duration) -> Option<Instant> {
        self.is_up().then(|| self.heard_at + silence)
    }

    /// How long the link has been without a pong.
    pub(crate) fn quiet_for(&self, now: Instant) -> Duration {
        now.since(self.heard_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_up_from_its_first_pong_until_they_stop() {
        let silence = Duration::from_millis(250);
        let mut gate = Gate::new(Instant::ZERO);
        assert_eq!(gate.on_time(silence, Instant::from_millis(9_000)), None);
        assert_eq!(gate.state(), State::Validating);
        assert_eq!(gate.on_pong(Instant::from_millis(9_000)), Some(State::Up));
        assert_eq!(gate.on_time(silence, Instant::from_millis(9_249)), None);
        assert_eq!(gate.silent_at(silence), Some(Instant::from_millis(9_250)));
        assert_eq!(gate.on_time(silence, Instant::from_millis(9_250)), Some(State::Silent));
        assert_eq!(gate.on_pong(Instant::from_millis(9_300)), Some(State::Up));
    }
}
