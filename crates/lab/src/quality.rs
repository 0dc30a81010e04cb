//! Distortion measures between pictures, and bit-rate comparison of encoders.

mod bjontegaard;

pub use bjontegaard::{Point, bd_rate};

use tautline_video::{Error, Picture};

/// Returns the peak signal-to-noise ratio of the luma planes in dB; infinity for equal planes.
///
/// # Errors
/// [`Error::SizeMismatch`] if the pictures differ in size.
pub fn psnr(picture: &Picture, reference: &Picture) -> Result<f64, Error> {
    check_sizes(picture, reference)?;
    Ok(decibels(mean_square(picture.luma(), reference.luma())))
}

/// Returns the sum of the squared differences of the luma planes.
///
/// # Errors
/// [`Error::SizeMismatch`] if the pictures differ in size.
pub fn squared_error(picture: &Picture, reference: &Picture) -> Result<u64, Error> {
    check_sizes(picture, reference)?;
    Ok(squares(picture.luma(), reference.luma()))
}

/// Returns the weighted mean of the peak signal-to-noise ratios of the three planes in dB: luma
/// 6/8, chroma 1/8 each. Infinity if any of the planes is equal.
///
/// # Errors
/// [`Error::SizeMismatch`] if the pictures differ in size.
pub fn psnr_weighted(picture: &Picture, reference: &Picture) -> Result<f64, Error> {
    check_sizes(picture, reference)?;
    let luma = decibels(mean_square(picture.luma(), reference.luma()));
    let cb = decibels(mean_square(picture.cb(), reference.cb()));
    let cr = decibels(mean_square(picture.cr(), reference.cr()));
    Ok((6.0 * luma + cb + cr) / 8.0)
}

/// Returns the structural similarity of the luma planes, 1 for equal planes.
///
/// It is the mean over windows of 8x8 pixels, 4 apart, with uniform weights and the constants of
/// Wang et al. (2004): `(0.01 * 255)^2` and `(0.03 * 255)^2`. Pictures' sides are at least 16, so
/// there is always a window.
///
/// # Errors
/// [`Error::SizeMismatch`] if the pictures differ in size.
pub fn ssim(picture: &Picture, reference: &Picture) -> Result<f64, Error> {
    check_sizes(picture, reference)?;
    let width = picture.width();
    let (mut sum, mut count) = (0.0, 0u32);
    for top in (0..=picture.height() - WINDOW).step_by(WINDOW / 2) {
        for left in (0..=width - WINDOW).step_by(WINDOW / 2) {
            let start = top * width + left;
            sum += window(&picture.luma()[start..], &reference.luma()[start..], width);
            count += 1;
        }
    }
    Ok(sum / f64::from(count))
}

fn window(a: &[u8], b: &[u8], stride: usize) -> f64 {
    let (mut sum_a, mut sum_b, mut squares_a, mut squares_b, mut products) = (0, 0, 0, 0, 0);
    for row in 0..WINDOW {
        let rows = a[row * stride..][..WINDOW].iter().zip(&b[row * stride..][..WINDOW]);
        for (&a, &b) in rows {
            let (a, b) = (u32::from(a), u32::from(b));
            sum_a += a;
            sum_b += b;
            squares_a += a * a;
            squares_b += b * b;
            products += a * b;
        }
    }
    let count = (WINDOW * WINDOW) as f64;
    let (mean_a, mean_b) = (f64::from(sum_a) / count, f64::from(sum_b) / count);
    let variance_a = f64::from(squares_a) / count - mean_a * mean_a;
    let variance_b = f64::from(squares_b) / count - mean_b * mean_b;
    let covariance = f64::from(products) / count - mean_a * mean_b;
    (2.0 * mean_a * mean_b + C1) * (2.0 * covariance + C2)
        / ((mean_a * mean_a + mean_b * mean_b + C1) * (variance_a + variance_b + C2))
}

fn mean_square(a: &[u8], b: &[u8]) -> f64 {
    squares(a, b) as f64 / a.len() as f64
}

/// Returns the sum of squared differences, computed in chunks with 32-bit sums, which compilers
/// vectorize.
fn squares(a: &[u8], b: &[u8]) -> u64 {
    let square = |(&a, &b): (&u8, &u8)| u32::from(a.abs_diff(b)).pow(2);
    let sum = |(a, b): (&[u8], &[u8])| u64::from(a.iter().zip(b).map(square).sum::<u32>());
    a.chunks(SQUARES).zip(b.chunks(SQUARES)).map(sum).sum()
}

/// Returns the peak signal-to-noise ratio in dB of samples with this mean squared error; infinity
/// for zero.
pub fn decibels(mean_square: f64) -> f64 {
    10.0 * (255.0 * 255.0 / mean_square).log10()
}

fn check_sizes(picture: &Picture, reference: &Picture) -> Result<(), Error> {
    if (picture.width(), picture.height()) == (reference.width(), reference.height()) {
        return Ok(());
    }
    Err(Error::SizeMismatch {
        width: picture.width(),
        height: picture.height(),
        expected_width: reference.width(),
        expected_height: reference.height(),
    })
}

/// Number of squared differences whose sum always fits in 32 bits.
const SQUARES: usize = 1 << 14;
const WINDOW: usize = 8;
const C1: f64 = 0.01 * 255.0 * 0.01 * 255.0;
const C2: f64 = 0.03 * 255.0 * 0.03 * 255.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(value: u8) -> Picture {
        let mut picture = Picture::new(32, 16).unwrap();
        picture.planes_mut().0.fill(value);
        picture
    }

    #[test]
    fn equal_pictures_are_infinitely_near() {
        let picture = filled(77);
        assert_eq!(psnr(&picture, &picture).unwrap(), f64::INFINITY);
        assert_eq!(psnr_weighted(&picture, &picture).unwrap(), f64::INFINITY);
        assert!((ssim(&picture, &picture).unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_difference_of_one_everywhere_is_48_13_db() {
        let psnr = psnr(&filled(100), &filled(101)).unwrap();
        assert!((psnr - 48.1308).abs() < 1e-4);
    }

    #[test]
    fn no_picture_is_too_far_off_to_be_summed() {
        let mut pictures = [0, 255].map(|value| {
            let mut picture = Picture::new(1296, 720).unwrap();
            picture.planes_mut().0.fill(value);
            picture
        });
        assert_eq!(squared_error(&pictures[0], &pictures[1]).unwrap(), 1296 * 720 * 255 * 255);
        pictures[0].planes_mut().0[1296 * 720 - 1] = 252;
        let expected = (1296 * 720 - 1) * 255 * 255 + 9;
        assert_eq!(squared_error(&pictures[0], &pictures[1]).unwrap(), expected);
    }

    #[test]
    fn flat_pictures_differ_in_similarity_by_their_means_alone() {
        let (a, b) = (100.0, 150.0);
        let expected = (2.0 * a * b + C1) / (a * a + b * b + C1);
        let ssim = ssim(&filled(100), &filled(150)).unwrap();
        assert!((ssim - expected).abs() < 1e-9);
    }

    #[test]
    fn pictures_of_different_sizes_are_not_compared() {
        let other = Picture::new(16, 16).unwrap();
        assert!(psnr(&filled(0), &other).is_err());
        assert!(psnr_weighted(&filled(0), &other).is_err());
        assert!(ssim(&filled(0), &other).is_err());
        assert!(squared_error(&filled(0), &other).is_err());
    }
}
