//! The kernel for CPUs with AVX2: 16 samples of 16 bits at a time.
#![allow(unsafe_code)]

mod edges;
mod halves;
mod pixels;
mod transform;

use super::{Coefficients, Edge, Kernel, Row, Scalar};
use crate::avc::border4::{Border4, MODES4};
use crate::avc::cavlc::Levels;
use crate::avc::plane::{Block, Halves, Plane};
use crate::avc::quantize::Quantizer;

/// Kernel that works on 256-bit vectors. A value proves that the CPU has AVX2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::avc) struct Avx2(());

impl Avx2 {
    /// Returns the kernel if this CPU (and the operating system) has AVX2; `None` otherwise.
    pub(in crate::avc) fn detect() -> Option<Self> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

/// Checks that a block of `width` by `height` lies within its samples, and has an even number of
/// rows.
///
/// # Panics
/// If not.
#[inline]
fn check(block: Block<'_>, width: usize, height: usize) {
    // Rows are processed in pairs.
    assert!(height.is_multiple_of(2), "a row is left over");
    assert!(block.samples.len() >= (height - 1) * block.stride + width, "a block is cut");
}

/// Checks that `count` lines across an edge lie within the samples, with `before` samples of each
/// on one side of it and `behind` on the other.
///
/// # Panics
/// If not.
#[inline]
fn check_edge(
    samples: &[u8],
    at: usize,
    [across, along]: [usize; 2],
    [before, behind, count]: [usize; 3],
) {
    assert!(across == 1 || along == 1, "an edge lies along rows or columns");
    assert!(at >= before * across, "an edge is cut");
    let last = at + (behind - 1) * across + (count - 1) * along;
    assert!(last < samples.len(), "an edge is cut");
}

impl Kernel for Avx2 {
    #[inline]
    fn sad(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>) -> u32 {
        check(a, width, height);
        check(b, width, height);
        // SAFETY: `self` proves the CPU features; the blocks have been checked.
        unsafe {
            match width {
                16 => pixels::sad16(height, a, b),
                8 => pixels::sad8(height, a, b),
                _ => Scalar.sad(width, height, a, b),
            }
        }
    }

    #[inline]
    fn sad_four(
        self,
        [width, height]: [usize; 2],
        block: Block<'_>,
        others: [Block<'_>; 4],
    ) -> [u32; 4] {
        check(block, width, height);
        for other in &others {
            check(*other, width, height);
        }
        // SAFETY: `self` proves the CPU features; the blocks have been checked.
        unsafe {
            match width {
                16 => pixels::sad_four16(height, block, &others),
                8 => pixels::sad_four8(height, block, &others),
                _ => Scalar.sad_four([width, height], block, others),
            }
        }
    }

    #[inline]
    fn sad_mean_four(
        self,
        [width, height]: [usize; 2],
        block: Block<'_>,
        firsts: [Block<'_>; 4],
        seconds: [Block<'_>; 4],
    ) -> [u32; 4] {
        check(block, width, height);
        for (first, second) in firsts.iter().zip(&seconds) {
            check(*first, width, height);
            check(*second, width, height);
        }
        // SAFETY: `self` proves the CPU features; the blocks have been checked.
        unsafe {
            match width {
                16 => pixels::sad_mean_four16(height, block, &firsts, &seconds),
                8 => pixels::sad_mean_four8(height, block, &firsts, &seconds),
                _ => Scalar.sad_mean_four([width, height], block, firsts, seconds),
            }
        }
    }

    #[inline]
    fn satd(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>) -> u32 {
        check(a, width, height);
        check(b, width, height);
        // SAFETY: `self` proves the CPU features; the blocks have been checked.
        unsafe {
            match (width, height % 8) {
                (16, 0) => pixels::satd16(height, a, b),
                (8, 0) => pixels::satd8(height, a, b),
                _ => Scalar.satd(width, height, a, b),
            }
        }
    }

    #[inline]
    fn sad_mean(self, size: [usize; 2], block: Block<'_>, means: [Block<'_>; 2]) -> u32 {
        let [width, height] = size;
        for block in [block, means[0], means[1]] {
            check(block, width, height);
        }
        // SAFETY: `self` proves the CPU features; the blocks have been checked.
        unsafe {
            match width {
                16 => pixels::sad_mean16(height, block, means),
                8 => pixels::sad_mean8(height, block, means),
                _ => Scalar.sad_mean(size, block, means),
            }
        }
    }

    #[inline]
    fn satd_modes(self, block: Block<'_>, border: &Border4) -> [u32; MODES4] {
        check(block, 4, 4);
        // SAFETY: `self` proves the CPU features; the block has been checked.
        unsafe { pixels::satd_modes(block, border) }
    }

    #[inline]
    fn smooth(self, line: &[u8; 32]) -> [u8; 32] {
        // SAFETY: `self` proves the CPU features.
        unsafe { pixels::smooth(line) }
    }

    #[inline]
    fn pick(self, from: &[u8; 32], places: &[u8; 16]) -> [u8; 16] {
        // SAFETY: `self` proves the CPU features.
        unsafe { pixels::pick(from, places) }
    }

    #[inline]
    fn average(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>, out: &mut [u8]) {
        check(a, width, height);
        check(b, width, height);
        assert!(out.len() >= (height - 1) * 16 + width, "a prediction is cut");
        // SAFETY: `self` proves the CPU features; the blocks have been checked.
        unsafe {
            match width {
                16 => pixels::average16(height, a, b, out),
                8 => pixels::average8(height, a, b, out),
                _ => Scalar.average(width, height, a, b, out),
            }
        }
    }

    #[inline]
    fn copy(self, [width, height]: [usize; 2], from: Block<'_>, to: &mut [u8], stride: usize) {
        check(from, width, height);
        assert!(to.len() >= (height - 1) * stride + width, "a block is cut");
        // SAFETY: `self` proves the CPU features; the blocks have been checked.
        unsafe {
            match width {
                16 => pixels::copy16(height, from, to, stride),
                8 => pixels::copy8(height, from, to, stride),
                4 => pixels::copy4(height, from, to, stride),
                _ => Scalar.copy([width, height], from, to, stride),
            }
        }
    }

    #[inline]
    fn chroma(self, size: [usize; 2], from: Block<'_>, eighths: [u16; 2], out: &mut [u8]) {
        let [width, height] = size;
        assert!(out.len() >= (height - 1) * 16 + width, "a prediction is cut");
        // Complete vectors are read; the last rows of a plane's margin may have fewer samples.
        if from.samples.len() < height * from.stride + 16 || (width != 8 && width != 4) {
            return Scalar.chroma(size, from, eighths, out);
        }
        // SAFETY: `self` proves the CPU features; the block has been checked.
        unsafe { pixels::chroma(size, from, eighths, out) }
    }

    fn halves(self, luma: &Plane, halves: &mut Halves) {
        // SAFETY: `self` proves the CPU features.
        unsafe { halves::interpolate(luma, halves) }
    }

    #[inline]
    fn code(
        self,
        block: Block<'_>,
        predicted: Block<'_>,
        (by, intra): (&Quantizer, bool),
        coefficients: &mut Coefficients,
    ) -> Levels {
        check(block, 4, 4);
        check(predicted, 4, 4);
        // SAFETY: `self` proves the CPU features; the blocks have been checked.
        unsafe { transform::code(block, predicted, (by, intra), coefficients) }
    }

    #[inline]
    fn forward_row(self, blocks: Block<'_>, predicted: Block<'_>, out: &mut Row) {
        check(blocks, 16, 4);
        check(predicted, 16, 4);
        // SAFETY: `self` proves the CPU features; the blocks have been checked.
        unsafe { transform::forward_row(blocks, predicted, out) }
    }

    #[inline]
    fn quantize_row(self, row: &mut Row, by: &Quantizer, intra: bool, levels: &mut [Levels; 4]) {
        // SAFETY: `self` proves the CPU features.
        unsafe { transform::quantize_row(row, by, intra, levels) }
    }

    #[inline]
    fn add_inverse_row(self, row: &Row, samples: &mut [u8; 64]) {
        // SAFETY: `self` proves the CPU features.
        unsafe { transform::add_inverse_row(row, samples) }
    }

    #[inline]
    fn add_inverse(self, coefficients: &Coefficients, samples: &mut [u8], stride: usize) {
        assert!(samples.len() >= 3 * stride + 4, "a block is cut");
        // SAFETY: `self` proves the CPU features; the block has been checked.
        unsafe { transform::add_inverse(coefficients, samples, stride) }
    }

    #[inline]
    fn deblock_luma(self, samples: &mut [u8], at: usize, across: usize, along: usize, edge: &Edge) {
        check_edge(samples, at, [across, along], [4, 4, 16]);
        // SAFETY: `self` proves the CPU features; the edge has been checked.
        unsafe {
            if across == 1 {
                edges::luma_vertical(samples, at, along, edge);
            } else {
                edges::luma_horizontal(samples, at, across, edge);
            }
        }
    }

    #[inline]
    fn deblock_chroma(
        self,
        samples: &mut [u8],
        at: usize,
        across: usize,
        along: usize,
        edge: &Edge,
    ) {
        check_edge(samples, at, [across, along], [2, 2, 8]);
        // SAFETY: `self` proves the CPU features; the edge has been checked.
        unsafe {
            if across == 1 {
                edges::chroma_vertical(samples, at, along, edge);
            } else {
                edges::chroma_horizontal(samples, at, across, edge);
            }
        }
    }
}
