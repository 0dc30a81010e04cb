//! Beyond Fig. 10: all methods of loss recovery over seconds, with feedback, under the losses of a
//! display at the 95th percentile of delay.

use anyhow::{Result, ensure};
use tautline_video::Layout;

use super::curves::{self, Average, Curves, QUALITY_DB};
use super::latencies::Latencies;
use super::loss_recovery::{self, BAND, INTER, Mode, Strips, psnr};
use super::slices::{Stream, modem};
use super::trials::{self, Plan};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-refresh",
    title: "Every way of loss recovery, one slice in 20 lost",
    source: "[LTE] IV.A",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("refresh"),
    run,
};

/// Codes every footage in every mode, with one slice in twenty lost and without losses.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let claims = curves::claims("one slice in 20 lost");
    let tables = vec![table(), claims, without_loss(), at_that_rate(), with_loss()];
    let mut findings = Findings { tables, ..Findings::default() };
    let plan = Plan {
        pictures: run.choose(WARM_UP + 20, WARM_UP + 50),
        quantizers: run.choose(&[24, 32, 40], &[24, 28, 32, 38]),
    };
    let late = Late::of(run, plan.pictures)?;
    let none = trials::each(
        run,
        plan,
        |footage, mode, qp| trial(footage, mode, qp, &late.strips),
        |footage, trials| list(footage, trials, &mut findings),
    )?;
    findings.tables.push(late.table());
    findings.rows.extend(late.rows());
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

/// Bitrate and quality.
#[derive(Clone, Copy)]
struct Quality {
    mbps: f64,
    /// Mean of the slices' PSNR, dB.
    by_slices: f64,
    /// Mean of the complete pictures' PSNR, dB.
    by_pictures: f64,
}

impl Quality {
    /// Returns a point of a rate-quality curve: dB by this average, and Mbit/s.
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
        // For any footage, a mode that never recovers is the worst.
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

/// Slices that arrive too late for a display at the 95th percentile of delay.
struct Late {
    /// Flags of slices that were late, by strip and picture; never set for a strip's first slice.
    strips: Vec<Vec<bool>>,
    latencies: Latencies,
    /// Share of slices that were late.
    share: f64,
    /// Mean number of consecutive late slices of one strip.
    run: f64,
}

impl Late {
    /// Sends six slices per picture over two links with complete sessions. The display shows each
    /// slice at the 95th percentile of their delays; those that arrive later are late, except the
    /// first of a strip. Fails if a slice is lost.
    fn of(run: &Run<'_>, pictures: usize) -> Result<Self> {
        let seconds = run.choose(20, 60);
        let load = Stream::of_paper(Vec::new(), CODED, seconds).wire_bytes() / 2.0;
        let links = vec![modem(load / UTILISATION, true); 2];
        let came = Stream::of_paper(links, CODED, seconds).send(run.seed)?;
        ensure!(came.lost == 0, "slices without a latency: {}", came.lost);
        let latencies = Latencies::new(came.latencies.clone());
        let display = latencies.quantile(1.0 - LOSS);
        let late: Vec<bool> = came.latencies.iter().map(|latency| *latency > display).collect();
        let all = |strip: usize| late.iter().skip(strip).step_by(Layout::STRIP_COUNT).copied();
        let count = late.iter().filter(|late| **late).count() as f64;
        let runs = (0..Layout::STRIP_COUNT).map(|strip| {
            let strip: Vec<bool> = all(strip).collect();
            strip.chunk_by(|a, b| a == b).filter(|part| part[0]).count()
        });
        let run = count / runs.sum::<usize>() as f64;
        // The first slice starts the stream, and is waited for.
        let first = |strip| all(strip).take(pictures).enumerate().map(|(at, late)| late && at > 0);
        let strips = (0..Layout::STRIP_COUNT).map(|strip| first(strip).collect()).collect();
        Ok(Self { strips, share: count / late.len() as f64, latencies, run })
    }

    fn rows(&self) -> [Row; 3] {
        let display = self.latencies.quantile(1.0 - LOSS);
        [
            Row::new("slices that come after the display", "%", 100.0 * self.share)
                .published(5.0)
                .by_construction("the display is at the 95th percentile of the same slices"),
            Row::new("display after a slice's hand-over", "ms", display),
            Row::new("slices of a strip late in a row, mean", "", self.run)
                .reference(1.0 / (1.0 - LOSS))
                .note("Where each is late for itself, 1.05: the paper's rough approximation."),
        ]
    }

    fn table(&self) -> Table {
        let mut table = Table::new("late", ["strip", "picture", "late"]);
        for (strip, late) in self.strips.iter().enumerate() {
            for (picture, late) in late.iter().enumerate() {
                table.push([strip.into(), picture.into(), usize::from(*late).into()]);
            }
        }
        table
    }
}

fn trial(footage: &Strips, mode: Mode, qp: u8, late: &[Vec<bool>]) -> Result<Trial> {
    let pictures = footage.strips[0].len();
    let mut sums = [Sums::default(); 2];
    let mut errors = [vec![0.0; pictures], vec![0.0; pictures]];
    for (strip, sources) in footage.strips.iter().enumerate() {
        let lost = late[strip].clone();
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
        "Slices of 1 MB/s go over two modelled links by whole sessions, coded 4 of {CODED}, each link's capacity its \
         load / {UTILISATION}. The display shows every slice at the 95th percentile of their delay; those that come \
         later are lost, the same ones in every mode and at every quantizer, and the one before is shown in their \
         place; the first {WARM_UP} pictures are not \
         measured. Losses and arrivals are heard of {} pictures later. Rates are of six strips, and \
         with losses also of what they make the encoder send. Empty fields: no rate is enough.",
        loss_recovery::ROUND_TRIP
    )
}

/// Number of packets of a coded slice, as in the paper, with K = 4.
const CODED: usize = 7;
const UTILISATION: f64 = 0.55;
/// Share of the slices that count as late: one in twenty.
const LOSS: f64 = 0.05;
/// Pictures until a band has settled and the first feedback has arrived.
const WARM_UP: usize = 20;
