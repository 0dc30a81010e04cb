//! The kernel for CPUs with SSSE3: every x86-64 since 2008.
//!
//! A product with a constant is the XOR of two look-ups in 16-byte tables, one for each half of
//! the byte; `pshufb` does 16 look-ups at once.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_load_si128, _mm_loadu_si128, _mm_set1_epi8, _mm_setzero_si128,
    _mm_shuffle_epi8, _mm_srli_epi16, _mm_storeu_si128, _mm_xor_si128,
};

use super::Column;
use super::entry::simd_kernel;
use super::vector::Vector;
use super::{checked, matrix, transform};
use crate::gf256::NIBBLES;

/// A multiplier of 16 bytes at a time. A value proves that the CPU has SSSE3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ssse3(());

impl Ssse3 {
    /// Returns the kernel if this CPU has SSSE3; without the feature `std`, if the build's target
    /// has it.
    pub fn detect() -> Option<Ssse3> {
        #[cfg(feature = "std")]
        let present = std::arch::is_x86_feature_detected!("ssse3");
        #[cfg(not(feature = "std"))]
        let present = cfg!(target_feature = "ssse3");
        present.then_some(Ssse3(()))
    }
}

simd_kernel!(Ssse3, __m128i, "ssse3");

// SAFETY of every block: the trait's conditions are the intrinsics'.
impl Vector for __m128i {
    const BYTES: usize = 16;
    const TILE_ROWS: usize = 4;
    const PAIRS: bool = false;
    const MANY: bool = false;
    /// The low and the high halves of the bytes.
    type Split = [__m128i; 2];

    #[inline(always)]
    unsafe fn zero() -> __m128i {
        // SAFETY: as above.
        unsafe { _mm_setzero_si128() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m128i {
        // SAFETY: as above.
        unsafe { _mm_loadu_si128(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { _mm_storeu_si128(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: __m128i) -> __m128i {
        // SAFETY: as above.
        unsafe { _mm_xor_si128(self, other) }
    }

    #[inline(always)]
    unsafe fn split(self) -> [__m128i; 2] {
        // SAFETY: as above.
        unsafe {
            let nibble = _mm_set1_epi8(0x0F);
            [_mm_and_si128(self, nibble), _mm_and_si128(_mm_srli_epi16::<4>(self), nibble)]
        }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [__m128i; 2], coefficient: u8) -> __m128i {
        // SAFETY: as above; a `Nibbles` is 32 bytes long and 32-byte aligned.
        unsafe {
            let table = NIBBLES.get_unchecked(usize::from(coefficient)).0.as_ptr();
            let (low_table, high_table) =
                (_mm_load_si128(table.cast()), _mm_load_si128(table.add(16).cast()));
            _mm_xor_si128(_mm_shuffle_epi8(low_table, low), _mm_shuffle_epi8(high_table, high))
        }
    }
}
