//! Fig. 15: latency of a slice over one to four modems.

use anyhow::Result;

use super::latencies::Latencies;
use super::recorded::{self, Recorded};
use super::slices::{
    APPLICATION, Came, PACKET_BYTES, PER_SECOND, SOURCES, Stream, model_note, modem,
};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};
use crate::sweeps::links::set::Set;
use crate::workers;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-fig-15",
    title: "Latency of slices over one to four modems",
    source: "[LTE] Fig. 15",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("delay"),
    run,
};

/// Sends the same stream of slices over one to four links.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let jobs: Vec<(&'static Case, u64)> =
        CASES.iter().flat_map(|case| (0..runs(run)).map(move |number| (case, number))).collect();
    let (first, length) = (run.seed.wrapping_mul(1000), seconds(run));
    let made = workers::each(
        workers::count(),
        &jobs,
        |(case, number)| {
            let seed = first + number * 10 + case.links as u64;
            case.stream(length).send(seed)
        },
        |done, _| run.progress(done as u64, jobs.len() as u64, "sessions over links"),
    )?;
    let measured: Vec<Measured> = CASES
        .iter()
        .zip(made.chunks(runs(run) as usize))
        .map(|(case, made)| Measured::of(case, made))
        .collect();
    let mut rows: Vec<Row> = measured.iter().flat_map(|measured| measured.rows(run)).collect();
    rows.extend(claims(&measured));
    let recorded = Recorded::growing(run)?;
    let of_recordings = over_recordings(&recorded.sets, run.seed)?;
    rows.extend(of_recordings.iter().flat_map(OverRecordings::rows));
    Ok(Outcome::Measured(Findings {
        rows,
        tables: vec![summary(&measured), distribution(&measured)],
        plots: vec![density(&measured), tail(&measured)],
        notes: vec![
            model_note(),
            format!(
                "At most 1 MB/s in {PER_SECOND} slices a second of 4 packets, {PACKET_BYTES} bytes each, as the \
                 budget allows, under the two-state control. Every link's mean capacity is the \
                 uncoded stream's load / {UTILISATION}, however many there are: with more links each is less \
                 loaded, as in a car that adds modems. {} runs of {} s each.",
                runs(run),
                seconds(run)
            ),
            "Where a lost link takes the block with it, a few long outages decide deviation and 99.9 %: they come \
             three a minute, and their squared length counts. Nor are the reference's links a session's: over \
             two, which a session loads most, the control lowers one and the other carries more. Deviation and \
             99.9 % of one and two links and of uncoded slices are shown, not judged."
                .to_owned(),
            recorded.note(),
        ],
    }))
}

/// Results over a set of recorded links.
struct OverRecordings {
    name: String,
    latencies: Latencies,
    /// Share of the source's maximum rate that arrived.
    carried: f64,
}

/// Sends the stream over each set of recorded links, with the code used for as many modelled links.
fn over_recordings(sets: &[Set], seed: u64) -> Result<Vec<OverRecordings>> {
    let work = |set: &Set| {
        let packet_count = RECORDED_CODES[set.len() - 1];
        let links = set.pairs(seed);
        let came = Stream::of_paper(links, packet_count, recorded::SECONDS).send(seed)?;
        Ok(OverRecordings {
            name: format!("{}, 4 of {packet_count}", recorded::name_of(set)),
            carried: came.rate.as_f64() / (8.0 * APPLICATION),
            latencies: Latencies::new(came.latencies),
        })
    };
    workers::each(workers::count(), sets, work, |_, _| {})
}

impl OverRecordings {
    fn rows(&self) -> [Row; 4] {
        let Self { name, latencies, carried } = self;
        let row =
            |what: &str, unit: &str, value: f64| Row::new(format!("{name}: {what}"), unit, value);
        [
            row("mean", "ms", latencies.mean()),
            row("standard deviation", "ms", latencies.deviation()),
            row("95 %", "ms", latencies.quantile(0.95)),
            row("of 1 MB/s that came", "%", 100.0 * carried),
        ]
    }
}

/// Packets of a slice (N of the code, with K = 4) over one to four recorded links.
const RECORDED_CODES: [usize; 4] = [4, 8, 7, 7];
/// Load of the full uncoded stream relative to one link's mean capacity.
const UTILISATION: f64 = 0.62;

fn runs(run: &Run<'_>) -> u64 {
    run.choose(1, 6)
}

fn seconds(run: &Run<'_>) -> u64 {
    run.choose(30, 120)
}

/// One number of modems and one code, with the values of the reference simulation.
struct Case {
    name: &'static str,
    links: usize,
    packet_count: usize,
    /// Mean, standard deviation, 95th and 99.9th percentile of the latency in the reference
    /// simulation, ms.
    reference: [f64; 4],
    judged: Judged,
}

/// Values of a case that are judged against the reference simulation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Judged {
    /// Mean, standard deviation, 95th and 99.9th percentile.
    Wholly,
    /// Mean and 95th percentile only: standard deviation and 99.9th percentile depend on few
    /// outages.
    Middle,
}

const CASES: [Case; 6] = [
    Case {
        name: "1 link, 4 of 4",
        links: 1,
        packet_count: 4,
        reference: [24.09, 7.2, 33.4, 118.6],
        judged: Judged::Middle,
    },
    Case {
        name: "2 links, 4 of 7",
        links: 2,
        packet_count: 7,
        reference: [22.94, 6.9, 31.5, 117.4],
        judged: Judged::Middle,
    },
    Case {
        name: "2 links, 4 of 8",
        links: 2,
        packet_count: 8,
        reference: [20.93, 3.2, 26.4, 35.1],
        judged: Judged::Middle,
    },
    Case {
        name: "3 links, 4 of 7",
        links: 3,
        packet_count: 7,
        reference: [20.25, 2.96, 25.4, 33.2],
        judged: Judged::Wholly,
    },
    Case {
        name: "4 links, 4 of 7",
        links: 4,
        packet_count: 7,
        reference: [19.57, 2.70, 24.6, 32.2],
        judged: Judged::Wholly,
    },
    Case {
        name: "4 links, uncoded",
        links: 4,
        packet_count: 4,
        reference: [24.1, 13.9, 32.6, 231.0],
        judged: Judged::Middle,
    },
];

impl Case {
    fn stream(&self, seconds: u64) -> Stream {
        let load = Stream::of_paper(Vec::new(), SOURCES, seconds).wire_bytes();
        let links = vec![modem(load / UTILISATION, true); self.links];
        Stream::of_paper(links, self.packet_count, seconds)
    }
}

/// Results of one case.
struct Measured {
    case: &'static Case,
    latencies: Latencies,
    /// Share of slices that never arrived.
    lost: f64,
    /// Share of the source's maximum rate that arrived.
    carried: f64,
}

impl Measured {
    fn of(case: &'static Case, made: &[Came]) -> Self {
        let count = made.len() as f64;
        let carried = made.iter().map(|came| came.rate.as_f64() / (8.0 * APPLICATION)).sum::<f64>();
        Self {
            case,
            latencies: Latencies::new(
                made.iter().flat_map(|came| came.latencies.iter().copied()).collect(),
            ),
            lost: made.iter().map(Came::lost_share).sum::<f64>() / count,
            carried: carried / count,
        }
    }

    fn rows(&self, run: &Run<'_>) -> Vec<Row> {
        let Self { case, latencies, .. } = self;
        let [mean, deviation, p95, p999] = case.reference;
        let row = |what: &str, value: f64, reference: f64, within: Option<f64>| {
            let row = Row::new(format!("{}: {what}", case.name), "ms", value).reference(reference);
            let why = "set by hand: outages and slow swings, few in a run, decide the tail, and pings go over links too";
            within.map_or(row.clone(), |share| row.within(share).because(why))
        };
        let (near, tail) = match case.judged {
            Judged::Wholly => (run.choose(0.04, 0.03), Some(run.choose(0.15, 0.1))),
            Judged::Middle => (run.choose(0.2, 0.15), None),
        };
        vec![
            row("mean", latencies.mean(), mean, Some(near)),
            row("standard deviation", latencies.deviation(), deviation, tail),
            row("95 %", latencies.quantile(0.95), p95, Some(near)),
            row("99.9 %", latencies.quantile(0.999), p999, tail),
            Row::new(format!("{}: slices that never came", case.name), "%", 100.0 * self.lost)
                .reference(0.0)
                .within_absolute(0.0)
                .because("nothing loses packets here, and a second is long enough for every outage but the rarest"),
        ]
    }
}

/// Returns rows that judge the paper's statements about the third and the fourth modem.
fn claims(measured: &[Measured]) -> Vec<Row> {
    let of = |name: &str| {
        let found = measured.iter().find(|measured| measured.case.name == name);
        &found.expect("it is one of the cases").latencies
    };
    let two = of("2 links, 4 of 8");
    let [coded_2, coded_3, coded_4] = [2, 3, 4].map(|links| of(&format!("{links} links, 4 of 7")));
    let of_mean = |of: &Latencies, next: &Latencies| 100.0 * (of.mean() - next.mean()) / of.mean();
    let lower = "the paper: the more links, the lower the variance";
    vec![
        Row::new(
            "third modem's gain over two with 4 of 8, of the mean",
            "%",
            of_mean(two, coded_3),
        )
        .asked(10.0)
        .at_most(1.0)
        .because("set by hand: a tenth of the latency; the paper says very small, and no number"),
        Row::new(
            "third modem's gain over two with 4 of 7, of the mean",
            "%",
            of_mean(coded_2, coded_3),
        )
        .note("Not small: 4 of 7 outlives a link on three, and not on two."),
        Row::new(
            "fourth modem's gain over the third's, mean",
            "ms",
            coded_3.mean() - coded_4.mean(),
        )
        .published(1.0)
        .within_absolute(0.5)
        .because("set by hand: half of what the paper says")
        .note("The paper: the average is changed by just 1 ms."),
        Row::new(
            "standard deviation over three modems, of that over two",
            "",
            coded_3.deviation() / coded_2.deviation(),
        )
        .published(1.0)
        .at_most(1.0)
        .because(lower),
        Row::new(
            "standard deviation over four modems, of that over three",
            "",
            coded_4.deviation() / coded_3.deviation(),
        )
        .published(1.0)
        .at_most(1.0)
        .because(lower),
    ]
}

fn summary(measured: &[Measured]) -> Table {
    let columns = [
        "case",
        "links",
        "n",
        "carried",
        "lost",
        "mean_ms",
        "deviation_ms",
        "p50_ms",
        "p95_ms",
        "p99_ms",
        "p999_ms",
    ];
    let mut table = Table::new("summary", columns).shown("Latency of a slice by case");
    for Measured { case, latencies, lost, carried } in measured {
        table.push([
            case.name.into(),
            case.links.into(),
            case.packet_count.into(),
            (*carried).into(),
            (*lost).into(),
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

/// Returns the share of slices in each half millisecond from 15 to 45 ms, at its midpoint.
fn bins(latencies: &Latencies) -> Vec<(f64, f64)> {
    let below = |ms: f64| latencies.share_below(ms);
    (30..90)
        .map(|half| f64::from(half) / 2.0)
        .map(|from| (from + 0.25, below(from + 0.5) - below(from)))
        .collect()
}

fn distribution(measured: &[Measured]) -> Table {
    let mut table = Table::new("distribution", ["case", "latency_ms", "share_of_half_ms"]);
    for Measured { case, latencies, .. } in measured {
        for (middle, share) in bins(latencies) {
            table.push([case.name.into(), middle.into(), share.into()]);
        }
    }
    table
}

fn density(measured: &[Measured]) -> Plot {
    let x = Axis::linear("latency of a slice, ms").range(15.0, 45.0);
    let y = Axis::linear("share of slices in each .5 ms");
    let series = measured.iter().map(|of| Series::line(of.case.name, bins(&of.latencies)));
    Plot::new("fig-15", "Latency of a slice by number of modems", x, y).with_all(series)
}

/// Plots the share of slices later than x, on a logarithmic scale, which shows best how the numbers
/// of modems differ.
fn tail(measured: &[Measured]) -> Plot {
    let x = Axis::linear("latency of a slice, ms").range(15.0, 150.0);
    let y = Axis::log("share of slices that are later").range(1e-4, 1.0);
    let series = measured.iter().map(|Measured { case, latencies, .. }| {
        let points = (15..=150).map(f64::from).map(|ms| (ms, 1.0 - latencies.share_below(ms)));
        Series::line(case.name, points.filter(|(_, share)| *share > 0.0).collect())
    });
    let title = format!("Slices later than .., {PER_SECOND} a second");
    Plot::new("fig-15-tail", &title, x, y).with_all(series)
}
