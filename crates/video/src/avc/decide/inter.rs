//! Motion search and inter coding of a macroblock.

use crate::avc::kernel::Kernel;
use crate::avc::macroblock::{Kind, Macroblock};
use crate::avc::plane::Block;
use crate::avc::quantize::squared_price;
use crate::avc::reference::Reference;
use crate::avc::residual::Samples;
use crate::avc::search::Search;
use crate::avc::slice::{Current, Slice};
use crate::avc::syntax::{Choice, Shape};
use crate::avc::vector::{Neighbour, Neighbours, Part, Vector};

/// Result of a macroblock's motion search.
pub(super) struct Moved {
    pub(super) shape: Shape,
    /// Vectors of the quarters, by rows.
    pub(super) vectors: [Vector; 4],
    /// Difference of each part's vector from its prediction, in coding order of the parts; unused
    /// ones are zero.
    differences: [Vector; 4],
    cost: u32,
    /// Bits of the vector differences and the shape.
    pub(super) bits: u32,
}

impl<K: Kernel> Slice<'_, K> {
    pub(super) fn search(
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
            if let Some(&vector) = self.co_located.get(at) {
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

    /// Searches the vectors of a shape's parts, starting from `vectors`. `shape` comes with the
    /// bits that it costs itself. Returns `None` if the parts cost more than `limit`, or if one has
    /// no permitted vector.
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

    /// Codes the macroblock with its motion, or skips it if the vector `skip` allows that and the
    /// residual is zero or not worth its bits.
    pub(super) fn inter(
        &mut self,
        current: &mut Current,
        reference: &Reference<'_>,
        moved: &Moved,
        skip: Option<Vector>,
    ) {
        current.predict_chroma(self.kernel, reference, moved.shape, &moved.vectors);
        let predicted = skip.map(|_| current.samples.clone());
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
        let before = (self.writer.mark(), self.skip_run, self.qp);
        let start = self.writer.bit_count();
        self.write(current, &choice, own);
        let bits = self.writer.bit_count() - start;
        if let (Some(vector), Some(predicted), ..=UNSKIPPED_BITS) = (skip, predicted, bits) {
            let cost = squared_error(&current.source, &current.samples)
                + squared_price(current.qp, bits.saturating_sub(1));
            let same = moved.shape == Shape::Whole && vector == moved.vectors[0];
            let coded = std::mem::replace(&mut current.samples, predicted);
            if !same {
                let vectors = [vector; 4];
                current.predict_luma(self.kernel, reference, Shape::Whole, &vectors);
                current.predict_chroma(self.kernel, reference, Shape::Whole, &vectors);
            }
            if squared_error(&current.source, &current.samples) <= cost {
                self.writer.rewind(before.0);
                (self.skip_run, self.qp) = (before.1, before.2);
                self.skip(current, vector);
            } else {
                current.samples = coded;
            }
        }
    }
}

/// Returns the sum of squared differences of two macroblocks, over luma and chroma.
fn squared_error(a: &Samples, b: &Samples) -> u64 {
    let sum = |a: &[u8], b: &[u8]| -> u32 {
        let square = |(a, b): (&u8, &u8)| {
            let apart = i16::from(*a) - i16::from(*b);
            (i32::from(apart) * i32::from(apart)) as u32
        };
        a.iter().zip(b).map(square).sum()
    };
    u64::from(sum(&a.luma, &b.luma)) + u64::from(sum(&a.chroma, &b.chroma))
}

/// Size in bits of a coded macroblock above which skipping it is not considered.
const UNSKIPPED_BITS: usize = 64;
/// Threshold, in bits, for the cost of predicting a macroblock as a whole: below it, smaller parts
/// are not tried.
const SPLIT_WORTH: u32 = 900;
