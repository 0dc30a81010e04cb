use std::collections::VecDeque;

use tautline_units::{ByteCount, Duration, Instant};

use super::pacing::Entry;
use crate::sequence::REORDERING_LEAST;
use crate::wire::Report;

/// The sent datagrams of one link, with their status according to the peer's reports.
///
/// At most [`RECORDS_MAX`]: a further one evicts the oldest. A media packet evicted before its
/// outcome is known counts as lost, and is not resent.
#[derive(Debug)]
pub(crate) struct InFlight {
    /// Packet number of the first record.
    first: u64,
    /// Records of the sent datagrams in order of packet numbers, without gaps.
    records: VecDeque<Record>,
    /// Packet number below which every datagram is known to have arrived or to be lost.
    settled: u64,
    /// Bytes sent and not known to have arrived or to be lost, without MTU probes.
    bytes: u64,
    /// Bytes of everything sent, including MTU probes.
    sent: u64,
    /// Bytes of everything declared lost that has not arrived since, without MTU probes.
    lost: u64,
    highest: Option<u64>,
    reordering: Reordering,
    news_at: Option<Instant>,
    /// Send time of the oldest media packet in flight; `None` while none is.
    oldest_media: Option<Instant>,
    /// Number of sent media packets whose outcome is unknown.
    open: u64,
    /// Media packets evicted before their outcome was known.
    forgotten: u64,
    passed: Passed,
}

#[derive(Debug)]
struct Record {
    sent_at: Instant,
    bytes: u32,
    /// Total bytes sent up to and including this datagram.
    sent: u64,
    known: Known,
    /// True if the outcome was still unknown when a newer datagram was reported as arrived.
    overtaken: bool,
    media: bool,
    /// True if the datagram was sent as ECT(1), which a queue may mark.
    markable: bool,
    /// Media packet that the datagram carries, until its outcome is known; `None` for a datagram
    /// without media.
    entry: Option<Entry>,
}

/// Counts of datagrams known to have arrived or to be lost. In each pair, the first counts those
/// sent as Not-ECT, the second those sent as ECT(1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) came: [u64; 2],
    pub(crate) lost: [u64; 2],
}

/// Status of a datagram according to reports; one that counts as lost may still turn out to have
/// arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Flying,
    Arrived,
    Lost,
}

/// A media packet whose outcome has become known by a report, or that was given up as lost.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) entry: Entry,
    pub(crate) fate: Fate,
    /// True if the packet arrived, and a newer datagram was reported as arrived before it.
    pub(crate) overtaken: bool,
}

/// The outcome of a media packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The packet arrived by its deadline, accurate to half a report interval.
    InTime,
    /// The packet arrived after its deadline.
    Late,
    Lost,
}

/// Counts of the media packets settled by the last report, by fate.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Fates {
    in_time: f64,
    late: f64,
    lost: f64,
    /// Number of packets in time over recent reports, exponentially decayed.
    recent_in_time: f64,
    /// Number of packets that arrived late over recent reports, exponentially decayed.
    recent_late: f64,
}

impl Fates {
    /// Replaces the counts of the previous report by those of `settled`.
    pub(crate) fn count(&mut self, settled: &[Settled]) {
        let count = |fate| settled.iter().filter(|packet| packet.fate == fate).count() as f64;
        let (in_time, late, lost) = (count(Fate::InTime), count(Fate::Late), count(Fate::Lost));
        let fade = 1.0 - ((in_time + late) / FATES_MEMORY).min(1.0);
        *self = Self {
            in_time,
            late,
            lost,
            recent_in_time: self.recent_in_time * fade + in_time,
            recent_late: self.recent_late * fade + late,
        };
    }

    /// Returns whether a packet was missed by chance and not by a failure of the link; false for a
    /// packet in time. Losses are chance if the report has at most [`CHANCE_MOST`] of them, or no
    /// more than arrivals. A late packet is chance if a newer one arrived first, or if recent
    /// packets in time outnumber late ones by [`OVERTAKEN_OF`].
    pub(crate) fn is_chance(self, packet: &Settled) -> bool {
        match packet.fate {
            Fate::InTime => false,
            Fate::Late if packet.overtaken => true,
            Fate::Late => self.recent_late * OVERTAKEN_OF <= self.recent_in_time,
            Fate::Lost => self.lost <= CHANCE_MOST || self.lost <= self.in_time + self.late,
        }
    }
}

impl InFlight {
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            records: VecDeque::new(),
            settled: 0,
            bytes: 0,
            sent: 0,
            lost: 0,
            highest: None,
            reordering: Reordering::default(),
            news_at: None,
            oldest_media: None,
            open: 0,
            forgotten: 0,
            passed: Passed::default(),
        }
    }

    /// Records that the datagram with the next packet number was sent, of `bytes` bytes; `markable`
    /// if it was sent as ECT(1).
    pub(crate) fn push(&mut self, bytes: usize, markable: bool, now: Instant) {
        if self.records.len() == RECORDS_MAX {
            self.drop_first();
        }
        self.bytes += bytes as u64;
        self.sent += bytes as u64;
        let (bytes, sent) = (bytes as u32, self.sent);
        let known = Known::Flying;
        let record = Record {
            sent_at: now,
            bytes,
            sent,
            known,
            overtaken: false,
            media: false,
            markable,
            entry: None,
        };
        self.records.push_back(record);
    }

    /// Reclassifies the last datagram as an MTU probe, which does not count as in flight.
    pub(crate) fn was_probe(&mut self) {
        if let Some(record) = self.records.back_mut() {
            self.bytes -= u64::from(std::mem::take(&mut record.bytes));
        }
    }

    /// Attaches the media packet that the last datagram carries.
    pub(crate) fn carry(&mut self, entry: Entry) {
        if let Some(record) = self.records.back_mut() {
            (record.media, record.entry) = (true, Some(entry));
            self.oldest_media = self.oldest_media.or(Some(record.sent_at));
            self.open += 1;
        }
    }

    /// Handles a report of what had arrived by `known_at` on our clock, and appends every media
    /// packet that it settles to `settled`. Returns true if it shows a newer datagram than all
    /// earlier reports. `trip` is the minimum RTT.
    pub(crate) fn on_report(
        &mut self,
        report: &Report,
        known_at: Instant,
        trip: Duration,
        settled: &mut Vec<Settled>,
        now: Instant,
    ) -> bool {
        let news = self.highest.is_none_or(|highest| report.highest > highest);
        if news {
            self.highest = Some(report.highest);
            self.news_at = Some(now);
        }
        self.reordering.advance(now);
        self.arrive(report.highest, known_at, settled);
        for back in 1..=report.recent.len().min(report.highest) {
            if report.recent.arrived(back) == Some(true) {
                self.arrive(report.highest - back, known_at, settled);
            }
        }
        self.write_off(report, trip / OVERTAKEN_PART, settled);
        self.trim(now);
        self.find_oldest();
        news
    }

    fn find_oldest(&mut self) {
        let from = self.settled.saturating_sub(self.first) as usize;
        let mut rest = self.records.range(from.min(self.records.len())..);
        let oldest = rest.find(|record| record.known == Known::Flying && record.media);
        self.oldest_media = oldest.map(|record| record.sent_at);
    }

    fn arrive(&mut self, number: u64, known_at: Instant, settled: &mut Vec<Settled>) {
        let newest_at = self.highest.and_then(|highest| self.sent_at(highest));
        let Some(record) = number
            .checked_sub(self.first)
            .and_then(|at| self.records.get_mut(usize::try_from(at).ok()?))
        else {
            return;
        };
        let behind = newest_at.map_or(Duration::ZERO, |at| at.since(record.sent_at));
        match record.known {
            Known::Arrived => return,
            Known::Flying => {
                self.bytes -= u64::from(record.bytes);
                if record.overtaken {
                    self.reordering.keep(behind);
                }
            }
            // It was only reordered, by more than was assumed possible.
            Known::Lost => {
                self.reordering.widen(behind);
                self.lost -= u64::from(record.bytes);
                self.passed.lost[usize::from(record.markable)] -= 1;
            }
        }
        record.known = Known::Arrived;
        self.passed.came[usize::from(record.markable)] += 1;
        if let Some(entry) = record.entry.take() {
            self.open -= 1;
            let in_time = known_at <= entry.deadline;
            let fate = if in_time { Fate::InTime } else { Fate::Late };
            settled.push(Settled { entry, fate, overtaken: record.overtaken });
        }
    }

    /// Declares datagrams lost that the newest arrived one overtook by too much: by the reordering
    /// allowed in time and also by [`OVERTAKEN_BY`] packets or the time `later`. Their media
    /// packets go to `settled`; other missing datagrams are marked as overtaken.
    fn write_off(&mut self, report: &Report, later: Duration, settled: &mut Vec<Settled>) {
        let Some(newest_at) = self.sent_at(report.highest) else { return };
        let mut number = self.settled.max(self.first);
        let mut gap = false;
        while number <= report.highest {
            let Some(record) = self.records.get_mut((number - self.first) as usize) else { break };
            if record.known == Known::Flying {
                let behind = newest_at.since(record.sent_at);
                let overtaken = behind >= self.reordering.borne()
                    && (report.highest - number >= OVERTAKEN_BY || behind >= later);
                if overtaken {
                    record.known = Known::Lost;
                    self.bytes -= u64::from(record.bytes);
                    self.lost += u64::from(record.bytes);
                    self.passed.lost[usize::from(record.markable)] += 1;
                    if let Some(entry) = record.entry.take() {
                        self.open -= 1;
                        settled.push(Settled { entry, fate: Fate::Lost, overtaken: false });
                    }
                } else {
                    record.overtaken = number < report.highest;
                    gap = true;
                }
            }
            number += 1;
            if !gap {
                self.settled = number;
            }
        }
    }

    /// Drops the oldest records that are settled, up to the first that is not, or that is a recent
    /// loss, which may still arrive. The newest datagram reported as arrived keeps its record.
    fn trim(&mut self, now: Instant) {
        while let Some(record) = self.records.front() {
            let done = match record.known {
                Known::Arrived => true,
                Known::Lost => now.since(record.sent_at) > REMEMBERED,
                Known::Flying => false,
            };
            if !done || self.highest.is_none_or(|highest| self.first >= highest) {
                break;
            }
            self.drop_first();
        }
    }

    /// Returns whether [`InFlight::expire`] has a record to drop.
    pub(crate) fn is_expiring(&self, now: Instant) -> bool {
        self.records.front().is_some_and(|record| now.since(record.sent_at) >= GIVEN_UP_AFTER)
    }

    /// Drops the records older than [`GIVEN_UP_AFTER`], and appends the media packets among them
    /// whose outcome is unknown to `settled`, as lost.
    pub(crate) fn expire(&mut self, settled: &mut Vec<Settled>, now: Instant) {
        while let Some(record) = self.records.front_mut() {
            if now.since(record.sent_at) < GIVEN_UP_AFTER {
                break;
            }
            if let Some(entry) = record.entry.take() {
                self.open -= 1;
                settled.push(Settled { entry, fate: Fate::Lost, overtaken: false });
            }
            self.drop_first();
            self.find_oldest();
        }
    }

    fn drop_first(&mut self) {
        if let Some(record) = self.records.pop_front() {
            if record.known == Known::Flying {
                self.bytes -= u64::from(record.bytes);
            }
            if record.entry.is_some() {
                self.open -= 1;
                self.forgotten += 1;
            }
            self.first += 1;
            self.settled = self.settled.max(self.first);
        }
    }

    /// Returns the media packets whose outcome is unknown and that were not resent over another
    /// link, oldest first.
    pub(crate) fn doubtful(&mut self) -> impl Iterator<Item = &mut Entry> {
        let from = self.settled.saturating_sub(self.first) as usize;
        let flying = self.records.range_mut(from.min(self.records.len())..);
        flying
            .filter(|record| record.known == Known::Flying)
            .filter_map(|record| record.entry.as_mut().filter(|entry| !entry.again))
    }

    /// Returns the number of packets of media unit `unit` whose outcome is unknown.
    pub(crate) fn carried(&self, unit: u64) -> usize {
        let from = self.settled.saturating_sub(self.first) as usize;
        let flying = self.records.range(from.min(self.records.len())..);
        let flying = flying.filter(|record| record.known == Known::Flying);
        flying.filter(|r| r.entry.as_ref().is_some_and(|entry| entry.unit == unit)).count()
    }

    /// Returns the bytes that were sent and are not known to have arrived or to be lost, without
    /// MTU probes.
    pub(crate) fn bytes(&self) -> ByteCount {
        ByteCount::new(self.bytes)
    }

    /// Returns the counts of datagrams known to have arrived and to be lost.
    pub(crate) fn passed(&self) -> Passed {
        self.passed
    }

    /// Returns the bytes of everything declared lost that has not arrived since, without MTU
    /// probes.
    pub(crate) fn lost(&self) -> ByteCount {
        ByteCount::new(self.lost)
    }

    /// Returns the sending duration of the run of missing datagrams that follows the newest one
    /// known to have arrived. It is zero unless the report shows a newer one. Call it before the
    /// report is handled.
    pub(crate) fn hole(&self, report: &Report) -> Duration {
        let Some(first) = self.highest.map(|highest| highest + 1) else { return Duration::ZERO };
        let missing = |number: &u64| report.recent.arrived(report.highest - number) != Some(true);
        let last = (first..report.highest).take_while(missing).last();
        let left = |number| self.sent_at(number);
        let ends = last.and_then(|last| left(last).zip(left(first)));
        ends.map_or(Duration::ZERO, |(last, first)| last.since(first))
    }

    /// Returns the longest time by which datagrams of the last [`SLOTS`] seconds were sent before
    /// newer ones that overtook them, plus a quarter; zero if at most [`REORDERING_LEAST`].
    pub(crate) fn reordering(&self) -> Duration {
        Some(self.reordering.borne()).filter(|most| *most > REORDERING_LEAST).unwrap_or_default()
    }

    /// Returns the number of media packets with unknown outcome.
    pub(crate) fn media_open(&self) -> u64 {
        self.open
    }

    /// Returns the number of media packets evicted before their outcome was known; they count as
    /// lost.
    pub(crate) fn media_forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Returns when the next report with news on media is expected: `trip` after the oldest media
    /// packet in flight was sent, or at the last report with news if that was later. `None` while
    /// no media is in flight.
    pub(crate) fn news_due_at(&self, trip: Duration) -> Option<Instant> {
        let due_at = self.oldest_media? + trip;
        Some(self.news_at.map_or(due_at, |news| news.max(due_at)))
    }

    /// Returns the bytes sent up to `departed_by` that are not known to have arrived or to be lost.
    /// They wait in the link's queue, unless they are lost.
    pub(crate) fn waiting(&self, departed_by: Instant) -> ByteCount {
        let from = self.settled.saturating_sub(self.first) as usize;
        let rest = self.records.range(from.min(self.records.len())..);
        let could = rest.take_while(|record| record.sent_at <= departed_by);
        let bytes = could.filter(|record| record.known == Known::Flying).map(|record| record.bytes);
        ByteCount::new(bytes.map(u64::from).sum())
    }

    /// Returns the total bytes sent up to and including datagram `number`; `None` once its record
    /// is dropped.
    pub(crate) fn sent_until(&self, number: u64) -> Option<ByteCount> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.records.get(at).map(|record| ByteCount::new(record.sent))
    }

    /// Returns when datagram `number` was sent; `None` once its record is dropped.
    pub(crate) fn sent_at(&self, number: u64) -> Option<Instant> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.records.get(at).map(|record| record.sent_at)
    }
}

/// Time by which a datagram may be overtaken before it counts as lost, at least
/// [`REORDERING_LEAST`].
///
/// A datagram that was declared lost and arrives after all widens it. It narrows again once nothing
/// has been overtaken by as much for [`SLOTS`] seconds.
#[derive(Debug, Clone, Default)]
struct Reordering {
    /// For each of the last [`SLOTS`] seconds with reordering: its number on our clock, and the
    /// longest time that its arrivals called for.
    by_second: VecDeque<(u64, Duration)>,
    second: u64,
}

impl Reordering {
    fn borne(&self) -> Duration {
        let most = self.by_second.iter().map(|(_, most)| *most).max();
        most.unwrap_or_default().max(REORDERING_LEAST)
    }

    fn advance(&mut self, now: Instant) {
        self.second = now.as_millis() / 1_000;
        while self.by_second.front().is_some_and(|(second, _)| second + SLOTS <= self.second) {
            self.by_second.pop_front();
        }
    }

    /// Records that a datagram, sent `behind` before the newest arrived one, arrived after it was
    /// declared lost: allows a quarter more from now on, up to [`REORDERING_MOST`].
    fn widen(&mut self, behind: Duration) {
        self.note((behind + behind / 4).min(REORDERING_MOST));
    }

    /// Records that a datagram, sent `behind` before the newest arrived one, arrived within the
    /// time allowed: `behind` and a quarter more stay allowed for [`SLOTS`] more seconds, as far as
    /// they are now.
    fn keep(&mut self, behind: Duration) {
        self.note((behind + behind / 4).min(self.borne()));
    }

    fn note(&mut self, most: Duration) {
        match self.by_second.back_mut() {
            Some((second, known)) if *second == self.second => *known = most.max(*known),
            Some(_) | None => self.by_second.push_back((self.second, most)),
        }
    }
}

/// Number of losses in one report up to which they are random, even if they are the majority.
const CHANCE_MOST: f64 = 12.0;
/// Minimum ratio of recent packets in time to late ones at which a late packet that was not
/// overtaken counts as late by chance.
const OVERTAKEN_OF: f64 = 3.0;
/// Number of packets shown as arrived by one report from which the reports before it no longer
/// count; fewer fade those in proportion.
const FATES_MEMORY: f64 = 24.0;
/// Maximum number of records, beyond which the oldest is evicted: two seconds at 4,000 datagrams a
/// second.
const RECORDS_MAX: usize = 8_192;
/// Number of packets by which a datagram must be overtaken to count as lost ([RFC9002] 6.1.1).
const OVERTAKEN_BY: u64 = 3;
/// Divisor of the RTT for the time by which a datagram must be overtaken to count as lost, at low
/// packet rates ([RFC9002] 6.1.2).
const OVERTAKEN_PART: u32 = 8;
const REORDERING_MOST: Duration = Duration::from_millis(150);
/// Seconds for which reordering is remembered.
const SLOTS: u64 = 10;
const REMEMBERED: Duration = Duration::from_millis(500);
const GIVEN_UP_AFTER: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{LinkNumber, Recent};

    const TRIP: Duration = Duration::from_millis(80);

    fn entry(unit: u64) -> Entry {
        Entry {
            plaintext: Vec::new(),
            deadline: Instant::from_millis(9_000),
            unit,
            standing: 0,
            again: false,
        }
    }

    fn sent(count: u64) -> InFlight {
        let mut packets = InFlight::new();
        for number in 0..count {
            packets.push(100, false, Instant::from_millis(number));
            packets.carry(entry(number));
        }
        packets
    }

    fn report(highest: u64, count: u64, missing: &[u64]) -> Report {
        Report {
            link: LinkNumber::new(0).unwrap(),
            taken_at: Instant::ZERO,
            highest,
            datagrams: 0,
            bytes: ByteCount::ZERO,
            age: None,
            recent: Recent::of(count, |back| {
                back <= highest && !missing.contains(&(highest - back))
            }),
            marks: None,
        }
    }

    fn settle(packets: &mut InFlight, report: &Report, now: u64) -> (Vec<u64>, Vec<u64>) {
        let mut settled = Vec::new();
        packets.on_report(report, Instant::ZERO, TRIP, &mut settled, Instant::from_millis(now));
        let units = |arrived: bool| {
            let of = settled.iter().filter(|s| (s.fate != Fate::Lost) == arrived);
            let mut units: Vec<u64> = of.map(|settled| settled.entry.unit).collect();
            units.sort_unstable();
            units
        };
        (units(true), units(false))
    }

    #[test]
    fn a_report_settles_what_arrived_and_what_was_overtaken() {
        let mut packets = sent(12);
        assert_eq!(packets.bytes().get(), 1_200);
        let told = settle(&mut packets, &report(8, 8, &[2, 7]), 20);
        // Number 7 was overtaken by one only: it may be in flight.
        assert_eq!(told, (vec![0, 1, 3, 4, 5, 6, 8], vec![2]));
        assert_eq!(packets.bytes().get(), 400);
        assert_eq!(settle(&mut packets, &report(11, 8, &[]), 21), (vec![7, 9, 10, 11], vec![]));
        assert_eq!((packets.bytes().get(), packets.doubtful().count()), (0, 0));
    }

    #[test]
    fn where_few_leave_one_that_left_much_later_is_enough() {
        let mut packets = InFlight::new();
        for number in 0..4 {
            packets.push(100, false, Instant::from_millis(number * 6));
            packets.carry(entry(number));
        }
        // An eighth of the RTT of 80 ms is 10 ms.
        assert_eq!(settle(&mut packets, &report(1, 8, &[0]), 90), (vec![1], vec![]));
        assert_eq!(settle(&mut packets, &report(2, 8, &[0]), 92), (vec![2], vec![0]));
    }

    #[test]
    fn packets_before_the_range_of_a_report_are_lost() {
        let mut packets = sent(30);
        let (arrived, lost) = settle(&mut packets, &report(29, 8, &[]), 40);
        assert_eq!((arrived.len(), lost.len()), (9, 21));
    }

    #[test]
    fn a_late_one_widens_what_counts_as_reordering() {
        let mut packets = sent(30);
        assert_eq!(settle(&mut packets, &report(9, 16, &[3]), 20).1, [3]);
        // It was given up, so its entry is gone; its number arrives after all.
        assert_eq!(settle(&mut packets, &report(10, 16, &[]), 21), (vec![10], vec![]));
        assert_eq!(packets.reordering.borne(), Duration::from_micros(8_750));
        assert_eq!(settle(&mut packets, &report(18, 16, &[11]), 30).1, [0; 0]);
        assert_eq!(settle(&mut packets, &report(21, 16, &[11]), 30).1, [11]);
    }

    #[test]
    fn the_reordering_window_shrinks_without_reordering() {
        let mut packets = sent(6_000);
        settle(&mut packets, &report(40, 64, &[3]), 40);
        settle(&mut packets, &report(41, 64, &[]), 41);
        let wide = packets.reordering.borne();
        assert!(wide > Duration::from_millis(40), "{wide:?}");
        // A datagram that arrives 30 ms behind within the allowed time keeps it as wide.
        settle(&mut packets, &report(5_030, 256, &[5_000]), 5_030);
        settle(&mut packets, &report(5_031, 256, &[]), 5_031);
        assert_eq!(packets.reordering.borne(), wide);
        settle(&mut packets, &report(5_100, 256, &[]), 10_100);
        assert_eq!(packets.reordering.borne(), Duration::from_micros(38_750));
        settle(&mut packets, &report(5_101, 256, &[]), 15_100);
        assert_eq!(packets.reordering.borne(), REORDERING_LEAST);
        assert_eq!(packets.reordering(), Duration::ZERO);
        assert_eq!(settle(&mut packets, &report(5_110, 256, &[5_104]), 15_110).1, [5_104]);
    }

    #[test]
    fn a_hole_is_what_left_in_a_row_and_did_not_come() {
        let mut packets = sent(400);
        settle(&mut packets, &report(9, 16, &[]), 30);
        let missing: Vec<u64> = (12..100).chain([120]).collect();
        assert_eq!(packets.hole(&report(11, 16, &[])), Duration::ZERO);
        assert_eq!(packets.hole(&report(130, 256, &missing)), Duration::ZERO);
        settle(&mut packets, &report(11, 16, &[]), 40);
        assert_eq!(packets.hole(&report(130, 256, &missing)), Duration::from_millis(87));
        assert_eq!(packets.hole(&report(8, 16, &[])), Duration::ZERO);
        // Datagrams before the range of a report count with the missing ones next to them.
        assert_eq!(packets.hole(&report(130, 64, &missing)), Duration::from_millis(87));
        // Nothing was sent in between.
        packets.push(100, false, Instant::from_millis(9_000));
        settle(&mut packets, &report(399, 256, &missing), 500);
        assert_eq!(packets.hole(&report(400, 256, &missing)), Duration::ZERO);
    }

    #[test]
    fn a_report_is_due_a_round_trip_after_the_oldest_open_packet() {
        let mut packets = sent(5);
        let (at, trip) = (Instant::from_millis, Duration::from_millis(30));
        assert_eq!(packets.news_due_at(trip), Some(at(30)));
        settle(&mut packets, &report(2, 8, &[]), 60);
        assert_eq!(packets.news_due_at(trip), Some(at(60)));
        settle(&mut packets, &report(4, 8, &[]), 80);
        assert_eq!(packets.news_due_at(trip), None);
    }

    #[test]
    fn unreported_packets_expire_and_memory_is_bounded() {
        let mut packets = sent(10);
        let mut settled = Vec::new();
        packets.expire(&mut settled, Instant::from_millis(2_004));
        assert_eq!((settled.len(), packets.bytes().get()), (5, 500));
        assert_eq!(packets.doubtful().map(|entry| entry.again = true).count(), 5);
        assert_eq!(packets.doubtful().count(), 0);
        for _ in 0..20_000 {
            packets.push(100, false, Instant::from_millis(2_000));
        }
        assert_eq!(packets.records.len(), RECORDS_MAX);
        assert_eq!(packets.bytes().get(), RECORDS_MAX as u64 * 100);
        // A report of a forgotten or of a future number changes nothing.
        for highest in [0, 1 << 47] {
            settle(&mut packets, &report(highest, 256, &[]), 2_100);
        }
        assert_eq!(packets.bytes().get(), RECORDS_MAX as u64 * 100);
    }
}
