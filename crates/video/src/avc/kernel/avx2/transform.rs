//! Transforms of 4x4 blocks, and quantization.
//!
//! # Safety
//! Every function needs AVX2 and blocks that lie within their samples.

use core::arch::x86_64::*;

use super::super::Coefficients;
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

/// Turns rows 0 and 1, 2 and 3 into columns 0 and 1, 2 and 3.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose([upper, lower]: [__m128i; 2]) -> [__m128i; 2] {
    let even = _mm_unpacklo_epi16(upper, lower);
    let odd = _mm_unpackhi_epi16(upper, lower);
    [_mm_unpacklo_epi16(even, odd), _mm_unpackhi_epi16(even, odd)]
}

/// The transform along columns.
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

#[target_feature(enable = "avx2")]
pub(super) unsafe fn forward(block: Block<'_>, predicted: Block<'_>) -> Coefficients {
    let mut out = [0; 16];
    // SAFETY: the caller's promise; 32 bytes.
    unsafe {
        let values = forward_values(block, predicted);
        _mm256_storeu_si256(out.as_mut_ptr().cast(), values);
    }
    out
}

/// The coefficients in a register: what is stored in pieces is slow to load as a whole.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn forward_values(block: Block<'_>, predicted: Block<'_>) -> __m256i {
    // SAFETY: the caller's promise.
    let differences = [0, 2].map(|row| unsafe {
        let source = rows(block.samples.as_ptr(), block.stride, row);
        _mm_sub_epi16(source, rows(predicted.samples.as_ptr(), predicted.stride, row))
    });
    let [upper, lower] = forward_columns(transpose(forward_columns(differences)));
    let [upper, lower] = transpose([upper, lower]);
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(upper), lower)
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn quantize(
    coefficients: &mut Coefficients,
    by: &Quantizer,
    intra: bool,
) -> Levels {
    // SAFETY: 16 numbers of 16 bits.
    unsafe {
        let values = _mm256_loadu_si256(coefficients.as_ptr().cast());
        quantize_values(values, coefficients, by, intra)
    }
}

#[inline]
#[target_feature(enable = "avx2")]
unsafe fn quantize_values(
    values: __m256i,
    coefficients: &mut Coefficients,
    by: &Quantizer,
    intra: bool,
) -> Levels {
    let bias = if intra { &by.bias_intra } else { &by.bias_inter };
    // SAFETY: each is 16 numbers of 16 bits.
    let [bias, multiplier, scale] = unsafe {
        [
            _mm256_loadu_si256(bias.as_ptr().cast()),
            _mm256_loadu_si256(by.multiplier.as_ptr().cast()),
            _mm256_loadu_si256(by.scale.as_ptr().cast()),
        ]
    };
    let sum = _mm256_adds_epu16(_mm256_abs_epi16(values), bias);
    let magnitude = _mm256_mulhi_epu16(sum, multiplier);
    let magnitude = _mm256_min_epi16(magnitude, _mm256_set1_epi16(LEVEL_MAX));
    let levels = _mm256_sign_epi16(magnitude, values);
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

/// Transforms and quantizes without a detour through memory.
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

/// Puts the numbers of rows into the order of table 8-2: 0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7,
/// 11, 14, 15.
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

/// 8.5.12.2 along columns.
#[inline]
#[target_feature(enable = "avx2")]
fn inverse_columns([upper, lower]: [__m128i; 2]) -> [__m128i; 2] {
    // The first and third rows, then the second and fourth.
    let even = [upper, lower];
    let odd = even.map(|rows| _mm_unpackhi_epi64(rows, rows));
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
    // SAFETY: 32 bytes.
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
