//! The inner loops: differences, transforms, interpolation and deblocking.
//!
//! [`Scalar`] is the readable truth; every other kernel gives the same numbers. A value of a SIMD
//! kernel's type is the proof that this CPU has the instructions: it can only be had from
//! `detect()`.

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

/// The coefficients of four 4x4 blocks side by side: the first column of each, then the second of
/// each, and so on.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Row(pub(super) [i16; 64]);

impl Row {
    pub(super) const ZERO: Self = Self([0; 64]);

    /// Returns where the coefficient of a block in `row` and `column` of it lies.
    #[inline]
    pub(super) const fn at(block: usize, row: usize, column: usize) -> usize {
        column * 16 + block * 4 + row
    }

    /// Takes all from a block.
    pub(super) fn clear(&mut self, block: usize) {
        for column in 0..4 {
            self.0[Self::at(block, 0, column)..][..4].fill(0);
        }
    }
}

/// Filter of the samples across an edge (8.7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub(super) alpha: u8,
    pub(super) beta: u8,
    /// t_C0 for each quarter of the edge, or -1 where it is not filtered; `None` with bS 4.
    pub(super) limits: Option<[i8; 4]>,
}

/// The operations that a macroblock spends its time in.
pub(super) trait Kernel: Copy {
    /// Returns the sum of absolute differences of two blocks, `width` 8 or 16.
    fn sad(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>) -> u32;

    /// Returns [`sad`](Self::sad) of a block from the mean of two others.
    fn sad_mean(self, size: [usize; 2], block: Block<'_>, means: [Block<'_>; 2]) -> u32;

    /// Returns [`sad`](Self::sad) of a block from four others.
    fn sad_four(self, size: [usize; 2], block: Block<'_>, others: [Block<'_>; 4]) -> [u32; 4];

    /// Returns [`sad`](Self::sad) of a block from the means of four and four others.
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

    /// Returns [`satd`](Self::satd) of a block of 4x4 from each prediction that its border makes,
    /// whether or not the border is known.
    fn satd_modes(self, block: Block<'_>, border: &Border4) -> [u32; MODES4];

    /// Returns what a block's border becomes smoothed: from 0 on the weighted means of each sample
    /// and the two after it, from 16 on those of each and the one after it.
    fn smooth(self, line: &[u8; 32]) -> [u8; 32];

    /// Returns the bytes of `from` at 16 `places`, each below 32.
    fn pick(self, from: &[u8; 32], places: &[u8; 16]) -> [u8; 16];

    /// Writes `(a + b + 1) >> 1`, sample by sample, in rows of 16; `width` 8 or 16.
    fn average(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>, out: &mut [u8]);

    /// Copies a block, `width` 4, 8 or 16, into rows of `stride`.
    fn copy(self, size: [usize; 2], from: Block<'_>, to: &mut [u8], stride: usize);

    /// Interpolates chroma by eighths (8.4.2.2.2) into rows of 16; `width` 4 or 8.
    fn chroma(self, size: [usize; 2], from: Block<'_>, eighths: [u16; 2], out: &mut [u8]);

    /// Interpolates all luma samples half way between others that vectors may reach.
    fn halves(self, luma: &Plane, halves: &mut Halves);

    /// Transforms the differences of a 4x4 block from its prediction (the inverse of 8.5.12), and
    /// quantizes: gives the levels in zig-zag order (6.4.3) and in `coefficients` what they stand
    /// for. With the quantizer, whether the block is intra coded.
    fn code(
        self,
        block: Block<'_>,
        predicted: Block<'_>,
        by: (&Quantizer, bool),
        coefficients: &mut Coefficients,
    ) -> Levels;

    /// Returns the transforms of four blocks side by side: 16 by 4 samples.
    fn forward_row(self, blocks: Block<'_>, predicted: Block<'_>, out: &mut Row);

    /// Quantizes four blocks: gives each one's levels in zig-zag order and leaves in `row` what
    /// they stand for.
    fn quantize_row(self, row: &mut Row, by: &Quantizer, intra: bool, levels: &mut [Levels; 4]);

    /// Transforms four blocks back (8.5.12.2) and adds them to 16 by 4 samples, in rows of 16.
    fn add_inverse_row(self, row: &Row, samples: &mut [u8; 64]);

    /// Transforms back (8.5.12.2) and adds to the 4x4 samples from `at` on.
    fn add_inverse(self, coefficients: &Coefficients, samples: &mut [u8], stride: usize);

    /// Filters 16 luma samples along an edge at `at`; `across` is the step from one side to the
    /// other and `along` the one along it: one of them is 1.
    fn deblock_luma(self, samples: &mut [u8], at: usize, across: usize, along: usize, edge: &Edge);

    /// Filters 8 samples along an edge of a chroma plane.
    fn deblock_chroma(
        self,
        samples: &mut [u8],
        at: usize,
        across: usize,
        along: usize,
        edge: &Edge,
    );
}

/// The fastest kernel that this CPU runs, or the scalar one.
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
