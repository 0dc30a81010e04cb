use tautline_units::{Bitrate, ByteCount, Duration, Ecn, Instant};

use crate::sequence::{REORDERING_LEAST, Window};
use crate::wire::{LinkNumber, Marks, Recent, Report};

/// Arrivals on one link, and the schedule of its reports.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    highest: u64,
    highest_at: Instant,
    datagrams: u64,
    bytes: u64,
    marks: Marks,
    measured: (Instant, u64),
    rate: Bitrate,
    report: Option<Report>,
    report_due_at: Instant,
    /// Arrival time of the last datagram with media or data; `None` before the first.
    media_at: Option<Instant>,
    /// Expected arrival times of the first and the last missing datagram that no report has shown
    /// as missing yet; `None` if there is none.
    missing_at: Option<(Instant, Instant)>,
    /// Highest packet number in each of the last [`REPEATS`] reports, oldest first; a report soon
    /// after another one does not count.
    reported: [u64; REPEATS],
    /// Lowest packet number that arrived after a higher one, between each report of `reported` and
    /// the next; `u64::MAX` if none did.
    overtaken: [u64; REPEATS],
    /// Time of the last arrival of a datagram with a lower number than one before it; `None` before
    /// the first.
    overtaken_at: Option<Instant>,
    /// Time of the last report that `reported` contains; `None` before the first.
    turned_at: Option<Instant>,
}

impl Arrivals {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            highest: 0,
            highest_at: now,
            datagrams: 0,
            bytes: 0,
            marks: Marks::default(),
            measured: (now, 0),
            rate: Bitrate::ZERO,
            report: None,
            report_due_at: now,
            media_at: None,
            missing_at: None,
            overtaken_at: None,
            turned_at: None,
            reported: [0; REPEATS],
            overtaken: [u64::MAX; REPEATS],
        }
    }

    /// Records the arrival of an authentic and new datagram. If datagrams before it are missing, a
    /// report becomes due once they may count as lost, but not before `soon` has passed since the
    /// last report; `interval` instead of `soon` while datagrams are reordered. With [`NEWS_MOST`]
    /// unreported datagrams, a report is due now.
    pub(crate) fn note(
        &mut self,
        number: u64,
        bytes: usize,
        (soon, interval): (Duration, Duration),
        now: Instant,
    ) {
        if self.datagrams > 0 && number > self.highest + 1 {
            // Assumes that all were sent at even intervals.
            let steps = u32::try_from(number - self.highest).unwrap_or(u32::MAX);
            let missing_at = now - now.since(self.highest_at) / steps;
            let first = self.missing_at.map_or(missing_at, |(first, _)| first);
            self.missing_at = Some((first, missing_at));
        }
        if self.datagrams == 0 || number > self.highest {
            (self.highest, self.highest_at) = (number, now);
        } else {
            let lowest = &mut self.overtaken[REPEATS - 1];
            *lowest = number.min(*lowest);
            self.overtaken_at = Some(now);
        }
        if self.missing_at.is_some_and(|(first, _)| now.since(first) >= REORDERING_LEAST) {
            let overtaking = self.overtaken_at.is_some_and(|at| now.since(at) < OVERTAKING);
            self.hurry(if overtaking { interval } else { soon });
        }
        self.datagrams += 1;
        self.bytes += bytes as u64;
        let told = self.report.map_or(0, |report| report.highest);
        if self.highest - told.min(self.highest) >= NEWS_MOST {
            // A fast link has more to report than a report's map holds.
            self.report_due_at = now;
        }
    }

    /// Counts the codepoint of a recorded datagram, if it is ECT(1) or CE.
    pub(crate) fn note_ecn(&mut self, ecn: Ecn) {
        match ecn {
            Ecn::Ect1 => self.marks.ect1 += 1,
            Ecn::Ce => self.marks.ce += 1,
            Ecn::NotEct | Ecn::Ect0 => {}
        }
    }

    /// Returns when the next report is due.
    pub(crate) fn report_due_at(&self) -> Instant {
        self.report_due_at
    }

    /// Records that a datagram carried media or data: the next report is due `interval` after the
    /// last one at the latest.
    pub(crate) fn on_media(&mut self, interval: Duration, now: Instant) {
        self.media_at = Some(now);
        self.hurry(interval);
    }

    /// Records that a datagram carried a ping: if media arrived within [`MEDIA_LIFE`], the next
    /// report is due `interval` after the last one at the latest.
    pub(crate) fn on_ping(&mut self, interval: Duration, now: Instant) {
        if self.media_at.is_some_and(|at| now.since(at) < MEDIA_LIFE) {
            self.hurry(interval);
        }
    }

    /// Makes the next report due `interval` after the last one, if it would be due later.
    pub(crate) fn hurry(&mut self, interval: Duration) {
        let last = self.report.map_or(Instant::ZERO, |report| report.taken_at);
        self.report_due_at = self.report_due_at.min(last + interval);
    }

    /// Takes a report of the present state, if a datagram has arrived, and schedules the next one
    /// after `pause`. Measures the arrival rate anew if [`RATE_SPAN`] has passed. `window` holds
    /// the received packet numbers.
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
        // Its send time is unknown: twice the allowance is certainly enough.
        self.missing_at = self
            .missing_at
            .filter(|(_, last)| now.since(*last) < REORDERING_LEAST * 2)
            .map(|(_, last)| (last, last));
        if self.datagrams == 0 {
            return;
        }
        let lowest = self.overtaken.iter().fold(self.reported[0], |low, at| low.min(*at));
        let news = self.highest - lowest.min(self.highest);
        // A link without any mark is reported without mark counts.
        let marks = Some(self.marks).filter(|marks| marks.ce > 0);
        let most = if marks.is_some() { Recent::BYTES_MAX_MARKED } else { Recent::BYTES_MAX };
        let news = news.min(most as u64 * 8);
        // Reports soon after another one do not count as one of the four: datagrams may be
        // reordered.
        let many = self.highest - self.reported[REPEATS - 1].min(self.highest) >= NEWS_MOST;
        if many || self.turned_at.is_none_or(|at| now.since(at) >= TURN_LEAST) {
            self.turned_at = Some(now);
            self.overtaken.rotate_left(1);
            self.overtaken[REPEATS - 1] = u64::MAX;
            self.reported.rotate_left(1);
            self.reported[REPEATS - 1] = self.highest;
        }
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
            marks,
        });
    }

    /// Returns the last report; `None` before the first datagram.
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

    /// Returns how many datagrams up to the highest packet number have not arrived.
    pub(crate) fn missing(&self) -> u64 {
        let expected = if self.datagrams == 0 { 0 } else { self.highest + 1 };
        expected.saturating_sub(self.datagrams)
    }
}

/// Number of datagrams since the last report that makes one due immediately: half of what a
/// report's map holds.
const NEWS_MOST: u64 = 128;
/// Number of consecutive reports that cover each datagram, so that a lost report costs nothing; a
/// report less than [`TURN_LEAST`] after another does not count.
const REPEATS: usize = 4;
const TURN_LEAST: Duration = Duration::from_millis(8);
/// Time after a reordered arrival during which missing datagrams are likely to arrive.
const OVERTAKING: Duration = Duration::from_secs(1);
/// Time after media during which every ping triggers a report.
const MEDIA_LIFE: Duration = Duration::from_secs(2);
/// Minimum span over which the arrival rate is measured, as in [LLMLNCL].
const RATE_SPAN: Duration = Duration::from_millis(95);

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(10));

    #[test]
    fn totals_rate_loss_and_map_are_those_of_what_came() {
        let link = LinkNumber::new(1).unwrap();
        let (mut arrivals, mut window) = (Arrivals::new(Instant::ZERO), Window::new());
        arrivals.take_report(link, &window, Duration::from_millis(100), Instant::ZERO);
        assert_eq!(arrivals.report(), None);
        assert_eq!(arrivals.missing(), 0);
        for number in [0, 1, 3, 4] {
            window.note(number);
            arrivals.note(number, 250, SOON, Instant::from_millis(90 + number));
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
    fn a_gap_is_reported_once_it_may_be_a_loss() {
        let (link, pause) = (LinkNumber::new(1).unwrap(), Duration::from_millis(100));
        let (mut arrivals, window) = (Arrivals::new(Instant::ZERO), Window::new());
        let mut told = Vec::new();
        let mut note = |number, at| {
            let now = Instant::from_millis(at);
            arrivals.note(number, 100, SOON, now);
            if now >= arrivals.report_due_at() {
                arrivals.take_report(link, &window, pause, now);
                told.push(at);
            }
        };
        // Low rate: number 2 overtook number 1 by 4 ms, and once more by twice as much.
        for (number, at) in [(0, 0), (2, 8), (3, 12), (4, 16), (5, 20)] {
            note(number, at);
        }
        // High rate: number 7 may have been overtaken by chance at first.
        for (number, at) in [(6, 21), (8, 23), (9, 24), (10, 25), (11, 26), (12, 27), (13, 29)] {
            note(number, at);
        }
        // An arrival behind others triggers no report.
        note(7, 32);
        assert_eq!(told, [0, 8, 12, 25, 27, 29]);
    }

    #[test]
    fn each_datagram_is_in_four_reports() {
        let link = LinkNumber::new(1).unwrap();
        let (mut arrivals, mut window) = (Arrivals::new(Instant::ZERO), Window::new());
        let mut lengths = Vec::new();
        for round in 0..8_u64 {
            for number in round * 10..(round + 1) * 10 {
                window.note(number);
                arrivals.note(number, 100, SOON, Instant::from_millis(round * 10));
            }
            arrivals.take_report(link, &window, Duration::ZERO, Instant::from_millis(round * 10));
            lengths.push(arrivals.report().unwrap().recent.len());
        }
        assert_eq!(lengths, [16, 24, 32, 40, 40, 40, 40, 40]);
    }

    #[test]
    fn an_early_report_does_not_count_among_the_four() {
        let link = LinkNumber::new(1).unwrap();
        let (mut arrivals, mut window) = (Arrivals::new(Instant::ZERO), Window::new());
        let mut lengths = Vec::new();
        for round in 0..16_u64 {
            let now = Instant::from_millis(round * 2 + 1);
            for number in round * 8..(round + 1) * 8 {
                window.note(number);
                arrivals.note(number, 100, SOON, now);
            }
            arrivals.take_report(link, &window, Duration::ZERO, now);
            lengths.push(arrivals.report().unwrap().recent.len());
        }
        // Four reports of 8 ms each, the last of which has its actual length.
        assert_eq!(lengths[12..], [104, 104, 112, 120]);
    }

    #[test]
    fn an_overtaken_datagram_is_in_four_reports_however_late() {
        let link = LinkNumber::new(1).unwrap();
        let (mut arrivals, mut window) = (Arrivals::new(Instant::ZERO), Window::new());
        let mut told = Vec::new();
        for round in 0..14_u64 {
            for number in round * 10..(round + 1) * 10 {
                // Number 5 arrives after 90 others.
                let number = if number == 5 { continue } else { number };
                window.note(number);
                arrivals.note(number, 100, SOON, Instant::from_millis(round * 10));
            }
            if round == 9 {
                window.note(5);
                arrivals.note(5, 100, SOON, Instant::from_millis(round * 10));
            }
            arrivals.take_report(link, &window, Duration::ZERO, Instant::from_millis(round * 10));
            let report = arrivals.report().unwrap();
            told.push(report.recent.arrived(report.highest - 5) == Some(true));
        }
        let rounds: Vec<usize> = (0..14).filter(|round| told[*round]).collect();
        assert_eq!(rounds, [9, 10, 11, 12]);
    }
}
