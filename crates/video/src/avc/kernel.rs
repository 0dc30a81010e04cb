//! The inner loops: differences, transforms, interpolation and deblocking.
//!
//! [`Scalar`] is the readable reference; every other kernel computes the same numbers. A value of a
//! SIMD kernel's type proves that this CPU has the instructions: only `detect()` returns one.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;

use super::cavlc::Levels;
use super::intra::{Border4, MODES4};
use super::plane::{Block, Halves, Plane};
use super::quantize::Quantizer;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
pub(super) use scalar::{Scalar, ZIGZAG};

/// The 16 coefficients or differences of a 4x4 block, row by row.
pub(super) type Coefficients = [i16; 16];

/// The coefficients of four adjacent 4x4 blocks: the first column of each, then the second of each,
/// and so on.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Row(pub(super) [i16; 64]);

impl Row {
    pub(super) const ZERO: Self = Self([0; 64]);

    /// Returns the index of the coefficient of block `block` at `row` and `column`.
    #[inline]
    pub(super) const fn at(block: usize, row: usize, column: usize) -> usize {
        column * 16 + block * 4 + row
    }

    /// Sets all coefficients of a block to zero.
    pub(super) fn clear(&mut self, block: usize) {
        for column in 0..4 {
            self.0[Self::at(block, 0, column)..][..4].fill(0);
        }
    }
}

/// Thresholds and limits of the deblocking filter at an edge (8.7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub(super) alpha: u8,
    pub(super) beta: u8,
    /// Values of t_C0 for each quarter of the edge, or -1 where it is not filtered; `None` with bS
    /// 4.
    pub(super) limits: Option<[i8; 4]>,
}

/// The operations in which the encoder spends its time.
pub(super) trait Kernel: Copy {
    /// Returns the sum of absolute differences of two blocks of `width` by `height` samples;
    /// `width` is 8 or 16.
    fn sad(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>) -> u32;

    /// Returns [`sad`](Self::sad) of a block of `size` (width, height) and the mean of two others.
    fn sad_mean(self, size: [usize; 2], block: Block<'_>, means: [Block<'_>; 2]) -> u32;

    /// Returns [`sad`](Self::sad) of a block of `size` (width, height) and each of four others.
    fn sad_four(self, size: [usize; 2], block: Block<'_>, others: [Block<'_>; 4]) -> [u32; 4];

    /// Returns [`sad`](Self::sad) of a block of `size` and each of four means: of a block in
    /// `firsts` and the one at its place in `seconds`.
    fn sad_mean_four(
        self,
        size: [usize; 2],
        block: Block<'_>,
        firsts: [Block<'_>; 4],
        seconds: [Block<'_>; 4],
    ) -> [u32; 4];

    /// Returns half the sum of the absolute values of the 4x4 Hadamard transforms of the
    /// differences of two blocks, `width` 4, 8 or 16, `height` a multiple of 4.
    fn satd(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>) -> u32;

    /// Returns [`satd`](Self::satd) of a 4x4 block and its prediction in each mode, whether or not
    /// the border permits the mode.
    fn satd_modes(self, block: Block<'_>, border: &Border4) -> [u32; MODES4];

    /// Returns a block's filtered border: from index 0 on, the weighted means of each sample and
    /// the two after it; from 16 on, those of each sample and the next.
    fn smooth(self, line: &[u8; 32]) -> [u8; 32];

    /// Returns the bytes of `from` at 16 `places`, each below 32.
    fn pick(self, from: &[u8; 32], places: &[u8; 16]) -> [u8; 16];

    /// Writes `(a + b + 1) >> 1`, sample by sample, in rows of 16; `width` 8 or 16.
    fn average(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>, out: &mut [u8]);

    /// Copies a block of `size` (width 4, 8 or 16, height) into rows of `stride`.
    fn copy(self, size: [usize; 2], from: Block<'_>, to: &mut [u8], stride: usize);

    /// Interpolates a chroma block of `size` at `eighths` of a sample (8.4.2.2.2) into rows of 16;
    /// the width is 4 or 8.
    fn chroma(self, size: [usize; 2], from: Block<'_>, eighths: [u16; 2], out: &mut [u8]);

    /// Interpolates all half-sample luma positions that vectors may reach.
    fn halves(self, luma: &Plane, halves: &mut Halves);

    /// Transforms the differences of a 4x4 block from its prediction (the inverse of 8.5.12), and
    /// quantizes them. Returns the levels in zig-zag order (6.4.3), and stores their dequantized
    /// values in `coefficients`. The flag next to the quantizer states whether the block is intra
    /// coded.
    fn code(
        self,
        block: Block<'_>,
        predicted: Block<'_>,
        by: (&Quantizer, bool),
        coefficients: &mut Coefficients,
    ) -> Levels;

    /// Transforms the differences of four adjacent 4x4 blocks, 16 by 4 samples, from their
    /// prediction.
    fn forward_row(self, blocks: Block<'_>, predicted: Block<'_>, out: &mut Row);

    /// Quantizes four blocks: writes each one's levels in zig-zag order and leaves their
    /// dequantized values in `row`.
    fn quantize_row(self, row: &mut Row, by: &Quantizer, intra: bool, levels: &mut [Levels; 4]);

    /// Applies the inverse transform to four adjacent blocks (8.5.12.2) and adds the result to
    /// their 16 by 4 samples, in rows of 16.
    fn add_inverse_row(self, row: &Row, samples: &mut [u8; 64]);

    /// Applies the inverse transform to a block (8.5.12.2) and adds the result to its 4x4 samples,
    /// in rows of `stride`.
    fn add_inverse(self, coefficients: &Coefficients, samples: &mut [u8], stride: usize);

    /// Filters 16 luma samples along an edge at `at`; `across` is the step across the edge and
    /// `along` the step along it: one of them is 1.
    fn deblock_luma(self, samples: &mut [u8], at: usize, across: usize, along: usize, edge: &Edge);

    /// Filters 8 samples along an edge of a chroma plane, as [`deblock_luma`](Self::deblock_luma)
    /// does.
    fn deblock_chroma(
        self,
        samples: &mut [u8],
        at: usize,
        across: usize,
        along: usize,
        edge: &Edge,
    );
}

/// The fastest kernel that this CPU supports, or the scalar one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    Scalar(Scalar),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl Choice {
    pub(super) fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = Avx2::detect() {
            return Self::Avx2(avx2);
        }
        Self::Scalar(Scalar)
    }
}

#[cfg(test)]
mod tests;
