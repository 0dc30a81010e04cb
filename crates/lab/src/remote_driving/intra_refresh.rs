//! Fig. 10: quality at rate with one slice of sixteen lost: intra, inter and intra refresh.

use anyhow::{Context, Result};
use tautline_units::Bitrate;
use tautline_video::quality::{decibels, psnr};
use tautline_video::{Layout, Picture};

use super::healing::{self, INTER, INTRA, Mode, error, modes, rate_at, value_at};
use crate::experiment::Run;
use crate::footage::{Footage, Size, clips};
use crate::outcome::{Outcome, Table};
use crate::plot::{Axis, Plot, Series};
use crate::row::Row;

/// Codes every footage in every mode at several quantizers, loses a slice, and decodes.
pub(super) fn run(run: &Run<'_>) -> Result<Outcome> {
    let (clips, none) = if run.quick { (Vec::new(), None) } else { clips() };
    let mut outcome = Outcome { tables: vec![table(), claims()], ..Outcome::default() };
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
        claim(footage, what, &trials, *of, &mut outcome.tables[1]);
    }
    Ok(())
}

type Measure = fn(&Trial) -> f64;

const MEASURES: &[(&str, Measure)] =
    &[("slices", |trial| trial.per_slice), ("pictures", |trial| trial.per_picture)];

/// Is one strip as it was captured, coded, and decoded where nothing was lost.
struct Strip {
    sources: Vec<Picture>,
    coded: Vec<Vec<u8>>,
    clean: Vec<Picture>,
}

/// Codes the strips' slices, and decodes them once for every strip and place of the loss.
fn trial(footage: &Footage, mode: &Mode, qp: u8) -> Result<Trial> {
    let layout = Layout::of(footage.pictures[0].width(), footage.pictures[0].height())?;
    let first = if mode.never_heals() { 0 } else { WARM_UP };
    let pictures = &footage.pictures[..first + SLICES];
    let strips = (0..layout.strip_count()).map(|strip| {
        let rows = pictures.iter().map(|picture| picture.rows(layout.strip_rows(strip)));
        let sources = rows.collect::<Result<Vec<_>, _>>()?;
        let coded = mode.code(&sources, qp, footage.rate, &[])?;
        let clean = healing::show(&coded, &[])?;
        Ok(Strip { sources, coded, clean })
    });
    let strips = strips.collect::<Result<Vec<_>>>()?;
    let pixels = (layout.width() * layout.height()) as f64;
    let (mut bytes, mut slice_sum, mut picture_sum, mut losses) = (0, 0.0, 0.0, 0);
    for Strip { sources, coded, clean } in &strips {
        for &place in LOST {
            let mut lost = vec![false; coded.len()];
            lost[first + place] = true;
            let again = mode.is_closed().then(|| mode.code(sources, qp, footage.rate, &lost));
            let coded = &again.transpose()?.unwrap_or_else(|| coded.clone());
            let shown = healing::show(coded, &lost)?;
            bytes += coded[first..].iter().map(Vec::len).sum::<usize>();
            for number in first..first + SLICES {
                slice_sum += psnr(&shown[number], &sources[number])?.min(PSNR_MAX);
                let others: f64 = strips
                    .iter()
                    .map(|strip| error(&strip.clean[number], &strip.sources[number]))
                    .sum();
                let damage = error(&shown[number], &sources[number])
                    - error(&clean[number], &sources[number]);
                picture_sum += decibels((others + damage) / pixels).min(PSNR_MAX);
            }
            losses += SLICES;
        }
    }
    let seconds = (SLICES * LOST.len()) as f64 / f64::from(footage.rate);
    Ok(Trial {
        mode: mode.name.clone(),
        bitrate: Bitrate::from_bps((bytes as f64 * 8.0 / seconds).round() as u64),
        per_slice: slice_sum / losses as f64,
        per_picture: picture_sum / losses as f64,
    })
}

/// The curve of (quality, Mbit/s) of a mode.
fn curve(trials: &[Trial], mode: &str, of: Measure) -> Vec<(f64, f64)> {
    let of_mode = trials.iter().filter(|trial| trial.mode == mode);
    of_mode.map(|trial| (of(trial), trial.bitrate.as_f64() / 1e6)).collect()
}

fn best(curve: &[(f64, f64)]) -> f64 {
    curve.iter().map(|(psnr, _)| *psnr).fold(f64::NEG_INFINITY, f64::max)
}

fn rows(footage: &Footage, what: &str, trials: &[Trial], of: Measure) -> Vec<Row> {
    let curve = |mode: &str| curve(trials, mode, of);
    let named =
        |quantity: &str, mode: &str| format!("{quantity}, {mode}, by {what}, {}", footage.name);
    let mut rows = Vec::new();
    for mode in modes() {
        let name = mode.name.as_str();
        rows.push(Row::new(named("best PSNR at any rate", name), "dB", best(&curve(name))));
        if let Some(rate) = rate_at(&curve(name), QUALITY_DB) {
            rows.push(Row::new(named("rate at 36 dB", name), "Mbit/s", rate));
        }
    }
    let crossing = crossing(trials, of).unwrap_or(f64::NAN);
    rows.push(
        Row::new(format!("refresh beats intra up to, by {what}, {}", footage.name), "dB", crossing)
            .note("The paper: intra refresh is the best at 36 to 37 dB."),
    );
    // What holds in every footage: without any healing a loss outlasts the finest quantizer.
    rows.push(
        Row::new(
            format!("best PSNR, intra over inter, by {what}, {}", footage.name),
            "dB",
            best(&curve(INTRA)) - best(&curve(INTER)),
        )
        .reference(0.5)
        .at_least(1.0)
        .note("The paper: a loss stays for good where nothing is ever refreshed."),
    );
    rows
}

/// Lists which mode needs the least at each of the paper's qualities.
fn claim(footage: &Footage, what: &str, trials: &[Trial], of: Measure, table: &mut Table) {
    for quality in PAPERS_BEST {
        let mut needs: Vec<(f64, String)> = modes()
            .into_iter()
            .filter_map(|mode| {
                Some((rate_at(&curve(trials, &mode.name, of), *quality)?, mode.name))
            })
            .collect();
        needs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let refreshing = |name: &str| name.starts_with("refresh");
        let of_intra = rate_at(&curve(trials, INTRA, of), *quality);
        let of_refresh = needs.iter().find(|(_, name)| refreshing(name)).map(|(rate, _)| *rate);
        let (rate, name) = needs.into_iter().next().unwrap_or((f64::NAN, "none".to_owned()));
        let intra_over_refresh = of_intra.zip(of_refresh).map(|(intra, refresh)| intra / refresh);
        table.push([
            footage.name.as_str().into(),
            what.into(),
            (*quality).into(),
            name.into(),
            rate.into(),
            of_intra.into(),
            of_refresh.into(),
            intra_over_refresh.into(),
        ]);
    }
}

/// The quality up to which the best of what refreshes unasked needs less than intra alone; none if it
/// never does.
fn crossing(trials: &[Trial], of: Measure) -> Option<f64> {
    let intra = curve(trials, INTRA, of);
    let refreshing = ["refresh: sweep", "refresh: columns"].map(|mode| curve(trials, mode, of));
    let is_ahead = |rate: f64| {
        let intra = value_at(&intra, rate)?;
        let best = refreshing.iter().filter_map(|curve| value_at(curve, rate));
        best.max_by(f64::total_cmp).filter(|best| *best > intra)
    };
    let (least, most) = (intra.last()?.1, intra.first()?.1);
    let steps = (0..=CROSSING_STEPS)
        .map(|step| least * (most / least).powf(f64::from(step) / f64::from(CROSSING_STEPS)));
    steps.filter_map(is_ahead).next_back()
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

fn claims() -> Table {
    let columns = [
        "footage",
        "average_by",
        "psnr_db",
        "cheapest",
        "mbps",
        "mbps_of_intra",
        "mbps_of_the_best_refresh",
        "intra_over_refresh",
    ];
    Table::new("cheapest", columns)
}

fn notes() -> Vec<String> {
    vec![format!(
        "Sixteen slices of a strip, one lost and shown as the one before it, at places {LOST:?} in \
         turn, every strip; rates are of six strips. \"By slices\" averages the strip's PSNR, as the \
         paper does; \"by pictures\" that of whole pictures in which the other five strips are whole. \
         Inter begins with the stream's I; the others are taken from their middle. What answers a loss \
         hears of it {} pictures later: sixteen slices hardly see it heal, `lte-refresh` does. All are \
         our own encoder's unless x264's is said.",
        healing::ROUND_TRIP
    )]
}

/// The paper's number of slices.
const SLICES: usize = 16;
const WARM_UP: usize = 20;
/// Places of the lost slice; the first cannot be shown as the one before it.
const LOST: &[usize] = &[1, 6, 11];
const RATE: u32 = 60;
/// The paper's most important quality.
const QUALITY_DB: f64 = 36.0;
/// Where the paper has refresh as the best.
const PAPERS_BEST: &[f64] = &[36.0, 37.0];
/// An exact picture has no finite PSNR.
const PSNR_MAX: f64 = 60.0;
const CROSSING_STEPS: u32 = 400;
