//! From equations to packets: the only place where a decoder touches payloads.
//!
//! Payloads are not touched until packets can be computed. Then up to [`ROWS_MAX`] packets are
//! computed at once, each as one combination of repair packets and known source packets.

use alloc::vec;
use alloc::vec::Vec;

use super::coefficient::{self, OCTET, transpose};
use super::elimination::Elimination;
use super::known::{Bits, Known};
use super::operations;
use super::packets::Packets;
use super::sum::{Scratch, Sum};
use super::{Config, Repair};
use crate::kernel::{Column, Kernel, ROWS_MAX};

/// Buffers, allocated once, for computing packets from solved rows.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// Rows whose packets the last call of [`Work::solve`] computed, at most [`ROWS_MAX`], ordered
    /// by packet.
    pub(super) solved: Vec<u16>,
    /// Buffers of the packets being computed, one for each row in `solved`.
    sums: Packets,
    scratch: Scratch,
    used: Used,
}

/// The repair packets that the packets being computed depend on.
#[derive(Clone, Debug)]
struct Used {
    repairs: Vec<Repair>,
    /// Share of each repair packet in each packet being computed.
    shares: Vec<Column>,
    /// Coefficients of each repair packet for the [`LANES`] source packets processed at present.
    coefficients: Vec<Lanes>,
}

/// Number of consecutive packets whose coefficients are computed at once: the bits of a word.
const LANES: usize = 64;

type Lanes = [[u8; OCTET as usize]; LANES / OCTET as usize];

const NONE: Lanes = [[0; 8]; 8];

impl Work {
    pub(super) fn new(config: Config) -> Work {
        let Config { symbol_bytes, window_max, repairs_max } = config;
        let rows_max = repairs_max.min(ROWS_MAX);
        Work {
            solved: Vec::with_capacity(repairs_max),
            sums: Packets::new(rows_max, symbol_bytes),
            scratch: Scratch::new(window_max + repairs_max),
            used: Used {
                repairs: Vec::with_capacity(repairs_max),
                shares: Vec::with_capacity(repairs_max),
                coefficients: vec![NONE; repairs_max],
            },
        }
    }

    /// Computes the packets that the equations determine, at most [`ROWS_MAX`] of them, oldest
    /// first, stores them in `packets`, and lists their rows in `solved`. Returns whether more are
    /// determined.
    pub(super) fn solve(
        &mut self,
        kernel: Kernel,
        equations: &Elimination,
        known: &Known,
        packets: &mut Packets,
        repairs: &Packets,
    ) -> bool {
        equations.solved(&mut self.solved);
        let more = self.solved.len() > ROWS_MAX;
        self.solved.truncate(ROWS_MAX);
        let rows = &self.solved[..];
        if !rows.is_empty() {
            let mut outputs: [&mut [u8]; ROWS_MAX] = Default::default();
            let outputs = &mut outputs[..rows.len()];
            outputs.iter_mut().zip(self.sums.iter_mut()).for_each(|(output, sum)| *output = sum);

            let mut sum = Sum::new(&mut self.scratch);
            self.used.clear();
            for (position, held) in equations.held().iter().enumerate() {
                let mut column = [0; ROWS_MAX];
                for (share, &row) in column.iter_mut().zip(rows) {
                    *share = equations.shares(usize::from(row))[position];
                }
                if column != [0; ROWS_MAX] {
                    self.used.push(held.repair, column);
                    sum.add(repairs.get(usize::from(held.slot)), column);
                }
            }
            self.used.add_known(kernel, known, packets, rows.len(), &mut sum);
            sum.finish(kernel, outputs);

            for (&row, sum) in rows.iter().zip(outputs) {
                let slot = known.slot(equations.pivot(usize::from(row)));
                packets.get_mut(slot).copy_from_slice(sum);
            }
        }
        more
    }
}

#[cfg(test)]
impl Work {
    /// Returns the allocated size, counting each element as one.
    pub(super) fn memory_bytes(&self) -> usize {
        let Work { solved, sums, scratch, used: Used { repairs, shares, coefficients } } = self;
        let lists = [solved.capacity(), repairs.capacity(), shares.capacity()];
        let packets = [sums.memory_bytes(), scratch.memory_bytes(), coefficients.capacity()];
        lists.iter().chain(&packets).sum()
    }
}

impl Used {
    fn clear(&mut self) {
        self.repairs.clear();
        self.shares.clear();
    }

    fn push(&mut self, repair: Repair, shares: Column) {
        self.repairs.push(repair);
        self.shares.push(shares);
    }

    /// Adds to the sums every known source packet that a used repair packet covers, which subtracts
    /// it from that repair packet.
    fn add_known<'a>(
        &mut self,
        kernel: Kernel,
        known: &Known,
        packets: &'a Packets,
        rows: usize,
        sum: &mut Sum<'a, '_>,
    ) {
        let first = self.repairs.iter().map(|repair| repair.first).min().unwrap_or(0);
        let end = self.repairs.iter().map(|repair| repair.covers().end).max().unwrap_or(0);
        let mut products = [NONE; ROWS_MAX];
        let products = &mut products[..rows];
        for (base, bits) in known.known_words(first..end) {
            if bits == 0 {
                continue;
            }
            self.multiply_shares(kernel, base, products);
            for octet in 0..8 {
                let base = base + octet * OCTET;
                let bits = (bits >> (octet * OCTET)) & 0xFF;
                if bits == 0 {
                    continue;
                }
                let columns = columns(products, octet as usize);
                for id in (Bits { base, bits }) {
                    sum.add(packets.get(known.slot(id)), columns[(id - base) as usize]);
                }
            }
        }
    }

    /// Sets `products[i]` to the coefficients that the [`LANES`] source packets from `base` on have
    /// in the i-th packet being computed.
    fn multiply_shares(&mut self, kernel: Kernel, base: u64, products: &mut [Lanes]) {
        let coefficients = &mut self.coefficients[..self.repairs.len()];
        operations::count(LANES * coefficients.len() * products.len());
        for (repair, lanes) in self.repairs.iter().zip(&mut *coefficients) {
            fill_lanes(repair, base, lanes.as_flattened_mut());
        }
        let mut rest = self.shares.chunks(INPUTS_MAX).zip(coefficients.chunks(INPUTS_MAX));
        if let Some((shares, coefficients)) = rest.next() {
            multiply(kernel, shares, coefficients, products);
        }
        for (shares, coefficients) in rest {
            let mut partial = [NONE; ROWS_MAX];
            multiply(kernel, shares, coefficients, &mut partial[..products.len()]);
            for (product, partial) in products.iter_mut().zip(&partial) {
                let bytes = product.as_flattened_mut().iter_mut().zip(partial.as_flattened());
                bytes.for_each(|(byte, partial)| *byte ^= partial);
            }
        }
    }
}

/// Returns the columns of the eight source packets at `octet`, from one row of coefficients for
/// each packet being computed.
#[inline]
fn columns(rows: &[Lanes], octet: usize) -> [Column; 8] {
    let mut columns = [[0; ROWS_MAX]; 8];
    if let [row] = rows {
        for (column, &coefficient) in columns.iter_mut().zip(&row[octet]) {
            column[0] = coefficient;
        }
        return columns;
    }
    for (eight, first) in rows.chunks(8).zip([0, 8]) {
        let mut words = [0; 8];
        for (word, lanes) in words.iter_mut().zip(eight) {
            *word = u64::from_le_bytes(lanes[octet]);
        }
        for (column, word) in columns.iter_mut().zip(transpose(words)) {
            let count = (ROWS_MAX - first).min(8);
            column[first..first + count].copy_from_slice(&word.to_le_bytes()[..count]);
        }
    }
    columns
}

/// Maximum number of repair packets whose coefficients one kernel call multiplies.
const INPUTS_MAX: usize = 16;

fn multiply(kernel: Kernel, shares: &[Column], coefficients: &[Lanes], products: &mut [Lanes]) {
    let mut inputs: [&[u8]; INPUTS_MAX] = [&[]; INPUTS_MAX];
    let inputs = &mut inputs[..coefficients.len()];
    inputs.iter_mut().zip(coefficients).for_each(|(input, lanes)| *input = lanes.as_flattened());
    let mut outputs: [&mut [u8]; ROWS_MAX] = Default::default();
    let outputs = &mut outputs[..products.len()];
    let products = products.iter_mut().map(|lanes| lanes.as_flattened_mut());
    outputs.iter_mut().zip(products).for_each(|(output, product)| *output = product);
    kernel.multiply(shares, inputs, outputs);
}

/// Writes a repair packet's coefficients for the packets from `base` on, 0 for those it does not
/// cover.
fn fill_lanes(repair: &Repair, base: u64, lanes: &mut [u8]) {
    let covers = repair.covers();
    let from = covers.start.saturating_sub(base).min(LANES as u64) as usize;
    let to = covers.end.saturating_sub(base).min(LANES as u64) as usize;
    if from >= to {
        lanes.fill(0);
        return;
    }
    coefficient::fill(repair.seed, base, lanes);
    lanes[..from].fill(0);
    lanes[to..].fill(0);
}
