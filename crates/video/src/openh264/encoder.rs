use tautline_units::{Bitrate, ByteCount};

use super::native::{Control, Native};
use crate::budgeted::{Budgeted, Library};
use crate::{Encoded, Encoder, Error, Picture, QuantizerEncoder, Quantizers, Refresh};

/// openh264 for one strip: constrained baseline, one slice a picture, one reference, one thread.
///
/// Sizes follow the budget by one quantizer a picture, chosen from a model of past sizes.
pub struct StripEncoder {
    coder: Budgeted<Native>,
}

impl StripEncoder {
    /// Makes an encoder of strips of `width` by `height` pixels, `pictures_per_second` of them.
    ///
    /// # Errors
    /// [`Error::Dimensions`] unless both sides are multiples of 16 that openh264 takes (3840 the
    /// longer, 2160 the shorter, at most); [`Error::Invalid`] unless the rate is 1 to 60;
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

/// openh264 for whole pictures, by its own rate control: what ours is measured against.
pub struct RateControlled {
    native: Native,
}

impl RateControlled {
    /// Makes an encoder of pictures of `width` by `height` pixels in `slices` slices, which comes to `bitrate` by its
    /// own means.
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
    /// For a picture of another size.
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
