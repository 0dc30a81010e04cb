//! Beyond Fig. 10: every way of loss recovery through losses at random, over seconds, with what it hears.

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::curves::{self, Average, Curves, QUALITY_DB};
use super::loss_recovery::{self, BAND, INTER, Mode, Strips, psnr};
use super::trials::{self, Plan};
use crate::experiment::{Experiment, Findings, Outcome, Row, Run, Table};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-refresh",
    title: "Every way of loss recovery, one slice in 20 lost",
    source: "[LTE] IV.A",
    run,
};

/// Codes every footage in every mode, with one slice in twenty lost and with none.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let claims = curves::claims("one slice in 20 lost");
    let tables = vec![table(), claims, without_loss(), at_that_rate(), with_loss()];
    let mut findings = Findings { tables, ..Findings::default() };
    let plan = Plan {
        pictures: run.choose(WARM_UP + 20, WARM_UP + 100),
        quantizers: run.choose(&[24, 32, 40], &[24, 28, 32, 36, 40]),
    };
    let seed = run.seed;
    let none = trials::each(
        run,
        plan,
        |footage, mode, qp| trial(footage, mode, qp, seed),
        |footage, trials| list(footage, trials, &mut findings),
    )?;
    findings.notes.extend(none);
    findings.notes.extend([note(), trials::CLAIM.to_owned()]);
    Ok(Outcome::Measured(findings))
}

/// One mode at one quantizer over one footage.
struct Trial {
    mode: Mode,
    qp: u8,
    clean: Quality,
    lossy: Quality,
}

/// What was sent and how it was shown.
#[derive(Clone, Copy)]
struct Quality {
    mbps: f64,
    /// Mean of the slices' PSNR, dB.
    by_slices: f64,
    /// Mean of the whole pictures' PSNR, dB.
    by_pictures: f64,
}

impl Quality {
    /// Returns a point of a curve.
    fn by(&self, average: Average) -> (f64, f64) {
        match average {
            Average::Slices => (self.by_slices, self.mbps),
            Average::Pictures => (self.by_pictures, self.mbps),
        }
    }
}

fn list(footage: &Strips, trials: &[Trial], findings: &mut Findings) {
    trials.iter().for_each(|trial| trial.list(footage, &mut findings.tables[0]));
    for average in Average::ALL {
        let curves = |of: fn(&Trial) -> Quality| {
            Curves::new(&footage.name, average, trials, move |trial| of(trial).by(average))
        };
        let (clean, lossy) = (curves(|trial| trial.clean), curves(|trial| trial.lossy));
        let rates = clean.rates(QUALITY_DB);
        let shown = lossy.qualities(rates);
        lossy.list_claims(&mut findings.tables[1]);
        clean.list(rates, &mut findings.tables[2]);
        lossy.list(shown, &mut findings.tables[3]);
        lossy.list(lossy.rates(QUALITY_DB), &mut findings.tables[4]);
        findings.rows.push(lossy.claim());
        // Whatever the footage: what never recovers is the worst.
        let gain = curves::of(shown, BAND) - curves::of(shown, INTER);
        let row = Row::new(lossy.named("band over inter at 36 dB's rate"), "dB", gain);
        findings.rows.push(row.asked(0.5).at_least(1.0).because("set by hand: half a dB is seen"));
        findings.plots.push(lossy.plot("One slice in 20 lost"));
    }
}

impl Trial {
    fn list(&self, footage: &Strips, table: &mut Table) {
        table.push([
            footage.name.as_str().into(),
            self.mode.name.into(),
            u64::from(self.qp).into(),
            self.clean.mbps.into(),
            self.clean.by_slices.into(),
            self.clean.by_pictures.into(),
            self.lossy.mbps.into(),
            self.lossy.by_slices.into(),
            self.lossy.by_pictures.into(),
        ]);
    }
}

fn trial(footage: &Strips, mode: Mode, qp: u8, seed: u64) -> Result<Trial> {
    let pictures = footage.strips[0].len();
    let mut sums = [Sums::default(); 2];
    let mut errors = [vec![0.0; pictures], vec![0.0; pictures]];
    for (strip, sources) in footage.strips.iter().enumerate() {
        let mut random = ChaCha8Rng::seed_from_u64(seed * 64 + strip as u64);
        let lost: Vec<bool> =
            (0..pictures).map(|number| random.random_bool(LOSS) && number > 0).collect();
        let coded = mode.code(sources, qp, footage.rate, std::slice::from_ref(&lost))?;
        let samples = (sources[0].width() * sources[0].height()) as f64;
        let lossy = loss_recovery::errors(&coded.way(0), &lost, sources)?;
        let ways = [(coded.clean(), &coded.errors), (coded.way(0), &lossy)];
        for (way, (slices, shown)) in ways.into_iter().enumerate() {
            for number in WARM_UP..pictures {
                sums[way].bytes += slices[number].len();
                sums[way].psnr += psnr(shown[number], samples);
                errors[way][number] += shown[number];
            }
        }
    }
    let count = (pictures - WARM_UP) as f64;
    let quality = |way: usize| {
        let by_picture = errors[way][WARM_UP..].iter().map(|error| psnr(*error, footage.pixels));
        Quality {
            mbps: sums[way].bytes as f64 * 8e-6 * f64::from(footage.rate) / count,
            by_slices: sums[way].psnr / (count * footage.strips.len() as f64),
            by_pictures: by_picture.sum::<f64>() / count,
        }
    };
    Ok(Trial { mode, qp, clean: quality(0), lossy: quality(1) })
}

#[derive(Clone, Copy, Default)]
struct Sums {
    bytes: usize,
    psnr: f64,
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

fn without_loss() -> Table {
    curves::table("mbps-without-loss", "Mbit/s for 36 dB, nothing lost")
}

fn at_that_rate() -> Table {
    curves::table("psnr-with-loss", "PSNR at that rate with one slice in 20 lost, dB")
}

fn with_loss() -> Table {
    curves::table("mbps-with-loss", "Mbit/s for 36 dB with one slice in 20 lost")
}

fn note() -> String {
    format!(
        "Every strip loses each slice with a probability of {LOSS}, the same ones in every mode and at \
         every quantizer, and shows the one before in its place; the first {WARM_UP} pictures are not \
         measured. Losses and arrivals are heard of {} pictures later. Rates are of six strips, and \
         with losses also of what they make the encoder send. Empty fields: no rate is enough.",
        loss_recovery::ROUND_TRIP
    )
}

/// One slice in twenty.
const LOSS: f64 = 0.05;
/// Until a band has settled, and the first answers have come.
const WARM_UP: usize = 20;
