use tautline_units::ByteCount;

use crate::{AccessUnit, Error, Flow, Motion, Picture, SliceKind};

/// A strip's rows while the sensor reads them.
pub trait Rows {
    /// Waits until the first `count` rows, or all if there are fewer, have been read, and returns
    /// the strip; rows beyond them are not valid yet.
    fn read(&mut self, count: usize) -> &Picture;
}

/// A strip that is completely read: reading does not wait.
impl Rows for &Picture {
    fn read(&mut self, _count: usize) -> &Picture {
        self
    }
}

/// Encoder of one strip, one picture per call.
///
/// The strip is an H.264 stream of its own. A picture refers to earlier ones only, and none is
/// delayed: each input produces its output immediately.
pub trait Encoder: Send {
    /// Codes the strip's next picture into about `budget` bytes.
    ///
    /// The budget may change at every call, by any factor. The mean size follows it; a single slice
    /// may exceed it, and an IDR may be several times as large.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if `rows` does not have the encoder's size; [`Error::Encoder`] if
    /// the backend fails, after which the next picture is coded as an IDR.
    fn encode(
        &mut self,
        rows: &Picture,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error>;

    /// Encodes as [`encode`](Self::encode) does, while the rows are still being read. An encoder
    /// that supports this begins with the first rows, so the slice is ready soon after the last.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    fn encode_rows(
        &mut self,
        rows: &mut dyn Rows,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.encode(rows.read(usize::MAX), budget, refresh)
    }

    /// Completes the work on the last picture that the next one needs and its slice did not. Call
    /// it after sending a slice and before the next rows arrive; otherwise the next picture begins
    /// with this work. An encoder without such work does nothing.
    fn finish_reconstruction(&mut self) {}
}

/// Encoder of one strip at given quantizers, to measure their cost and quality.
pub trait QuantizerEncoder: Encoder {
    /// Codes the strip's next picture at `quantizers`, regardless of its size.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    fn encode_at(
        &mut self,
        rows: &Picture,
        quantizers: Quantizers,
        refresh: Refresh,
    ) -> Result<Encoded, Error>;
}

/// Quantizers of a picture's intra and predicted macroblocks, 0 to [`Quantizers::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Quantizers {
    /// Quantizer of an IDR, and of refreshed macroblocks if the encoder distinguishes them.
    pub intra: u8,
    /// Quantizer of all other macroblocks.
    pub predicted: u8,
}

impl Quantizers {
    /// Coarsest H.264 quantizer for 8 bits.
    pub const MAX: u8 = 51;

    /// Returns `qp` as the quantizer of both kinds of macroblocks.
    pub const fn both(qp: u8) -> Self {
        Self { intra: qp, predicted: qp }
    }
}

/// Encoder control of one picture: what it may be predicted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refresh {
    /// Predict from the previous picture, if there is one.
    No,
    /// Code an IDR with its parameter sets.
    Idr,
    /// Recover from a reported loss by the encoder's own method, or with an IDR if it has none.
    Recover,
}

/// One coded picture of a strip.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// Kind of the slice.
    pub kind: SliceKind,
    /// Maximum number of preceding pictures of the strip that it depends on, regardless of earlier
    /// losses: 0 for an IDR; [`Encoded::LONG`] means that many or more. `None` if unknown to the
    /// encoder.
    pub history: Option<u8>,
    /// Motion of the strip as a whole; zero if the encoder does not report it.
    pub motion: Motion,
    /// Motion of the strip's left and right half; zero if the encoder does not report it.
    pub flow: Flow,
    /// The access unit; an IDR begins with its parameter sets.
    pub bytes: AccessUnit,
}

impl Encoded {
    /// Greatest value of a history, which means this number of pictures or more.
    pub const LONG: u8 = 254;
}
