//! One slice: each macroblock in turn is decided, coded, written and reconstructed.

use super::bits::BitWriter;
use super::intra::Near;
use super::intra_refresh::Reach;
use super::kernel::Kernel;
use super::macroblock::{Kind, Macroblock};
use super::plane::{Block, Reconstruction};
use super::quantize::lambda;
use super::rate_control::RateControl;
use super::reference::{Area, Reference};
use super::residual::{Residual, Samples};
use super::syntax::{Beside, Choice, Shape, write_macroblock, write_samples};
use super::vector::{Neighbour, Neighbours, Part, Vector, Window};
use crate::Rows;

/// State of a slice during coding.
pub(super) struct Slice<'a, K> {
    pub(super) kernel: K,
    pub(super) rows: &'a mut dyn Rows,
    /// Activity of each macroblock; for rows not read yet, that of the last picture of this kind.
    pub(super) activity: &'a mut [f64],
    /// Reference picture; `None` in an I slice.
    pub(super) reference: Option<Reference<'a>>,
    /// The decoder's picture, before deblocking.
    pub(super) reconstruction: &'a mut Reconstruction,
    /// Macroblocks of this picture.
    pub(super) macroblocks: &'a mut [Macroblock],
    /// First vector of each macroblock of the previous picture.
    pub(super) co_located: &'a [Vector],
    pub(super) writer: &'a mut BitWriter,
    pub(super) rate_control: &'a mut RateControl,
    /// Macroblocks that must be intra coded, and the bounds of the others' vectors.
    pub(super) reach: &'a Reach,
    pub(super) columns: usize,
    /// Quantizer of the macroblock coded last, QP_Y,PRED.
    pub(super) qp: u8,
    pub(super) skip_run: u32,
}

/// A macroblock during coding.
pub(super) struct Current {
    pub(super) index: usize,
    pub(super) x: i32,
    pub(super) y: i32,
    pub(super) qp: u8,
    pub(super) lambda: u32,
    pub(super) source: Samples,
    /// Prediction and, once the macroblock is coded, its reconstruction.
    pub(super) samples: Samples,
    pub(super) residual: Residual,
    pub(super) window: Window,
}

impl<K: Kernel> Slice<'_, K> {
    /// Codes all macroblocks of the slice in order.
    pub(super) fn run(&mut self) {
        let mut current = Current::new();
        for index in 0..self.macroblocks.len() {
            self.begin(&mut current, index);
            let before = (self.writer.mark(), self.skip_run, self.qp);
            self.macroblock(&mut current);
            while self.rate_control.is_over(index, self.writer.bit_count())
                && !self.rate_control.is_exhausted()
            {
                // The macroblock does not fit into the budget: code it again with a coarser
                // quantizer, and at last as small as possible.
                self.writer.rewind(before.0);
                (self.skip_run, self.qp) = (before.1, before.2);
                let qp = self.rate_control.tighten(index);
                self.set_quantizer(&mut current, qp);
                self.macroblock(&mut current);
            }
            self.rate_control.done(index, self.writer.bit_count());
        }
        if self.skip_run > 0 {
            self.writer.unsigned(self.skip_run);
        }
    }

    fn begin(&mut self, current: &mut Current, index: usize) {
        let (column, row) = (index % self.columns, index / self.columns);
        if column == 0 {
            self.look(row);
        }
        current.index = index;
        (current.x, current.y) = (column as i32 * 16, row as i32 * 16);
        let qp = self.rate_control.quantizer(index, self.writer.bit_count());
        self.set_quantizer(current, qp);
        current.window = self.reach.window(column);
        let source = self.rows.read(row * 16 + 16);
        let width = source.width();
        let at = row * 16 * width + column * 16;
        let luma = Block { samples: &source.luma()[at..], stride: width };
        self.kernel.copy([16, 16], luma, &mut current.source.luma, 16);
        let at = row * 8 * (width / 2) + column * 8;
        for (plane, start) in [source.cb(), source.cr()].into_iter().zip([0, 8]) {
            let plane = Block { samples: &plane[at..], stride: width / 2 };
            self.kernel.copy([8, 8], plane, &mut current.source.chroma[start..], 16);
        }
    }

    /// Sets the macroblock's quantizer to `qp`, or as close to it as `mb_qp_delta` allows: -26 to
    /// 25 (7.4.5).
    fn set_quantizer(&self, current: &mut Current, qp: u8) {
        current.qp = qp.clamp(self.qp.saturating_sub(26), self.qp + 25);
        current.lambda = lambda(current.qp);
    }

    /// Returns the coded neighbours of a macroblock.
    pub(super) fn beside(&self, index: usize) -> Beside<'_> {
        Beside {
            left: (!index.is_multiple_of(self.columns)).then(|| &self.macroblocks[index - 1]),
            above: index.checked_sub(self.columns).map(|above| &self.macroblocks[above]),
        }
    }

    /// Returns the neighbours within the picture from which may be predicted (6.4.9, 8.3).
    pub(super) fn near(&self, index: usize) -> Near {
        let constrained = self.reach.is_constrained();
        let usable = |at: usize| !constrained || self.macroblocks[at].kind == Kind::Intra;
        let column = index % self.columns;
        let above = index >= self.columns;
        Near {
            left: column > 0 && usable(index - 1),
            above: above && usable(index - self.columns),
            corner: above && column > 0 && usable(index - self.columns - 1),
            beyond: above && column + 1 < self.columns && usable(index - self.columns + 1),
        }
    }

    /// Returns the motion of the macroblock's neighbours.
    pub(super) fn neighbours(&self, index: usize) -> Neighbours {
        let quarter = |at: usize, quarter: usize| match &self.macroblocks[at] {
            Macroblock { kind: Kind::Intra, .. } => Neighbour::Still,
            moved => Neighbour::Moved(moved.vectors[quarter]),
        };
        let column = index % self.columns;
        let mut cells = [[Neighbour::Missing; 4]; 3];
        if column > 0 {
            cells[1][0] = quarter(index - 1, 1);
            cells[2][0] = quarter(index - 1, 3);
        }
        if let Some(above) = index.checked_sub(self.columns) {
            cells[0][1] = quarter(above, 2);
            cells[0][2] = quarter(above, 3);
            if column > 0 {
                cells[0][0] = quarter(above - 1, 3);
            }
            if column + 1 < self.columns {
                cells[0][3] = quarter(above + 1, 2);
            }
        }
        Neighbours { cells }
    }

    /// Writes the macroblock in the chosen mode, and keeps its samples in the reconstruction.
    ///
    /// `own` holds the vectors or modes. A macroblock larger than the standard permits is written
    /// as samples (A.3.1: at most 128 bits more than those), unless the slice must not depend on
    /// its position.
    pub(super) fn write(&mut self, current: &mut Current, choice: &Choice, mut own: Macroblock) {
        let predicted_slice = self.reference.is_some();
        let before = self.writer.mark();
        let skip_run = self.skip_run;
        if predicted_slice {
            self.writer.unsigned(skip_run);
            self.skip_run = 0;
        }
        let start = self.writer.bit_count();
        let coded = current.residual.pattern() != 0 || matches!(choice, Choice::Whole { .. });
        let qp = if coded { current.qp } else { self.qp };
        let delta = i32::from(qp) - i32::from(self.qp);
        let beside = Beside {
            left: (!current.index.is_multiple_of(self.columns))
                .then(|| &self.macroblocks[current.index - 1]),
            above: current.index.checked_sub(self.columns).map(|above| &self.macroblocks[above]),
        };
        own.qp = qp;
        let header = (predicted_slice, delta);
        write_macroblock(self.writer, choice, &current.residual, &mut own, beside, header);
        let too_long = self.writer.bit_count() - start > MACROBLOCK_BITS_MAX;
        // Samples begin at a byte boundary, which depends on the length of the header.
        if too_long && !self.reach.is_held() {
            self.writer.rewind(before);
            if predicted_slice {
                self.writer.unsigned(skip_run);
            }
            write_samples(self.writer, &current.source, predicted_slice);
            current.samples = current.source.clone();
            own = Macroblock::new(Kind::Intra, 0);
            own.counts = [16; 24];
        } else {
            self.qp = qp;
        }
        self.keep(current, own);
    }

    /// Skips a macroblock: its samples are the prediction.
    pub(super) fn skip(&mut self, current: &Current, vector: Vector) {
        self.skip_run += 1;
        let mut own = Macroblock::new(Kind::Inter, self.qp);
        own.vectors = [vector; 4];
        self.keep(current, own);
    }

    fn keep(&mut self, current: &Current, own: Macroblock) {
        let (x, y) = (current.x, current.y);
        self.macroblocks[current.index] = own;
        let [cb, cr] =
            [0, 8].map(|start| Block { samples: &current.samples.chroma[start..], stride: 16 });
        let kernel = self.kernel;
        self.reconstruction.luma.place(kernel, [x, y], [16, 16], current.samples.luma_block(0));
        self.reconstruction.cb.place(kernel, [x / 2, y / 2], [8, 8], cb);
        self.reconstruction.cr.place(kernel, [x / 2, y / 2], [8, 8], cr);
    }
}

impl Current {
    fn new() -> Self {
        Self {
            index: 0,
            x: 0,
            y: 0,
            qp: 0,
            lambda: 0,
            source: Samples::ZERO,
            samples: Samples::ZERO,
            residual: Residual::new(),
            window: Window { left: 0, right: 0, top: 0, bottom: 0 },
        }
    }

    /// Returns the luma area of a part of the macroblock.
    pub(super) fn area(&self, part: Part) -> Area {
        Area {
            x: self.x + 8 * part.x as i32,
            y: self.y + 8 * part.y as i32,
            width: 8 * part.width,
            height: 8 * part.height,
        }
    }

    /// Predicts the luma of all parts of the macroblock into `samples`; `vectors` are those of the
    /// quarters.
    pub(super) fn predict_luma(
        &mut self,
        kernel: impl Kernel,
        reference: &Reference<'_>,
        shape: Shape,
        vectors: &[Vector; 4],
    ) {
        for part in shape.parts() {
            let (vector, area) = (vectors[part.y * 2 + part.x], self.area(*part));
            let out = &mut self.samples.luma[part.y * 128 + part.x * 8..];
            reference.predict_luma(kernel, area, vector, out);
        }
    }

    /// Predicts the chroma of all parts of the macroblock into `samples`; `vectors` are those of
    /// the quarters.
    pub(super) fn predict_chroma(
        &mut self,
        kernel: impl Kernel,
        reference: &Reference<'_>,
        shape: Shape,
        vectors: &[Vector; 4],
    ) {
        for part in shape.parts() {
            let (vector, area) = (vectors[part.y * 2 + part.x], self.area(*part));
            let out = &mut self.samples.chroma[part.y * 64 + part.x * 4..];
            reference.predict_chroma(kernel, area, vector, out);
        }
    }
}

/// Most bits of a macroblock that the standard permits, beyond which it is written as samples:
/// RawMbBits + 128 (A.3.1).
const MACROBLOCK_BITS_MAX: usize = 3072 + 128;
