use tautline_units::ByteCount;

use crate::{AccessUnit, Error, Flow, Motion, Picture, SliceKind};

/// A strip's rows while the sensor reads them.
pub trait Rows {
    /// Waits until the first `count` rows have been read, or all, and gives the strip: what stands in
    /// rows further down means nothing yet.
    fn read(&mut self, count: usize) -> &Picture;
}

/// Rows of a strip that has been read to its end.
impl Rows for &Picture {
    fn read(&mut self, _count: usize) -> &Picture {
        self
    }
}

/// Encoder of one strip, picture by picture.
///
/// The strip is an H.264 stream of its own. Every picture refers to the one before it alone, and
/// none is held back: what goes in comes out at once.
pub trait Encoder: Send {
    /// Codes the strip's next picture into about `budget` bytes.
    ///
    /// The budget may change at every call, by any factor. Sizes follow it in the mean; a single
    /// slice may be larger, as may an IDR.
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if `rows` has not the encoder's size; [`Error::Encoder`] if the
    /// backend fails, after which the next picture is coded as an IDR.
    fn encode(
        &mut self,
        rows: &Picture,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error>;

    /// Encodes as [`encode`](Self::encode) does, rows that are still being read: an encoder that
    /// can begins with the first of them, so that the slice is ready soon after the last.
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

    /// Does the work on the last picture that the next one needs and its slice did not: of use
    /// between sending a slice and having the next rows. Without it the next picture begins with it.
    fn finish_reconstruction(&mut self) {}
}

/// Encoder of one strip at quantizers that are told: to measure what a quantizer costs and gives.
pub trait QuantizerEncoder: Encoder {
    /// Codes the strip's next picture at `quantizers`, whatever its size becomes.
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

/// The quantizers of a picture's intra and of its predicted macroblocks, 0 to [`Quantizers::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Quantizers {
    /// Of an IDR, and of refreshed macroblocks where the encoder tells them apart.
    pub intra: u8,
    /// Of all others.
    pub predicted: u8,
}

impl Quantizers {
    /// The coarsest quantizer that H.264 has for 8 bits.
    pub const MAX: u8 = 51;

    /// Returns the same quantizer for both.
    pub const fn both(qp: u8) -> Self {
        Self { intra: qp, predicted: qp }
    }
}

/// Encoder control of one picture: what it may be predicted from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refresh {
    /// Predict from the picture before, if there is one.
    No,
    /// Code an IDR with its parameter sets.
    Idr,
    /// Recover from a loss that was reported, in the encoder's own way; with an IDR if it has none.
    Recover,
}

/// One coded picture of a strip.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoded {
    /// How it was coded.
    pub kind: SliceKind,
    /// How many pictures before it decide what it shows, at the most, whatever was lost before those:
    /// 0 of an IDR, [`Encoded::LONG`] for that many or more. None where the encoder does not know.
    pub history: Option<u8>,
    /// How it moves.
    pub motion: Motion,
    /// How its halves move; still where the encoder does not tell.
    pub flow: Flow,
    /// The access unit; an IDR begins with its parameter sets.
    pub bytes: AccessUnit,
}

impl Encoded {
    /// A history of this many pictures or more.
    pub const LONG: u8 = 254;
}
