//! Common code of the strip encoders from external libraries: one quantizer per picture to meet the
//! budget, and an IDR after any failure.

use tautline_units::ByteCount;

use crate::quantizer::{Activity, Quantizer};
use crate::{AccessUnit, Encoded, Error, Flow, Motion, Picture, Quantizers, Refresh, SliceKind};

/// Encoder of an external library, which codes one picture at one quantizer.
pub trait Library: Send {
    /// Codes a picture of the library's size, as an IDR if `idr` is set.
    ///
    /// # Errors
    /// Returns the library's failure, after which the caller asks for an IDR.
    fn encode(&mut self, picture: &Picture, qp: i32, idr: bool) -> Result<Coded, Error>;
}

/// One picture as coded by a library.
pub struct Coded {
    /// True if the picture is an IDR, requested or not.
    pub is_idr: bool,
    /// The picture's access unit in Annex B form.
    pub bytes: Vec<u8>,
}

/// Encoder of one strip by a library, with the size model that chooses quantizers for a budget.
pub struct Budgeted<L> {
    library: L,
    quantizer: Quantizer,
    width: usize,
    height: usize,
    /// True while the next picture must be an IDR, regardless of the request: before the first, and
    /// after a failure.
    idr_due: bool,
}

impl<L: Library> Budgeted<L> {
    /// Creates an encoder whose first picture is an IDR.
    pub fn new(library: L, width: usize, height: usize) -> Self {
        let quantizer = Quantizer::new(width, height);
        Self { library, quantizer, width, height, idr_due: true }
    }

    /// Encodes as [`Encoder::encode`](crate::Encoder::encode) does; codes an IDR for every request
    /// to recover, because the libraries have no other method.
    ///
    /// # Errors
    /// As [`Encoder::encode`](crate::Encoder::encode).
    pub fn encode(
        &mut self,
        rows: &Picture,
        budget: ByteCount,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.check_size(rows)?;
        self.quantizer.look_at(rows);
        if self.idr_due || refresh != Refresh::No {
            self.idr_due = true;
            let bytes = self.idr(rows, budget)?;
            self.idr_due = false;
            let bytes = AccessUnit::from(bytes.as_slice());
            return Ok(Encoded {
                kind: SliceKind::Idr,
                history: Some(0),
                motion: Motion::default(),
                flow: Flow::default(),
                bytes,
            });
        }
        let qp = self.quantizer.for_predicted(budget);
        let coded = self.predicted(rows, qp)?;
        let size = ByteCount::of(&coded.bytes);
        match coded.kind {
            SliceKind::Idr => {}
            SliceKind::Predicted | SliceKind::Skip => self.quantizer.predicted_done(qp, size),
        }
        self.quantizer.slice_done(qp, size, budget);
        Ok(coded)
    }

    /// Encodes as [`QuantizerEncoder::encode_at`](crate::QuantizerEncoder::encode_at) does.
    ///
    /// # Errors
    /// As [`Encoder::encode`](crate::Encoder::encode).
    pub fn encode_at(
        &mut self,
        rows: &Picture,
        quantizers: Quantizers,
        refresh: Refresh,
    ) -> Result<Encoded, Error> {
        self.check_size(rows)?;
        if self.idr_due || refresh != Refresh::No {
            self.idr_due = true;
            let bytes = self.library.encode(rows, i32::from(quantizers.intra), true)?.bytes;
            self.idr_due = false;
            let bytes = AccessUnit::from(bytes.as_slice());
            return Ok(Encoded {
                kind: SliceKind::Idr,
                history: Some(0),
                motion: Motion::default(),
                flow: Flow::default(),
                bytes,
            });
        }
        self.predicted(rows, i32::from(quantizers.predicted))
    }

    fn predicted(&mut self, rows: &Picture, qp: i32) -> Result<Encoded, Error> {
        // Until the call succeeds: after a failure the decoder's picture differs from the
        // encoder's.
        self.idr_due = true;
        let coded = self.library.encode(rows, qp, false)?;
        self.idr_due = false;
        let (kind, history) =
            if coded.is_idr { (SliceKind::Idr, Some(0)) } else { (SliceKind::Predicted, None) };
        Ok(Encoded {
            kind,
            history,
            motion: Motion::default(),
            flow: Flow::default(),
            bytes: AccessUnit::from(coded.bytes.as_slice()),
        })
    }

    fn idr(&mut self, rows: &Picture, budget: ByteCount) -> Result<Vec<u8>, Error> {
        let activity = Activity::of(rows);
        let mut qp = self.quantizer.for_intra(&activity, budget);
        let mut coded = self.library.encode(rows, qp, true)?.bytes;
        // An IDR depends on nothing before it, so one that is too large is discarded and coded
        // again. A predicted picture changes the encoder's state and cannot be repeated.
        for _ in 0..IDR_RETRIES {
            let size = ByteCount::of(&coded);
            let Some(higher) = self.quantizer.intra_done(&activity, qp, size, budget) else {
                break;
            };
            qp = higher;
            coded = self.library.encode(rows, qp, true)?.bytes;
        }
        self.quantizer.slice_done(qp, ByteCount::of(&coded), budget);
        Ok(coded)
    }

    fn check_size(&self, rows: &Picture) -> Result<(), Error> {
        if (rows.width(), rows.height()) == (self.width, self.height) {
            return Ok(());
        }
        Err(Error::SizeMismatch {
            width: rows.width(),
            height: rows.height(),
            expected_width: self.width,
            expected_height: self.height,
        })
    }
}

/// Maximum number of times that an IDR which is too large is coded again; each takes as long as
/// coding the strip once.
const IDR_RETRIES: usize = 2;
