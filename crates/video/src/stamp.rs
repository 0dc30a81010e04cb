//! A number drawn into a picture, to measure the time from capture to canvas.
//!
//! A row of 42 cells of 8x8 pixels, starting at the top left corner: one white and one black cell,
//! the 32 bits of the value, most significant first and white for 1, and their CRC-8 (polynomial
//! 0x07, initial value 0) over the value's four bytes, big-endian. White is luma 235, black 16,
//! chroma 128. The value is the low 32 bits of the strip's capture time, in milliseconds of Unix
//! time.
//!
//! Only the inner 4x4 of each 8x8 cell is read, so stamps survive QP 51: [`read`] compares their
//! mean with 128.

use crate::{Error, Picture};

/// Width of the stamp in pixels.
pub const WIDTH: usize = CELLS * CELL;

/// Height of the stamp in rows.
pub const HEIGHT: usize = CELL;

/// Draws `value` into the top left corner of `picture`.
///
/// # Errors
/// [`Error::SizeMismatch`] if the picture is narrower than [`WIDTH`].
pub fn draw(picture: &mut Picture, value: u32) -> Result<(), Error> {
    let width = picture.width();
    if width < WIDTH {
        return Err(Error::SizeMismatch {
            width,
            height: picture.height(),
            expected_width: WIDTH,
            expected_height: HEIGHT,
        });
    }
    let cells = pattern(value);
    let (luma, cb, cr) = picture.planes_mut();
    for row in luma.chunks_exact_mut(width).take(HEIGHT) {
        for (index, cell) in row[..WIDTH].chunks_exact_mut(CELL).enumerate() {
            let white = cells >> (CELLS - 1 - index) & 1 == 1;
            cell.fill(if white { WHITE } else { BLACK });
        }
    }
    for plane in [cb, cr] {
        for row in plane.chunks_exact_mut(width / 2).take(HEIGHT / 2) {
            row[..WIDTH / 2].fill(128);
        }
    }
    Ok(())
}

/// Reads the stamp from luma (or, on an RGB canvas, green) pixels whose rows are `stride` apart.
///
/// `None` if there are too few pixels, or no stamp with a valid checksum.
pub fn read(luma: &[u8], stride: usize) -> Option<u32> {
    if stride < WIDTH || luma.len() < stride * (HEIGHT - 1) + WIDTH {
        return None;
    }
    let mut cells = 0u64;
    for index in 0..CELLS {
        let sum: u32 = (2..6)
            .flat_map(|row| &luma[row * stride + index * CELL + 2..][..4])
            .map(|&value| u32::from(value))
            .sum();
        cells = cells << 1 | u64::from(sum >= 128 * 16);
    }
    let value = (cells >> 8) as u32;
    (cells == pattern(value)).then_some(value)
}

/// Returns the 42 cells of `value` as bits, 1 for white, the first cell in bit 41.
fn pattern(value: u32) -> u64 {
    0b10 << 40 | u64::from(value) << 8 | u64::from(checksum(value))
}

/// Returns the CRC-8 of the value's four bytes, with polynomial 0x07 and initial value 0.
fn checksum(value: u32) -> u8 {
    value.to_be_bytes().iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ byte, |crc, _| crc << 1 ^ if crc & 0x80 == 0 { 0 } else { 0x07 })
    })
}

const CELL: usize = 8;
const CELLS: usize = 42;
const WHITE: u8 = 235;
const BLACK: u8 = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_catalogue() {
        // CRC-8/SMBUS has the check value 0xF4 over "123456789"; over one byte it equals the
        // table's entry.
        assert_eq!(checksum(0), 0);
        assert_eq!(checksum(1), 0x07);
        assert_eq!(checksum(0x80), 0x89);
    }

    #[test]
    fn a_picture_without_a_stamp_reads_as_none() {
        let picture = Picture::new(352, 16).unwrap();
        assert_eq!(read(picture.luma(), 352), None);
        assert_eq!(read(&[255; 352 * 8], 352), None);
        assert_eq!(read(&[], 352), None);
        assert_eq!(read(picture.luma(), 16), None);
        assert!(draw(&mut Picture::new(320, 16).unwrap(), 1).is_err());
    }

    proptest! {
        #[test]
        fn a_drawn_stamp_is_read_back(value: u32) {
            let mut picture = Picture::new(352, 16).unwrap();
            draw(&mut picture, value).unwrap();
            prop_assert_eq!(read(picture.luma(), 352), Some(value));
        }

        #[test]
        fn any_pixels_read_without_panic(
            pixels in proptest::collection::vec(any::<u8>(), 0..4000),
            stride in 0usize..500,
        ) {
            let _ = read(&pixels, stride);
        }
    }
}
