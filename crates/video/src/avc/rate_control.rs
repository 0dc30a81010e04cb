//! Rate control within a slice: selects its quantizer so that the slice has the target size.
//!
//! The bits of each macroblock are predicted from its row in the previous picture and from the
//! change of the source there. The bits used so far correct the rest of the slice. Between nearby
//! quantizers, bits are assumed to halve every [`NEAR_OCTAVE`]. The quantizer changes rarely,
//! within a slice and from one to the next: each change costs bits, and a finer quantizer than
//! before codes noise anew.

/// Size model of a strip's slices, learned from earlier ones.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// Bits to expect of each row of macroblocks at QP 0 for an activity of 1: in predicted slices,
    /// then in intra ones.
    rows: [Vec<f64>; 2],
    /// Mean quantizer of the last slice of either kind; 30 before the first.
    qp: f64,
}

/// Target of one slice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Order {
    pub(super) intra: bool,
    /// Target size in bits; `ceiling` is the size that is never exceeded. Both include the slice
    /// header.
    pub(super) target: f64,
    pub(super) ceiling: f64,
    /// Lowest quantizer allowed.
    pub(super) floor: u8,
    /// Bits kept free for each macroblock not coded yet: those of one that is made as small as
    /// possible.
    pub(super) reserve: f64,
}

/// Rate control of one slice.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    order: Order,
    columns: usize,
    /// True if the quantizer stays constant regardless of the size.
    fixed: bool,
    qp: u8,
    /// First row of macroblocks with one that did not fit; `None` if all fit so far.
    short_from: Option<usize>,
    exhausted: bool,
    /// Predicted bits of each row of macroblocks at QP 0 for an activity of 1, from the model.
    rows: Vec<f64>,
    /// Predicted bits of each macroblock at QP 0; `ahead` is their sum over the macroblocks not
    /// coded yet.
    weights: Vec<f64>,
    ahead: f64,
    /// Sum of the quantizers of the macroblocks so far.
    quantizers: f64,
    /// Predicted bits of the macroblocks so far, at their quantizers.
    foretold: f64,
    start: f64,
    last_bits: f64,
    /// Bits that each row of macroblocks took, converted to QP 0.
    measured: Vec<f64>,
}

impl Model {
    /// Creates the initial model of a strip.
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let predicted = vec![FIRST_PREDICTED * columns as f64; rows];
        Self { rows: [predicted, vec![FIRST_INTRA * columns as f64; rows]], qp: 30.0 }
    }

    /// Returns the bits at QP 0 of a predicted slice of this activity, if bits halve every
    /// [`OCTAVE`] between QP 0 and the last slice's quantizer. The result predicts the size at
    /// quantizers far from the last one.
    pub(super) fn weight(&self, activity: &[f64], columns: usize) -> f64 {
        let fall = self.qp / OCTAVE - self.qp / NEAR_OCTAVE;
        self.weights(false, activity, columns).sum::<f64>() * fall.exp2()
    }

    /// Returns the predicted bits of each macroblock at QP 0, for slices of this kind.
    fn weights(&self, intra: bool, activity: &[f64], columns: usize) -> impl Iterator<Item = f64> {
        let rows = self.rows[usize::from(intra)].iter().zip(activity.chunks_exact(columns));
        rows.flat_map(move |(row, activity)| {
            activity.iter().map(move |activity| weight(*row, *activity, columns))
        })
    }

    /// Begins the rate control of a slice whose macroblocks have this activity.
    pub(super) fn begin(&self, order: Order, activity: &[f64], columns: usize) -> RateControl {
        let weights: Vec<f64> = self.weights(order.intra, activity, columns).collect();
        let total: f64 = weights.iter().sum();
        let wanted = quantizer_for(total, order.target);
        let apart = wanted - self.qp;
        let wanted = match order.intra {
            false if apart.abs() < NEAR => self.qp + apart / 2.0,
            _ => wanted,
        };
        // A much finer quantizer would add all the detail missing from earlier slices.
        let finest = if order.intra { 0.0 } else { self.qp - FINER_STEP };
        let qp = wanted.max(finest).clamp(f64::from(order.floor), QP_MAX).round();
        RateControl {
            order,
            columns,
            fixed: false,
            qp: qp as u8,
            short_from: None,
            exhausted: false,
            measured: vec![0.0; weights.len() / columns],
            rows: self.rows[usize::from(order.intra)].clone(),
            weights,
            ahead: total,
            quantizers: 0.0,
            foretold: 0.0,
            start: 0.0,
            last_bits: 0.0,
        }
    }

    /// Updates the model with the bits of a coded slice of this activity; does nothing for a
    /// constant quantizer. Rows from the one in which the bits ran short on count as more expensive
    /// than predicted.
    pub(super) fn learn(&mut self, rate_control: &RateControl, activity: &[f64]) {
        if rate_control.fixed {
            return;
        }
        self.qp = rate_control.quantizers / rate_control.weights.len() as f64;
        let rows = &mut self.rows[usize::from(rate_control.order.intra)];
        let activity = activity.chunks_exact(rate_control.columns);
        let seen = rows.iter_mut().zip(&rate_control.measured).zip(activity).enumerate();
        for (index, ((row, measured), activity)) in seen {
            if rate_control.short_from.is_some_and(|short| index >= short) {
                // A truncated row shows only that it needed more bits than predicted.
                *row = (*row * SHORT_GROWTH).max(FIRST_PREDICTED * rate_control.columns as f64);
                continue;
            }
            let mean = activity.iter().sum::<f64>() / rate_control.columns as f64;
            let seen = (measured / mean).max(1.0);
            *row = row.powf(1.0 - LEARNING) * seen.powf(LEARNING);
        }
    }
}

impl RateControl {
    /// Creates rate control with a constant quantizer.
    pub(super) fn fixed(qp: u8) -> Self {
        let order = Order { intra: false, target: 0.0, ceiling: f64::MAX, floor: qp, reserve: 0.0 };
        Self {
            order,
            columns: 1,
            fixed: true,
            qp,
            short_from: None,
            exhausted: false,
            rows: Vec::new(),
            weights: Vec::new(),
            ahead: 0.0,
            quantizers: 0.0,
            foretold: 0.0,
            start: 0.0,
            last_bits: 0.0,
            measured: Vec::new(),
        }
    }

    /// Returns the initial quantizer of the slice.
    pub(super) fn first(&self) -> u8 {
        self.qp
    }

    /// Records the size of the slice header.
    pub(super) fn start(&mut self, bits: usize) {
        self.start = bits as f64;
        self.last_bits = bits as f64;
    }

    /// Updates the prediction with the measured activity of a row's macroblocks; does nothing for a
    /// constant quantizer.
    pub(super) fn look(&mut self, row: usize, activity: &[f64]) {
        if self.fixed {
            return;
        }
        let weights = &mut self.weights[row * self.columns..][..self.columns];
        for (known, activity) in weights.iter_mut().zip(activity) {
            let weight = weight(self.rows[row], *activity, self.columns);
            self.ahead += weight - *known;
            *known = weight;
        }
    }

    /// Returns the quantizer of the macroblock `index`, with `bits` written so far; unless it is
    /// constant, adjusts it at the start of each row but the first and after every eight
    /// macroblocks.
    pub(super) fn quantizer(&mut self, index: usize, bits: usize) -> u8 {
        let column = index % self.columns;
        if !self.fixed && index > 0 && column.is_multiple_of(STEP) {
            self.adjust(column, bits as f64);
        }
        self.qp
    }

    /// Records that the macroblock `index` is coded, after which `bits` are written in all; does
    /// nothing for a constant quantizer.
    pub(super) fn done(&mut self, index: usize, bits: usize) {
        if self.fixed {
            return;
        }
        let row = index / self.columns;
        let fall = (-f64::from(self.qp) / NEAR_OCTAVE).exp2();
        self.foretold += self.weights[index] * fall;
        self.ahead -= self.weights[index];
        self.measured[row] += (bits as f64 - self.last_bits) / fall;
        self.last_bits = bits as f64;
        self.quantizers += f64::from(self.qp);
    }

    /// Returns whether too few bits are left for the macroblocks after `index`, with `bits`
    /// written.
    pub(super) fn is_over(&self, index: usize, bits: usize) -> bool {
        let left = self.weights.len().saturating_sub(index + 1);
        !self.fixed && bits as f64 + left as f64 * self.order.reserve > self.order.ceiling
    }

    /// Makes the quantizer coarser from the macroblock `index` on, and returns it; if it is the
    /// coarsest, makes every further macroblock as small as possible.
    pub(super) fn tighten(&mut self, index: usize) -> u8 {
        self.short_from.get_or_insert(index / self.columns);
        if f64::from(self.qp) < QP_MAX {
            self.qp = (self.qp + TIGHTER_STEP).min(QP_MAX as u8);
        } else {
            self.exhausted = true;
        }
        self.qp
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Returns whether the quantizer stays constant regardless of the size.
    pub(super) fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Returns the target of the slice.
    pub(super) fn order(&self) -> Order {
        self.order
    }

    /// Returns the ratio of the bits used so far to those predicted, drawn towards 1 at the start
    /// of a slice.
    fn correction(&self) -> f64 {
        let prior = PRIOR * self.order.target.max(1.0);
        (self.last_bits - self.start + prior) / (self.foretold + prior)
    }

    fn adjust(&mut self, column: usize, bits: f64) {
        let rest = self.ahead * self.correction();
        let wanted = quantizer_for(rest, self.order.target - bits);
        let current = f64::from(self.qp);
        let apart = wanted - current;
        let step = match column {
            0 if apart.abs() > ROW_APART => apart.round().clamp(-2.0, (apart / 2.0).max(4.0)),
            _ if apart > APART => apart.round().clamp(0.0, (apart / 2.0).max(2.0)).round(),
            _ if apart < -FINER_APART => -1.0,
            _ => 0.0,
        };
        self.qp = (current + step).clamp(f64::from(self.order.floor), QP_MAX) as u8;
    }
}

/// Returns the predicted bits of a macroblock of this activity at QP 0, in a row of this measure.
fn weight(row: f64, activity: f64, columns: usize) -> f64 {
    (row * activity / columns as f64).max(1e-4)
}

/// Returns the quantizer at which `weight` bits at QP 0 become `bits`; the coarsest if `bits` is
/// not positive.
pub(super) fn quantizer_for(weight: f64, bits: f64) -> f64 {
    if bits <= 0.0 {
        return QP_MAX;
    }
    (NEAR_OCTAVE * (weight / bits).log2()).clamp(0.0, QP_MAX)
}

/// Quantizer steps that halve the bits over a wide range: H.264's step doubles every six, and
/// additionally more macroblocks have nothing left to code.
pub(super) const OCTAVE: f64 = 5.0;
/// Quantizer steps that halve the bits between nearby quantizers: with noise, it is about three
/// near the quantizer that just codes the noise.
const NEAR_OCTAVE: f64 = 4.0;
pub(super) const QP_MAX: f64 = 51.0;
/// Number of macroblocks in a row between two adjustments of the quantizer.
const STEP: usize = 8;
/// Least difference between the wanted and the present quantizer for a change at a row's start;
/// within a row it is [`APART`] for a coarser and [`FINER_APART`] for a finer one.
const ROW_APART: f64 = 1.0;
const APART: f64 = 2.0;
const FINER_APART: f64 = 3.0;
/// Difference from the last slice's quantizer below which a predicted slice begins half way to the
/// wanted one.
const NEAR: f64 = 3.0;
/// Largest step to a finer quantizer from one slice to a predicted one after it.
const FINER_STEP: f64 = 8.0;
/// Step to a coarser quantizer for a macroblock that does not fit.
const TIGHTER_STEP: u8 = 8;
/// Share of the target after which the slice's own bits weigh as much as the prediction.
const PRIOR: f64 = 0.3;
/// Factor by which the predicted bits of each row grow, from the row on in which a slice's bits ran
/// short.
const SHORT_GROWTH: f64 = 2.0;
/// Weight of a row's measured bits, from 0 to 1, when their logarithm is averaged into the model.
const LEARNING: f64 = 0.6;
/// Initial bits of a macroblock of a predicted slice at QP 0 for an activity of 1; [`FIRST_INTRA`]
/// are those of an intra slice.
const FIRST_PREDICTED: f64 = 975.0;
const FIRST_INTRA: f64 = 1950.0;
