//! Beyond Fig. 10: every way of healing through losses at random, over seconds, with what it hears.

use anyhow::{Context, Result};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_video::Layout;
use tautline_video::quality::{decibels, psnr};

use super::healing::{self, Mode, error, modes, rate_at, value_at};
use crate::experiment::Run;
use crate::footage::{Footage, Size, clips};
use crate::outcome::{Outcome, Table};
use crate::plot::{Axis, Plot, Series};
use crate::row::Row;

/// Codes every footage in every mode, with one slice in twenty lost and with none.
pub(super) fn run(run: &Run<'_>) -> Result<Outcome> {
    let (clips, none) = if run.quick { (Vec::new(), None) } else { clips() };
    let mut outcome = Outcome { tables: vec![table(), needs()], ..Outcome::default() };
    let total = clips.len() as u64 + 1;
    let count = run.choose(WARM_UP + 20, WARM_UP + 100);
    run.progress(0, total, "simulated camera");
    let size = run.choose(Size::SMALL, Size::HD);
    let simulated = Footage::simulated(size, RATE, count, run.seed)?.with_noise(run.seed)?;
    measure(run, &simulated, &mut outcome)?;
    for (done, clip) in clips.iter().enumerate() {
        run.progress(done as u64 + 1, total, &clip.to_string_lossy());
        let footage = Footage::clip(clip, Size::HD, RATE, count)?.with_noise(run.seed)?;
        measure(run, &footage, &mut outcome)?;
    }
    outcome.notes.extend(none);
    outcome.notes.push(format!(
        "Every strip loses each slice with a probability of {LOSS}, the same ones in every mode and at \
         every quantizer, and shows the one before in its place; the first {WARM_UP} pictures are not \
         measured. Losses and arrivals are heard of {} pictures later. Rates are of six strips, and \
         with losses also of what they make the encoder send.",
        healing::ROUND_TRIP
    ));
    Ok(outcome)
}

/// Is one mode at one quantizer over one footage.
struct Trial {
    mode: String,
    clean: Quality,
    lossy: Quality,
}

/// Is what was sent and how it was shown.
#[derive(Clone, Copy)]
struct Quality {
    mbps: f64,
    /// Mean of the slices' PSNR, dB.
    by_slices: f64,
    /// Mean of the whole pictures' PSNR, dB.
    by_pictures: f64,
}

type Measure = fn(&Quality) -> f64;

const MEASURES: &[(&str, Measure)] =
    &[("slices", |quality| quality.by_slices), ("pictures", |quality| quality.by_pictures)];

fn measure(run: &Run<'_>, footage: &Footage, outcome: &mut Outcome) -> Result<()> {
    let quantizers: &[u8] = run.choose(&[24, 32, 40], &[24, 28, 32, 36, 40]);
    let mut trials = Vec::new();
    for mode in modes() {
        for &qp in quantizers {
            run.progress(0, 1, &format!("{}, {} at {qp}", footage.name, mode.name));
            let trial = trial(footage, &mode, qp, run.seed);
            let trial = trial.with_context(|| format!("{} at {qp}", mode.name))?;
            outcome.tables[0].push([
                footage.name.as_str().into(),
                mode.name.as_str().into(),
                u64::from(qp).into(),
                trial.clean.mbps.into(),
                trial.clean.by_slices.into(),
                trial.clean.by_pictures.into(),
                trial.lossy.mbps.into(),
                trial.lossy.by_slices.into(),
                trial.lossy.by_pictures.into(),
            ]);
            trials.push(trial);
        }
    }
    for (what, of) in MEASURES {
        outcome.plots.push(plot(footage, what, &trials, *of));
        outcome.rows.extend(rows(footage, what, &trials, *of, &mut outcome.tables[1]));
    }
    Ok(())
}

fn trial(footage: &Footage, mode: &Mode, qp: u8, seed: u64) -> Result<Trial> {
    let layout = Layout::of(footage.pictures[0].width(), footage.pictures[0].height())?;
    let mut sums = [Sums::default(); 2];
    let mut errors = [vec![0.0; footage.pictures.len()], vec![0.0; footage.pictures.len()]];
    for strip in 0..layout.strip_count() {
        let rows = footage.pictures.iter().map(|picture| picture.rows(layout.strip_rows(strip)));
        let sources = rows.collect::<Result<Vec<_>, _>>()?;
        let mut random = ChaCha8Rng::seed_from_u64(seed * 64 + strip as u64);
        let lost: Vec<bool> =
            (0..sources.len()).map(|number| random.random_bool(LOSS) && number > 0).collect();
        let clean = mode.code(&sources, qp, footage.rate, &[])?;
        let again = mode.is_closed().then(|| mode.code(&sources, qp, footage.rate, &lost));
        let again = again.transpose()?;
        let lossy = again.as_ref().unwrap_or(&clean);
        for (way, (coded, lost)) in [(&clean, &[][..]), (lossy, &lost[..])].into_iter().enumerate()
        {
            let shown = healing::show(coded, lost)?;
            for number in WARM_UP..sources.len() {
                sums[way].bytes += coded[number].len();
                sums[way].psnr += psnr(&shown[number], &sources[number])?.min(PSNR_MAX);
                errors[way][number] += error(&shown[number], &sources[number]);
            }
        }
    }
    let pixels = (layout.width() * layout.height()) as f64;
    let count = (footage.pictures.len() - WARM_UP) as f64;
    let quality = |way: usize| {
        let pictures = errors[way][WARM_UP..].iter();
        let by_picture = pictures.map(|error| decibels(error / pixels).min(PSNR_MAX)).sum::<f64>();
        Quality {
            mbps: sums[way].bytes as f64 * 8e-6 * f64::from(footage.rate) / count,
            by_slices: sums[way].psnr / (count * layout.strip_count() as f64),
            by_pictures: by_picture / count,
        }
    };
    Ok(Trial { mode: mode.name.clone(), clean: quality(0), lossy: quality(1) })
}

#[derive(Clone, Copy, Default)]
struct Sums {
    bytes: usize,
    psnr: f64,
}

fn rows(
    footage: &Footage,
    what: &str,
    trials: &[Trial],
    of: Measure,
    needs: &mut Table,
) -> Vec<Row> {
    let curve = |mode: &str, quality: fn(&Trial) -> Quality| -> Vec<(f64, f64)> {
        let of_mode = trials.iter().filter(|trial| trial.mode == mode).map(quality);
        of_mode.map(|quality| (of(&quality), quality.mbps)).collect()
    };
    let mut rows = Vec::new();
    let mut lossy_at = |mode: &Mode| {
        let clean = curve(&mode.name, |trial| trial.clean);
        let lossy = curve(&mode.name, |trial| trial.lossy);
        let rate = rate_at(&clean, QUALITY_DB);
        let psnr = rate.and_then(|rate| value_at(&lossy, rate));
        let rate_with_loss = rate_at(&lossy, QUALITY_DB);
        needs.push([
            footage.name.as_str().into(),
            what.into(),
            mode.name.as_str().into(),
            rate.into(),
            psnr.into(),
            rate_with_loss.into(),
        ]);
        let named =
            |quantity: &str| format!("{quantity}, {}, by {what}, {}", mode.name, footage.name);
        let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
        rows.push(Row::new(named("rate at 36 dB without loss"), "Mbit/s", number(rate)));
        rows.push(Row::new(named("with 1 slice in 20 lost at that rate"), "dB", number(psnr)));
        if rate_with_loss.is_some() {
            let what = named("rate at 36 dB with 1 slice in 20 lost");
            rows.push(Row::new(what, "Mbit/s", number(rate_with_loss)));
        }
        psnr
    };
    let found: Vec<(String, Option<f64>)> =
        modes().iter().map(|mode| (mode.name.clone(), lossy_at(mode))).collect();
    let at = |name: &str| {
        let of_mode = found.iter().find(|(mode, _)| mode == name);
        of_mode.and_then(|(_, psnr)| *psnr).unwrap_or(f64::NAN)
    };
    // Whatever the footage: what never heals is the worst.
    rows.push(
        Row::new(
            format!("sweep over inter with 1 slice in 20 lost, by {what}, {}", footage.name),
            "dB",
            at("refresh: sweep") - at(healing::INTER),
        )
        .reference(0.5)
        .at_least(1.0),
    );
    rows
}

fn plot(footage: &Footage, what: &str, trials: &[Trial], of: Measure) -> Plot {
    let curve = |mode: &Mode| {
        let of_mode = trials.iter().filter(|trial| trial.mode == mode.name);
        let points = of_mode.map(|trial| (trial.lossy.mbps, of(&trial.lossy))).collect();
        Series::marked(mode.name.clone(), points)
    };
    let title = format!("One slice in 20 lost, PSNR by {what}: {}", footage.name);
    let name = format!("{what}-{}", footage.name);
    Plot::new(&name, &title, Axis::log("Mbit/s"), Axis::linear("luma PSNR, dB"))
        .with_all(modes().iter().map(curve))
        .mark_y(QUALITY_DB, "36 dB")
}

fn table() -> Table {
    let columns = [
        "footage",
        "mode",
        "qp",
        "mbps",
        "psnr_by_slices_db",
        "psnr_by_pictures_db",
        "lossy_mbps",
        "lossy_psnr_by_slices_db",
        "lossy_psnr_by_pictures_db",
    ];
    Table::new("rate-distortion", columns)
}

fn needs() -> Table {
    let columns = [
        "footage",
        "average_by",
        "mode",
        "mbps_at_36_db_without_loss",
        "lossy_db_at_that_rate",
        "mbps_at_36_db_with_loss",
    ];
    Table::new("at-36-db", columns)
}

/// One slice in twenty.
const LOSS: f64 = 0.05;
/// Until a sweep has settled, and the first answers have come.
const WARM_UP: usize = 20;
const RATE: u32 = 60;
const QUALITY_DB: f64 = 36.0;
/// An exact picture has no finite PSNR.
const PSNR_MAX: f64 = 60.0;
