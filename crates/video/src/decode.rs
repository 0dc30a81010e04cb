use crate::{Error, Picture};

/// Decoder of one strip: one access unit in, one picture out, without delay.
pub trait Decoder: Send {
    /// Decodes one access unit in Annex B form.
    ///
    /// Gives `None` if the access unit holds no picture.
    ///
    /// # Errors
    /// [`Error::Decoder`] if the bytes cannot be decoded, or need a picture that never came.
    fn decode(&mut self, access_unit: &[u8]) -> Result<Option<Picture>, Error>;
}
