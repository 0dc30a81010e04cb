use tautline_units::{Bitrate, ByteCount, Instant, Probability};

use crate::wire::{LinkNumber, Report};

/// What has arrived on one link.
#[derive(Debug, Clone)]
pub(crate) struct Arrivals {
    highest: u64,
    datagrams: u64,
    bytes: u64,
    measured: (Instant, u64),
    rate: Bitrate,
    report: Option<Report>,
}

impl Arrivals {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            highest: 0,
            datagrams: 0,
            bytes: 0,
            measured: (now, 0),
            rate: Bitrate::ZERO,
            report: None,
        }
    }

    /// Notes an authentic datagram, the first time that it comes.
    pub(crate) fn note(&mut self, number: u64, bytes: usize) {
        self.highest = self.highest.max(number);
        self.datagrams += 1;
        self.bytes += bytes as u64;
    }

    /// Measures the rate since the last time, and writes the report that every link will carry.
    pub(crate) fn measure(&mut self, link: LinkNumber, now: Instant) {
        let (at, bytes) = self.measured;
        self.rate = Bitrate::of(ByteCount::new(self.bytes - bytes), now.since(at));
        self.measured = (now, self.bytes);
        self.report = (self.datagrams > 0).then(|| Report {
            link,
            taken_at: now,
            highest: self.highest,
            datagrams: self.datagrams,
            bytes: self.bytes(),
        });
    }

    /// The last report; `None` before anything came.
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

    /// The share of numbers up to the highest that never came.
    pub(crate) fn lost_share(&self) -> Probability {
        let expected = if self.datagrams == 0 { 0 } else { self.highest + 1 };
        Probability::share(expected.saturating_sub(self.datagrams), expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_rate_and_loss_are_those_of_what_came() {
        let link = LinkNumber::new(1).unwrap();
        let mut arrivals = Arrivals::new(Instant::ZERO);
        arrivals.measure(link, Instant::ZERO);
        assert_eq!(arrivals.report(), None);
        assert_eq!(arrivals.lost_share(), Probability::ZERO);
        for number in [0, 1, 3, 4] {
            arrivals.note(number, 250);
        }
        let now = Instant::from_millis(100);
        arrivals.measure(link, now);
        assert_eq!(arrivals.rate(), Bitrate::from_kbps(80));
        assert_eq!(arrivals.lost_share().get(), 0.2);
        let report = arrivals.report().unwrap();
        assert_eq!((report.highest, report.datagrams, report.bytes.get()), (4, 4, 1_000));
    }
}
