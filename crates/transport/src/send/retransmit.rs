//! What of the media on a link whose pongs stop is worth sending again over others.

use std::collections::VecDeque;

use tautline_units::Instant;

use super::Entry;

/// Media packets that left on a link and that no later pong has shown to have arrived.
///
/// Bounded by [`FLIGHT_MAX`]; what is pushed out can no longer be sent again, nothing else.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    entries: VecDeque<(Instant, Entry)>,
}

impl Flight {
    /// Notes a packet that leaves; gives buffers that are no longer needed.
    pub(crate) fn push(&mut self, entry: Entry, now: Instant) -> Option<Vec<u8>> {
        self.entries.push_back((now, entry));
        let (_, oldest) = self.entries.front()?;
        if oldest.deadline >= now && self.entries.len() <= FLIGHT_MAX {
            return None;
        }
        self.entries.pop_front().map(|(_, entry)| entry.plaintext)
    }

    /// Takes out the next packet that left before `sent_at`, when a ping left that was answered.
    pub(crate) fn pop_before(&mut self, sent_at: Instant) -> Option<Entry> {
        let (at, _) = self.entries.front()?;
        if *at < sent_at { self.pop() } else { None }
    }

    /// Takes out the oldest packet.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.entries.pop_front().map(|(_, entry)| entry)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// How many packets of each fresh unit have arrived or may yet arrive.
///
/// Bounded by [`UNITS_MAX`], the oldest giving way.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// In order of their numbers, without gaps.
    units: VecDeque<Standing>,
}

#[derive(Debug, Clone, Copy)]
struct Standing {
    number: u64,
    source_count: usize,
    hopeful: usize,
}

impl Ledger {
    /// Notes a unit of which `packet_count` packets were given to links.
    pub(crate) fn open(&mut self, number: u64, source_count: usize, packet_count: usize) {
        if self.units.len() == UNITS_MAX {
            self.units.pop_front();
        }
        self.units.push_back(Standing { number, source_count, hopeful: packet_count });
    }

    /// Notes that a packet of a unit is lost.
    pub(crate) fn lose(&mut self, number: u64) {
        if let Some(unit) = self.find(number) {
            unit.hopeful = unit.hopeful.saturating_sub(1);
        }
    }

    /// How many of `doubtful` packets of a unit must be sent again, so that k and [`MARGIN`] of
    /// all are hoped for; the others are written off.
    pub(crate) fn save(&mut self, number: u64, doubtful: usize) -> usize {
        let Some(unit) = self.find(number) else { return 0 };
        let sure = unit.hopeful.saturating_sub(doubtful);
        let again = (unit.source_count + MARGIN).saturating_sub(sure).min(doubtful);
        unit.hopeful = sure + again;
        again
    }

    fn find(&mut self, number: u64) -> Option<&mut Standing> {
        let first = self.units.front()?.number;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        self.units.get_mut(at)
    }
}

/// More packets than 80 Mbit/s carries in a round trip of 250 ms, and 2.4 MB at most.
const FLIGHT_MAX: usize = 2_048;
/// More units than a second has; a unit lives for a fifth of one.
const UNITS_MAX: usize = 512;
/// Beyond k, against the next trouble.
pub(super) const MARGIN: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(unit: u64, deadline: u64) -> Entry {
        Entry { plaintext: Vec::new(), deadline: Instant::from_millis(deadline), unit }
    }

    #[test]
    fn a_pong_settles_what_left_before_its_ping() {
        let mut flight = Flight::default();
        for unit in 0..4 {
            assert_eq!(flight.push(entry(unit, 300), Instant::from_millis(unit * 10)), None);
        }
        let ping_at = Instant::from_millis(20);
        assert_eq!(flight.pop_before(ping_at).map(|entry| entry.unit), Some(0));
        assert_eq!(flight.pop_before(ping_at).map(|entry| entry.unit), Some(1));
        assert!(flight.pop_before(ping_at).is_none());
        assert_eq!(flight.pop().map(|entry| entry.unit), Some(2));
        // Unit 3 is too old to be sent again.
        assert!(flight.push(entry(4, 600), Instant::from_millis(301)).is_some());
        assert_eq!(flight.pop().map(|entry| entry.unit), Some(4));
        assert!(flight.is_empty());
    }

    #[test]
    fn the_flight_and_the_ledger_are_bounded() {
        let (mut flight, mut ledger) = (Flight::default(), Ledger::default());
        let dropped = (0..3_000).filter(|unit| {
            ledger.open(*unit, 4, 8);
            flight.push(entry(*unit, 900), Instant::ZERO).is_some()
        });
        assert_eq!(dropped.count(), 3_000 - FLIGHT_MAX);
        assert_eq!(ledger.units.len(), UNITS_MAX);
        assert_eq!(ledger.save(0, 4), 0);
    }

    #[test]
    fn only_what_a_unit_lacks_is_sent_again() {
        let mut ledger = Ledger::default();
        ledger.open(7, 4, 8);
        ledger.open(8, 4, 8);
        // Two links with three packets each go, one after the other.
        assert_eq!(ledger.save(7, 3), MARGIN - 1);
        assert_eq!(ledger.save(7, 3), 2 + MARGIN);
        ledger.lose(8);
        assert_eq!(ledger.save(8, 7), 4 + MARGIN);
        assert_eq!(ledger.save(9, 4), 0);
    }
}
