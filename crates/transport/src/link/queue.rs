use std::collections::VecDeque;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// The queue in which a link's datagrams wait: how much longer than the least their transit takes.
///
/// Transit times are differences of two clocks; only their differences mean something.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// By our clock, of the last [`SPAN`]: nanoseconds.
    transits: VecDeque<(Instant, i64)>,
    /// The least of the last ten seconds, by the half second.
    least: VecDeque<(u64, i64)>,
    /// How much one differs from the one before it, smoothed, nanoseconds.
    jitter: f64,
    drain: Option<Drain>,
}

/// A queue of what this link itself carries, by the last report.
#[derive(Debug, Clone, Copy)]
struct Drain {
    /// When so much waited last that the delays of late say little of what leaves now.
    seen_at: Instant,
    /// When, on our clock, that left which had arrived by then if it waited for nothing.
    departed_by: Instant,
    /// The rate at which datagrams arrive.
    rate: Bitrate,
}

impl Queue {
    /// Takes a datagram's arrival less its departure.
    pub(crate) fn observe(&mut self, transit: i64, now: Instant) {
        if let Some((_, last)) = self.transits.back() {
            let step = transit.saturating_sub(*last).unsigned_abs() as f64;
            self.jitter += (step - self.jitter) / JITTER_SHARE;
        }
        self.transits.push_back((now, transit));
        let slot = now.as_millis() / SLOT_MILLIS;
        match self.least.back_mut() {
            Some((at, least)) if *at == slot => *least = transit.min(*least),
            Some(_) | None => self.least.push_back((slot, transit)),
        }
        while self.least.front().is_some_and(|(at, _)| at + SLOTS <= slot) {
            self.least.pop_front();
        }
    }

    /// Takes what waits in the queue by a report, of what left by `departed_by`, and the rate at which datagrams arrive.
    pub(crate) fn note_waiting(
        &mut self,
        waiting: ByteCount,
        departed_by: Instant,
        rate: Bitrate,
        now: Instant,
    ) {
        let seen_at = match waiting >= WAITING_LEAST {
            true => Some(now),
            false => self.drain.map(|drain| drain.seen_at),
        };
        self.drain = seen_at
            .filter(|at| rate > Bitrate::ZERO && now.since(*at) <= DRAIN_LIFE)
            .map(|seen_at| Drain { seen_at, departed_by, rate });
    }

    /// Lets go of what is older than [`SPAN`], but for the newest.
    pub(crate) fn advance(&mut self, now: Instant) {
        while self.transits.len() > 1
            && self.transits.front().is_some_and(|(at, _)| now.since(*at) > SPAN)
        {
            self.transits.pop_front();
        }
    }

    /// Forgets what came of late: the link was silent.
    pub(crate) fn clear(&mut self) {
        self.transits.clear();
        self.drain = None;
    }

    /// Returns the queue that has stood for [`SPAN`]: what only some wait is jitter.
    pub(crate) fn standing(&self) -> Duration {
        let of_late = self.transits.iter().map(|(_, transit)| *transit).min();
        let over = of_late.zip(self.least()).map_or(0, |(late, least)| late.saturating_sub(least));
        Duration::from_nanos(u64::try_from(over).unwrap_or(0))
    }

    /// Returns how much one transit differs from the next.
    pub(crate) fn jitter(&self) -> Duration {
        Duration::from_nanos(self.jitter as u64)
    }

    /// Returns when, on our clock, what arrives at `at` on the peer's left if it waited for nothing.
    pub(crate) fn departed_by(&self, at: Instant) -> Option<Instant> {
        self.least().map(|least| at.offset_by_nanos(least.saturating_neg()))
    }

    /// Returns the transit of what leaves now, behind all that is `in_flight`, where a queue of the link's own tells: while it
    /// drains, those that arrive have waited for longer.
    pub(crate) fn transit_ahead(&self, in_flight: ByteCount, now: Instant) -> Option<i64> {
        let Drain { departed_by, rate, .. } = self.drain?;
        let wait = rate.time_for(in_flight).saturating_sub(now.since(departed_by));
        let wait = (wait + rate.time_for(ITSELF)).as_nanos();
        Some(self.least()?.saturating_add(i64::try_from(wait).unwrap_or(i64::MAX)))
    }

    /// Returns the least transit of the last ten seconds.
    pub(crate) fn least(&self) -> Option<i64> {
        self.least.iter().map(|(_, least)| *least).min()
    }
}

/// A picture's time at 15 a second.
const SPAN: Duration = Duration::from_millis(60);
/// As [RFC3550] 6.4.1 has it.
const JITTER_SHARE: f64 = 16.0;
const SLOT_MILLIS: u64 = 500;
const SLOTS: u64 = 20;
/// Ten full datagrams. (A thin link's pictures leave fewer behind: with two of them a tenth of its pictures was not
/// whole at 500 kbit/s, with ten a sixteenth.)
const WAITING_LEAST: ByteCount = ByteCount::new(12_000);
/// Until the smoothed delay has forgotten the queue.
const DRAIN_LIFE: Duration = Duration::from_millis(300);
/// A datagram, which takes longer than the small ones whose transit is the least.
const ITSELF: ByteCount = ByteCount::new(1_200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_what_all_of_late_waited() {
        let (at, ms) = (Instant::from_millis, Duration::from_millis);
        let mut queue = Queue::default();
        let mut see = |millis: u64, transit: i64| {
            queue.observe(transit * 1_000_000, at(millis));
            queue.advance(at(millis));
            (queue.standing(), queue.departed_by(at(1_000)))
        };
        assert_eq!(see(0, -300), (ms(0), Some(at(1_300))));
        assert_eq!(see(10, -260).0, ms(0));
        assert_eq!(see(80, -270).0, ms(30));
        assert_eq!(see(90, -280).0, ms(20));
        // Where the least was another ten seconds ago, the way is longer now.
        assert_eq!(see(10_200, -240), (ms(0), Some(at(1_240))));
    }

    #[test]
    fn what_leaves_now_waits_for_what_is_ahead_of_it() {
        let at = Instant::from_millis;
        let rate = Bitrate::from_kbps(960);
        let mut queue = Queue::default();
        queue.observe(-300_000_000, at(0));
        // By a report that is 20 ms old: what waited then, and what is on its way in all.
        let mut ahead = |waiting: u64, in_flight: u64, rate: Bitrate, now: Instant| {
            let departed_by = Instant::from_millis(now.as_millis() - 20);
            queue.note_waiting(ByteCount::new(waiting), departed_by, rate, now);
            let transit = queue.transit_ahead(ByteCount::new(in_flight), now);
            transit.map(|transit| transit / 1_000_000 + 300)
        };
        // Too little to tell.
        assert_eq!(ahead(9_600, 12_000, rate, at(100)), None);
        // 120 ms, less the report's age, and its own 10 ms.
        assert_eq!(ahead(12_000, 14_400, rate, at(110)), Some(110));
        // It is nearly empty, while its last datagrams arrive that waited for long.
        assert_eq!(ahead(0, 3_600, rate, at(120)), Some(20));
        assert_eq!(ahead(0, 0, rate, at(110) + DRAIN_LIFE), Some(10));
        assert_eq!(ahead(0, 0, rate, at(111) + DRAIN_LIFE), None);
        // Where nothing arrives nothing drains.
        assert_eq!(ahead(12_000, 12_000, Bitrate::ZERO, at(500)), None);
    }
}
