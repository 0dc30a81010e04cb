//! Lost source packets as combinations of received packets, in closed form.
//!
//! Both schemes give every packet a point of the field, and a source packet j a weight `v_j`, so
//! that at each byte position a repair packet at point r is the sum over j of
//! `v_j source[j] / (r + x_j)`, with `x_j` the point of source j. Let `t_j = v_j source[j]`, and
//! `f(x) = sum over j of t_j / (x + x_j)`. Then a repair packet is a value of f, and `t_j` its
//! residue at `x_j`. With Q the product of all `x + x_j`, `P = f Q` is a polynomial of degree < k,
//! and `repair = P(r) / Q(r)`, `t_j = P(x_j) / Q'(x_j)`. Any k packets thus give P at k points,
//! and Lagrange's formula gives it at the lost ones. Most factors cancel: with L the points of the
//! lost sources, R those of as many repair packets, and `y_p` the packet (or `t`) at point p,
//!
//! ```text
//!     t_b = sum over known p of  G(b) * H(p) / (b + p) * y_p
//!     G(b) = product over r in R of (b + r)  /  product over l in L, l != b, of (b + l)
//!     H(p) = product over l in L of (p + l)  /  product over r in R, r != p, of (p + r)
//! ```
//!
//! This is the closed-form inverse of the Cauchy submatrix and the product with the rest of it in
//! one. Where the known sources are zero, only p in R remain: the inverse alone.

use super::PACKETS_MAX;
use crate::gf256::{EXP, LOG, LOG_OF_INVERSE};
use crate::kernel::SOLVED_MAX;

/// Is what one pattern of losses needs to give any lost packet's coefficients.
pub(super) struct Interpolation {
    /// Is each known packet's point and the logarithm of H there, times its weight.
    known: [(u8, u8); PACKETS_MAX],
    known_count: usize,
    lost: Points,
    repairs: Points,
}

/// Is a list of points.
#[derive(Clone, Copy)]
pub(super) struct Points {
    points: [u8; SOLVED_MAX],
    count: usize,
}

impl Interpolation {
    /// Prepares for the points of the lost sources and of as many repair packets. The known
    /// packets are those repair packets, until more are [`add`](Interpolation::add)ed.
    /// O(lost x lost).
    pub(super) fn new(lost: Points, repairs: Points) -> Interpolation {
        debug_assert_eq!(lost.count, repairs.count);
        let mut interpolation =
            Interpolation { known: [(0, 0); PACKETS_MAX], known_count: 0, lost, repairs };
        for &point in repairs.as_slice() {
            interpolation.add(point, 1);
        }
        interpolation
    }

    /// Adds a known packet: its point and its weight. O(lost).
    pub(super) fn add(&mut self, point: u8, weight: u8) {
        let log = log_of_ratio(point, &self.lost, &self.repairs);
        self.known[self.known_count] = (point, sum_of_logs(log, LOG[usize::from(weight)]));
        self.known_count += 1;
    }

    /// Gives the coefficient of each known packet, in the order in which they became known, in
    /// the lost source at a point and with a weight.
    pub(super) fn coefficients(&self, lost: u8, weight: u8) -> impl Iterator<Item = u8> {
        let log = log_of_ratio(lost, &self.repairs, &self.lost);
        let log = sum_of_logs(log, LOG_OF_INVERSE[usize::from(weight)]);
        self.known[..self.known_count].iter().map(move |&(point, known_log)| {
            let distance = LOG_OF_INVERSE[usize::from(point ^ lost)];
            EXP[usize::from(log) + usize::from(known_log) + usize::from(distance)]
        })
    }
}

impl Points {
    /// Collects points, at most [`SOLVED_MAX`].
    pub(super) fn collect(from: impl Iterator<Item = u8>) -> Points {
        let mut points = Points { points: [0; SOLVED_MAX], count: 0 };
        for point in from {
            points.points[points.count] = point;
            points.count += 1;
        }
        points
    }

    fn as_slice(&self) -> &[u8] {
        &self.points[..self.count]
    }
}

/// Returns the logarithm, 0..=254, of `product of (x + a) / product of (x + b)`, where a factor
/// of zero counts as one. Both lists have one length.
fn log_of_ratio(x: u8, numerator: &Points, denominator: &Points) -> u8 {
    let sum: u32 = numerator
        .as_slice()
        .iter()
        .zip(denominator.as_slice())
        .map(|(&a, &b)| {
            u32::from(LOG[usize::from(x ^ a)]) + u32::from(LOG_OF_INVERSE[usize::from(x ^ b)])
        })
        .sum();
    (sum % 255) as u8
}

fn sum_of_logs(a: u8, b: u8) -> u8 {
    ((u16::from(a) + u16::from(b)) % 255) as u8
}
