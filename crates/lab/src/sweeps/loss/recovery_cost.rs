//! Cost of a loss pattern with each method of loss recovery. Complete pictures are coded as on the
//! vehicle and shown as at the operator, a round trip apart.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tautline_message::{StripReport, VideoFeedback};
use tautline_operator::downlink::{Downlink, Shown};
use tautline_units::{Bitrate, Instant};
use tautline_vehicle::encode::{Plan, Request, StripCoder};
use tautline_video::avc::LossRecovery;
use tautline_video::openh264::StripDecoder;
use tautline_video::{Backend, Decoder, Layout, Picture, Slice, SliceKind};

use super::pattern::{Losses, Pattern};
use super::slice::slice_of;
use crate::pictures::coding::{mean, quantile, sorted};
use crate::pictures::footage::{Footage, Size};
use crate::quality;

/// Common settings of all runs.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Pictures per run.
    pub pictures: usize,
    /// Target bitrate of all strips together.
    pub bitrate: Bitrate,
    /// Pictures from a slice's arrival until the vehicle learns of it.
    pub round_trip: usize,
    /// Seed of the drive, its noise, and the losses.
    pub seed: u64,
}

/// Pictures to code, played forwards and backwards.
pub struct Scene(Footage);

/// Result of one method under one pattern.
#[derive(Clone, Debug)]
pub struct RecoveryCost {
    /// The method.
    pub way: String,
    /// The loss pattern.
    pub pattern: String,
    /// Share of slices lost.
    pub lost: f64,
    /// Share of the slices of completely shown pictures that differ from their encoder's state,
    /// those in place of lost ones included.
    pub damaged: f64,
    /// Mean luma PSNR of the completely shown pictures against the camera's, dB.
    pub psnr: f64,
    /// 10th percentile of the PSNR of the completely shown pictures, dB.
    pub psnr_tenth: f64,
    /// IDRs, including the first of each strip.
    pub idrs: usize,
    /// Total bitrate of all slices.
    pub taken: Bitrate,
}

impl Scene {
    /// Returns the simulated camera's pictures, 60 per second, with camera noise.
    ///
    /// # Errors
    /// If they cannot be rendered.
    pub fn simulated(is_small: bool, count: usize, seed: u64) -> Result<Self> {
        let size = if is_small { Size::SMALL } else { Size::HD };
        Ok(Self(Footage::simulated(size, RATE, count, seed)?.with_noise(seed)?))
    }

    /// Returns a clip, scaled to 1280x720 and interpolated to 60 pictures per second.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn clip(path: &Path, count: usize) -> Result<Self> {
        Ok(Self(Footage::clip(path, Size::HD, RATE, count)?))
    }
}

impl RecoveryCost {
    /// Codes the scene with one method, loses slices by a pattern, and measures the shown pictures.
    ///
    /// # Errors
    /// If a codec fails, or a strip reported as clean is not.
    pub fn of(scene: &Scene, way: LossRecovery, pattern: Pattern, terms: &Terms) -> Result<Self> {
        let Scene(footage) = scene;
        let first = footage.pictures.first().context("no pictures")?;
        let layout = Layout::of(first.width(), first.height())?;
        let strips = layout.strip_count();
        let backend = Backend::Avc(way);
        let mut senders = (0..strips)
            .map(|strip| StripCoder::new(backend, &layout, strip, RATE))
            .collect::<Result<Vec<_>, _>>()?;
        let plan = Plan::new(strips);
        let mut losses = Losses::new(pattern, strips, RATE, terms.seed);
        let mut screen = Screen::new(&layout)?;
        let mut told: VecDeque<([Option<StripReport>; VideoFeedback::STRIPS_MAX], u8)> =
            VecDeque::new();
        let (mut lost, mut idrs, mut bytes) = (0, 0, 0);
        let period = Duration::from_secs(1) / RATE;
        let budget = terms.bitrate * period;
        for number in 0..terms.pictures {
            let now = Instant::ZERO + period * number as u32;
            let source = turn(&footage.pictures, number);
            let heard = (told.len() >= terms.round_trip.max(1)).then(|| told.pop_front()).flatten();
            let (reports, keyframes) = heard.unwrap_or_default();
            for (strip, sender) in senders.iter_mut().enumerate() {
                if let Some(report) = reports[strip] {
                    sender.handle_report(&report);
                }
                let asked = match keyframes >> strip & 1 {
                    1 => Request::IdrByReceiver,
                    _ => Request::Nothing,
                };
                let rows = source.rows(layout.strip_rows(strip))?;
                let picture = number as u32;
                let coded = sender.encode(&mut &rows, picture, budget, &plan, asked, now)?;
                bytes += coded.bytes.len();
                idrs += usize::from(coded.kind == SliceKind::Idr);
                let slice = slice_of(coded, picture, strip as u8, now);
                let is_lost = losses.next();
                lost += usize::from(is_lost);
                screen.handle((footage, &layout), slice, is_lost, now)?;
            }
            told.push_back((screen.downlink.reports(now), screen.downlink.keyframe_strips()));
        }
        let (damaged, psnr) = screen.judge(&layout);
        let slices = (terms.pictures * strips) as f64;
        let seconds = terms.pictures as f64 / f64::from(RATE);
        Ok(Self {
            way: backend.to_string(),
            pattern: pattern.to_string(),
            lost: lost as f64 / slices,
            damaged,
            psnr: mean(&psnr),
            psnr_tenth: quantile(&psnr, 0.1),
            idrs,
            taken: Bitrate::from_bps((bytes as f64 * 8.0 / seconds) as u64),
        })
    }
}

impl fmt::Display for RecoveryCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "| {} | {} | {:.1} | {:.1} | {:.2} | {:.2} | {} | {:.2} |",
            self.pattern,
            self.way,
            self.lost * 100.0,
            self.damaged * 100.0,
            self.psnr,
            self.psnr_tenth,
            self.idrs,
            self.taken.as_f64() / 1e6
        )
    }
}

/// The operator's end, next to lossless decoders.
struct Screen {
    downlink: Downlink,
    decoders: Vec<StripDecoder>,
    clean: Vec<StripDecoder>,
    /// Output of the lossless decoders that the operator has not been shown yet, by picture and
    /// strip. It never shows those of lost slices.
    wanted: BTreeMap<(u32, u8), Picture>,
    /// For each picture: the strips shown, those that differ from their encoder's state, and the
    /// sum of squared luma errors.
    shown: BTreeMap<u32, (usize, usize, f64)>,
}

impl Screen {
    fn new(layout: &Layout) -> Result<Self> {
        let decoders =
            || (0..layout.strip_count()).map(|_| StripDecoder::new()).collect::<Result<_, _>>();
        Ok(Self {
            downlink: Downlink::new(Duration::ZERO),
            decoders: decoders()?,
            clean: decoders()?,
            wanted: BTreeMap::new(),
            shown: BTreeMap::new(),
        })
    }

    fn handle(
        &mut self,
        (footage, layout): (&Footage, &Layout),
        slice: Slice,
        is_lost: bool,
        now: Instant,
    ) -> Result<()> {
        let wanted = self.clean[usize::from(slice.strip)].decode(&slice.bytes)?;
        let wanted = wanted.context("a whole stream gave no picture")?;
        self.wanted.insert((slice.picture, slice.strip), wanted);
        if is_lost {
            return Ok(());
        }
        let mut due = Vec::new();
        self.downlink.handle_slice(slice, now, now, |shown| due.push(shown));
        for shown in due {
            let rows = turn(&footage.pictures, shown.slice.picture as usize)
                .rows(layout.strip_rows(usize::from(shown.slice.strip)))?;
            self.show(shown, &rows)?;
        }
        Ok(())
    }

    fn show(&mut self, Shown { slice, is_clean }: Shown, source: &Picture) -> Result<()> {
        let Slice { picture, strip, .. } = slice;
        let shown = self.decoders[usize::from(strip)].decode(&slice.bytes)?;
        let shown = shown.with_context(|| format!("picture {picture} did not come out"))?;
        let wanted = self.wanted.remove(&(picture, strip)).context("it comes twice")?;
        let is_same = shown == wanted;
        ensure!(!is_clean || is_same, "picture {picture} was said to be clean and is not");
        let (strips, damaged, errors) = self.shown.entry(picture).or_default();
        *strips += 1;
        *damaged += usize::from(!is_same);
        *errors += quality::squared_error(&shown, source)? as f64;
        Ok(())
    }

    /// Returns the share of damaged slices, and the luma PSNR of completely shown pictures,
    /// ascending.
    fn judge(&self, layout: &Layout) -> (f64, Vec<f64>) {
        let whole = self.shown.values().filter(|(strips, ..)| *strips == layout.strip_count());
        let pixels = (layout.width() * layout.height()) as f64;
        let psnr = sorted(whole.clone().map(|(.., errors)| quality::decibels(errors / pixels)));
        let damaged: usize = whole.clone().map(|(_, damaged, _)| damaged).sum();
        let slices = whole.count() * layout.strip_count();
        (damaged as f64 / slices.max(1) as f64, psnr)
    }
}

/// Returns picture `number` of the footage, played forwards and backwards so that the camera never
/// jumps.
fn turn(pictures: &[Picture], number: usize) -> &Picture {
    let last = pictures.len() - 1;
    let turn = number % (2 * last).max(1);
    &pictures[turn.min(2 * last - turn)]
}

const RATE: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_by_loss_switch_modes_at_many_losses() {
        let scene = Scene::simulated(true, 40, 1).unwrap();
        let bitrate = Bitrate::from_kbps(1_500);
        let terms = Terms { pictures: 420, bitrate, round_trip: 6, seed: 1 };
        let toll = |way, pattern| RecoveryCost::of(&scene, way, pattern, &terms).unwrap();
        let by_loss = LossRecovery::ReferencesByLoss { references: 16 };
        let selected = LossRecovery::ReferenceSelection { references: 16 };
        let none = Pattern::Random(0.0);
        let [by_loss_none, selected_none] = [by_loss, selected].map(|way| toll(way, none));
        assert_eq!((by_loss_none.idrs, by_loss_none.damaged), (6, 0.0));
        let cost = (selected_none.psnr - by_loss_none.psnr).abs();
        assert!(cost < 0.1, "{by_loss_none} {selected_none}");
        // Each loss costs its own picture, and few cost more: 5.2 % lost show 6.1.
        let five = toll(by_loss, Pattern::Random(0.05));
        assert!(five.damaged < five.lost + 0.015, "{five}");
        let many = Pattern::Random(0.1);
        let [by_loss, selected] = [by_loss, selected].map(|way| toll(way, many));
        assert!(by_loss.damaged < selected.damaged / 2.0, "{by_loss} {selected}");
        assert!(by_loss.psnr > selected.psnr, "{by_loss} {selected}");
    }
}
