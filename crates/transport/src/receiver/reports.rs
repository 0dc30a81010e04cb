use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::sequence::Window;
use crate::wire::{LinkNumber, Recent, Report};

/// Arrivals on one link, and the time of the next report of them.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    highest: u64,
    highest_at: Instant,
    datagrams: u64,
    bytes: u64,
    measured: (Instant, u64),
    rate: Bitrate,
    report: Option<Report>,
    report_due_at: Instant,
    /// When media last came.
    media_at: Option<Instant>,
    /// The highest numbers of the last reports, the oldest first.
    reported: [u64; REPEATS],
    /// The lowest numbers that came behind the highest, since each of these reports.
    overtaken: [u64; REPEATS],
}

impl Arrivals {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            highest: 0,
            highest_at: now,
            datagrams: 0,
            bytes: 0,
            measured: (now, 0),
            rate: Bitrate::ZERO,
            report: None,
            report_due_at: now,
            media_at: None,
            reported: [0; REPEATS],
            overtaken: [u64::MAX; REPEATS],
        }
    }

    /// Notes an authentic datagram, the first time that it comes; true if one before it is missing.
    pub(crate) fn note(&mut self, number: u64, bytes: usize, now: Instant) -> bool {
        let gap = self.datagrams > 0 && number > self.highest + 1;
        if self.datagrams == 0 || number > self.highest {
            (self.highest, self.highest_at) = (number, now);
        } else {
            let lowest = &mut self.overtaken[REPEATS - 1];
            *lowest = number.min(*lowest);
        }
        self.datagrams += 1;
        self.bytes += bytes as u64;
        if self.highest - self.reported[REPEATS - 1].min(self.highest) >= NEWS_MOST {
            // A fast link has more to tell than a report's map holds.
            self.report_due_at = now;
        }
        gap
    }

    /// Returns when the next report is due.
    pub(crate) fn report_due_at(&self) -> Instant {
        self.report_due_at
    }

    /// Notes that a datagram brought media: the next report is due `interval` after the last one.
    pub(crate) fn on_media(&mut self, interval: Duration, now: Instant) {
        self.media_at = Some(now);
        self.hurry(interval);
    }

    /// Notes that a ping came: on a link that brought media of late it is news for its sender.
    pub(crate) fn on_ping(&mut self, interval: Duration, now: Instant) {
        if self.media_at.is_some_and(|at| now.since(at) < MEDIA_LIFE) {
            self.hurry(interval);
        }
    }

    /// Makes the next report due `interval` after the last one.
    pub(crate) fn hurry(&mut self, interval: Duration) {
        let last = self.report.map_or(Instant::ZERO, |report| report.taken_at);
        self.report_due_at = self.report_due_at.min(last + interval);
    }

    /// Takes a report, the next one being due after `pause`; `window` knows which numbers came.
    pub(crate) fn take_report(
        &mut self,
        link: LinkNumber,
        window: &Window,
        pause: Duration,
        now: Instant,
    ) {
        let (at, bytes) = self.measured;
        if now.since(at) >= RATE_SPAN {
            self.rate = Bitrate::of(ByteCount::new(self.bytes - bytes), now.since(at));
            self.measured = (now, self.bytes);
        }
        self.report_due_at = now + pause;
        if self.datagrams == 0 {
            return;
        }
        let lowest = self.overtaken.iter().fold(self.reported[0], |low, at| low.min(*at));
        let news = self.highest - lowest.min(self.highest);
        self.overtaken.rotate_left(1);
        self.overtaken[REPEATS - 1] = u64::MAX;
        self.reported.rotate_left(1);
        self.reported[REPEATS - 1] = self.highest;
        self.report = Some(Report {
            link,
            taken_at: now,
            highest: self.highest,
            datagrams: self.datagrams,
            bytes: self.bytes(),
            age: Some(now.since(self.highest_at)),
            recent: Recent::of(news, |back| {
                self.highest.checked_sub(back).is_some_and(|number| window.has(number))
            }),
        });
    }

    /// Returns the last report; `None` before anything came.
    pub(crate) fn report(&self) -> Option<Report> {
        self.report
    }

    pub(crate) fn rate(&self) -> Bitrate {
        self.rate
    }

    pub(crate) fn datagrams(&self) -> u64 {
        self.datagrams
    }

    pub(crate) fn bytes(&self) -> ByteCount {
        ByteCount::new(self.bytes)
    }

    /// Returns how many numbers up to the highest have not come.
    pub(crate) fn missing(&self) -> u64 {
        let expected = if self.datagrams == 0 { 0 } else { self.highest + 1 };
        expected.saturating_sub(self.datagrams)
    }
}

/// So many datagrams are worth a report at once: half of what its map holds.
const NEWS_MOST: u64 = 128;
/// How many reports in a row speak of each datagram, so that a lost one costs nothing.
const REPEATS: usize = 4;
/// For so long after media every ping is worth a report.
const MEDIA_LIFE: Duration = Duration::from_secs(2);
/// As [LLMLNCL] measures rates.
const RATE_SPAN: Duration = Duration::from_millis(95);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_rate_loss_and_map_are_those_of_what_came() {
        let link = LinkNumber::new(1).unwrap();
        let (mut arrivals, mut window) = (Arrivals::new(Instant::ZERO), Window::new());
        arrivals.take_report(link, &window, Duration::from_millis(100), Instant::ZERO);
        assert_eq!(arrivals.report(), None);
        assert_eq!(arrivals.missing(), 0);
        for number in [0, 1, 3, 4] {
            window.note(number);
            let gap = arrivals.note(number, 250, Instant::from_millis(90 + number));
            assert_eq!(gap, number == 3);
        }
        let now = Instant::from_millis(100);
        arrivals.take_report(link, &window, Duration::from_millis(100), now);
        assert_eq!(arrivals.rate(), Bitrate::from_kbps(80));
        assert_eq!(arrivals.missing(), 1);
        let report = arrivals.report().unwrap();
        assert_eq!((report.highest, report.datagrams, report.bytes.get()), (4, 4, 1_000));
        assert_eq!(report.age, Some(Duration::from_millis(6)));
        let came: Vec<u64> = (1..=4).filter(|b| report.recent.arrived(*b) == Some(true)).collect();
        assert_eq!(came, [1, 3, 4]);
        assert_eq!(arrivals.report_due_at(), Instant::from_millis(200));
        arrivals.hurry(Duration::from_millis(10));
        assert_eq!(arrivals.report_due_at(), Instant::from_millis(110));
    }

    #[test]
    fn each_datagram_is_told_of_four_times() {
        let link = LinkNumber::new(1).unwrap();
        let (mut arrivals, mut window) = (Arrivals::new(Instant::ZERO), Window::new());
        let mut lengths = Vec::new();
        for round in 0..8_u64 {
            for number in round * 10..(round + 1) * 10 {
                window.note(number);
                arrivals.note(number, 100, Instant::from_millis(round));
            }
            arrivals.take_report(link, &window, Duration::ZERO, Instant::from_millis(round));
            lengths.push(arrivals.report().unwrap().recent.len());
        }
        assert_eq!(lengths, [16, 24, 32, 40, 40, 40, 40, 40]);
    }

    #[test]
    fn what_was_overtaken_is_told_of_four_times_however_late_it_comes() {
        let link = LinkNumber::new(1).unwrap();
        let (mut arrivals, mut window) = (Arrivals::new(Instant::ZERO), Window::new());
        let mut told = Vec::new();
        for round in 0..14_u64 {
            for number in round * 10..(round + 1) * 10 {
                // Number 5 comes when 90 others have.
                let number = if number == 5 { continue } else { number };
                window.note(number);
                arrivals.note(number, 100, Instant::from_millis(round));
            }
            if round == 9 {
                window.note(5);
                arrivals.note(5, 100, Instant::from_millis(round));
            }
            arrivals.take_report(link, &window, Duration::ZERO, Instant::from_millis(round));
            let report = arrivals.report().unwrap();
            told.push(report.recent.arrived(report.highest - 5) == Some(true));
        }
        let rounds: Vec<usize> = (0..14).filter(|round| told[*round]).collect();
        assert_eq!(rounds, [9, 10, 11, 12]);
    }
}
