//! Arithmetic on rows of coefficients: a few bytes each, rarely hundreds.

use super::operations;
use crate::gf256::NIBBLES;
use crate::kernel::{Kernel, ROWS_MAX};

/// Adds `multiplier * source` to `target`, byte by byte. Both have the same length.
pub(super) fn add_multiple(kernel: Kernel, target: &mut [u8], multiplier: u8, source: &[u8]) {
    operations::count(target.len());
    if target.len() < KERNEL_MIN {
        let table = &NIBBLES[usize::from(multiplier)].0;
        for (target, &byte) in target.iter_mut().zip(source) {
            *target ^= table[usize::from(byte & 15)] ^ table[usize::from(16 + (byte >> 4))];
        }
        return;
    }
    let columns = [single(1), single(multiplier)];
    let mut sum = [0; CHUNK];
    for (target, source) in target.chunks_mut(CHUNK).zip(source.chunks(CHUNK)) {
        let sum = &mut sum[..target.len()];
        kernel.multiply(&columns, &[target, source], &mut [sum]);
        target.copy_from_slice(sum);
    }
}

/// Multiplies each byte of `target` by `multiplier`, in place.
pub(super) fn scale(kernel: Kernel, target: &mut [u8], multiplier: u8) {
    operations::count(target.len());
    if target.len() < KERNEL_MIN {
        let table = &NIBBLES[usize::from(multiplier)].0;
        for target in target {
            *target = table[usize::from(*target & 15)] ^ table[usize::from(16 + (*target >> 4))];
        }
        return;
    }
    let mut product = [0; CHUNK];
    for target in target.chunks_mut(CHUNK) {
        let product = &mut product[..target.len()];
        kernel.multiply(&[single(multiplier)], &[target], &mut [product]);
        target.copy_from_slice(product);
    }
}

/// Minimum length in bytes for which a kernel call is faster than table look-ups.
const KERNEL_MIN: usize = 48;

/// Number of bytes computed at once: kernels cannot write in place.
const CHUNK: usize = 512;

fn single(coefficient: u8) -> [u8; ROWS_MAX] {
    let mut column = [0; ROWS_MAX];
    column[0] = coefficient;
    column
}
