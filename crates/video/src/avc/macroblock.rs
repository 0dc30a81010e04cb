//! Data of a coded macroblock for later macroblocks and the deblocking filter.

use super::intra::MEAN4;
use super::vector::Vector;

/// Coding kinds of a macroblock that the deblocking filter and neighbours distinguish.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Intra_4x4 or Intra_16x16.
    Intra,
    /// Predicted from another picture, or skipped.
    Inter,
}

/// One coded macroblock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Macroblock {
    pub(super) kind: Kind,
    /// Luma quantizer, QP_Y.
    pub(super) qp: u8,
    /// `total_coeff` of each 4x4 block: luma by rows, then Cb's four, then Cr's.
    pub(super) counts: [u8; 24],
    /// Mask of the 4x4 luma blocks, by rows, that have coefficients.
    pub(super) coded: u16,
    /// Vectors of the four quarters, by rows.
    pub(super) vectors: [Vector; 4],
    /// Intra4x4PredMode of each 4x4 block, by rows; [`MEAN4`] in macroblocks that are not
    /// Intra_4x4.
    pub(super) modes: [u8; 16],
}

impl Macroblock {
    /// Creates a macroblock of a kind with quantizer `qp`, without coefficients or motion.
    pub(super) fn new(kind: Kind, qp: u8) -> Self {
        let vectors = [Vector::default(); 4];
        Self { kind, qp, counts: [0; 24], coded: 0, vectors, modes: [MEAN4; 16] }
    }

    /// Returns whether all quarters have the same vector.
    pub(super) fn moves_as_one(&self) -> bool {
        self.vectors.iter().all(|vector| *vector == self.vectors[0])
    }
}

/// The 4x4 blocks in coding order (6.4.3), each as `row * 4 + column`.
pub(super) const BLOCKS: [usize; 16] = [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15];
