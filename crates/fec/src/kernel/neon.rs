//! The kernel for 64-bit ARM.
//!
//! A product with a constant is the XOR of two look-ups in 16-byte tables, one for each half of
//! the byte; `tbl` does 16 look-ups at once. Ends are done by a last vector that overlaps the one
//! before it, which is right because outputs are written and never added to.
#![allow(unsafe_code)]

use core::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8,
};

use super::{Column, checked_length};
use crate::gf256::NIBBLES;

/// Multiplies 16 bytes at a time. A value proves that the CPU has NEON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neon(());

impl Neon {
    /// Returns the kernel if this CPU has NEON, as all but bare-metal 64-bit ARM has.
    pub fn detect() -> Option<Neon> {
        #[cfg(feature = "std")]
        let present = std::arch::is_aarch64_feature_detected!("neon");
        #[cfg(not(feature = "std"))]
        let present = cfg!(target_feature = "neon");
        present.then_some(Neon(()))
    }

    /// Does what [`Kernel::multiply`](super::Kernel::multiply) says.
    ///
    /// # Panics
    /// As there.
    pub fn multiply(self, columns: &[Column], inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        let length = checked_length(columns, inputs, outputs);
        let mut row = 0;
        while row < outputs.len() {
            // As even as possible: 8 rows are twice 4, not 6 + 2.
            let left = outputs.len() - row;
            let count = left.div_ceil(left.div_ceil(TILE_ROWS));
            let outputs = &mut outputs[row..row + count];
            // SAFETY: `self` proves the CPU feature; `checked_length` has checked all lengths.
            unsafe {
                match count {
                    1 => rows::<1>(columns, row, inputs, outputs, length),
                    2 => rows::<2>(columns, row, inputs, outputs, length),
                    3 => rows::<3>(columns, row, inputs, outputs, length),
                    4 => rows::<4>(columns, row, inputs, outputs, length),
                    5 => rows::<5>(columns, row, inputs, outputs, length),
                    _ => rows::<TILE_ROWS>(columns, row, inputs, outputs, length),
                }
            }
            row += count;
        }
    }
}

/// Is the width of one vector.
const VECTOR_BYTES: usize = 16;

/// Is the most rows at once: 6 of 2 vectors are 12 of 32 registers, 4 hold the inputs' halves.
const TILE_ROWS: usize = 6;

/// Computes `ROWS` outputs, with the coefficients from `first_row` on.
///
/// # Safety
/// All inputs and outputs are `length` bytes long; there are `ROWS` outputs.
#[target_feature(enable = "neon")]
unsafe fn rows<const ROWS: usize>(
    columns: &[Column],
    first_row: usize,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    length: usize,
) {
    if length < VECTOR_BYTES {
        return short::<ROWS>(columns, first_row, inputs, outputs);
    }
    let mut at = 0;
    // SAFETY: every block ends at or before `length`, by the conditions.
    unsafe {
        while at + 2 * VECTOR_BYTES <= length {
            block::<ROWS, 2>(columns, first_row, inputs, outputs, at);
            at += 2 * VECTOR_BYTES;
        }
        if at + VECTOR_BYTES <= length {
            block::<ROWS, 1>(columns, first_row, inputs, outputs, at);
            at += VECTOR_BYTES;
        }
        if at < length {
            block::<ROWS, 1>(columns, first_row, inputs, outputs, length - VECTOR_BYTES);
        }
    }
}

/// Computes `VECTORS` vectors from byte `at` on, in each of `ROWS` outputs.
///
/// # Safety
/// `at` and `VECTORS` vectors lie within every input and output.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn block<const ROWS: usize, const VECTORS: usize>(
    columns: &[Column],
    first_row: usize,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    at: usize,
) {
    let mut sums = [[vdupq_n_u8(0); VECTORS]; ROWS];
    for (column, input) in columns.iter().zip(inputs) {
        let mut vectors = [vdupq_n_u8(0); VECTORS];
        for (vector, value) in vectors.iter_mut().enumerate() {
            // SAFETY: within `input`, by the caller's promise.
            *value = unsafe { vld1q_u8(input.as_ptr().add(at + vector * VECTOR_BYTES)) };
        }
        add_products(&mut sums, column, first_row, vectors);
    }
    for (sums, output) in sums.iter().zip(outputs) {
        for (vector, &sum) in sums.iter().enumerate() {
            // SAFETY: within `output`, by the caller's promise.
            unsafe {
                vst1q_u8(output.as_mut_ptr().add(at + vector * VECTOR_BYTES), sum);
            }
        }
    }
}

/// Computes packets shorter than a vector, by way of a padded copy.
#[target_feature(enable = "neon")]
fn short<const ROWS: usize>(
    columns: &[Column],
    first_row: usize,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    let mut padded = [0; VECTOR_BYTES];
    let mut sums = [[vdupq_n_u8(0); 1]; ROWS];
    for (column, input) in columns.iter().zip(inputs) {
        padded[..input.len()].copy_from_slice(input);
        // SAFETY: `padded` is one vector long.
        let vector = unsafe { vld1q_u8(padded.as_ptr()) };
        add_products(&mut sums, column, first_row, [vector]);
    }
    for ([sum], output) in sums.iter().zip(outputs) {
        // SAFETY: `padded` is one vector long.
        unsafe { vst1q_u8(padded.as_mut_ptr(), *sum) };
        output.copy_from_slice(&padded[..output.len()]);
    }
}

/// Adds each row's coefficient times `vectors` to that row's sums.
#[inline]
#[target_feature(enable = "neon")]
fn add_products<const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[uint8x16_t; VECTORS]; ROWS],
    column: &Column,
    first_row: usize,
    vectors: [uint8x16_t; VECTORS],
) {
    let nibble = vdupq_n_u8(0x0F);
    let mut low = vectors;
    let mut high = vectors;
    for vector in 0..VECTORS {
        low[vector] = vandq_u8(vectors[vector], nibble);
        high[vector] = vshrq_n_u8::<4>(vectors[vector]);
    }
    for (sums, &coefficient) in sums.iter_mut().zip(&column[first_row..first_row + ROWS]) {
        let (low_table, high_table) = tables(coefficient);
        for vector in 0..VECTORS {
            let low = vqtbl1q_u8(low_table, low[vector]);
            let high = vqtbl1q_u8(high_table, high[vector]);
            sums[vector] = veorq_u8(sums[vector], veorq_u8(low, high));
        }
    }
}

/// Returns a coefficient's two look-up tables.
#[inline]
#[target_feature(enable = "neon")]
fn tables(coefficient: u8) -> (uint8x16_t, uint8x16_t) {
    let table = NIBBLES[usize::from(coefficient)].0.as_ptr();
    // SAFETY: `Nibbles` is 32 bytes long.
    unsafe { (vld1q_u8(table), vld1q_u8(table.add(16))) }
}
