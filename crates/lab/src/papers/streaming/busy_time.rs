//! Theorem 1 and Corollary 1: the time for which losses keep the receiver waiting.

use anyhow::Result;
use tautline_fec::theory::Stream;

use super::intervals::Intervals;
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "stream-theorem-1",
    title: "The streaming code's busy time: its distribution and moments",
    source: "[STREAM] Theorem 1 and Corollary 1",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("coefficients"),
    run,
};

/// Sends streams without feedback and counts the intervals until nothing is missing.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let intervals = run.choose(40_000, 1_000_000);
    let mut counted = Vec::new();
    for (done, (interval, erasure_rate)) in PAIRS.into_iter().enumerate() {
        let what = format!("l = {interval}, {erasure_rate} loss");
        run.progress(done as u64, PAIRS.len() as u64, &what);
        let stream = Stream::new(interval, erasure_rate)?;
        counted.push(Counted::measure(stream, intervals, run.seed)?);
    }
    Ok(Outcome::Measured(Findings {
        rows: counted.iter().flat_map(Counted::rows).collect(),
        tables: vec![table(&counted)],
        plots: vec![plot(&counted)],
        notes: vec![
            format!(
                "{intervals} intervals of each pair, sent by the crate's own encoder over independent \
                 losses to its own decoder. S is 0 for an interval that begins with nothing missing and \
                 loses no source packet, otherwise the intervals to the repair packet after which nothing \
                 is missing."
            ),
            "The theorem is for a large field. In GF(256) a repair packet says nothing new once in some \
             hundred times where several packets are missing."
                .to_owned(),
        ],
    }))
}

/// Pairs of an interval in slots and an erasure rate.
const PAIRS: [(u32, f64); 4] = [(5, 0.1), (4, 0.1), (4, 0.05), (10, 0.05)];

/// Busy times of one pair of interval and erasure rate.
struct Counted {
    stream: Stream,
    /// Number of busy times by length in intervals, from 0 on.
    counts: Vec<u64>,
}

/// A mean over all busy times.
struct Estimate {
    mean: f64,
    standard_error: f64,
}

impl Counted {
    fn measure(stream: Stream, intervals: u64, seed: u64) -> Result<Self> {
        let mut sent = Intervals::new(&stream, seed)?;
        let (mut counts, mut waited) = (vec![0; 2], 0);
        for _ in 0..intervals {
            let interval = sent.next()?;
            waited += usize::from(waited > 0 || interval.is_hit);
            if interval.delivered < interval.sent {
                continue;
            }
            if waited >= counts.len() {
                counts.resize(waited + 1, 0);
            }
            counts[waited] += 1;
            waited = 0;
        }
        Ok(Self { stream, counts })
    }

    fn count(&self) -> f64 {
        self.counts.iter().sum::<u64>() as f64
    }

    fn estimate(&self, of: impl Fn(f64) -> f64) -> Estimate {
        let all = || self.counts.iter().enumerate().map(|(s, count)| (of(s as f64), *count as f64));
        let mean = all().map(|(value, count)| value * count).sum::<f64>() / self.count();
        let squares = all().map(|(value, count)| (value - mean).powi(2) * count).sum::<f64>();
        Estimate { mean, standard_error: squares.sqrt() / self.count() }
    }

    fn rows(&self) -> Vec<Row> {
        let busy = self.stream.busy_time();
        let mut rows = vec![
            self.row("E[S]", "intervals", busy.mean(), |s| s),
            self.row("E[S^2]", "", busy.second_moment(), |s| s * s),
            self.row("E[S+]", "intervals", busy.period_mean(), |s| s.max(1.0)),
            self.row("P(S+ = 1)", "", busy.period_one_probability(), |s| {
                f64::from(u8::from(s <= 1.0))
            }),
        ];
        for length in 0..=LENGTH_JUDGED {
            let is_it = move |s: f64| f64::from(u8::from(s == length as f64));
            rows.push(self.row(&format!("P(S = {length})"), "", busy.pmf(length), is_it));
        }
        rows
    }

    /// Returns a row with the mean of `of` over all busy times, judged by the theorem's value
    /// `reference`; not judged if `reference` times the number of busy times is below
    /// [`JUDGED_MIN`].
    fn row(&self, what: &str, unit: &str, reference: f64, of: impl Fn(f64) -> f64) -> Row {
        let Estimate { mean, standard_error } = self.estimate(of);
        let (interval, erasure_rate) = (self.stream.interval(), self.stream.erasure_rate());
        let row = Row::new(format!("{what}, l = {interval}, {erasure_rate} loss"), unit, mean)
            .reference(reference);
        if reference * self.count() < JUDGED_MIN {
            return row.note("Too rare to be judged.");
        }
        let most = (5.0 * standard_error + FIELD * reference).min(reference / 2.0);
        row.within_absolute(most)
            .because("five standard errors of the busy times counted, and 1 % for the small field")
    }
}

fn table(counted: &[Counted]) -> Table {
    let columns =
        ["interval_slots", "erasure_rate", "busy_intervals", "share", "share_by_theorem_1"];
    let mut table = Table::new("busy-times", columns);
    for one in counted {
        for (length, count) in one.counts.iter().enumerate() {
            table.push([
                u64::from(one.stream.interval()).into(),
                one.stream.erasure_rate().into(),
                length.into(),
                (*count as f64 / one.count()).into(),
                one.stream.busy_time().pmf(length as u64).into(),
            ]);
        }
    }
    table
}

fn plot(counted: &[Counted]) -> Plot {
    let x = Axis::linear("busy time S, intervals").range(-0.5, DRAWN as f64 + 0.5);
    let y = Axis::log("probability").range(1e-5, 1.0);
    let mut plot = Plot::new("theorem-1", "Busy times, counted and by Theorem 1", x, y);
    for (colour, one) in counted.iter().enumerate() {
        let name = format!("l = {}, {} loss", one.stream.interval(), one.stream.erasure_rate());
        let law = (0..=DRAWN).map(|s| (s as f64, one.stream.busy_time().pmf(s)));
        let shares = one.counts.iter().enumerate().take(DRAWN as usize + 1);
        let shares = shares.filter(|(_, count)| **count > 0);
        let shares = shares.map(|(s, count)| (s as f64, *count as f64 / one.count()));
        plot = plot
            .with(Series::line(format!("{name}, by Theorem 1"), law.collect()).colour(colour))
            .with(Series::points(name, shares.collect()).colour(colour));
    }
    plot
}

const LENGTH_JUDGED: u64 = 4;
/// Minimum expected sum of a quantity over all busy times for its row to be judged: below it, five
/// standard errors exceed a third of the value.
const JUDGED_MIN: f64 = 200.0;
const DRAWN: u64 = 20;
/// Relative difference that GF(256) may make to the value for a large field.
const FIELD: f64 = 0.01;
