//! The border of a 4x4 block, from which its samples are predicted (8.3.1.2).

/// Neighbours from which a block or macroblock may be predicted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Near {
    pub(super) left: bool,
    pub(super) above: bool,
    pub(super) corner: bool,
    /// True if the upper right neighbour is available.
    pub(super) beyond: bool,
}

/// Number of prediction modes of a 4x4 block; a mode is identified by its number in table 8-2.
pub(super) const MODES4: usize = 9;
/// Number of the mode Intra_4x4_DC.
pub(super) const MEAN4: u8 = 2;

/// The border of a 4x4 block, with all the filtered versions that the modes use.
pub(super) struct Border4 {
    /// 13 samples at indices 1 to 13: from the lowest on the left through the corner to the last on
    /// the upper right. The first and the last are repeated at 0 and 14.
    pub(super) line: [u8; 32],
    pub(super) near: Near,
    /// Filtered [`line`](Self::line): from index 0 on, 13 weighted means of three samples; from 16
    /// on, 14 means of two.
    pub(super) smooth: [u8; 32],
}

impl Border4 {
    /// Returns the mean of the available samples: the prediction of mode 2.
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
