//! A reference decoder that keeps everything and eliminates anew each time: slow and obviously
//! correct.

use std::collections::{BTreeMap, BTreeSet};

use super::super::{Config, Discard, Repair, Report, coefficient};
use crate::gf256;

/// A model of the expected [`Decoder`](super::Decoder), without payload bytes.
pub(super) struct Model {
    config: Config,
    known: BTreeSet<u64>,
    repairs: Vec<Repair>,
    base: u64,
    floor: u64,
    next: u64,
    lost: u64,
    ready: Vec<u64>,
    unread: u64,
}

impl Model {
    pub(super) fn new(config: Config) -> Model {
        Model {
            config,
            known: BTreeSet::new(),
            repairs: Vec::new(),
            base: 0,
            floor: 0,
            next: 0,
            lost: 0,
            ready: Vec::new(),
            unread: 0,
        }
    }

    pub(super) fn handle_source(&mut self, id: u64) -> Result<(), Discard> {
        if id < self.base {
            return Err(Discard::Forgotten);
        }
        if self.known.contains(&id) {
            return Err(Discard::Duplicate);
        }
        self.advance(id + 1);
        self.learn(id);
        self.solve();
        Ok(())
    }

    pub(super) fn handle_repair(&mut self, repair: Repair) -> Result<(), Discard> {
        if repair.first < self.base {
            return Err(Discard::Forgotten);
        }
        self.advance(repair.covers().end);
        self.give_up(repair.first);
        if repair.covers().all(|id| self.known.contains(&id)) {
            return Err(Discard::Redundant);
        }
        if self.repairs.len() == self.config.repairs_max {
            return Err(Discard::Full);
        }
        let rank = self.reduced(0).len();
        self.repairs.push(repair);
        if self.reduced(0).len() == rank {
            self.repairs.pop();
            return Err(Discard::Redundant);
        }
        self.solve();
        Ok(())
    }

    pub(super) fn forget_before(&mut self, id: u64) {
        self.advance(id);
        self.give_up(id);
    }

    /// Gives up packets below `id`, and equations about nothing else.
    fn give_up(&mut self, id: u64) {
        if id > self.floor {
            self.raise_floor(id);
            if self.repairs.iter().all(|repair| repair.covers().end <= id) {
                self.repairs.clear();
            }
        }
    }

    pub(super) fn poll(&mut self) -> Vec<u64> {
        let floor = self.floor;
        self.ready.drain(..).filter(|&id| id >= floor).collect()
    }

    pub(super) fn poll_in_order(&mut self) -> Vec<u64> {
        let from = self.unread.max(self.floor);
        self.unread = from.max(self.edge());
        (from..self.unread).collect()
    }

    pub(super) fn report(&self) -> Report {
        Report {
            edge: self.edge(),
            next: self.next,
            missing: self.unknown(self.floor..self.next).count(),
            rank: self.reduced(self.floor).len(),
            lost: self.lost,
        }
    }

    fn edge(&self) -> u64 {
        self.unknown(self.floor..self.next).next().unwrap_or(self.next)
    }

    fn unknown(&self, ids: std::ops::Range<u64>) -> impl Iterator<Item = u64> {
        ids.filter(|id| !self.known.contains(id))
    }

    fn advance(&mut self, next: u64) {
        if next > self.next {
            self.next = next;
            let base = next.saturating_sub(self.config.window_max as u64);
            self.raise_floor(base);
            self.base = self.base.max(base);
            self.repairs.retain(|repair| repair.first >= self.base);
        }
    }

    fn raise_floor(&mut self, floor: u64) {
        if floor > self.floor {
            self.lost += self.unknown(self.floor..floor).count() as u64;
            self.floor = floor;
        }
    }

    fn learn(&mut self, id: u64) {
        self.known.insert(id);
        if id >= self.floor {
            self.ready.push(id);
        }
    }

    fn solve(&mut self) {
        let solved: Vec<u64> = self
            .reduced(0)
            .into_iter()
            .filter(|row| row.len() == 1)
            .flat_map(|row| row.into_keys())
            .collect();
        solved.into_iter().for_each(|id| self.learn(id));
        // Keeps only independent ones of the remaining equations, preferring those that are
        // forgotten last.
        let mut repairs = std::mem::take(&mut self.repairs);
        repairs.sort_by_key(|repair| std::cmp::Reverse(repair.first));
        for repair in repairs {
            let rank = self.reduced(0).len();
            self.repairs.push(repair);
            if self.reduced(0).len() == rank {
                self.repairs.pop();
            }
        }
    }

    /// Returns the reduced equations about only the unknowns from `floor` on, by id.
    fn reduced(&self, floor: u64) -> Vec<BTreeMap<u64, u8>> {
        let mut rows: Vec<BTreeMap<u64, u8>> = Vec::new();
        for repair in &self.repairs {
            let coefficients = self.unknown(repair.covers());
            let mut new: BTreeMap<u64, u8> =
                coefficients.map(|id| (id, coefficient(repair.seed, id))).collect();
            for row in &rows {
                let (&pivot, _) = row.first_key_value().expect("rows are not empty");
                if let Some(&multiplier) = new.get(&pivot) {
                    add(&mut new, multiplier, row);
                }
            }
            let Some((&pivot, &first)) = new.first_key_value() else { continue };
            let scale = gf256::invert(first).expect("zeros are left out");
            new.values_mut().for_each(|value| *value = gf256::multiply(*value, scale));
            for row in &mut rows {
                if let Some(&multiplier) = row.get(&pivot) {
                    add(row, multiplier, &new);
                }
            }
            rows.push(new);
        }
        rows.retain(|row| row.first_key_value().is_some_and(|(&pivot, _)| pivot >= floor));
        rows.sort_by_key(|row| row.first_key_value().map(|(&pivot, _)| pivot));
        rows
    }
}

/// Adds a multiple of a row to another; zeros are omitted.
fn add(target: &mut BTreeMap<u64, u8>, multiplier: u8, source: &BTreeMap<u64, u8>) {
    for (&id, &value) in source {
        let sum = target.get(&id).unwrap_or(&0) ^ gf256::multiply(multiplier, value);
        if sum == 0 {
            target.remove(&id);
        } else {
            target.insert(id, sum);
        }
    }
}

/// Pseudo-random numbers: an additive sequence, mixed.
pub(super) struct Generator(u64);

impl Generator {
    pub(super) fn new(seed: u64) -> Generator {
        Generator(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed ^ (mixed >> 32)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= probability && probability > 0.0
    }
}
