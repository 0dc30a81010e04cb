use openh264::OpenH264API;
use openh264::decoder::{Decoder as Native, DecoderConfig, Flush};
use openh264::formats::YUVSource;

use crate::{Decoder, Error, Picture, pixels};

/// Decoder of one strip by openh264, on the calling thread.
pub struct StripDecoder {
    native: Native,
}

impl StripDecoder {
    /// Creates a decoder that waits for its first IDR.
    ///
    /// # Errors
    /// [`Error::Decoder`] if the library has no memory for it.
    pub fn new() -> Result<Self, Error> {
        // Flushing returns each picture immediately. Without it, a stream from another encoder
        // whose parameter sets permit reordering would be delayed.
        let config = DecoderConfig::new().flush_after_decode(Flush::Flush);
        let native =
            Native::with_api_config(OpenH264API::from_source(), config).map_err(refused)?;
        Ok(Self { native })
    }
}

impl Decoder for StripDecoder {
    fn decode(&mut self, access_unit: &[u8]) -> Result<Option<Picture>, Error> {
        if i32::try_from(access_unit.len()).is_err() {
            return Err(Error::Invalid { what: "access unit", value: access_unit.len() as u64 });
        }
        let Some(decoded) = self.native.decode(access_unit).map_err(refused)? else {
            return Ok(None);
        };
        let (width, height) = decoded.dimensions();
        let (luma_stride, cb_stride, cr_stride) = decoded.strides();
        let planes =
            [(decoded.y(), luma_stride), (decoded.u(), cb_stride), (decoded.v(), cr_stride)];
        pixels::picture(planes, width, height).map(Some)
    }
}

fn refused(error: openh264::Error) -> Error {
    Error::Decoder { reason: error.to_string() }
}
