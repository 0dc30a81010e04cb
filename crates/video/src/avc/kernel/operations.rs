use super::edge::Edge;
use super::row::{Coefficients, Row};
use crate::avc::border4::{Border4, MODES4};
use crate::avc::cavlc::Levels;
use crate::avc::plane::{Block, Halves, Plane};
use crate::avc::quantize::Quantizer;

/// The operations in which the encoder spends its time.
pub(in crate::avc) trait Kernel: Copy {
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
    /// prediction into the coefficients `out`.
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
