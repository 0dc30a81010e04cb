//! Fig. 15: a slice's latency over one to four modems.

use anyhow::Result;

use super::latencies::Latencies;
use super::slices::{APPLICATION, Modem, PER_SECOND, Slices, bytes_a_second, model_note};
use crate::experiment::{Experiment, Findings, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-fig-15",
    title: "Latency of slices over one to four modems",
    source: "[LTE] Fig. 15",
    run,
};

/// Sends the same stream of slices over one to four links.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let mut measured = Vec::new();
    for (done, case) in CASES.iter().enumerate() {
        run.progress(done as u64, CASES.len() as u64, case.name);
        measured.push((case, case.measure(run)?));
    }
    let mut rows: Vec<Row> =
        measured.iter().flat_map(|(case, latencies)| case.rows(run, latencies)).collect();
    let mean = |case: usize| measured[case].1.mean();
    rows.extend([
        Row::new("mean, third modem's gain over the second's, 4 of 7", "ms", mean(1) - mean(3))
            .note(
                "The paper: very small. Most of it here is that 4 of 7 outlives a link on three.",
            ),
        Row::new("mean, fourth modem's gain over the third's, 4 of 7", "ms", mean(3) - mean(4))
            .published(1.0)
            .within_absolute(0.5)
            .because("set by hand: half of what the paper says")
            .note("The paper: the average is changed by just 1 ms."),
    ]);
    Ok(Outcome::Measured(Findings {
        rows,
        tables: vec![summary(&measured), distribution(&measured)],
        plots: vec![density(&measured), tail(&measured)],
        notes: vec![
            model_note(),
            format!(
                "1 MB/s in 360 slices a second of 4 packets, 694 bytes each. Every link's mean \
                 capacity is 1 MB/s / {UTILISATION}, however many there are: with more links each is \
                 less loaded, as in a car that adds modems. {} runs of {} s each.",
                runs(run),
                seconds(run)
            ),
            "Where a lost link takes the block with it, a few long outages decide deviation and \
             99.9 %: they come three a minute, and their squared length counts. These rows have \
             wide tolerances, in a quick run none."
                .to_owned(),
        ],
    }))
}

/// The whole stream over one link's mean capacity, uncoded.
const UTILISATION: f64 = 0.62;

fn runs(run: &Run<'_>) -> u64 {
    run.choose(1, 8)
}

fn seconds(run: &Run<'_>) -> f64 {
    run.choose(60.0, 600.0)
}

/// One number of modems and one code, with what the reference says.
struct Case {
    name: &'static str,
    links: usize,
    packet_count: usize,
    /// Mean, standard deviation, 95 and 99.9 %, in ms; the last not where the reference has none.
    reference: [f64; 4],
    /// Whether an outage of one link delays slices: then the tail is a matter of few outages.
    exposed: bool,
}

const CASES: [Case; 6] = [
    Case {
        name: "1 link, 4 of 4",
        links: 1,
        packet_count: 4,
        reference: [24.09, 7.2, 33.4, 118.6],
        exposed: true,
    },
    Case {
        name: "2 links, 4 of 7",
        links: 2,
        packet_count: 7,
        reference: [22.94, 6.9, 31.5, 117.4],
        exposed: true,
    },
    Case {
        name: "2 links, 4 of 8",
        links: 2,
        packet_count: 8,
        reference: [20.93, 3.2, 26.4, 35.1],
        exposed: false,
    },
    Case {
        name: "3 links, 4 of 7",
        links: 3,
        packet_count: 7,
        reference: [20.25, 2.96, 25.4, 33.2],
        exposed: false,
    },
    Case {
        name: "4 links, 4 of 7",
        links: 4,
        packet_count: 7,
        reference: [19.57, 2.70, 24.6, 32.2],
        exposed: false,
    },
    Case {
        name: "4 links, uncoded",
        links: 4,
        packet_count: 4,
        reference: [24.1, 13.9, 32.6, 231.0],
        exposed: true,
    },
];

impl Case {
    fn measure(&self, run: &Run<'_>) -> Result<Latencies> {
        let slices = Slices::of_paper(self.packet_count, seconds(run));
        let modem = Modem::known(bytes_a_second(APPLICATION / UTILISATION));
        let modems = vec![modem; self.links];
        let mut latencies = Vec::new();
        for number in 0..runs(run) {
            let seed = run.seed.wrapping_mul(1000) + number * 10 + self.links as u64;
            latencies.extend(slices.latencies(&modems, seed)?);
        }
        Ok(Latencies::new(latencies))
    }

    fn rows(&self, run: &Run<'_>, latencies: &Latencies) -> Vec<Row> {
        let [mean, deviation, p95, p999] = self.reference;
        let row = |what: &str, value: f64, reference: f64, within: Option<f64>| {
            let row = Row::new(format!("{}: {what}", self.name), "ms", value).reference(reference);
            let why = "set by hand: outages and slow swings, few in a run, decide the tail";
            within.map_or(row.clone(), |share| row.within(share).because(why))
        };
        let tail = match (self.exposed, run.quick) {
            (true, true) => None,
            (true, false) => Some(0.6),
            (false, true) => Some(0.15),
            (false, false) => Some(0.06),
        };
        let near = run.choose(2.0, 1.0) * if self.exposed { 0.04 } else { 0.015 };
        let middle = if self.exposed && run.quick { None } else { Some(near) };
        vec![
            row("mean", latencies.mean(), mean, middle),
            row("standard deviation", latencies.deviation(), deviation, tail),
            row("95 %", latencies.quantile(0.95), p95, Some(near)),
            row("99.9 %", latencies.quantile(0.999), p999, tail),
        ]
    }
}

fn summary(measured: &[(&Case, Latencies)]) -> Table {
    let columns =
        ["case", "links", "n", "mean_ms", "deviation_ms", "p50_ms", "p95_ms", "p99_ms", "p999_ms"];
    let mut table = Table::new("summary", columns);
    for (case, latencies) in measured {
        table.push([
            case.name.into(),
            case.links.into(),
            case.packet_count.into(),
            latencies.mean().into(),
            latencies.deviation().into(),
            latencies.quantile(0.5).into(),
            latencies.quantile(0.95).into(),
            latencies.quantile(0.99).into(),
            latencies.quantile(0.999).into(),
        ]);
    }
    table
}

/// Returns the share of slices in each half millisecond, at its middle.
fn bins(latencies: &Latencies) -> Vec<(f64, f64)> {
    let below = |ms: f64| latencies.share_below(ms);
    (30..90)
        .map(|half| f64::from(half) / 2.0)
        .map(|from| (from + 0.25, below(from + 0.5) - below(from)))
        .collect()
}

fn distribution(measured: &[(&Case, Latencies)]) -> Table {
    let mut table = Table::new("distribution", ["case", "latency_ms", "share_of_half_ms"]);
    for (case, latencies) in measured {
        for (middle, share) in bins(latencies) {
            table.push([case.name.into(), middle.into(), share.into()]);
        }
    }
    table
}

fn density(measured: &[(&Case, Latencies)]) -> Plot {
    let x = Axis::linear("latency of a slice, ms").range(15.0, 45.0);
    let y = Axis::linear("share of slices in each .5 ms");
    let series = measured.iter().map(|(case, latencies)| Series::line(case.name, bins(latencies)));
    Plot::new("fig-15", "Latency of a slice by number of modems", x, y).with_all(series)
}

/// Plots the share later than x, on a logarithmic scale: where the numbers of modems differ most.
fn tail(measured: &[(&Case, Latencies)]) -> Plot {
    let x = Axis::linear("latency of a slice, ms").range(15.0, 150.0);
    let y = Axis::log("share of slices that are later").range(1e-4, 1.0);
    let series = measured.iter().map(|(case, latencies)| {
        let points = (15..=150).map(f64::from).map(|ms| (ms, 1.0 - latencies.share_below(ms)));
        Series::line(case.name, points.filter(|(_, share)| *share > 0.0).collect())
    });
    let title = format!("Slices later than .., {PER_SECOND} a second");
    Plot::new("fig-15-tail", &title, x, y).with_all(series)
}
