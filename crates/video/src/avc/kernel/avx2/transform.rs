//! Transforms of 4x4 blocks, and quantization.
//!
//! # Safety
//! Every function needs AVX2 and blocks that lie within their samples.

use core::arch::x86_64::*;

use super::super::{Coefficients, Row};
use crate::avc::cavlc::{LEVEL_MAX, Levels};
use crate::avc::plane::Block;
use crate::avc::quantize::Quantizer;

/// Loads rows `row` and `row + 1` of a 4x4 block as 16-bit numbers.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn rows(from: *const u8, stride: usize, row: usize) -> __m128i {
    // SAFETY: the caller's promise: 4 bytes a row.
    unsafe {
        let first = from.add(row * stride).cast::<i32>().read_unaligned();
        let second = from.add((row + 1) * stride).cast::<i32>().read_unaligned();
        _mm_cvtepu8_epi16(_mm_insert_epi32::<1>(_mm_cvtsi32_si128(first), second))
    }
}

/// Transposes a 4x4 block: rows 0 and 1, 2 and 3 become columns 0 and 1, 2 and 3.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose([upper, lower]: [__m128i; 2]) -> [__m128i; 2] {
    let even = _mm_unpacklo_epi16(upper, lower);
    let odd = _mm_unpackhi_epi16(upper, lower);
    [_mm_unpacklo_epi16(even, odd), _mm_unpackhi_epi16(even, odd)]
}

/// Applies the forward transform along the columns of a block.
#[inline]
#[target_feature(enable = "avx2")]
fn forward_columns([upper, lower]: [__m128i; 2]) -> [__m128i; 2] {
    let turned = _mm_shuffle_epi32::<0b01_00_11_10>(lower);
    let sums = _mm_add_epi16(upper, turned);
    let differences = _mm_sub_epi16(upper, turned);
    let outer = _mm_unpacklo_epi64(sums, differences);
    let inner = _mm_unpackhi_epi64(sums, differences);
    let second = _mm_set_epi64x(-1, 0);
    [
        _mm_add_epi16(_mm_add_epi16(outer, inner), _mm_and_si128(outer, second)),
        _mm_sub_epi16(_mm_sub_epi16(outer, inner), _mm_and_si128(inner, second)),
    ]
}

/// Returns the transformed differences of a 4x4 block from its prediction in a register: loading a
/// value stored in pieces is slow.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn forward_values(block: Block<'_>, predicted: Block<'_>) -> __m256i {
    // SAFETY: the caller's promise.
    let differences = unsafe {
        let (source, predicted_at) = (block.samples.as_ptr(), predicted.samples.as_ptr());
        let (stride, predicted_stride) = (block.stride, predicted.stride);
        [
            _mm_sub_epi16(rows(source, stride, 0), rows(predicted_at, predicted_stride, 0)),
            _mm_sub_epi16(rows(source, stride, 2), rows(predicted_at, predicted_stride, 2)),
        ]
    };
    let [upper, lower] = forward_columns(transpose(forward_columns(differences)));
    let [upper, lower] = transpose([upper, lower]);
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(upper), lower)
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn quantize_values(
    values: __m256i,
    coefficients: &mut Coefficients,
    by: &Quantizer,
    intra: bool,
) -> Levels {
    // SAFETY: each is 16 numbers of 16 bits.
    let [bias, multiplier, scale] = unsafe { load_quantizer(by, intra) };
    let levels = quantized(values, bias, multiplier);
    let [first, second] = zigzag(levels);
    let zero = _mm_setzero_si128();
    let zeros = _mm_packs_epi16(_mm_cmpeq_epi16(first, zero), _mm_cmpeq_epi16(second, zero));
    let mut out = Levels { values: [0; 16], mask: !_mm_movemask_epi8(zeros) as u16 };
    // SAFETY: each is 16 numbers of 16 bits.
    unsafe {
        _mm256_storeu_si256(coefficients.as_mut_ptr().cast(), _mm256_mullo_epi16(levels, scale));
        _mm_storeu_si128(out.values.as_mut_ptr().cast(), first);
        _mm_storeu_si128(out.values.as_mut_ptr().add(8).cast(), second);
    }
    out
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_quantizer(by: &Quantizer, intra: bool) -> [__m256i; 3] {
    let bias = if intra { &by.bias_intra } else { &by.bias_inter };
    // SAFETY: each is 16 numbers of 16 bits.
    unsafe {
        [
            _mm256_loadu_si256(bias.as_ptr().cast()),
            _mm256_loadu_si256(by.multiplier.as_ptr().cast()),
            _mm256_loadu_si256(by.scale.as_ptr().cast()),
        ]
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn quantized(values: __m256i, bias: __m256i, multiplier: __m256i) -> __m256i {
    let sum = _mm256_adds_epu16(_mm256_abs_epi16(values), bias);
    let magnitude = _mm256_mulhi_epu16(sum, multiplier);
    let magnitude = _mm256_min_epi16(magnitude, _mm256_set1_epi16(LEVEL_MAX));
    _mm256_sign_epi16(magnitude, values)
}

/// Transforms and quantizes a 4x4 block as the kernel's `code` states, entirely in registers.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn code(
    block: Block<'_>,
    predicted: Block<'_>,
    (by, intra): (&Quantizer, bool),
    coefficients: &mut Coefficients,
) -> Levels {
    // SAFETY: the caller's promise.
    unsafe { quantize_values(forward_values(block, predicted), coefficients, by, intra) }
}

/// Reorders the numbers of rows as in table 8-2: 0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14,
/// 15.
#[inline]
#[target_feature(enable = "avx2")]
fn zigzag(levels: __m256i) -> [__m128i; 2] {
    let low = _mm256_castsi256_si128(levels);
    let high = _mm256_extracti128_si256::<1>(levels);
    let first = _mm_setr_epi8(0, 1, 2, 3, 8, 9, -1, -1, 10, 11, 4, 5, 6, 7, 12, 13);
    let second = _mm_setr_epi8(2, 3, 8, 9, 10, 11, 4, 5, -1, -1, 6, 7, 12, 13, 14, 15);
    let eighth = _mm_extract_epi16::<0>(high);
    let seventh = _mm_extract_epi16::<7>(low);
    [
        _mm_insert_epi16::<3>(_mm_shuffle_epi8(low, first), eighth),
        _mm_insert_epi16::<4>(_mm_shuffle_epi8(high, second), seventh),
    ]
}

/// Applies the inverse transform (8.5.12.2) along the columns of a block.
#[inline]
#[target_feature(enable = "avx2")]
fn inverse_columns([upper, lower]: [__m128i; 2]) -> [__m128i; 2] {
    // The first and third rows, then the second and fourth.
    let even = [upper, lower];
    let odd = [_mm_unpackhi_epi64(upper, upper), _mm_unpackhi_epi64(lower, lower)];
    let e = _mm_add_epi16(even[0], even[1]);
    let f = _mm_sub_epi16(even[0], even[1]);
    let g = _mm_sub_epi16(_mm_srai_epi16::<1>(odd[0]), odd[1]);
    let h = _mm_add_epi16(odd[0], _mm_srai_epi16::<1>(odd[1]));
    [
        _mm_unpacklo_epi64(_mm_add_epi16(e, h), _mm_add_epi16(f, g)),
        _mm_unpacklo_epi64(_mm_sub_epi16(f, g), _mm_sub_epi16(e, h)),
    ]
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_inverse(coefficients: &Coefficients, samples: &mut [u8], stride: usize) {
    // SAFETY: `coefficients` has 32 bytes.
    let values = unsafe {
        let from = coefficients.as_ptr();
        [_mm_loadu_si128(from.cast()), _mm_loadu_si128(from.add(8).cast())]
    };
    let values = inverse_columns(transpose(inverse_columns(transpose(values))));
    for (pair, values) in values.into_iter().enumerate() {
        let rounded = _mm_srai_epi16::<6>(_mm_add_epi16(values, _mm_set1_epi16(32)));
        // SAFETY: the caller's promise: two rows of 4 bytes.
        unsafe {
            let at = samples.as_mut_ptr().add(2 * pair * stride);
            let sum = _mm_add_epi16(rows(at, stride, 0), rounded);
            let packed = _mm_packus_epi16(sum, sum);
            at.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(packed));
            at.add(stride).cast::<i32>().write_unaligned(_mm_extract_epi32::<1>(packed));
        }
    }
}

/// Transposes rows of four adjacent blocks into columns, and back.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose_row([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (upper, lower) = (_mm256_unpacklo_epi16(a, b), _mm256_unpacklo_epi16(c, d));
    let (upper_next, lower_next) = (_mm256_unpackhi_epi16(a, b), _mm256_unpackhi_epi16(c, d));
    // The first two columns of a block, then the other two; first of the blocks at even positions,
    // then of those at odd ones.
    let even = [_mm256_unpacklo_epi32(upper, lower), _mm256_unpackhi_epi32(upper, lower)];
    let odd = [
        _mm256_unpacklo_epi32(upper_next, lower_next),
        _mm256_unpackhi_epi32(upper_next, lower_next),
    ];
    [
        _mm256_unpacklo_epi64(even[0], odd[0]),
        _mm256_unpackhi_epi64(even[0], odd[0]),
        _mm256_unpacklo_epi64(even[1], odd[1]),
        _mm256_unpackhi_epi64(even[1], odd[1]),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn forward_across([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (p, q) = (_mm256_add_epi16(a, d), _mm256_add_epi16(b, c));
    let (r, s) = (_mm256_sub_epi16(b, c), _mm256_sub_epi16(a, d));
    [
        _mm256_add_epi16(p, q),
        _mm256_add_epi16(_mm256_add_epi16(s, s), r),
        _mm256_sub_epi16(p, q),
        _mm256_sub_epi16(s, _mm256_add_epi16(r, r)),
    ]
}

#[inline]
#[target_feature(enable = "avx2")]
fn inverse_across([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    let (e, f) = (_mm256_add_epi16(a, c), _mm256_sub_epi16(a, c));
    let g = _mm256_sub_epi16(_mm256_srai_epi16::<1>(b), d);
    let h = _mm256_add_epi16(b, _mm256_srai_epi16::<1>(d));
    [_mm256_add_epi16(e, h), _mm256_add_epi16(f, g), _mm256_sub_epi16(f, g), _mm256_sub_epi16(e, h)]
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn forward_row(blocks: Block<'_>, predicted: Block<'_>, out: &mut Row) {
    let mut rows = [_mm256_setzero_si256(); 4];
    for (index, row) in rows.iter_mut().enumerate() {
        // SAFETY: the caller's promise: 16 bytes a row.
        let [source, predicted] = unsafe {
            [
                _mm_loadu_si128(blocks.samples.as_ptr().add(index * blocks.stride).cast()),
                _mm_loadu_si128(predicted.samples.as_ptr().add(index * predicted.stride).cast()),
            ]
        };
        *row = _mm256_sub_epi16(_mm256_cvtepu8_epi16(source), _mm256_cvtepu8_epi16(predicted));
    }
    let columns = forward_across(transpose_row(forward_across(rows)));
    for (column, out) in columns.into_iter().zip(out.0.chunks_exact_mut(16)) {
        // SAFETY: 16 numbers of 16 bits.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), column) };
    }
}

/// Returns the columns of four adjacent blocks.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn columns(row: &Row) -> [__m256i; 4] {
    let from = row.0.as_ptr();
    // SAFETY: four times 16 numbers of 16 bits.
    unsafe {
        [
            _mm256_loadu_si256(from.cast()),
            _mm256_loadu_si256(from.add(16).cast()),
            _mm256_loadu_si256(from.add(32).cast()),
            _mm256_loadu_si256(from.add(48).cast()),
        ]
    }
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn quantize_row(
    row: &mut Row,
    by: &Quantizer,
    intra: bool,
    levels: &mut [Levels; 4],
) {
    // SAFETY: the numbers of a quantizer and of four blocks.
    let ([bias, multiplier, scale], values) = unsafe { (load_quantizer(by, intra), columns(row)) };
    // The divisors and factors of a column depend only on whether its position is even or odd, as
    // in rows: those of the first two rows of a block apply to every pair of columns.
    let mut quantized_columns = [_mm256_setzero_si256(); 4];
    for (column, out) in quantized_columns.iter_mut().enumerate() {
        let [bias, multiplier, scale] = if column % 2 == 0 {
            [
                _mm256_permute4x64_epi64::<0b00_00_00_00>(bias),
                _mm256_permute4x64_epi64::<0b00_00_00_00>(multiplier),
                _mm256_permute4x64_epi64::<0b00_00_00_00>(scale),
            ]
        } else {
            [
                _mm256_permute4x64_epi64::<0b01_01_01_01>(bias),
                _mm256_permute4x64_epi64::<0b01_01_01_01>(multiplier),
                _mm256_permute4x64_epi64::<0b01_01_01_01>(scale),
            ]
        };
        *out = quantized(values[column], bias, multiplier);
        // SAFETY: 16 numbers of 16 bits.
        unsafe {
            let to = row.0.as_mut_ptr().add(column * 16);
            _mm256_storeu_si256(to.cast(), _mm256_mullo_epi16(*out, scale));
        }
    }
    let [a, b, c, d] = quantized_columns;
    let any = _mm256_or_si256(_mm256_or_si256(a, b), _mm256_or_si256(c, d));
    if _mm256_testz_si256(any, any) == 1 {
        for levels in levels {
            levels.mask = 0;
        }
        return;
    }
    // Blocks 0 and 2, then blocks 1 and 3: their first two columns, then the other two.
    let pairs = [
        [_mm256_unpacklo_epi64(a, b), _mm256_unpacklo_epi64(c, d)],
        [_mm256_unpackhi_epi64(a, b), _mm256_unpackhi_epi64(c, d)],
    ];
    for (index, [left, right]) in pairs.into_iter().enumerate() {
        let [first, second] = zigzag_columns(left, right);
        let zero = _mm256_setzero_si256();
        let zeros =
            _mm256_packs_epi16(_mm256_cmpeq_epi16(first, zero), _mm256_cmpeq_epi16(second, zero));
        let mask = !_mm256_movemask_epi8(zeros) as u32;
        // SAFETY: each is 16 numbers of 16 bits.
        unsafe {
            let to = &mut levels[index];
            to.mask = mask as u16;
            let to = to.values.as_mut_ptr();
            _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(first));
            _mm_storeu_si128(to.add(8).cast(), _mm256_castsi256_si128(second));
            let to = &mut levels[index + 2];
            to.mask = (mask >> 16) as u16;
            let to = to.values.as_mut_ptr();
            _mm_storeu_si128(to.cast(), _mm256_extracti128_si256::<1>(first));
            _mm_storeu_si128(to.add(8).cast(), _mm256_extracti128_si256::<1>(second));
        }
    }
}

/// Reorders the numbers of columns 0 and 1, 2 and 3 as in table 8-2: for columns, that is 0, 4, 1,
/// 2, 5, 8, 12, 9, 6, 3, 7, 10, 13, 14, 11, 15.
#[inline]
#[target_feature(enable = "avx2")]
fn zigzag_columns(left: __m256i, right: __m256i) -> [__m256i; 2] {
    let both = |bytes: __m128i| _mm256_broadcastsi128_si256(bytes);
    let first = [
        both(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 4, 5, 10, 11, -1, -1, -1, -1, -1, -1)),
        both(_mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 1, 8, 9, 2, 3)),
    ];
    let second = [
        both(_mm_setr_epi8(12, 13, 6, 7, 14, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1)),
        both(_mm_setr_epi8(-1, -1, -1, -1, -1, -1, 4, 5, 10, 11, 12, 13, 6, 7, 14, 15)),
    ];
    [
        _mm256_or_si256(_mm256_shuffle_epi8(left, first[0]), _mm256_shuffle_epi8(right, first[1])),
        _mm256_or_si256(
            _mm256_shuffle_epi8(left, second[0]),
            _mm256_shuffle_epi8(right, second[1]),
        ),
    ]
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn add_inverse_row(row: &Row, samples: &mut [u8; 64]) {
    // SAFETY: four times 16 numbers of 16 bits.
    let values = unsafe { columns(row) };
    let rows = inverse_across(transpose_row(inverse_across(values)));
    for (values, samples) in rows.into_iter().zip(samples.chunks_exact_mut(16)) {
        let rounded = _mm256_srai_epi16::<6>(_mm256_add_epi16(values, _mm256_set1_epi16(32)));
        // SAFETY: `samples` has 16 bytes.
        unsafe {
            let before = _mm256_cvtepu8_epi16(_mm_loadu_si128(samples.as_ptr().cast()));
            let sum = _mm256_add_epi16(before, rounded);
            let (low, high) = (_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
            _mm_storeu_si128(samples.as_mut_ptr().cast(), _mm_packus_epi16(low, high));
        }
    }
}
