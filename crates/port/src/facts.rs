use std::time::Duration;

use tautline_blackbox as blackbox;
use tautline_guard::frame::{About, Fact};
use tautline_units::Instant;

/// Subjects under which a vehicle may report facts; facts with other subjects are dropped.
pub(crate) const OF_VEHICLE: &[About] = &[About::Person, About::Network, About::System];

/// Subjects under which a machine may report facts; facts with other subjects are dropped.
pub(crate) const OF_MACHINE: &[About] = &[About::Vehicle, About::Machine];

/// A filter of one end's facts, by subject and rate, so that no sender can fill the disk.
#[derive(Debug)]
pub(crate) struct Sieve {
    about: &'static [About],
    taken_at: [Option<Instant>; About::ALL.len()],
}

impl Sieve {
    /// Creates a filter that accepts facts with the subjects `about` and drops all others.
    pub(crate) fn new(about: &'static [About]) -> Self {
        Self { about, taken_at: [None; About::ALL.len()] }
    }

    /// Returns the subject under which `fact` is to be recorded; `None` if this end may not report
    /// it, or one was recorded less than [`INTERVAL`] ago.
    pub(crate) fn pass(&mut self, fact: &Fact, now: Instant) -> Option<blackbox::Fact> {
        let taken_at = &mut self.taken_at[usize::from(fact.about.number())];
        let is_soon = taken_at.is_some_and(|at| now.since(at) < INTERVAL);
        if is_soon || !self.about.contains(&fact.about) {
            return None;
        }
        *taken_at = Some(now);
        Some(match fact.about {
            About::Vehicle => blackbox::Fact::Vehicle,
            About::Person => blackbox::Fact::Person,
            About::Network => blackbox::Fact::Network,
            About::Machine => blackbox::Fact::Machine,
            About::System => blackbox::Fact::System,
        })
    }
}

/// Minimum interval between two facts with the same subject, within which the later one is dropped:
/// a kilobyte five times a second is a twentieth of the data of the guard's own steps.
const INTERVAL: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_may_send_only_its_own_facts_at_a_limited_rate() {
        let at = Instant::from_millis;
        let fact = |about| Fact::new(about, "{}", at(0)).unwrap();
        let mut sieve = Sieve::new(OF_VEHICLE);
        assert_eq!(sieve.pass(&fact(About::Person), at(0)), Some(blackbox::Fact::Person));
        assert_eq!(sieve.pass(&fact(About::Network), at(10)), Some(blackbox::Fact::Network));
        assert_eq!(sieve.pass(&fact(About::Person), at(199)), None, "too soon");
        assert_eq!(sieve.pass(&fact(About::Person), at(200)), Some(blackbox::Fact::Person));
        assert_eq!(sieve.pass(&fact(About::Machine), at(300)), None, "not its own");
        let mut sieve = Sieve::new(OF_MACHINE);
        assert_eq!(sieve.pass(&fact(About::Person), at(300)), None, "not its own");
        assert_eq!(sieve.pass(&fact(About::Machine), at(300)), Some(blackbox::Fact::Machine));
    }
}
