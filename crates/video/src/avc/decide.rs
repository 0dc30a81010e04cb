//! How each macroblock is coded: the cheapest way by transformed differences and bits.

use super::cavlc::Levels;
use super::intra::{self, Border, Border4, MEAN4, MODES4, Near, Whole};
use super::kernel::Kernel;
use super::macroblock::{BLOCKS, Kind, Macroblock};
use super::plane::Block;
use super::quantize::QUANTIZERS;
use super::reference::Reference;
use super::residual::{Residual, block_start};
use super::search::Search;
use super::slice::{Current, Slice};
use super::syntax::{Choice, Shape, predicted_mode};
use super::vector::{Neighbour, Neighbours, Part, Vector};

/// Motion found for a macroblock.
struct Moved {
    shape: Shape,
    /// Of each quarter, by rows.
    vectors: [Vector; 4],
    /// Of each part from what is predicted for it.
    differences: [Vector; 4],
    cost: u32,
    /// That of the differences and the shape.
    bits: u32,
}

/// The best way found to code luma as 16 blocks.
struct Blocks {
    modes: [u8; 16],
    predicted: [u8; 16],
    levels: [Levels; 16],
    samples: [u8; 256],
    cost: u32,
}

impl<K: Kernel> Slice<'_, K> {
    /// Decides on a macroblock and codes it.
    pub(super) fn macroblock(&mut self, current: &mut Current) {
        let refreshed = self.reach.is_refreshed(current.index % self.columns);
        let Some(reference) = self.reference.filter(|_| !refreshed) else {
            if self.pace.is_exhausted() {
                self.mean(current);
            } else {
                self.intra_if_below(current, u32::MAX);
            }
            return;
        };
        let neighbours = self.neighbours(current.index);
        let skip = neighbours.skip();
        let skip_allowed = current.window.permits([current.x, current.y], [16, 16], skip);
        let skip = skip_allowed.then_some(skip);
        if self.pace.is_exhausted() {
            return self.cheapest(current, &reference, &neighbours, skip);
        }
        if let Some(skip) = skip
            && self.skips(current, &reference, skip)
        {
            return self.skip(current, skip);
        }
        let Some(moved) = self.search(current, &reference, &neighbours) else {
            self.intra_if_below(current, u32::MAX);
            return;
        };
        current.predict_luma(self.kernel, &reference, moved.shape, &moved.vectors);
        let predicted = current.samples.luma_block(0);
        let satd = self.kernel.satd(16, 16, current.source.luma_block(0), predicted);
        let limit = satd + current.bits(moved.bits);
        let worth_trying = limit > current.bits(INTRA_WORTH) && self.may_be_intra(current);
        if !worth_trying || !self.intra_if_below(current, limit) {
            self.inter(current, &reference, &moved, skip);
        }
    }

    /// Whether the macroblock, moved by `vector`, has nothing to add.
    fn skips(&mut self, current: &mut Current, reference: &Reference<'_>, vector: Vector) -> bool {
        let vectors = [vector; 4];
        current.predict_luma(self.kernel, reference, Shape::Whole, &vectors);
        let (source, predicted) = (current.source.luma_block(0), current.samples.luma_block(0));
        if self.kernel.sad(16, 16, source, predicted) > current.bits(SKIP_WORTH) {
            return false;
        }
        let Current { residual, source, samples, qp, .. } = current;
        residual.inter_luma(self.kernel, source, samples, *qp);
        if residual.luma_pattern != 0 {
            return false;
        }
        current.predict_chroma(self.kernel, reference, Shape::Whole, &vectors);
        let Current { residual, source, samples, qp, .. } = current;
        residual.chroma(self.kernel, source, samples, *qp, false);
        residual.chroma_pattern == 0
    }

    fn search(
        &self,
        current: &Current,
        reference: &Reference<'_>,
        neighbours: &Neighbours,
    ) -> Option<Moved> {
        let predicted = neighbours.predict(Part::WHOLE);
        let mut candidates = [predicted; 8];
        let mut count = 1;
        let near = [neighbours.cells[1][0], neighbours.cells[0][1], neighbours.cells[0][3]];
        for near in near {
            if let Neighbour::Moved(vector) = near {
                candidates[count] = vector;
                count += 1;
            }
        }
        let ahead = [current.index, current.index + 1, current.index + self.columns];
        for at in ahead {
            if let Some(&vector) = self.past.get(at) {
                candidates[count] = vector;
                count += 1;
            }
        }
        let search = |part: Part, predicted: Vector| Search {
            kernel: self.kernel,
            reference: *reference,
            source: Block {
                samples: &current.source.luma[part.y * 128 + part.x * 8..],
                stride: 16,
            },
            area: current.area(part),
            window: current.window,
            predicted,
            lambda: current.lambda,
        };
        let found = search(Part::WHOLE, predicted).run(&candidates[..count])?;
        let difference = found.vector.minus(predicted);
        let mut best = Moved {
            shape: Shape::Whole,
            vectors: [found.vector; 4],
            differences: [difference; 4],
            cost: found.cost,
            bits: found.vector.bits(predicted),
        };
        if found.cost < current.bits(SPLIT_WORTH) {
            return Some(best);
        }
        let mut vectors = best.vectors;
        for (shape, bits) in [(Shape::Quarters, 8), (Shape::Rows, 2), (Shape::Columns, 2)] {
            let limit = best.cost;
            let split = self.split(current, (shape, bits), limit, &vectors, neighbours, &search);
            let Some(split) = split else {
                // Halves rarely help where quarters do not.
                if shape == Shape::Quarters {
                    break;
                }
                continue;
            };
            vectors = split.vectors;
            if split.cost < best.cost {
                best = split;
            } else if shape == Shape::Quarters {
                break;
            }
        }
        Some(best)
    }

    /// Searches a shape's parts from `vectors` on; none if it costs clearly more than `limit`.
    fn split<'b>(
        &self,
        current: &Current,
        (shape, overhead): (Shape, u32),
        limit: u32,
        vectors: &[Vector; 4],
        neighbours: &Neighbours,
        search: &impl Fn(Part, Vector) -> Search<'b, K>,
    ) -> Option<Moved>
    where
        K: 'b,
    {
        let mut neighbours = neighbours.clone();
        let mut moved = Moved {
            shape,
            vectors: *vectors,
            differences: [Vector::default(); 4],
            cost: current.bits(overhead),
            bits: overhead,
        };
        for (index, &part) in shape.parts().iter().enumerate() {
            let predicted = neighbours.predict(part);
            let at = part.y * 2 + part.x;
            let other = (part.y + part.height - 1) * 2 + part.x + part.width - 1;
            let found = search(part, predicted).run(&[vectors[at], vectors[other], predicted])?;
            moved.cost += found.cost;
            moved.bits += found.vector.bits(predicted);
            if moved.cost > limit {
                return None;
            }
            moved.differences[index] = found.vector.minus(predicted);
            neighbours.set(part, found.vector);
            for y in part.y..part.y + part.height {
                for x in part.x..part.x + part.width {
                    moved.vectors[y * 2 + x] = found.vector;
                }
            }
        }
        Some(moved)
    }

    fn inter(
        &mut self,
        current: &mut Current,
        reference: &Reference<'_>,
        moved: &Moved,
        skip: Option<Vector>,
    ) {
        current.predict_chroma(self.kernel, reference, moved.shape, &moved.vectors);
        let Current { residual, source, samples, qp, .. } = current;
        residual.inter_luma(self.kernel, source, samples, *qp);
        residual.chroma(self.kernel, source, samples, *qp, false);
        if residual.pattern() == 0 && moved.shape == Shape::Whole && skip == Some(moved.vectors[0])
        {
            return self.skip(current, moved.vectors[0]);
        }
        let mut own = Macroblock::new(Kind::Inter, 0);
        own.vectors = moved.vectors;
        let choice = Choice::Moved { shape: moved.shape, differences: moved.differences };
        self.write(current, &choice, own);
    }

    /// Whether the macroblock differs more from its inter prediction than from itself one row on.
    ///
    /// No intra prediction is much better than that. Noise is in both, so that where there is
    /// nothing else, none is tried.
    fn may_be_intra(&self, current: &Current) -> bool {
        let source = |row: usize| Block { samples: &current.source.luma[row * 16..], stride: 16 };
        let predicted = current.samples.luma_block(0);
        let inter = self.kernel.sad(16, 16, source(0), predicted);
        inter > self.kernel.sad(16, 14, source(0), source(1))
    }

    /// Codes the macroblock intra if that costs less than `limit`; tells whether it did.
    fn intra_if_below(&mut self, current: &mut Current, limit: u32) -> bool {
        let near = self.near(current.index);
        let (mut whole, mut whole_cost) = (Whole::Mean, u32::MAX);
        let mut samples = [0; 256];
        let border = Border::of(&self.frame.luma, [current.x, current.y], near);
        for mode in Whole::permitted(near) {
            border.predict_luma(mode, &mut samples);
            let predicted = Block { samples: &samples, stride: 16 };
            let satd = self.kernel.satd(16, 16, current.source.luma_block(0), predicted);
            let cost = satd + current.bits(WHOLE_BITS);
            if cost < whole_cost {
                (whole, whole_cost) = (mode, cost);
            }
            // The mean comes first; where it is far off, others are too.
            if mode == Whole::Mean && cost / 2 > limit {
                return false;
            }
        }
        // Blocks are seldom much cheaper than the whole.
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

    /// Chooses how to predict chroma, and codes it.
    fn intra_chroma(&mut self, current: &mut Current, near: Near) -> Whole {
        let (x, y) = (current.x / 2, current.y / 2);
        let (mut best, mut best_cost) = (Whole::Mean, u32::MAX);
        let mut predicted = [0; 128];
        let borders = [&self.frame.cb, &self.frame.cr].map(|plane| Border::of(plane, [x, y], near));
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

    /// Codes luma as blocks of 4x4, one after the other; none if it costs more than `limit`.
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
        for block in BLOCKS {
            let predicted =
                predicted_mode(&blocks.modes, self.beside(current.index), block, constrained);
            let (x, y) = (current.x + block as i32 % 4 * 4, current.y + block as i32 / 4 * 4);
            let near = near_block(near, block);
            let border = Border4::of(self.kernel, &self.frame.luma, [x, y], near);
            let source = current.source.luma_block(block);
            let (mode, mut samples, cost) =
                self.best_mode(current, &border, near, source, predicted);
            blocks.cost += cost;
            if blocks.cost > limit {
                return None;
            }
            let prediction = Block { samples: &samples, stride: 4 };
            let mut coefficients = [0; 16];
            let levels = self.kernel.code(source, prediction, (by, true), &mut coefficients);
            if levels.mask != 0 {
                self.kernel.add_inverse(&coefficients, &mut samples, 4);
            }
            let kept = Block { samples: &samples, stride: 4 };
            self.frame.luma.place(self.kernel, [x, y], [4, 4], kept);
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
        // The cheapest, of equals the first.
        let key = |mode: usize| costs[mode] << 4 | mode as u32;
        let best = match intra::permitted4(near) {
            intra::ALL4 => (0..MODES4).map(key).min(),
            some => (0..MODES4).filter(|mode| some >> mode & 1 == 1).map(key).min(),
        };
        let best = best.expect("the mean is always permitted");
        let mode = (best & 15) as u8;
        (mode, border.predict(self.kernel, mode), best >> 4)
    }

    /// Where no bits are left: skipped if that is allowed, otherwise standing still.
    fn cheapest(
        &mut self,
        current: &mut Current,
        reference: &Reference<'_>,
        neighbours: &Neighbours,
        skip: Option<Vector>,
    ) {
        let vector = skip.unwrap_or_default();
        if skip.is_none() && !current.window.permits([current.x, current.y], [16, 16], vector) {
            return self.mean(current);
        }
        let vectors = [vector; 4];
        current.predict_luma(self.kernel, reference, Shape::Whole, &vectors);
        current.predict_chroma(self.kernel, reference, Shape::Whole, &vectors);
        if skip.is_some() {
            return self.skip(current, vector);
        }
        current.residual = Residual::new();
        let mut own = Macroblock::new(Kind::Inter, 0);
        own.vectors = vectors;
        let difference = vector.minus(neighbours.predict(Part::WHOLE));
        let choice = Choice::Moved { shape: Shape::Whole, differences: [difference; 4] };
        self.write(current, &choice, own);
    }

    /// Intra coded with nothing but the mean of its neighbours.
    fn mean(&mut self, current: &mut Current) {
        let near = self.near(current.index);
        let (x, y) = (current.x, current.y);
        let mode = Whole::Mean;
        let border = Border::of(&self.frame.luma, [x, y], near);
        border.predict_luma(mode, &mut current.samples.luma);
        for (plane, start) in [(&self.frame.cb, 0), (&self.frame.cr, 8)] {
            let out = &mut current.samples.chroma[start..];
            Border::of(plane, [x / 2, y / 2], near).predict_chroma(mode, out);
        }
        current.residual = Residual::new();
        current.qp = self.qp;
        let choice = Choice::Whole { luma: mode, chroma: mode };
        self.write(current, &choice, Macroblock::new(Kind::Intra, 0));
    }
}

impl Current {
    /// What `bits` cost.
    #[inline]
    fn bits(&self, bits: u32) -> u32 {
        (self.lambda * bits) >> 4
    }
}

/// Which neighbours of a 4x4 block may be predicted from, if those of its macroblock are `near`.
fn near_block(near: Near, block: usize) -> Near {
    /// Blocks below the first row whose block above and to the right is coded before them.
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

/// Bits that the type and modes of a whole intra macroblock take.
const WHOLE_BITS: u32 = 8;
/// And those of blocks, beside their modes.
const BLOCKS_BITS: u32 = 24;
/// Inter prediction as good as this many bits makes intra prediction not worth trying.
const INTRA_WORTH: u32 = 30;
/// And so for smaller parts.
const SPLIT_WORTH: u32 = 900;
/// Differences up to this many bits are tried as skipped.
const SKIP_WORTH: u32 = 90;
