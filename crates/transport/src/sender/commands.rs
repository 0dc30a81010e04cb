use tautline_units::{Duration, Instant};

/// Commands on their way out: at once, up to a rate that no seat reaches; beyond it the newest waits for its turn, alone.
///
/// What an application repeats in each command, such as an act, leaves with the newest, so a flood of commands neither
/// delays it nor fills the links.
#[derive(Debug)]
pub(crate) struct Commands {
    /// When the rate allows the next one.
    free_at: Instant,
    waiting: Option<Waiting>,
}

/// A command that came too fast.
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

    /// Returns whether a command may leave at once; it then counts as gone.
    pub(crate) fn take_turn(&mut self, now: Instant) -> bool {
        let is_free = self.waiting.is_none() && self.free_at <= now;
        if is_free {
            self.free_at = self.free_at.max(now - BURST) + INTERVAL;
        }
        is_free
    }

    /// Keeps the newest command; returns whether another one gave way to it.
    pub(crate) fn wait(&mut self, newest: Waiting) -> bool {
        self.waiting.replace(newest).is_some()
    }

    /// Gives the command that waits, once it may leave.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Waiting> {
        if self.due_at()? > now {
            return None;
        }
        self.free_at = self.free_at.max(now - BURST) + INTERVAL;
        self.waiting.take()
    }

    /// Gives up the command that waits; returns whether there was one.
    pub(crate) fn abandon(&mut self) -> bool {
        self.waiting.take().is_some()
    }

    /// Returns when the command that waits may leave.
    #[inline]
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|_| self.free_at)
    }
}

/// A page sends fifty commands a second: five times as many leave, some 250 kbit/s of each link.
const INTERVAL: Duration = Duration::from_millis(4);
/// As many as waited while this end stood still for 100 ms and more.
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
    fn what_a_page_sends_never_waits() {
        let mut commands = Commands::new(Instant::ZERO);
        let sent = |turn: u64| Instant::from_millis(20 * turn);
        assert!((0..100).all(|turn| commands.take_turn(sent(turn))));
        // Nor do those of 160 ms that come at once.
        assert!((0..8).all(|_| commands.take_turn(sent(120))));
        assert_eq!(commands.due_at(), None);
    }
}
