//! The quantizer inside a slice: chosen so that the slice ends at the size that is wanted.
//!
//! What each row of macroblocks will take is foretold from the picture before and from how much the
//! source has changed; what it did take corrects the rest of the slice. Bits are taken to fall by
//! half every [`OCTAVE`] quantizers.

/// What a strip's past slices tell of the next.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// Bits of each row of macroblocks at QP 0 for an activity of 1: of predicted slices, then of
    /// intra ones.
    rows: [Vec<f64>; 2],
    /// The quantizer that the last slice began with.
    qp: f64,
}

/// How a slice is to be coded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Order {
    pub(super) intra: bool,
    /// Bits to aim at and never to exceed, with the slice header.
    pub(super) target: f64,
    pub(super) ceiling: f64,
    /// The lowest quantizer allowed.
    pub(super) floor: u8,
    /// The least bits that a macroblock takes where none are left.
    pub(super) reserve: f64,
}

/// The pace of one slice.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    order: Order,
    columns: usize,
    /// Whether the quantizer stays as it is whatever comes out.
    fixed: bool,
    qp: u8,
    exhausted: bool,
    /// Bits foretold for each row at QP 0, and for all after it.
    rows: Vec<f64>,
    after: Vec<f64>,
    total: f64,
    /// The quantizers of the macroblocks so far, summed.
    quantizers: f64,
    /// What was foretold for the macroblocks so far, at their quantizers.
    foretold: f64,
    start: f64,
    last_bits: f64,
    /// For each row, what its bits would be at QP 0, summed over its macroblocks.
    measured: Vec<f64>,
}

impl Model {
    /// The model of a strip of which nothing is known.
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        let predicted = vec![FIRST_PREDICTED * columns as f64; rows];
        Self { rows: [predicted, vec![FIRST_INTRA * columns as f64; rows]], qp: 30.0 }
    }

    /// Bits of a predicted slice of this activity at QP 0.
    pub(super) fn weight(&self, activity: &[f64]) -> f64 {
        self.rows[0].iter().zip(activity).map(|(row, activity)| row * activity).sum()
    }

    /// Begins a slice whose rows have this activity.
    pub(super) fn begin(&self, order: Order, activity: &[f64], columns: usize) -> Pace {
        let rows: Vec<f64> = self.rows[usize::from(order.intra)]
            .iter()
            .zip(activity)
            .map(|(row, activity)| (row * activity).max(1e-3))
            .collect();
        let total: f64 = rows.iter().sum();
        let mut after = vec![0.0; rows.len()];
        for row in (1..rows.len()).rev() {
            after[row - 1] = after[row] + rows[row];
        }
        let wanted = quantizer_for(total, order.target);
        // A far finer quantizer has all the detail of the slices before to add.
        let finest = if order.intra { 0.0 } else { self.qp - FINER_STEP };
        let qp = wanted.max(finest).clamp(f64::from(order.floor), QP_MAX).round();
        Pace {
            order,
            columns,
            fixed: false,
            qp: qp as u8,
            exhausted: false,
            measured: vec![0.0; rows.len()],
            rows,
            after,
            total,
            quantizers: 0.0,
            foretold: 0.0,
            start: 0.0,
            last_bits: 0.0,
        }
    }

    /// Learns from a slice of this activity.
    pub(super) fn learn(&mut self, pace: &Pace, activity: &[f64]) {
        if pace.fixed {
            return;
        }
        self.qp = pace.quantizers / (pace.rows.len() * pace.columns) as f64;
        let rows = &mut self.rows[usize::from(pace.order.intra)];
        if pace.exhausted {
            // The rows that were cut short tell nothing, but that more was foretold than there is.
            let scale = pace.correction().clamp(0.5, 2.0);
            rows.iter_mut().for_each(|row| *row *= scale);
            return;
        }
        for ((row, measured), activity) in rows.iter_mut().zip(&pace.measured).zip(activity) {
            let seen = (measured / activity).max(1.0);
            *row = row.powf(1.0 - LEARNING) * seen.powf(LEARNING);
        }
    }
}

impl Pace {
    /// One quantizer throughout.
    pub(super) fn fixed(qp: u8) -> Self {
        let order = Order { intra: false, target: 0.0, ceiling: f64::MAX, floor: qp, reserve: 0.0 };
        Self {
            order,
            columns: 1,
            fixed: true,
            qp,
            exhausted: false,
            rows: Vec::new(),
            after: Vec::new(),
            total: 0.0,
            quantizers: 0.0,
            foretold: 0.0,
            start: 0.0,
            last_bits: 0.0,
            measured: Vec::new(),
        }
    }

    /// The quantizer that the slice begins with.
    pub(super) fn first(&self) -> u8 {
        self.qp
    }

    /// Notes that the slice header is written.
    pub(super) fn start(&mut self, bits: usize) {
        self.start = bits as f64;
        self.last_bits = bits as f64;
    }

    /// The quantizer of the macroblock `index`, when `bits` have been written.
    pub(super) fn quantizer(&mut self, index: usize, bits: usize) -> u8 {
        let column = index % self.columns;
        if !self.fixed && index > 0 && column.is_multiple_of(STEP) {
            self.adjust(index / self.columns, column, bits as f64);
        }
        self.qp
    }

    /// Books the macroblock `index`, after which `bits` have been written.
    pub(super) fn done(&mut self, index: usize, bits: usize) {
        if self.fixed {
            return;
        }
        let row = index / self.columns;
        let fall = (-f64::from(self.qp) / OCTAVE).exp2();
        self.foretold += self.rows[row] / self.columns as f64 * fall;
        self.measured[row] += (bits as f64 - self.last_bits) / fall;
        self.last_bits = bits as f64;
        self.quantizers += f64::from(self.qp);
    }

    /// Whether too few bits are left for the macroblocks after `index`, if `bits` are written.
    pub(super) fn is_over(&self, index: usize, bits: usize) -> bool {
        let left = (self.rows.len() * self.columns).saturating_sub(index + 1);
        !self.fixed && bits as f64 + left as f64 * self.order.reserve > self.order.ceiling
    }

    /// From here on every macroblock takes as little as it can.
    pub(super) fn exhaust(&mut self) {
        self.exhausted = true;
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// How many times more was taken than was foretold.
    fn correction(&self) -> f64 {
        let prior = PRIOR * self.order.target.max(1.0);
        (self.last_bits - self.start + prior) / (self.foretold + prior)
    }

    fn adjust(&mut self, row: usize, column: usize, bits: f64) {
        let share = 1.0 - column as f64 / self.columns as f64;
        let rest = (self.rows[row] * share + self.after[row]) * self.correction();
        // Towards the end the slack counts too: a few bits too many then are no reason to coarsen.
        let progress = 1.0 - (self.rows[row] * share + self.after[row]) / self.total;
        let slack = 0.5 * (self.order.ceiling - self.order.target) * progress;
        let wanted = quantizer_for(rest, self.order.target - bits + slack);
        let current = f64::from(self.qp);
        let apart = wanted - current;
        // Few changes: each costs bits, and is seen.
        let step = match column {
            0 if apart.abs() > 0.6 => apart.round().clamp(-2.0, 4.0),
            _ if apart > 1.2 => apart.round().clamp(0.0, 2.0),
            _ if apart < -2.0 => -1.0,
            _ => 0.0,
        };
        self.qp = (current + step).clamp(f64::from(self.order.floor), QP_MAX) as u8;
    }
}

/// The quantizer at which a weight takes that many bits.
pub(super) fn quantizer_for(weight: f64, bits: f64) -> f64 {
    if bits <= 0.0 {
        return QP_MAX;
    }
    (OCTAVE * (weight / bits).log2()).clamp(0.0, QP_MAX)
}

/// The quantizers that halve the bits: H.264's step doubles every six, and with it more
/// macroblocks have nothing left to code.
const OCTAVE: f64 = 5.0;
pub(super) const QP_MAX: f64 = 51.0;
/// Macroblocks between two looks at what is left.
const STEP: usize = 4;
/// The largest step to a finer quantizer from one slice to the next.
const FINER_STEP: f64 = 8.0;
/// The share of the target after which the slice's own bits count as much as the past's.
const PRIOR: f64 = 0.1;
/// The share of a row's surprise that is believed.
const LEARNING: f64 = 0.6;
/// Bits of a macroblock at QP 0 for an activity of 1, to begin with.
const FIRST_PREDICTED: f64 = 300.0;
const FIRST_INTRA: f64 = 600.0;
