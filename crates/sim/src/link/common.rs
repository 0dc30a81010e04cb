use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use tautline_units::Bounded;

use super::interval::{Intervals, Outage, stream_of};
use crate::error::{Error, within, wrong};

/// Interruptions shared by all links that have an entry of the same name.
///
/// Modems of one carrier share its cells; in the countryside all carriers share the valley. Each
/// link has these interruptions in addition to its own, at the same instants as all links with that
/// name in the same world. Entries of one name must have equal numbers, except the factors of dips,
/// but each direction of a link may omit parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Common {
    /// Name of the shared element, such as a carrier.
    pub name: String,
    /// Outages in which packets leaving the queue are lost; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_losing: Option<Outage>,
    /// Outages in which the capacity is zero and packets are held in the queue; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage_holding: Option<Outage>,
    /// Periods of reduced capacity, as in a crowded cell; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dip: Option<Dip>,
}

/// Capacity dips: a Poisson process of exponentially long periods with less capacity.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dip {
    /// Mean time from one dip's end to the next one's start in s.
    pub every_s: f64,
    /// Mean length in ms.
    pub mean_ms: f64,
    /// Factor on the capacity during a dip.
    pub factor: f64,
}

impl Common {
    /// Returns whether two entries do not contradict each other: under one name, the outages
    /// present in both are equal, and the dips have equal times; the factors of dips may differ.
    pub fn agrees_with(&self, other: &Self) -> bool {
        fn agree<T: PartialEq>(one: Option<T>, other: Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        let law = |dip: Option<Dip>| dip.map(|dip| dip.law());
        self.name != other.name
            || agree(self.outage_losing, other.outage_losing)
                && agree(self.outage_holding, other.outage_holding)
                && agree(law(self.dip), law(other.dip))
    }

    pub(super) fn losing(&self, seed: u64) -> Intervals {
        Intervals::outages(self.outage_losing.as_ref(), self.stream(seed, 0))
    }

    pub(super) fn holding(&self, seed: u64) -> Intervals {
        Intervals::outages(self.outage_holding.as_ref(), self.stream(seed, 1))
    }

    fn dipping(&self, seed: u64) -> Option<(f64, Intervals)> {
        let dip = self.dip?;
        Some((dip.factor, Intervals::outages(Some(&dip.law()), self.stream(seed, 2))))
    }

    /// Returns one random stream per kind, so that omitting one kind leaves the others unchanged.
    fn stream(&self, seed: u64, kind: u64) -> ChaCha8Rng {
        stream_of(seed ^ hash(&self.name), kind)
    }
}

impl Dip {
    fn law(self) -> Outage {
        Outage { every_s: self.every_s, mean_ms: self.mean_ms }
    }
}

/// Maximum entries in one direction of a link; a configuration with more is refused.
const ENTRIES_MAX: usize = 8;

/// Checks the entries of one direction of a link.
pub(super) fn validate(entries: &[Common]) -> Result<(), Error> {
    Bounded::size("common", entries.len(), 0..=ENTRIES_MAX, "entries").check()?;
    for (index, entry) in entries.iter().enumerate() {
        let name = &entry.name;
        Bounded::size("common.name", name.len(), 1..=64, "bytes").check()?;
        if entries[..index].iter().any(|other| other.name == *name) {
            return Err(wrong("common.name", name, "given twice"));
        }
        let losing = ["common.outage_losing.every_s", "common.outage_losing.mean_ms"];
        entry.outage_losing.iter().try_for_each(|law| law.validate(losing))?;
        let holding = ["common.outage_holding.every_s", "common.outage_holding.mean_ms"];
        entry.outage_holding.iter().try_for_each(|law| law.validate(holding))?;
        if let Some(dip) = entry.dip {
            dip.law().validate(["common.dip.every_s", "common.dip.mean_ms"])?;
            within("common.dip.factor", dip.factor, 0.001, 1.0)?;
        }
    }
    Ok(())
}

/// Capacity dips of one direction of a link: one process for each entry that has dips, with its
/// factor on the capacity.
#[derive(Debug)]
pub(super) struct Dips {
    all: Vec<(f64, Intervals)>,
}

impl Dips {
    pub(super) fn new(entries: &[Common], seed: u64) -> Self {
        Self { all: entries.iter().filter_map(|entry| entry.dipping(seed)).collect() }
    }

    /// Returns the capacity factor at `at`, the product over all current dips or 1, and the instant
    /// until which it holds, in nanoseconds.
    pub(super) fn at(&mut self, at: u64) -> (f64, u64) {
        let (mut left, mut until) = (1.0, u64::MAX);
        for (factor, intervals) in &mut self.all {
            match intervals.at_or_after(at) {
                Some((from, to)) if from <= at => {
                    left *= *factor;
                    // At the end of the clock's range nothing ends any more.
                    until = until.min(if to > at { to } else { u64::MAX });
                }
                Some((from, _)) => until = until.min(from),
                None => {}
            }
        }
        (left, until)
    }

    /// Discards dips that ended before `now` (ns); no later query is earlier.
    pub(super) fn forget_before(&mut self, now: u64) {
        for (_, intervals) in &mut self.all {
            intervals.forget_before(now);
        }
    }
}

/// Returns the 64-bit FNV-1a hash. It is fixed here so that seeds do not depend on the standard
/// library.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
