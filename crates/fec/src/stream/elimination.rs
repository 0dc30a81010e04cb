//! On-the-fly elimination: the equations that held repair packets provide about unknown packets.
//!
//! Coefficients are eliminated as soon as a repair packet arrives; payloads are not touched. Each
//! row is an equation in which one unknown, its pivot, has the coefficient 1, and no other row's
//! pivot occurs:
//!
//! ```text
//!     pivot + sum of free[c] * unknown c  =  sum of share[j] * (repair j - its known packets)
//! ```
//!
//! The free unknowns are those that are no row's pivot. A row without them is solved: its shares
//! define how to compute the pivot from the payloads of the repair packets and of the source
//! packets known by then. The number of rows always equals the number of repair packets held: a
//! repair packet that adds no equation is not kept, and a solved row is removed together with one
//! repair packet.

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
    /// Matrix rows. Each row holds `rows_max` shares of the held repair packets, then the
    /// coefficients of the free unknowns, then zeros.
    matrix: Vec<u8>,
    stride: usize,
    /// For each row, the unknown packet that it solves for.
    pivots: Vec<u64>,
    /// Unknowns that no row solves for, one column each.
    free: Vec<u64>,
    held: Vec<Held>,
    /// Payload slots that no held repair packet uses.
    slots: Vec<u16>,
    /// Where each unknown stands in the equations, at its id modulo the length.
    places: Vec<Place>,
    /// Lower bound of the numbers that the held repair packets cover; `u64::MAX` without any.
    first_min: u64,
    multipliers: Vec<u8>,
}

/// A repair packet and the slot of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) repair: Repair,
    pub(super) slot: u16,
}

/// Position of an unknown packet in the equations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    Free(u16),
    Pivot(u16),
}

impl Elimination {
    /// Returns equations about at most `unknowns_max` packets whose ids differ modulo `capacity`, a
    /// power of two, from at most `rows_max` repair packets.
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

    /// Returns the held repair packets; share j of every row belongs to element j.
    pub(super) fn held(&self) -> &[Held] {
        &self.held
    }

    /// Returns the number of independent equations about the unknowns from `floor` on.
    ///
    /// Exact if [`Elimination::give_up`] was last called with `floor`.
    pub(super) fn rank(&self, floor: u64) -> usize {
        self.pivots.iter().filter(|&&pivot| pivot >= floor).count()
    }

    /// Returns the packet that row `row` solves for.
    pub(super) fn pivot(&self, row: usize) -> u64 {
        self.pivots[row]
    }

    /// Returns row `row`'s shares of the held repair packets, in the order of
    /// [`Elimination::held`].
    pub(super) fn shares(&self, row: usize) -> &[u8] {
        &self.matrix[row * self.stride..][..self.held.len()]
    }

    /// Replaces the contents of `rows` by the solved rows, ordered by the packets that they solve
    /// for.
    pub(super) fn solved(&self, rows: &mut Vec<u16>) {
        let solved = |&row: &usize| self.free_part(row).iter().all(|&coefficient| coefficient == 0);
        operations::count(self.pivots.len() * self.free.len());
        rows.clear();
        rows.extend((0..self.pivots.len()).filter(solved).map(|row| row as u16));
        rows.sort_unstable_by_key(|&row| self.pivots[usize::from(row)]);
    }

    /// Adds the equation of a repair packet whose only unknown packets are `unknowns`.
    ///
    /// Returns the slot for its payload, or `None` if the equation is not independent. There must
    /// be room. O((rows + unknowns) x rows).
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
        // The new row has no pivot yet; this placeholder goes with the column.
        self.pivots.push(NOBODY);
        self.exchange(row, column);
        self.delete_free(column);
        Some(slot)
    }

    /// Removes a packet that arrived itself from the equations, which may solve rows. A row that
    /// had already solved for it is removed together with one repair packet.
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
                    // The row was already solved and about to be computed.
                    None => self.remove_solved_row(row),
                }
                *self.place_mut(id) = Place::Nowhere;
            }
        }
    }

    /// Removes solved rows, whose pivots are now known, and an equal number of repair packets.
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
        // Remove from the last row down: each removal moves only the last row.
        rows.sort_unstable();
        for &row in rows.iter().rev() {
            self.remove_solved_row(usize::from(row));
        }
    }

    fn remove_solved_row(&mut self, row: usize) {
        operations::count(self.held.len());
        // Any repair packet in the row would do; drop the one that would be forgotten first.
        let held = (0..self.held.len())
            .filter(|&held| self.shares(row)[held] != 0)
            .min_by_key(|&held| self.held[held].repair.first)
            .expect("a row is made from repair packets");
        // A solved row has no free unknowns.
        self.spend(row, held, 0);
        *self.place_mut(self.pivots[row]) = Place::Nowhere;
        self.remove_row(row);
        self.remove_held(held);
    }

    /// Stops solving for packets below `floor`, which are no longer wanted, where a row can solve
    /// for another packet. Returns the number of repair packets dropped.
    ///
    /// Drops all of them if they cover no wanted packet, or if separating wanted from unwanted
    /// packets takes more than [`passes_max`].
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

    /// Drops all repair packets that cover packets below `base`, and the unknowns there, and
    /// returns the number dropped. Drops all repair packets if that takes more than [`passes_max`].
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
        // Packets that no repair packet covers any more occur in no row.
        self.first_min = self.held.iter().map(|held| held.repair.first).min().unwrap_or(u64::MAX);
        for column in (0..self.free.len()).rev() {
            if self.free[column] < self.first_min {
                *self.place_mut(self.free[column]) = Place::Nowhere;
                self.delete_free(column);
            }
        }
        dropped
    }

    /// Drops one repair packet of the row that solves for the oldest packet below `floor`, together
    /// with that row; returns false if no row solves for such a packet.
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

    /// Drops one held repair packet, and one row in which it has a share: without the repair packet
    /// there is one equation less.
    fn drop_held(&mut self, held: usize, floor: u64) {
        let has_share = |&row: &usize| self.shares(row)[held] != 0;
        // Choose a row about unwanted packets last: wanted ones must not be mixed into it.
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

    /// Writes a repair packet's coefficients: those of pivots into `multipliers`, those of free
    /// unknowns into a new row. An unknown that is in no equation yet becomes free, in a new
    /// column.
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

    /// Eliminates the other rows' pivots from the new row.
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

    /// Makes the free unknown of `column` the pivot of a row in which it occurs; the row's old
    /// pivot becomes free in the same column.
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

    /// Adds multiples of a row, which has coefficients only of the first `free_count` free
    /// unknowns, to all other rows so that none of them has a share of `held`.
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

    /// Returns the ranges of a row that hold the shares and the coefficients of the first
    /// `free_count` free unknowns.
    fn parts(&self, free_count: usize) -> [Range<usize>; 2] {
        [0..self.held.len(), self.rows_max..self.rows_max + free_count]
    }

    fn free_part(&self, row: usize) -> &[u8] {
        &self.matrix[row * self.stride + self.rows_max..][..self.free.len()]
    }

    /// Returns the column of the oldest free unknown that occurs in row `row`; `None` if none does.
    ///
    /// The oldest unknowns are the least likely to arrive late, and the first to be given up.
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

    /// Removes a repair packet in which no row has a share, moving the last one into its place.
    fn remove_held(&mut self, held: usize) {
        let last = self.held.len() - 1;
        operations::count(self.pivots.len());
        for row in 0..self.pivots.len() {
            *self.at(row, held) = *self.at(row, last);
        }
        let removed = self.held.swap_remove(held);
        self.slots.push(removed.slot);
    }

    /// Removes all rows and repair packets, and returns the number of repair packets.
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

    /// Removes all free unknowns; no equation is left.
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

/// Work that one call has done on the matrix, counted in coefficients changed, against the limit by
/// [`passes_max`].
struct Passes {
    coefficients: usize,
}

impl Passes {
    fn new() -> Passes {
        Passes { coefficients: 0 }
    }

    /// Counts the cost of changing one row and all others by it; returns false if that exceeds the
    /// limit.
    fn take(&mut self, equations: &Elimination) -> bool {
        self.take_many(equations, 1)
    }

    /// Counts the cost of changing one row and all others by it, `count` times; returns false if
    /// the total exceeds the limit.
    fn take_many(&mut self, equations: &Elimination, count: usize) -> bool {
        let Elimination { rows_max, stride, pivots, free, .. } = equations;
        self.coefficients += count * pivots.len() * (pivots.len() + free.len());
        self.coefficients <= passes_max(rows_max * stride) * rows_max * stride
    }
}

#[cfg(test)]
impl Elimination {
    /// Returns the allocated size, counting each element as one.
    pub(super) fn memory_bytes(&self) -> usize {
        let Elimination { matrix, pivots, free, held, slots, places, multipliers, .. } = self;
        let lists = [pivots.capacity(), free.capacity(), held.capacity(), slots.capacity()];
        let more = [matrix.capacity(), places.capacity(), multipliers.capacity()];
        lists.iter().chain(&more).sum()
    }
}

/// Returns how often one call may touch every coefficient of a matrix of this size, in addition to
/// eliminating the packet that it handles: 2 to 16 times, fewer for a larger matrix.
///
/// Giving up or forgetting many packets at once could take one pass per equation held; in that case
/// all equations are dropped instead. A decoder holds that many only when too much is missing.
pub(super) const fn passes_max(coefficients: usize) -> usize {
    match PASSES_COEFFICIENTS / coefficients {
        0..=2 => 2,
        passes @ 3..=15 => passes,
        16.. => 16,
    }
}

/// Number of coefficients that one call may change, within the limits of [`passes_max`]; they take
/// about the time in which twelve packets of 1200 bytes are computed in a window of 1024.
const PASSES_COEFFICIENTS: usize = 1 << 22;

/// Pivot of a row that has none yet; no packet has this id.
const NOBODY: u64 = u64::MAX;
