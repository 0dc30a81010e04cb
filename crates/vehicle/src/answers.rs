//! Signed answers to supervisors' orders, returned through the switchboard.

use std::sync::Arc;
use std::time::Duration;

use tautline_guard::{Mode, PERIOD};
use tautline_message::Control;
use tautline_net::clock::Clock;
use tautline_net::control::Handle;
use tautline_transport::crypto::Identity;
use tautline_transport::order::Order;
use tautline_transport::order::answer::{Answer, Outcome};
use tautline_units::Instant;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::guard_client::{GuardClient, Heard};

/// Sender of a vehicle's signed answers to supervisors' orders; dropping it cancels the answers
/// that are still pending.
#[derive(Debug)]
pub(crate) struct Answers {
    identity: Identity,
    handle: Handle,
    following: JoinSet<()>,
}

impl Answers {
    /// Creates a sender that signs with `identity` and sends over `handle`, the connection to the
    /// switchboard.
    pub(crate) fn new(identity: &Identity, handle: Handle) -> Self {
        Self { identity: identity.clone(), handle, following: JoinSet::new() }
    }

    /// Sends the answer to an order that is not obeyed, once; `outcome` says why.
    pub(crate) fn refuse(&self, order: &Order, outcome: Outcome, epoch: u64) {
        // If the connection is lost, nothing is sent; the supervisor then sends the order again.
        let _ = self.handle.send(signed(&self.identity, order, outcome, epoch));
    }

    /// Answers an order that was just obeyed, from a task of its own: that the guard's manoeuvre
    /// has begun, that the machine is held at standstill, or that no guard is heard. Sends up to
    /// four answers, each when the outcome changes.
    ///
    /// Follows each order for up to 60 s, and up to eight orders at a time; further ones get no
    /// answer.
    pub(crate) fn follow(
        &mut self,
        order: Order,
        epoch: u64,
        guard_client: Arc<GuardClient>,
        clock: Clock,
    ) {
        while self.following.try_join_next().is_some() {}
        if self.following.len() >= FOLLOWED_MAX {
            return tracing::warn!(number = order.number(), "too many unanswered orders");
        }
        let (identity, handle) = (self.identity.clone(), self.handle.clone());
        self.following.spawn(async move {
            let mut progress = Progress::since(clock.now());
            loop {
                let now = clock.now();
                if let Some(outcome) =
                    progress.next(guard_client.heard(now), guard_client.stands(now), now)
                    && handle.send(signed(&identity, &order, outcome, epoch)).is_ok()
                {
                    progress.handle_told(outcome);
                }
                if progress.is_over(now) {
                    return;
                }
                sleep(PERIOD).await;
            }
        });
    }
}

/// Order that is being followed: its instant, the outcome sent last, and the number of outcomes
/// sent.
#[derive(Debug)]
struct Progress {
    ordered_at: Instant,
    told: Option<Outcome>,
    told_count: u32,
}

impl Progress {
    fn since(ordered_at: Instant) -> Self {
        Self { ordered_at, told: None, told_count: 0 }
    }

    /// Returns the outcome to send at `now`, given the guard's latest status and whether the
    /// machine stands; `None` if it was sent last, if the guard neither manoeuvres nor holds the
    /// machine, without a status that can reflect the order until 1 s after the order, or after
    /// three answers unless the machine is held at standstill.
    fn next(&self, heard: Option<Heard>, stands: bool, now: Instant) -> Option<Outcome> {
        // A status sent before the guard can have known the order does not count.
        let heard = heard.filter(|heard| heard.at >= self.ordered_at + KNOWN_AFTER);
        let outcome = match heard.map(|heard| heard.status().mode) {
            Some(Mode::Held) if stands => Outcome::Held,
            Some(Mode::Held | Mode::Manoeuvre) => Outcome::Begun,
            Some(Mode::Armed | Mode::Driving | Mode::Limited) => return None,
            None if now.since(self.ordered_at) >= UNHEARD_AFTER => Outcome::Unheard,
            None => return None,
        };
        let is_last = outcome == Outcome::Held;
        let is_news = self.told != Some(outcome);
        (is_news && (is_last || self.told_count + 1 < WORDS_MAX)).then_some(outcome)
    }

    fn handle_told(&mut self, outcome: Outcome) {
        self.told = Some(outcome);
        self.told_count += 1;
    }

    fn is_over(&self, now: Instant) -> bool {
        self.told == Some(Outcome::Held) || now.since(self.ordered_at) >= FOLLOWED_FOR
    }
}

fn signed(identity: &Identity, order: &Order, outcome: Outcome, epoch: u64) -> Vec<u8> {
    let (vehicle, supervisor, number) = (order.vehicle, order.supervisor, order.number());
    let answer = Answer { vehicle, supervisor, number, epoch, outcome };
    Control::Answered { signed: answer.sign(identity).as_bytes().to_vec() }.encode()
}

/// Time from an order to the first status that can reflect it; earlier statuses are ignored.
const KNOWN_AFTER: Duration = Duration::from_millis(50);
/// Time from an order after which the guard counts as unheard if there is no recent status that can
/// reflect the order; the guard sends 100 per second.
const UNHEARD_AFTER: Duration = Duration::from_secs(1);
/// Time from an order after which no further answers to it are sent: longer than a machine needs to
/// stop from any speed of a road vehicle.
const FOLLOWED_FOR: Duration = Duration::from_secs(60);
/// Maximum of answers to one order that a switchboard forwards; the last is kept for
/// [`Outcome::Held`].
const WORDS_MAX: u32 = 4;
const FOLLOWED_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use tautline_guard::frame::Status;
    use tautline_guard::identity::Tick;
    use tautline_guard::{Config, Guard, Input};
    use tautline_message::StatusFrame;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn heard(mode: Mode, now: u64) -> Option<Heard> {
        let mut guard = Guard::new(Config::car(), Tick::new(70).unwrap());
        let status = Status { mode, ..guard.step(&Input::default(), at(now)).status };
        Some(Heard { frame: StatusFrame::of(&status), at: at(now), extras: Vec::new() })
    }

    #[test]
    fn the_manoeuvre_and_its_standstill_are_answered_once_each() {
        let mut progress = Progress::since(at(1_000));
        // From before the guard can have known.
        assert_eq!(progress.next(heard(Mode::Held, 1_000), true, at(1_000)), None);
        assert_eq!(progress.next(heard(Mode::Driving, 1_060), false, at(1_060)), None);
        let begun = progress.next(heard(Mode::Manoeuvre, 1_070), false, at(1_070));
        assert_eq!(begun, Some(Outcome::Begun));
        // Nothing was delivered yet, so it is sent again.
        assert_eq!(progress.next(heard(Mode::Manoeuvre, 1_080), false, at(1_080)), begun);
        progress.handle_told(Outcome::Begun);
        assert_eq!(progress.next(heard(Mode::Manoeuvre, 1_090), false, at(1_090)), None);
        assert_eq!(progress.next(heard(Mode::Held, 3_000), false, at(3_000)), None, "it rolls");
        assert!(!progress.is_over(at(3_000)));
        assert_eq!(progress.next(heard(Mode::Held, 3_010), true, at(3_010)), Some(Outcome::Held));
        progress.handle_told(Outcome::Held);
        assert!(progress.is_over(at(3_010)));
    }

    #[test]
    fn a_flapping_guard_does_not_use_up_the_final_answer() {
        let mut progress = Progress::since(at(1_000));
        assert_eq!(progress.next(None, false, at(1_999)), None);
        let mut told = Vec::new();
        for turn in 0..100 {
            let now = 2_000 + 10 * turn;
            let word = if turn % 2 == 0 { None } else { heard(Mode::Manoeuvre, now) };
            if let Some(outcome) = progress.next(word, false, at(now)) {
                progress.handle_told(outcome);
                told.push(outcome);
            }
        }
        assert_eq!(told, [Outcome::Unheard, Outcome::Begun, Outcome::Unheard]);
        assert_eq!(progress.next(heard(Mode::Held, 9_000), true, at(9_000)), Some(Outcome::Held));
        assert!(progress.is_over(at(61_000)));
    }
}
