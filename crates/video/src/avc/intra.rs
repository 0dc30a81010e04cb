//! Intra prediction (8.3): samples from the borders of neighbours in the same slice.

use super::border4::PLACES;
pub(super) use super::border4::{Border4, MEAN4, MODES4, Near};
use super::kernel::Kernel;
use super::plane::Plane;

/// Intra prediction of a complete macroblock; the discriminants are those of table 8-4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whole {
    Vertical = 0,
    Horizontal = 1,
    Mean = 2,
    Plane = 3,
}

impl Whole {
    /// Returns the modes that `near` permits.
    pub(super) fn permitted(near: Near) -> impl Iterator<Item = Self> {
        let all = near.left && near.above && near.corner;
        [
            (Self::Mean, true),
            (Self::Vertical, near.above),
            (Self::Horizontal, near.left),
            (Self::Plane, all),
        ]
        .into_iter()
        .filter_map(|(mode, permitted)| permitted.then_some(mode))
    }

    /// Returns the mode's number as `intra_chroma_pred_mode` (table 8-5).
    pub(super) fn chroma_number(self) -> u32 {
        match self {
            Self::Mean => 0,
            Self::Horizontal => 1,
            Self::Vertical => 2,
            Self::Plane => 3,
        }
    }
}

/// Samples above and left of a square of `SIDE` by `SIDE` samples.
pub(super) struct Border<const SIDE: usize> {
    near: Near,
    above: [u8; SIDE],
    left: [u8; SIDE],
    corner: u8,
}

impl<const SIDE: usize> Border<SIDE> {
    /// Reads the border of the square at a position in the plane.
    pub(super) fn of(plane: &Plane, [x, y]: [i32; 2], near: Near) -> Self {
        let (samples, stride) = (plane.samples(), plane.stride());
        let start = plane.at(x - 1, y - 1);
        let mut above = [0; SIDE];
        above.copy_from_slice(&samples[start + 1..][..SIDE]);
        let left = std::array::from_fn(|row| samples[start + (row + 1) * stride]);
        Self { near, above, left, corner: samples[start] }
    }

    fn plane_of(&self, slope: i32, out: &mut [u8]) {
        let half = SIDE as i32 / 2;
        let gradient = |line: &[u8; SIDE]| -> i32 {
            (0..half)
                .map(|i| {
                    let low = half - 2 - i;
                    let low = if low < 0 { self.corner } else { line[low as usize] };
                    (i + 1) * (i32::from(line[(half + i) as usize]) - i32::from(low))
                })
                .sum()
        };
        let b = (slope * gradient(&self.above) + 32) >> 6;
        let c = (slope * gradient(&self.left) + 32) >> 6;
        let a = 16 * (i32::from(self.above[SIDE - 1]) + i32::from(self.left[SIDE - 1]));
        for (y, row) in out.chunks_mut(16).take(SIDE).enumerate() {
            let start = a + c * (y as i32 - half + 1) - b * (half - 1) + 16;
            for (x, out) in row[..SIDE].iter_mut().enumerate() {
                *out = ((start + b * x as i32) >> 5).clamp(0, 255) as u8;
            }
        }
    }

    fn fill(&self, mode: Whole, out: &mut [u8]) {
        for (row, &left) in out.chunks_mut(16).zip(&self.left) {
            if mode == Whole::Vertical {
                row[..SIDE].copy_from_slice(&self.above);
            } else {
                row[..SIDE].fill(left);
            }
        }
    }
}

impl Border<16> {
    /// Predicts a macroblock's luma (8.3.3) in rows of 16.
    pub(super) fn predict_luma(&self, mode: Whole, out: &mut [u8]) {
        match mode {
            Whole::Vertical | Whole::Horizontal => self.fill(mode, out),
            Whole::Plane => self.plane_of(5, out),
            Whole::Mean => {
                let sum = |line: &[u8; 16]| line.iter().map(|&s| u32::from(s)).sum::<u32>();
                out.fill(match (self.near.above, self.near.left) {
                    (true, true) => (sum(&self.above) + sum(&self.left) + 16) >> 5,
                    (true, false) => (sum(&self.above) + 8) >> 4,
                    (false, true) => (sum(&self.left) + 8) >> 4,
                    (false, false) => 128,
                } as u8);
            }
        }
    }
}

impl Border<8> {
    /// Predicts a macroblock's part of a chroma plane (8.3.4) in rows of 16.
    pub(super) fn predict_chroma(&self, mode: Whole, out: &mut [u8]) {
        match mode {
            Whole::Vertical | Whole::Horizontal => self.fill(mode, out),
            Whole::Plane => self.plane_of(34, out),
            Whole::Mean => {
                for quarter in 0..4 {
                    let mean = self.mean(quarter);
                    for row in 0..4 {
                        let start = (quarter / 2 * 4 + row) * 16 + quarter % 2 * 4;
                        out[start..][..4].fill(mean);
                    }
                }
            }
        }
    }

    fn mean(&self, quarter: usize) -> u8 {
        let (column, row) = (quarter % 2, quarter / 2);
        let sum = |line: &[u8; 8], part: usize| -> u32 {
            line[part * 4..][..4].iter().map(|&sample| u32::from(sample)).sum()
        };
        let (above, left) = (sum(&self.above, column), sum(&self.left, row));
        // Off the diagonal, only the adjacent side is used.
        let (above_counts, left_counts) = match (quarter, self.near.above, self.near.left) {
            (1, true, _) => (true, false),
            (2, _, true) => (false, true),
            (_, above, left) => (above, left),
        };
        (match (above_counts, left_counts) {
            (true, true) => (above + left + 4) >> 3,
            (true, false) => (above + 2) >> 2,
            (false, true) => (left + 2) >> 2,
            (false, false) => 128,
        }) as u8
    }
}

/// All modes of 4x4 blocks, one bit each.
pub(super) const ALL4: u16 = (1 << MODES4) - 1;

/// Returns the modes of 4x4 blocks that `near` permits, one bit each.
pub(super) fn permitted4(near: Near) -> u16 {
    const ABOVE: u16 = 1 << 0 | 1 << 3 | 1 << 7;
    const LEFT: u16 = 1 << 1 | 1 << 8;
    const ALL: u16 = 1 << 4 | 1 << 5 | 1 << 6;
    let modes = |bits: u16, permitted: bool| if permitted { bits } else { 0 };
    1 << MEAN4
        | modes(ABOVE, near.above)
        | modes(LEFT, near.left)
        | modes(ALL, near.left && near.above && near.corner)
}

impl Border4 {
    /// Reads the border of the block at a position in the plane.
    #[inline]
    pub(super) fn of(kernel: impl Kernel, plane: &Plane, [x, y]: [i32; 2], near: Near) -> Self {
        let (samples, stride) = (plane.samples(), plane.stride());
        let start = plane.at(x - 1, y - 1);
        let mut line = [0u8; 32];
        for row in 0..4 {
            line[4 - row] = samples[start + (row + 1) * stride];
        }
        line[5..14].copy_from_slice(&samples[start..start + 9]);
        if !near.beyond {
            line[10..14].fill(samples[start + 4]);
        }
        line[0] = line[1];
        line[14] = line[13];
        Self { smooth: kernel.smooth(&line), line, near }
    }

    /// Returns the block predicted in mode `mode` (8.3.1.2), by rows.
    #[inline]
    pub(super) fn predict(&self, kernel: impl Kernel, mode: u8) -> [u8; 16] {
        match mode {
            MEAN4 => [self.mean(); 16],
            0 | 1 => kernel.pick(&self.line, &PLACES[usize::from(mode)]),
            _ => kernel.pick(&self.smooth, &PLACES[usize::from(mode)]),
        }
    }
}
