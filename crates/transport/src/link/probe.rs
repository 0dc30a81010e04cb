use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

use super::{Route, State};

/// Schedule of pings, and the pings awaiting their pong.
#[derive(Debug, Clone)]
pub(crate) struct Probe {
    next_id: u32,
    due_at: Instant,
    outstanding: VecDeque<Outstanding>,
    /// Small pings sent since the last pong; saturates.
    unanswered: u32,
    /// Share of recent small pings that were answered, 0 to 1.
    answered: f64,
}

#[derive(Debug, Clone, Copy)]
struct Outstanding {
    id: u32,
    sent_at: Instant,
    route: Route,
    padded: bool,
}

/// A ping of ours that a pong answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) sent_at: Instant,
    pub(crate) route: Route,
    /// True if the ping was padded to probe the MTU; its delay then includes the time that its
    /// bytes take.
    pub(crate) padded: bool,
}

impl Probe {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            next_id: 0,
            due_at: now,
            outstanding: VecDeque::with_capacity(OUTSTANDING_MAX),
            unanswered: 0,
            answered: ANSWERED_FIRST,
        }
    }

    pub(crate) fn due_at(&self) -> Instant {
        self.due_at
    }

    /// Allocates the next ping's id and schedules the one after it.
    ///
    /// A link that is up is pinged at `interval`. Otherwise the interval grows up to
    /// [`INTERVAL_MAX`], so that a dead address is not flooded and a returning modem is found soon.
    pub(crate) fn send(
        &mut self,
        route: Route,
        state: State,
        interval: Duration,
        now: Instant,
    ) -> u32 {
        self.judge();
        let id = self.enter(route, false, now);
        self.unanswered = self.unanswered.saturating_add(1);
        self.due_at = now + self.pause(state, interval);
        id
    }

    /// Allocates an id for a padded ping outside the schedule.
    pub(crate) fn send_padded(&mut self, route: Route, now: Instant) -> u32 {
        self.enter(route, true, now)
    }

    /// Returns the share of recent small pings that were answered, 0 to 1.
    pub(crate) fn answered(&self) -> f64 {
        self.answered
    }

    /// Postpones the next ping until `at` if more than 48 pings in a row are unanswered.
    pub(crate) fn put_off(&mut self, at: Instant) {
        if self.unanswered > PINGS_PER_STEP * 3 {
            self.due_at = self.due_at.max(at);
        }
    }

    /// Makes the next ping due now.
    pub(crate) fn hurry(&mut self, now: Instant) {
        self.due_at = now;
    }

    /// Removes and returns the ping that a pong with id `id` answers; `None` if there is none, if
    /// it was answered before, or if it is older than the last [`OUTSTANDING_MAX`] unanswered ones.
    pub(crate) fn answer(&mut self, id: u32) -> Option<Asked> {
        let at = self.outstanding.iter().position(|ping| ping.id == id)?;
        let Outstanding { sent_at, route, padded, .. } = self.outstanding.remove(at)?;
        self.unanswered = 0;
        Some(Asked { sent_at, route, padded })
    }

    fn enter(&mut self, route: Route, padded: bool, now: Instant) -> u32 {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        if self.outstanding.len() == OUTSTANDING_MAX {
            self.outstanding.pop_front();
        }
        self.outstanding.push_back(Outstanding { id, sent_at: now, route, padded });
        id
    }

    /// Updates the share of answered pings by the ping [`JUDGED_AFTER`] ids before the next one, if
    /// that was not padded.
    fn judge(&mut self) {
        if self.next_id < JUDGED_AFTER {
            return;
        }
        let old = self.next_id - JUDGED_AFTER;
        let answered = match self.outstanding.iter().find(|ping| ping.id == old) {
            Some(ping) if ping.padded => return,
            Some(_) => 0.0,
            None => 1.0,
        };
        self.answered += (answered - self.answered) / ANSWERED_SHARE;
    }

    fn pause(&self, state: State, interval: Duration) -> Duration {
        match state {
            State::Up => interval,
            State::Validating | State::Silent => {
                let doublings = (self.unanswered / PINGS_PER_STEP).min(6);
                (interval * (1 << doublings)).min(INTERVAL_MAX.max(interval))
            }
        }
    }
}

/// Maximum number of pings awaiting their pong: more than a second of pings at 5 ms, more than five
/// at 20 ms.
const OUTSTANDING_MAX: usize = 256;
/// Maximum ping interval of a link that is not up: a returning modem is found within it.
const INTERVAL_MAX: Duration = Duration::from_millis(200);
/// Number of later pings after which a pong is no longer expected: a third of a second at 20 ms.
const JUDGED_AFTER: u32 = 16;
const ANSWERED_SHARE: f64 = 16.0;
/// Initial share of answered pings: before the first result, a lost ping is no surprise.
const ANSWERED_FIRST: f64 = 0.5;
/// Number of unanswered pings after which the interval doubles on a link that is not up: a third of
/// a second at 20 ms.
const PINGS_PER_STEP: u32 = 16;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn a_pong_answers_one_ping_once() {
        let route = Route { socket: 0, remote: SocketAddr::from(([127, 0, 0, 1], 1)) };
        let mut probe = Probe::new(Instant::ZERO);
        let interval = Duration::from_millis(20);
        let id = probe.send(route, State::Up, interval, Instant::from_millis(5));
        assert_eq!(probe.due_at(), Instant::from_millis(25));
        assert_eq!(probe.answer(id + 1), None);
        let asked = Asked { sent_at: Instant::from_millis(5), route, padded: false };
        assert_eq!(probe.answer(id), Some(asked));
        assert_eq!(probe.answer(id), None);
    }

    #[test]
    fn the_share_of_answers_is_that_of_small_pings() {
        let route = Route { socket: 0, remote: SocketAddr::from(([127, 0, 0, 1], 1)) };
        let mut probe = Probe::new(Instant::ZERO);
        let interval = Duration::from_millis(20);
        for ping in 0..400 {
            let id = probe.send(route, State::Up, interval, Instant::from_millis(20 * ping));
            if ping % 4 != 0 {
                assert!(probe.answer(id).is_some_and(|asked| !asked.padded));
            }
            probe.send_padded(route, Instant::from_millis(20 * ping));
        }
        assert!((0.65..0.85).contains(&probe.answered()), "{}", probe.answered());
    }

    #[test]
    fn an_unanswered_link_is_pinged_ever_more_seldom() {
        let route = Route { socket: 0, remote: SocketAddr::from(([127, 0, 0, 1], 1)) };
        let mut probe = Probe::new(Instant::ZERO);
        let mut pings = 0;
        while probe.due_at() < Instant::from_millis(10_000) {
            let now = probe.due_at();
            probe.send(route, State::Silent, Duration::from_millis(20), now);
            pings += 1;
        }
        assert!((50..110).contains(&pings), "{pings}");
    }
}
