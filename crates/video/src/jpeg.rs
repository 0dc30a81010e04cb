//! Pictures of cameras that send JPEGs.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::Error;

/// Decoder of full-range (0 to 255) JPEGs of one size into 4:2:0 with the same range.
#[derive(Debug)]
pub struct Decoder {
    width: usize,
    height: usize,
    /// Luma, blue and red of each pixel of the latest JPEG, interleaved.
    samples: Vec<u8>,
}

impl Decoder {
    /// Creates a decoder of pictures of `width` by `height` pixels.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both are even and from 2 to 8192.
    pub fn new(width: usize, height: usize) -> Result<Self, Error> {
        let is_possible = |side: usize| side.is_multiple_of(2) && (2..=8192).contains(&side);
        if !is_possible(width) || !is_possible(height) {
            return Err(Error::Dimensions { width, height });
        }
        Ok(Self { width, height, samples: vec![0; width * height * 3] })
    }

    /// Decodes `jpeg` into `picture`, in place of its content: one plane each of luma, blue and
    /// red.
    ///
    /// # Errors
    /// [`Error::Decoder`] if it is not a JPEG, is truncated, or has no colour;
    /// [`Error::SizeMismatch`] if its size differs.
    pub fn decode(&mut self, jpeg: &[u8], picture: &mut Vec<u8>) -> Result<(), Error> {
        let Self { width, height, samples } = self;
        let (width, height) = (*width, *height);
        let refused = |error: &dyn std::fmt::Debug| Error::Decoder { reason: format!("{error:?}") };
        let options = DecoderOptions::new_fast()
            .set_max_width(width)
            .set_max_height(height)
            .set_strict_mode(true)
            .jpeg_set_out_colorspace(ColorSpace::YCbCr);
        let mut decoder = JpegDecoder::new_with_options(ZCursor::new(jpeg), options);
        decoder.decode_headers().map_err(|error| refused(&error))?;
        let size = decoder.dimensions().unwrap_or_default();
        if size != (width, height) || decoder.output_buffer_size() != Some(samples.len()) {
            return Err(Error::SizeMismatch {
                width: size.0,
                height: size.1,
                expected_width: width,
                expected_height: height,
            });
        }
        decoder.decode_into(samples).map_err(|error| refused(&error))?;
        let pixels = width * height;
        picture.resize(pixels * 3 / 2, 0);
        let (luma, colour) = picture.split_at_mut(pixels);
        let (cb, cr) = colour.split_at_mut(pixels / 4);
        for (value, sample) in luma.iter_mut().zip(samples.chunks_exact(3)) {
            *value = sample[0];
        }
        let rows = samples.chunks_exact(width * 6);
        let to = cb.chunks_exact_mut(width / 2).zip(cr.chunks_exact_mut(width / 2));
        for (rows, (cb, cr)) in rows.zip(to) {
            let (upper, lower) = rows.split_at(width * 3);
            let fours = upper.chunks_exact(6).zip(lower.chunks_exact(6));
            for ((upper, lower), (cb, cr)) in fours.zip(cb.iter_mut().zip(cr)) {
                let mean = |at: usize| {
                    let sum: u32 = [upper[at], upper[at + 3], lower[at], lower[at + 3]]
                        .map(u32::from)
                        .iter()
                        .sum();
                    ((sum + 2) / 4) as u8
                };
                (*cb, *cr) = (mean(1), mean(2));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    /// Returns a JPEG of 64 by 48 red pixels in the format of a USB camera.
    fn red(sampling: &str) -> Vec<u8> {
        let made = Command::new("ffmpeg")
            .args(["-v", "error", "-f", "lavfi", "-i", "color=red:size=64x48", "-frames:v", "1"])
            .args(["-pix_fmt", sampling, "-c:v", "mjpeg", "-f", "mjpeg", "-"])
            .output()
            .expect("needs ffmpeg: ./setup ffmpeg");
        assert!(made.status.success());
        made.stdout
    }

    #[test]
    fn a_camera_s_jpeg_is_decoded() {
        for sampling in ["yuvj420p", "yuvj422p"] {
            let mut picture = Vec::new();
            Decoder::new(64, 48).unwrap().decode(&red(sampling), &mut picture).unwrap();
            assert_eq!(picture.len(), 64 * 48 * 3 / 2);
            let close = |at: usize, expected: u8| picture[at].abs_diff(expected) <= 3;
            assert!(
                close(0, 76) && close(64 * 48, 85) && close(64 * 48 * 5 / 4, 255),
                "{sampling}"
            );
        }
    }

    #[test]
    fn one_that_is_cut_or_of_another_size_is_refused() {
        let jpeg = red("yuvj420p");
        let mut picture = Vec::new();
        assert!(Decoder::new(32, 48).unwrap().decode(&jpeg, &mut picture).is_err());
        assert!(Decoder::new(640, 480).unwrap().decode(&jpeg, &mut picture).is_err());
        let mut decoder = Decoder::new(64, 48).unwrap();
        for length in [0, 2, 20, jpeg.len() / 3] {
            assert!(decoder.decode(&jpeg[..length], &mut picture).is_err(), "{length}");
        }
        assert!(Decoder::new(63, 48).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_decode_without_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..2_000),
            begins: bool,
        ) {
            let bytes = if begins { [&[0xFF, 0xD8, 0xFF, 0xC0][..], &bytes].concat() } else { bytes };
            let _ = Decoder::new(64, 48).unwrap().decode(&bytes, &mut Vec::new());
        }
    }
}
