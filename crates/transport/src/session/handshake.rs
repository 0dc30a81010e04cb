use std::collections::VecDeque;

use tautline_units::{Duration, Instant};

use crate::crypto::{INIT_MESSAGE_BYTES, Initiator, Keys};

/// The initiator's handshake under way: one message, resent with back-off until answered.
#[derive(Debug)]
pub(crate) struct Calling {
    pub(crate) initiator: Option<Initiator>,
    /// The id by which the responder shall call us.
    pub(crate) session: u16,
    pub(crate) due_at: Instant,
    pause: Duration,
}

impl Calling {
    pub(crate) fn new(initiator: Initiator, session: u16, now: Instant) -> Self {
        Self { initiator: Some(initiator), session, due_at: now, pause: RESEND_FIRST }
    }

    /// Notes that the message was sent on every link.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.due_at = now + self.pause;
        self.pause = (self.pause * 2).min(RESEND_MOST);
    }
}

/// The responder's answer to one first message, until a sealed datagram confirms it.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    /// The first message: a resend of it gets the same answer.
    pub(crate) init: Vec<u8>,
    pub(crate) response: Vec<u8>,
    pub(crate) keys: Keys,
    /// The id by which the initiator calls us.
    pub(crate) session: u16,
    /// The id by which we call the initiator.
    pub(crate) peer_session: u16,
}

/// How many first messages may be answered: each costs key agreements.
#[derive(Debug)]
pub(crate) struct Limiter {
    answered_at: VecDeque<Instant>,
}

impl Limiter {
    pub(crate) fn new() -> Self {
        Self { answered_at: VecDeque::with_capacity(ANSWERS_PER_SECOND) }
    }

    /// Takes one answer of this second's; false if they are spent.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        while self.answered_at.front().is_some_and(|at| now.since(*at) >= Duration::from_secs(1)) {
            self.answered_at.pop_front();
        }
        let free = self.answered_at.len() < ANSWERS_PER_SECOND;
        if free {
            self.answered_at.push_back(now);
        }
        free
    }
}

/// Half-open handshakes kept: an honest initiator has one, two if it began anew.
pub(crate) const HALF_OPEN_MAX: usize = 4;
/// Replays only: forgeries fail at the door. About 0.3 ms of work each: 2 % of a core.
const ANSWERS_PER_SECOND: usize = 64;
/// A little above a mobile link's RTT.
const RESEND_FIRST: Duration = Duration::from_millis(100);
const RESEND_MOST: Duration = Duration::from_millis(1_000);

const _: () = assert!(INIT_MESSAGE_BYTES + 3 == 150, "an init fits the smallest packet size");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_limited_by_the_second() {
        let mut limiter = Limiter::new();
        let now = Instant::from_millis(5);
        assert_eq!((0..1_000).filter(|_| limiter.take(now)).count(), ANSWERS_PER_SECOND);
        assert!(!limiter.take(Instant::from_millis(1_004)));
        assert!(limiter.take(Instant::from_millis(1_005)));
    }
}
