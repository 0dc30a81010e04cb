//! The kernel for CPUs with GFNI and AVX-512: Ice Lake and Zen 4 on.
//!
//! `vgf2p8affineqb` multiplies each byte by an 8 x 8 bit matrix, and multiplication by a constant
//! of GF(2^8) is one, whatever the polynomial. Outputs stay in registers while all inputs stream
//! by; ends are masked, so that every length costs whole vectors and nothing else.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m512i, __mmask64, _mm512_gf2p8affine_epi64_epi8, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_ternarylogic_epi64,
    _mm512_xor_si512,
};

use super::{Column, ROWS_MAX, checked_length};
use crate::gf256::BIT_MATRICES;

/// Multiplies 64 bytes at a time. A value proves that the CPU has AVX-512 F and BW, and GFNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gfni(());

impl Gfni {
    /// Returns the kernel if this CPU (and the operating system) has what it needs.
    pub fn detect() -> Option<Gfni> {
        #[cfg(feature = "std")]
        let present = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("gfni");
        #[cfg(not(feature = "std"))]
        let present = cfg!(all(
            target_feature = "avx512f",
            target_feature = "avx512bw",
            target_feature = "gfni"
        ));
        present.then_some(Gfni(()))
    }

    /// Does what [`Kernel::multiply`](super::Kernel::multiply) says.
    ///
    /// # Panics
    /// As there.
    pub fn multiply(self, columns: &[Column], inputs: &[&[u8]], outputs: &mut [&mut [u8]]) {
        let length = checked_length(columns, inputs, outputs);
        // SAFETY: `self` proves the CPU features; `checked_length` has checked all lengths.
        unsafe {
            match outputs.len() {
                0 => {}
                1 => rows::<1, 4>(columns, inputs, outputs, length),
                2 => rows::<2, 4>(columns, inputs, outputs, length),
                3 => rows::<3, 2>(columns, inputs, outputs, length),
                4 => rows::<4, 2>(columns, inputs, outputs, length),
                5 => rows::<5, 2>(columns, inputs, outputs, length),
                6 => rows::<6, 2>(columns, inputs, outputs, length),
                7 => rows::<7, 2>(columns, inputs, outputs, length),
                8 => rows::<8, 2>(columns, inputs, outputs, length),
                9 => rows::<9, 2>(columns, inputs, outputs, length),
                10 => rows::<10, 2>(columns, inputs, outputs, length),
                11 => rows::<11, 2>(columns, inputs, outputs, length),
                ROWS_MAX => rows::<ROWS_MAX, 2>(columns, inputs, outputs, length),
                rows => unreachable!("{rows} outputs passed the check"),
            }
        }
    }
}

/// Is the width of one vector.
const VECTOR_BYTES: usize = 64;

/// Computes `ROWS` outputs, `VECTORS` vectors of each at a time.
///
/// # Safety
/// All inputs and outputs are `length` bytes long; there are `ROWS` outputs.
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn rows<const ROWS: usize, const VECTORS: usize>(
    columns: &[Column],
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    length: usize,
) {
    let mut at = 0;
    // SAFETY: the blocks lie within `length` by the loops' conditions; `block` masks the last.
    unsafe {
        while at + VECTORS * VECTOR_BYTES <= length {
            block::<ROWS, VECTORS>(columns, inputs, outputs, at, [!0; VECTORS]);
            at += VECTORS * VECTOR_BYTES;
        }
        while at < length {
            let mask = !0 >> VECTOR_BYTES.saturating_sub(length - at);
            block::<ROWS, 1>(columns, inputs, outputs, at, [mask]);
            at += VECTOR_BYTES;
        }
    }
}

/// Computes `VECTORS` vectors from byte `at` on, in each of `ROWS` outputs.
///
/// # Safety
/// Every byte that `masks` selects lies within every input and output; there are `ROWS` outputs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn block<const ROWS: usize, const VECTORS: usize>(
    columns: &[Column],
    inputs: &[&[u8]],
    outputs: &mut [&mut [u8]],
    at: usize,
    masks: [__mmask64; VECTORS],
) {
    let mut sums = [[_mm512_setzero_si512(); VECTORS]; ROWS];
    let mut column_pairs = columns.chunks_exact(2);
    let mut input_pairs = inputs.chunks_exact(2);
    for (columns, inputs) in (&mut column_pairs).zip(&mut input_pairs) {
        // SAFETY: the caller's promise on `at` and `masks`.
        let first = unsafe { load(inputs[0], at, masks) };
        // SAFETY: as above.
        let second = unsafe { load(inputs[1], at, masks) };
        for row in 0..ROWS {
            let first_matrix = matrix(columns[0][row]);
            let second_matrix = matrix(columns[1][row]);
            for vector in 0..VECTORS {
                let first = _mm512_gf2p8affine_epi64_epi8(first[vector], first_matrix, 0);
                let second = _mm512_gf2p8affine_epi64_epi8(second[vector], second_matrix, 0);
                sums[row][vector] =
                    _mm512_ternarylogic_epi64(sums[row][vector], first, second, XOR_OF_THREE);
            }
        }
    }
    for (column, input) in column_pairs.remainder().iter().zip(input_pairs.remainder()) {
        // SAFETY: the caller's promise on `at` and `masks`.
        let input = unsafe { load(input, at, masks) };
        for row in 0..ROWS {
            let matrix = matrix(column[row]);
            for vector in 0..VECTORS {
                let product = _mm512_gf2p8affine_epi64_epi8(input[vector], matrix, 0);
                sums[row][vector] = _mm512_xor_si512(sums[row][vector], product);
            }
        }
    }
    for (sums, output) in sums.iter().zip(outputs) {
        for vector in 0..VECTORS {
            // SAFETY: the mask selects bytes of `output` only, by the caller's promise.
            unsafe {
                let target = output.as_mut_ptr().add(at + vector * VECTOR_BYTES).cast();
                _mm512_mask_storeu_epi8(target, masks[vector], sums[vector]);
            }
        }
    }
}

/// Is the truth table of `a ^ b ^ c`.
const XOR_OF_THREE: i32 = 0x96;

/// Returns the bit matrix of a coefficient, eight times.
#[inline]
#[target_feature(enable = "avx512f")]
fn matrix(coefficient: u8) -> __m512i {
    _mm512_set1_epi64(BIT_MATRICES[usize::from(coefficient)].cast_signed())
}

/// Reads the bytes that `masks` selects, zeros elsewhere.
///
/// # Safety
/// Every selected byte, counted from `at`, lies within `input`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn load<const VECTORS: usize>(
    input: &[u8],
    at: usize,
    masks: [__mmask64; VECTORS],
) -> [__m512i; VECTORS] {
    let mut vectors = [_mm512_setzero_si512(); VECTORS];
    for vector in 0..VECTORS {
        // SAFETY: masked-out bytes are not accessed, the others are the caller's promise.
        vectors[vector] = unsafe {
            let source = input.as_ptr().add(at + vector * VECTOR_BYTES).cast();
            _mm512_maskz_loadu_epi8(masks[vector], source)
        };
    }
    vectors
}
