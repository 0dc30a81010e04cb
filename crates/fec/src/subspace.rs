//! The polynomials that vanish on the subspaces V_k = {0, .. 2^k - 1} of GF(2^8).
//!
//! W_k(x) is the product of `x - v` over all v in V_k. It is linear over GF(2), so it has one value
//! on each coset `b + V_k`, and W_(k+1)(x) = W_k(x) (W_k(x) + W_k(2^k)).

use crate::gf256::{invert, multiply};

/// Number of elements of GF(2^8); each packet of a block has a different one as its point.
pub(crate) const POINTS: usize = 256;

/// One more than the greatest k: a block of the FFT code has at most 2^7 repair packets.
const LAYERS: usize = 8;

/// Value of W_k(x) / W_k(2^k) on the coset of `x = b 2^(k+1)`, at `[k][b]`.
///
/// These are the factors of layer k's butterflies. Source: [LCH] section III.
pub(crate) static SKEWS: [[u8; 128]; LAYERS] = skews();

/// Value of W_k on the coset `b 2^k + V_k` divided by the product of all nonzero elements of V_k,
/// at `[k][b]`; b > 0.
///
/// It is the value at x of the polynomial of degree < 2^k that is 1 at r in V_k and 0 on the rest
/// of V_k, times `x - r`.
pub(crate) static WEIGHTS: [[u8; 256]; LAYERS] = weights();

/// Returns W_k(x), the product of `x - v` over all v from 0 to 2^k - 1 in GF(2^8).
const fn vanishing(k: usize, x: u8) -> u8 {
    let mut value = x;
    let mut layer = 0;
    while layer < k {
        value = multiply(value, value ^ vanishing(layer, 1 << layer));
        layer += 1;
    }
    value
}

const fn skews() -> [[u8; 128]; LAYERS] {
    let mut skews = [[0; 128]; LAYERS];
    let mut k = 0;
    while k < LAYERS {
        let scale = inverse(vanishing(k, 1 << k));
        let mut block = 0;
        while block < 128 >> k {
            skews[k][block] = multiply(vanishing(k, (block << (k + 1)) as u8), scale);
            block += 1;
        }
        k += 1;
    }
    skews
}

const fn weights() -> [[u8; 256]; LAYERS] {
    let mut weights = [[0; 256]; LAYERS];
    let mut k = 0;
    while k < LAYERS {
        let mut product = 1;
        let mut element = 1;
        while element < 1 << k {
            product = multiply(product, element as u8);
            element += 1;
        }
        let mut block = 1;
        while block < 256 >> k {
            weights[k][block] = multiply(vanishing(k, (block << k) as u8), inverse(product));
            block += 1;
        }
        k += 1;
    }
    weights
}

/// Returns the inverse of a nonzero element.
const fn inverse(element: u8) -> u8 {
    match invert(element) {
        Some(inverse) => inverse,
        None => panic!("no polynomial vanishes outside its subspace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the product of `x - v` over V_k, without the factor zero.
    fn product(k: usize, x: u8) -> u8 {
        (0..1 << k).map(|v: u16| x ^ v as u8).filter(|&factor| factor != 0).fold(1, multiply)
    }

    #[test]
    fn each_skew_is_the_product_over_the_subspace() {
        for (k, skews) in SKEWS.iter().enumerate() {
            assert_eq!(skews[0], 0);
            for (block, &skew) in skews.iter().enumerate().take(128 >> k).skip(1) {
                let x = (block << (k + 1)) as u8;
                assert_eq!(multiply(skew, product(k, 1 << k)), product(k, x));
            }
        }
    }

    #[test]
    fn each_weight_is_the_lagrange_polynomials() {
        for (k, weights) in WEIGHTS.iter().enumerate() {
            for (block, &weight) in weights.iter().enumerate().take(256 >> k).skip(1) {
                let x = (block << k) as u8;
                assert_eq!(multiply(weight, product(k, 0)), product(k, x));
            }
        }
    }
}
