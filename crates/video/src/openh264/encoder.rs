use tautline_units::{Bitrate, ByteCount};

use super::native::{Control, Native};
use crate::budgeted::{Budgeted, Library};
use crate::{Encoded, Encoder, Error, Picture, QuantizerEncoder, Quantizers, Refresh};

/// Encoder of one strip by openh264: constrained baseline, one slice per picture, one reference,
/// one thread.
///
/// Sizes follow the budget by one quantizer per picture, chosen from a model of past sizes.
pub struct StripEncoder {
    coder: Budgeted<Native>,
}

impl StripEncoder {
    /// Creates an encoder for strips of `width` by `height` pixels at `pictures_per_second`.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both sides are multiples of 16 that openh264 supports (at most
    /// 3840 for the longer, 2160 for the shorter); [`Error::Invalid`] unless the rate is 1 to 60;
    /// [`Error::Encoder`] if the library refuses.
    pub fn new(width: usize, height: usize, pictures_per_second: u32) -> Result<Self, Error> {
        let valid = |side: usize| side.is_multiple_of(16) && side >= 16;
        let fits = width.max(height) <= 3840 && width.min(height) <= 2160;
        if !valid(width) || !valid(height) || !fits {
            return Err(Error::Dimensions { width, height });
        }
        if pictures_per_second == 0 || pictures_per_second > 60 {
            let value = u64::from(pictures_per_second);
            return Err(Error::Invalid { what: "picture rate", value });
        }
        let control = Control::Quantizer;
        let native = Native::new(width, height, pictures_per_second as f32, control)?;
        Ok(Self { coder: Budgeted::new(native, width, height) })
    }
}

/// Encoder of complete pictures by openh264 with its own rate control: the baseline for Tautline's
/// encoder.
pub struct RateControlled {
    native: Native,
}

impl RateControlled {
    /// Creates an encoder for pictures of `width` by `height` pixels in `slices` slices; the
    /// library's rate control targets `bitrate`.
    ///
    /// # Errors
    /// [`Error::Encoder`] if the library refuses.
    pub fn new(
        width: usize,
        height: usize,
        pictures_per_second: u32,
        bitrate: Bitrate,
        slices: u32,
    ) -> Result<Self, Error> {
        let bits_per_second = i32::try_from(bitrate.bps()).unwrap_or(i32::MAX);
        let control = Control::Own { bits_per_second, slices };
        Ok(Self { native: Native::new(width, height, pictures_per_second as f32, control)? })
    }

    /// Codes the next picture; the first is an IDR.
    ///
    /// # Errors
    /// [`Error::Encoder`] if the library fails.
    ///
    /// # Panics
    /// If the picture's size differs.
    pub fn encode(&mut self, picture: &Picture) -> Result<Vec<u8>, Error> {
        Ok(self.native.encode(picture, 0, false)?.bytes)
    }
}

impl Encoder for StripEncoder {
    fn encode(
        &mut self,
        rows: &Picture,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.coder.encode(rows, budget, refresh)
    }
}

impl QuantizerEncoder for StripEncoder {
    fn encode_at(
        &mut self,
        rows: &Picture,
        quantizers: Quantizers,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.coder.encode_at(rows, quantizers, refresh)
    }
}
