//! The kernel for CPUs with AVX2: nearly every x86-64 since 2013.
//!
//! A product with a constant is the XOR of two look-ups in 16-byte tables, one for each half of
//! the byte; `vpshufb` does 32 look-ups at once. Ends are done by a last vector that overlaps the
//! one before it, which is right because outputs are written and never added to.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m256i, _mm_load_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_loadu_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16,
    _mm256_storeu_si256, _mm256_xor_si256,
};

use super::{Column, checked_length};
use crate::gf256::NIBBLES;

/// Multiplies 32 bytes at a time. A value proves that the CPU has AVX2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// Returns the kernel if this CPU (and the operating system) has AVX2.
    pub fn detect() -> Option<Avx2> {
        #[cfg(feature = "std")]
        let present = std::arch::is_x86_feature_detected!("avx2");
        #[cfg(not(feature = "std"))]
        let present = cfg!(target_feature = "avx2");
        present.then_some(Avx2(()))
    }

    /// Does what [`Kernel::multiply`](super::Kernel::multiply) says.
    ///
    /// # Panics
    /// As there.
    pub fn multiply(self, columns: &[Column], inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        let length = checked_length(columns, inputs, outputs);
        let mut row = 0;
        while row < outputs.len() {
            // As even as possible: 9 rows are three times 3, not 4 + 4 + 1.
            let left = outputs.len() - row;
            let count = left.div_ceil(left.div_ceil(TILE_ROWS));
            let outputs = &mut outputs[row..row + count];
            // SAFETY: `self` proves the CPU feature; `checked_length` has checked all lengths.
            unsafe {
                match count {
                    1 => rows::<1>(columns, row, inputs, outputs, length),
                    2 => rows::<2>(columns, row, inputs, outputs, length),
                    3 => rows::<3>(columns, row, inputs, outputs, length),
                    _ => rows::<TILE_ROWS>(columns, row, inputs, outputs, length),
                }
            }
            row += count;
        }
    }
}

/// Is the width of one vector.
const VECTOR_BYTES: usize = 32;

/// Is the most rows at once: 4 of 2 vectors are 8 of 16 registers, 4 hold the inputs' halves.
const TILE_ROWS: usize = 4;

/// Computes `ROWS` outputs, with the coefficients from `first_row` on.
///
/// # Safety
/// All inputs and outputs are `length` bytes long; there are `ROWS` outputs.
#[target_feature(enable = "avx2")]
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
#[target_feature(enable = "avx2")]
unsafe fn block<const ROWS: usize, const VECTORS: usize>(
    columns: &[Column],
    first_row: usize,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    at: usize,
) {
    let mut sums = [[_mm256_setzero_si256(); VECTORS]; ROWS];
    for (column, input) in columns.iter().zip(inputs) {
        let mut vectors = [_mm256_setzero_si256(); VECTORS];
        for (vector, value) in vectors.iter_mut().enumerate() {
            // SAFETY: within `input`, by the caller's promise.
            *value = unsafe {
                _mm256_loadu_si256(input.as_ptr().add(at + vector * VECTOR_BYTES).cast())
            };
        }
        add_products(&mut sums, column, first_row, vectors);
    }
    for (sums, output) in sums.iter().zip(outputs) {
        for (vector, &sum) in sums.iter().enumerate() {
            // SAFETY: within `output`, by the caller's promise.
            unsafe {
                let target = output.as_mut_ptr().add(at + vector * VECTOR_BYTES).cast();
                _mm256_storeu_si256(target, sum);
            }
        }
    }
}

/// Computes packets shorter than a vector, by way of a padded copy.
#[target_feature(enable = "avx2")]
fn short<const ROWS: usize>(
    columns: &[Column],
    first_row: usize,
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
) {
    let mut padded = [0; VECTOR_BYTES];
    let mut sums = [[_mm256_setzero_si256(); 1]; ROWS];
    for (column, input) in columns.iter().zip(inputs) {
        padded[..input.len()].copy_from_slice(input);
        // SAFETY: `padded` is one vector long.
        let vector = unsafe { _mm256_loadu_si256(padded.as_ptr().cast()) };
        add_products(&mut sums, column, first_row, [vector]);
    }
    for ([sum], output) in sums.iter().zip(outputs) {
        // SAFETY: `padded` is one vector long.
        unsafe { _mm256_storeu_si256(padded.as_mut_ptr().cast(), *sum) };
        output.copy_from_slice(&padded[..output.len()]);
    }
}

/// Adds each row's coefficient times `vectors` to that row's sums.
#[inline]
#[target_feature(enable = "avx2")]
fn add_products<const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[__m256i; VECTORS]; ROWS],
    column: &Column,
    first_row: usize,
    vectors: [__m256i; VECTORS],
) {
    let nibble = _mm256_set1_epi8(0x0F);
    let mut low = vectors;
    let mut high = vectors;
    for vector in 0..VECTORS {
        low[vector] = _mm256_and_si256(vectors[vector], nibble);
        high[vector] = _mm256_and_si256(_mm256_srli_epi16::<4>(vectors[vector]), nibble);
    }
    for (sums, &coefficient) in sums.iter_mut().zip(&column[first_row..first_row + ROWS]) {
        let (low_table, high_table) = tables(coefficient);
        for vector in 0..VECTORS {
            let low = _mm256_shuffle_epi8(low_table, low[vector]);
            let high = _mm256_shuffle_epi8(high_table, high[vector]);
            sums[vector] = _mm256_xor_si256(sums[vector], _mm256_xor_si256(low, high));
        }
    }
}

/// Returns a coefficient's two look-up tables, each in both halves of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn tables(coefficient: u8) -> (__m256i, __m256i) {
    let table = NIBBLES[usize::from(coefficient)].0.as_ptr();
    // SAFETY: `Nibbles` is 32 bytes long and 32-byte aligned.
    let (low, high) =
        unsafe { (_mm_load_si128(table.cast()), _mm_load_si128(table.add(16).cast())) };
    (_mm256_broadcastsi128_si256(low), _mm256_broadcastsi128_si256(high))
}
