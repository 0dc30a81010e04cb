//! Pictures from the pixels that cameras give.

use crate::{Error, Picture};

/// Layout of a camera's pixels; all limited-range YUV in 8 bits, rows without padding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// 4:2:2, two pixels in four bytes: luma, blue, luma, red.
    Yuyv,
    /// 4:2:0, a plane of luma, then one of blue and red in turn.
    Nv12,
    /// 4:2:0, a plane each of luma, blue and red.
    I420,
}

impl Format {
    /// Returns the bytes of a picture of `width` by `height` pixels, or `None` unless both are
    /// even.
    pub fn bytes(self, width: usize, height: usize) -> Option<usize> {
        if !width.is_multiple_of(2) || !height.is_multiple_of(2) {
            return None;
        }
        let pixels = width.checked_mul(height)?;
        match self {
            Self::Yuyv => pixels.checked_mul(2),
            Self::Nv12 | Self::I420 => pixels.checked_add(pixels / 2),
        }
    }
}

/// Fills `picture` with the pixels of a camera's picture of `width` by `height`.
///
/// Where the camera has more rows or columns, those at the right and at the bottom are left out; where
/// it has fewer, its last ones are repeated: a picture has whole macroblocks, a camera of 1080 rows
/// has not. Of 4:2:2, every other row's colour is taken.
///
/// # Errors
/// [`Error::Dimensions`] unless the camera's sides are even and at least 2; [`Error::Truncated`] if
/// there are fewer bytes than its pixels take.
pub fn fill(
    picture: &mut Picture,
    format: Format,
    width: usize,
    height: usize,
    bytes: &[u8],
) -> Result<(), Error> {
    let wanted = format.bytes(width, height).filter(|_| width >= 2 && height >= 2);
    let wanted = wanted.ok_or(Error::Dimensions { width, height })?;
    let bytes = bytes.get(..wanted).ok_or(Error::Truncated { what: "camera picture" })?;
    let to_width = picture.width();
    let (luma, cb, cr) = picture.planes_mut();
    let (pixels, half) = (width * height, width / 2);
    let spread = |plane: &mut [u8],
                  to_width: usize,
                  size: (usize, usize),
                  at: &dyn Fn(usize, usize) -> usize| {
        for (row, to) in plane.chunks_exact_mut(to_width).enumerate() {
            let row = row.min(size.1 - 1);
            for (column, value) in to.iter_mut().enumerate() {
                *value = bytes[at(row, column.min(size.0 - 1))];
            }
        }
    };
    let whole = (width, height);
    let quarter = (half, height / 2);
    match format {
        Format::Yuyv => {
            spread(luma, to_width, whole, &|row, column| (row * width + column) * 2);
            spread(cb, to_width / 2, quarter, &|row, column| (row * width + column) * 4 + 1);
            spread(cr, to_width / 2, quarter, &|row, column| (row * width + column) * 4 + 3);
        }
        Format::Nv12 => {
            spread(luma, to_width, whole, &|row, column| row * width + column);
            spread(cb, to_width / 2, quarter, &|row, column| pixels + row * width + column * 2);
            spread(cr, to_width / 2, quarter, &|row, column| pixels + row * width + column * 2 + 1);
        }
        Format::I420 => {
            spread(luma, to_width, whole, &|row, column| row * width + column);
            spread(cb, to_width / 2, quarter, &|row, column| pixels + row * half + column);
            spread(cr, to_width / 2, quarter, &|row, column| {
                pixels + pixels / 4 + row * half + column
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns every format's bytes of one picture, whose colours are equal in pairs of rows.
    fn bytes(format: Format, width: usize, height: usize) -> Vec<u8> {
        let luma = |row: usize, column: usize| (row * 7 + column) as u8;
        let cb = |row: usize, column: usize| (100 + row + column) as u8;
        let cr = |row: usize, column: usize| (200 - row - column) as u8;
        let mut bytes = Vec::new();
        let places = |rows: usize, columns: usize| {
            (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
        };
        match format {
            Format::Yuyv => {
                for (row, column) in places(height, width / 2) {
                    let (blue, red) = (cb(row / 2, column), cr(row / 2, column));
                    bytes.extend([luma(row, 2 * column), blue, luma(row, 2 * column + 1), red]);
                }
            }
            Format::Nv12 => {
                bytes.extend(places(height, width).map(|(row, column)| luma(row, column)));
                bytes.extend(places(height / 2, width / 2).flat_map(|(r, c)| [cb(r, c), cr(r, c)]));
            }
            Format::I420 => {
                bytes.extend(places(height, width).map(|(row, column)| luma(row, column)));
                bytes.extend(places(height / 2, width / 2).map(|(r, c)| cb(r, c)));
                bytes.extend(places(height / 2, width / 2).map(|(r, c)| cr(r, c)));
            }
        }
        bytes
    }

    const FORMATS: [Format; 3] = [Format::Yuyv, Format::Nv12, Format::I420];

    #[test]
    fn every_format_gives_the_same_picture_cut_or_spread_to_whole_macroblocks() {
        for (width, height) in [(32, 32), (38, 34), (30, 26), (2, 2)] {
            let pictures = FORMATS.map(|format| {
                let mut picture = Picture::new(32, 32).unwrap();
                fill(&mut picture, format, width, height, &bytes(format, width, height)).unwrap();
                picture
            });
            assert_eq!(pictures[0], pictures[1]);
            assert_eq!(pictures[0], pictures[2]);
            let last = (31.min(height - 1) * 7 + 31.min(width - 1)) as u8;
            assert_eq!(pictures[0].luma()[32 * 32 - 1], last);
        }
    }

    proptest! {
        #[test]
        fn any_size_and_bytes_fill_or_are_refused(
            width in 0usize..70,
            height in 0usize..70,
            bytes in proptest::collection::vec(any::<u8>(), 0..10_000),
            format in prop::sample::select(FORMATS.to_vec()),
        ) {
            let mut picture = Picture::new(32, 48).unwrap();
            let before = picture.clone();
            if fill(&mut picture, format, width, height, &bytes).is_err() {
                prop_assert_eq!(picture, before);
            }
        }
    }
}
