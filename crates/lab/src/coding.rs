//! Footage through one encoder a strip and back through decoders.

use std::time::Duration;

use anyhow::{Context, Result};
use tautline_net::clock::thread_time;
use tautline_units::{Bitrate, ByteCount};
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Decoder, Layout, Picture, Refresh, quality};

use crate::footage::Footage;

/// Is what came of footage at one bitrate.
pub(crate) struct Coded {
    pub(crate) slices: Vec<Slice>,
    /// Pictures as they come back.
    pub(crate) shown: Vec<Picture>,
    /// What each slice was to take.
    pub(crate) budget: ByteCount,
    seconds: f64,
}

/// Is one slice that was coded.
pub(crate) struct Slice {
    pub(crate) picture: usize,
    pub(crate) bytes: usize,
    /// What its coding took of one processor.
    pub(crate) encoding: Duration,
    pub(crate) decoding: Duration,
}

impl Coded {
    /// Codes all of `footage` within `bitrate`: each strip by an encoder of its own, the first
    /// picture as an IDR.
    pub(crate) fn of(footage: &Footage, backend: Backend, bitrate: Bitrate) -> Result<Self> {
        let first = footage.pictures.first().context("no pictures")?;
        let layout = Layout::of(first.width(), first.height())?;
        let slices_a_second = f64::from(footage.rate) * Layout::STRIP_COUNT as f64;
        let budget = bitrate * Duration::from_secs_f64(1.0 / slices_a_second);
        let mut coders = (0..Layout::STRIP_COUNT)
            .map(|strip| {
                let rows = layout.strip_rows(strip).len();
                let encoder = backend.open(layout.width(), rows, footage.rate)?;
                Ok((encoder, StripDecoder::new()?))
            })
            .collect::<Result<Vec<_>>>()?;
        let (mut slices, mut shown) = (Vec::new(), Vec::new());
        for (number, picture) in footage.pictures.iter().enumerate() {
            let mut whole = Picture::new(layout.width(), layout.height())?;
            for (strip, (encoder, decoder)) in coders.iter_mut().enumerate() {
                let rows = layout.strip_rows(strip);
                let source = picture.rows(rows.clone())?;
                let begun = thread_time();
                let coded = encoder.encode(&source, budget, Refresh::No)?;
                let encoded = thread_time();
                let back = decoder.decode(&coded.bytes)?.context("a slice gave no rows")?;
                let decoding = thread_time() - encoded;
                whole.place(rows.start, &back)?;
                let encoding = encoded - begun;
                slices.push(Slice {
                    picture: number,
                    bytes: coded.bytes.len(),
                    encoding,
                    decoding,
                });
            }
            shown.push(whole);
        }
        let seconds = footage.pictures.len() as f64 / f64::from(footage.rate);
        Ok(Self { slices, shown, budget, seconds })
    }

    /// Returns what the slices took in the mean.
    pub(crate) fn bitrate(&self) -> Bitrate {
        let bytes: usize = self.slices.iter().map(|slice| slice.bytes).sum();
        Bitrate::from_bps((bytes as f64 * 8.0 / self.seconds).round() as u64)
    }

    /// Returns the mean luma PSNR in dB and SSIM of the pictures against what was captured.
    pub(crate) fn quality(&self, footage: &Footage) -> Result<(f64, f64)> {
        let mut sums = (0.0, 0.0);
        for (shown, captured) in self.shown.iter().zip(&footage.pictures) {
            sums.0 += quality::psnr(shown, captured)?;
            sums.1 += quality::ssim(shown, captured)?;
        }
        let count = self.shown.len() as f64;
        Ok((sums.0 / count, sums.1 / count))
    }

    /// Returns the share of one processor that the encoders take.
    pub(crate) fn load(&self) -> f64 {
        self.slices.iter().map(|slice| slice.encoding.as_secs_f64()).sum::<f64>() / self.seconds
    }

    /// Returns sizes over their budget, ascending, of the slices after each strip's IDR.
    pub(crate) fn size_shares(&self) -> Vec<f64> {
        let budget = self.budget.get() as f64;
        let predicted = self.slices.iter().filter(|slice| slice.picture > 0);
        sorted(predicted.map(|slice| slice.bytes as f64 / budget))
    }

    /// Returns the times of coding in ms, ascending, of the slices after each strip's IDR.
    pub(crate) fn encoding_times(&self) -> Vec<f64> {
        let predicted = self.slices.iter().filter(|slice| slice.picture > 0);
        sorted(predicted.map(|slice| slice.encoding.as_secs_f64() * 1e3))
    }

    /// Returns the times of decoding in ms, ascending.
    pub(crate) fn decoding_times(&self) -> Vec<f64> {
        sorted(self.slices.iter().map(|slice| slice.decoding.as_secs_f64() * 1e3))
    }
}

/// Returns the value that `share` of the ascending ones do not exceed; not a number for none.
pub(crate) fn quantile(ascending: &[f64], share: f64) -> f64 {
    let last = ascending.len().saturating_sub(1);
    let at = (ascending.len() as f64 * share).ceil() as usize;
    ascending.get(at.saturating_sub(1).min(last)).copied().unwrap_or(f64::NAN)
}

/// Returns the values, ascending.
pub(crate) fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}
