//! Half-sample luma interpolation.

use core::arch::x86_64::*;

use crate::avc::kernel::scalar::{REACH, repeat_rows, varied_rows};
use crate::avc::plane::{Halves, Plane};

/// Fills the half-sample planes as the scalar kernel does, 16 samples at a time.
///
/// # Safety
/// The CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn interpolate(luma: &Plane, halves: &mut Halves) {
    let (stride, reach) = (luma.stride(), REACH as i32);
    let count = luma.width() + 2 * REACH;
    let mut sums = vec![0i16; count + 5];
    let samples = luma.samples();
    for y in varied_rows(luma) {
        let first = luma.at(-reach, y);
        assert!(first >= 2 * stride + 2, "a margin is cut");
        assert!(first + 3 * stride + count + 3 <= samples.len(), "a margin is cut");
        let planes = [&mut halves.b, &mut halves.h, &mut halves.j];
        let [b, h, j] = planes.map(|plane| &mut plane.samples_mut()[first..first + count]);
        // SAFETY: two rows above and three below, two columns before and three behind lie in the
        // plane's margin; the last vector is moved back so that it ends with the row.
        unsafe {
            let source = samples.as_ptr().add(first);
            let whole = |at: *const u8| _mm256_cvtepu8_epi16(_mm_loadu_si128(at.cast()));
            for x in steps(count + 5) {
                let at = source.add(x).sub(2);
                let row = |row: usize| whole(at.add(row * stride).sub(2 * stride));
                let sum = taps([row(0), row(1), row(2), row(3), row(4), row(5)]);
                _mm256_storeu_si256(sums.as_mut_ptr().add(x).cast(), sum);
            }
            for x in steps(count) {
                let at = source.add(x);
                let column = |column: usize| whole(at.add(column).sub(2));
                let sum = [column(0), column(1), column(2), column(3), column(4), column(5)];
                store(taps(sum), b.as_mut_ptr().add(x));
                let from = sums.as_ptr().add(x);
                let load = |tap: usize| _mm256_loadu_si256(from.add(tap).cast());
                store(load(2), h.as_mut_ptr().add(x));
                let sum = [load(0), load(1), load(2), load(3), load(4), load(5)];
                let bytes = _mm256_packus_epi16(twice(sum), _mm256_setzero_si256());
                let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes);
                _mm_storeu_si128(j.as_mut_ptr().add(x).cast(), _mm256_castsi256_si128(bytes));
            }
        }
    }
    repeat_rows(luma, halves);
}

/// Returns positions 16 apart that cover `count`, with the last one moved back so that it ends
/// there.
fn steps(count: usize) -> impl Iterator<Item = usize> {
    (0..count).step_by(16).map(move |x| x.min(count - 16))
}

/// Applies the six taps of 8-241 to 16 numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn taps([e, f, g, h, i, j]: [__m256i; 6]) -> __m256i {
    // 20 and -5 are five times 4 and -1.
    let near = _mm256_slli_epi16::<2>(_mm256_add_epi16(g, h));
    let fifth = _mm256_sub_epi16(near, _mm256_add_epi16(f, i));
    let inner = _mm256_add_epi16(_mm256_slli_epi16::<2>(fifth), fifth);
    _mm256_add_epi16(_mm256_add_epi16(e, j), inner)
}

/// Applies the six taps to sums of taps, rounded (8-245), in 16 bits: nested divisions by 4,
/// rounded down, equal one division by 16. Intermediate values that saturate are far outside a
/// sample's range.
#[inline]
#[target_feature(enable = "avx2")]
fn twice([e, f, g, h, i, j]: [__m256i; 6]) -> __m256i {
    let (a, b, c) = (_mm256_add_epi16(e, j), _mm256_add_epi16(f, i), _mm256_add_epi16(g, h));
    let quarter = _mm256_srai_epi16::<2>(_mm256_sub_epi16(a, b));
    let quarter = _mm256_adds_epi16(_mm256_sub_epi16(quarter, b), c);
    let sixteenth = _mm256_add_epi16(_mm256_srai_epi16::<2>(quarter), c);
    _mm256_srai_epi16::<6>(_mm256_add_epi16(sixteenth, _mm256_set1_epi16(32)))
}

/// Stores 16 sums of taps as samples.
///
/// # Safety
/// 16 bytes at `to` are writable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store(sums: __m256i, to: *mut u8) {
    let rounded = _mm256_srai_epi16::<5>(_mm256_add_epi16(sums, _mm256_set1_epi16(16)));
    let bytes = _mm256_packus_epi16(rounded, _mm256_setzero_si256());
    let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes);
    // SAFETY: the caller's promise.
    unsafe { _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(bytes)) };
}
