//! Lost source packets as linear combinations of received packets, in closed form.
//!
//! Both schemes assign every packet a point of the field, and each source packet j a weight `v_j`.
//! At each byte position, a repair packet at point r is the sum over j of
//! `v_j source[j] / (r + x_j)`, with `x_j` the point of source j. Let `t_j = v_j source[j]`, and
//! `f(x) = sum over j of t_j / (x + x_j)`. Then a repair packet is a value of f, and `t_j` its
//! residue at `x_j`. With Q the product of all `x + x_j`, `P = f Q` is a polynomial of degree < k,
//! and `repair = P(r) / Q(r)`, `t_j = P(x_j) / Q'(x_j)`. Any k packets thus determine P at k
//! points, and Lagrange's formula evaluates it at the lost ones. Most factors cancel: with L the
//! points of the lost sources, R those of an equal number of repair packets, and `y_p` the packet
//! (or `t`) at point p,
//!
//! ```text
//!     t_b = sum over known p of  g(b) / (g(p) (b + p)) * y_p
//!     g(x) = product over r in R, r != x, of (x + r)  /  product over l in L, l != x, of (x + l)
//! ```
//!
//! This combines the closed-form inverse of the Cauchy submatrix with the product by the rest of
//! the matrix. Where the known sources are zero, only p in R remain: the inverse alone.

use crate::gf256::{EXP, LOG, LOG_OF_INVERSE, log_table};

/// Coefficients for one loss pattern, which is the set of lost sources and of the repair packets
/// used: the logarithm, at each point, of the function g in the formula above.
pub(super) struct Interpolation {
    ratio_logs: [u8; PACKETS_MAX],
}

impl Interpolation {
    /// Computes the coefficients for the points of the lost sources and of an equal number of
    /// repair packets; all points in use are less than `point_end`. O(lost x `point_end`), 16
    /// points at a time.
    pub(super) fn new(
        lost: impl Iterator<Item = u8>,
        repairs: impl Iterator<Item = u8>,
        point_end: usize,
    ) -> Interpolation {
        let mut sums = [[0_u16; BLOCK]; PACKETS_MAX / BLOCK];
        let sums = &mut sums[..point_end.div_ceil(BLOCK)];
        for point in repairs {
            for_each_block(sums, point, |sum, log| *sum += u16::from(log));
        }
        for point in lost {
            for_each_block(sums, point, |sum, log| *sum += 255 - u16::from(log));
        }
        let mut ratio_logs = [0; PACKETS_MAX];
        for (log, sum) in ratio_logs.iter_mut().zip(sums.as_flattened()) {
            *log = (sum % 255) as u8;
        }
        Interpolation { ratio_logs }
    }

    /// Returns the factor that all coefficients of a known packet have in common: 1 / g, with the
    /// [module](self)'s g, times the `weight` of a source packet; a repair packet has weight 1.
    pub(super) fn of_known(&self, point: u8, weight: u8) -> Factor {
        let log = 255 + usize::from(LOG[usize::from(weight)])
            - usize::from(self.ratio_logs[usize::from(point)]);
        Factor { point, log: (log % 255) as u8 }
    }

    /// Returns the factor that all coefficients for a lost source packet have in common: the
    /// [module](self)'s g divided by the packet's `weight`.
    pub(super) fn of_lost(&self, point: u8, weight: u8) -> Factor {
        let log = usize::from(self.ratio_logs[usize::from(point)])
            + usize::from(LOG_OF_INVERSE[usize::from(weight)]);
        Factor { point, log: (log % 255) as u8 }
    }
}

/// One packet's contribution to a coefficient: its point, and the logarithm of a factor.
#[derive(Clone, Copy, Default)]
pub(super) struct Factor {
    point: u8,
    log: u8,
}

impl Factor {
    /// Returns the coefficient of this known packet in the sum that yields the packet `lost`.
    pub(super) fn coefficient(self, lost: Factor) -> u8 {
        let distance = LOG_OF_INVERSE[usize::from(self.point ^ lost.point)];
        EXP[usize::from(self.log) + usize::from(lost.log) + usize::from(distance)]
    }
}

/// Number of points computed as one SIMD vector. Adding a point to all others permutes the points
/// within each vector by its low four bits, and the vectors by its high four bits.
const BLOCK: usize = 16;

/// Calls `add` for each point x with its sum and the logarithm of `x + point`; the logarithm is 0
/// for x = point.
fn for_each_block(sums: &mut [[u16; BLOCK]], point: u8, add: impl Fn(&mut u16, u8)) {
    let logs = &PERMUTED_LOGS[usize::from(point) % BLOCK];
    for (block, sums) in sums.iter_mut().enumerate() {
        let logs = &logs[block ^ (usize::from(point) / BLOCK)];
        for (sum, &log) in sums.iter_mut().zip(logs) {
            add(sum, log);
        }
    }
}

/// Logarithm of `(16 b + i) + p` at `[p][b][i]`, for p < 16.
static PERMUTED_LOGS: [[[u8; BLOCK]; PACKETS_MAX / BLOCK]; BLOCK] = permuted_logs();

const fn permuted_logs() -> [[[u8; BLOCK]; PACKETS_MAX / BLOCK]; BLOCK] {
    let table = log_table();
    let mut logs = [[[0; BLOCK]; PACKETS_MAX / BLOCK]; BLOCK];
    let mut at = 0;
    while at < BLOCK * PACKETS_MAX {
        let (point, x) = (at / PACKETS_MAX, at % PACKETS_MAX);
        logs[point][x / BLOCK][x % BLOCK] = table[x ^ point];
        at += 1;
    }
    logs
}

/// Maximum number of packets in a block: the indices are elements of GF(2^8).
pub const PACKETS_MAX: usize = 256;
