//! The kernel for CPUs with AVX2: nearly every x86-64 since 2013.
//!
//! A product with a constant is the XOR of two look-ups in 16-byte tables, one for each half of
//! the byte; `vpshufb` does 32 look-ups at once.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m256i, _mm_load_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_loadu_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16,
    _mm256_storeu_si256, _mm256_xor_si256,
};

use super::Column;
use super::entry::simd_kernel;
use super::vector::Vector;
use super::{checked, matrix, transform};
use crate::gf256::NIBBLES;

/// A multiplier of 32 bytes at a time. A value proves that the CPU has AVX2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// Returns the kernel if this CPU (and the operating system) has AVX2; without the feature
    /// `std`, if the build's target has it.
    pub fn detect() -> Option<Avx2> {
        #[cfg(feature = "std")]
        let present = std::arch::is_x86_feature_detected!("avx2");
        #[cfg(not(feature = "std"))]
        let present = cfg!(target_feature = "avx2");
        present.then_some(Avx2(()))
    }
}

simd_kernel!(Avx2, __m256i, "avx2");

// SAFETY of every block: the trait's conditions are the intrinsics'.
impl Vector for __m256i {
    const BYTES: usize = 32;
    const TILE_ROWS: usize = 4;
    const PAIRS: bool = false;
    const MANY: bool = false;
    /// The low and the high halves of the bytes.
    type Split = [__m256i; 2];

    #[inline(always)]
    unsafe fn zero() -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: __m256i) -> __m256i {
        // SAFETY: as above.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn split(self) -> [__m256i; 2] {
        // SAFETY: as above.
        unsafe {
            let nibble = _mm256_set1_epi8(0x0F);
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(self), nibble);
            [_mm256_and_si256(self, nibble), high]
        }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [__m256i; 2], coefficient: u8) -> __m256i {
        // SAFETY: as above; a `Nibbles` is 32 bytes long and 32-byte aligned.
        unsafe {
            let table = NIBBLES.get_unchecked(usize::from(coefficient)).0.as_ptr();
            let low_table = _mm256_broadcastsi128_si256(_mm_load_si128(table.cast()));
            let high_table = _mm256_broadcastsi128_si256(_mm_load_si128(table.add(16).cast()));
            _mm256_xor_si256(
                _mm256_shuffle_epi8(low_table, low),
                _mm256_shuffle_epi8(high_table, high),
            )
        }
    }
}
