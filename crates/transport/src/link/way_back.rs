//! What does not wait for media's pace: how much of it a link's way carries.

use std::collections::VecDeque;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::wire::Report;

/// The rate at which reports, pongs, pings and copies may leave on a link that carries no media of ours.
///
/// A way back may carry a hundredth of the way out. Nothing is held until a queue is seen. While the delay shows that a queue stands in it, what
/// arrives is what it carries, and less than that leaves; else the rate grows, to at most twice what
/// is sent. Nothing is ever held for longer than [`SILENCE_MOST`], and copies of commands not at all:
/// they use up what the others might have had, and most are left out while a long queue drains.
#[derive(Debug)]
pub(super) struct WayBack {
    /// bit/s, with IP's and UDP's headers.
    rate: f64,
    /// What arrived when a queue stood last, bit/s; fading. `None` if none ever stood.
    known: Option<f64>,
    /// When the rate allows the next datagram.
    free_at: Instant,
    /// When the last one left that was not a copy alone.
    told_at: Instant,
    /// When the last copy of a command was taken.
    copied_at: Instant,
    /// Bits that left.
    sent: f64,
    marks: VecDeque<Mark>,
    /// By our clock: transit times of the last [`SPAN`].
    transits: VecDeque<(Instant, i64)>,
    /// The least transit, by the second.
    least: VecDeque<(u64, i64)>,
    judged_at: Instant,
    fell_at: Instant,
    /// Since when a queue has stood.
    queued_since: Option<Instant>,
}

/// The state of the counts when a report came.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// By the peer's clock.
    taken_at: Instant,
    came_at: Instant,
    highest: u64,
    datagrams: u64,
    /// Bits that had arrived, and that had left.
    arrived: f64,
    sent: f64,
}

impl WayBack {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            rate: RATE_MOST,
            known: None,
            free_at: now,
            told_at: now,
            copied_at: now,
            sent: 0.0,
            marks: VecDeque::new(),
            transits: VecDeque::new(),
            least: VecDeque::new(),
            judged_at: now,
            fell_at: now,
            queued_since: None,
        }
    }

    /// Returns when the next report, pong or ping may leave.
    pub(super) fn due_at(&self) -> Instant {
        let silence = if self.is_clogged() { SILENCE_CLOGGED } else { SILENCE_MOST };
        self.free_at.min(self.told_at + silence)
    }

    /// Returns whether what left has to arrive first.
    fn is_clogged(&self) -> bool {
        self.is_thin() && self.queue() > QUEUE_CLOGGED
    }

    /// Returns when one may leave in the datagram of a copy, which leaves at any rate: it then costs
    /// its bytes only.
    pub(super) fn rides_at(&self) -> Instant {
        let pause = match self.queue() > QUEUE_LONG {
            true if self.is_clogged() => SILENCE_CLOGGED,
            true => RIDES_QUEUED,
            false => RIDES,
        };
        self.due_at().min(self.told_at + pause)
    }

    /// Returns whether the way was found to carry little: what is told twice is told once then.
    pub(super) fn is_thin(&self) -> bool {
        self.known.is_some_and(|known| known < THIN)
    }

    /// Returns the rate that copies may take; `None` if no bound is known.
    pub(super) fn copies(&self) -> Option<Bitrate> {
        self.is_thin().then(|| Bitrate::from_bps((self.rate * COPIES_SHARE) as u64))
    }

    /// Returns whether a copy of a command may leave: while a long queue drains in a thin way, most of
    /// them would only lengthen it, and the next comes soon.
    pub(super) fn takes_copy(&mut self, now: Instant) -> bool {
        let pause = if self.is_clogged() { COPIES_CLOGGED } else { COPIES_PAUSE };
        let takes =
            !self.is_thin() || self.queue() < QUEUE_COPIES || now.since(self.copied_at) > pause;
        if takes {
            self.copied_at = now;
        }
        takes
    }

    /// Notes a datagram of `bytes` bytes.
    pub(super) fn on_sent(&mut self, bytes: usize, now: Instant) {
        let bits = bits(bytes as u64, 1);
        self.sent += bits;
        let from = self.free_at.max(now - BURST);
        self.free_at = from + Duration::from_secs_f64(bits / self.rate);
    }

    /// Notes that the datagram that just left held a report, a pong or a ping.
    pub(super) fn on_told(&mut self, now: Instant) {
        self.told_at = now;
    }

    /// Takes a transit time: a datagram's arrival less its departure, nanoseconds by two clocks.
    pub(super) fn on_transit(&mut self, transit: i64, now: Instant) {
        self.transits.push_back((now, transit));
        while self.transits.front().is_some_and(|(at, _)| now.since(*at) > SPAN) {
            self.transits.pop_front();
        }
        let second = now.as_millis() / 1_000;
        match self.least.back_mut().filter(|(slot, _)| *slot == second) {
            Some((_, least)) => *least = transit.min(*least),
            None => self.least.push_back((second, transit)),
        }
        while self.least.front().is_some_and(|(slot, _)| slot + LEAST_SECONDS <= second) {
            self.least.pop_front();
        }
    }

    /// Takes a report of what arrived.
    pub(super) fn on_report(&mut self, report: &Report, now: Instant) {
        let mark = Mark {
            taken_at: report.taken_at,
            came_at: now,
            highest: report.highest,
            datagrams: report.datagrams,
            arrived: bits(report.bytes.get(), report.datagrams),
            sent: self.sent,
        };
        self.marks.push_back(mark);
        while self.marks.get(1).is_some_and(|next| now.since(next.came_at) >= MEASURED) {
            self.marks.pop_front();
        }
        let elapsed = now.since(self.judged_at).min(SPAN);
        self.judged_at = now;
        self.judge(mark, elapsed, now);
    }

    fn judge(&mut self, mark: Mark, elapsed: Duration, now: Instant) {
        let Some((carried, sent)) = self.marks.front().and_then(|first| rates(first, &mark)) else {
            return;
        };
        let queue = self.queue();
        self.known = self.known.map(|known| known * (1.0 + share(elapsed, KNOWN_LIFE)));
        if queue < QUEUE_SEEN {
            self.queued_since = None;
            let near = self.known.is_some_and(|known| self.rate > known * NEAR);
            let growth = if near { GROWTH_NEAR } else { GROWTH };
            let grown = self.rate * (1.0 + share(elapsed, growth));
            self.rate = self.rate.max(grown.min((sent * REACH).max(RATE_DOUBTED))).min(RATE_MOST);
            return;
        }
        let since = *self.queued_since.get_or_insert(now);
        let fills = carried < sent * LESS;
        // It stands, and what leaves does not let it drain.
        let stands = queue > QUEUE_LONG && carried < sent * MORE;
        if (fills || stands) && now.since(self.fell_at) > MEASURED {
            let share = if queue > QUEUE_LONG { DRAIN } else { FALL };
            // A way that has only become longer looks alike, but brings what is sent.
            let least = match (fills, self.known) {
                (true, _) => RATE_LEAST,
                (false, Some(known)) => (known * DRAIN).max(RATE_LEAST),
                (false, None) => RATE_DOUBTED,
            };
            if fills {
                self.known = Some(carried.max(RATE_LEAST));
            }
            self.rate = self.rate.min((carried * share).max(least));
            self.fell_at = now;
        } else if carried >= sent * MORE {
            // It drains.
            self.queued_since = Some(now);
        } else if !fills && now.since(since) > STUCK_FOR {
            self.queued_since = None;
            self.least.clear();
            self.transits.clear();
        }
    }

    /// Returns how long a datagram waits in the way's queue: the least of the last [`SPAN`] over the least
    /// of the last seconds; what only some wait is jitter, and what all of a moment wait a stall.
    fn queue(&self) -> Duration {
        let spanned = self.transits.front().zip(self.transits.back());
        let long = spanned.is_some_and(|(first, last)| last.0.since(first.0) >= SPAN / 2);
        let of_late = self.transits.iter().map(|(_, transit)| *transit).min();
        let least = self.least.iter().map(|(_, transit)| *transit).min();
        let over = of_late.zip(least).filter(|_| long);
        let over = over.map_or(0, |(of_late, least)| of_late.saturating_sub(least));
        Duration::from_nanos(u64::try_from(over).unwrap_or(0))
    }
}

/// Returns the rates at which datagrams came through, lost ones among them, and at which they left, bit/s;
/// `None` if the reports are too near each other.
fn rates(first: &Mark, last: &Mark) -> Option<(f64, f64)> {
    let (peer, own) = (last.taken_at.since(first.taken_at), last.came_at.since(first.came_at));
    if peer < MEASURED / 2 || own < MEASURED / 2 {
        return None;
    }
    let arrived = (last.datagrams - first.datagrams) as f64;
    let passed = (last.highest - first.highest) as f64;
    // What others' losses took did not wait either.
    let lost = if arrived > 0.0 { (passed / arrived).max(1.0) } else { 1.0 };
    let carried = (last.arrived - first.arrived) * lost / peer.as_secs_f64();
    Some((carried, (last.sent - first.sent) / own.as_secs_f64()))
}

fn bits(bytes: u64, datagrams: u64) -> f64 {
    ByteCount::new(bytes + HEADERS * datagrams).get() as f64 * 8.0
}

fn share(elapsed: Duration, of: Duration) -> f64 {
    elapsed.as_secs_f64() / of.as_secs_f64()
}

/// IPv4 (20) and UDP (8).
const HEADERS: u64 = 28;
/// What pings, pongs, idle reports and copies of commands take: no less is sent while it is not sure that
/// the queue is ours.
const RATE_DOUBTED: f64 = 100e3;
/// A command's copy every 40 ms; less is no way back.
const RATE_LEAST: f64 = 24e3;
const RATE_MOST: f64 = 10e6;
/// Reports every 10 ms, pongs, pings and copies of commands take 200 kbit/s.
const THIN: f64 = 400e3;
/// What copies may have of what the way carries, so that reports and pongs have as much.
const COPIES_SHARE: f64 = 0.5;
/// Three pings' time: without a pong for so long a link is suspect.
const SILENCE_MOST: Duration = Duration::from_millis(60);
/// With every second command of 50 a second, and with every third.
const RIDES: Duration = Duration::from_millis(30);
const RIDES_QUEUED: Duration = Duration::from_millis(50);
/// A pong and a report that are due at once may both leave.
const BURST: Duration = Duration::from_millis(10);
/// Over which a queue must stand; a radio's stall is shorter.
const SPAN: Duration = Duration::from_millis(200);
/// Over which rates are measured: three idle reports.
const MEASURED: Duration = Duration::from_millis(250);
/// A datagram of 200 bytes on a way of 128 kbit/s takes as long.
const QUEUE_SEEN: Duration = Duration::from_millis(12);
const QUEUE_LONG: Duration = Duration::from_millis(30);
/// Beside it a command is better late by its interval than by the queue.
const QUEUE_COPIES: Duration = Duration::from_millis(60);
const COPIES_PAUSE: Duration = Duration::from_millis(30);
/// With a longer queue nothing is as urgent as that it drains.
const QUEUE_CLOGGED: Duration = Duration::from_millis(100);
const COPIES_CLOGGED: Duration = Duration::from_millis(55);
const SILENCE_CLOGGED: Duration = Duration::from_millis(100);
/// Less than this share of what leaves arrives: the queue grows.
const LESS: f64 = 0.93;
const MORE: f64 = 1.02;
/// What is sent of what arrives: beside a short queue, and to drain a long one.
const FALL: f64 = 0.8;
const DRAIN: f64 = 0.6;
/// How far the rate may be above what is sent.
const REACH: f64 = 2.0;
/// To grow by a factor e: far from where a queue stood last, and near.
const GROWTH: Duration = Duration::from_millis(500);
const GROWTH_NEAR: Duration = Duration::from_secs(8);
const NEAR: f64 = 0.85;
/// A way may have become wider.
const KNOWN_LIFE: Duration = Duration::from_secs(30);
const STUCK_FOR: Duration = Duration::from_secs(2);
const LEAST_SECONDS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{LinkNumber, Recent};

    /// Offers `offered` bytes every 5 ms to a way of `carried` bit/s for 12 s; returns what left in the
    /// last 6 s, bit/s, and the longest queue then, s.
    fn run(carried: f64, offered: usize) -> (f64, f64) {
        let mut way = WayBack::new(Instant::ZERO);
        let (mut queue_end, mut worst, mut bits_sent) = (0.0_f64, 0.0_f64, 0.0);
        let mut arrivals: VecDeque<(f64, i64, f64)> = VecDeque::new();
        let (mut number, mut arrived) = (0_u64, (0_u64, 0_u64));
        for tick in 0..2_400_u64 {
            let (now, seconds) = (Instant::from_millis(tick * 5), tick as f64 * 0.005);
            if now >= way.due_at() {
                let bits = bits(offered as u64, 1);
                queue_end = queue_end.max(seconds) + bits / carried;
                if seconds > 6.0 {
                    worst = worst.max(queue_end - seconds);
                    bits_sent += bits;
                }
                let transit = ((queue_end - seconds + 0.02) * 1e9) as i64;
                arrivals.push_back((queue_end + 0.02, transit, bits));
                way.on_sent(offered, now);
                way.on_told(now);
                number += 1;
            }
            while let Some((_, transit, _)) =
                arrivals.front().filter(|(at, ..)| at + 0.02 <= seconds)
            {
                way.on_transit(*transit, now);
                arrived = (arrived.0 + 1, arrived.1 + offered as u64);
                arrivals.pop_front();
            }
            if tick % 20 == 0 && arrived.0 > 0 {
                way.on_report(
                    &Report {
                        link: LinkNumber::new(0).unwrap(),
                        taken_at: now,
                        highest: arrived.0 - 1,
                        datagrams: arrived.0,
                        bytes: ByteCount::new(arrived.1),
                        age: None,
                        recent: Recent::of(0, |_| false),
                    },
                    now,
                );
            }
        }
        assert!(number > 0);
        (bits_sent / 6.0, worst)
    }

    #[test]
    fn a_thin_way_is_filled_without_a_queue() {
        for kbps in [64.0, 128.0, 160.0] {
            let (rate, worst) = run(kbps * 1e3, 120);
            assert!((0.65..1.02).contains(&(rate / kbps / 1e3)), "{kbps}: {rate}");
            assert!(worst < 0.1, "{kbps}: {worst}");
        }
    }

    #[test]
    fn a_roomy_way_holds_nothing_up() {
        // 236.8 kbit/s, all that is offered.
        let (rate, worst) = run(8e6, 120);
        assert!(rate > 236e3, "{rate}");
        assert!(worst < 0.001, "{worst}");
    }
}
