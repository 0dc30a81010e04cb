use tautline_units::ByteCount;

use super::native::{Coded, Native};
use crate::quantizer::{Activity, Quantizer};
use crate::{Encoded, Encoder, Error, Picture, Refresh, SliceKind};

/// Codes one strip with openh264: constrained baseline, one slice a picture, one reference, one
/// thread.
///
/// Sizes follow the budget by one quantizer a picture, chosen from a model of past sizes.
pub struct StripEncoder {
    native: Native,
    quantizer: Quantizer,
    width: usize,
    height: usize,
    /// Whether the next picture must be an IDR whatever is asked.
    idr_due: bool,
}

impl StripEncoder {
    /// An encoder of strips of `width` by `height` pixels, `pictures_per_second` of them.
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
        let quantizer = Quantizer::new(width, height);
        Ok(Self { native, quantizer, width, height, idr_due: true })
    }

    fn encode_with(&mut self, rows: &Picture, qp: i32) -> Result<Coded, Error> {
        self.native.set_qp(qp)?;
        self.native.encode(rows)
    }

    fn idr(&mut self, rows: &Picture, budget: ByteCount) -> Result<Vec<u8>, Error> {
        let activity = Activity::of(rows);
        let mut qp = self.quantizer.for_intra(&activity, budget);
        let mut coded = self.coded_idr(rows, qp)?;
        // An IDR depends on nothing before it, so one that is too large is thrown away and made
        // again. A predicted picture's encoder could not go back.
        for _ in 0..IDR_RETRIES {
            let size = ByteCount::of(&coded);
            let Some(higher) = self.quantizer.intra_done(&activity, qp, size, budget) else {
                break;
            };
            qp = higher;
            coded = self.coded_idr(rows, qp)?;
        }
        self.quantizer.settle(qp, ByteCount::of(&coded), budget);
        Ok(coded)
    }

    fn coded_idr(&mut self, rows: &Picture, qp: i32) -> Result<Vec<u8>, Error> {
        self.native.force_idr()?;
        Ok(self.encode_with(rows, qp)?.bytes)
    }
}

/// Each takes as long as coding the strip once.
const IDR_RETRIES: usize = 2;

impl Encoder for StripEncoder {
    fn encode(
        &mut self,
        rows: &Picture,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        if (rows.width(), rows.height()) != (self.width, self.height) {
            return Err(Error::SizeMismatch {
                width: rows.width(),
                height: rows.height(),
                expected_width: self.width,
                expected_height: self.height,
            });
        }
        self.quantizer.look_at(rows);
        if self.idr_due || refresh == Refresh::Idr {
            self.idr_due = true;
            let bytes = self.idr(rows, budget)?;
            self.idr_due = false;
            return Ok(Encoded { kind: SliceKind::Idr, bytes });
        }
        // Until it has gone well: after a failure the decoder's picture is not the encoder's.
        self.idr_due = true;
        let qp = self.quantizer.for_predicted(budget);
        let coded = self.encode_with(rows, qp)?;
        let size = ByteCount::of(&coded.bytes);
        self.idr_due = false;
        if coded.is_idr {
            self.quantizer.settle(qp, size, budget);
            return Ok(Encoded { kind: SliceKind::Idr, bytes: coded.bytes });
        }
        self.quantizer.predicted_done(qp, size);
        self.quantizer.settle(qp, size, budget);
        Ok(Encoded { kind: SliceKind::Predicted, bytes: coded.bytes })
    }
}
