//! Mode decision: codes each macroblock in the cheapest mode by transformed differences and bits.

mod inter;
mod intra;

use super::kernel::Kernel;
use super::macroblock::{Kind, Macroblock};
use super::reference::Reference;
use super::residual::Residual;
use super::slice::{Current, Slice};
use super::syntax::{Choice, Shape};
use super::vector::{Neighbours, Part, Vector};

impl<K: Kernel> Slice<'_, K> {
    /// Selects the mode of a macroblock and codes it: intra if there is no reference or its column
    /// is refreshed, and as cheaply as possible once the rate control has no bits left.
    pub(super) fn macroblock(&mut self, current: &mut Current) {
        let refreshed = self.reach.is_refreshed(current.index % self.columns);
        let Some(reference) = self.reference.filter(|_| !refreshed) else {
            if self.rate_control.is_exhausted() {
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
        if self.rate_control.is_exhausted() {
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

    /// Predicts the macroblock with `vector`. Returns whether its luma differs little from the
    /// prediction ([`SKIP_WORTH`]) and the quantized residual is zero, so that it can be skipped;
    /// if not, chroma may be unpredicted.
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

    /// Codes a macroblock when no bits are left: skipped if that is allowed, otherwise with a zero
    /// vector or, if that is not allowed either, from the mean of its neighbours.
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
}

impl Current {
    /// Returns the cost of `bits` bits at the macroblock's lambda, in units of SATD.
    #[inline]
    fn bits(&self, bits: u32) -> u32 {
        (self.lambda * bits) >> 4
    }
}

/// Threshold, in bits, for the cost of a macroblock's inter prediction: up to it, intra prediction
/// is not tried.
const INTRA_WORTH: u32 = 30;
/// Threshold, in bits, for a macroblock's sum of absolute luma differences from its skip
/// prediction: up to it, skipping is tried before any motion search. Twice this value takes 5 to 8
/// % more bits: noise that the quantizer removes is kept where a better vector would have averaged
/// it.
const SKIP_WORTH: u32 = 45;
