//! Fig. 10: quality at rate with one slice of sixteen lost: intra, inter and intra refresh.

use anyhow::{Context, Result};
use tautline_units::Bitrate;
use tautline_video::avc::Healing;
use tautline_video::openh264::StripDecoder;
use tautline_video::quality::{decibels, psnr};
use tautline_video::{
    Backend, Concealer, Decoder, Layout, Picture, QuantizerEncoder, Quantizers, Refresh,
};

use crate::experiment::Run;
use crate::footage::{Footage, Size, clips};
use crate::outcome::{Outcome, Table};
use crate::plot::{Axis, Plot, Series};
use crate::row::Row;

/// Codes every footage in every mode at several quantizers, loses a slice, and decodes.
pub(super) fn run(run: &Run<'_>) -> Result<Outcome> {
    let (clips, none) = if run.quick { (Vec::new(), None) } else { clips() };
    let mut outcome = Outcome { tables: vec![table()], ..Outcome::default() };
    let total = clips.len() as u64 + 1;
    run.progress(0, total, "simulated camera");
    // What comes before the sixteen lets a sweep settle.
    let count = WARM_UP + SLICES;
    let size = run.choose(Size::SMALL, Size::HD);
    let simulated = Footage::simulated(size, RATE, count, run.seed)?.with_noise(run.seed)?;
    measure(run, &simulated, &mut outcome)?;
    for (done, clip) in clips.iter().enumerate() {
        run.progress(done as u64 + 1, total, &clip.to_string_lossy());
        let footage = Footage::clip(clip, Size::HD, RATE, count)?.with_noise(run.seed)?;
        measure(run, &footage, &mut outcome)?;
    }
    outcome.notes.extend(none);
    outcome.notes.extend(notes());
    Ok(outcome)
}

/// Is a way to code, and to heal.
struct Mode {
    name: String,
    backend: Backend,
    /// Every picture an IDR.
    intra_only: bool,
    /// The sixteen begin with the stream; otherwise they are from its middle.
    from_the_first: bool,
}

fn modes() -> Vec<Mode> {
    let of = |name: &str, intra_only| Mode {
        name: name.to_owned(),
        backend: Backend::Avc(Healing::Idr),
        intra_only,
        from_the_first: !intra_only,
    };
    let mut modes = vec![of("intra", true), of("inter", false)];
    modes.extend(Backend::refreshing(PERIOD).into_iter().map(|backend| Mode {
        name: format!("refresh: {backend}"),
        backend,
        intra_only: false,
        from_the_first: false,
    }));
    modes
}

/// Is one mode at one quantizer over one footage, all losses averaged.
struct Trial {
    mode: String,
    bitrate: Bitrate,
    /// Mean of the slices' PSNR, dB.
    per_slice: f64,
    /// Mean of the whole pictures' PSNR, of which the one strip has the loss, dB.
    per_picture: f64,
}

fn measure(run: &Run<'_>, footage: &Footage, outcome: &mut Outcome) -> Result<()> {
    let quantizers: &[u8] = run.choose(&[24, 32, 40], &[20, 24, 28, 32, 36, 40, 44]);
    let mut trials = Vec::new();
    for mode in modes() {
        for &qp in quantizers {
            let trial =
                trial(footage, &mode, qp).with_context(|| format!("{} at {qp}", mode.name))?;
            outcome.tables[0].push([
                footage.name.as_str().into(),
                mode.name.as_str().into(),
                u64::from(qp).into(),
                (trial.bitrate.as_f64() / 1e6).into(),
                trial.per_slice.into(),
                trial.per_picture.into(),
            ]);
            trials.push(trial);
        }
    }
    for (what, of) in MEASURES {
        outcome.plots.push(plot(footage, what, &trials, *of));
        outcome.rows.extend(rows(footage, what, &trials, *of));
    }
    Ok(())
}

type Measure = fn(&Trial) -> f64;

const MEASURES: &[(&str, Measure)] =
    &[("slices", |trial| trial.per_slice), ("pictures", |trial| trial.per_picture)];

/// Codes the strips' sixteen slices once, and decodes them once for every strip and place of the loss.
fn trial(footage: &Footage, mode: &Mode, qp: u8) -> Result<Trial> {
    let layout = Layout::of(footage.pictures[0].width(), footage.pictures[0].height())?;
    let first = if mode.from_the_first { 0 } else { WARM_UP };
    let pictures = &footage.pictures[..first + SLICES];
    let mut bytes = 0;
    let (mut slice_sum, mut picture_sum, mut losses) = (0.0, 0.0, 0);
    let mut strips = Vec::new();
    for strip in 0..Layout::STRIP_COUNT {
        let sources = sources(pictures, &layout, strip)?;
        let coded = code(&sources, mode, qp, footage.rate)?;
        bytes += coded[first..].iter().map(Vec::len).sum::<usize>();
        let clean = decode(&coded, None)?;
        strips.push((sources, coded, clean));
    }
    for (sources, coded, clean) in &strips {
        for &lost in LOST {
            let shown = decode(coded, Some(first + lost))?;
            for number in first..first + SLICES {
                slice_sum += psnr(&shown[number], &sources[number])?.min(PSNR_MAX);
                let others: f64 = strips
                    .iter()
                    .map(|(sources, _, clean)| error(&clean[number], &sources[number]))
                    .sum();
                let damage = error(&shown[number], &sources[number])
                    - error(&clean[number], &sources[number]);
                let pixels = (layout.width() * layout.height()) as f64;
                picture_sum += decibels((others + damage) / pixels).min(PSNR_MAX);
            }
            losses += SLICES;
        }
    }
    let seconds = SLICES as f64 / f64::from(footage.rate);
    Ok(Trial {
        mode: mode.name.clone(),
        bitrate: Bitrate::from_bps((bytes as f64 * 8.0 / seconds).round() as u64),
        per_slice: slice_sum / losses as f64,
        per_picture: picture_sum / losses as f64,
    })
}

fn sources(pictures: &[Picture], layout: &Layout, strip: usize) -> Result<Vec<Picture>> {
    pictures.iter().map(|picture| Ok(picture.rows(layout.strip_rows(strip))?)).collect()
}

fn code(sources: &[Picture], mode: &Mode, qp: u8, rate: u32) -> Result<Vec<Vec<u8>>> {
    let mut encoder: Box<dyn QuantizerEncoder> =
        mode.backend.open_at(sources[0].width(), sources[0].height(), rate)?;
    let refresh = if mode.intra_only { Refresh::Idr } else { Refresh::No };
    let code = |source| Ok(encoder.encode_at(source, Quantizers::both(qp), refresh)?.bytes);
    sources.iter().map(code).collect()
}

/// Decodes a strip's slices, of which one may be lost: then the one before is shown again.
fn decode(coded: &[Vec<u8>], lost: Option<usize>) -> Result<Vec<Picture>> {
    let (mut concealer, mut decoder) = (Concealer::new(), StripDecoder::new()?);
    let mut shown: Vec<Picture> = Vec::with_capacity(coded.len());
    for (number, bytes) in coded.iter().enumerate() {
        let bytes = match lost == Some(number) {
            true => concealer.skip().context("the first slice is never lost")?.into(),
            false => concealer.pass(bytes)?.context("the first slice is an IDR")?,
        };
        shown.push(decoder.decode(&bytes)?.context("a slice gave no rows")?);
    }
    Ok(shown)
}

/// The sum of squared differences of the luma.
fn error(shown: &Picture, source: &Picture) -> f64 {
    let squared = |(a, b): (&u8, &u8)| u64::from(a.abs_diff(*b)).pow(2);
    shown.luma().iter().zip(source.luma()).map(squared).sum::<u64>() as f64
}

fn rows(footage: &Footage, what: &str, trials: &[Trial], of: Measure) -> Vec<Row> {
    let curve = |mode: &str| -> Vec<(f64, f64)> {
        let of_mode = trials.iter().filter(|trial| trial.mode == mode);
        of_mode.map(|trial| (of(trial), trial.bitrate.as_f64() / 1e6)).collect()
    };
    let named =
        |quantity: &str, mode: &str| format!("{quantity}, {mode}, by {what}, {}", footage.name);
    let mut rows = Vec::new();
    for mode in modes() {
        let name = mode.name.as_str();
        let best = curve(name).iter().map(|(psnr, _)| *psnr).fold(f64::NEG_INFINITY, f64::max);
        rows.push(Row::new(named("best PSNR at any rate", name), "dB", best));
        if let Some(rate) = at_quality(&curve(name), QUALITY_DB) {
            rows.push(Row::new(named("rate at 36 dB", name), "Mbit/s", rate));
        }
    }
    let worth =
        |mode: &str| curve(mode).iter().map(|(psnr, _)| *psnr).fold(f64::NEG_INFINITY, f64::max);
    // What holds in every footage: without any healing a loss outlasts the finest quantizer.
    rows.push(
        Row::new(
            format!("best PSNR, intra over inter, by {what}, {}", footage.name),
            "dB",
            worth("intra") - worth("inter"),
        )
        .reference(0.5)
        .at_least(1.0)
        .note("The paper: a loss stays for good where nothing is ever refreshed."),
    );
    rows
}

/// The rate at which a curve of (quality, rate) has a quality, between measurements by the rate's
/// logarithm.
fn at_quality(curve: &[(f64, f64)], quality: f64) -> Option<f64> {
    let pair = curve.windows(2).find(|pair| (pair[0].0 >= quality) != (pair[1].0 >= quality))?;
    let share = (quality - pair[0].0) / (pair[1].0 - pair[0].0);
    Some((pair[0].1.ln() + share * (pair[1].1.ln() - pair[0].1.ln())).exp())
}

fn plot(footage: &Footage, what: &str, trials: &[Trial], of: Measure) -> Plot {
    let curve = |mode: &Mode| {
        let of_mode = trials.iter().filter(|trial| trial.mode == mode.name);
        let points = of_mode.map(|trial| (trial.bitrate.as_f64() / 1e6, of(trial))).collect();
        Series::marked(mode.name.clone(), points)
    };
    let title = format!("One slice of 16 lost, PSNR by {what}: {}", footage.name);
    let name = format!("{what}-{}", footage.name);
    Plot::new(&name, &title, Axis::log("Mbit/s"), Axis::linear("luma PSNR, dB"))
        .with_all(modes().iter().map(curve))
        .mark_y(QUALITY_DB, "36 dB")
}

fn table() -> Table {
    let columns = ["footage", "mode", "qp", "mbps", "psnr_by_slices_db", "psnr_by_pictures_db"];
    Table::new("rate-distortion", columns)
}

fn notes() -> Vec<String> {
    vec![format!(
        "Sixteen slices of a strip, one lost and shown as the one before it, at places {LOST:?} in \
         turn, every strip; rates are of six strips. \"By slices\" averages the strip's PSNR, as the \
         paper does; \"by pictures\" that of whole pictures in which the other five strips are whole. \
         Inter begins with the stream's I; refresh is taken from its middle. Intra and inter are \
         our own encoder's; refresh on reported loss alone is inter until the loss is known."
    )]
}

/// The paper's number of slices.
const SLICES: usize = 16;
const PERIOD: u8 = 16;
const WARM_UP: usize = 20;
/// Places of the lost slice; the first cannot be shown as the one before it.
const LOST: &[usize] = &[1, 6, 11];
const RATE: u32 = 60;
/// The paper's most important quality.
const QUALITY_DB: f64 = 36.0;
/// An exact picture has no finite PSNR.
const PSNR_MAX: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_between_two_measurements_is_their_geometric_mean() {
        let curve = [(40.0, 8.0), (32.0, 2.0)];
        assert!((at_quality(&curve, 36.0).unwrap() - 4.0).abs() < 1e-9);
        assert_eq!(at_quality(&curve, 41.0), None);
    }
}
