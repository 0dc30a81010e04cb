//! What the held repair packets say about the unknown source packets: elimination on the fly.
//!
//! Coefficients are eliminated as soon as a repair packet arrives, payloads not at all. Each row is
//! an equation in which one unknown, its pivot, has the coefficient 1 and no other row's pivot
//! occurs:
//!
//! ```text
//!     pivot + sum of free[c] * unknown c  =  sum of share[j] * (repair j - its known packets)
//! ```
//!
//! The free unknowns are those that are no row's pivot. A row without them is solved: its shares
//! tell how to compute the pivot from the payloads of the repair packets and of whatever packets
//! are known by then. As many rows as repair packets are held, always: a repair packet that adds
//! no equation is not kept, and a solved row leaves together with one repair packet.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use super::Repair;
use super::coefficient::coefficient;
use super::{operations, row};
use crate::gf256::{INVERSE, multiply};
use crate::kernel::Kernel;

/// The equations and the headers of the repair packets they were made from.
#[derive(Clone, Debug)]
pub(super) struct Elimination {
    kernel: Kernel,
    rows_max: usize,
    /// Each row: `rows_max` shares of the held repair packets, then the free unknowns'
    /// coefficients, and zeros behind them.
    matrix: Vec<u8>,
    stride: usize,
    /// The unknown that each row solves for.
    pivots: Vec<u64>,
    /// The unknowns that no row solves for, a column each.
    free: Vec<u64>,
    held: Vec<Held>,
    /// Payload slots of repair packets that are not in use.
    slots: Vec<u16>,
    /// By id, modulo a power of two: where an unknown stands.
    places: Vec<Place>,
    /// No held repair packet covers a packet below this.
    first_min: u64,
    multipliers: Vec<u8>,
}

/// A repair packet whose payload lies in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) repair: Repair,
    pub(super) slot: u16,
}

/// The place of an unknown packet in the equations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Free(u16),
    Pivot(u16),
}

impl Elimination {
    /// Returns equations about at most `unknowns_max` packets whose ids differ modulo `capacity`,
    /// a power of two, from at most `rows_max` repair packets.
    pub(super) fn new(
        kernel: Kernel,
        rows_max: usize,
        unknowns_max: usize,
        capacity: usize,
    ) -> Elimination {
        let stride = rows_max + unknowns_max;
        Elimination {
            kernel,
            rows_max,
            matrix: vec![0; rows_max * stride],
            stride,
            pivots: Vec::with_capacity(rows_max),
            free: Vec::with_capacity(unknowns_max),
            held: Vec::with_capacity(rows_max),
            slots: (0..rows_max as u16).rev().collect(),
            places: vec![Place::Nowhere; capacity],
            first_min: u64::MAX,
            multipliers: Vec::with_capacity(rows_max),
        }
    }

    /// Returns whether no further repair packet can be held.
    pub(super) fn is_full(&self) -> bool {
        self.held.len() == self.rows_max
    }

    /// Returns the repair packets held, one for each of a row's shares.
    pub(super) fn held(&self) -> &[Held] {
        &self.held
    }

    /// Returns how many independent equations there are about the unknowns from `floor` on.
    ///
    /// Exact if [`Elimination::give_up`] was told `floor`.
    pub(super) fn rank(&self, floor: u64) -> usize {
        self.pivots.iter().filter(|&&pivot| pivot >= floor).count()
    }

    /// Returns the packet that row `row` solves for.
    pub(super) fn pivot(&self, row: usize) -> u64 {
        self.pivots[row]
    }

    /// Returns row `row`'s shares of the held repair packets, in the order of these.
    pub(super) fn shares(&self, row: usize) -> &[u8] {
        &self.matrix[row * self.stride..][..self.held.len()]
    }

    /// Writes the rows that are solved, in the order of the packets that they solve for.
    pub(super) fn solved(&self, rows: &mut Vec<u16>) {
        let solved = |&row: &usize| self.free_part(row).iter().all(|&coefficient| coefficient == 0);
        operations::count(self.pivots.len() * self.free.len());
        rows.clear();
        rows.extend((0..self.pivots.len()).filter(solved).map(|row| row as u16));
        rows.sort_unstable_by_key(|&row| self.pivots[usize::from(row)]);
    }

    /// Adds the equation of a repair packet in which of all packets only `unknowns` are not known.
    ///
    /// Returns the slot for its payload, or `None` if it says nothing new. There must be room.
    /// O((rows + unknowns) x rows).
    pub(super) fn insert(
        &mut self,
        repair: Repair,
        unknowns: impl Iterator<Item = u64>,
    ) -> Option<u16> {
        let row = self.pivots.len();
        self.fill_new_row(repair, unknowns);
        self.reduce_new_row();
        let column = self.oldest_free(row)?;

        let slot = self.slots.pop().expect("the caller asks is_full first");
        for other in 0..row {
            *self.at(other, self.held.len()) = 0;
        }
        self.held.push(Held { repair, slot });
        self.first_min = self.first_min.min(repair.first);
        // The new row has no pivot so far; what stands here goes with the column.
        self.pivots.push(NOBODY);
        self.exchange(row, column);
        self.delete_free(column);
        Some(slot)
    }

    /// Takes notice that a packet is known now from elsewhere. Rows may be solved thereby.
    ///
    /// O((rows + unknowns) x rows).
    pub(super) fn know(&mut self, id: u64) {
        match mem::replace(self.place_mut(id), Place::Nowhere) {
            Place::Nowhere => {}
            Place::Free(column) => self.delete_free(usize::from(column)),
            Place::Pivot(row) => {
                let row = usize::from(row);
                match self.oldest_free(row) {
                    Some(column) => {
                        self.exchange(row, column);
                        self.delete_free(column);
                    }
                    // It was about to be computed.
                    None => self.remove_solved_row(row),
                }
                *self.place_mut(id) = Place::Nowhere;
            }
        }
    }

    /// Removes solved rows, whose pivots are known now, and as many repair packets.
    ///
    /// O(rows removed x rows x rows).
    pub(super) fn remove_solved(&mut self, rows: &mut [u16]) {
        if rows.is_empty() {
            return;
        }
        if rows.len() == self.pivots.len() {
            self.clear_rows();
            return;
        }
        // From the last row on: each removal moves the last row only.
        rows.sort_unstable();
        for &row in rows.iter().rev() {
            self.remove_solved_row(usize::from(row));
        }
    }

    fn remove_solved_row(&mut self, row: usize) {
        operations::count(self.held.len());
        // Any of those in the row would do; the one to be forgotten first is missed least.
        let held = (0..self.held.len())
            .filter(|&held| self.shares(row)[held] != 0)
            .min_by_key(|&held| self.held[held].repair.first)
            .expect("a row is made from repair packets");
        // Of the free unknowns a solved row has none.
        self.spend(row, held, 0);
        *self.place_mut(self.pivots[row]) = Place::Nowhere;
        self.remove_row(row);
        self.remove_held(held);
    }

    /// Takes notice that packets below `floor` are no longer wanted: rows that could solve for
    /// others stop solving for them. Gives how many repair packets were dropped.
    ///
    /// All are, if they say nothing of any packet that is wanted, or if to part what they say of
    /// those from what they say of others took more than [`passes_max`].
    pub(super) fn give_up(&mut self, floor: u64) -> usize {
        if self.held.iter().all(|held| held.repair.covers().end <= floor) {
            return self.clear_rows();
        }
        let mut passes = Passes::new();
        for column in 0..self.free.len() {
            if self.free[column] >= floor {
                continue;
            }
            operations::count(self.pivots.len());
            let row = (0..self.pivots.len())
                .find(|&row| self.pivots[row] >= floor && self.free_part(row)[column] != 0);
            if let Some(row) = row {
                if !passes.take(self) {
                    return self.clear_rows();
                }
                self.exchange(row, column);
            }
        }
        0
    }

    /// Drops all repair packets that cover packets below `base`, and the unknowns there; all there
    /// are, if that took more than [`passes_max`].
    pub(super) fn forget(&mut self, base: u64, floor: u64) -> usize {
        if base <= self.first_min {
            return 0;
        }
        let mut dropped = self.held.iter().filter(|held| held.repair.first < base).count();
        if dropped == self.held.len() || !Passes::new().take_many(self, dropped) {
            dropped = self.clear_rows();
        } else if dropped > 0 {
            for held in (0..self.held.len()).rev() {
                if self.held[held].repair.first < base {
                    self.drop_held(held, floor);
                }
            }
        }
        // What no repair packet covers any more occurs in no row.
        self.first_min = self.held.iter().map(|held| held.repair.first).min().unwrap_or(u64::MAX);
        for column in (0..self.free.len()).rev() {
            if self.free[column] < self.first_min {
                *self.place_mut(self.free[column]) = Place::Nowhere;
                self.delete_free(column);
            }
        }
        dropped
    }

    /// Drops one repair packet whose equation is only about a packet below `floor`, if there is one.
    pub(super) fn drop_unwanted(&mut self, floor: u64) -> bool {
        let unwanted = (0..self.pivots.len()).filter(|&row| self.pivots[row] < floor);
        let Some(row) = unwanted.min_by_key(|&row| self.pivots[row]) else { return false };
        let held = (0..self.held.len())
            .filter(|&held| self.shares(row)[held] != 0)
            .min_by_key(|&held| self.held[held].repair.first)
            .expect("a row is made from repair packets");
        self.drop_held(held, floor);
        true
    }

    /// Drops one repair packet for want of what it covers, and the row that is lost with it.
    fn drop_held(&mut self, held: usize, floor: u64) {
        let has_share = |&row: &usize| self.shares(row)[held] != 0;
        // A row about unwanted packets only goes last: wanted ones must not get mixed into it.
        let row = (0..self.pivots.len())
            .filter(has_share)
            .min_by_key(|&row| self.pivots[row] < floor)
            .expect("the shares have an inverse");
        let column = self.free.len();
        let pivot = self.pivots[row];
        self.free.push(pivot);
        *self.at(row, self.rows_max + column) = 1;
        *self.place_mut(pivot) = Place::Free(column as u16);
        self.spend(row, held, self.free.len());
        self.remove_row(row);
        self.remove_held(held);
    }

    /// Writes the coefficients of a new row, and of the pivots into `multipliers`.
    fn fill_new_row(&mut self, repair: Repair, unknowns: impl Iterator<Item = u64>) {
        let row = self.pivots.len();
        let start = row * self.stride;
        operations::count(self.stride);
        self.matrix[start..][..self.stride].fill(0);
        self.matrix[start + row] = 1;
        self.multipliers.clear();
        self.multipliers.resize(row, 0);
        for id in unknowns {
            operations::count(1);
            let coefficient = coefficient(repair.seed, id);
            match *self.place_mut(id) {
                Place::Pivot(pivot) => self.multipliers[usize::from(pivot)] = coefficient,
                Place::Free(column) => {
                    *self.at(row, self.rows_max + usize::from(column)) = coefficient;
                }
                Place::Nowhere => {
                    let column = self.free.len();
                    self.free.push(id);
                    *self.place_mut(id) = Place::Free(column as u16);
                    *self.at(row, self.rows_max + column) = coefficient;
                }
            }
        }
    }

    /// Subtracts from the new row what the others say about their pivots.
    fn reduce_new_row(&mut self) {
        let row = self.pivots.len();
        let shares = 0..row;
        let columns = self.rows_max..self.rows_max + self.free.len();
        let (rows, new) = self.matrix.split_at_mut(row * self.stride);
        for (earlier, &multiplier) in rows.chunks_exact(self.stride).zip(&self.multipliers) {
            if multiplier == 0 {
                continue;
            }
            for part in [shares.clone(), columns.clone()] {
                row::add_multiple(self.kernel, &mut new[part.clone()], multiplier, &earlier[part]);
            }
        }
    }

    /// Makes a free unknown the pivot of a row in which it occurs; the row's pivot becomes free.
    fn exchange(&mut self, row: usize, column: usize) {
        let at = self.rows_max + column;
        let scale = INVERSE[usize::from(mem::replace(self.at(row, at), 1))];
        for part in self.parts(self.free.len()) {
            let start = row * self.stride;
            row::scale(self.kernel, &mut self.matrix[start..][part], scale);
        }
        for other in (0..self.pivots.len()).filter(|&other| other != row) {
            let multiplier = mem::replace(self.at(other, at), 0);
            self.add_row(other, multiplier, row, self.free.len());
        }
        let pivot = mem::replace(&mut self.pivots[row], self.free[column]);
        *self.place_mut(self.free[column]) = Place::Pivot(row as u16);
        self.free[column] = pivot;
        if pivot != NOBODY {
            *self.place_mut(pivot) = Place::Free(column as u16);
        }
    }

    /// Adds multiples of a row, which has coefficients of the first `free_count` free unknowns only,
    /// to all others so that of these none has a share of `held`.
    fn spend(&mut self, row: usize, held: usize, free_count: usize) {
        let scale = INVERSE[usize::from(self.shares(row)[held])];
        for other in (0..self.pivots.len()).filter(|&other| other != row) {
            let multiplier = multiply(self.shares(other)[held], scale);
            self.add_row(other, multiplier, row, free_count);
        }
    }

    fn add_row(&mut self, target: usize, multiplier: u8, source: usize, free_count: usize) {
        if multiplier == 0 {
            return;
        }
        let parts = self.parts(free_count);
        let stride = self.stride;
        let (low, high) = self.matrix.split_at_mut(target.max(source) * stride);
        let (low, high) = (&mut low[target.min(source) * stride..][..stride], &mut high[..stride]);
        let (target, source) = if target < source { (low, high) } else { (high, low) };
        for part in parts {
            row::add_multiple(self.kernel, &mut target[part.clone()], multiplier, &source[part]);
        }
    }

    /// Returns where in a row the shares lie and where the coefficients of the first `free_count`
    /// free unknowns.
    fn parts(&self, free_count: usize) -> [Range<usize>; 2] {
        [0..self.held.len(), self.rows_max..self.rows_max + free_count]
    }

    fn free_part(&self, row: usize) -> &[u8] {
        &self.matrix[row * self.stride + self.rows_max..][..self.free.len()]
    }

    /// Returns the column of the oldest free unknown that occurs in a row.
    ///
    /// The oldest are the least likely to arrive after all, and the first to be given up.
    fn oldest_free(&self, row: usize) -> Option<usize> {
        operations::count(self.free.len());
        let columns = self.free_part(row).iter().zip(&self.free).enumerate();
        let occurring = columns.filter(|&(_, (&coefficient, _))| coefficient != 0);
        occurring.min_by_key(|&(_, (_, &id))| id).map(|(column, _)| column)
    }

    /// Deletes a column, moving the last one into its place.
    fn delete_free(&mut self, column: usize) {
        let last = self.free.len() - 1;
        operations::count(self.pivots.len());
        for row in 0..self.pivots.len() {
            *self.at(row, self.rows_max + column) = *self.at(row, self.rows_max + last);
            *self.at(row, self.rows_max + last) = 0;
        }
        if column != last {
            *self.place_mut(self.free[last]) = Place::Free(column as u16);
        }
        self.free.swap_remove(column);
    }

    /// Removes a row whose pivot no longer needs it, moving the last one into its place.
    fn remove_row(&mut self, row: usize) {
        let last = self.pivots.len() - 1;
        if row != last {
            for part in self.parts(self.free.len()) {
                operations::count(part.len());
                let source = last * self.stride + part.start;
                self.matrix
                    .copy_within(source..source + part.len(), row * self.stride + part.start);
            }
            *self.place_mut(self.pivots[last]) = Place::Pivot(row as u16);
        }
        self.pivots.swap_remove(row);
    }

    /// Removes a repair packet of which no row has a share, moving the last one into its place.
    fn remove_held(&mut self, held: usize) {
        let last = self.held.len() - 1;
        operations::count(self.pivots.len());
        for row in 0..self.pivots.len() {
            *self.at(row, held) = *self.at(row, last);
        }
        let removed = self.held.swap_remove(held);
        self.slots.push(removed.slot);
    }

    /// Removes all rows and repair packets at once, and gives how many these were.
    fn clear_rows(&mut self) -> usize {
        let held_count = self.held.len();
        for row in 0..self.pivots.len() {
            *self.place_mut(self.pivots[row]) = Place::Nowhere;
        }
        self.pivots.clear();
        self.slots.extend(self.held.drain(..).map(|held| held.slot));
        self.first_min = u64::MAX;
        self.clear_free();
        held_count
    }

    /// Removes all free unknowns, of which no equation is left.
    fn clear_free(&mut self) {
        for column in 0..self.free.len() {
            *self.place_mut(self.free[column]) = Place::Nowhere;
        }
        self.free.clear();
    }

    fn at(&mut self, row: usize, column: usize) -> &mut u8 {
        &mut self.matrix[row * self.stride + column]
    }

    fn place_mut(&mut self, id: u64) -> &mut Place {
        let mask = self.places.len() - 1;
        &mut self.places[id as usize & mask]
    }
}

/// A call's allowance of work on the whole matrix.
struct Passes {
    coefficients: usize,
}

impl Passes {
    fn new() -> Passes {
        Passes { coefficients: 0 }
    }

    /// Takes what one change of a row and of all others by it costs; false if that is too much.
    fn take(&mut self, equations: &Elimination) -> bool {
        self.take_many(equations, 1)
    }

    /// Takes what so many changes cost.
    fn take_many(&mut self, equations: &Elimination, count: usize) -> bool {
        let Elimination { rows_max, stride, pivots, free, .. } = equations;
        self.coefficients += count * pivots.len() * (pivots.len() + free.len());
        self.coefficients <= passes_max(rows_max * stride) * rows_max * stride
    }
}

#[cfg(test)]
impl Elimination {
    /// Returns the size of what was allocated, a unit for each element.
    pub(super) fn memory_bytes(&self) -> usize {
        let Elimination { matrix, pivots, free, held, slots, places, multipliers, .. } = self;
        let lists = [pivots.capacity(), free.capacity(), held.capacity(), slots.capacity()];
        let more = [matrix.capacity(), places.capacity(), multipliers.capacity()];
        lists.iter().chain(&more).sum()
    }
}

/// Returns how often one call may touch every coefficient of a matrix that has room for so many,
/// beside what is eliminated for the packet that it takes: 2 to 16 times, fewer where these are many.
///
/// To give up or to forget many packets at once might take as many passes as equations are held:
/// rather than that, all equations are dropped. So many are held only where too much is missing.
pub(super) const fn passes_max(coefficients: usize) -> usize {
    match PASSES_COEFFICIENTS / coefficients {
        0..=2 => 2,
        passes @ 3..=15 => passes,
        16.. => 16,
    }
}

/// So many take about as long as twelve packets of 1200 bytes are computed in a window of 1024.
const PASSES_COEFFICIENTS: usize = 1 << 22;

/// The pivot of a row that has none yet; no packet has this id.
const NOBODY: u64 = u64::MAX;
