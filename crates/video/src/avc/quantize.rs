//! Quantizers: divisors and scale factors of coefficients (8.5.8 to 8.5.12).

/// Multipliers, rounding offsets and scale factors of one quantizer, in the order of a 4x4 block's
/// rows.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Quantizer {
    /// Multiplier in `level = (|coefficient| + bias) * multiplier >> 16`.
    pub(super) multiplier: [u16; 16],
    /// Rounding offset `bias` for intra coded blocks: a third of a quantizer step.
    pub(super) bias_intra: [u16; 16],
    /// Rounding offset `bias` for inter coded blocks: a sixth of a quantizer step.
    pub(super) bias_inter: [u16; 16],
    /// Dequantization factor of a level: `LevelScale4x4 / 16 << qP / 6`.
    pub(super) scale: [i16; 16],
    /// Value of qP / 6, for the DC levels; `mean_multiplier` and `mean_scale` are the multiplier
    /// and scale of the first coefficient before that shift.
    pub(super) shift: u32,
    pub(super) mean_multiplier: u32,
    pub(super) mean_scale: i32,
}

/// Quantizers by qP, 0 to 51.
pub(super) static QUANTIZERS: [Quantizer; 52] = quantizers();

/// Returns QPc for a luma quantizer with `chroma_qp_index_offset` 0 (table 8-15).
pub(super) const fn chroma_qp(qp: u8) -> u8 {
    const ABOVE: [u8; 22] =
        [29, 30, 31, 32, 32, 33, 34, 34, 35, 35, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39, 39, 39];
    if qp < 30 { qp } else { ABOVE[qp as usize - 30] }
}

/// Returns the cost of a bit in sums of transformed differences: `2^((qp - 12) / 6)` in sixteenths,
/// at least 8.
pub(super) const fn lambda(qp: u8) -> u32 {
    const SIXTHS: [u32; 6] = [16, 18, 20, 23, 25, 29];
    let lambda = (SIXTHS[qp as usize % 6] << (qp as usize / 6)) >> 2;
    if lambda < 8 { 8 } else { lambda }
}

/// Returns the cost of `bits` in squared differences: 0.42 times `2^((qp - 12) / 3)` per bit.
pub(super) fn squared_price(qp: u8, bits: usize) -> u64 {
    // The factor times the power of qp % 3, in 4096ths of 2^(qp / 3).
    const THIRDS: [u64; 3] = [108, 136, 171];
    ((THIRDS[usize::from(qp) % 3] << (qp / 3)) * bits as u64) >> 12
}

impl Quantizer {
    /// Returns the level of a transformed DC value (of 16 or 4 blocks).
    pub(super) fn mean_level(&self, coefficient: i32, intra: bool) -> i16 {
        let magnitude = coefficient.unsigned_abs();
        let rounding = (1 << (16 + self.shift)) / if intra { 3 } else { 6 };
        let level = (magnitude * self.mean_multiplier + rounding) >> (16 + self.shift);
        let level = level.min(super::cavlc::LEVEL_MAX as u32) as i16;
        if coefficient < 0 { -level } else { level }
    }
}

const fn quantizers() -> [Quantizer; 52] {
    // Reciprocals of the scales, for coefficients at even positions, at odd ones, and others.
    const MULTIPLIERS: [[u32; 3]; 6] = [
        [13107, 5243, 8066],
        [11916, 4660, 7490],
        [10082, 4194, 6554],
        [9362, 3647, 5825],
        [8192, 3355, 5243],
        [7282, 2893, 4559],
    ];
    // normAdjust4x4 (8-315).
    const SCALES: [[i32; 3]; 6] =
        [[10, 16, 13], [11, 18, 14], [13, 20, 16], [14, 23, 18], [16, 25, 20], [18, 29, 23]];
    let empty = Quantizer {
        multiplier: [0; 16],
        bias_intra: [0; 16],
        bias_inter: [0; 16],
        scale: [0; 16],
        shift: 0,
        mean_multiplier: 0,
        mean_scale: 0,
    };
    let mut all = [empty; 52];
    let mut qp = 0;
    while qp < 52 {
        let shift = qp / 6;
        let mut at = 0;
        while at < 16 {
            let class = match (at / 4 % 2, at % 2) {
                (0, 0) => 0,
                (1, 1) => 1,
                _ => 2,
            };
            let multiplier = (MULTIPLIERS[qp % 6][class] << 1) >> shift;
            all[qp].multiplier[at] = multiplier as u16;
            all[qp].bias_intra[at] = (65536 / 3 / multiplier) as u16;
            all[qp].bias_inter[at] = (65536 / 6 / multiplier) as u16;
            all[qp].scale[at] = (SCALES[qp % 6][class] << shift) as i16;
            at += 1;
        }
        all[qp].shift = shift as u32;
        all[qp].mean_multiplier = MULTIPLIERS[qp % 6][0];
        all[qp].mean_scale = SCALES[qp % 6][0];
        qp += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_stands_for_what_it_was_made_of() {
        for quantizer in &QUANTIZERS {
            for at in 0..16 {
                // Gain of the inverse transform followed by the forward transform, times 64.
                let gain = match (at / 4 % 2, at % 2) {
                    (0, 0) => 16.0,
                    (1, 1) => 25.0,
                    _ => 20.0,
                };
                let step = f64::from(quantizer.scale[at]) * gain / 64.0;
                let divisor = 65536.0 / f64::from(quantizer.multiplier[at]);
                assert!((divisor / step - 1.0).abs() < 0.03, "{at}: {divisor} {step}");
            }
        }
    }
}
