//! Lost source packets as combinations of received packets, in closed form.
//!
//! For one byte position, let `f(x) = sum over j in 0..k of source[j] / (x + j)`. Then a repair
//! packet is a value of it, `repair[i] = f(i)`, and a source packet its residue at `j`. With
//! `Q(x) = product over j in 0..k of (x + j)`, `P = f Q` is a polynomial of degree < k, and
//! `repair[i] = P(i) / Q(i)`, `source[j] = P(j) / Q'(j)`. Any k packets thus give P at k points,
//! and Lagrange's formula gives it at the lost ones. Most factors cancel: with L the lost
//! source indices, R the chosen repair indices (as many), and `y_p` the packet of known index `p`,
//!
//! ```text
//!     source[b] = sum over known p of  G(b) * H(p) / (b + p) * y_p
//!     G(b) = product over r in R of (b + r)  /  product over l in L, l != b, of (b + l)
//!     H(p) = product over l in L of (p + l)  /  product over r in R, r != p, of (p + r)
//! ```
//!
//! This is the closed-form inverse of the Cauchy submatrix and the product with the rest of
//! it in one: two table look-ups per lost packet and known packet, and no elimination.

use super::PACKETS_MAX;
use crate::gf256::{EXP, LOG, LOG_OF_INVERSE};
use crate::kernel::Column;

/// Is what one pattern of losses needs to give any lost packet's coefficients.
pub(super) struct Interpolation {
    /// Known packet indices, k of them.
    known: [u8; PACKETS_MAX],
    /// Logarithm of H for each of them.
    known_log: [u8; PACKETS_MAX],
    lost: [u8; PACKETS_MAX],
    repairs: [u8; PACKETS_MAX],
    lost_count: usize,
}

impl Interpolation {
    /// Prepares for k `known` packet indices, the `lost` source indices among 0..k, and the
    /// `repairs` among the known: as many as are lost. O(k x lost).
    pub(super) fn new(known: &[u8], lost: &[u8], repairs: &[u8]) -> Interpolation {
        debug_assert_eq!(lost.len(), repairs.len());
        let mut interpolation = Interpolation {
            known: [0; PACKETS_MAX],
            known_log: [0; PACKETS_MAX],
            lost: [0; PACKETS_MAX],
            repairs: [0; PACKETS_MAX],
            lost_count: lost.len(),
        };
        interpolation.known[..known.len()].copy_from_slice(known);
        interpolation.lost[..lost.len()].copy_from_slice(lost);
        interpolation.repairs[..lost.len()].copy_from_slice(repairs);
        for (log, &index) in interpolation.known_log.iter_mut().zip(known) {
            *log = log_of_ratio(index, lost, repairs);
        }
        interpolation
    }

    /// Sets `columns[p][row]` to the coefficient of known packet `p` in the lost packet `lost`.
    pub(super) fn fill_row(&self, columns: &mut [Column], row: usize, lost: u8) {
        let repairs = &self.repairs[..self.lost_count];
        let log = log_of_ratio(lost, repairs, &self.lost[..self.lost_count]);
        let known = self.known.iter().zip(&self.known_log);
        for (column, (&index, &known_log)) in columns.iter_mut().zip(known) {
            let distance = LOG_OF_INVERSE[usize::from(index ^ lost)];
            let sum = usize::from(log) + usize::from(known_log) + usize::from(distance);
            column[row] = EXP[sum];
        }
    }
}

/// Returns the logarithm, 0..=254, of `product of (x + a) / product of (x + b)`, where a factor
/// of zero counts as one. Both lists have one length.
fn log_of_ratio(x: u8, numerator: &[u8], denominator: &[u8]) -> u8 {
    let sum: u32 = numerator
        .iter()
        .zip(denominator)
        .map(|(&a, &b)| {
            u32::from(LOG[usize::from(x ^ a)]) + u32::from(LOG_OF_INVERSE[usize::from(x ^ b)])
        })
        .sum();
    (sum % 255) as u8
}
