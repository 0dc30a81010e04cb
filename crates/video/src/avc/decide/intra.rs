//! Intra prediction of a macroblock.

use crate::avc::cavlc::Levels;
use crate::avc::intra::{self, Border, Border4, MEAN4, MODES4, Near, Whole};
use crate::avc::kernel::Kernel;
use crate::avc::macroblock::{BLOCKS, Kind, Macroblock};
use crate::avc::plane::Block;
use crate::avc::quantize::QUANTIZERS;
use crate::avc::residual::{Residual, block_start};
use crate::avc::slice::{Current, Slice};
use crate::avc::syntax::{Choice, predicted_mode};

/// Luma of a macroblock coded as 16 blocks, each in its best mode.
struct Blocks {
    modes: [u8; 16],
    predicted: [u8; 16],
    levels: [Levels; 16],
    samples: [u8; 256],
    cost: u32,
}

impl<K: Kernel> Slice<'_, K> {
    /// Returns whether the macroblock differs more from its inter prediction than from itself
    /// shifted by one row.
    ///
    /// No intra prediction is much better than the shifted macroblock. Noise contributes to both,
    /// so if there is nothing else, intra prediction is not tried.
    pub(super) fn may_be_intra(&self, current: &Current) -> bool {
        let source = |row: usize| Block { samples: &current.source.luma[row * 16..], stride: 16 };
        let predicted = current.samples.luma_block(0);
        let inter = self.kernel.sad(16, 16, source(0), predicted);
        inter > self.kernel.sad(16, 14, source(0), source(1))
    }

    /// Codes the macroblock as intra if that is estimated to cost less than `limit`; returns
    /// whether it did.
    pub(super) fn intra_if_below(&mut self, current: &mut Current, limit: u32) -> bool {
        let near = self.near(current.index);
        let (mut whole, mut whole_cost) = (Whole::Mean, u32::MAX);
        let mut samples = [0; 256];
        let border = Border::of(&self.reconstruction.luma, [current.x, current.y], near);
        for mode in Whole::permitted(near) {
            // Plane mode, the most expensive to try, is rarely much better than the others.
            if mode == Whole::Plane && whole_cost - whole_cost / 4 > limit {
                return false;
            }
            border.predict_luma(mode, &mut samples);
            let predicted = Block { samples: &samples, stride: 16 };
            let satd = self.kernel.satd(16, 16, current.source.luma_block(0), predicted);
            let cost = satd + current.bits(WHOLE_BITS);
            if cost < whole_cost {
                (whole, whole_cost) = (mode, cost);
            }
            // The mean comes first; if it is far off, so are the others.
            if mode == Whole::Mean && cost / 2 > limit {
                return false;
            }
        }
        // Blocks are rarely much cheaper than whole-macroblock prediction.
        if whole_cost - whole_cost / 4 > limit {
            return false;
        }
        let blocks = self.blocks(current, near, whole_cost.min(limit));
        if blocks.is_none() && whole_cost >= limit {
            return false;
        }
        let chroma = self.intra_chroma(current, near);
        let Current { residual, source, samples, qp, .. } = current;
        let mut own = Macroblock::new(Kind::Intra, 0);
        let choice = if let Some(blocks) = blocks {
            residual.luma = blocks.levels;
            residual.luma_pattern = 0;
            for (index, block) in BLOCKS.into_iter().enumerate() {
                let any = blocks.levels[block].mask != 0;
                residual.luma_pattern |= u8::from(any) << (index / 4);
            }
            samples.luma = blocks.samples;
            own.modes = blocks.modes;
            Choice::Blocks { modes: blocks.modes, predicted: blocks.predicted, chroma }
        } else {
            let out = &mut samples.luma;
            border.predict_luma(whole, out);
            residual.whole_luma(self.kernel, source, samples, *qp);
            Choice::Whole { luma: whole, chroma }
        };
        self.write(current, &choice, own);
        true
    }

    /// Selects the chroma prediction mode, transforms and quantizes chroma with it, and returns the
    /// mode.
    fn intra_chroma(&mut self, current: &mut Current, near: Near) -> Whole {
        let (x, y) = (current.x / 2, current.y / 2);
        let (mut best, mut best_cost) = (Whole::Mean, u32::MAX);
        let mut predicted = [0; 128];
        let borders = [&self.reconstruction.cb, &self.reconstruction.cr]
            .map(|plane| Border::of(plane, [x, y], near));
        for mode in Whole::permitted(near) {
            borders[0].predict_chroma(mode, &mut predicted);
            borders[1].predict_chroma(mode, &mut predicted[8..]);
            let predicted_block = Block { samples: &predicted, stride: 16 };
            let satd = self.kernel.satd(16, 8, current.source.chroma_block(), predicted_block);
            let cost = satd + current.bits(if mode == Whole::Mean { 1 } else { 3 });
            if cost < best_cost {
                (best, best_cost) = (mode, cost);
                current.samples.chroma = predicted;
            }
        }
        let Current { residual, source, samples, qp, .. } = current;
        residual.chroma(self.kernel, source, samples, *qp, true);
        best
    }

    /// Predicts, transforms and quantizes luma as 4x4 blocks, one after the other, and reconstructs
    /// each for the prediction of the next. Returns `None` as soon as the cost is sure to exceed
    /// `limit`, or likely to.
    fn blocks(&mut self, current: &Current, near: Near, limit: u32) -> Option<Blocks> {
        let by = &QUANTIZERS[usize::from(current.qp)];
        let constrained = self.reach.is_constrained();
        let mut blocks = Blocks {
            modes: [MEAN4; 16],
            predicted: [MEAN4; 16],
            levels: [Levels::default(); 16],
            samples: [0; 256],
            cost: current.bits(BLOCKS_BITS),
        };
        for (count, block) in BLOCKS.into_iter().enumerate() {
            let predicted =
                predicted_mode(&blocks.modes, self.beside(current.index), block, constrained);
            let (x, y) = (current.x + block as i32 % 4 * 4, current.y + block as i32 / 4 * 4);
            let near = near_block(near, block);
            let border = Border4::of(self.kernel, &self.reconstruction.luma, [x, y], near);
            let source = current.source.luma_block(block);
            let (mode, mut samples, cost) =
                self.best_mode(current, &border, near, source, predicted);
            blocks.cost += cost;
            // The remaining blocks are rarely much cheaper than the previous ones.
            let share = (count as u32 + EARLY).min(16);
            if blocks.cost > limit / 16 * share {
                return None;
            }
            let prediction = Block { samples: &samples, stride: 4 };
            let mut coefficients = [0; 16];
            let levels = self.kernel.code(source, prediction, (by, true), &mut coefficients);
            if levels.mask != 0 {
                self.kernel.add_inverse(&coefficients, &mut samples, 4);
            }
            let kept = Block { samples: &samples, stride: 4 };
            self.reconstruction.luma.place(self.kernel, [x, y], [4, 4], kept);
            for (row, line) in samples.chunks_exact(4).enumerate() {
                blocks.samples[block_start(block) + row * 16..][..4].copy_from_slice(line);
            }
            blocks.levels[block] = levels;
            blocks.modes[block] = mode;
            blocks.predicted[block] = predicted;
        }
        Some(blocks)
    }

    #[inline]
    fn best_mode(
        &self,
        current: &Current,
        border: &Border4,
        near: Near,
        source: Block<'_>,
        predicted: u8,
    ) -> (u8, [u8; 16], u32) {
        let (likely, other) = (current.bits(1), current.bits(4));
        let mut costs = self.kernel.satd_modes(source, border).map(|satd| satd + other);
        costs[usize::from(predicted)] -= other - likely;
        // Select the cheapest, and of equals the first.
        let key = |mode: usize| costs[mode] << 4 | mode as u32;
        let best = match intra::permitted4(near) {
            intra::ALL4 => (0..MODES4).map(key).min(),
            some => (0..MODES4).filter(|mode| some >> mode & 1 == 1).map(key).min(),
        };
        let best = best.expect("the mean is always permitted");
        let mode = (best & 15) as u8;
        (mode, border.predict(self.kernel, mode), best >> 4)
    }

    /// Codes an intra macroblock from only the mean of its neighbours, without residual.
    pub(super) fn mean(&mut self, current: &mut Current) {
        let near = self.near(current.index);
        let (x, y) = (current.x, current.y);
        let mode = Whole::Mean;
        let border = Border::of(&self.reconstruction.luma, [x, y], near);
        border.predict_luma(mode, &mut current.samples.luma);
        for (plane, start) in [(&self.reconstruction.cb, 0), (&self.reconstruction.cr, 8)] {
            let out = &mut current.samples.chroma[start..];
            Border::of(plane, [x / 2, y / 2], near).predict_chroma(mode, out);
        }
        current.residual = Residual::new();
        current.qp = self.qp;
        let choice = Choice::Whole { luma: mode, chroma: mode };
        self.write(current, &choice, Macroblock::new(Kind::Intra, 0));
    }
}

/// Returns the neighbours from which a 4x4 block may be predicted, if those of its macroblock are
/// `near`.
fn near_block(near: Near, block: usize) -> Near {
    /// Mask of the blocks below the first row whose upper right neighbour is coded before them.
    const BEYOND: u16 = 0b0101_0111_0101_0000;
    let (first_column, first_row) = (block.is_multiple_of(4), block < 4);
    Near {
        left: !first_column || near.left,
        above: !first_row || near.above,
        corner: match (first_column, first_row) {
            (true, true) => near.corner,
            (true, false) => near.left,
            (false, true) => near.above,
            (false, false) => true,
        },
        beyond: match block {
            3 => near.beyond,
            0..3 => near.above,
            _ => BEYOND >> block & 1 == 1,
        },
    }
}

/// Number of 4x4 blocks, of 16, by whose share of the limit the cost of the blocks so far may be
/// ahead before the search of block modes is given up.
const EARLY: u32 = 4;
/// Bits assumed for the type and modes of an intra macroblock predicted as a whole.
const WHOLE_BITS: u32 = 8;
/// Bits assumed for the syntax of an intra macroblock predicted in blocks, excluding their modes.
const BLOCKS_BITS: u32 = 24;
