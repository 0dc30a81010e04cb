//! The libavcodec backend: FFmpeg's decoder, which must be installed.

use ffmpeg_next::codec::{Id, context::Context, decoder};
use ffmpeg_next::ffi;
use ffmpeg_next::format::Pixel;
use ffmpeg_next::packet::Packet;
use ffmpeg_next::util::frame::Video as Frame;

use crate::{Decoder, Error, Picture, pixels};

/// Decoder of one strip by libavcodec, on the calling thread.
///
/// The library's own concealment is off; the [`Concealer`](crate::Concealer) does that. With one
/// access unit per call it returns each picture immediately. In its mode for single slices
/// (`AV_CODEC_FLAG2_CHUNKS`) libavcodec would hold a picture of several slices until it is
/// complete, but a picture in strips has its rows as they arrive.
pub struct StripDecoder {
    decoder: decoder::Video,
    frame: Frame,
}

impl StripDecoder {
    /// Creates a decoder that waits for its first IDR.
    ///
    /// # Errors
    /// [`Error::Decoder`] if the library has no H.264 decoder, or no memory for it.
    pub fn new() -> Result<Self, Error> {
        ffmpeg_next::init().map_err(refused)?;
        let codec = decoder::find(Id::H264)
            .ok_or_else(|| Error::Decoder { reason: "no H.264 in this libavcodec".to_owned() })?;
        let mut context = Context::new_with_codec(codec);
        set_low_delay(&mut context);
        let decoder = context.decoder().video().map_err(refused)?;
        Ok(Self { decoder, frame: Frame::empty() })
    }
}

impl Decoder for StripDecoder {
    fn decode(&mut self, access_unit: &[u8]) -> Result<Option<Picture>, Error> {
        self.decoder.send_packet(&Packet::copy(access_unit)).map_err(refused)?;
        match self.decoder.receive_frame(&mut self.frame) {
            Ok(()) => picture(&self.frame).map(Some),
            Err(ffmpeg_next::Error::Other { errno }) if errno == ffmpeg_next::error::EAGAIN => {
                Ok(None)
            }
            Err(error) => Err(refused(error)),
        }
    }
}

#[allow(unsafe_code)]
fn set_low_delay(context: &mut Context) {
    // SAFETY: The context is allocated and not yet opened, so its fields may be set.
    unsafe {
        let context = &mut *context.as_mut_ptr();
        context.flags |= (ffi::AV_CODEC_FLAG_LOW_DELAY | ffi::AV_CODEC_FLAG_OUTPUT_CORRUPT) as i32;
        context.thread_count = 1;
        context.error_concealment = 0;
    }
}

fn picture(frame: &Frame) -> Result<Picture, Error> {
    if !matches!(frame.format(), Pixel::YUV420P | Pixel::YUVJ420P) {
        return Err(Error::Unsupported { what: "a sampling other than 4:2:0 in 8 bits" });
    }
    let (width, height) = (frame.width() as usize, frame.height() as usize);
    let planes = [0, 1, 2].map(|plane| (frame.data(plane), frame.stride(plane)));
    pixels::picture(planes, width, height)
}

fn refused(error: ffmpeg_next::Error) -> Error {
    Error::Decoder { reason: error.to_string() }
}
