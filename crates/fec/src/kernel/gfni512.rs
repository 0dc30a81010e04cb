//! The kernel for CPUs with GFNI and AVX-512: from Ice Lake and Zen 4 on.
//!
//! `vgf2p8affineqb` multiplies each byte by an 8 x 8 bit matrix; for any polynomial, multiplication
//! by a constant of GF(2^8) is such a matrix.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m512i, _mm512_gf2p8affine_epi64_epi8, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_maskz_loadu_epi8, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_xor_si512,
};

use super::Column;
use super::entry::simd_kernel;
use super::vector::Vector;
use super::{checked, matrix, transform};
use crate::gf256::BIT_MATRICES;

/// A multiplier of 64 bytes at a time. A value proves that the CPU has AVX-512 F and BW and GFNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gfni512(());

impl Gfni512 {
    /// Returns the kernel if this CPU (and the operating system) has AVX-512 F and BW and GFNI;
    /// without the feature `std`, if the build's target has them.
    pub fn detect() -> Option<Gfni512> {
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
        present.then_some(Gfni512(()))
    }
}

simd_kernel!(Gfni512, __m512i, "avx512f,avx512bw,gfni");

// SAFETY of every block: the trait's conditions are the intrinsics'.
impl Vector for __m512i {
    const BYTES: usize = 64;
    const TILE_ROWS: usize = 12;
    const PAIRS: bool = true;
    const MANY: bool = true;
    type Split = __m512i;

    #[inline(always)]
    unsafe fn zero() -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: __m512i) -> __m512i {
        // SAFETY: as above.
        unsafe { _mm512_xor_si512(self, other) }
    }

    #[inline(always)]
    unsafe fn split(self) -> __m512i {
        self
    }

    #[inline(always)]
    unsafe fn product(split: __m512i, coefficient: u8) -> __m512i {
        // SAFETY: as above.
        unsafe {
            let matrix = BIT_MATRICES.get_unchecked(usize::from(coefficient));
            let matrix = _mm512_set1_epi64(matrix.cast_signed());
            _mm512_gf2p8affine_epi64_epi8(split, matrix, 0)
        }
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u8, count: usize) -> __m512i {
        // SAFETY: as above; the mask selects the first `count` bytes.
        unsafe { _mm512_maskz_loadu_epi8((1 << count) - 1, from.cast()) }
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, count: usize) {
        // SAFETY: as above; the mask selects the first `count` bytes.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), (1 << count) - 1, self) }
    }
}
