//! Which quantizer makes a slice of the size wanted.

use tautline_units::ByteCount;

use crate::Picture;

/// The size model of one strip.
#[derive(Clone, Debug)]
pub(crate) struct Quantizer {
    /// log2 of the bytes a predicted slice would take at QP 0, by the slices so far.
    predicted: f64,
    /// The bytes of intra slices over those that the activity tells.
    intra_scale: f64,
    /// Bytes coded beyond the budgets so far, less what is forgiven.
    debt: f64,
    last_qp: i32,
    macroblocks: f64,
}

impl Quantizer {
    pub(crate) fn new(width: usize, height: usize) -> Self {
        let macroblocks = (width / 16 * (height / 16)) as f64;
        Self {
            predicted: (macroblocks * 300.0).log2(),
            intra_scale: 1.0,
            debt: 0.0,
            last_qp: 30,
            macroblocks,
        }
    }

    pub(crate) fn for_predicted(&mut self, budget: ByteCount) -> i32 {
        let target = self.target(budget) - self.overhead();
        let qp = 6.0 * (self.predicted - target.max(1.0).log2());
        (qp.round() as i32).clamp(self.last_qp - 6, 51).clamp(QP_MIN, 51)
    }

    pub(crate) fn predicted_done(&mut self, qp: i32, size: ByteCount) {
        let bytes = (size.get() as f64 - self.overhead()).max(1.0);
        let seen = bytes.log2() + f64::from(qp) / 6.0;
        self.predicted += 0.6 * (seen - self.predicted);
    }

    pub(crate) fn for_intra(&mut self, activity: &Activity, budget: ByteCount) -> i32 {
        let allowed = budget.get() as f64 * INTRA_BUDGETS / self.intra_scale;
        (QP_MIN..51).find(|&qp| activity.bytes(qp) <= allowed).unwrap_or(51)
    }

    pub(crate) fn intra_done(&mut self, activity: &Activity, qp: i32, size: ByteCount) {
        self.intra_scale = (size.get() as f64 / activity.bytes(qp)).clamp(0.1, 10.0);
    }

    pub(crate) fn intra_retry(
        &mut self,
        activity: &Activity,
        qp: i32,
        size: ByteCount,
        budget: ByteCount,
    ) -> Option<i32> {
        let over = size.get() as f64 > budget.get() as f64 * INTRA_BUDGETS * 1.25;
        let higher = self.for_intra(activity, budget);
        (over && higher > qp).then_some(higher)
    }

    pub(crate) fn settle(&mut self, size: ByteCount, budget: ByteCount, qp: i32) {
        self.last_qp = qp;
        let budget = budget.get() as f64;
        self.debt = (self.debt + size.get() as f64 - budget).clamp(-2.0 * budget, 8.0 * budget);
    }

    fn target(&self, budget: ByteCount) -> f64 {
        let budget = budget.get() as f64;
        (budget - self.debt / 10.0).clamp(0.5 * budget, 1.2 * budget)
    }

    fn overhead(&self) -> f64 {
        8.0 + self.macroblocks / 64.0
    }
}

const INTRA_BUDGETS: f64 = 3.0;
const QP_MIN: i32 = 12;

/// How many transform coefficients survive at each quantizer, were the strip coded without
/// prediction from another picture.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    /// Coefficients whose highest quantizer that keeps them is the index.
    counts: [f64; 52],
    macroblocks: f64,
}

impl Activity {
    fn bytes(&self, qp: i32) -> f64 {
        let bits: f64 = self
            .counts
            .iter()
            .zip(0..)
            .filter(|&(_, highest)| highest >= qp)
            .map(|(count, highest)| count * (3.5 + 1.0 * f64::from(highest - qp) / 6.0))
            .sum();
        (bits + self.macroblocks * 8.0) / 8.0
    }
}

/// Measures `picture`, every other row of blocks.
pub(crate) fn activity(picture: &Picture) -> Activity {
    let width = picture.width();
    let luma = picture.luma();
    let mut counts = [0u32; 52];
    for top in (4..picture.height()).step_by(8) {
        for left in (4..width).step_by(4) {
            let block = residual(luma, width, top, left);
            for coefficient in hadamard(block) {
                let magnitude = coefficient.unsigned_abs() as usize;
                counts[usize::from(HIGHEST_QP[magnitude.min(HIGHEST_QP.len() - 1)])] += 1;
            }
        }
    }
    // Index 0 also holds what no quantizer keeps.
    counts[0] = 0;
    Activity {
        counts: counts.map(|count| f64::from(count) * 2.0),
        macroblocks: (width / 16 * (picture.height() / 16)) as f64,
    }
}

fn residual(luma: &[u8], width: usize, top: usize, left: usize) -> [i32; 16] {
    let at = |row: usize, column: usize| i32::from(luma[(top + row) * width + left + column]);
    let above: [i32; 4] = std::array::from_fn(|c| i32::from(luma[(top - 1) * width + left + c]));
    let beside: [i32; 4] = std::array::from_fn(|r| i32::from(luma[(top + r) * width + left - 1]));
    let mean = (above.iter().sum::<i32>() + beside.iter().sum::<i32>() + 4) >> 3;
    let mut best = [0; 16];
    let mut least = i32::MAX;
    let mut consider = |prediction: &dyn Fn(usize, usize) -> i32| {
        let candidate: [i32; 16] =
            std::array::from_fn(|i| at(i / 4, i % 4) - prediction(i / 4, i % 4));
        let sum = candidate.iter().map(|v| v.abs()).sum();
        if sum < least {
            least = sum;
            best = candidate;
        }
    };
    consider(&|_, _| mean);
    consider(&|_, column| above[column]);
    consider(&|row, _| beside[row]);
    best
}

fn hadamard(mut block: [i32; 16]) -> [i32; 16] {
    let butterfly = |block: &mut [i32; 16], start: usize, step: usize| {
        let [a, b, c, d] = std::array::from_fn(|i| block[start + i * step]);
        let (p, q, r, s) = (a + d, b + c, b - c, a - d);
        block[start] = p + q;
        block[start + step] = s + r;
        block[start + 2 * step] = p - q;
        block[start + 3 * step] = s - r;
    };
    for row in 0..4 {
        butterfly(&mut block, row * 4, 1);
    }
    for column in 0..4 {
        butterfly(&mut block, column, 4);
    }
    block
}

/// For each magnitude of a Hadamard coefficient (four times the orthonormal one), the highest
/// quantizer that does not make it zero.
static HIGHEST_QP: [u8; 4096] = highest_qp();

const fn highest_qp() -> [u8; 4096] {
    let mut table = [0; 4096];
    let mut magnitude = 0;
    while magnitude < 4096 {
        let mut qp = 0;
        // A coefficient is kept from two thirds of the step on (intra rounding of 1/3); the step
        // is STEPS / 16 and doubles every six quantizers.
        while qp < 51 && 3 * 16 * magnitude >= 2 * 4 * (STEPS[(qp + 1) % 6] << ((qp + 1) / 6)) {
            qp += 1;
        }
        table[magnitude] = qp as u8;
        magnitude += 1;
    }
    table
}

/// Sixteen times the quantizer step of QP 0 to 5 (8.5.9).
const STEPS: [usize; 6] = [10, 11, 13, 14, 16, 18];
