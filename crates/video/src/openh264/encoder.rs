use tautline_units::ByteCount;

use super::native::Native;
use crate::budgeted::Budgeted;
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
        let native = Native::new(width, height, pictures_per_second as f32)?;
        Ok(Self { coder: Budgeted::new(native, width, height) })
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
