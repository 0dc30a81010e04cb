//! A macroblock's transformed differences: made, quantized, and added back (8.5).

use super::cavlc::Levels;
use super::kernel::{Coefficients, Kernel, ZIGZAG};
use super::plane::Block;
use super::quantize::{QUANTIZERS, Quantizer, chroma_qp};

/// The samples of a macroblock: luma in rows of 16, chroma in rows of 8.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub(super) struct Samples {
    pub(super) luma: [u8; 256],
    pub(super) chroma: [[u8; 64]; 2],
}

impl Samples {
    pub(super) const ZERO: Self = Self { luma: [0; 256], chroma: [[0; 64]; 2] };

    pub(super) fn luma_block(&self, block: usize) -> Block<'_> {
        Block { samples: &self.luma[block_start(block)..], stride: 16 }
    }
}

/// Where a 4x4 block (by rows) begins in rows of 16.
pub(super) const fn block_start(block: usize) -> usize {
    block / 4 * 64 + block % 4 * 4
}

const fn chroma_start(block: usize) -> usize {
    block / 2 * 32 + block % 2 * 4
}

/// The levels of a macroblock, blocks by rows.
#[derive(Clone, Debug)]
pub(super) struct Residual {
    pub(super) luma: [Levels; 16],
    /// Intra16x16DCLevel
    pub(super) means: Levels,
    pub(super) chroma: [[Levels; 4]; 2],
    pub(super) chroma_means: [Levels; 2],
    /// CodedBlockPatternLuma: a bit for each quarter.
    pub(super) luma_pattern: u8,
    /// CodedBlockPatternChroma: 0 nothing, 1 the means alone, 2 all.
    pub(super) chroma_pattern: u8,
    /// What the luma levels stand for.
    coefficients: [Coefficients; 16],
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
            coefficients: [[0; 16]; 16],
        }
    }

    /// coded_block_pattern
    pub(super) fn pattern(&self) -> u8 {
        self.chroma_pattern << 4 | self.luma_pattern
    }

    /// Codes inter luma: `samples` holds the prediction and then what the decoder will have.
    pub(super) fn inter_luma(
        &mut self,
        kernel: impl Kernel,
        source: &Samples,
        samples: &mut Samples,
        qp: u8,
    ) {
        let by = &QUANTIZERS[usize::from(qp)];
        let mut scores = [0; 4];
        for (block, coefficients) in self.coefficients.iter_mut().enumerate() {
            let (source, predicted) = (source.luma_block(block), samples.luma_block(block));
            self.luma[block] = kernel.code(source, predicted, (by, false), coefficients);
            scores[quarter_of(block)] += score(&self.luma[block]);
        }
        // Lone small levels cost more than they mend.
        let worthless = scores.iter().sum::<u32>() < SCORE_MACROBLOCK;
        self.luma_pattern = 0;
        for (quarter, &score) in scores.iter().enumerate() {
            if !worthless && score >= SCORE_QUARTER {
                self.luma_pattern |= 1 << quarter;
            }
        }
        for (block, coefficients) in self.coefficients.iter().enumerate() {
            if self.luma_pattern >> quarter_of(block) & 1 == 0 {
                self.luma[block].mask = 0;
            } else if self.luma[block].mask != 0 {
                kernel.add_inverse(coefficients, &mut samples.luma[block_start(block)..], 16);
            }
        }
    }

    /// Codes the luma of an Intra_16x16 macroblock.
    pub(super) fn whole_luma(
        &mut self,
        kernel: impl Kernel,
        source: &Samples,
        samples: &mut Samples,
        qp: u8,
    ) {
        let by = &QUANTIZERS[usize::from(qp)];
        let mut coefficients = [[0; 16]; 16];
        let mut means = [0i32; 16];
        let mut any = false;
        for (block, coefficients) in coefficients.iter_mut().enumerate() {
            *coefficients = kernel.forward(source.luma_block(block), samples.luma_block(block));
            means[block] = i32::from(std::mem::take(&mut coefficients[0]));
            self.luma[block] = kernel.quantize(coefficients, by, true);
            any |= self.luma[block].mask != 0;
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
        for (block, coefficients) in coefficients.iter_mut().enumerate() {
            coefficients[0] = whole_mean(levels[block], by);
            if coefficients[0] != 0 || self.luma[block].mask != 0 {
                kernel.add_inverse(coefficients, &mut samples.luma[block_start(block)..], 16);
            }
        }
    }

    /// Codes both chroma planes at the luma quantizer `qp`.
    pub(super) fn chroma(
        &mut self,
        kernel: impl Kernel,
        source: &Samples,
        samples: &mut Samples,
        qp: u8,
        intra: bool,
    ) {
        let by = &QUANTIZERS[usize::from(chroma_qp(qp))];
        let mut all = [[[0; 16]; 4]; 2];
        let mut scores = 0;
        let mut means_any = false;
        for (plane, coefficients) in all.iter_mut().enumerate() {
            let (source, samples) = (&source.chroma[plane], &samples.chroma[plane]);
            let mut means = [0; 4];
            for (block, coefficients) in coefficients.iter_mut().enumerate() {
                let from = |plane| Block { samples: part(plane, chroma_start(block)), stride: 8 };
                *coefficients = kernel.forward(from(source), from(samples));
                means[block] = i32::from(std::mem::take(&mut coefficients[0]));
                self.chroma[plane][block] = kernel.quantize(coefficients, by, intra);
                scores += score(&self.chroma[plane][block]);
            }
            let levels = quantize_means(&mut self.chroma_means[plane], means, by, intra);
            for (coefficients, mean) in coefficients.iter_mut().zip(levels) {
                coefficients[0] = mean;
            }
            means_any |= self.chroma_means[plane].mask != 0;
        }
        let all_coded = scores >= if intra { 1 } else { SCORE_CHROMA };
        self.chroma_pattern = match (all_coded, means_any) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        };
        for (plane, coefficients) in all.iter_mut().enumerate() {
            for (block, coefficients) in coefficients.iter_mut().enumerate() {
                if !all_coded {
                    coefficients[1..].fill(0);
                    self.chroma[plane][block].mask = 0;
                }
                if coefficients[0] != 0 || self.chroma[plane][block].mask != 0 {
                    let samples = &mut samples.chroma[plane][chroma_start(block)..];
                    kernel.add_inverse(coefficients, samples, 8);
                }
            }
        }
    }
}

fn part(plane: &[u8; 64], start: usize) -> &[u8] {
    &plane[start..]
}

/// The quarter that a block (by rows) lies in.
const fn quarter_of(block: usize) -> usize {
    block / 8 * 2 + block % 4 / 2
}

/// How much a block's levels are worth: one that is greater than 1 always is, ones less the further
/// apart they are.
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
/// Below these what was quantized is dropped, as in the reference software (JM).
const SCORE_QUARTER: u32 = 4;
const SCORE_MACROBLOCK: u32 = 6;
const SCORE_CHROMA: u32 = 7;

/// The Hadamard transform of a 4x4 matrix, its own inverse but for a factor (8-328).
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

/// What a transformed level of Intra16x16DCLevel stands for (8.5.10).
fn whole_mean(level: i32, by: &Quantizer) -> i16 {
    let scaled = level * by.mean_scale * 16;
    (match by.shift {
        6.. => scaled << (by.shift - 6),
        shift => (scaled + (1 << (5 - shift))) >> (6 - shift),
    }) as i16
}

/// Transforms and quantizes a chroma plane's means; gives what they stand for (8.5.11).
fn quantize_means(
    levels: &mut Levels,
    means: [i32; 4],
    by: &Quantizer,
    intra: bool,
) -> Coefficients4 {
    let transform =
        |[a, b, c, d]: [i32; 4]| [a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d];
    *levels = Levels::default();
    let quantized = transform(means).map(|mean| by.mean_level(mean, intra));
    for (index, &level) in quantized.iter().enumerate() {
        levels.values[index] = level;
        levels.mask |= u16::from(level != 0) << index;
    }
    transform(quantized.map(i32::from))
        .map(|level| (((level * by.mean_scale * 16) << by.shift) >> 5) as i16)
}

type Coefficients4 = [i16; 4];
