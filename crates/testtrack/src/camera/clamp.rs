//! Clamping of values without branches.

/// Rounds `value` and clamps it to a byte; NaN gives 0. Vectorises: no branch and no conversion.
#[inline(always)]
pub(super) fn to_u8(value: f32) -> u8 {
    let value = if value > 0.0 { value } else { 0.0 };
    let value = if value < 255.0 { value } else { 255.0 };
    // 2^23 as f32 has a unit in the last place of exactly one.
    (value + 8_388_608.0).to_bits() as u8
}

/// Clamps `value` to 0 and 1; NaN gives 0.
#[inline(always)]
pub(super) fn unit(value: f32) -> f32 {
    let value = if value > 0.0 { value } else { 0.0 };
    if value < 1.0 { value } else { 1.0 }
}
