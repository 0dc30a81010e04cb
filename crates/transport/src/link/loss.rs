use std::collections::VecDeque;

use tautline_units::{Bitrate, ByteCount, Duration, Instant, Probability};

use crate::rate::Sample;
use crate::wire::Report;

/// Totals of what was sent on a link, the peer's recent reports on it, and the rates and the loss
/// share computed from both.
#[derive(Debug, Clone)]
pub(crate) struct Loss {
    /// Total bytes sent, without MTU probes, up to a time, in steps of [`LOG_STEP`].
    log: VecDeque<(Instant, u64)>,
    bytes_sent: u64,
    /// Bytes of MTU probes: sent, but excluded from the rates.
    probe_bytes: u64,
    /// Reports a tenth of a second apart, the latest at the back.
    reports: VecDeque<Known>,
    newest: Option<Report>,
    sent: Bitrate,
    received: Bitrate,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    report: Report,
    /// Bytes sent by the time until which a datagram could have arrived when the report was taken.
    bytes_sent: u64,
}

/// Effect of a report at the sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Told {
    /// A newer report; with a sample if a tenth of a second has passed since the last sample.
    News(Option<Sample>),
    /// No newer than an earlier one, which may have come over another link.
    Old,
    /// Invalid: it covers more than was sent, or contradicts an earlier report.
    Impossible,
}

impl Loss {
    pub(crate) fn new() -> Self {
        Self {
            log: VecDeque::with_capacity(LOG_MAX),
            bytes_sent: 0,
            probe_bytes: 0,
            reports: VecDeque::with_capacity(REPORTS_MAX),
            newest: None,
            sent: Bitrate::ZERO,
            received: Bitrate::ZERO,
        }
    }

    /// Records a sent datagram of `bytes` bytes.
    pub(crate) fn on_sent(&mut self, bytes: usize, now: Instant) {
        self.bytes_sent += bytes as u64;
        match self.log.back_mut() {
            Some((at, total)) if now.since(*at) < LOG_STEP => *total = self.bytes_sent,
            Some(_) | None => {
                if self.log.len() == LOG_MAX {
                    self.log.pop_front();
                }
                self.log.push_back((now, self.bytes_sent));
            }
        }
    }

    /// Reclassifies the last recorded datagram as an MTU probe: its loss does not indicate
    /// congestion.
    pub(crate) fn was_probe(&mut self, bytes: usize) {
        self.bytes_sent -= bytes as u64;
        self.probe_bytes += bytes as u64;
        if let Some((_, total)) = self.log.back_mut() {
            *total = self.bytes_sent;
        }
    }

    /// Handles the peer's report on the link. `datagrams_sent` counts all datagrams sent on the
    /// link so far; those sent until `seen_until` could have arrived when the report was taken.
    pub(crate) fn on_report(
        &mut self,
        report: Report,
        datagrams_sent: u64,
        seen_until: Instant,
    ) -> Told {
        if report.highest >= datagrams_sent.max(1) || report.bytes > self.bytes_sent() {
            return Told::Impossible;
        }
        if let Some(newest) = self.newest {
            if report.taken_at <= newest.taken_at {
                return Told::Old;
            }
            let backward = report.highest < newest.highest
                || report.datagrams < newest.datagrams
                || report.bytes < newest.bytes;
            if backward {
                return Told::Impossible;
            }
        }
        self.newest = Some(report);
        let last = self.reports.back().copied();
        let span = last.map(|last| report.taken_at.since(last.report.taken_at));
        if span.is_some_and(|span| span < SAMPLE_SPAN) {
            return Told::News(None);
        }
        let bytes_sent = self.sent_until(seen_until);
        if self.reports.len() == REPORTS_MAX {
            self.reports.pop_front();
        }
        self.reports.push_back(Known { report, bytes_sent });
        Told::News(last.zip(span).map(|(last, span)| {
            let sent = ByteCount::new(bytes_sent.saturating_sub(last.bytes_sent));
            let sample = Sample {
                sent: Bitrate::of(sent, span),
                received: Bitrate::of(report.bytes - last.report.bytes, span),
            };
            (self.sent, self.received) = (sample.sent, sample.received);
            sample
        }))
    }

    pub(crate) fn sent(&self) -> Bitrate {
        self.sent
    }

    pub(crate) fn received(&self) -> Bitrate {
        self.received
    }

    /// Returns the share of datagrams lost between the oldest and the newest report kept: about the
    /// last second. Zero before the second report.
    pub(crate) fn recent(&self) -> Probability {
        let (Some(first), Some(last)) = (self.reports.front(), self.reports.back()) else {
            return Probability::ZERO;
        };
        let expected = last.report.highest - first.report.highest;
        let arrived = last.report.datagrams - first.report.datagrams;
        Probability::share(expected.saturating_sub(arrived), expected)
    }

    pub(crate) fn bytes_sent(&self) -> ByteCount {
        ByteCount::new(self.bytes_sent + self.probe_bytes)
    }

    /// Returns the bytes sent without MTU probes: those whose loss indicates congestion.
    pub(crate) fn bytes_counted(&self) -> ByteCount {
        ByteCount::new(self.bytes_sent)
    }

    pub(crate) fn datagrams_reported(&self) -> u64 {
        self.newest.map_or(0, |report| report.datagrams)
    }

    pub(crate) fn datagrams_lost(&self) -> u64 {
        self.newest.map_or(0, |report| (report.highest + 1).saturating_sub(report.datagrams))
    }

    /// Returns the bytes sent until `when`, without MTU probes, linearly interpolated between two
    /// entries of the log. Outside the log it is the nearest entry, and 0 if the log is empty.
    fn sent_until(&self, when: Instant) -> u64 {
        let after = self.log.partition_point(|(at, _)| *at <= when);
        match (after.checked_sub(1).and_then(|i| self.log.get(i)), self.log.get(after)) {
            (Some(&(_, total)), None) => total,
            (Some(&(from, low)), Some(&(to, high))) => {
                let (part, whole) = (when.since(from).as_nanos(), to.since(from).as_nanos());
                let share = u128::from(high - low) * part / whole.max(1);
                low + share as u64
            }
            (None, Some(&(_, total))) => total,
            (None, None) => 0,
        }
    }
}

/// Resolution of the log of bytes sent: fine compared with the 100 ms between samples.
const LOG_STEP: Duration = Duration::from_millis(5);
/// Maximum number of log entries, beyond which the oldest is dropped. They cover at least three
/// seconds: more than a report's age on any link in use.
const LOG_MAX: usize = 640;
/// Minimum time between two samples: [LLMLNCL] measures rates over 100 ms, and a report may be
/// taken a little early.
const SAMPLE_SPAN: Duration = Duration::from_millis(95);
/// Maximum number of reports kept: a second at one per 100 ms.
const REPORTS_MAX: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{LinkNumber, Recent};

    fn report(at: u64, highest: u64, datagrams: u64, bytes: u64) -> Report {
        Report {
            link: LinkNumber::new(0).unwrap(),
            taken_at: Instant::from_millis(at),
            highest,
            datagrams,
            bytes: ByteCount::new(bytes),
            age: None,
            recent: Recent::of(0, |_| false),
            marks: None,
        }
    }

    #[test]
    fn rates_and_loss_come_from_differences_of_reports() {
        let mut loss = Loss::new();
        for step in 0..200_u64 {
            loss.on_sent(100, Instant::from_millis(step));
        }
        let at = Instant::from_millis;
        assert_eq!(loss.on_report(report(1_000, 49, 50, 5_000), 200, at(49)), Told::News(None));
        let told = loss.on_report(report(1_100, 149, 140, 14_000), 200, at(149));
        let Told::News(Some(sample)) = told else { panic!("{told:?}") };
        assert_eq!(sample.received, Bitrate::from_kbps(720));
        assert!(sample.sent.as_f64() > 780e3 && sample.sent.as_f64() < 820e3, "{sample:?}");
        assert_eq!(loss.recent().get(), 0.1);
        assert_eq!(loss.datagrams_lost(), 10);
    }

    #[test]
    fn a_lost_probe_is_no_difference_of_rates() {
        let mut loss = Loss::new();
        let at = Instant::from_millis;
        loss.on_sent(1_000, at(0));
        loss.on_report(report(1_000, 0, 1, 1_000), 1, at(1));
        loss.on_sent(1_000, at(50));
        loss.on_sent(1_400, at(52));
        loss.was_probe(1_400);
        let told = loss.on_report(report(1_100, 2, 2, 2_000), 3, at(101));
        let Told::News(Some(sample)) = told else { panic!("{told:?}") };
        assert_eq!(sample.sent, sample.received);
        assert_eq!(loss.bytes_sent(), ByteCount::new(3_400));
    }

    #[test]
    fn old_or_impossible_reports_are_refused() {
        let mut loss = Loss::new();
        loss.on_sent(1_000, Instant::ZERO);
        let now = Instant::from_millis(50);
        assert_eq!(loss.on_report(report(10, 1, 1, 100), 1, now), Told::Impossible);
        assert_eq!(loss.on_report(report(10, 0, 1, 1_001), 1, now), Told::Impossible);
        assert_eq!(loss.on_report(report(10, 0, 1, 100), 1, now), Told::News(None));
        assert_eq!(loss.on_report(report(10, 0, 1, 100), 1, now), Told::Old);
        assert_eq!(loss.on_report(report(11, 0, 0, 100), 1, now), Told::Impossible);
    }
}
