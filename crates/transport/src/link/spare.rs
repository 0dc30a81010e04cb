use std::collections::VecDeque;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// What a link has to spare for data: what media leaves of the granted rate, as far as no queue
/// stands in the link.
///
/// The rate grows while it is used and the delay shows no queue, and falls as soon as one stands:
/// so data finds out what a link carries without a command having to wait behind it.
#[derive(Debug)]
pub(crate) struct Spare {
    /// bit/s.
    rate: f64,
    /// Where a queue last stood, bit/s; fading.
    known: f64,
    /// What media took of late, bit/s.
    media: f64,
    media_bytes: u64,
    media_at: Instant,
    /// When the rate allows the next datagram.
    free_at: Instant,
    /// Data datagrams of which no report tells: number, bytes.
    flying: VecDeque<(u64, u64)>,
    in_flight: u64,
    /// By our clock: transit times of the last [`SPAN`].
    transits: VecDeque<(Instant, i64)>,
    /// The least transit, by the second.
    least: VecDeque<(u64, i64)>,
    grown_at: Instant,
    fell_at: Instant,
    used_at: Instant,
}

impl Spare {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            rate: BEGIN,
            known: f64::INFINITY,
            media: 0.0,
            media_bytes: 0,
            media_at: now,
            free_at: now,
            flying: VecDeque::new(),
            in_flight: 0,
            transits: VecDeque::new(),
            least: VecDeque::new(),
            grown_at: now,
            fell_at: now,
            used_at: now,
        }
    }

    /// Returns the bytes of data that left and that no report has told of.
    pub(crate) fn in_flight(&self) -> ByteCount {
        ByteCount::new(self.in_flight)
    }

    /// Returns the rate that data may take at present, of what is granted: what media leaves, and a share of what media
    /// takes where that is more, for media takes all that it is given.
    pub(crate) fn rate(&self, granted: Bitrate) -> Bitrate {
        Bitrate::from_bps(self.left(granted).max(self.media * DATA_SHARE) as u64)
    }

    /// Returns whether data has no more than its own share at present, for which media makes room.
    pub(crate) fn takes_share(&self, granted: Bitrate) -> bool {
        self.left(granted) < self.media * DATA_SHARE
    }

    /// Returns what media leaves of what is granted, bit/s, as far as no queue stands.
    fn left(&self, granted: Bitrate) -> f64 {
        self.rate.min((granted.as_f64() - self.media * MEDIA_MARGIN).max(0.0))
    }

    /// Returns when the next datagram of data may leave.
    pub(crate) fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Returns the largest datagram of data: a command that comes next waits no longer than 3 ms for it.
    pub(crate) fn datagram_bytes_max(&self) -> ByteCount {
        // What media takes the link is known to carry.
        let bytes = (self.rate.max(self.media) * TIME_MOST.as_secs_f64() / 8.0) as u64;
        ByteCount::new(bytes.clamp(BYTES_LEAST, BYTES_MOST))
    }

    /// Notes a datagram of media.
    pub(crate) fn on_media(&mut self, bytes: usize, now: Instant) {
        self.media_bytes += bytes as u64;
        self.measure_media(now);
    }

    fn measure_media(&mut self, now: Instant) {
        let elapsed = now.since(self.media_at);
        if elapsed >= MEDIA_SPAN {
            let rate = self.media_bytes as f64 * 8.0 / elapsed.as_secs_f64();
            // What media took is believed at once, what it leaves only after a while.
            let share = if rate > self.media { 1.0 } else { MEDIA_SHARE };
            self.media += (rate - self.media) * share;
            (self.media_bytes, self.media_at) = (0, now);
        }
    }

    /// Notes a datagram of data that left under packet number `number`; `granted` is the link's rate.
    pub(crate) fn on_sent(&mut self, number: u64, bytes: usize, granted: Bitrate, now: Instant) {
        self.flying.push_back((number, bytes as u64));
        self.in_flight += bytes as u64;
        self.used_at = now;
        self.measure_media(now);
        let rate = self.rate(granted).as_f64();
        let time = match rate >= RATE_LEAST {
            true => Duration::from_secs_f64(bytes as f64 * 8.0 / rate),
            false => PAUSE,
        };
        self.free_at = now + time.min(PAUSE);
    }

    /// Takes a report of everything up to `highest`; `transit` is the newest datagram's arrival less
    /// its departure, nanoseconds by two clocks.
    pub(crate) fn on_report(&mut self, highest: u64, transit: Option<i64>, now: Instant) {
        while let Some((_, bytes)) = self.flying.front().filter(|(number, _)| *number <= highest) {
            self.in_flight -= bytes;
            self.flying.pop_front();
        }
        let Some(transit) = transit else { return };
        self.observe(transit, now);
        let elapsed = now.since(self.grown_at).min(SPAN);
        self.grown_at = now;
        if self.queue() > QUEUE_MOST {
            if now.since(self.fell_at) > SPAN {
                self.known = self.rate;
                self.rate = (self.rate * FALL).max(RATE_LEAST);
                self.fell_at = now;
            }
            return;
        }
        self.known *= 1.0 + elapsed.as_secs_f64() / KNOWN_LIFE.as_secs_f64();
        if now.since(self.used_at) < SPAN {
            let growth = if self.rate < self.known * NEAR { GROWTH } else { GROWTH_NEAR };
            self.rate *= 1.0 + elapsed.as_secs_f64() / growth.as_secs_f64();
            self.rate = self.rate.min(RATE_MOST);
        }
    }

    fn observe(&mut self, transit: i64, now: Instant) {
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

    /// Returns how long a datagram waits in the link's queue: the least of the last [`SPAN`] over the least
    /// of the last seconds. What only some wait is jitter.
    fn queue(&self) -> Duration {
        let of_late = self.transits.iter().map(|(_, transit)| *transit).min();
        let least = self.least.iter().map(|(_, transit)| *transit).min();
        let over = of_late.zip(least).map_or(0, |(of_late, least)| of_late.saturating_sub(least));
        Duration::from_nanos(u64::try_from(over).unwrap_or(0))
    }
}

/// What data begins with: an eighth of a link of 1 Mbit/s.
const BEGIN: f64 = 128e3;
const RATE_LEAST: f64 = 16e3;
const RATE_MOST: f64 = 100e6;
/// What data has of what media takes, and so is known to get through: of 2 Mbit/s what a laser scanner says.
const DATA_SHARE: f64 = 0.05;
/// Until the rate is looked at again while nothing may be sent.
const PAUSE: Duration = Duration::from_millis(100);
const TIME_MOST: Duration = Duration::from_millis(3);
const BYTES_LEAST: u64 = 150;
const BYTES_MOST: u64 = 1_500;
const MEDIA_SPAN: Duration = Duration::from_millis(50);
const MEDIA_SHARE: f64 = 0.1;
/// Media is never held up by a little more.
const MEDIA_MARGIN: f64 = 1.05;
/// As long as three reports take.
const SPAN: Duration = Duration::from_millis(40);
/// A standing queue: less is what one datagram takes.
const QUEUE_MOST: Duration = Duration::from_micros(1_500);
const FALL: f64 = 0.8;
/// To grow by a factor e: far from where a queue stood last, and near.
const GROWTH: Duration = Duration::from_millis(800);
const GROWTH_NEAR: Duration = Duration::from_secs(8);
const NEAR: f64 = 0.85;
/// A link may have become faster.
const KNOWN_LIFE: Duration = Duration::from_secs(30);
const LEAST_SECONDS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses a link of 1 Mbit/s for data alone; returns the rate found, and the longest queue after
    /// 5 s.
    fn run(granted: Bitrate) -> (f64, f64) {
        let mut spare = Spare::new(Instant::ZERO);
        let (mut number, mut queue_end) = (0_u64, 0.0_f64);
        let mut arrivals: VecDeque<(f64, u64, i64)> = VecDeque::new();
        let (mut worst, mut bits) = (0.0_f64, 0.0);
        for tick in 0..200_000_u64 {
            let now = Instant::from_micros(tick * 100);
            let seconds = tick as f64 / 1e4;
            if now >= spare.free_at() {
                let bytes = spare.datagram_bytes_max().get() as usize;
                queue_end = queue_end.max(seconds) + bytes as f64 * 8.0 / 1e6;
                if seconds > 5.0 {
                    worst = worst.max(queue_end - seconds);
                    bits += bytes as f64 * 8.0;
                }
                let transit = ((queue_end - seconds + 0.02) * 1e9) as i64;
                arrivals.push_back((queue_end + 0.02, number, transit));
                spare.on_sent(number, bytes, granted, now);
                number += 1;
            }
            if tick % 100 == 0 {
                let mut last = None;
                while arrivals.front().is_some_and(|(at, ..)| at + 0.02 <= seconds) {
                    last = arrivals.pop_front();
                }
                if let Some((_, highest, transit)) = last {
                    spare.on_report(highest, Some(transit), now);
                }
            }
        }
        (bits / 15.0, worst)
    }

    #[test]
    fn data_fills_most_of_a_link_without_a_queue() {
        let (rate, worst) = run(Bitrate::from_mbps(8));
        assert!(rate > 0.6e6, "{rate}");
        assert!(worst < 0.012, "{worst}");
    }

    #[test]
    fn data_takes_no_more_than_is_granted() {
        let (rate, _) = run(Bitrate::from_kbps(300));
        assert!(rate < 0.31e6, "{rate}");
    }
}
