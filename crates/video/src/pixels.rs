//! Conversion of camera pixels to pictures.

#[cfg(any(feature = "openh264", feature = "libavcodec"))]
use crate::layout::MACROBLOCK;
use crate::{Error, Picture};

/// Layout of a camera's pixels, 8 bits a sample: YUV, or colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// 4:2:2, two pixels in four bytes: luma, blue, luma, red.
    Yuyv,
    /// 4:2:2, two pixels in four bytes: blue, luma, red, luma.
    Uyvy,
    /// Luma only: black and white.
    Grey,
    /// 4:2:0, a plane of luma, then one of blue and red interleaved.
    Nv12,
    /// 4:2:0, one plane each of luma, blue and red.
    I420,
    /// Three bytes a pixel: red, green, blue.
    Rgb,
    /// Three bytes a pixel: blue, green, red.
    Bgr,
    /// Four bytes a pixel: red, green, blue, and one without meaning.
    Rgba,
    /// Four bytes a pixel: blue, green, red, and one without meaning.
    Bgra,
}

impl Format {
    /// Returns the length in bytes of a row of `width` pixels in the first plane.
    pub fn row_bytes(self, width: usize) -> usize {
        match self {
            Self::Yuyv | Self::Uyvy => width.saturating_mul(2),
            Self::Nv12 | Self::I420 | Self::Grey => width,
            Self::Rgb | Self::Bgr => width.saturating_mul(3),
            Self::Rgba | Self::Bgra => width.saturating_mul(4),
        }
    }

    /// Returns the length in bytes of a picture of `width` by `height` pixels whose rows in the
    /// first plane are `stride` bytes apart; `None` unless both sides are even and a row fits, and,
    /// of several planes, the stride is even.
    pub fn bytes(self, width: usize, height: usize, stride: usize) -> Option<usize> {
        let is_even = [width, height].iter().all(|side| side.is_multiple_of(2));
        if !is_even || stride < self.row_bytes(width) {
            return None;
        }
        let first = stride.checked_mul(height)?;
        match self {
            Self::Nv12 | Self::I420 if !stride.is_multiple_of(2) => None,
            Self::Nv12 | Self::I420 => first.checked_add(first / 2),
            Self::Yuyv | Self::Uyvy | Self::Grey => Some(first),
            Self::Rgb | Self::Bgr | Self::Rgba | Self::Bgra => Some(first),
        }
    }
}

/// A camera's picture as raw bytes.
#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    /// Layout of the pixels in the bytes.
    pub format: Format,
    /// Pixels in a row, an even number.
    pub width: usize,
    /// Rows, an even number.
    pub height: usize,
    /// Bytes from one row to the next in the first plane: [`Format::row_bytes`], or more with
    /// padding.
    pub stride: usize,
    /// Bytes of all planes, one after the other.
    pub bytes: &'a [u8],
}

/// One colour plane of an image: the positions of its samples.
#[derive(Clone, Copy)]
struct Plane<'a> {
    bytes: &'a [u8],
    /// Number of samples in a row, and of rows.
    size: [usize; 2],
    /// Number of bytes from one row to the next, and from one sample to the next.
    steps: [usize; 2],
}

impl Image<'_> {
    /// Returns whether `bytes` holds all pixels of the image.
    pub fn is_whole(&self) -> bool {
        let &Self { format, width, height, stride, bytes } = self;
        format.bytes(width, height, stride).is_some_and(|wanted| bytes.len() >= wanted)
    }

    /// Fills `rows` with the rows of this image, starting at the even row `first_row`.
    ///
    /// Surplus columns at the right and rows at the bottom are dropped. Missing ones are filled by
    /// repeating the last: strips have complete macroblocks, but a camera of 1080 rows does not.
    /// With 4:2:2, the chroma of every other row is used. Colours become YUV of BT.601 in video
    /// range, as a JPEG's.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless the image's sides are even and at least 2 and its rows fit in
    /// the stride; [`Error::Truncated`] if there are fewer bytes than pixels.
    pub fn fill(&self, first_row: usize, rows: &mut Picture) -> Result<(), Error> {
        let &Self { format, width, height, stride, bytes } = self;
        let wanted = format.bytes(width, height, stride).filter(|_| width >= 2 && height >= 2);
        let wanted = wanted.ok_or(Error::Dimensions { width, height })?;
        let bytes = bytes.get(..wanted).ok_or(Error::Truncated { what: "camera picture" })?;
        let (whole, quarter) = ([width, height], [width / 2, height / 2]);
        let luma_bytes = stride * height;
        let plane = |from: usize, size, steps| Some(Plane { bytes: &bytes[from..], size, steps });
        let planes = match format {
            Format::Rgb | Format::Bgr | Format::Rgba | Format::Bgra => {
                mix(&Image { bytes, ..*self }, first_row, rows);
                return Ok(());
            }
            Format::Yuyv => [
                plane(0, whole, [stride, 2]),
                plane(1, quarter, [stride * 2, 4]),
                plane(3, quarter, [stride * 2, 4]),
            ],
            Format::Uyvy => [
                plane(1, whole, [stride, 2]),
                plane(0, quarter, [stride * 2, 4]),
                plane(2, quarter, [stride * 2, 4]),
            ],
            Format::Grey => [plane(0, whole, [stride, 1]), None, None],
            Format::Nv12 => [
                plane(0, whole, [stride, 1]),
                plane(luma_bytes, quarter, [stride, 2]),
                plane(luma_bytes + 1, quarter, [stride, 2]),
            ],
            Format::I420 => [
                plane(0, whole, [stride, 1]),
                plane(luma_bytes, quarter, [stride / 2, 1]),
                plane(luma_bytes + stride / 2 * (height / 2), quarter, [stride / 2, 1]),
            ],
        };
        let to_width = rows.width();
        let (luma, cb, cr) = rows.planes_mut();
        for ((plane, to), part) in planes.into_iter().zip([luma, cb, cr]).zip([1, 2, 2]) {
            match plane {
                Some(plane) => spread(plane, first_row / part, to, to_width / part),
                None => to.fill(COLOURLESS),
            }
        }
        Ok(())
    }
}

/// Fills `rows` with the pixels of an image of colours, whose format gives the order.
fn mix(image: &Image<'_>, first_row: usize, rows: &mut Picture) {
    match image.format {
        Format::Bgr => mix_of::<3, 2>(image, first_row, rows),
        Format::Bgra => mix_of::<4, 2>(image, first_row, rows),
        Format::Rgba => mix_of::<4, 0>(image, first_row, rows),
        _ => mix_of::<3, 0>(image, first_row, rows),
    }
}

/// Fills `rows` with pixels of `DEPTH` bytes, of which byte `RED` is red, byte 1 green, and byte
/// 2 - `RED` blue.
fn mix_of<const DEPTH: usize, const RED: usize>(
    image: &Image<'_>,
    first_row: usize,
    rows: &mut Picture,
) {
    let &Image { width, height, stride, bytes, .. } = image;
    let to_width = rows.width();
    let (luma, cb, cr) = rows.planes_mut();
    let row_at = |row: usize| &bytes[(first_row + row).min(height - 1) * stride..][..DEPTH * width];
    let pairs = luma.chunks_exact_mut(2 * to_width);
    let chroma = cb.chunks_exact_mut(to_width / 2).zip(cr.chunks_exact_mut(to_width / 2));
    let colours = |pixel: &[u8]| [pixel[RED], pixel[1], pixel[2 - RED]].map(i32::from);
    for (pair, (luma, (cb, cr))) in pairs.zip(chroma).enumerate() {
        let (upper, lower) = luma.split_at_mut(to_width);
        let fours = row_at(2 * pair)
            .chunks_exact(2 * DEPTH)
            .zip(row_at(2 * pair + 1).chunks_exact(2 * DEPTH));
        let lumas = upper.chunks_exact_mut(2).zip(lower.chunks_exact_mut(2));
        let to = lumas.zip(cb.iter_mut().zip(cr.iter_mut()));
        for ((above, below), ((upper, lower), (cb, cr))) in fours.zip(to) {
            let mut sum = [0; 3];
            for (from, to) in [(above, upper), (below, lower)] {
                for (pixel, to) in from.chunks_exact(DEPTH).zip(to) {
                    let colours = colours(pixel);
                    *to = luma_of(colours);
                    sum = std::array::from_fn(|it| sum[it] + colours[it]);
                }
            }
            let [red, green, blue] = sum;
            *cb = chroma_of(-38 * red - 74 * green + 112 * blue);
            *cr = chroma_of(112 * red - 94 * green - 18 * blue);
        }
        // Missing columns repeat the last.
        let count = width.min(to_width);
        for (row, count) in [(upper, count), (lower, count), (cb, count / 2), (cr, count / 2)] {
            let last = row[count - 1];
            row[count..].fill(last);
        }
    }
}

/// Returns the luma of red, green and blue: BT.601, video range.
fn luma_of([red, green, blue]: [i32; 3]) -> u8 {
    (((66 * red + 129 * green + 25 * blue + 128) >> 8) + 16) as u8
}

/// Returns the chroma of the weighted colours of four pixels, 256 times as large.
fn chroma_of(weighted: i32) -> u8 {
    (((weighted + 512) >> 10) + 128) as u8
}

/// Converts the full-range samples of `rows`, 0 to 255, to video range in place: luma 16 to 235,
/// chroma 16 to 240.
pub fn limit(rows: &mut Picture) {
    let to = |range: u32| -> [u8; 256] {
        std::array::from_fn(|value| 16 + ((value as u32 * range + 127) / 255) as u8)
    };
    let (luma_to, colour_to) = (to(219), to(224));
    let (luma, cb, cr) = rows.planes_mut();
    for (plane, to) in [(luma, &luma_to), (cb, &colour_to), (cr, &colour_to)] {
        for value in plane {
            *value = to[usize::from(*value)];
        }
    }
}

/// Returns a decoder's picture of `width` by `height` shown pixels, extended to complete
/// macroblocks. Each of the planes (luma, blue, red) comes with its number of bytes from one row to
/// the next.
#[cfg(any(feature = "openh264", feature = "libavcodec"))]
pub(crate) fn picture(
    planes: [(&[u8], usize); 3],
    width: usize,
    height: usize,
) -> Result<Picture, Error> {
    if width < 2 || height < 2 {
        return Err(Error::Dimensions { width, height });
    }
    let whole = [width, height].map(|side| side.next_multiple_of(MACROBLOCK));
    let mut picture = Picture::new(whole[0], whole[1])?;
    let (luma, cb, cr) = picture.planes_mut();
    for (((bytes, stride), to), part) in planes.into_iter().zip([luma, cb, cr]).zip([1, 2, 2]) {
        let [width, height] = [width / part, height / part];
        if stride < width || bytes.len() < stride * (height - 1) + width {
            return Err(Error::Truncated { what: "decoded picture" });
        }
        spread(Plane { bytes, size: [width, height], steps: [stride, 1] }, 0, to, whole[0] / part);
    }
    Ok(picture)
}

/// Copies the rows of a plane from `first_row` on, repeating the last row and the last sample of a
/// row where the plane is smaller.
fn spread(plane: Plane<'_>, first_row: usize, to: &mut [u8], to_width: usize) {
    let Plane { bytes, size: [width, height], steps: [stride, step] } = plane;
    let count = width.min(to_width);
    for (row, to) in to.chunks_exact_mut(to_width).enumerate() {
        let from = &bytes[(first_row + row).min(height - 1) * stride..];
        let (copied, lacking) = to.split_at_mut(count);
        if step == 1 {
            copied.copy_from_slice(&from[..count]);
        } else {
            for (value, sample) in copied.iter_mut().zip(from.iter().step_by(step)) {
                *value = *sample;
            }
        }
        lacking.fill(copied[count - 1]);
    }
}

/// Chroma value of a sample without colour.
const COLOURLESS: u8 = 128;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns one picture's bytes in a format; the chroma of paired rows is equal.
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
            Format::Uyvy => {
                for (row, column) in places(height, width / 2) {
                    let (blue, red) = (cb(row / 2, column), cr(row / 2, column));
                    bytes.extend([blue, luma(row, 2 * column), red, luma(row, 2 * column + 1)]);
                }
            }
            Format::Grey => {
                bytes.extend(places(height, width).map(|(row, column)| luma(row, column)));
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
            Format::Rgb => {
                let colours = |(row, column)| [luma(row, column), row as u8, column as u8];
                bytes.extend(places(height, width).flat_map(colours));
            }
            Format::Bgr => {
                let colours = |(row, column)| [column as u8, row as u8, luma(row, column)];
                bytes.extend(places(height, width).flat_map(colours));
            }
            Format::Rgba => {
                let colours = |(row, column)| [luma(row, column), row as u8, column as u8, 7];
                bytes.extend(places(height, width).flat_map(colours));
            }
            Format::Bgra => {
                let colours = |(row, column)| [column as u8, row as u8, luma(row, column), 9];
                bytes.extend(places(height, width).flat_map(colours));
            }
        }
        bytes
    }

    const FORMATS: [Format; 9] = [
        Format::Yuyv,
        Format::Uyvy,
        Format::Nv12,
        Format::I420,
        Format::Grey,
        Format::Rgb,
        Format::Bgr,
        Format::Rgba,
        Format::Bgra,
    ];

    fn image(format: Format, [width, height]: [usize; 2], bytes: &[u8]) -> Image<'_> {
        Image { format, width, height, stride: format.row_bytes(width), bytes }
    }

    #[test]
    fn every_format_yields_the_same_cropped_or_padded_picture() {
        for (width, height) in [(32, 32), (38, 34), (30, 26), (2, 2)] {
            let pictures = FORMATS.map(|format| {
                let mut picture = Picture::new(32, 32).unwrap();
                let bytes = bytes(format, width, height);
                image(format, [width, height], &bytes).fill(0, &mut picture).unwrap();
                picture
            });
            let [yuyv, uyvy, nv12, i420, grey, rgb, bgr, rgba, bgra] = &pictures;
            assert_eq!([yuyv, yuyv, yuyv], [uyvy, nv12, i420]);
            assert_eq!([rgb, rgb, rgb], [bgr, rgba, bgra]);
            assert_eq!(yuyv.luma(), grey.luma());
            assert!(grey.cb().iter().chain(grey.cr()).all(|value| *value == 128));
            let last = (31.min(height - 1) * 7 + 31.min(width - 1)) as u8;
            assert_eq!(pictures[0].luma()[32 * 32 - 1], last);
        }
    }

    #[test]
    fn strips_filled_one_by_one_are_the_rows_of_the_whole() {
        for format in FORMATS {
            let bytes = bytes(format, 30, 90);
            let image = image(format, [30, 90], &bytes);
            let mut whole = Picture::new(32, 96).unwrap();
            image.fill(0, &mut whole).unwrap();
            for first_row in [0, 32, 64] {
                let mut strip = Picture::new(32, 32).unwrap();
                image.fill(first_row, &mut strip).unwrap();
                assert_eq!(strip, whole.rows(first_row..first_row + 32).unwrap());
            }
        }
    }

    #[test]
    fn colours_become_those_of_video() {
        let bars = [
            ([255, 255, 255], [235, 128, 128]),
            ([0, 0, 0], [16, 128, 128]),
            ([255, 0, 0], [82, 90, 240]),
            ([0, 255, 0], [144, 54, 34]),
            ([0, 0, 255], [41, 240, 110]),
        ];
        for (colours, expected) in bars {
            let bytes: Vec<u8> = colours.repeat(4);
            let mut picture = Picture::new(16, 16).unwrap();
            image(Format::Rgb, [2, 2], &bytes).fill(0, &mut picture).unwrap();
            let found = [picture.luma()[17], picture.cb()[0], picture.cr()[63]];
            for (found, expected) in found.into_iter().zip(expected) {
                assert!(found.abs_diff(expected) <= 1, "{colours:?}: {found}, {expected}");
            }
        }
    }

    #[test]
    fn full_range_is_brought_to_that_of_video() {
        let mut rows = Picture::new(16, 16).unwrap();
        let (luma, cb, cr) = rows.planes_mut();
        (luma[0], luma[1], luma[2], cb[0], cr[0]) = (0, 128, 255, 255, 128);
        limit(&mut rows);
        assert_eq!(rows.luma()[..3], [16, 126, 235]);
        assert_eq!((rows.cb()[0], rows.cr()[0]), (240, 128));
    }

    #[test]
    fn row_padding_is_skipped() {
        let packed = bytes(Format::Nv12, 32, 32);
        let padded: Vec<u8> =
            packed.chunks(32).flat_map(|row| [row, &[7; 16][..]].concat()).collect();
        let [mut first, mut second] = [(); 2].map(|()| Picture::new(32, 32).unwrap());
        image(Format::Nv12, [32, 32], &packed).fill(0, &mut first).unwrap();
        let image = Image { stride: 48, ..image(Format::Nv12, [32, 32], &padded) };
        image.fill(0, &mut second).unwrap();
        assert_eq!(first, second);
    }

    proptest! {
        #[test]
        fn any_size_and_bytes_fill_or_are_refused(
            width in 0usize..70,
            height in 0usize..70,
            padding in 0usize..5,
            first_row in 0usize..40,
            bytes in proptest::collection::vec(any::<u8>(), 0..10_000),
            format in prop::sample::select(FORMATS.to_vec()),
        ) {
            let mut picture = Picture::new(32, 48).unwrap();
            let before = picture.clone();
            let stride = format.row_bytes(width) + padding;
            let image = Image { format, width, height, stride, bytes: &bytes };
            if image.fill(first_row, &mut picture).is_err() {
                prop_assert_eq!(picture, before);
            }
        }
    }
}
