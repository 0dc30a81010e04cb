//! The inner loops: differences, transforms, interpolation and deblocking.
//!
//! [`Scalar`] is the readable truth; every other kernel gives the same numbers. A value of a SIMD
//! kernel's type is the proof that this CPU has the instructions: it can only be had from
//! `detect()`.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;

use super::cavlc::Levels;
use super::plane::{Block, Halves, Plane};
use super::quantize::Quantizer;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
pub(super) use scalar::{Scalar, ZIGZAG};

/// The 16 coefficients or differences of a 4x4 block, row by row.
pub(super) type Coefficients = [i16; 16];

/// How the samples across an edge are filtered (8.7.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    pub(super) alpha: u8,
    pub(super) beta: u8,
    /// t_C0 for each quarter of the edge, or -1 where it is not filtered; `None` with bS 4.
    pub(super) limits: Option<[i8; 4]>,
}

/// The operations that a macroblock spends its time in.
pub(super) trait Kernel: Copy {
    /// The sum of absolute differences of two blocks, `width` 8 or 16.
    fn sad(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>) -> u32;

    /// Half the sum of the absolute values of the 4x4 Hadamard transforms of the differences of two
    /// blocks, `width` 4, 8 or 16, `height` a multiple of 4.
    fn satd(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>) -> u32;

    /// [`satd`](Self::satd) of a block from the mean of two others; `width` 8 or 16.
    fn satd_mean(self, size: [usize; 2], block: Block<'_>, means: [Block<'_>; 2]) -> u32;

    /// [`satd`](Self::satd) of a block of 4x4 against several predictions of it.
    fn satd_each(self, block: Block<'_>, predictions: &[[u8; 16]], out: &mut [u32]);

    /// Writes `(a + b + 1) >> 1`, sample by sample, in rows of 16; `width` 8 or 16.
    fn average(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>, out: &mut [u8]);

    /// Interpolates chroma by eighths (8.4.2.2.2) into rows of 8; `width` 4 or 8.
    fn chroma(self, size: [usize; 2], from: Block<'_>, eighths: [u16; 2], out: &mut [u8]);

    /// Interpolates all luma samples half way between others that vectors may reach.
    fn halves(self, luma: &Plane, halves: &mut Halves);

    /// The transform of the differences of a 4x4 block from its prediction (the inverse of 8.5.12).
    fn forward(self, block: Block<'_>, predicted: Block<'_>) -> Coefficients;

    /// Quantizes: gives the levels in zig-zag order (6.4.3) and leaves in `coefficients` what they
    /// stand for.
    fn quantize(self, coefficients: &mut Coefficients, by: &Quantizer, intra: bool) -> Levels;

    /// [`forward`](Self::forward), then [`quantize`](Self::quantize).
    #[inline]
    fn code(
        self,
        block: Block<'_>,
        predicted: Block<'_>,
        (by, intra): (&Quantizer, bool),
        coefficients: &mut Coefficients,
    ) -> Levels {
        *coefficients = self.forward(block, predicted);
        self.quantize(coefficients, by, intra)
    }

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
