//! Differences and means of samples.
//!
//! # Safety
//! Every function needs AVX2 and blocks that lie within their samples.

use core::arch::x86_64::*;

use crate::avc::border4::{Border4, MODES4, PLACES};
use crate::avc::plane::Block;

/// Loads 8 bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load8(from: *const u8) -> __m128i {
    // SAFETY: the caller's promise.
    unsafe { _mm_loadl_epi64(from.cast()) }
}

/// Loads 16 bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load16(from: *const u8) -> __m128i {
    // SAFETY: the caller's promise.
    unsafe { _mm_loadu_si128(from.cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn pair(low: __m128i, high: __m128i) -> __m256i {
    _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn sad16(height: usize, a: Block<'_>, b: Block<'_>) -> u32 {
    let mut sum = _mm256_setzero_si256();
    for row in (0..height).step_by(2) {
        // SAFETY: two rows of 16 bytes lie within each block.
        let difference = unsafe { _mm256_sad_epu8(two_rows16(a, row), two_rows16(b, row)) };
        sum = _mm256_add_epi32(sum, difference);
    }
    let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
    (_mm_cvtsi128_si32(sum) + _mm_extract_epi32::<2>(sum)) as u32
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn sad8(height: usize, a: Block<'_>, b: Block<'_>) -> u32 {
    let mut sum = _mm_setzero_si128();
    for row in (0..height).step_by(2) {
        // SAFETY: two rows of 8 bytes lie within each block.
        let difference = unsafe { _mm_sad_epu8(two_rows8(a, row), two_rows8(b, row)) };
        sum = _mm_add_epi32(sum, difference);
    }
    (_mm_cvtsi128_si32(sum) + _mm_extract_epi32::<2>(sum)) as u32
}

/// Returns two rows of 16 bytes of a block, `row` and the one after it.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn two_rows16(block: Block<'_>, row: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let at = block.samples.as_ptr().add(row * block.stride);
        pair(load16(at), load16(at.add(block.stride)))
    }
}

/// Returns two rows of 8 bytes of a block, `row` and the one after it.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn two_rows8(block: Block<'_>, row: usize) -> __m128i {
    // SAFETY: the caller's promise.
    unsafe {
        let at = block.samples.as_ptr().add(row * block.stride);
        _mm_unpacklo_epi64(load8(at), load8(at.add(block.stride)))
    }
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn sad_mean16(height: usize, block: Block<'_>, [a, b]: [Block<'_>; 2]) -> u32 {
    let mut sum = _mm256_setzero_si256();
    for row in (0..height).step_by(2) {
        // SAFETY: two rows of 16 bytes lie within each block.
        unsafe {
            let mean = _mm256_avg_epu8(two_rows16(a, row), two_rows16(b, row));
            sum = _mm256_add_epi32(sum, _mm256_sad_epu8(two_rows16(block, row), mean));
        }
    }
    let sum = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
    (_mm_cvtsi128_si32(sum) + _mm_extract_epi32::<2>(sum)) as u32
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn sad_mean8(height: usize, block: Block<'_>, [a, b]: [Block<'_>; 2]) -> u32 {
    let mut sum = _mm_setzero_si128();
    for row in (0..height).step_by(2) {
        // SAFETY: two rows of 8 bytes lie within each block.
        unsafe {
            let mean = _mm_avg_epu8(two_rows8(a, row), two_rows8(b, row));
            sum = _mm_add_epi32(sum, _mm_sad_epu8(two_rows8(block, row), mean));
        }
    }
    (_mm_cvtsi128_si32(sum) + _mm_extract_epi32::<2>(sum)) as u32
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn sad_four16(
    height: usize,
    block: Block<'_>,
    firsts: &[Block<'_>; 4],
) -> [u32; 4] {
    let mut sums = [_mm256_setzero_si256(); 4];
    for row in (0..height).step_by(2) {
        // SAFETY: two rows of 16 bytes lie within each block.
        unsafe {
            let source = two_rows16(block, row);
            for (index, sum) in sums.iter_mut().enumerate() {
                let other = two_rows16(firsts[index], row);
                *sum = _mm256_add_epi32(*sum, _mm256_sad_epu8(source, other));
            }
        }
    }
    total_four16(sums)
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn sad_mean_four16(
    height: usize,
    block: Block<'_>,
    firsts: &[Block<'_>; 4],
    seconds: &[Block<'_>; 4],
) -> [u32; 4] {
    let mut sums = [_mm256_setzero_si256(); 4];
    for row in (0..height).step_by(2) {
        // SAFETY: two rows of 16 bytes lie within each block.
        unsafe {
            let source = two_rows16(block, row);
            for (index, sum) in sums.iter_mut().enumerate() {
                let other = _mm256_avg_epu8(
                    two_rows16(firsts[index], row),
                    two_rows16(seconds[index], row),
                );
                *sum = _mm256_add_epi32(*sum, _mm256_sad_epu8(source, other));
            }
        }
    }
    total_four16(sums)
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn sad_four8(
    height: usize,
    block: Block<'_>,
    firsts: &[Block<'_>; 4],
) -> [u32; 4] {
    let mut sums = [_mm_setzero_si128(); 4];
    for row in (0..height).step_by(2) {
        // SAFETY: two rows of 8 bytes lie within each block.
        unsafe {
            let source = two_rows8(block, row);
            for (index, sum) in sums.iter_mut().enumerate() {
                let other = two_rows8(firsts[index], row);
                *sum = _mm_add_epi32(*sum, _mm_sad_epu8(source, other));
            }
        }
    }
    total_four8(sums)
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn sad_mean_four8(
    height: usize,
    block: Block<'_>,
    firsts: &[Block<'_>; 4],
    seconds: &[Block<'_>; 4],
) -> [u32; 4] {
    let mut sums = [_mm_setzero_si128(); 4];
    for row in (0..height).step_by(2) {
        // SAFETY: two rows of 8 bytes lie within each block.
        unsafe {
            let source = two_rows8(block, row);
            for (index, sum) in sums.iter_mut().enumerate() {
                let other =
                    _mm_avg_epu8(two_rows8(firsts[index], row), two_rows8(seconds[index], row));
                *sum = _mm_add_epi32(*sum, _mm_sad_epu8(source, other));
            }
        }
    }
    total_four8(sums)
}

/// Returns the lower 32-bit words of two vectors of 64-bit numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn low_words(a: __m128i, b: __m128i) -> __m128i {
    let words = _mm_shuffle_ps::<0b10_00_10_00>(_mm_castsi128_ps(a), _mm_castsi128_ps(b));
    _mm_castps_si128(words)
}

/// Returns the sums of four vectors as [`total_four8`] does, for vectors twice as wide.
#[inline]
#[target_feature(enable = "avx2")]
fn total_four16(sums: [__m256i; 4]) -> [u32; 4] {
    let mut folded = [_mm_setzero_si128(); 4];
    for (folded, sum) in folded.iter_mut().zip(sums) {
        *folded = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
    }
    total_four8(folded)
}

/// Returns the sum of the two halves of each of four vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn total_four8([a, b, c, d]: [__m128i; 4]) -> [u32; 4] {
    let sums = _mm_hadd_epi32(low_words(a, b), low_words(c, d));
    let mut out = [0; 4];
    // SAFETY: `out` has 16 bytes.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), sums) };
    out
}
/// Returns 16 partial sums, whose total is half the sum of the absolute values of the Hadamard
/// transforms of four adjacent 4x4 blocks, given by rows.
#[inline]
#[target_feature(enable = "avx2")]
fn hadamard([a, b, c, d]: [__m256i; 4]) -> __m256i {
    let (p, q) = (_mm256_add_epi16(a, b), _mm256_sub_epi16(a, b));
    let (r, s) = (_mm256_add_epi16(c, d), _mm256_sub_epi16(c, d));
    let first = halves(_mm256_add_epi16(p, r), _mm256_sub_epi16(p, r));
    let second = halves(_mm256_add_epi16(q, s), _mm256_sub_epi16(q, s));
    _mm256_add_epi16(first, second)
}

/// Returns the horizontal half of [`hadamard`] for two rows.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(x: __m256i, y: __m256i) -> __m256i {
    let even = _mm256_blend_epi16::<0xAA>(x, _mm256_slli_epi32::<16>(y));
    let odd = _mm256_blend_epi16::<0xAA>(_mm256_srli_epi32::<16>(x), y);
    let (sum, difference) = (_mm256_add_epi16(even, odd), _mm256_sub_epi16(even, odd));
    let low = _mm256_blend_epi32::<0xAA>(sum, _mm256_slli_epi64::<32>(difference));
    let high = _mm256_blend_epi32::<0xAA>(_mm256_srli_epi64::<32>(sum), difference);
    // |l + h| + |l - h| is twice the larger magnitude.
    _mm256_max_epu16(_mm256_abs_epi16(low), _mm256_abs_epi16(high))
}

/// Returns the sum of 16 numbers below 2^15.
#[inline]
#[target_feature(enable = "avx2")]
fn total(values: __m256i) -> u32 {
    let sums = _mm256_madd_epi16(values, _mm256_set1_epi16(1));
    let sums = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    let sums = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b01_00_11_10>(sums));
    let sums = _mm_add_epi32(sums, _mm_shuffle_epi32::<0b10_11_00_01>(sums));
    _mm_cvtsi128_si32(sums) as u32
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn satd16(height: usize, a: Block<'_>, b: Block<'_>) -> u32 {
    let mut sum = _mm256_setzero_si256();
    for row in (0..height).step_by(4) {
        let mut rows = [_mm256_setzero_si256(); 4];
        for (index, out) in rows.iter_mut().enumerate() {
            // SAFETY: a row of 16 bytes lies within each block.
            unsafe {
                let from_a = load16(a.samples.as_ptr().add((row + index) * a.stride));
                let from_b = load16(b.samples.as_ptr().add((row + index) * b.stride));
                *out = _mm256_sub_epi16(_mm256_cvtepu8_epi16(from_a), _mm256_cvtepu8_epi16(from_b));
            }
        }
        // At most 2 * 4080 in each of four steps.
        sum = _mm256_add_epi16(sum, hadamard(rows));
    }
    total(sum)
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn satd8(height: usize, a: Block<'_>, b: Block<'_>) -> u32 {
    let mut sum = _mm256_setzero_si256();
    for row in (0..height).step_by(8) {
        let mut rows = [_mm256_setzero_si256(); 4];
        for (index, out) in rows.iter_mut().enumerate() {
            // SAFETY: rows of 8 bytes, four apart, lie within each block.
            unsafe {
                let from_a = a.samples.as_ptr().add((row + index) * a.stride);
                let from_b = b.samples.as_ptr().add((row + index) * b.stride);
                let a = _mm_unpacklo_epi64(load8(from_a), load8(from_a.add(4 * a.stride)));
                let b = _mm_unpacklo_epi64(load8(from_b), load8(from_b.add(4 * b.stride)));
                *out = _mm256_sub_epi16(_mm256_cvtepu8_epi16(a), _mm256_cvtepu8_epi16(b));
            }
        }
        sum = _mm256_add_epi16(sum, hadamard(rows));
    }
    total(sum)
}

/// Returns the rows of four 4x4 blocks, each given by rows, side by side.
#[inline]
#[target_feature(enable = "avx2")]
fn side_by_side(blocks: [__m128i; 4]) -> [__m128i; 4] {
    let [a, b, c, d] = blocks;
    let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
    let (ab_low, cd_low) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
    [
        _mm_unpacklo_epi64(ab, cd),
        _mm_unpackhi_epi64(ab, cd),
        _mm_unpacklo_epi64(ab_low, cd_low),
        _mm_unpackhi_epi64(ab_low, cd_low),
    ]
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn satd_modes(block: Block<'_>, border: &Border4) -> [u32; MODES4] {
    let mut source = [_mm256_setzero_si256(); 4];
    for (row, source) in source.iter_mut().enumerate() {
        // SAFETY: a row of 4 bytes lies within the block.
        let bytes = unsafe {
            block.samples.as_ptr().add(row * block.stride).cast::<i32>().read_unaligned()
        };
        *source = _mm256_cvtepu8_epi16(_mm_set1_epi32(bytes));
    }
    // SAFETY: 16 bytes are readable at each address.
    let (line, smooth) = unsafe {
        let [line, smooth] = [border.line.as_ptr(), border.smooth.as_ptr()];
        ([load16(line), load16(line.add(16))], [load16(smooth), load16(smooth.add(16))])
    };
    let mut out = [0; MODES4];
    for (part, out) in out.chunks_mut(4).enumerate() {
        let mut blocks = [_mm_setzero_si128(); 4];
        for (index, block) in blocks.iter_mut().enumerate().take(out.len()) {
            let mode = part * 4 + index;
            // SAFETY: `PLACES[mode]` has 16 bytes.
            let places = unsafe { load16(PLACES[mode].as_ptr()) };
            *block = match mode {
                0 | 1 => picked(line, places),
                2 => _mm_set1_epi8(border.mean() as i8),
                _ => picked(smooth, places),
            };
        }
        let rows = side_by_side(blocks);
        let mut differences = [_mm256_setzero_si256(); 4];
        for ((difference, row), &source) in differences.iter_mut().zip(rows).zip(&source) {
            *difference = _mm256_sub_epi16(source, _mm256_cvtepu8_epi16(row));
        }
        let sums = _mm256_madd_epi16(hadamard(differences), _mm256_set1_epi16(1));
        let (low, high) = (_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let mut totals = [0; 4];
        // SAFETY: `totals` has 16 bytes.
        unsafe { _mm_storeu_si128(totals.as_mut_ptr().cast(), _mm_hadd_epi32(low, high)) };
        out.copy_from_slice(&totals[..out.len()]);
    }
    out
}

/// Returns the bytes at `places`, each below 32, of the 32 given as two vectors.
#[inline]
#[target_feature(enable = "avx2")]
fn picked([low, high]: [__m128i; 2], places: __m128i) -> __m128i {
    let (low, high) = (_mm_shuffle_epi8(low, places), _mm_shuffle_epi8(high, places));
    // Moves the fifth bit of a place to the bit that the blend reads.
    _mm_blendv_epi8(low, high, _mm_slli_epi16::<3>(places))
}

#[target_feature(enable = "avx2")]
pub(super) fn smooth(line: &[u8; 32]) -> [u8; 32] {
    let mut out = [0; 32];
    // SAFETY: 16 bytes are accessible at each address.
    unsafe {
        let [a, b, c] = [0, 1, 2].map(|at| load16(line.as_ptr().add(at)));
        // The mean of the outer two is rounded down, so that the last mean rounds for both.
        let odd = _mm_and_si128(_mm_xor_si128(a, c), _mm_set1_epi8(1));
        let outer = _mm_sub_epi8(_mm_avg_epu8(a, c), odd);
        _mm_storeu_si128(out.as_mut_ptr().cast(), _mm_avg_epu8(outer, b));
        _mm_storeu_si128(out.as_mut_ptr().add(16).cast(), _mm_avg_epu8(a, b));
    }
    out
}

#[target_feature(enable = "avx2")]
pub(super) fn pick(from: &[u8; 32], places: &[u8; 16]) -> [u8; 16] {
    let mut out = [0; 16];
    // SAFETY: 16 bytes are accessible at each address.
    unsafe {
        let from = [load16(from.as_ptr()), load16(from.as_ptr().add(16))];
        let picked = picked(from, load16(places.as_ptr()));
        _mm_storeu_si128(out.as_mut_ptr().cast(), picked);
    }
    out
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy16(height: usize, from: Block<'_>, to: &mut [u8], stride: usize) {
    for row in 0..height {
        // SAFETY: a row of 16 bytes lies within each block.
        unsafe {
            let line = load16(from.samples.as_ptr().add(row * from.stride));
            _mm_storeu_si128(to.as_mut_ptr().add(row * stride).cast(), line);
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy8(height: usize, from: Block<'_>, to: &mut [u8], stride: usize) {
    for row in 0..height {
        // SAFETY: a row of 8 bytes lies within each block.
        unsafe {
            let line = load8(from.samples.as_ptr().add(row * from.stride));
            _mm_storel_epi64(to.as_mut_ptr().add(row * stride).cast(), line);
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy4(height: usize, from: Block<'_>, to: &mut [u8], stride: usize) {
    for row in 0..height {
        // SAFETY: a row of 4 bytes lies within each block.
        unsafe {
            let line = from.samples.as_ptr().add(row * from.stride).cast::<u32>();
            to.as_mut_ptr().add(row * stride).cast::<u32>().write_unaligned(line.read_unaligned());
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn average16(height: usize, a: Block<'_>, b: Block<'_>, out: &mut [u8]) {
    for row in 0..height {
        // SAFETY: a row of 16 bytes lies within each block.
        unsafe {
            let from_a = load16(a.samples.as_ptr().add(row * a.stride));
            let from_b = load16(b.samples.as_ptr().add(row * b.stride));
            let to = out.as_mut_ptr().add(row * 16);
            _mm_storeu_si128(to.cast(), _mm_avg_epu8(from_a, from_b));
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn average8(height: usize, a: Block<'_>, b: Block<'_>, out: &mut [u8]) {
    for row in 0..height {
        // SAFETY: a row of 8 bytes lies within each block.
        unsafe {
            let from_a = load8(a.samples.as_ptr().add(row * a.stride));
            let from_b = load8(b.samples.as_ptr().add(row * b.stride));
            let to = out.as_mut_ptr().add(row * 16);
            _mm_storel_epi64(to.cast(), _mm_avg_epu8(from_a, from_b));
        }
    }
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn chroma(
    [width, height]: [usize; 2],
    from: Block<'_>,
    [x, y]: [u16; 2],
    out: &mut [u8],
) {
    let across = _mm_set1_epi16((x << 8 | (8 - x)) as i16);
    let (upper, lower) = (_mm_set1_epi16((8 - y) as i16), _mm_set1_epi16(y as i16));
    let half = _mm_set1_epi16(32);
    // SAFETY: 16 bytes from each row's start lie within the samples, for one row more than is
    // written.
    let row = |row: usize| unsafe {
        let samples = load16(from.samples.as_ptr().add(row * from.stride));
        let next = _mm_srli_si128::<1>(samples);
        _mm_maddubs_epi16(_mm_unpacklo_epi8(samples, next), across)
    };
    let mut above = row(0);
    for index in 0..height {
        let below = row(index + 1);
        let sum = _mm_add_epi16(_mm_mullo_epi16(above, upper), _mm_mullo_epi16(below, lower));
        let rounded = _mm_srli_epi16::<6>(_mm_add_epi16(sum, half));
        let packed = _mm_packus_epi16(rounded, rounded);
        // SAFETY: the row's `width` bytes lie within `out`.
        unsafe {
            let to = out.as_mut_ptr().add(index * 16);
            if width == 8 {
                _mm_storel_epi64(to.cast(), packed);
            } else {
                to.cast::<i32>().write_unaligned(_mm_cvtsi128_si32(packed));
            }
        }
        above = below;
    }
}
