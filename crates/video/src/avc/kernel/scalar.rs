//! The kernel for any CPU, and the reference for the others.

use std::ops::RangeInclusive;

use super::edge::Edge;
use super::operations::Kernel;
use super::row::{Coefficients, Row};
use crate::avc::border4::{Border4, MODES4};
use crate::avc::cavlc::{LEVEL_MAX, Levels};
use crate::avc::plane::{Block, Halves, MARGIN, Plane};
use crate::avc::quantize::Quantizer;

/// The scalar kernel, in plain loops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::avc) struct Scalar;

impl Kernel for Scalar {
    fn sad(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>) -> u32 {
        let row = |row: usize| {
            let (a, b) = (&a.samples[row * a.stride..][..width], &b.samples[row * b.stride..]);
            a.iter().zip(b).map(|(&a, &b)| u32::from(a.abs_diff(b))).sum::<u32>()
        };
        (0..height).map(row).sum()
    }

    fn sad_four(
        self,
        [width, height]: [usize; 2],
        block: Block<'_>,
        others: [Block<'_>; 4],
    ) -> [u32; 4] {
        others.map(|other| self.sad(width, height, block, other))
    }

    fn sad_mean_four(
        self,
        size: [usize; 2],
        block: Block<'_>,
        firsts: [Block<'_>; 4],
        seconds: [Block<'_>; 4],
    ) -> [u32; 4] {
        std::array::from_fn(|index| self.sad_mean(size, block, [firsts[index], seconds[index]]))
    }

    fn satd(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>) -> u32 {
        let mut sum = 0;
        for y in (0..height).step_by(4) {
            for x in (0..width).step_by(4) {
                sum += satd4(&differences(part(a, x, y), part(b, x, y)));
            }
        }
        sum
    }

    fn sad_mean(
        self,
        [width, height]: [usize; 2],
        block: Block<'_>,
        [a, b]: [Block<'_>; 2],
    ) -> u32 {
        let mut mean = [0; 256];
        self.average(width, height, a, b, &mut mean);
        self.sad(width, height, block, Block { samples: &mean, stride: 16 })
    }

    fn satd_modes(self, block: Block<'_>, border: &Border4) -> [u32; MODES4] {
        std::array::from_fn(|mode| {
            let prediction = border.predict(self, mode as u8);
            satd4(&differences(block, Block { samples: &prediction, stride: 4 }))
        })
    }

    fn smooth(self, line: &[u8; 32]) -> [u8; 32] {
        let wide = line.map(u16::from);
        std::array::from_fn(|index| {
            let at = index % 16;
            (match index {
                0..16 => (wide[at] + 2 * wide[at + 1] + wide[at + 2] + 2) >> 2,
                _ => (wide[at] + wide[at + 1] + 1) >> 1,
            }) as u8
        })
    }

    fn pick(self, from: &[u8; 32], places: &[u8; 16]) -> [u8; 16] {
        places.map(|place| from[usize::from(place & 31)])
    }

    fn average(self, width: usize, height: usize, a: Block<'_>, b: Block<'_>, out: &mut [u8]) {
        for (row, out) in out.chunks_mut(16).take(height).enumerate() {
            let (a, b) = (&a.samples[row * a.stride..], &b.samples[row * b.stride..]);
            for ((out, &a), &b) in out[..width].iter_mut().zip(a).zip(b) {
                *out = (u16::from(a) + u16::from(b)).div_ceil(2) as u8;
            }
        }
    }

    fn copy(self, [width, height]: [usize; 2], from: Block<'_>, to: &mut [u8], stride: usize) {
        for row in 0..height {
            let line = &from.samples[row * from.stride..][..width];
            to[row * stride..][..width].copy_from_slice(line);
        }
    }

    fn chroma(
        self,
        [width, height]: [usize; 2],
        from: Block<'_>,
        [x, y]: [u16; 2],
        out: &mut [u8],
    ) {
        for (row, out) in out.chunks_mut(16).take(height).enumerate() {
            let above = &from.samples[row * from.stride..][..=width];
            let below = &from.samples[(row + 1) * from.stride..][..=width];
            for (column, out) in out[..width].iter_mut().enumerate() {
                let [a, b, c, d] =
                    [above[column], above[column + 1], below[column], below[column + 1]]
                        .map(u16::from);
                let sum = (8 - x) * (8 - y) * a + x * (8 - y) * b + (8 - x) * y * c + x * y * d;
                *out = ((sum + 32) >> 6) as u8;
            }
        }
    }

    fn halves(self, luma: &Plane, halves: &mut Halves) {
        interpolate(luma, halves);
    }

    fn code(
        self,
        block: Block<'_>,
        predicted: Block<'_>,
        (by, intra): (&Quantizer, bool),
        coefficients: &mut Coefficients,
    ) -> Levels {
        *coefficients = forward(block, predicted);
        quantize(coefficients, by, intra)
    }

    fn forward_row(self, blocks: Block<'_>, predicted: Block<'_>, out: &mut Row) {
        for block in 0..4 {
            let coefficients = forward(part(blocks, 4 * block, 0), part(predicted, 4 * block, 0));
            scatter(&coefficients, out, block);
        }
    }

    fn quantize_row(self, row: &mut Row, by: &Quantizer, intra: bool, levels: &mut [Levels; 4]) {
        for (block, levels) in levels.iter_mut().enumerate() {
            let mut coefficients = gather(row, block);
            *levels = quantize(&mut coefficients, by, intra);
            scatter(&coefficients, row, block);
        }
    }

    fn add_inverse_row(self, row: &Row, samples: &mut [u8; 64]) {
        for block in 0..4 {
            self.add_inverse(&gather(row, block), &mut samples[4 * block..], 16);
        }
    }

    fn add_inverse(self, coefficients: &Coefficients, samples: &mut [u8], stride: usize) {
        let mut values = *coefficients;
        for row in 0..4 {
            inverse4(&mut values, row * 4, 1);
        }
        for column in 0..4 {
            inverse4(&mut values, column, 4);
        }
        for (row, values) in values.chunks_exact(4).enumerate() {
            for (sample, &value) in samples[row * stride..].iter_mut().zip(values) {
                *sample = (i16::from(*sample) + (value.wrapping_add(32) >> 6)).clamp(0, 255) as u8;
            }
        }
    }

    fn deblock_luma(self, samples: &mut [u8], at: usize, across: usize, along: usize, edge: &Edge) {
        for k in 0..16 {
            let limit = edge.limits.map(|limits| limits[k / 4]);
            if limit != Some(-1) {
                filter_luma(samples, at + k * along, across, edge, limit);
            }
        }
    }

    fn deblock_chroma(
        self,
        samples: &mut [u8],
        at: usize,
        across: usize,
        along: usize,
        edge: &Edge,
    ) {
        for k in 0..8 {
            let limit = edge.limits.map(|limits| limits[k / 2]);
            if limit != Some(-1) {
                filter_chroma(samples, at + k * along, across, edge, limit);
            }
        }
    }
}

/// The zig-zag scan of table 8-2: index of each coefficient in a block stored by rows.
pub(in crate::avc) const ZIGZAG: [usize; 16] =
    [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];

fn part(block: Block<'_>, x: usize, y: usize) -> Block<'_> {
    Block { samples: &block.samples[y * block.stride + x..], stride: block.stride }
}

fn differences(a: Block<'_>, b: Block<'_>) -> Coefficients {
    std::array::from_fn(|at| {
        let (row, column) = (at / 4, at % 4);
        i16::from(a.samples[row * a.stride + column])
            - i16::from(b.samples[row * b.stride + column])
    })
}

fn forward(block: Block<'_>, predicted: Block<'_>) -> Coefficients {
    let mut values = differences(block, predicted);
    for row in 0..4 {
        forward4(&mut values, row * 4, 1);
    }
    for column in 0..4 {
        forward4(&mut values, column, 4);
    }
    values
}

fn quantize(coefficients: &mut Coefficients, by: &Quantizer, intra: bool) -> Levels {
    let bias = if intra { &by.bias_intra } else { &by.bias_inter };
    let mut levels = Levels::default();
    for (index, &at) in ZIGZAG.iter().enumerate() {
        let value = coefficients[at];
        let sum = u32::from(value.unsigned_abs()) + u32::from(bias[at]);
        let magnitude = (sum * u32::from(by.multiplier[at])) >> 16;
        let magnitude = (magnitude as i16).min(LEVEL_MAX);
        let level = if value < 0 { -magnitude } else { magnitude };
        levels.values[index] = level;
        levels.mask |= u16::from(level != 0) << index;
        coefficients[at] = level.wrapping_mul(by.scale[at]);
    }
    levels
}

fn gather(row: &Row, block: usize) -> Coefficients {
    std::array::from_fn(|at| row.0[Row::at(block, at / 4, at % 4)])
}

fn scatter(coefficients: &Coefficients, row: &mut Row, block: usize) {
    for (at, &value) in coefficients.iter().enumerate() {
        row.0[Row::at(block, at / 4, at % 4)] = value;
    }
}

fn satd4(differences: &Coefficients) -> u32 {
    let mut values = *differences;
    let mut butterfly = |start: usize, step: usize| {
        let [a, b, c, d] = std::array::from_fn(|i| values[start + i * step]);
        let (p, q, r, s) = (a + b, a - b, c + d, c - d);
        for (i, value) in [p + r, p - r, q + s, q - s].into_iter().enumerate() {
            values[start + i * step] = value;
        }
    };
    for row in 0..4 {
        butterfly(row * 4, 1);
    }
    for column in 0..4 {
        butterfly(column, 4);
    }
    values.iter().map(|value| u32::from(value.unsigned_abs())).sum::<u32>() / 2
}

fn forward4(values: &mut Coefficients, start: usize, step: usize) {
    let [a, b, c, d] = std::array::from_fn(|i| values[start + i * step]);
    let (p, q, r, s) = (a + d, b + c, b - c, a - d);
    values[start] = p + q;
    values[start + step] = 2 * s + r;
    values[start + 2 * step] = p - q;
    values[start + 3 * step] = s - 2 * r;
}

/// Applies 8.5.12.2 to one row or column; values outside 16 bits wrap, which never happens in a
/// valid stream.
fn inverse4(values: &mut Coefficients, start: usize, step: usize) {
    let [a, b, c, d]: [i16; 4] = std::array::from_fn(|i| values[start + i * step]);
    let (e, f) = (a.wrapping_add(c), a.wrapping_sub(c));
    let (g, h) = ((b >> 1).wrapping_sub(d), b.wrapping_add(d >> 1));
    values[start] = e.wrapping_add(h);
    values[start + step] = f.wrapping_add(g);
    values[start + 2 * step] = f.wrapping_sub(g);
    values[start + 3 * step] = e.wrapping_sub(h);
}

/// Distance in samples outside a picture up to which half samples are computed: six taps need three
/// more on each side.
pub(in crate::avc) const REACH: usize = MARGIN - 4;

/// Returns the range of half-sample rows that differ: beyond them, the six taps read only the first
/// or only the last row of the picture.
pub(in crate::avc) fn varied_rows(luma: &Plane) -> RangeInclusive<i32> {
    -3..=luma.height() as i32 + 1
}

/// Fills the half-sample rows outside [`varied_rows`] with copies of the nearest one.
pub(in crate::avc) fn repeat_rows(luma: &Plane, halves: &mut Halves) {
    let reach = REACH as i32;
    let (first, last) = varied_rows(luma).into_inner();
    for plane in [&mut halves.b, &mut halves.h, &mut halves.j] {
        let copy = |plane: &mut Plane, from: i32, to: i32| {
            let (from, to) = (plane.at(-reach, from), plane.at(-reach, to));
            let count = luma.width() + 2 * REACH;
            plane.samples_mut().copy_within(from..from + count, to);
        };
        (-reach..first).for_each(|y| copy(plane, first, y));
        (last + 1..luma.height() as i32 + reach).for_each(|y| copy(plane, last, y));
    }
}

/// Computes the half-sample planes (8-241 to 8-247).
fn interpolate(luma: &Plane, halves: &mut Halves) {
    let (stride, reach) = (luma.stride(), REACH as i32);
    let count = luma.width() + 2 * REACH;
    let mut sums = [0i16; SUMS];
    for y in varied_rows(luma) {
        let at = luma.at(-reach, y);
        let samples = luma.samples();
        // In pieces, so that the sums fit in a buffer of fixed size.
        for start in (0..count).step_by(SUMS - 5) {
            let piece = (count - start).min(SUMS - 5);
            let first = at + start;
            let rows: [&[u8]; 6] = std::array::from_fn(|tap| {
                &samples[first + tap * stride - 2 * stride - 2..][..piece + 5]
            });
            for (i, sum) in sums[..piece + 5].iter_mut().enumerate() {
                *sum = taps(rows.map(|row| i16::from(row[i])));
            }
            let level = rows[2];
            let b = &mut halves.b.samples_mut()[first..first + piece];
            for (i, out) in b.iter_mut().enumerate() {
                *out = clip((taps(std::array::from_fn(|tap| i16::from(level[i + tap]))) + 16) >> 5);
            }
            let h = &mut halves.h.samples_mut()[first..first + piece];
            for (out, &sum) in h.iter_mut().zip(&sums[2..]) {
                *out = clip((sum + 16) >> 5);
            }
            let j = &mut halves.j.samples_mut()[first..first + piece];
            for (i, out) in j.iter_mut().enumerate() {
                let [e, f, g, h, i, j]: [i32; 6] =
                    std::array::from_fn(|tap| i32::from(sums[i + tap]));
                let sum = e - 5 * f + 20 * g + 20 * h - 5 * i + j;
                *out = ((sum + 512) >> 10).clamp(0, 255) as u8;
            }
        }
    }
    repeat_rows(luma, halves);
}

const SUMS: usize = 512 + 5;

fn taps([e, f, g, h, i, j]: [i16; 6]) -> i16 {
    e - 5 * f + 20 * g + 20 * h - 5 * i + j
}

fn clip(value: i16) -> u8 {
    value.clamp(0, 255) as u8
}

/// Filters one line of samples across a luma edge (8.7.2.3 with a limit, 8.7.2.4 without).
fn filter_luma(samples: &mut [u8], at: usize, step: usize, edge: &Edge, limit: Option<i8>) {
    let [p3, p2, p1, p0, q0, q1, q2, q3] =
        std::array::from_fn(|i| i32::from(samples[at + i * step - 4 * step]));
    let (alpha, beta) = (i32::from(edge.alpha), i32::from(edge.beta));
    let even = |a: i32, b: i32, most: i32| (a - b).abs() < most;
    if !(even(p0, q0, alpha) && even(p1, p0, beta) && even(q1, q0, beta)) {
        return;
    }
    let (smooth_p, smooth_q) = (even(p2, p0, beta), even(q2, q0, beta));
    let mut put = |offset: usize, value: i32| samples[at + offset * step - 4 * step] = value as u8;
    let Some(limit) = limit else {
        let flat = (p0 - q0).abs() < (alpha >> 2) + 2;
        if flat && smooth_p {
            put(3, (p2 + 2 * p1 + 2 * p0 + 2 * q0 + q1 + 4) >> 3);
            put(2, (p2 + p1 + p0 + q0 + 2) >> 2);
            put(1, (2 * p3 + 3 * p2 + p1 + p0 + q0 + 4) >> 3);
        } else {
            put(3, (2 * p1 + p0 + q1 + 2) >> 2);
        }
        if flat && smooth_q {
            put(4, (q2 + 2 * q1 + 2 * q0 + 2 * p0 + p1 + 4) >> 3);
            put(5, (q2 + q1 + q0 + p0 + 2) >> 2);
            put(6, (2 * q3 + 3 * q2 + q1 + q0 + p0 + 4) >> 3);
        } else {
            put(4, (2 * q1 + q0 + p1 + 2) >> 2);
        }
        return;
    };
    let limit = i32::from(limit);
    let most = limit + i32::from(smooth_p) + i32::from(smooth_q);
    let delta = ((((q0 - p0) << 2) + (p1 - q1) + 4) >> 3).clamp(-most, most);
    put(3, (p0 + delta).clamp(0, 255));
    put(4, (q0 - delta).clamp(0, 255));
    let middle = (p0 + q0 + 1) >> 1;
    if smooth_p {
        put(2, p1 + ((p2 + middle - 2 * p1) >> 1).clamp(-limit, limit));
    }
    if smooth_q {
        put(5, q1 + ((q2 + middle - 2 * q1) >> 1).clamp(-limit, limit));
    }
}

/// Filters one line of samples across a chroma edge (8.7.2.3 with a limit, 8.7.2.4 without).
fn filter_chroma(samples: &mut [u8], at: usize, step: usize, edge: &Edge, limit: Option<i8>) {
    let [p1, p0, q0, q1] = std::array::from_fn(|i| i32::from(samples[at + i * step - 2 * step]));
    let (alpha, beta) = (i32::from(edge.alpha), i32::from(edge.beta));
    if (p0 - q0).abs() >= alpha || (p1 - p0).abs() >= beta || (q1 - q0).abs() >= beta {
        return;
    }
    let (p, q) = match limit {
        None => ((2 * p1 + p0 + q1 + 2) >> 2, (2 * q1 + q0 + p1 + 2) >> 2),
        Some(limit) => {
            let most = i32::from(limit) + 1;
            let delta = ((((q0 - p0) << 2) + (p1 - q1) + 4) >> 3).clamp(-most, most);
            ((p0 + delta).clamp(0, 255), (q0 - delta).clamp(0, 255))
        }
    };
    samples[at - step] = p as u8;
    samples[at] = q as u8;
}
