//! The reference kernel: what the others must equal.

use super::{Column, checked_length};
use crate::gf256::NIBBLES;

/// Multiplies one byte at a time. Every CPU has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scalar;

impl Scalar {
    /// Does what [`Kernel::multiply`](super::Kernel::multiply) says.
    ///
    /// # Panics
    /// As there.
    pub fn multiply(self, columns: &[Column], inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        checked_length(columns, inputs, outputs);
        for (row, output) in outputs.iter_mut().enumerate() {
            output.fill(0);
            for (column, input) in columns.iter().zip(inputs) {
                add_product(output, column[row], input);
            }
        }
    }
}

/// Adds `coefficient * source` to `target`, byte by byte. Both slices: one length, any alignment.
fn add_product(target: &mut [u8], coefficient: u8, source: &[u8]) {
    let table = &NIBBLES[usize::from(coefficient)].0;
    for (target, &source) in target.iter_mut().zip(source) {
        *target ^= table[usize::from(source & 15)] ^ table[usize::from(16 + (source >> 4))];
    }
}
