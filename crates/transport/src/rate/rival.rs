use tautline_units::{Duration, Instant};

/// A queue that is not ours: another's flow fills it, or the way has become longer, or delays wander.
///
/// A queue of ours shrinks when less is sent, and then more arrives than was sent. Where as much arrives
/// as was sent although the rate is held back, whatever stands there is another's. (Copa looks for a queue
/// that is hardly ever empty; a window's flow in a short queue empties it now and then.)
#[derive(Debug, Clone, Default)]
pub(super) struct Rival {
    /// How much of the queue is not ours.
    theirs: Duration,
    follows: Option<Follows>,
    found: Option<Found>,
}

/// A time in which the rate is held back, and as much arrives as is sent.
#[derive(Debug, Clone, Copy)]
struct Follows {
    since: Instant,
    /// The queue then.
    queue: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    /// When it is looked again whether the queue is another's, and whether that has begun.
    check_at: Instant,
    checking: bool,
    /// Meanwhile: the most that may be sent of a load that the share of the rate would not lower, bit/s.
    thin: Option<f64>,
    /// When losses last lowered the rate.
    lowered_at: Instant,
    /// Since when there has been no queue.
    empty_since: Option<Instant>,
}

/// What a report shows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// All that stands.
    pub(super) queue: Duration,
    /// The rate at which datagrams arrived, chance losses added, and that at which the same left.
    pub(super) received: f64,
    pub(super) offered: f64,
    /// The rate that leaves now, and what the link is taken to carry.
    pub(super) left: f64,
    pub(super) capacity: f64,
    pub(super) rtt: Duration,
    /// Whether that is the least that it can be taken to carry, so that nothing more can be held back.
    pub(super) least: bool,
}

/// What of the queue is ours, and what that says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Told {
    pub(super) ours: Duration,
    /// What arrived while a check of a thin load drained the queue: all that the link carries, bit/s.
    pub(super) carried: Option<f64>,
}

impl Rival {
    /// Returns whether another's queue leads the rate.
    pub(super) fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// Returns how much of the queue is not ours.
    pub(super) fn theirs(&self) -> Duration {
        self.theirs
    }

    /// Returns the share of the rate that a check leaves.
    pub(super) fn share(&self) -> f64 {
        if self.found.is_some_and(|found| found.checking) { CHECK_SHARE } else { 1.0 }
    }

    /// Returns the most that a check leaves of a thin load, bit/s.
    pub(super) fn rate_most(&self) -> f64 {
        self.found.and_then(|found| found.thin).unwrap_or(f64::INFINITY)
    }

    /// Takes a report and returns what of the queue is ours.
    pub(super) fn observe(&mut self, shown: &Shown, seen: Duration, now: Instant) -> Told {
        self.theirs = self.theirs.min(shown.queue);
        let carried = match self.found {
            Some(found) => self.check(found, shown, seen, now),
            None => {
                self.look(shown, seen, now);
                None
            }
        };
        Told { ours: shown.queue - self.theirs, carried }
    }

    fn look(&mut self, shown: &Shown, seen: Duration, now: Instant) {
        let held_back = shown.left < HELD_BACK * shown.capacity || shown.least;
        let follows = self.follows.unwrap_or(Follows { since: now, queue: shown.queue });
        let ours = shown.queue - self.theirs;
        if ours <= seen || !held_back || follows.is_apart(shown, now) {
            self.follows = None;
            return;
        }
        self.follows = Some(follows);
        if now.since(follows.since) > (shown.rtt * 3).max(FOLLOWS_LEAST) {
            self.theirs = shown.queue;
            self.follows = None;
            self.found = Some(Found {
                check_at: now + CHECK_INTERVAL,
                checking: false,
                thin: None,
                lowered_at: now,
                empty_since: None,
            });
        }
    }

    /// Finds out whether the queue is still another's: by sending less for a while, of a thin load as well.
    /// Returns what the link carries if the queue is ours.
    fn check(
        &mut self,
        mut found: Found,
        shown: &Shown,
        seen: Duration,
        now: Instant,
    ) -> Option<f64> {
        // All that comes is taken for theirs until a check says otherwise.
        self.theirs = shown.queue;
        found.empty_since = match shown.queue > seen {
            true => None,
            false => found.empty_since.or(Some(now)),
        };
        if !found.checking && now >= found.check_at {
            let thin = (CHECKED_LEAST..THIN * shown.capacity).contains(&shown.left);
            (found.checking, found.thin) = (true, thin.then_some(CHECK_SHARE * shown.left));
        }
        let drains = shown.received > DRAINS * shown.offered;
        let checked = found.checking && now >= found.check_at + shown.rtt + CHECK_TIME;
        let empty = found.empty_since.is_some_and(|since| now.since(since) > EMPTY_FOR);
        if empty || (checked && drains) {
            *self = Self::default();
            return found.thin.filter(|_| checked && drains).map(|_| shown.received);
        }
        if checked {
            (found.checking, found.thin) = (false, None);
            found.check_at = now + CHECK_INTERVAL;
        }
        self.found = Some(found);
        None
    }

    /// Takes note of losses in another's queue; true if the rate is to be lowered for them.
    pub(super) fn on_overflow(&mut self, rtt: Duration, queue: Duration, now: Instant) -> bool {
        let Some(found) = &mut self.found else { return false };
        let lowers = now.since(found.lowered_at) > rtt + queue;
        if lowers {
            found.lowered_at = now;
        }
        lowers
    }

    /// Forgets all: the link was silent.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Follows {
    /// Returns whether it has ended: the queue became longer or shorter, or rates differ.
    ///
    /// Of the few packets of the least rate there is no rate in 60 ms to speak of: there the queue alone tells.
    fn is_apart(self, shown: &Shown, now: Instant) -> bool {
        let moved = shown.queue.max(self.queue) - shown.queue.min(self.queue);
        let wanders = moved > now.since(self.since).mul_f64(APART) + WANDERS;
        let apart = (shown.received - shown.offered).abs() > APART * shown.offered;
        wanders || (apart && !shown.least)
    }
}

/// As much arrives as was sent, to what 60 ms can tell.
const APART: f64 = 0.12;
/// By so much a queue differs from one report to the next.
const WANDERS: Duration = Duration::from_millis(4);
/// The rate is held back that is below this share of the capacity.
const HELD_BACK: f64 = 0.86;
const FOLLOWS_LEAST: Duration = Duration::from_millis(150);
/// What is sent during a check, how often there is one, and how long beside a round trip.
const CHECK_SHARE: f64 = 0.6;
/// With less on its way there is nothing to lower: no media.
const CHECKED_LEAST: f64 = 100e3;
/// A load of less than this share of the capacity is thin: nothing else shows that it is too much. (At .5 two links of
/// which one is shared with CUBIC carry 8.2 Mbit/s in place of 8.4.)
const THIN: f64 = 0.2;
const CHECK_INTERVAL: Duration = Duration::from_millis(2_500);
const CHECK_TIME: Duration = Duration::from_millis(80);
/// More arrives than was sent by so much where our own queue drains.
const DRAINS: f64 = 1.3;
const EMPTY_FOR: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Sends what is allowed of 310 kbit/s, where 8 Mbit/s are thought possible, for 6 s over what `carries` of
    /// bits and the bits that wait; returns what was found, the least and the most that was sent, and how many
    /// reports spoke of another's queue.
    fn run(mut carries: impl FnMut(f64) -> (f64, Duration)) -> (f64, [f64; 2], u32) {
        let mut rival = Rival::default();
        let (mut capacity, mut sent, mut received) = (8e6_f64, VecDeque::new(), VecDeque::new());
        let (mut least, mut most, mut theirs) = (f64::INFINITY, 0.0_f64, 0);
        for step in 1..600_u64 {
            let left = rival.rate_most().min(capacity).min(310e3);
            (least, most) = (least.min(left), most.max(left));
            let (came, queue) = carries(left * 0.01);
            let mean = |last: &mut VecDeque<f64>, rate: f64| {
                last.push_back(rate);
                last.drain(..last.len().saturating_sub(6));
                last.iter().sum::<f64>() / last.len() as f64
            };
            let (offered, received) = (mean(&mut sent, left), mean(&mut received, came * 100.0));
            let rtt = Duration::from_millis(30);
            let shown = Shown { queue, received, offered, left, capacity, rtt, least: false };
            let now = Instant::from_millis(step * 10);
            let told = rival.observe(&shown, Duration::from_millis(6), now);
            capacity = told.carried.map_or(capacity, |carried| carried.min(capacity));
            theirs += u32::from(rival.is_found());
        }
        (capacity, [least, most], theirs)
    }

    #[test]
    fn a_thin_load_tells_its_own_queue_too() {
        // 300 kbit/s, and a queue of 30 ms at first.
        let mut waits = 9e3;
        let (capacity, _, theirs) = run(|bits| {
            waits = f64::max(waits + bits - 3e3, 0.0);
            (3e3, Duration::from_secs_f64(waits / 300e3))
        });
        assert!((270e3..330e3).contains(&capacity), "{capacity}");
        assert!((200..400).contains(&theirs), "{theirs}");
    }

    #[test]
    fn anothers_queue_stays_theirs_where_less_is_sent() {
        let (capacity, [least, most], theirs) = run(|bits| (bits, Duration::from_millis(50)));
        assert_eq!((capacity, most), (8e6, 310e3));
        assert!((180e3..190e3).contains(&least), "{least}");
        assert!(theirs > 550, "{theirs}");
    }

    /// Returns whether a queue is found to be another's within 2 s, of which the report at a millisecond shows `queue`, while
    /// as little as there may be is sent: a packet now and then, which is no rate.
    fn found_at_the_least(queue: impl Fn(u64) -> Duration) -> bool {
        let mut rival = Rival::default();
        (1..200_u64).any(|step| {
            let [offered, received] = [step % 4, step % 3].map(|some| 25e3 * some as f64);
            let shown = Shown {
                queue: queue(step * 10),
                received,
                offered,
                left: 50e3,
                capacity: 50e3,
                rtt: Duration::from_millis(60),
                least: true,
            };
            rival.observe(&shown, Duration::from_millis(6), Instant::from_millis(step * 10));
            rival.is_found()
        })
    }

    #[test]
    fn a_queue_that_stays_although_as_little_as_there_may_be_is_sent_is_anothers() {
        assert!(found_at_the_least(|at| Duration::from_millis(50 + at % 3)));
        // Ours drains, or the link gives way.
        assert!(!found_at_the_least(|at| Duration::from_millis(400_u64.saturating_sub(at / 4))));
        assert!(!found_at_the_least(|at| Duration::from_millis(at / 4)));
    }
}
