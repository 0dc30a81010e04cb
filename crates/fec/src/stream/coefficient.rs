//! Coefficient generator, specified bit for bit in docs/protocol.md, "Streaming code".
//!
//! Each coefficient is computed independently of those before it, so a receiver computes only those
//! of the packets it lacks. One computation yields the coefficients of eight packets with
//! consecutive ids.

/// Returns the coefficient of source packet `id` in the repair packet of `seed`: 1..=255, never 0.
///
/// Only the low 32 bits of the id are used. O(1).
pub fn coefficient(seed: u16, id: u64) -> u8 {
    octet(seed, id)[(id % OCTET) as usize]
}

/// Writes the coefficients of the source packets `first`, `first + 1`, .. in the repair packet of
/// `seed`; `first` and `coefficients.len()` are multiples of 8.
pub(super) fn fill(seed: u16, first: u64, coefficients: &mut [u8]) {
    for (eight, id) in coefficients.chunks_exact_mut(8).zip(0..) {
        eight.copy_from_slice(&octet(seed, first + OCTET * id));
    }
}

/// The number of consecutive source packets whose coefficients are computed at once.
pub(super) const OCTET: u64 = 8;

/// Returns the coefficients of the eight source packets whose ids differ from `id` at most in the
/// low three bits.
///
/// They are the first output of SplitMix64 from a state made of the seed and the id; zeros become
/// ones.
#[inline]
pub(super) fn octet(seed: u16, id: u64) -> [u8; OCTET as usize] {
    let state = (u64::from(seed) << 32) + u64::from(id as u32) / OCTET;
    let mut word = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (word ^ word >> 31).to_le_bytes().map(|byte| byte.max(1))
}

/// Transposes coefficients: from one word per sum with a byte per packet, to one word per packet
/// with a byte per sum, eight of each.
#[inline]
pub(super) fn transpose(mut rows: [u64; 8]) -> [u64; 8] {
    // Exchanges the off-diagonal quarters of the matrix, then of each quarter, then of each of
    // those.
    exchange::<4>(&mut rows, 0xFFFF_FFFF);
    exchange::<2>(&mut rows, 0xFFFF_0000_FFFF);
    exchange::<1>(&mut rows, 0x00FF_00FF_00FF_00FF);
    rows
}

/// Exchanges the two off-diagonal quarters of each square of `2 * DISTANCE` rows and bytes; `low`
/// selects the lower half of each square in a row.
#[inline]
fn exchange<const DISTANCE: usize>(rows: &mut [u64; 8], low: u64) {
    for row in 0..8 {
        if row & DISTANCE == 0 {
            let exchanged = ((rows[row] >> (8 * DISTANCE)) ^ rows[row + DISTANCE]) & low;
            rows[row] ^= exchanged << (8 * DISTANCE);
            rows[row + DISTANCE] ^= exchanged;
        }
    }
}
