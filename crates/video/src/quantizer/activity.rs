//! Estimate of an intra slice's size from the pixels alone.

use crate::Picture;

/// Counts of the transform coefficients that remain nonzero at each quantizer, if the strip is
/// coded without prediction from another picture.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// Number of coefficients by the highest quantizer at which they remain nonzero; index 0 is
    /// always zero.
    counts: [f64; 52],
    macroblocks: f64,
}

impl Activity {
    /// Measures a strip's luma, by every other row of 4x4 blocks.
    pub(crate) fn of(picture: &Picture) -> Self {
        let width = picture.width();
        let luma = picture.luma();
        let mut counts = [0u32; 52];
        for top in (4..picture.height()).step_by(8) {
            for left in (4..width).step_by(4) {
                let block = residual(luma, width, top, left);
                for coefficient in hadamard(block) {
                    let magnitude = coefficient.unsigned_abs() as usize;
                    counts[usize::from(HIGHEST_QP[magnitude.min(HIGHEST_QP.len() - 1)])] += 1;
                }
            }
        }
        // Index 0 also counts coefficients that no quantizer keeps.
        counts[0] = 0;
        Self {
            counts: counts.map(|count| f64::from(count) * 2.0),
            macroblocks: (width / 16 * (picture.height() / 16)) as f64,
        }
    }

    /// Returns the approximate bytes of an intra slice at `qp`; the caller scales them by the sizes
    /// that slices had.
    pub(super) fn bytes(&self, qp: i32) -> f64 {
        let bits: f64 = self
            .counts
            .iter()
            .zip(0..)
            .filter(|&(_, highest)| highest >= qp)
            .map(|(count, highest)| count * (BITS_KEPT + f64::from(highest - qp) / 6.0))
            .sum();
        (bits + self.macroblocks * BITS_A_MACROBLOCK) / 8.0
    }
}

fn residual(luma: &[u8], width: usize, top: usize, left: usize) -> [i32; 16] {
    let at = |row: usize, column: usize| i32::from(luma[(top + row) * width + left + column]);
    let above: [i32; 4] = std::array::from_fn(|c| i32::from(luma[(top - 1) * width + left + c]));
    let beside: [i32; 4] = std::array::from_fn(|r| i32::from(luma[(top + r) * width + left - 1]));
    let mean = (above.iter().sum::<i32>() + beside.iter().sum::<i32>() + 4) >> 3;
    let mut best = [0; 16];
    let mut least = i32::MAX;
    let mut consider = |prediction: &dyn Fn(usize, usize) -> i32| {
        let candidate: [i32; 16] =
            std::array::from_fn(|i| at(i / 4, i % 4) - prediction(i / 4, i % 4));
        let sum = candidate.iter().map(|v| v.abs()).sum();
        if sum < least {
            least = sum;
            best = candidate;
        }
    };
    consider(&|_, _| mean);
    consider(&|_, column| above[column]);
    consider(&|row, _| beside[row]);
    best
}

fn hadamard(mut block: [i32; 16]) -> [i32; 16] {
    let butterfly = |block: &mut [i32; 16], start: usize, step: usize| {
        let [a, b, c, d] = std::array::from_fn(|i| block[start + i * step]);
        let (p, q, r, s) = (a + d, b + c, b - c, a - d);
        block[start] = p + q;
        block[start + step] = s + r;
        block[start + 2 * step] = p - q;
        block[start + 3 * step] = s - r;
    };
    for row in 0..4 {
        butterfly(&mut block, row * 4, 1);
    }
    for column in 0..4 {
        butterfly(&mut block, column, 4);
    }
    block
}

/// Highest quantizer at which a Hadamard coefficient remains nonzero, by its magnitude (four times
/// the orthonormal one).
static HIGHEST_QP: [u8; 4096] = highest_qp();

const fn highest_qp() -> [u8; 4096] {
    let mut table = [0; 4096];
    let mut magnitude = 0;
    while magnitude < 4096 {
        let mut qp = 0;
        // A coefficient is kept from two thirds of the step on (intra rounding of 1/3); the step is
        // STEPS / 16 and doubles every six quantizers.
        while qp < 51 && 3 * 16 * magnitude >= 2 * 4 * (STEPS[(qp + 1) % 6] << ((qp + 1) / 6)) {
            qp += 1;
        }
        table[magnitude] = qp as u8;
        magnitude += 1;
    }
    table
}

/// Sixteen times the quantizer step of QP 0 to 5 (8.5.9).
const STEPS: [usize; 6] = [10, 11, 13, 14, 16, 18];

/// Bits of a coefficient that just remains nonzero: its level, sign and position. Each doubling of
/// its magnitude is assumed to cost one more.
const BITS_KEPT: f64 = 3.5;

/// Bits of a macroblock's type and prediction modes.
const BITS_A_MACROBLOCK: f64 = 8.0;
