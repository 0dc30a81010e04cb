//! Failover when a link's pongs or reports stop: other links take over its media before it is
//! silent.

use tautline_units::Instant;

use super::recovery::Recovery;
use super::tracker::Tracker;
use crate::counters::Discard;
use crate::link::Entry;
use crate::links::Links;
use crate::shared::Shared;

/// Moves packets queued on links that may not carry media to links that may. With `retransmit` set,
/// also resends packets in flight on such a link over another one (reinjection). Both only as far
/// as the packets' units need them; other queued packets are dropped and counted.
// protocol 3, life of a link
pub(super) fn fail_over(
    recovery: &mut Recovery,
    links: &mut Links,
    shared: &mut Shared,
    now: Instant,
) {
    let carrying = links.carrying();
    for place in 0..links.len() {
        if carrying.allows(&links[place]) {
            continue;
        }
        let mut waiting = Vec::new();
        while let Some(entry) = links[place].withdraw() {
            waiting.push(entry);
        }
        let mut units: Vec<u64> = waiting.iter().map(|entry| entry.unit).collect();
        if shared.config.retransmit {
            units.extend(links[place].doubtful().map(|entry| entry.unit));
        }
        if units.is_empty() {
            continue;
        }
        let mut allowance = Allowance::new(units, &mut recovery.tracker);
        // Unsent packets go first: they cannot have arrived.
        let mut again = Vec::new();
        for entry in waiting {
            match allowance.take(entry.unit) {
                true => again.push((entry, false)),
                false => {
                    shared.counters.discard(Discard::MediaSilenced);
                    recovery.forgo(entry);
                }
            }
        }
        if shared.config.retransmit {
            for entry in links[place].doubtful() {
                entry.again = true;
                if allowance.take(entry.unit) {
                    let copy = Entry { plaintext: entry.plaintext.clone(), ..*entry };
                    again.push((copy, true));
                }
            }
        }
        again.sort_by_key(|(entry, left)| (entry.unit, *left));
        for (entry, left) in again {
            let what = if left { None } else { Some(Discard::MediaSilenced) };
            recovery.send_again(entry, what, links, shared, now);
        }
    }
}

/// Number of packets of each unit that are worth moving or resending, in order of unit numbers.
struct Allowance {
    units: Vec<(u64, usize)>,
}

impl Allowance {
    /// Creates the allowance; `units` holds the unit number of each packet in doubt, in any order.
    fn new(mut units: Vec<u64>, tracker: &mut Tracker) -> Self {
        units.sort_unstable();
        let units = units
            .chunk_by(u64::eq)
            .filter_map(|group| Some((*group.first()?, group.len())))
            .map(|(unit, doubtful)| (unit, tracker.save(unit, doubtful)))
            .collect();
        Self { units }
    }

    /// Uses up one packet of the allowance of `unit`; returns false if none is left.
    fn take(&mut self, unit: u64) -> bool {
        let at = self.units.binary_search_by_key(&unit, |(unit, _)| *unit).ok();
        let left = at.map(|at| &mut self.units[at].1).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }
}
