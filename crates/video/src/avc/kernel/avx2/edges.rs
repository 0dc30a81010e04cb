//! Deblocking: all lines of an edge at once, as 16-bit numbers.
//!
//! # Safety
//! Every function needs AVX2 and edges that lie within the samples.

use core::arch::x86_64::*;

use super::super::Edge;

/// Filters a horizontal luma edge, 16 samples wide; `at` is its first sample below, `stride` the
/// step from one row to the next.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn luma_horizontal(samples: &mut [u8], at: usize, stride: usize, edge: &Edge) {
    // SAFETY: 16 bytes of each of four rows on both sides lie within the samples.
    unsafe {
        let first = samples.as_mut_ptr().add(at - 4 * stride);
        let mut rows = [_mm256_setzero_si256(); 8];
        for (row, out) in rows.iter_mut().enumerate() {
            *out = _mm256_cvtepu8_epi16(_mm_loadu_si128(first.add(row * stride).cast()));
        }
        let Some(filtered) = filter_luma(rows, edge) else { return };
        for (row, values) in filtered.into_iter().enumerate() {
            _mm_storeu_si128(first.add((row + 1) * stride).cast(), narrow(values));
        }
    }
}

/// Filters a vertical luma edge, 16 samples high; `at` is its first sample on the right.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn luma_vertical(samples: &mut [u8], at: usize, stride: usize, edge: &Edge) {
    // SAFETY: 8 bytes around the edge in each of 16 rows lie within the samples.
    unsafe {
        let first = samples.as_mut_ptr().add(at - 4);
        let mut rows = [_mm_setzero_si128(); 16];
        for (row, out) in rows.iter_mut().enumerate() {
            *out = _mm_loadl_epi64(first.add(row * stride).cast());
        }
        let columns = to_columns(rows);
        let Some(filtered) = filter_luma(columns.map(|column| _mm256_cvtepu8_epi16(column)), edge)
        else {
            return;
        };
        let [p2, p1, p0, q0, q1, q2] = filtered.map(|values| narrow(values));
        let rows = to_rows([columns[0], p2, p1, p0, q0, q1, q2, columns[7]]);
        for (pair, rows) in rows.into_iter().enumerate() {
            _mm_storel_epi64(first.add(2 * pair * stride).cast(), rows);
            let second = _mm_unpackhi_epi64(rows, rows);
            _mm_storel_epi64(first.add((2 * pair + 1) * stride).cast(), second);
        }
    }
}

/// Filters a horizontal chroma edge, 8 samples wide; `at` is its first sample below.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn chroma_horizontal(samples: &mut [u8], at: usize, stride: usize, edge: &Edge) {
    // SAFETY: 8 bytes of each of two rows on both sides lie within the samples.
    unsafe {
        let first = samples.as_mut_ptr().add(at - 2 * stride);
        let mut rows = [_mm_setzero_si128(); 4];
        for (row, out) in rows.iter_mut().enumerate() {
            *out = _mm_cvtepu8_epi16(_mm_loadl_epi64(first.add(row * stride).cast()));
        }
        let [p, q] = filter_chroma(rows, edge);
        let packed = _mm_packus_epi16(p, q);
        _mm_storel_epi64(first.add(stride).cast(), packed);
        _mm_storel_epi64(first.add(2 * stride).cast(), _mm_unpackhi_epi64(packed, packed));
    }
}

/// Filters a vertical chroma edge, 8 samples high; `at` is its first sample on the right.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn chroma_vertical(samples: &mut [u8], at: usize, stride: usize, edge: &Edge) {
    // SAFETY: 4 bytes around the edge in each of 8 rows lie within the samples.
    unsafe {
        let first = samples.as_mut_ptr().add(at - 2);
        let row =
            |row: usize| _mm_cvtsi32_si128(first.add(row * stride).cast::<i32>().read_unaligned());
        let pairs: [__m128i; 4] =
            std::array::from_fn(|pair| _mm_unpacklo_epi8(row(2 * pair), row(2 * pair + 1)));
        let upper = _mm_unpacklo_epi16(pairs[0], pairs[1]);
        let lower = _mm_unpacklo_epi16(pairs[2], pairs[3]);
        let outer = _mm_unpacklo_epi32(upper, lower);
        let inner = _mm_unpackhi_epi32(upper, lower);
        let wide = |bytes: __m128i| _mm_cvtepu8_epi16(bytes);
        let high = |bytes: __m128i| _mm_cvtepu8_epi16(_mm_unpackhi_epi64(bytes, bytes));
        let [p, q] = filter_chroma([wide(outer), high(outer), wide(inner), high(inner)], edge);
        // The two middle columns next to each other, one row in each 16 bits.
        let both = _mm_packus_epi16(p, q);
        let both = _mm_unpacklo_epi8(both, _mm_unpackhi_epi64(both, both));
        let mut middle = [0u16; 8];
        _mm_storeu_si128(middle.as_mut_ptr().cast(), both);
        for (row, middle) in middle.into_iter().enumerate() {
            first.add(row * stride + 1).cast::<u16>().write_unaligned(middle);
        }
    }
}

/// Returns 16 numbers from 0 to 255 as bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn narrow(values: __m256i) -> __m128i {
    let low = _mm256_castsi256_si128(values);
    _mm_packus_epi16(low, _mm256_extracti128_si256::<1>(values))
}

/// Transposes 16 rows of 8 bytes into 8 columns of 16.
#[inline]
#[target_feature(enable = "avx2")]
fn to_columns(rows: [__m128i; 16]) -> [__m128i; 8] {
    let pairs: [__m128i; 8] =
        std::array::from_fn(|i| _mm_unpacklo_epi8(rows[2 * i], rows[2 * i + 1]));
    // Columns 0 to 3, then 4 to 7, of four rows each.
    let left: [__m128i; 4] =
        std::array::from_fn(|i| _mm_unpacklo_epi16(pairs[2 * i], pairs[2 * i + 1]));
    let right: [__m128i; 4] =
        std::array::from_fn(|i| _mm_unpackhi_epi16(pairs[2 * i], pairs[2 * i + 1]));
    let four = |[a, b, c, d]: [__m128i; 4]| {
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        [
            _mm_unpacklo_epi64(ab, cd),
            _mm_unpackhi_epi64(ab, cd),
            _mm_unpacklo_epi64(ab_high, cd_high),
            _mm_unpackhi_epi64(ab_high, cd_high),
        ]
    };
    let ([a, b, c, d], [e, f, g, h]) = (four(left), four(right));
    [a, b, c, d, e, f, g, h]
}

/// Transposes 8 columns of 16 bytes into 16 rows of 8, two in each vector.
#[inline]
#[target_feature(enable = "avx2")]
fn to_rows([a, b, c, d, e, f, g, h]: [__m128i; 8]) -> [__m128i; 8] {
    let eight = |ab: __m128i, cd: __m128i, ef: __m128i, gh: __m128i| {
        let (left, right) = (_mm_unpacklo_epi16(ab, cd), _mm_unpacklo_epi16(ef, gh));
        let (left_low, right_low) = (_mm_unpackhi_epi16(ab, cd), _mm_unpackhi_epi16(ef, gh));
        [
            _mm_unpacklo_epi32(left, right),
            _mm_unpackhi_epi32(left, right),
            _mm_unpacklo_epi32(left_low, right_low),
            _mm_unpackhi_epi32(left_low, right_low),
        ]
    };
    let upper = eight(
        _mm_unpacklo_epi8(a, b),
        _mm_unpacklo_epi8(c, d),
        _mm_unpacklo_epi8(e, f),
        _mm_unpacklo_epi8(g, h),
    );
    let lower = eight(
        _mm_unpackhi_epi8(a, b),
        _mm_unpackhi_epi8(c, d),
        _mm_unpackhi_epi8(e, f),
        _mm_unpackhi_epi8(g, h),
    );
    [upper[0], upper[1], upper[2], upper[3], lower[0], lower[1], lower[2], lower[3]]
}

/// Returns all ones where `|a - b|` is below `most`.
#[inline]
#[target_feature(enable = "avx2")]
fn even(a: __m256i, b: __m256i, most: __m256i) -> __m256i {
    _mm256_cmpgt_epi16(most, _mm256_abs_epi16(_mm256_sub_epi16(a, b)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn clamp(value: __m256i, most: __m256i) -> __m256i {
    let least = _mm256_sub_epi16(_mm256_setzero_si256(), most);
    _mm256_max_epi16(least, _mm256_min_epi16(value, most))
}

/// Filters `p3` to `q3`; returns `p2` to `q2`, or `None` if all stay unchanged.
#[inline]
#[target_feature(enable = "avx2")]
fn filter_luma(lines: [__m256i; 8], edge: &Edge) -> Option<[__m256i; 6]> {
    let [_, p2, p1, p0, q0, q1, q2, _] = lines;
    let alpha = _mm256_set1_epi16(edge.alpha.into());
    let beta = _mm256_set1_epi16(edge.beta.into());
    let mask = _mm256_and_si256(
        even(p0, q0, alpha),
        _mm256_and_si256(even(p1, p0, beta), even(q1, q0, beta)),
    );
    let smooth = [even(p2, p0, beta), even(q2, q0, beta)];
    let Some(limits) = edge.limits else {
        if _mm256_testz_si256(mask, mask) != 0 {
            return None;
        }
        return Some(filter_strong(lines, edge, mask, smooth));
    };
    let [a, b, c, d] = limits.map(i16::from);
    let limit = _mm256_setr_epi16(a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d);
    let mask = _mm256_andnot_si256(_mm256_srai_epi16::<15>(limit), mask);
    if _mm256_testz_si256(mask, mask) != 0 {
        return None;
    }
    let most = _mm256_sub_epi16(limit, _mm256_add_epi16(smooth[0], smooth[1]));
    let wide = _mm256_slli_epi16::<2>(_mm256_sub_epi16(q0, p0));
    let sum = _mm256_add_epi16(wide, _mm256_sub_epi16(p1, q1));
    let delta = _mm256_srai_epi16::<3>(_mm256_add_epi16(sum, _mm256_set1_epi16(4)));
    let delta = _mm256_and_si256(clamp(delta, most), mask);
    let middle = _mm256_avg_epu16(p0, q0);
    let side = |far: __m256i, near: __m256i, smooth: __m256i| {
        let change = _mm256_sub_epi16(_mm256_add_epi16(far, middle), _mm256_slli_epi16::<1>(near));
        let change = clamp(_mm256_srai_epi16::<1>(change), limit);
        _mm256_add_epi16(near, _mm256_and_si256(change, _mm256_and_si256(smooth, mask)))
    };
    let byte = |value: __m256i| {
        let value = _mm256_max_epi16(value, _mm256_setzero_si256());
        _mm256_min_epi16(value, _mm256_set1_epi16(255))
    };
    Some([
        p2,
        side(p2, p1, smooth[0]),
        byte(_mm256_add_epi16(p0, delta)),
        byte(_mm256_sub_epi16(q0, delta)),
        side(q2, q1, smooth[1]),
        q2,
    ])
}

/// Filters the lines in `mask` with bS 4; returns `p2` to `q2`.
#[inline]
#[target_feature(enable = "avx2")]
fn filter_strong(
    [p3, p2, p1, p0, q0, q1, q2, q3]: [__m256i; 8],
    edge: &Edge,
    mask: __m256i,
    smooth: [__m256i; 2],
) -> [__m256i; 6] {
    let most = _mm256_set1_epi16(i16::from(edge.alpha >> 2) + 2);
    let flat = _mm256_and_si256(even(p0, q0, most), mask);
    let side = |[far3, far2, far1, far0]: [__m256i; 4],
                [other0, other1]: [__m256i; 2],
                smooth: __m256i| {
        let add = |a: __m256i, b: __m256i| _mm256_add_epi16(a, b);
        let four = _mm256_set1_epi16(4);
        let two = _mm256_set1_epi16(2);
        let core = add(far1, add(far0, other0));
        let both = add(far2, core);
        let new0 = _mm256_srai_epi16::<3>(add(add(both, core), add(other1, four)));
        let new1 = _mm256_srai_epi16::<2>(add(both, two));
        let outer = _mm256_slli_epi16::<1>(add(far3, far2));
        let new2 = _mm256_srai_epi16::<3>(add(add(outer, both), four));
        let short = add(add(far1, far1), add(far0, add(other1, two)));
        let short = _mm256_srai_epi16::<2>(short);
        let strong = _mm256_and_si256(flat, smooth);
        let near = _mm256_blendv_epi8(far0, short, mask);
        [
            _mm256_blendv_epi8(far2, new2, strong),
            _mm256_blendv_epi8(far1, new1, strong),
            _mm256_blendv_epi8(near, new0, strong),
        ]
    };
    let [a, b, c] = side([p3, p2, p1, p0], [q0, q1], smooth[0]);
    let [f, e, d] = side([q3, q2, q1, q0], [p0, p1], smooth[1]);
    [a, b, c, d, e, f]
}

/// Filters `p1` to `q1`; returns `p0` and `q0`.
#[inline]
#[target_feature(enable = "avx2")]
fn filter_chroma([p1, p0, q0, q1]: [__m128i; 4], edge: &Edge) -> [__m128i; 2] {
    let even = |a: __m128i, b: __m128i, most: u8| {
        let most = _mm_set1_epi16(most.into());
        _mm_cmpgt_epi16(most, _mm_abs_epi16(_mm_sub_epi16(a, b)))
    };
    let mask = _mm_and_si128(
        even(p0, q0, edge.alpha),
        _mm_and_si128(even(p1, p0, edge.beta), even(q1, q0, edge.beta)),
    );
    let two = _mm_set1_epi16(2);
    let Some(limits) = edge.limits else {
        let side = |far: __m128i, near: __m128i, other: __m128i| {
            let sum = _mm_add_epi16(_mm_add_epi16(far, far), _mm_add_epi16(near, other));
            let new = _mm_srai_epi16::<2>(_mm_add_epi16(sum, two));
            _mm_blendv_epi8(near, new, mask)
        };
        return [side(p1, p0, q1), side(q1, q0, p1)];
    };
    let [a, b, c, d] = limits.map(i16::from);
    let limit = _mm_setr_epi16(a, a, b, b, c, c, d, d);
    let mask = _mm_andnot_si128(_mm_srai_epi16::<15>(limit), mask);
    let most = _mm_add_epi16(limit, _mm_set1_epi16(1));
    let least = _mm_sub_epi16(_mm_setzero_si128(), most);
    let wide = _mm_slli_epi16::<2>(_mm_sub_epi16(q0, p0));
    let sum = _mm_add_epi16(wide, _mm_add_epi16(_mm_sub_epi16(p1, q1), _mm_set1_epi16(4)));
    let delta = _mm_max_epi16(least, _mm_min_epi16(_mm_srai_epi16::<3>(sum), most));
    let delta = _mm_and_si128(delta, mask);
    // Packing saturates values outside a byte.
    [_mm_add_epi16(p0, delta), _mm_sub_epi16(q0, delta)]
}
