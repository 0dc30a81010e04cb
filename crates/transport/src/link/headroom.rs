use std::collections::VecDeque;

use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// Headroom of a link for data: what media leaves of the granted rate, while there is no queue in
/// the link.
///
/// The rate grows while it is used and the delay shows no queue, and falls as soon as a queue
/// builds up. Data thus finds a link's capacity without delaying commands.
#[derive(Debug)]
pub(crate) struct Headroom {
    /// Data rate that has built up no queue so far, bit/s.
    rate: f64,
    /// Data rate at which a queue last built up, bit/s; slowly rises since then. Infinite before
    /// the first queue.
    known: f64,
    /// Recent rate of media, bit/s.
    media: f64,
    media_bytes: u64,
    media_at: Instant,
    /// Earliest send time of the next data datagram.
    free_at: Instant,
    /// Packet number and length of each data datagram that no report covers yet.
    flying: VecDeque<(u64, u64)>,
    in_flight: u64,
    /// Arrival time of each report of the last [`SPAN`], and the transit that it shows in
    /// nanoseconds.
    transits: VecDeque<(Instant, i64)>,
    /// Number of each of the last [`LEAST_SECONDS`] seconds that had a transit, on our clock, and
    /// the minimum transit in it, nanoseconds.
    least: VecDeque<(u64, i64)>,
    grown_at: Instant,
    fell_at: Instant,
    used_at: Instant,
}

impl Headroom {
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

    /// Returns the bytes of data that were sent and not covered by a report.
    pub(crate) fn in_flight(&self) -> ByteCount {
        ByteCount::new(self.in_flight)
    }

    /// Returns the current rate for data: what media leaves of the granted rate, as far as data has
    /// found it free. If that is less than [`DATA_SHARE`] of media's rate, it is that share,
    /// because media uses its full budget.
    pub(crate) fn rate(&self, granted: Bitrate) -> Bitrate {
        Bitrate::from_bps(self.left(granted).max(self.media * DATA_SHARE) as u64)
    }

    /// Returns whether media leaves less than [`DATA_SHARE`] of its rate, so that data gets that
    /// share and media's pacing makes room for it.
    pub(crate) fn takes_share(&self, granted: Bitrate) -> bool {
        self.left(granted) < self.media * DATA_SHARE
    }

    /// Returns the data rate that has built up no queue, at most what media leaves of the granted
    /// rate, bit/s.
    fn left(&self, granted: Bitrate) -> f64 {
        self.rate.min((granted.as_f64() - self.media * MEDIA_MARGIN).max(0.0))
    }

    /// Returns the earliest send time of the next data datagram.
    pub(crate) fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Returns the maximum length of a data datagram: one that delays the next command by at most 3
    /// ms, from 150 to 1500 bytes.
    pub(crate) fn datagram_bytes_max(&self) -> ByteCount {
        // The link is known to carry the rate of media.
        let bytes = (self.rate.max(self.media) * TIME_MOST.as_secs_f64() / 8.0) as u64;
        ByteCount::new(bytes.clamp(BYTES_LEAST, BYTES_MOST))
    }

    /// Records that a media datagram of `bytes` bytes was sent.
    pub(crate) fn on_media(&mut self, bytes: usize, now: Instant) {
        self.media_bytes += bytes as u64;
        self.measure_media(now);
    }

    fn measure_media(&mut self, now: Instant) {
        let elapsed = now.since(self.media_at);
        if elapsed >= MEDIA_SPAN {
            let rate = self.media_bytes as f64 * 8.0 / elapsed.as_secs_f64();
            // An increase in media counts at once, a decrease only gradually.
            let share = if rate > self.media { 1.0 } else { MEDIA_SHARE };
            self.media += (rate - self.media) * share;
            (self.media_bytes, self.media_at) = (0, now);
        }
    }

    /// Records a data datagram sent under packet number `number`, and sets the send time of the
    /// next one by the present rate for data, [`PAUSE`] later at most; `granted` is the link's
    /// rate.
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

    /// Handles a report of everything up to packet number `highest`, and adapts the data rate: up
    /// if data was sent in the last [`SPAN`], down by a fifth at a queue above [`QUEUE_MOST`], at
    /// most once per [`SPAN`]; always from [`RATE_LEAST`] to [`RATE_MOST`]. `transit` is the newest
    /// datagram's arrival time minus its send time, nanoseconds by two clocks; `None` if the report
    /// shows no newer datagram, which leaves the data rate unchanged.
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

    /// Returns the queueing delay: the minimum transit of the last [`SPAN`] minus the minimum of
    /// the last [`LEAST_SECONDS`]. A delay of only some datagrams is jitter and does not show.
    fn queue(&self) -> Duration {
        let recent = self.transits.iter().map(|(_, transit)| *transit).min();
        let least = self.least.iter().map(|(_, transit)| *transit).min();
        let over = recent.zip(least).map_or(0, |(recent, least)| recent.saturating_sub(least));
        Duration::from_nanos(u64::try_from(over).unwrap_or(0))
    }
}

/// Initial data rate, bit/s: an eighth of a 1 Mbit/s link.
const BEGIN: f64 = 128e3;
const RATE_LEAST: f64 = 16e3;
const RATE_MOST: f64 = 100e6;
/// Minimum data rate as a share of media's rate, which the link is known to carry; at 2 Mbit/s of
/// media it carries the output of a laser scanner.
const DATA_SHARE: f64 = 0.05;
/// Maximum wait after a data datagram before the next one, also at a rate of almost zero.
const PAUSE: Duration = Duration::from_millis(100);
const TIME_MOST: Duration = Duration::from_millis(3);
const BYTES_LEAST: u64 = 150;
const BYTES_MOST: u64 = 1_500;
const MEDIA_SPAN: Duration = Duration::from_millis(50);
const MEDIA_SHARE: f64 = 0.1;
/// Factor on media's rate that is subtracted from the granted rate to limit data: media may send
/// slightly more undelayed.
const MEDIA_MARGIN: f64 = 1.05;
/// Time for which a delay must persist to count as a queue, and between two reductions: four report
/// intervals.
const SPAN: Duration = Duration::from_millis(40);
/// Queueing delay above which data slows down; one datagram alone takes less.
const QUEUE_MOST: Duration = Duration::from_micros(1_500);
const FALL: f64 = 0.8;
/// Time in which the data rate grows by a factor of e, below [`NEAR`] of the rate of the last
/// queue.
const GROWTH: Duration = Duration::from_millis(800);
/// Time in which the data rate grows by a factor of e, from [`NEAR`] of the rate of the last queue
/// on.
const GROWTH_NEAR: Duration = Duration::from_secs(8);
const NEAR: f64 = 0.85;
/// Time in which the remembered rate of the last queue grows by a factor of e: a link may have
/// become faster.
const KNOWN_LIFE: Duration = Duration::from_secs(30);
const LEAST_SECONDS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses a 1 Mbit/s link for data alone for 20 s. Returns the mean data rate in bit/s and the
    /// longest queue in seconds, both without the first 5 s.
    fn run(granted: Bitrate) -> (f64, f64) {
        let mut headroom = Headroom::new(Instant::ZERO);
        let (mut number, mut queue_end) = (0_u64, 0.0_f64);
        let mut arrivals: VecDeque<(f64, u64, i64)> = VecDeque::new();
        let (mut worst, mut bits) = (0.0_f64, 0.0);
        for tick in 0..200_000_u64 {
            let now = Instant::from_micros(tick * 100);
            let seconds = tick as f64 / 1e4;
            if now >= headroom.free_at() {
                let bytes = headroom.datagram_bytes_max().get() as usize;
                queue_end = queue_end.max(seconds) + bytes as f64 * 8.0 / 1e6;
                if seconds > 5.0 {
                    worst = worst.max(queue_end - seconds);
                    bits += bytes as f64 * 8.0;
                }
                let transit = ((queue_end - seconds + 0.02) * 1e9) as i64;
                arrivals.push_back((queue_end + 0.02, number, transit));
                headroom.on_sent(number, bytes, granted, now);
                number += 1;
            }
            if tick % 100 == 0 {
                let mut last = None;
                while arrivals.front().is_some_and(|(at, ..)| at + 0.02 <= seconds) {
                    last = arrivals.pop_front();
                }
                if let Some((_, highest, transit)) = last {
                    headroom.on_report(highest, Some(transit), now);
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
