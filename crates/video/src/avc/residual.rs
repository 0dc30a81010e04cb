//! A macroblock's transformed differences: computed, quantized, and added back (8.5).

use super::cavlc::Levels;
use super::kernel::{Kernel, Row, ZIGZAG};
use super::plane::Block;
use super::quantize::{QUANTIZERS, Quantizer, chroma_qp};

/// The samples of a macroblock in rows of 16; of chroma, 8 of Cb and then 8 of Cr.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(super) struct Samples {
    pub(super) luma: [u8; 256],
    pub(super) chroma: [u8; 128],
}

impl Samples {
    pub(super) const ZERO: Self = Self { luma: [0; 256], chroma: [0; 128] };

    pub(super) fn luma_block(&self, block: usize) -> Block<'_> {
        Block { samples: &self.luma[block_start(block)..], stride: 16 }
    }

    pub(super) fn chroma_block(&self) -> Block<'_> {
        Block { samples: &self.chroma, stride: 16 }
    }
}

/// Returns row `row` of 4x4 blocks of a macroblock: 16 by 4 samples.
fn rows(samples: &[u8], row: usize) -> Block<'_> {
    Block { samples: &samples[row * 64..], stride: 16 }
}

/// Adds the inverse transforms of dequantized coefficients to rows of samples.
fn add_rows(kernel: impl Kernel, coefficients: &[Row], samples: &mut [u8]) {
    for (row, samples) in coefficients.iter().zip(samples.as_chunks_mut::<64>().0) {
        kernel.add_inverse_row(row, samples);
    }
}

/// Returns the index of the first sample of a 4x4 block, numbered by rows, in rows of 16.
pub(super) const fn block_start(block: usize) -> usize {
    block / 4 * 64 + block % 4 * 4
}

/// The levels of a macroblock, blocks by rows.
#[derive(Clone, Debug)]
pub(super) struct Residual {
    pub(super) luma: [Levels; 16],
    /// DC levels of an Intra_16x16 macroblock: Intra16x16DCLevel.
    pub(super) means: Levels,
    pub(super) chroma: [[Levels; 4]; 2],
    pub(super) chroma_means: [Levels; 2],
    /// CodedBlockPatternLuma: one bit per quarter.
    pub(super) luma_pattern: u8,
    /// CodedBlockPatternChroma: 0 nothing, 1 only the DC levels, 2 all.
    pub(super) chroma_pattern: u8,
}

impl Residual {
    pub(super) fn new() -> Self {
        let none = Levels::default();
        Self {
            luma: [none; 16],
            means: none,
            chroma: [[none; 4]; 2],
            chroma_means: [none; 2],
            luma_pattern: 0,
            chroma_pattern: 0,
        }
    }

    /// Returns coded_block_pattern.
    pub(super) fn pattern(&self) -> u8 {
        self.chroma_pattern << 4 | self.luma_pattern
    }

    /// Transforms and quantizes the luma of an inter macroblock; drops the levels of each quarter
    /// in which no block is worth its bits. `samples` holds the prediction on entry and the
    /// reconstruction on return.
    pub(super) fn inter_luma(
        &mut self,
        kernel: impl Kernel,
        source: &Samples,
        samples: &mut Samples,
        qp: u8,
    ) {
        let by = &QUANTIZERS[usize::from(qp)];
        self.luma_pattern = 0;
        let mut coefficients = [Row::ZERO; 4];
        for (row, coefficients) in coefficients.iter_mut().enumerate() {
            kernel.forward_row(rows(&source.luma, row), rows(&samples.luma, row), coefficients);
            let levels = &mut self.luma.as_chunks_mut::<4>().0[row];
            kernel.quantize_row(coefficients, by, false, levels);
            for (block, levels) in levels.iter().enumerate() {
                // A single small level at a high frequency costs more than it improves; the sum
                // decides on the others.
                if score(levels) >= SCORE_LUMA {
                    self.luma_pattern |= 1 << (row / 2 * 2 + block / 2);
                }
            }
        }
        if self.luma_pattern == 0 {
            return;
        }
        for (row, coefficients) in coefficients.iter_mut().enumerate() {
            for block in 0..4 {
                if self.luma_pattern >> (row / 2 * 2 + block / 2) & 1 == 0 {
                    coefficients.clear(block);
                }
            }
        }
        add_rows(kernel, &coefficients, &mut samples.luma);
    }

    /// Transforms and quantizes the luma of an Intra_16x16 macroblock. `samples` holds the
    /// prediction on entry and the reconstruction on return.
    pub(super) fn whole_luma(
        &mut self,
        kernel: impl Kernel,
        source: &Samples,
        samples: &mut Samples,
        qp: u8,
    ) {
        let by = &QUANTIZERS[usize::from(qp)];
        let mut coefficients = [Row::ZERO; 4];
        let mut means = [0i32; 16];
        let mut any = false;
        for (row, coefficients) in coefficients.iter_mut().enumerate() {
            kernel.forward_row(rows(&source.luma, row), rows(&samples.luma, row), coefficients);
            for (block, mean) in means[row * 4..][..4].iter_mut().enumerate() {
                *mean = i32::from(std::mem::take(&mut coefficients.0[Row::at(block, 0, 0)]));
            }
            let levels = &mut self.luma.as_chunks_mut::<4>().0[row];
            kernel.quantize_row(coefficients, by, true, levels);
            any |= levels.iter().any(|levels| levels.mask != 0);
        }
        self.luma_pattern = if any { 15 } else { 0 };
        hadamard16(&mut means);
        let mut levels = [0i32; 16];
        self.means = Levels::default();
        for (index, &at) in ZIGZAG.iter().enumerate() {
            let level = by.mean_level((means[at] + 1) >> 1, true);
            self.means.values[index] = level;
            self.means.mask |= u16::from(level != 0) << index;
            levels[at] = i32::from(level);
        }
        hadamard16(&mut levels);
        for (block, &level) in levels.iter().enumerate() {
            coefficients[block / 4].0[Row::at(block % 4, 0, 0)] = whole_mean(level, by);
        }
        add_rows(kernel, &coefficients, &mut samples.luma);
    }

    /// Transforms and quantizes both chroma planes; `qp` is the luma quantizer. Coefficients other
    /// than the means are dropped if they are not worth their bits. `samples` holds the prediction
    /// on entry and the reconstruction on return.
    pub(super) fn chroma(
        &mut self,
        kernel: impl Kernel,
        source: &Samples,
        samples: &mut Samples,
        qp: u8,
        intra: bool,
    ) {
        let by = &QUANTIZERS[usize::from(chroma_qp(qp))];
        let mut coefficients = [Row::ZERO; 2];
        let mut means = [[0; 4]; 2];
        let mut scores = 0;
        for (row, coefficients) in coefficients.iter_mut().enumerate() {
            kernel.forward_row(rows(&source.chroma, row), rows(&samples.chroma, row), coefficients);
            for block in 0..4 {
                let mean = std::mem::take(&mut coefficients.0[Row::at(block, 0, 0)]);
                means[block / 2][row * 2 + block % 2] = i32::from(mean);
            }
            let mut levels = [Levels::default(); 4];
            kernel.quantize_row(coefficients, by, intra, &mut levels);
            for (block, levels) in levels.into_iter().enumerate() {
                scores += score(&levels);
                self.chroma[block / 2][row * 2 + block % 2] = levels;
            }
        }
        let all_coded = scores >= if intra { 1 } else { SCORE_CHROMA };
        if !all_coded {
            coefficients = [Row::ZERO; 2];
        }
        let mut means_any = false;
        for (plane, means) in means.into_iter().enumerate() {
            let stood_for = quantize_means(&mut self.chroma_means[plane], means, by, intra);
            means_any |= self.chroma_means[plane].mask != 0;
            for (block, mean) in stood_for.into_iter().enumerate() {
                coefficients[block / 2].0[Row::at(plane * 2 + block % 2, 0, 0)] = mean;
            }
        }
        self.chroma_pattern = match (all_coded, means_any) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => return self.chroma_pattern = 0,
        };
        add_rows(kernel, &coefficients, &mut samples.chroma);
    }
}

/// Returns how much a block's levels are worth coding: [`SCORE_HIGHEST`] if one has a magnitude
/// above 1, else the sum of a worth from 0 to 3 of each, less after more zeros before it.
fn score(levels: &Levels) -> u32 {
    const WORTH: [u8; 16] = [3, 2, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut mask = levels.mask;
    let (mut sum, mut next) = (0, 0);
    while mask != 0 {
        let at = mask.trailing_zeros();
        if levels.values[at as usize].unsigned_abs() > 1 {
            return SCORE_HIGHEST;
        }
        sum += u32::from(WORTH[(at - next) as usize]);
        next = at + 1;
        mask &= mask - 1;
    }
    sum
}

const SCORE_HIGHEST: u32 = 9;
/// Score of a block below which its levels alone do not justify coding a quarter of luma.
const SCORE_LUMA: u32 = 2;
/// Sum of the scores below which an inter macroblock's chroma AC levels are dropped, as in the
/// reference software (JM).
const SCORE_CHROMA: u32 = 7;

/// Applies the 4x4 Hadamard transform (8-328), which is its own inverse up to a factor.
fn hadamard16(values: &mut [i32; 16]) {
    let mut butterfly = |start: usize, step: usize| {
        let [a, b, c, d] = std::array::from_fn(|i| values[start + i * step]);
        let (p, q, r, s) = (a + b, a - b, c + d, c - d);
        for (i, value) in [p + r, p - r, q - s, q + s].into_iter().enumerate() {
            values[start + i * step] = value;
        }
    };
    for row in 0..4 {
        butterfly(row * 4, 1);
    }
    for column in 0..4 {
        butterfly(column, 4);
    }
}

/// Returns the dequantized DC coefficient from a transformed level of Intra16x16DCLevel (8.5.10).
fn whole_mean(level: i32, by: &Quantizer) -> i16 {
    let scaled = level * by.mean_scale * 16;
    (match by.shift {
        6.. => scaled << (by.shift - 6),
        shift => (scaled + (1 << (5 - shift))) >> (6 - shift),
    }) as i16
}

/// Transforms and quantizes the DC values of a chroma plane's four blocks; returns their
/// dequantized values (8.5.11).
fn quantize_means(levels: &mut Levels, means: [i32; 4], by: &Quantizer, intra: bool) -> [i16; 4] {
    let mut quantized = hadamard4(means);
    levels.mask = 0;
    let greatest = quantized.map(i32::abs).into_iter().fold(0, i32::max);
    if by.mean_level(greatest, intra) == 0 {
        return [0; 4];
    }
    for (index, value) in quantized.iter_mut().enumerate() {
        let level = by.mean_level(*value, intra);
        levels.values[index] = level;
        levels.mask |= u16::from(level != 0) << index;
        *value = i32::from(level);
    }
    hadamard4(quantized).map(|level| (((level * by.mean_scale * 16) << by.shift) >> 5) as i16)
}

/// Returns the Hadamard transform of a 2x2 matrix (8-329).
fn hadamard4([a, b, c, d]: [i32; 4]) -> [i32; 4] {
    [a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d]
}
