use crate::{Error, Picture};

/// Decoder of one strip: one access unit in, one picture out, without delay.
pub trait Decoder: Send {
    /// Decodes one access unit in Annex B form.
    ///
    /// Returns `None` if the decoder gives no picture for it.
    ///
    /// # Errors
    /// [`Error::Decoder`] if the bytes cannot be decoded, or depend on a picture that never
    /// arrived; another error if the access unit or the decoded picture has an unsupported size or
    /// sampling.
    fn decode(&mut self, access_unit: &[u8]) -> Result<Option<Picture>, Error>;
}
