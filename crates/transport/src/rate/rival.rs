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
    follows_since: Option<Instant>,
    found: Option<Found>,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    /// When it is looked again whether the queue is another's, and whether that has begun.
    check_at: Instant,
    checking: bool,
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

    /// Takes a report and returns what of the queue is ours.
    pub(super) fn observe(&mut self, shown: &Shown, seen: Duration, now: Instant) -> Duration {
        self.theirs = self.theirs.min(shown.queue);
        match self.found {
            Some(found) => self.check(found, shown, seen, now),
            None => self.look(shown, seen, now),
        }
        shown.queue - self.theirs
    }

    fn look(&mut self, shown: &Shown, seen: Duration, now: Instant) {
        let apart = (shown.received - shown.offered).abs();
        let held_back = shown.left < HELD_BACK * shown.capacity;
        let ours = shown.queue - self.theirs;
        if ours <= seen || !held_back || apart > APART * shown.offered {
            self.follows_since = None;
            return;
        }
        let since = *self.follows_since.get_or_insert(now);
        if now.since(since) > (shown.rtt * 3).max(FOLLOWS_LEAST) {
            self.theirs = shown.queue;
            self.follows_since = None;
            self.found = Some(Found {
                check_at: now + CHECK_INTERVAL,
                checking: false,
                lowered_at: now,
                empty_since: None,
            });
        }
    }

    /// Finds out whether the queue is still another's: by sending less for a while.
    fn check(&mut self, mut found: Found, shown: &Shown, seen: Duration, now: Instant) {
        // All that comes is taken for theirs until a check says otherwise.
        self.theirs = shown.queue;
        found.empty_since = match shown.queue > seen {
            true => None,
            false => found.empty_since.or(Some(now)),
        };
        if !found.checking && now >= found.check_at {
            found.checking = true;
        }
        let drains = shown.received > DRAINS * shown.offered;
        let checked = found.checking && now >= found.check_at + shown.rtt + CHECK_TIME;
        let empty = found.empty_since.is_some_and(|since| now.since(since) > EMPTY_FOR);
        if empty || (checked && drains) {
            *self = Self::default();
            return;
        }
        if checked {
            (found.checking, found.check_at) = (false, now + CHECK_INTERVAL);
        }
        self.found = Some(found);
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

/// As much arrives as was sent, to what 60 ms can tell.
const APART: f64 = 0.12;
/// The rate is held back that is below this share of the capacity.
const HELD_BACK: f64 = 0.86;
const FOLLOWS_LEAST: Duration = Duration::from_millis(150);
/// What is sent during a check, how often there is one, and how long beside a round trip.
const CHECK_SHARE: f64 = 0.6;
const CHECK_INTERVAL: Duration = Duration::from_millis(2_500);
const CHECK_TIME: Duration = Duration::from_millis(80);
/// More arrives than was sent by so much where our own queue drains.
const DRAINS: f64 = 1.3;
const EMPTY_FOR: Duration = Duration::from_millis(500);
