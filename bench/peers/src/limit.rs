//! Ceilings of the matrix method: the CPU's maximum, measured in turns with our encoder.
//!
//! The loops keep everything in registers and only multiply and add. An empty `asm!` makes the
//! compiler treat the input as new each time; otherwise it would hoist the multiplication.
#![allow(unsafe_code)]

use crate::measure::Work;

/// A loop that accumulates products in registers.
pub(crate) struct Ceiling {
    pub(crate) name: &'static str,
    /// Function that multiplies and adds the given number of vectors.
    work: fn(vectors: usize),
    vector_bytes: usize,
    /// Bytes of source times rows that one run processes.
    bytes: usize,
}

impl Work for Ceiling {
    fn prepare(&mut self, _: usize, _: u64) {}

    fn run(&mut self, _: usize) {
        (self.work)(self.bytes / self.vector_bytes);
    }

    fn is_right(&mut self, _: usize) -> bool {
        true
    }
}

/// Returns whether the CPU has GFNI, which the bars assume.
pub(crate) fn has_gfni() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("gfni");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Returns the loops that this CPU supports, each over `bytes` of source times rows.
pub(crate) fn ceilings(bytes: usize) -> Vec<Ceiling> {
    #[cfg(target_arch = "x86_64")]
    return x86::ceilings(bytes);
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::asm;
    use core::arch::x86_64::{
        __m256i, __m512i, _mm256_and_si256, _mm256_gf2p8affine_epi64_epi8, _mm256_set1_epi8,
        _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16,
        _mm256_xor_si256, _mm512_gf2p8affine_epi64_epi8, _mm512_set1_epi64, _mm512_setzero_si512,
        _mm512_ternarylogic_epi64, _mm512_xor_si512,
    };
    use std::arch::is_x86_feature_detected as detected;
    use std::hint::black_box;

    use super::Ceiling;

    pub(super) fn ceilings(bytes: usize) -> Vec<Ceiling> {
        let wide = detected!("avx512f") && detected!("gfni");
        let narrow = detected!("avx2") && detected!("gfni");
        let all = [
            wide.then_some(Ceiling {
                name: "GFNI 512: two affines, one ternary xor",
                // SAFETY: the CPU has what the loop needs.
                work: |vectors| unsafe { affine_pairs_512(vectors) },
                vector_bytes: 64,
                bytes,
            }),
            wide.then_some(Ceiling {
                name: "GFNI 512: affine, xor",
                // SAFETY: the CPU has what the loop needs.
                work: |vectors| unsafe { affine_512(vectors) },
                vector_bytes: 64,
                bytes,
            }),
            narrow.then_some(Ceiling {
                name: "GFNI 256: affine, xor",
                // SAFETY: the CPU has what the loop needs.
                work: |vectors| unsafe { affine_256(vectors) },
                vector_bytes: 32,
                bytes,
            }),
            detected!("avx2").then_some(Ceiling {
                name: "AVX2: two shuffles, two xors",
                // SAFETY: the CPU has what the loop needs.
                work: |vectors| unsafe { shuffle_256(vectors) },
                vector_bytes: 32,
                bytes,
            }),
        ];
        all.into_iter().flatten().collect()
    }

    /// Number of accumulators, enough to hide the latency of each.
    const SUMS: usize = 12;

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new_512(mut input: __m512i) -> __m512i {
        // SAFETY: no instruction at all.
        unsafe { asm!("/* {0} */", inout(zmm_reg) input, options(nomem, nostack)) };
        input
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn new_256(mut input: __m256i) -> __m256i {
        // SAFETY: no instruction at all.
        unsafe { asm!("/* {0} */", inout(ymm_reg) input, options(nomem, nostack)) };
        input
    }

    #[target_feature(enable = "avx512f,gfni")]
    fn affine_pairs_512(vectors: usize) {
        let matrices = [3, 5].map(|seed| _mm512_set1_epi64(black_box(seed)));
        let mut inputs = [7, 9].map(|seed| _mm512_set1_epi64(black_box(seed)));
        let mut sums = [_mm512_setzero_si512(); SUMS];
        for _ in 0..vectors / (2 * SUMS) {
            for sum in &mut sums {
                inputs = inputs.map(|input| new_512(input));
                let first = _mm512_gf2p8affine_epi64_epi8(inputs[0], matrices[0], 0);
                let second = _mm512_gf2p8affine_epi64_epi8(inputs[1], matrices[1], 0);
                *sum = _mm512_ternarylogic_epi64(*sum, first, second, 0x96);
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx512f,gfni")]
    fn affine_512(vectors: usize) {
        let matrix = _mm512_set1_epi64(black_box(3));
        let mut input = _mm512_set1_epi64(black_box(7));
        let mut sums = [_mm512_setzero_si512(); SUMS];
        for _ in 0..vectors / SUMS {
            for sum in &mut sums {
                input = new_512(input);
                *sum = _mm512_xor_si512(*sum, _mm512_gf2p8affine_epi64_epi8(input, matrix, 0));
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx2,gfni")]
    fn affine_256(vectors: usize) {
        let matrix = _mm256_set1_epi64x(black_box(3));
        let mut input = _mm256_set1_epi64x(black_box(7));
        let mut sums = [_mm256_setzero_si256(); SUMS];
        for _ in 0..vectors / SUMS {
            for sum in &mut sums {
                input = new_256(input);
                *sum = _mm256_xor_si256(*sum, _mm256_gf2p8affine_epi64_epi8(input, matrix, 0));
            }
        }
        black_box(sums);
    }

    /// Splits an input into nibbles once for all accumulators, as a kernel does for its rows.
    #[target_feature(enable = "avx2")]
    fn shuffle_256(vectors: usize) {
        let tables = [3, 5].map(|seed| _mm256_set1_epi8(black_box(seed)));
        let mask = _mm256_set1_epi8(15);
        let mut input = _mm256_set1_epi64x(black_box(7));
        let mut sums = [_mm256_setzero_si256(); SUMS];
        for _ in 0..vectors / SUMS {
            input = new_256(input);
            let mut low = _mm256_and_si256(input, mask);
            let mut high = _mm256_and_si256(_mm256_srli_epi16(input, 4), mask);
            for sum in &mut sums {
                (low, high) = (new_256(low), new_256(high));
                let low = _mm256_shuffle_epi8(tables[0], low);
                let high = _mm256_shuffle_epi8(tables[1], high);
                *sum = _mm256_xor_si256(*sum, _mm256_xor_si256(low, high));
            }
        }
        black_box(sums);
    }
}
