use tautline_units::{Duration, Instant};

/// Rate limit on outgoing commands. Up to a rate that no operator reaches, each leaves immediately.
/// Above it, only the newest command waits for its turn.
///
/// Values that an application repeats in every command, such as an act, leave with the newest one.
/// A flood of commands therefore neither delays them nor fills the links.
#[derive(Debug)]
pub(crate) struct Commands {
    /// Earliest send time of the next command.
    free_at: Instant,
    waiting: Option<Waiting>,
}

/// A command held back by the rate limit.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) number: u64,
    pub(crate) unit: Vec<u8>,
    pub(crate) deadline: Instant,
}

impl Commands {
    pub(crate) fn new(now: Instant) -> Self {
        Self { free_at: now, waiting: None }
    }

    /// Returns whether a new command may be sent now, and if so counts it against the rate. False
    /// while another one waits.
    pub(crate) fn take_turn(&mut self, now: Instant) -> bool {
        let is_free = self.waiting.is_none() && self.free_at <= now;
        if is_free {
            self.free_at = self.free_at.max(now - BURST) + INTERVAL;
        }
        is_free
    }

    /// Keeps the newest command; returns whether it replaced another one.
    pub(crate) fn wait(&mut self, newest: Waiting) -> bool {
        self.waiting.replace(newest).is_some()
    }

    /// Removes and returns the waiting command, and counts it against the rate; `None` if none
    /// waits or it may not be sent yet.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Waiting> {
        if self.due_at()? > now {
            return None;
        }
        self.free_at = self.free_at.max(now - BURST) + INTERVAL;
        self.waiting.take()
    }

    /// Drops the waiting command; returns whether there was one.
    pub(crate) fn abandon(&mut self) -> bool {
        self.waiting.take().is_some()
    }

    /// Returns when the waiting command may be sent; `None` if none waits.
    #[inline]
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|_| self.free_at)
    }
}

/// Minimum mean interval between commands. A page sends fifty commands a second. Five times as many
/// are allowed, about 250 kbit/s on each link.
const INTERVAL: Duration = Duration::from_millis(4);
/// Burst allowance: the commands that accumulate while this end is blocked for 100 ms or more.
const BURST: Duration = Duration::from_millis(32);

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(number: u64) -> Waiting {
        Waiting { number, unit: Vec::new(), deadline: Instant::from_millis(9_000) }
    }

    #[test]
    fn a_flood_leaves_at_the_rate_and_its_newest_first() {
        let mut commands = Commands::new(Instant::from_millis(1_000));
        let (mut left, mut gave_way, mut newest) = (0, 0, 0);
        for step in 0..50_000_u64 {
            let now = Instant::from_micros(1_000_000 + 20 * step);
            if let Some(popped) = commands.pop(now) {
                assert_eq!(popped.number, newest);
                left += 1;
            }
            newest = step;
            if commands.take_turn(now) {
                left += 1;
            } else {
                gave_way += u64::from(commands.wait(waiting(step)));
            }
        }
        assert!((250..=260).contains(&left), "{left} in a second");
        assert!(gave_way > 49_000);
    }

    #[test]
    fn a_pages_commands_never_wait() {
        let mut commands = Commands::new(Instant::ZERO);
        let sent = |turn: u64| Instant::from_millis(20 * turn);
        assert!((0..100).all(|turn| commands.take_turn(sent(turn))));
        // Eight commands at once, as after 160 ms, do not wait either.
        assert!((0..8).all(|_| commands.take_turn(sent(120))));
        assert_eq!(commands.due_at(), None);
    }
}
