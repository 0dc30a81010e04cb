//! Where coefficients come from: docs/protocol.md, "Streaming code", bit for bit.
//!
//! Any coefficient can be had without those before it, so that a receiver computes only those of
//! the packets it lacks; and one computation gives those of eight packets with consecutive ids.

/// Returns the coefficient of source packet `id` in the repair packet of `seed`: 1..=255, never 0.
///
/// Of the id only the low 32 bits count. O(1).
pub fn coefficient(seed: u16, id: u64) -> u8 {
    octet(seed, id)[(id % OCTET) as usize]
}

/// Writes the coefficients of the source packets `first`, `first + 1`, ..
pub(super) fn fill(seed: u16, first: u64, coefficients: &mut [u8]) {
    let head = ((OCTET - first % OCTET) % OCTET) as usize;
    let (head, rest) = coefficients.split_at_mut(head.min(coefficients.len()));
    let skipped = (first % OCTET) as usize;
    if !head.is_empty() {
        head.copy_from_slice(&octet(seed, first)[skipped..][..head.len()]);
    }
    let mut id = first.wrapping_add(head.len() as u64);
    for eight in rest.chunks_mut(OCTET as usize) {
        eight.copy_from_slice(&octet(seed, id)[..eight.len()]);
        id = id.wrapping_add(OCTET);
    }
}

/// Is the number of consecutive source packets whose coefficients are computed at once.
const OCTET: u64 = 8;

/// Returns the coefficients of the eight source packets whose ids agree with `id` but for the low
/// three bits.
///
/// The first output of SplitMix64 from a state made of the seed and the id; zeros become ones.
#[inline]
fn octet(seed: u16, id: u64) -> [u8; OCTET as usize] {
    let state = (u64::from(seed) << 32) + u64::from(id as u32) / OCTET;
    let mut word = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (word ^ word >> 31).to_le_bytes().map(|byte| byte.max(1))
}
