//! Decides which lost media, or media held by a silent link, is worth resending.

use std::collections::{BTreeSet, VecDeque};

use tautline_units::Instant;

use crate::protect::Plan;

/// The sent-packet tracker. For each recent media unit it counts the packets that arrived or may
/// still arrive, and keeps the source packets, from which more packets can be made.
///
/// It holds at most [`UNITS_MAX`] units; a further one evicts the oldest.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    /// Units in order of their numbers, without gaps.
    units: VecDeque<Standing>,
    /// Scheduled checks: time, and number of the unit.
    looks: BTreeSet<(Instant, u64)>,
    /// Spare buffers for source packets.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Standing {
    number: u64,
    plan: Plan,
    /// Number of packets that arrived or may still arrive.
    hopeful: usize,
    /// Number of packets that arrived.
    arrived: usize,
    /// Index of the next repair packet to encode.
    next_index: usize,
    deadline: Instant,
    /// Source packets, concatenated; empty under the streaming code.
    sources: Vec<u8>,
}

/// A unit that lacks packets when it is checked.
#[derive(Debug)]
pub(crate) struct Lacking<'a> {
    pub(crate) number: u64,
    pub(crate) plan: Plan,
    /// Symbols of the unit's source packets, concatenated.
    pub(crate) sources: &'a [u8],
    /// Indices of the repair packets to encode, as many as the unit lacks.
    pub(crate) fresh: std::ops::Range<usize>,
    pub(crate) deadline: Instant,
}

impl Tracker {
    /// Unit number of packets that belong to no unit, such as repair packets of the streaming code,
    /// and are never resent.
    pub(crate) const NO_UNIT: u64 = u64::MAX;

    /// Adds a unit with `packet_count` packets assigned to links; `sources` are its source packets,
    /// concatenated.
    pub(crate) fn open(
        &mut self,
        number: u64,
        plan: &Plan,
        packet_count: usize,
        sources: &[u8],
        deadline: Instant,
    ) {
        if self.units.len() == UNITS_MAX
            && let Some(oldest) = self.units.pop_front()
        {
            self.spare.push(oldest.sources);
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(sources);
        self.units.push_back(Standing {
            number,
            plan: *plan,
            hopeful: packet_count,
            arrived: 0,
            next_index: plan.packet_count,
            deadline,
            sources: kept,
        });
    }

    /// Schedules a check of a unit at `at`, unless [`UNITS_MAX`] checks are scheduled.
    pub(crate) fn look_at(&mut self, number: u64, at: Instant) {
        if self.looks.len() < UNITS_MAX {
            self.looks.insert((at, number));
        }
    }

    /// Returns when the next unit must be checked; `None` if no check is scheduled.
    pub(crate) fn look_due_at(&self) -> Option<Instant> {
        self.looks.first().map(|(at, _)| *at)
    }

    /// Returns the next unit whose check is due by `now` and of which fewer than k packets have
    /// arrived or are expected; `expected` returns the number expected of a unit. The new packets
    /// that make up for them count as packets that may still arrive.
    pub(crate) fn look(
        &mut self,
        expected: impl Fn(u64) -> usize,
        now: Instant,
    ) -> Option<Lacking<'_>> {
        while let Some((at, number)) = self.looks.first().copied().filter(|(at, _)| *at <= now) {
            self.looks.remove(&(at, number));
            let Some(place) = self.place(number) else { continue };
            let unit = &mut self.units[place];
            let mut lacking = unit.plan.source_count.saturating_sub(unit.arrived);
            if lacking > 0 {
                lacking = lacking.saturating_sub(expected(number));
            }
            let lacking = lacking.min(INDEX_END - unit.next_index);
            if lacking == 0 {
                continue;
            }
            let fresh = unit.next_index..unit.next_index + lacking;
            unit.next_index = fresh.end;
            unit.hopeful += lacking;
            let unit = &self.units[place];
            let (plan, deadline) = (unit.plan, unit.deadline);
            return Some(Lacking { number, plan, sources: &unit.sources, fresh, deadline });
        }
        None
    }

    /// Records that a packet of a unit arrived.
    pub(crate) fn arrive(&mut self, number: u64) {
        if let Some(unit) = self.find(number) {
            unit.arrived += 1;
        }
    }

    /// Records that a packet of a unit is lost.
    pub(crate) fn lose(&mut self, number: u64) {
        if let Some(unit) = self.find(number) {
            unit.hopeful = unit.hopeful.saturating_sub(1);
        }
    }

    /// Returns how many of the `doubtful` packets of a unit must be resent so that k plus
    /// [`MARGIN`] packets have arrived or may still arrive. The others are counted as lost. Returns
    /// 0 for an unknown unit, and if k packets have arrived.
    pub(crate) fn save(&mut self, number: u64, doubtful: usize) -> usize {
        let Some(unit) = self.find(number) else { return 0 };
        if unit.arrived >= unit.plan.source_count {
            return 0;
        }
        let sure = unit.hopeful.saturating_sub(doubtful);
        let again = (unit.plan.source_count + MARGIN).saturating_sub(sure).min(doubtful);
        unit.hopeful = sure + again;
        again
    }

    fn find(&mut self, number: u64) -> Option<&mut Standing> {
        let place = self.place(number)?;
        self.units.get_mut(place)
    }

    fn place(&self, number: u64) -> Option<usize> {
        let first = self.units.front()?.number;
        let at = usize::try_from(number.checked_sub(first)?).ok()?;
        (at < self.units.len()).then_some(at)
    }
}

/// One more than the highest index of a packet: it is one byte on the wire.
const INDEX_END: usize = 256;
/// Maximum number of units, beyond which the oldest is evicted, and of scheduled checks: more than
/// a second produces; a unit lives for 200 ms.
const UNITS_MAX: usize = 512;
/// Number of packets beyond k that are to arrive, as a margin for the next loss.
pub(super) const MARGIN: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Instant = Instant::from_millis(65);

    fn plan(source_count: usize, packet_count: usize) -> Plan {
        Plan { source_count, packet_count, symbol_bytes: 2 }
    }

    fn tracker(source_count: usize, packet_count: usize) -> Tracker {
        let mut tracker = Tracker::default();
        let sources = vec![7; source_count * 2];
        tracker.open(7, &plan(source_count, packet_count), packet_count, &sources, DEADLINE);
        tracker
    }

    #[test]
    fn the_tracker_is_bounded() {
        let mut tracker = Tracker::default();
        for unit in 0..3_000 {
            tracker.open(unit, &plan(4, 8), 8, &[0; 8], DEADLINE);
            tracker.look_at(unit, DEADLINE);
        }
        assert_eq!((tracker.units.len(), tracker.looks.len()), (UNITS_MAX, UNITS_MAX));
        assert_eq!(tracker.save(0, 4), 0);
        assert!(tracker.look(|_| 0, DEADLINE).is_none());
    }

    #[test]
    fn a_unit_that_is_there_is_not_sent_again() {
        let mut tracker = tracker(2, 4);
        tracker.arrive(7);
        assert_eq!(tracker.save(7, 3), 2);
        tracker.arrive(7);
        assert_eq!(tracker.save(7, 2), 0);
    }

    #[test]
    fn only_what_a_unit_lacks_is_sent_again() {
        let mut tracker = tracker(4, 8);
        // Two links with three packets each fail, one after the other.
        assert_eq!(tracker.save(7, 3), MARGIN - 1);
        assert_eq!(tracker.save(7, 3), 2 + MARGIN);
        assert_eq!(tracker.save(9, 4), 0);
        let mut tracker = self::tracker(4, 8);
        tracker.lose(7);
        assert_eq!(tracker.save(7, 7), 4 + MARGIN);
    }

    #[test]
    fn a_unit_that_lacks_packets_when_looked_after_gets_fresh_ones() {
        let mut tracker = tracker(3, 4);
        tracker.arrive(7);
        tracker.look_at(7, Instant::from_millis(40));
        assert_eq!(tracker.look_due_at(), Some(Instant::from_millis(40)));
        assert!(tracker.look(|_| 0, Instant::from_millis(39)).is_none());
        let lacking = tracker.look(|_| 0, Instant::from_millis(40)).unwrap();
        assert_eq!((lacking.number, lacking.fresh, lacking.sources.len()), (7, 4..6, 6));
        assert!(tracker.look(|_| 0, Instant::from_millis(50)).is_none());
        tracker.look_at(7, Instant::from_millis(50));
        tracker.arrive(7);
        // With one more expected, the unit has two packets and lacks none.
        assert!(tracker.look(|_| 1, Instant::from_millis(50)).is_none());
    }
}
