use tautline_units::{Duration, Instant};

/// A detector of queueing delay that our own packets did not cause: competing traffic, a longer
/// path, or delay wander.
///
/// A queue of our own shrinks when we send less, and then more arrives than was sent. If the
/// arrival rate equals the sending rate although our rate is held back, the queue is not ours.
/// (Copa looks for a queue that is hardly ever empty; a window-based flow in a short queue empties
/// it now and then.)
#[derive(Debug, Clone, Default)]
pub(super) struct Competing {
    /// Part of the queueing delay that our packets did not cause.
    theirs: Duration,
    follows: Option<Follows>,
    found: Option<Found>,
}

/// A period in which our rate is held back, a queue persists, and arrival and sending rates are
/// equal. If it lasts, the queue is not ours.
#[derive(Debug, Clone, Copy)]
struct Follows {
    since: Instant,
    /// Queueing delay at the start of the period.
    queue: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Found {
    /// Start of the present or next check whether the queue is still competing traffic's.
    check_at: Instant,
    /// True during a check, in which the sending rate is reduced.
    checking: bool,
    /// Maximum rate during a check of a light load, bit/s: a load that a share of the capacity
    /// would not lower. `None` outside such a check.
    thin: Option<f64>,
    /// Time at which losses last lowered the rate; until they do, the time at which competing
    /// traffic was found.
    lowered_at: Instant,
    /// Time since which there has been no queue; `None` while there is one.
    empty_since: Option<Instant>,
}

/// Input of the detector from one report; rates in bit/s.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// Queueing delay of the whole standing queue, our own part and that of others.
    pub(super) queue: Duration,
    /// Arrival rate of datagrams, corrected for random loss, bit/s.
    pub(super) received: f64,
    /// Sending rate of the datagrams that `received` counts, bit/s.
    pub(super) offered: f64,
    /// Current sending rate of the link, bit/s.
    pub(super) left: f64,
    /// Capacity estimate of the link, bit/s.
    pub(super) capacity: f64,
    /// Minimum RTT of the link.
    pub(super) rtt: Duration,
    /// True if the capacity estimate is at its minimum, so that the rate cannot be held back
    /// further.
    pub(super) least: bool,
}

/// Conclusions of the detector from one report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Told {
    /// Part of the queueing delay that our own packets caused.
    pub(super) ours: Duration,
    /// Arrival rate while a check of a light load drained the queue: the link's full capacity,
    /// bit/s. `None` unless such a check has just ended so.
    pub(super) carried: Option<f64>,
}

impl Competing {
    /// Returns whether competing traffic was found, so that losses control the rate.
    pub(super) fn is_found(&self) -> bool {
        self.found.is_some()
    }

    /// Returns the part of the queueing delay that our own packets did not cause.
    pub(super) fn theirs(&self) -> Duration {
        self.theirs
    }

    /// Returns the factor on the sending rate: [`CHECK_SHARE`] during a check, otherwise 1.
    pub(super) fn share(&self) -> f64 {
        if self.found.is_some_and(|found| found.checking) { CHECK_SHARE } else { 1.0 }
    }

    /// Returns the maximum sending rate, bit/s; infinite except during a check of a light load.
    pub(super) fn rate_most(&self) -> f64 {
        self.found.and_then(|found| found.thin).unwrap_or(f64::INFINITY)
    }

    /// Handles a report: looks for competing traffic or, once it is found, checks whether it is
    /// still there. Returns our part of the queueing delay, and the link's capacity if a check has
    /// shown it. A delay of at most `seen` does not count as a queue.
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

    /// Checks at intervals whether the queue is still competing traffic's, by sending less for a
    /// while. If the queue drains meanwhile or has been empty for a while, competing traffic is no
    /// longer found. Returns the link's capacity in bit/s if a light load's own queue drained, and
    /// `None` otherwise.
    fn check(
        &mut self,
        mut found: Found,
        shown: &Shown,
        seen: Duration,
        now: Instant,
    ) -> Option<f64> {
        // All arrivals are attributed to competing traffic until a check shows otherwise.
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

    /// Records losses in the queue of competing traffic; returns true if they must lower the rate:
    /// at most once per round trip through the queue. Returns false if no competing traffic is
    /// found.
    pub(super) fn on_overflow(&mut self, rtt: Duration, queue: Duration, now: Instant) -> bool {
        let Some(found) = &mut self.found else { return false };
        let lowers = now.since(found.lowered_at) > rtt + queue;
        if lowers {
            found.lowered_at = now;
        }
        lowers
    }

    /// Resets the detector because the link was silent.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Follows {
    /// Returns whether the period has ended: the queue has grown or shrunk since its start by more
    /// than fluctuations do, or arrival and sending rates differ.
    ///
    /// At the minimum rate there are too few packets in 60 ms for a rate, and the queue alone
    /// decides.
    fn is_apart(self, shown: &Shown, now: Instant) -> bool {
        let moved = shown.queue.max(self.queue) - shown.queue.min(self.queue);
        let wanders = moved > now.since(self.since).mul_f64(APART) + WANDERS;
        let apart = (shown.received - shown.offered).abs() > APART * shown.offered;
        wanders || (apart && !shown.least)
    }
}

/// Relative difference up to which arrival and sending rates are equal, as accurate as 60 ms allow.
const APART: f64 = 0.12;
/// Change of a queue's delay that fluctuations explain, in addition to [`APART`] of the elapsed
/// time.
const WANDERS: Duration = Duration::from_millis(4);
/// Sending rate, as a share of the capacity estimate, below which a queue that lasts may be that of
/// competing traffic.
const HELD_BACK: f64 = 0.86;
const FOLLOWS_LEAST: Duration = Duration::from_millis(150);
/// Factor on the sending rate during a check whether the queue is still competing traffic's.
const CHECK_SHARE: f64 = 0.6;
/// Sending rate from which a light load is checked, bit/s; below it there is no media.
const CHECKED_LEAST: f64 = 100e3;
/// Share of the capacity below which a load is light: nothing else shows that it is too high. (At
/// .5, two links of which one is shared with CUBIC carry 8.2 Mbit/s instead of 8.4.)
const THIN: f64 = 0.2;
/// Time from the end of one check to the start of the next; also from finding competing traffic to
/// the first check.
const CHECK_INTERVAL: Duration = Duration::from_millis(2_500);
/// Duration of a check, in addition to a round trip.
const CHECK_TIME: Duration = Duration::from_millis(80);
/// Ratio of arrival to sending rate above which a check concludes that the queue is our own and
/// drains.
const DRAINS: f64 = 1.3;
/// Time without a queue after which competing traffic is gone.
const EMPTY_FOR: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Sends up to 310 kbit/s for 6 s with an initial capacity estimate of 8 Mbit/s. `carries` maps
    /// sent bits to delivered bits and queueing delay. Returns the estimate found, the minimum and
    /// maximum rate sent, and the number of reports that attributed the queue to competing traffic.
    fn run(mut carries: impl FnMut(f64) -> (f64, Duration)) -> (f64, [f64; 2], u32) {
        let mut competing = Competing::default();
        let (mut capacity, mut sent, mut received) = (8e6_f64, VecDeque::new(), VecDeque::new());
        let (mut least, mut most, mut theirs) = (f64::INFINITY, 0.0_f64, 0);
        for step in 1..600_u64 {
            let left = competing.rate_most().min(capacity).min(310e3);
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
            let told = competing.observe(&shown, Duration::from_millis(6), now);
            capacity = told.carried.map_or(capacity, |carried| carried.min(capacity));
            theirs += u32::from(competing.is_found());
        }
        (capacity, [least, most], theirs)
    }

    #[test]
    fn a_light_load_detects_its_own_queue_too() {
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

    /// Returns whether competing traffic is found within 2 s at the minimum rate, with only
    /// occasional packets and thus no measurable rate. `queue` maps milliseconds to the reported
    /// queue.
    fn found_at_the_least(queue: impl Fn(u64) -> Duration) -> bool {
        let mut competing = Competing::default();
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
            competing.observe(&shown, Duration::from_millis(6), Instant::from_millis(step * 10));
            competing.is_found()
        })
    }

    #[test]
    fn a_queue_that_stays_at_the_minimum_rate_is_competing() {
        assert!(found_at_the_least(|at| Duration::from_millis(50 + at % 3)));
        // Our own queue drains, or the link stalls.
        assert!(!found_at_the_least(|at| Duration::from_millis(400_u64.saturating_sub(at / 4))));
        assert!(!found_at_the_least(|at| Duration::from_millis(at / 4)));
    }
}
