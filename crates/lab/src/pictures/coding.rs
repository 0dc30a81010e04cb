//! Encoding of footage with one encoder per strip, and decoding.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tautline_net::clock::thread_time;
use tautline_units::{Bitrate, ByteCount};
use tautline_vehicle::encode::Plan;
use tautline_video::avc::{self, LossRecovery};
use tautline_video::openh264::StripDecoder;
use tautline_video::{
    Backend, Decoder, Encoded, Layout, Picture, QuantizerEncoder, Quantizers, Refresh,
};

use crate::pictures::footage::Footage;
use crate::pictures::seams::Seams;
#[cfg(feature = "x264")]
use crate::pictures::x264;
use crate::quality;

/// Encoder of one strip.
pub(crate) enum Coder {
    /// Our encoder, which exposes more of its state than others.
    Own(Box<avc::StripEncoder>),
    /// Any other encoder.
    Other(Box<dyn QuantizerEncoder>),
}

impl Coder {
    pub(crate) fn open(backend: Backend, width: usize, height: usize, rate: u32) -> Result<Self> {
        let Backend::Avc(loss_recovery) = backend else {
            return Ok(Self::Other(backend.open_at(width, height, rate)?));
        };
        let config = avc::Config {
            width,
            height,
            cropped: [0, 0],
            pictures_per_second: rate,
            loss_recovery,
            joinable: false,
        };
        Ok(Self::Own(Box::new(avc::StripEncoder::new(config)?)))
    }

    /// Returns an independent copy in the same state; `None` for other encoders than ours.
    pub(crate) fn doubled(&self) -> Option<Self> {
        match self {
            Self::Own(encoder) => Some(Self::Own(encoder.clone())),
            Self::Other(_) => None,
        }
    }

    /// Returns the last picture as its decoder reconstructs it, byte for byte; `None` for other
    /// encoders than ours.
    pub(crate) fn reconstruction(&mut self) -> Option<Picture> {
        match self {
            Self::Own(encoder) => Some(encoder.reconstruction()),
            Self::Other(_) => None,
        }
    }

    /// Acknowledges a picture, counted from the first, to the encoder; only ours uses it.
    pub(crate) fn acknowledge(&mut self, picture: u64) {
        match self {
            Self::Own(encoder) => encoder.acknowledge(picture),
            Self::Other(_) => {}
        }
    }

    /// Returns the part of `budget` that a strip of a picture may use: by need if the encoder
    /// reports it, as ours does; otherwise equal to the others'.
    pub(crate) fn share(
        &self,
        plan: &Plan,
        picture: usize,
        strip: usize,
        budget: ByteCount,
    ) -> ByteCount {
        match self {
            Self::Own(_) => plan.give(picture as u32, strip, budget),
            Self::Other(_) => plan.equal(budget),
        }
    }

    /// Reports to the plan the budget of a strip and the bytes that it used, `sizes`; does nothing
    /// for an encoder that is not ours.
    pub(crate) fn tell(&self, plan: &Plan, picture: usize, strip: usize, sizes: [ByteCount; 2]) {
        if let Self::Own(encoder) = self {
            plan.done(picture as u32, strip, sizes, encoder.weight());
        }
    }

    pub(crate) fn encode(
        &mut self,
        rows: &Picture,
        size: Size,
        refresh: Refresh,
    ) -> Result<Encoded> {
        let encoder: &mut dyn QuantizerEncoder = match self {
            Self::Own(encoder) => encoder.as_mut(),
            Self::Other(encoder) => encoder.as_mut(),
        };
        Ok(match size {
            Size::Budget(budget) => encoder.encode(rows, budget, refresh)?,
            Size::Quantizer(qp) => encoder.encode_at(rows, Quantizers::both(qp), refresh)?,
        })
    }
}

/// Target size of a slice.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Size {
    /// At most these bytes, as far as the encoder can keep them.
    Budget(ByteCount),
    Quantizer(u8),
}

/// Target of all slices together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Rate {
    /// A bitrate, of which every picture has an equal share.
    Held(Bitrate),
    /// A constant quantizer, with any resulting rate.
    Quantizer(u8),
}

/// Footage coded by one encoder per strip at one rate.
pub(crate) struct Coding {
    pub(crate) backend: Backend,
    pub(crate) rate: Rate,
    layout: Layout,
    slices: Vec<Slice>,
    access_units: Vec<Vec<u8>>,
}

/// Footage coded at one rate and decoded.
pub(crate) struct Coded {
    pub(crate) slices: Vec<Slice>,
    /// The decoded pictures.
    pub(crate) shown: Vec<Picture>,
    /// Budget of each picture; `None` at a constant quantizer.
    picture_budget: Option<ByteCount>,
    seconds: f64,
    layout: Layout,
}

/// One coded slice.
pub(crate) struct Slice {
    pub(crate) picture: usize,
    pub(crate) bytes: usize,
    /// Budget of the slice; `None` at a constant quantizer.
    pub(crate) budget: Option<ByteCount>,
    /// CPU time of the slice's encoding.
    pub(crate) encoding: Duration,
    /// CPU time of the slice's decoding; zero until it is decoded.
    pub(crate) decoding: Duration,
}

impl Coding {
    /// Codes all of `footage` in `strips` strips at `rate`: one encoder per strip, the first
    /// picture as an IDR.
    ///
    /// A picture's budget is shared as on the vehicle: by a [`Plan`] among strips of our own
    /// encoder, equally among those of others, which report nothing to plan with.
    ///
    /// # Errors
    /// If an encoder fails.
    pub(crate) fn of(
        footage: &Footage,
        backend: Backend,
        rate: Rate,
        strips: usize,
    ) -> Result<Self> {
        let first = footage.pictures.first().context("no pictures")?;
        let layout = Layout::with_strips(first.width(), first.height(), strips)?;
        let (slices, access_units) = code(footage, backend, rate, &layout)?;
        Ok(Self { backend, rate, layout, slices, access_units })
    }

    /// Codes the same `footage` again and keeps the minimum time of each slice: delays of a shared
    /// machine are not part of an encoder.
    ///
    /// # Errors
    /// If an encoder fails, or does not produce the same bytes again.
    pub(crate) fn again(&mut self, footage: &Footage) -> Result<()> {
        let (slices, access_units) = code(footage, self.backend, self.rate, &self.layout)?;
        ensure!(access_units == self.access_units, "{} gave other bytes", self.backend);
        for (slice, other) in self.slices.iter_mut().zip(slices) {
            slice.encoding = slice.encoding.min(other.encoding);
        }
        Ok(())
    }

    /// Decodes all slices of the coded `footage`.
    ///
    /// # Errors
    /// If a decoder fails.
    pub(crate) fn decoded(mut self, footage: &Footage) -> Result<Coded> {
        let shown = decode(&self.layout, &mut self.slices, &self.access_units)?;
        let seconds = shown.len() as f64 / f64::from(footage.rate);
        let picture_budget = self.rate.picture_budget(footage);
        let Self { slices, layout, .. } = self;
        Ok(Coded { slices, shown, picture_budget, seconds, layout })
    }
}

impl Rate {
    /// Returns the budget of one picture; `None` at a constant quantizer.
    fn picture_budget(self, footage: &Footage) -> Option<ByteCount> {
        match self {
            Self::Held(bitrate) => {
                Some(bitrate * Duration::from_secs_f64(1.0 / f64::from(footage.rate)))
            }
            Self::Quantizer(_) => None,
        }
    }
}

impl Coded {
    /// Returns the mean bitrate of the slices.
    pub(crate) fn bitrate(&self) -> Bitrate {
        let bytes: usize = self.slices.iter().map(|slice| slice.bytes).sum();
        Bitrate::from_bps((bytes as f64 * 8.0 / self.seconds).round() as u64)
    }

    /// Returns the mean luma PSNR in dB and SSIM of the decoded pictures against the captured ones.
    pub(crate) fn quality(&self, footage: &Footage) -> Result<(f64, f64)> {
        let mut sums = (0.0, 0.0);
        for (shown, captured) in self.shown.iter().zip(&footage.pictures) {
            sums.0 += quality::psnr(shown, captured)?;
            sums.1 += quality::ssim(shown, captured)?;
        }
        let count = self.shown.len() as f64;
        Ok((sums.0 / count, sums.1 / count))
    }

    /// Returns by how much the luma step in the coding error between strips exceeds that within
    /// strips, as a share: see [`Seams`].
    pub(crate) fn seams(&self, footage: &Footage) -> Result<f64> {
        let mut seams = Seams::default();
        for (shown, captured) in self.shown.iter().zip(&footage.pictures) {
            seams.add(&self.layout, shown, captured)?;
        }
        Ok(seams.excess())
    }

    /// Returns the CPU time of all encoders relative to the duration of the footage: 1 is one busy
    /// processor.
    pub(crate) fn load(&self) -> f64 {
        self.slices.iter().map(|slice| slice.encoding.as_secs_f64()).sum::<f64>() / self.seconds
    }

    /// Returns sizes relative to their budget, ascending, of the slices after each strip's IDR;
    /// empty at a constant quantizer.
    pub(crate) fn size_shares(&self) -> Vec<f64> {
        let share = |slice: &Slice| Some(slice.bytes as f64 / slice.budget?.get() as f64);
        sorted(self.predicted().filter_map(share))
    }

    /// Returns picture sizes relative to their budget, ascending, of those after the IDRs; empty at
    /// a constant quantizer.
    pub(crate) fn picture_shares(&self) -> Vec<f64> {
        let Some(budget) = self.picture_budget else { return Vec::new() };
        let mut bytes = vec![0; self.shown.len()];
        self.slices.iter().for_each(|slice| bytes[slice.picture] += slice.bytes);
        sorted(bytes.iter().skip(1).map(|bytes| *bytes as f64 / budget.get() as f64))
    }

    /// Returns the encoding times in ms, ascending, of the slices after each strip's IDR.
    pub(crate) fn encoding_times(&self) -> Vec<f64> {
        sorted(self.predicted().map(|slice| slice.encoding.as_secs_f64() * 1e3))
    }

    /// Returns the decoding times in ms, ascending.
    pub(crate) fn decoding_times(&self) -> Vec<f64> {
        sorted(self.slices.iter().map(|slice| slice.decoding.as_secs_f64() * 1e3))
    }

    fn predicted(&self) -> impl Iterator<Item = &Slice> {
        self.slices.iter().filter(|slice| slice.picture > 0)
    }
}

/// Returns our own backend and those it is compared with: the anchor of the comparisons first, x264
/// if this build has it.
pub(crate) fn backends() -> Vec<Backend> {
    let mut backends = Vec::new();
    #[cfg(feature = "x264")]
    backends.push(x264::Settings::BASELINE.backend());
    let own = Backend::Avc(LossRecovery::Idr);
    backends.extend(Backend::all().into_iter().filter(|backend| *backend != own));
    backends.push(own);
    backends
}

/// Codes every slice once, in readout order.
fn code(
    footage: &Footage,
    backend: Backend,
    rate: Rate,
    layout: &Layout,
) -> Result<(Vec<Slice>, Vec<Vec<u8>>)> {
    let strips = layout.strip_count();
    let picture_budget = rate.picture_budget(footage);
    let mut coders = (0..strips)
        .map(|strip| {
            Coder::open(backend, layout.width(), layout.strip_rows(strip).len(), footage.rate)
        })
        .collect::<Result<Vec<_>>>()?;
    let plan = Plan::new(strips);
    let (mut slices, mut access_units) = (Vec::new(), Vec::new());
    for (number, picture) in footage.pictures.iter().enumerate() {
        for (strip, coder) in coders.iter_mut().enumerate() {
            let source = picture.rows(layout.strip_rows(strip))?;
            let budget = picture_budget.map(|budget| coder.share(&plan, number, strip, budget));
            let size = match (rate, budget) {
                (Rate::Quantizer(qp), _) => Size::Quantizer(qp),
                (Rate::Held(_), budget) => Size::Budget(budget.unwrap_or_default()),
            };
            let begun = thread_time();
            let coded = coder.encode(&source, size, Refresh::No)?;
            let encoding = thread_time() - begun;
            if let Some(given) = budget {
                coder.tell(&plan, number, strip, [given, ByteCount::of(&coded.bytes)]);
            }
            slices.push(Slice {
                picture: number,
                bytes: coded.bytes.len(),
                budget,
                encoding,
                decoding: Duration::ZERO,
            });
            access_units.push(coded.bytes.to_vec());
        }
    }
    Ok((slices, access_units))
}

fn decode(layout: &Layout, slices: &mut [Slice], access_units: &[Vec<u8>]) -> Result<Vec<Picture>> {
    let strips = layout.strip_count();
    let mut decoders = (0..strips).map(|_| StripDecoder::new()).collect::<Result<Vec<_>, _>>()?;
    let mut shown = Vec::with_capacity(slices.len() / strips);
    for (slices, access_units) in slices.chunks_mut(strips).zip(access_units.chunks(strips)) {
        let mut whole = Picture::new(layout.width(), layout.height())?;
        for (strip, (slice, bytes)) in slices.iter_mut().zip(access_units).enumerate() {
            let begun = thread_time();
            let back = decoders[strip].decode(bytes)?.context("a slice gave no rows")?;
            slice.decoding = thread_time() - begun;
            whole.place(layout.strip_rows(strip).start, &back)?;
        }
        shown.push(whole);
    }
    Ok(shown)
}

/// Returns the smallest value that is not exceeded by `share` of the ascending ones; NaN if there
/// are none.
pub(crate) fn quantile(ascending: &[f64], share: f64) -> f64 {
    let last = ascending.len().saturating_sub(1);
    let at = (ascending.len() as f64 * share).ceil() as usize;
    ascending.get(at.saturating_sub(1).min(last)).copied().unwrap_or(f64::NAN)
}

/// Returns the mean; NaN if there are no values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the values, ascending.
pub(crate) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
