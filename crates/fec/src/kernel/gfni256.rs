//! The kernel for CPUs with GFNI but without AVX-512: from Gracemont and Alder Lake on.
//!
//! Same as the 512-bit kernel, on half the bytes and half the registers.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m256i, _mm256_gf2p8affine_epi64_epi8, _mm256_loadu_si256, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::Column;
use super::entry::simd_kernel;
use super::vector::Vector;
use super::{checked, matrix, transform};
use crate::gf256::BIT_MATRICES;

/// A multiplier of 32 bytes at a time. A value proves that the CPU has AVX2 and GFNI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gfni256(());

impl Gfni256 {
    /// Returns the kernel if this CPU (and the operating system) has AVX2 and GFNI; without the
    /// feature `std`, if the build's target has them.
    pub fn detect() -> Option<Gfni256> {
        #[cfg(feature = "std")]
        let present = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("gfni");
        #[cfg(not(feature = "std"))]
        let present = cfg!(all(target_feature = "avx2", target_feature = "gfni"));
        present.then_some(Gfni256(()))
    }
}

simd_kernel!(Gfni256, Lanes, "avx2,gfni");

/// A register; a separate type, because the AVX2 kernel uses the same registers.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Lanes(__m256i);

// SAFETY of every block: the trait's conditions are the intrinsics'.
impl Vector for Lanes {
    const BYTES: usize = 32;
    const TILE_ROWS: usize = 6;
    const PAIRS: bool = false;
    const MANY: bool = false;
    type Split = Lanes;

    #[inline(always)]
    unsafe fn zero() -> Lanes {
        // SAFETY: as above.
        unsafe { Lanes(_mm256_setzero_si256()) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Lanes {
        // SAFETY: as above.
        unsafe { Lanes(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Lanes) -> Lanes {
        // SAFETY: as above.
        unsafe { Lanes(_mm256_xor_si256(self.0, other.0)) }
    }

    #[inline(always)]
    unsafe fn split(self) -> Lanes {
        self
    }

    #[inline(always)]
    unsafe fn product(split: Lanes, coefficient: u8) -> Lanes {
        // SAFETY: as above.
        unsafe {
            let matrix = BIT_MATRICES.get_unchecked(usize::from(coefficient));
            let matrix = _mm256_set1_epi64x(matrix.cast_signed());
            Lanes(_mm256_gf2p8affine_epi64_epi8(split.0, matrix, 0))
        }
    }
}
