//! Intra prediction (8.3): samples from the borders of neighbours in the same slice.

use super::kernel::Kernel;
use super::plane::Plane;

/// Neighbours from which a block or macroblock may be predicted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Near {
    pub(super) left: bool,
    pub(super) above: bool,
    pub(super) corner: bool,
    /// True if the upper right neighbour is available.
    pub(super) beyond: bool,
}

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

/// Number of prediction modes of a 4x4 block (table 8-2); the modes are their numbers.
pub(super) const MODES4: usize = 9;
/// Number of the mode Intra_4x4_DC.
pub(super) const MEAN4: u8 = 2;

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

/// The border of a 4x4 block, with all the filtered versions that the modes use.
pub(super) struct Border4 {
    /// 13 samples at indices 1 to 13: from the lowest on the left through the corner to the last on
    /// the upper right. The first and the last are repeated at 0 and 14.
    pub(super) line: [u8; 32],
    near: Near,
    /// Filtered [`line`](Self::line): from index 0 on, 13 weighted means of three samples; from 16
    /// on, 14 means of two.
    pub(super) smooth: [u8; 32],
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

    pub(super) fn mean(&self) -> u8 {
        let sum = |start: usize| self.line[start..][..4].iter().map(|&s| u16::from(s)).sum::<u16>();
        (match (self.near.above, self.near.left) {
            (true, true) => (sum(6) + sum(1) + 4) >> 3,
            (true, false) => (sum(6) + 2) >> 2,
            (false, true) => (sum(1) + 2) >> 2,
            (false, false) => 128,
        }) as u8
    }
}

/// Source of each predicted sample, by mode: an index into [`Border4::line`] for modes 0 and 1, and
/// into [`Border4::smooth`] for modes from 3 on (8.3.1.2.4 to 8.3.1.2.9); unused for the mean.
pub(super) static PLACES: [[u8; 16]; MODES4] = places();

const fn places() -> [[u8; 16]; MODES4] {
    const TWO: i32 = 16;
    let mut all = [[0; 16]; MODES4];
    let mut at = 0;
    while at < 16 {
        let (x, y) = (at % 4, at / 4);
        let rows = [
            6 + x,
            4 - y,
            // The mean has no sources.
            0,
            // Diagonal down left, then down right.
            6 + x + y,
            4 + x - y,
            // Vertical right.
            match 2 * x - y {
                -1 => 4,
                -3 | -2 => 5 - y,
                odd if odd % 2 == 1 => 4 + x - (y >> 1),
                _ => TWO + 5 + x - (y >> 1),
            },
            // Horizontal down.
            match 2 * y - x {
                -1 => 4,
                -3 | -2 => 3 + x,
                odd if odd % 2 == 1 => 4 - y + (x >> 1),
                _ => TWO + 4 - y + (x >> 1),
            },
            // Vertical left.
            if y % 2 == 0 { TWO + 6 + x + (y >> 1) } else { 6 + x + (y >> 1) },
            // Horizontal up.
            match x + 2 * y {
                5 => 0,
                6.. => TWO,
                odd if odd % 2 == 1 => 2 - y - (x >> 1),
                _ => TWO + 3 - y - (x >> 1),
            },
        ];
        let mut mode = 0;
        while mode < MODES4 {
            all[mode][at as usize] = rows[mode] as u8;
            mode += 1;
        }
        at += 1;
    }
    all
}
