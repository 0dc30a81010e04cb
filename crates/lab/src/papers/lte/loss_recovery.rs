//! Methods of loss recovery in a closed loop: the encoder learns of a loss a round trip later.

use anyhow::{Context, Result};
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Concealer, Decoder, Encoded, Layout, Picture, Refresh};

use crate::pictures::coding::{Coder, Size};
use crate::pictures::footage::Footage;
#[cfg(feature = "x264")]
use crate::pictures::x264::Settings;
use crate::quality;

/// Footage split into its strips.
pub(super) struct Strips {
    pub(super) name: String,
    /// Pictures of every strip, from the top.
    pub(super) strips: Vec<Vec<Picture>>,
    /// Pictures per second.
    pub(super) rate: u32,
    /// Luma samples of a complete picture.
    pub(super) pixels: f64,
}

impl Strips {
    pub(super) fn of(footage: &Footage) -> Result<Self> {
        let first = footage.pictures.first().context("no pictures")?;
        let layout = Layout::of(first.width(), first.height())?;
        let rows = |strip: usize| {
            let pictures = footage.pictures.iter();
            pictures.map(|picture| Ok(picture.rows(layout.strip_rows(strip))?)).collect()
        };
        let strips = (0..layout.strip_count()).map(rows).collect::<Result<_>>()?;
        let pixels = (layout.width() * layout.height()) as f64;
        Ok(Self { name: footage.name.clone(), strips, rate: footage.rate, pixels })
    }
}

/// One method of coding and of loss recovery.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    pub(super) name: &'static str,
    backend: Backend,
    answer: Answer,
}

/// Reaction of the encoder to feedback.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// No reaction.
    None,
    /// No reaction: every picture is an IDR in any case.
    IntraOnly,
    /// This refresh, after a reported loss.
    Refresh(Refresh),
    /// It uses acknowledged pictures as references, and starts to recover after a reported loss.
    Acknowledged,
}

/// A strip coded without losses, and for each of several loss patterns.
pub(super) struct Coded {
    clean: Vec<Vec<u8>>,
    /// Sum of squared luma differences of each picture, without losses.
    pub(super) errors: Vec<f64>,
    /// For each pattern, the slices from the first one coded after a loss was reported.
    ways: Vec<Vec<Vec<u8>>>,
}

impl Coded {
    /// Returns the slices without losses.
    pub(super) fn clean(&self) -> Vec<&[u8]> {
        self.clean.iter().map(Vec::as_slice).collect()
    }

    /// Returns the slices for one of the loss patterns.
    pub(super) fn way(&self, index: usize) -> Vec<&[u8]> {
        let heard = &self.ways[index];
        let before = &self.clean[..self.clean.len() - heard.len()];
        before.iter().chain(heard).map(Vec::as_slice).collect()
    }
}

impl Mode {
    /// Returns whether a loss stays visible to the end: the mode has neither refresh nor a reaction
    /// to feedback.
    pub(super) fn never_recovers(&self) -> bool {
        self.answer == Answer::None && self.backend == Backend::Avc(LossRecovery::Idr)
    }

    /// Codes a strip at one quantizer, for each of several loss patterns and without losses. Beyond
    /// the end of a pattern nothing is lost.
    ///
    /// Until a loss is reported, a pattern shares the coding without losses, and then continues
    /// from there.
    pub(super) fn code(
        &self,
        sources: &[Picture],
        qp: u8,
        rate: u32,
        ways: &[Vec<bool>],
    ) -> Result<Coded> {
        let first = sources.first().context("no pictures")?;
        let mut coder = Coder::open(self.backend, first.width(), first.height(), rate)?;
        let mut coders: Vec<Option<Coder>> = ways.iter().map(|_| None).collect();
        let mut receivers = vec![Receiver::default(); ways.len()];
        let mut coded =
            Coded { clean: Vec::new(), errors: Vec::new(), ways: vec![Vec::new(); ways.len()] };
        for (number, source) in sources.iter().enumerate() {
            let clean = self.code_next(&mut coder, source, qp, number, Heard::Clean)?;
            coded.clean.push(clean.bytes.to_vec());
            if let Some(shown) = coder.reconstruction() {
                coded.errors.push(quality::squared_error(&shown, source)? as f64);
            }
            for (way, lost) in ways.iter().enumerate() {
                let mut history = clean.history;
                if let Some(coder) = &mut coders[way] {
                    let heard = receivers[way].tells(number, lost);
                    let own = self.code_next(coder, source, qp, number, heard)?;
                    coded.ways[way].push(own.bytes.to_vec());
                    history = own.history;
                }
                receivers[way].take(history, lost.get(number).copied().unwrap_or(false));
                let next = receivers[way].tells(number + 1, lost);
                if coders[way].is_none() && self.answers_loss() && next == Heard::Lost {
                    let own = coder.doubled().context("a closed loop needs our own encoder")?;
                    coders[way] = Some(own);
                }
            }
        }
        if coded.errors.is_empty() {
            coded.errors = errors(&coded.clean(), &[], sources)?;
        }
        Ok(coded)
    }

    /// Returns whether the coding depends on the losses.
    pub(super) fn answers_loss(&self) -> bool {
        matches!(self.answer, Answer::Refresh(_) | Answer::Acknowledged)
    }

    fn code_next(
        &self,
        coder: &mut Coder,
        source: &Picture,
        qp: u8,
        number: usize,
        heard: Heard,
    ) -> Result<Encoded> {
        let refresh = match (self.answer, heard) {
            (Answer::IntraOnly, _) => Refresh::Idr,
            (Answer::Refresh(refresh), Heard::Lost) => refresh,
            (Answer::Acknowledged, Heard::Lost) => Refresh::Recover,
            (Answer::Acknowledged, Heard::Clean) => {
                if let Some(picture) = number.checked_sub(ROUND_TRIP) {
                    coder.acknowledge(picture as u64);
                }
                Refresh::No
            }
            (Answer::None | Answer::Refresh(_) | Answer::Acknowledged, _) => Refresh::No,
        };
        coder.encode(source, Size::Quantizer(qp), refresh)
    }
}

/// Feedback about the picture one round trip ago.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Heard {
    /// The picture did not arrive.
    Lost,
    /// The picture arrived, but depends on one that did not.
    Corrupt,
    /// The picture matches its encoder's state, or there is no feedback yet.
    Clean,
}

/// State of a receiver's strip, tracked by the histories of slices.
#[derive(Clone, Default)]
struct Receiver {
    /// Consecutive pictures received.
    unbroken: u32,
    /// True while the strip differs from its encoder's state.
    corrupt: bool,
    /// For each picture, whether it matched its encoder's state.
    clean: Vec<bool>,
}

impl Receiver {
    fn take(&mut self, history: Option<u8>, lost: bool) {
        self.unbroken = if lost { 0 } else { self.unbroken + 1 };
        let history = history.filter(|history| *history < Encoded::LONG);
        let recovers = history.is_some_and(|history| self.unbroken > u32::from(history));
        self.corrupt = lost || self.corrupt && !recovers;
        self.clean.push(!self.corrupt);
    }

    /// Returns the feedback available before picture `number` is coded: that of a round trip ago,
    /// or clean in the first one.
    fn tells(&self, number: usize, lost: &[bool]) -> Heard {
        let Some(picture) = number.checked_sub(ROUND_TRIP) else { return Heard::Clean };
        match (lost.get(picture), self.clean.get(picture)) {
            (Some(true), _) => Heard::Lost,
            (_, Some(false)) => Heard::Corrupt,
            (_, Some(true) | None) => Heard::Clean,
        }
    }
}

/// Returns intra and inter alone, then our own encoder with each of its methods but the one that
/// combines two, and x264's intra refresh if available.
pub(super) fn modes() -> [Mode; MODES] {
    let own = |name: &'static str, way: LossRecovery, answer: Answer| Mode {
        name,
        backend: Backend::Avc(way),
        answer,
    };
    let (band, columns) = (
        LossRecovery::IntraRefresh { period: PERIOD },
        LossRecovery::IntraColumns { spacing: PERIOD },
    );
    let (on_loss, acknowledged, selection) = (
        LossRecovery::IntraRefreshOnLoss { period: PERIOD },
        LossRecovery::AcknowledgedReferences { references: REFERENCES },
        LossRecovery::ReferenceSelection { references: REFERENCES },
    );
    [
        own(INTRA, LossRecovery::Idr, Answer::IntraOnly),
        own(INTER, LossRecovery::Idr, Answer::None),
        own("idr on loss", LossRecovery::Idr, Answer::Refresh(Refresh::Idr)),
        own(BAND, band, Answer::None),
        own(COLUMNS, columns, Answer::None),
        own("refresh: on loss", on_loss, Answer::Refresh(Refresh::Recover)),
        own("acknowledged", acknowledged, Answer::Acknowledged),
        own("reference selection on loss", selection, Answer::Acknowledged),
        #[cfg(feature = "x264")]
        Mode {
            name: "refresh: x264 band",
            backend: const { &Settings { refresh_period: PERIOD, ..Settings::BASELINE } }.backend(),
            answer: Answer::None,
        },
    ]
}

/// Decodes a strip's slices, with the previous picture repeated for a lost one. Returns the sum of
/// squared luma differences of each shown picture.
pub(super) fn errors(slices: &[&[u8]], lost: &[bool], sources: &[Picture]) -> Result<Vec<f64>> {
    let (mut concealer, mut decoder) = (Concealer::new(), StripDecoder::new()?);
    let mut errors = Vec::with_capacity(slices.len());
    for (number, (slice, source)) in slices.iter().zip(sources).enumerate() {
        let bytes = match lost.get(number).copied().unwrap_or(false) {
            true => concealer.skip().context("the first slice is never lost")?.into(),
            false => concealer.pass(slice)?.context("the first slice is an IDR")?,
        };
        let shown = decoder.decode(&bytes)?.context("a slice gave no rows")?;
        errors.push(quality::squared_error(&shown, source)? as f64);
    }
    Ok(errors)
}

/// Returns the luma PSNR in dB for a sum of squared differences over `samples`, at most
/// [`PSNR_MAX`].
pub(super) fn psnr(error: f64, samples: f64) -> f64 {
    quality::decibels(error / samples).min(PSNR_MAX)
}

pub(super) const INTRA: &str = "intra";
pub(super) const INTER: &str = "inter";
pub(super) const BAND: &str = "refresh: band";
pub(super) const COLUMNS: &str = "refresh: columns";
/// Number of modes.
pub(super) const MODES: usize = if cfg!(feature = "x264") { 9 } else { 8 };
/// Refresh period of the paper: a loss is gone within this many pictures.
pub(super) const PERIOD: u8 = 16;
/// Pictures until a loss is reported: 100 ms at 60 per second.
pub(super) const ROUND_TRIP: usize = 6;
/// Number of reference pictures: one round trip of them, and as many more that may be lost in
/// sequence.
const REFERENCES: u8 = 12;
/// Cap in dB for an exact picture, whose PSNR is infinite.
const PSNR_MAX: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::footage::Size as Sides;

    #[test]
    fn coding_changes_one_round_trip_after_a_loss() {
        let footage = Footage::simulated(Sides::SMALL, 60, ROUND_TRIP + 4, 1).unwrap();
        let sources = &Strips::of(&footage).unwrap().strips[3];
        let mut lost = vec![false; 3];
        lost[2] = true;
        for mode in modes() {
            let ways = [lost.clone(), Vec::new()];
            let coded = mode.code(sources, 32, footage.rate, &ways).unwrap();
            let differs = coded.clean().iter().zip(coded.way(0)).position(|(a, b)| *a != b);
            assert_eq!(differs, mode.answers_loss().then_some(2 + ROUND_TRIP), "{}", mode.name);
            assert_eq!(coded.clean(), coded.way(1), "{}", mode.name);
            let decoded = errors(&coded.clean(), &[], sources).unwrap();
            assert_eq!(decoded, coded.errors, "{}", mode.name);
            let shown = errors(&coded.way(0), &lost, sources).unwrap();
            assert!(shown.len() == sources.len() && shown[2] > shown[1], "{}", mode.name);
        }
    }

    #[test]
    fn pictures_that_depend_on_a_loss_are_not_acknowledged() {
        let lost = [false, false, true];
        let mut receiver = Receiver::default();
        for (number, history) in [0, 1, 2, 3, 0, 1].into_iter().enumerate() {
            receiver.take(Some(history), lost.get(number) == Some(&true));
        }
        let heard = (0..6).map(|number| receiver.tells(number + ROUND_TRIP, &lost));
        let expected =
            [Heard::Clean, Heard::Clean, Heard::Lost, Heard::Corrupt, Heard::Clean, Heard::Clean];
        assert!(heard.eq(expected));
    }
}
