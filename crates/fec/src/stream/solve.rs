//! From equations to packets: where a decoder touches payloads.
//!
//! Nothing is done to a payload until packets can be computed. Then up to [`ROWS_MAX`] of them are
//! computed at once, each as one combination of repair packets and known source packets.

use alloc::vec;
use alloc::vec::Vec;

use super::elimination::Elimination;
use super::known::{Bits, Known};
use super::packets::Packets;
use super::sum::Sum;
use super::{Config, Repair, coefficient};
use crate::kernel::{Column, Kernel, ROWS_MAX};

/// Is room for solving, kept so that nothing is allocated then.
#[derive(Clone, Debug)]
pub(super) struct Work {
    /// The rows that are solved.
    pub(super) solved: Vec<u16>,
    /// What is being computed.
    sums: Packets,
    scratch: Packets,
    used: Used,
}

/// Is the repair packets that the packets being computed depend on.
#[derive(Clone, Debug)]
struct Used {
    repairs: Vec<Repair>,
    /// For each repair packet its share of each packet that is being computed.
    shares: Vec<Column>,
    /// For each repair packet its coefficients of some neighbouring source packets.
    coefficients: Vec<Lanes>,
}

/// Is how many neighbouring packets' coefficients are computed at once: the bits of a word.
const LANES: usize = 64;

type Lanes = [u8; LANES];

impl Work {
    pub(super) fn new(config: Config) -> Work {
        let Config { symbol_bytes, repairs_max, .. } = config;
        let rows_max = repairs_max.min(ROWS_MAX);
        Work {
            solved: Vec::with_capacity(repairs_max),
            sums: Packets::new(rows_max, symbol_bytes),
            scratch: Packets::new(rows_max, symbol_bytes),
            used: Used {
                repairs: Vec::with_capacity(repairs_max),
                shares: Vec::with_capacity(repairs_max),
                coefficients: vec![[0; LANES]; repairs_max],
            },
        }
    }

    /// Computes all packets that the equations determine, and lists their rows in `solved`.
    pub(super) fn solve(
        &mut self,
        kernel: Kernel,
        equations: &Elimination,
        known: &Known,
        packets: &mut Packets,
        repairs: &Packets,
    ) {
        equations.solved(&mut self.solved);
        for rows in self.solved.chunks(ROWS_MAX) {
            let mut outputs: [&mut [u8]; ROWS_MAX] = Default::default();
            let outputs = &mut outputs[..rows.len()];
            outputs.iter_mut().zip(self.sums.iter_mut()).for_each(|(output, sum)| *output = sum);

            let mut sum = Sum::new(kernel);
            self.used.clear();
            for (position, held) in equations.held().iter().enumerate() {
                let mut column = [0; ROWS_MAX];
                for (share, &row) in column.iter_mut().zip(rows) {
                    *share = equations.shares(usize::from(row))[position];
                }
                if column != [0; ROWS_MAX] {
                    self.used.push(held.repair, column);
                    let payload = repairs.get(usize::from(held.slot));
                    *sum.add(payload, outputs, &mut self.scratch) = column;
                }
            }
            self.used.add_known(kernel, known, packets, &mut sum, outputs, &mut self.scratch);
            sum.finish(outputs, &mut self.scratch);

            for (&row, sum) in rows.iter().zip(outputs) {
                let slot = known.slot(equations.pivot(usize::from(row)));
                packets.get_mut(slot).copy_from_slice(sum);
            }
        }
    }
}

#[cfg(test)]
impl Work {
    /// Returns the size of what was allocated, a unit for each element.
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

    /// Subtracts from the repair packets all source packets in them that are known.
    fn add_known<'a>(
        &mut self,
        kernel: Kernel,
        known: &Known,
        packets: &'a Packets,
        sum: &mut Sum<'a>,
        outputs: &mut [&mut [u8]],
        scratch: &mut Packets,
    ) {
        let first = self.repairs.iter().map(|repair| repair.first).min().unwrap_or(0);
        let end = self.repairs.iter().map(|repair| repair.covers().end).max().unwrap_or(0);
        let mut products = [[0; LANES]; ROWS_MAX];
        let products = &mut products[..outputs.len()];
        for (base, bits) in known.known_words(first..end) {
            if bits == 0 {
                continue;
            }
            self.multiply_shares(kernel, base, products);
            for id in (Bits { base, bits }) {
                let column = sum.add(packets.get(known.slot(id)), outputs, scratch);
                for (coefficient, product) in column.iter_mut().zip(&*products) {
                    *coefficient = product[(id - base) as usize];
                }
            }
        }
    }

    /// Sets `products` to the coefficients of the packets from `base` on in each output.
    fn multiply_shares(&mut self, kernel: Kernel, base: u64, products: &mut [Lanes]) {
        for (repair, lanes) in self.repairs.iter().zip(&mut self.coefficients) {
            fill_lanes(repair, base, lanes);
        }
        let mut partial = [[0; LANES]; ROWS_MAX];
        let batches =
            self.shares.chunks(BATCH).zip(self.coefficients[..self.repairs.len()].chunks(BATCH));
        for (batch, (shares, coefficients)) in batches.enumerate() {
            let mut inputs: [&[u8]; BATCH] = [&[]; BATCH];
            for (input, lanes) in inputs.iter_mut().zip(coefficients) {
                *input = lanes;
            }
            let inputs = &inputs[..coefficients.len()];
            if batch == 0 {
                multiply(kernel, shares, inputs, products);
            } else {
                let partial = &mut partial[..products.len()];
                multiply(kernel, shares, inputs, partial);
                for (product, partial) in products.iter_mut().zip(partial) {
                    product.iter_mut().zip(partial).for_each(|(byte, partial)| *byte ^= *partial);
                }
            }
        }
    }
}

/// Is how many repair packets' coefficients are multiplied at once.
const BATCH: usize = 16;

fn multiply(kernel: Kernel, shares: &[Column], inputs: &[&[u8]], products: &mut [Lanes]) {
    let mut outputs: [&mut [u8]; ROWS_MAX] = Default::default();
    let outputs = &mut outputs[..products.len()];
    outputs.iter_mut().zip(products).for_each(|(output, product)| *output = product);
    kernel.multiply(shares, inputs, outputs);
}

/// Writes a repair packet's coefficients of the packets from `base` on, 0 where it covers none.
fn fill_lanes(repair: &Repair, base: u64, lanes: &mut Lanes) {
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
