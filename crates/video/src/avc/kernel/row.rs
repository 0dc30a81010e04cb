/// The 16 coefficients or differences of a 4x4 block, row by row.
pub(in crate::avc) type Coefficients = [i16; 16];

/// The coefficients of four adjacent 4x4 blocks: the first column of each, then the second of each,
/// and so on.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(in crate::avc) struct Row(pub(in crate::avc) [i16; 64]);

impl Row {
    pub(in crate::avc) const ZERO: Self = Self([0; 64]);

    /// Returns the index of the coefficient of block `block` at `row` and `column`.
    #[inline]
    pub(in crate::avc) const fn at(block: usize, row: usize, column: usize) -> usize {
        column * 16 + block * 4 + row
    }

    /// Sets all coefficients of a block to zero.
    pub(in crate::avc) fn clear(&mut self, block: usize) {
        for column in 0..4 {
            self.0[Self::at(block, 0, column)..][..4].fill(0);
        }
    }
}
