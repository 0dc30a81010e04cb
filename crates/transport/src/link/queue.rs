use std::collections::VecDeque;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// Queueing delay of a link: the excess of its datagrams' transit times over the minimum.
///
/// Transit times are differences of two clocks; only differences between them are meaningful.
#[derive(Debug, Clone, Default)]
pub(crate) struct Queue {
    /// Time of report by our clock, and transit in nanoseconds, of the last [`SPAN`].
    transits: VecDeque<(Instant, i64)>,
    /// Number of each half second of the last ten seconds, on our clock, and the minimum transit in
    /// it, nanoseconds.
    least: VecDeque<(u64, i64)>,
    /// Smoothed difference between consecutive transits, nanoseconds.
    jitter: f64,
    drain: Option<Drain>,
}

/// A queue of this link's own traffic that drains, as of the last report.
#[derive(Debug, Clone, Copy)]
struct Drain {
    /// Last time at which the queue was long enough to make recent delays a poor prediction.
    seen_at: Instant,
    /// Send time, on our clock, up to which datagrams would have arrived when the report was taken
    /// if there were no queue.
    departed_by: Instant,
    /// Rate at which datagrams arrived according to the last sample.
    rate: Bitrate,
}

impl Queue {
    /// Records a datagram's transit: its arrival time minus its send time, in nanoseconds.
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

    /// Records the bytes that wait in the link's queue according to a report, among those sent up
    /// to `departed_by`, and the rate of arrival. A queue of less than [`WAITING_LEAST`] counts
    /// only for [`DRAIN_LIFE`] after a longer one.
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

    /// Drops samples older than [`SPAN`], except the newest.
    pub(crate) fn advance(&mut self, now: Instant) {
        while self.transits.len() > 1
            && self.transits.front().is_some_and(|(at, _)| now.since(*at) > SPAN)
        {
            self.transits.pop_front();
        }
    }

    /// Drops the transits of the last [`SPAN`] and the draining queue because the link was silent;
    /// keeps the minimum.
    pub(crate) fn clear(&mut self) {
        self.transits.clear();
        self.drain = None;
    }

    /// Returns the queueing delay that persisted for [`SPAN`], zero without samples; a delay of
    /// only some datagrams is jitter.
    pub(crate) fn standing(&self) -> Duration {
        let recent = self.transits.iter().map(|(_, transit)| *transit).min();
        let over =
            recent.zip(self.least()).map_or(0, |(recent, least)| recent.saturating_sub(least));
        Duration::from_nanos(u64::try_from(over).unwrap_or(0))
    }

    /// Returns the smoothed absolute difference between consecutive transits.
    pub(crate) fn jitter(&self) -> Duration {
        Duration::from_nanos(self.jitter as u64)
    }

    /// Returns the send time, on our clock, of a datagram that arrives at `at` on the peer's clock
    /// without queueing; `None` before the first sample.
    pub(crate) fn departed_by(&self, at: Instant) -> Option<Instant> {
        self.least().map(|least| at.offset_by_nanos(least.saturating_neg()))
    }

    /// Returns the transit in nanoseconds of a datagram sent now, behind everything `in_flight`, if
    /// a queue of the link's own traffic drains; `None` otherwise. The datagrams that arrive
    /// meanwhile have waited longer than this one will.
    pub(crate) fn transit_ahead(&self, in_flight: ByteCount, now: Instant) -> Option<i64> {
        let Drain { departed_by, rate, .. } = self.drain?;
        let wait = rate.time_for(in_flight).saturating_sub(now.since(departed_by));
        let wait = (wait + rate.time_for(ITSELF)).as_nanos();
        Some(self.least()?.saturating_add(i64::try_from(wait).unwrap_or(i64::MAX)))
    }

    /// Returns the minimum transit of the last ten seconds, in nanoseconds; `None` before the first
    /// sample.
    pub(crate) fn least(&self) -> Option<i64> {
        self.least.iter().map(|(_, least)| *least).min()
    }
}

/// Time for which a delay must persist to count as a queue: about a picture interval at 15 pictures
/// a second.
const SPAN: Duration = Duration::from_millis(60);
/// Divisor of a new difference in the jitter ([RFC3550] 6.4.1).
const JITTER_SHARE: f64 = 16.0;
const SLOT_MILLIS: u64 = 500;
const SLOTS: u64 = 20;
/// Minimum queue that makes recent delays a poor prediction: ten full datagrams. On a low-rate link
/// pictures leave fewer queued. With a limit of two datagrams, a tenth of its pictures was
/// incomplete at 500 kbit/s, with ten a sixteenth.
const WAITING_LEAST: ByteCount = ByteCount::new(12_000);
/// Time after a queue of at least [`WAITING_LEAST`] for which it still distorts the smoothed delay,
/// so that the draining queue is used in place of that delay.
const DRAIN_LIFE: Duration = Duration::from_millis(300);
/// Assumed size of a new datagram: it takes longer than the small ones that set the minimum
/// transit.
const ITSELF: ByteCount = ByteCount::new(1_200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_the_least_recent_delay_above_the_minimum() {
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
        // The minimum changed ten seconds ago: the path is longer now.
        assert_eq!(see(10_200, -240), (ms(0), Some(at(1_240))));
    }

    #[test]
    fn a_departing_packet_is_delayed_by_the_bytes_ahead() {
        let at = Instant::from_millis;
        let rate = Bitrate::from_kbps(960);
        let mut queue = Queue::default();
        queue.observe(-300_000_000, at(0));
        // The report is 20 ms old; arguments: bytes queued then, and all bytes in flight.
        let mut ahead = |waiting: u64, in_flight: u64, rate: Bitrate, now: Instant| {
            let departed_by = Instant::from_millis(now.as_millis() - 20);
            queue.note_waiting(ByteCount::new(waiting), departed_by, rate, now);
            let transit = queue.transit_ahead(ByteCount::new(in_flight), now);
            transit.map(|transit| transit / 1_000_000 + 300)
        };
        // Too little to tell.
        assert_eq!(ahead(9_600, 12_000, rate, at(100)), None);
        // 120 ms, minus the report's age, plus its own 10 ms.
        assert_eq!(ahead(12_000, 14_400, rate, at(110)), Some(110));
        // The queue is nearly empty while its last datagrams, which waited long, arrive.
        assert_eq!(ahead(0, 3_600, rate, at(120)), Some(20));
        assert_eq!(ahead(0, 0, rate, at(110) + DRAIN_LIFE), Some(10));
        assert_eq!(ahead(0, 0, rate, at(111) + DRAIN_LIFE), None);
        // Without arrivals nothing drains.
        assert_eq!(ahead(12_000, 12_000, Bitrate::ZERO, at(500)), None);
    }
}
