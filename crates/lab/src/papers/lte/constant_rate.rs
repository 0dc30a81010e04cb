//! Figs. 3 and 6: the latency of a constant-rate stream over one to four links, packet by packet,
//! and its autocorrelation.
//!
//! The stream is sent by complete sessions. One has no rate control, as in the paper's Fig. 3. The
//! other is under the two-state rate control, with a source that follows it.

use anyhow::Result;
use tautline_scenario::policies::rate::Kind;
use tautline_units::Bitrate;

use super::latencies::Latencies;
use super::recorded::{self, Recorded};
use super::slices::{APPLICATION, PACKET_BYTES, Stream, model_note, modem};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};
use crate::sweeps::links::set::Set;
use crate::workers;

pub(crate) const ONE_LINK: Experiment = Experiment {
    key: "lte-fig-3",
    title: "Latency and autocorrelation of a constant-rate stream over one link",
    source: "[LTE] Fig. 3",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("outages"),
    run: one_link,
};

/// Measures Fig. 3: one link.
fn one_link(run: &Run<'_>) -> Result<Outcome> {
    let recorded = Recorded::singles(run)?;
    let note = recorded.note();
    let modelled = CONTROLS.map(|control| Case { links: 1, control, recorded: None });
    let cases: Vec<Case> =
        modelled.into_iter().chain(recorded.sets.into_iter().map(Case::over)).collect();
    let measured = measure(run, &cases)?;
    let (of_models, of_recordings) = measured.split_at(CONTROLS.len());
    let mut rows: Vec<Row> = of_models.iter().flat_map(rows_of_one).collect();
    rows.extend(of_recordings.iter().flat_map(rows_of_recording));
    outcome("fig-3", "over one link", &measured, rows, note)
}

pub(crate) const MANY_LINKS: Experiment = Experiment {
    key: "lte-fig-6",
    title: "Latency and autocorrelation of a constant-rate stream over one to four links",
    source: "[LTE] Fig. 6",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("outages"),
    run: many_links,
};

/// Measures Fig. 6 and beyond: one to four links.
fn many_links(run: &Run<'_>) -> Result<Outcome> {
    let recorded = Recorded::growing(run)?;
    let note = recorded.note();
    let modelled = CONTROLS
        .iter()
        .flat_map(|control| (1..=4).map(|links| Case { links, control: *control, recorded: None }));
    let cases: Vec<Case> = modelled.chain(recorded.sets.into_iter().map(Case::over)).collect();
    let measured = measure(run, &cases)?;
    let (of_models, of_recordings) = measured.split_at(4 * CONTROLS.len());
    let mut rows: Vec<Row> = of_models.iter().flat_map(correlation_rows).collect();
    for of_control in of_models.chunks(4) {
        rows.extend(decrease_rows(of_control));
    }
    rows.extend(of_recordings.iter().flat_map(rows_of_recording));
    outcome("fig-6", "over one to four links", &measured, rows, note)
}

/// Length of each run in seconds, unless the run is quick; the paper's figures appear to show about
/// as much.
const SECONDS: u64 = 60;
/// Packets per second: 1 MB/s.
const PER_SECOND: u64 = (APPLICATION / PACKET_BYTES as f64) as u64;
/// Number of lags over which the autocorrelation is averaged.
const LAGS: usize = 50;
/// Load of every link relative to its mean capacity, from the reference simulation of the paper.
const UTILISATION: f64 = 0.675;
/// Number of packets with the smallest latencies that the paper's lower graph shows.
const BEST: usize = 500;
const CONTROLS: [Kind; 2] = [Kind::Fixed, Kind::TwoState];

/// A number of links and their rate control.
#[derive(Clone)]
struct Case {
    links: usize,
    control: Kind,
    /// The recorded links; `None` for modelled ones.
    recorded: Option<Set>,
}

impl Case {
    /// Returns a case with recorded links, under the paper's control.
    fn over(set: Set) -> Self {
        Self { links: set.len(), control: Kind::TwoState, recorded: Some(set) }
    }

    fn stream(&self, seconds: u64, seed: u64) -> Stream {
        if let Some(set) = &self.recorded {
            let stream = Stream::of_packets(set.pairs(seed), PER_SECOND, seconds);
            return Stream { control: self.control, adapts: true, ..stream };
        }
        let stream = Stream::of_packets(Vec::new(), PER_SECOND, seconds);
        let load = stream.wire_bytes() / self.links as f64;
        let links = vec![modem(load / UTILISATION, true); self.links];
        let initial = Bitrate::from_bps((load * 8.0 * GRANTED) as u64);
        let adapts = self.control == Kind::TwoState;
        Stream { links, control: self.control, adapts, initial, ..stream }
    }
}

/// A link's initial grant relative to its share of the stream: it also carries pings.
const GRANTED: f64 = 1.1;

/// One run.
struct One {
    /// Latencies of the packets that arrived in ms, in sending order.
    latencies: Vec<f64>,
    lost: f64,
    /// Autocorrelation of all latencies at each lag, from 0 to [`LAGS`].
    lags: Vec<f64>,
    best: f64,
    calmest: f64,
}

/// All runs of a case.
struct Measured {
    case: Case,
    /// Latencies of the first run in ms, in sending order.
    first: Vec<f64>,
    /// Autocorrelation at each lag from 0 on, mean of the runs.
    lags: Vec<f64>,
    /// Mean of `lags` over lags 1 to 50.
    correlation: f64,
    /// Mean autocorrelation over lags 1 to 50 of only the [`BEST`] smallest latencies of each run,
    /// in sending order, as in the paper.
    best: f64,
    /// Mean autocorrelation over lags 1 to 50 of only the [`calmest`] stretch of [`BEST`] packets
    /// in each run.
    calmest: f64,
    /// Maximum latency of a run in ms, median over the runs.
    largest: f64,
    /// Share of packets lost, mean of the runs.
    lost: f64,
    runs: usize,
}

fn measure(run: &Run<'_>, cases: &[Case]) -> Result<Vec<Measured>> {
    let runs = run.choose(2, 8);
    let jobs: Vec<(&Case, u64)> =
        cases.iter().flat_map(|case| (0..runs as u64).map(move |number| (case, number))).collect();
    let seconds = run.choose(30, SECONDS);
    let (total, first) = (jobs.len() as u64, run.seed.wrapping_mul(1000));
    let made = workers::each(
        workers::count(),
        &jobs,
        |(case, number)| {
            let came = case.stream(seconds, first + number).send(first + number)?;
            let lost = came.lost_share();
            let latencies = came.latencies;
            Ok(One {
                lags: autocorrelation(&latencies),
                best: over_lags(&autocorrelation(&best(&latencies))),
                calmest: over_lags(&autocorrelation(calmest(&latencies))),
                lost,
                latencies,
            })
        },
        |done, _| run.progress(done as u64, total, "sessions over links"),
    )?;
    let measured = cases.iter().zip(made.chunks(runs));
    Ok(measured.map(|(case, made)| Measured::of(case.clone(), made)).collect())
}

impl Measured {
    fn of(case: Case, made: &[One]) -> Self {
        let mean = |of: &dyn Fn(&One) -> f64| made.iter().map(of).sum::<f64>() / made.len() as f64;
        let lags: Vec<f64> = (0..=LAGS).map(|lag| mean(&|one| one.lags[lag])).collect();
        let largest = |one: &One| one.latencies.iter().copied().fold(0.0, f64::max);
        Self {
            case,
            first: made[0].latencies.clone(),
            correlation: over_lags(&lags),
            lags,
            best: mean(&|one| one.best),
            calmest: mean(&|one| one.calmest),
            largest: Latencies::new(made.iter().map(largest).collect()).quantile(0.5),
            lost: mean(&|one| one.lost),
            runs: made.len(),
        }
    }

    fn name(&self) -> String {
        let links = self.case.links;
        if let Some(set) = &self.case.recorded {
            return recorded::name_of(set);
        }
        let control = match self.case.control == Kind::TwoState {
            true => "two-state",
            false => "whatever the link carries",
        };
        format!("{links} {}, {control}", if links == 1 { "link" } else { "links" })
    }
}

/// Mean autocorrelation for 1 to 4 links in the reference simulation of the paper.
const REFERENCE: [f64; 4] = [0.61, 0.29, 0.20, 0.18];

fn correlation_rows(measured: &Measured) -> [Row; 4] {
    let (name, links) = (measured.name(), measured.case.links);
    let lost = Row::new(format!("{name}: packets that never came"), "%", measured.lost * 100.0);
    [
        Row::new(
            format!("{name}: mean autocorrelation, lags 1 to {LAGS}"),
            "",
            measured.correlation,
        )
        .reference(REFERENCE[links - 1]),
        Row::new(format!("{name}: the same, of the {BEST} best"), "", measured.best),
        Row::new(format!("{name}: the same, of the calmest {BEST} in a row"), "", measured.calmest),
        lost.reference(0.0)
            .within_absolute(0.1)
            .because("an outage of more than a second, at most"),
    ]
}

/// Returns rows that judge the results of one link by the paper's statements.
fn rows_of_one(measured: &Measured) -> Vec<Row> {
    let name = measured.name();
    let [correlation, best, calmest, lost] = correlation_rows(measured);
    let correlation = match measured.case.control == Kind::Fixed {
        true => correlation
            .within_absolute(0.2)
            .because("outages, few in a minute, carry the correlation: runs differ by as much"),
        false => correlation,
    };
    let best = best.note(
        "The paper: very high. Not of these links: what they have in common with themselves are outages and \
         swings, which the best leave out.",
    );
    let largest = format!("{name}: largest latency of a run, median");
    let largest = Row::new(largest, "ms", measured.largest).published(200.0);
    let because = "the paper's figure grows to 200 ms, once: the longest of few outages";
    vec![correlation, best, calmest, lost, largest.within(0.5).because(because)]
}

/// Returns rows, not judged, for recorded links with a source that follows the rate control.
fn rows_of_recording(measured: &Measured) -> [Row; 3] {
    let name = measured.name();
    let row = |what: &str, unit: &str, value: f64| Row::new(format!("{name}: {what}"), unit, value);
    [
        row(&format!("mean autocorrelation, lags 1 to {LAGS}"), "", measured.correlation),
        row(&format!("the same, of the {BEST} best"), "", measured.best),
        row("largest latency of a run, median", "ms", measured.largest),
    ]
}

/// Returns rows for the decrease of the autocorrelation with the number of links, under one
/// control.
fn decrease_rows(streams: &[Measured]) -> Vec<Row> {
    let is_papers = streams[0].case.control == Kind::TwoState;
    let mut rows = Vec::new();
    for stream in &streams[1..] {
        let (name, links) = (stream.name(), stream.case.links as f64);
        let of_one = stream.correlation / streams[0].correlation;
        let of_one = Row::new(format!("{name}: autocorrelation over that of one"), "", of_one)
            .reference(1.0 / links);
        rows.push(match is_papers {
            true => of_one
                .within_absolute(0.12)
                .because("set by hand: links that drift on their own add or take as much"),
            false => of_one,
        });
        let of_best = stream.best / streams[0].best;
        let of_best =
            Row::new(format!("{name}: that of the {BEST} best over that of one"), "", of_best);
        rows.push(match stream.case.links {
            2 if is_papers => of_best
                .asked(0.75)
                .at_most(1.0)
                .because("set by hand: a quarter less can be seen; the paper says significantly"),
            _ => of_best,
        });
    }
    let four = &streams[3];
    let whole = format!("{}: autocorrelation, of all packets", four.name());
    let whole = Row::new(whole, "", four.correlation).published(0.0);
    rows.push(whole.note(
        "The paper: no correlation at all. Of all packets it falls to 1 / links, not to zero.",
    ));
    let best = format!("{}: autocorrelation, of the {BEST} best", four.name());
    let best = Row::new(best, "", four.best).published(0.0);
    rows.push(match is_papers {
        true => best.within_absolute(0.05).because(
            "set by hand: four times what 500 latencies show that have nothing to do with each other",
        ),
        false => best,
    });
    rows
}

fn outcome(
    name: &str,
    over: &str,
    streams: &[Measured],
    rows: Vec<Row>,
    recordings: String,
) -> Result<Outcome> {
    let mut lags = Table::new("autocorrelation", ["stream", "lag", "autocorrelation"]);
    let mut summary =
        Table::new("summary", ["stream", "mean_ms", "p50_ms", "p95_ms", "largest_ms"]);
    for stream in streams {
        for (lag, value) in stream.lags.iter().enumerate() {
            lags.push([stream.name().into(), lag.into(), (*value).into()]);
        }
        let latencies = Latencies::new(stream.first.clone());
        summary.push([
            stream.name().into(),
            latencies.mean().into(),
            latencies.quantile(0.5).into(),
            latencies.quantile(0.95).into(),
            latencies.quantile(1.0).into(),
        ]);
    }
    // An outage in a recording takes seconds: next to it, the other curves would be flat.
    let modelled = streams.iter().take_while(|stream| stream.case.recorded.is_none()).count();
    let modelled = &streams[..modelled];
    let (runs, seconds) = (streams[0].runs, streams[0].first.len() / PER_SECOND as usize);
    Ok(Outcome::Measured(Findings {
        tables: vec![lags, summary, over_time_table(streams)],
        plots: vec![
            over_time(&format!("{name}-latency"), over, modelled),
            correlogram(&format!("{name}-autocorrelation"), over, modelled),
        ],
        rows,
        notes: [
            model_note(),
            format!(
                "1 MB/s in packets of {PACKET_BYTES} bytes at a constant rate, each to the link with the \
                 earliest anticipated transmission end; each link's mean capacity is its share of the load \
                 / {UTILISATION}. Mean of {runs} runs of {seconds} s each. The reference's links took packets in \
                 turn from no session; two of a session's have more in common than it says."
            ),
            "The paper says of four modems that there is no correlation at all. Packets in turn \
             over l links of equal kind share a link with one in l of those near them: the \
             autocorrelation falls to about 1 / l of that of one link, not to zero."
                .to_owned(),
            recordings,
        ]
        .into(),
    }))
}

/// Returns the autocorrelation from lag 0 to [`LAGS`].
fn autocorrelation(latencies: &[f64]) -> Vec<f64> {
    let mean = latencies.iter().sum::<f64>() / latencies.len() as f64;
    let deviations: Vec<f64> = latencies.iter().map(|latency| latency - mean).collect();
    let product = |lag: usize| {
        let pairs = deviations.iter().zip(&deviations[lag..]);
        pairs.map(|(a, b)| a * b).sum::<f64>()
    };
    let variance = product(0);
    (0..=LAGS).map(|lag| product(lag) / variance).collect()
}

fn over_lags(autocorrelation: &[f64]) -> f64 {
    autocorrelation[1..].iter().sum::<f64>() / LAGS as f64
}

/// Returns the [`BEST`] smallest latencies in sending order.
fn best(latencies: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..latencies.len()).collect();
    order.sort_by(|a, b| latencies[*a].total_cmp(&latencies[*b]));
    order.truncate(BEST);
    order.sort_unstable();
    order.into_iter().map(|at| latencies[at]).collect()
}

/// Divides the latencies into stretches of [`BEST`] packets and returns the one with the smallest
/// mean; all latencies if there are fewer.
fn calmest(latencies: &[f64]) -> &[f64] {
    let sum = |stretch: &[f64]| stretch.iter().sum::<f64>();
    let stretches = latencies.chunks_exact(BEST);
    stretches.min_by(|a, b| sum(a).total_cmp(&sum(b))).unwrap_or(latencies)
}

/// Returns the largest latency in each tenth of a second of the first run: the visible detail of a
/// curve with 86,400 points.
fn tenths(stream: &Measured) -> Vec<(f64, f64)> {
    let tenth = (PER_SECOND / 10) as usize;
    let largest = |packets: &[f64]| packets.iter().copied().fold(0.0, f64::max);
    let stretches = stream.first.chunks(tenth).enumerate();
    stretches.map(|(at, packets)| (at as f64 / 10.0, largest(packets))).collect()
}

fn over_time_table(streams: &[Measured]) -> Table {
    let mut table = Table::new("latency", ["stream", "second", "largest_of_tenth_ms"]);
    for stream in streams {
        for (second, latency) in tenths(stream) {
            table.push([stream.name().into(), second.into(), latency.into()]);
        }
    }
    table
}

fn over_time(name: &str, over: &str, streams: &[Measured]) -> Plot {
    let y = Axis::linear("largest latency of each .1 s, ms");
    let series = streams.iter().map(|stream| Series::line(stream.name(), tenths(stream)));
    let title = format!("Latency of a constant-rate stream {over}");
    Plot::new(name, &title, Axis::linear("s"), y).with_all(series)
}

fn correlogram(name: &str, over: &str, streams: &[Measured]) -> Plot {
    let y = Axis::linear("autocorrelation").range(0.0, 1.0);
    let series = streams.iter().map(|stream| {
        let lags = stream.lags.iter().enumerate();
        Series::line(stream.name(), lags.map(|(lag, value)| (lag as f64, *value)).collect())
    });
    let title = format!("Autocorrelation of packet latency {over}");
    Plot::new(name, &title, Axis::linear("lag, packets"), y).with_all(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternating_latencies_correlate_by_turns() {
        let latencies: Vec<f64> = (0..10_000).map(|i| f64::from(i % 2)).collect();
        let lags = autocorrelation(&latencies);
        assert!((lags[1] + 1.0).abs() < 0.01 && (lags[2] - 1.0).abs() < 0.01);
        assert!(over_lags(&lags).abs() < 0.01);
    }

    #[test]
    fn the_best_are_the_least_in_the_order_of_sending() {
        let mut latencies = vec![9.0; 2 * BEST];
        for at in 0..BEST {
            latencies[2 * at] = (BEST - at) as f64 / BEST as f64;
        }
        let best = best(&latencies);
        assert_eq!(best.len(), BEST);
        assert!(best.windows(2).all(|pair| pair[0] > pair[1]), "{best:?}");
    }

    #[test]
    fn the_calmest_stretch_has_the_least_sum() {
        let mut latencies = vec![9.0; 2 * BEST];
        latencies[BEST..].fill(1.0);
        assert_eq!(calmest(&latencies), &latencies[BEST..]);
    }
}
