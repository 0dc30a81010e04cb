//! What of the media that is lost, or that a silent link holds, is worth sending again.

use std::collections::VecDeque;

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
    arrived: usize,
}

impl Ledger {
    /// Notes a unit of which `packet_count` packets were given to links.
    pub(crate) fn open(&mut self, number: u64, source_count: usize, packet_count: usize) {
        if self.units.len() == UNITS_MAX {
            self.units.pop_front();
        }
        self.units.push_back(Standing { number, source_count, hopeful: packet_count, arrived: 0 });
    }

    /// Notes that a packet of a unit arrived.
    pub(crate) fn arrive(&mut self, number: u64) {
        if let Some(unit) = self.find(number) {
            unit.arrived += 1;
        }
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
        if unit.arrived >= unit.source_count {
            return 0;
        }
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

/// More units than a second has; a unit lives for a fifth of one.
const UNITS_MAX: usize = 512;
/// Beyond k, against the next trouble.
pub(super) const MARGIN: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ledger_is_bounded() {
        let mut ledger = Ledger::default();
        for unit in 0..3_000 {
            ledger.open(unit, 4, 8);
        }
        assert_eq!(ledger.units.len(), UNITS_MAX);
        assert_eq!(ledger.save(0, 4), 0);
    }

    #[test]
    fn a_unit_that_is_there_is_not_sent_again() {
        let mut ledger = Ledger::default();
        ledger.open(1, 2, 4);
        ledger.arrive(1);
        assert_eq!(ledger.save(1, 3), 2);
        ledger.arrive(1);
        assert_eq!(ledger.save(1, 2), 0);
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
