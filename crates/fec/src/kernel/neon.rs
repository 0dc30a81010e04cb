//! The kernel for 64-bit ARM.
//!
//! A product with a constant is the XOR of two look-ups in 16-byte tables, one for each half of
//! the byte; `tbl` does 16 look-ups at once.
#![allow(unsafe_code)]

use core::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vqtbl1q_u8, vshrq_n_u8, vst1q_u8,
};

use super::Column;
use super::entry::simd_kernel;
use super::vector::Vector;
use super::{checked, matrix, transform};
use crate::gf256::NIBBLES;

/// A multiplier of 16 bytes at a time. A value proves that the CPU has NEON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neon(());

impl Neon {
    /// Returns the kernel if this CPU has NEON; without the feature `std`, if the build's target
    /// has it, as all but bare-metal 64-bit ARM targets have.
    pub fn detect() -> Option<Neon> {
        #[cfg(feature = "std")]
        let present = std::arch::is_aarch64_feature_detected!("neon");
        #[cfg(not(feature = "std"))]
        let present = cfg!(target_feature = "neon");
        present.then_some(Neon(()))
    }
}

simd_kernel!(Neon, uint8x16_t, "neon");

// SAFETY of every block: the trait's conditions are the intrinsics'.
impl Vector for uint8x16_t {
    const BYTES: usize = 16;
    const TILE_ROWS: usize = 6;
    const PAIRS: bool = false;
    const MANY: bool = true;
    /// The low and the high halves of the bytes.
    type Split = [uint8x16_t; 2];

    #[inline(always)]
    unsafe fn zero() -> uint8x16_t {
        // SAFETY: as above.
        unsafe { vdupq_n_u8(0) }
    }

    #[inline(always)]
    unsafe fn load(from: *const u8) -> uint8x16_t {
        // SAFETY: as above.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: as above.
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: uint8x16_t) -> uint8x16_t {
        // SAFETY: as above.
        unsafe { veorq_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn split(self) -> [uint8x16_t; 2] {
        // SAFETY: as above.
        unsafe { [vandq_u8(self, vdupq_n_u8(0x0F)), vshrq_n_u8::<4>(self)] }
    }

    #[inline(always)]
    unsafe fn product([low, high]: [uint8x16_t; 2], coefficient: u8) -> uint8x16_t {
        // SAFETY: as above; a `Nibbles` is 32 bytes long.
        unsafe {
            let table = NIBBLES.get_unchecked(usize::from(coefficient)).0.as_ptr();
            let (low_table, high_table) = (vld1q_u8(table), vld1q_u8(table.add(16)));
            veorq_u8(vqtbl1q_u8(low_table, low), vqtbl1q_u8(high_table, high))
        }
    }
}
