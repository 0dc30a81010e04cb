//! Figs. 3 and 6: the latency of a constant-rate stream over one to four links, packet by packet,
//! and how much of it a packet shares with those that follow.

use anyhow::Result;

use super::latencies::Latencies;
use super::slices::{APPLICATION, Modem, Slices, model_note};
use crate::experiment::{Experiment, Findings, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};

pub(crate) const ONE_LINK: Experiment = Experiment {
    key: "lte-fig-3",
    title: "Latency and autocorrelation of a constant-rate stream over one link",
    source: "[LTE] Fig. 3",
    run: one_link,
};

/// Measures Fig. 3: one link.
fn one_link(run: &Run<'_>) -> Result<Outcome> {
    let stream = Stream::measure(run, 1)?;
    let worst = stream.first.iter().copied().fold(0.0, f64::max);
    let mut rows = vec![correlation_row(run, &stream)];
    rows.push(best_row(&stream));
    rows.push(
        Row::new(format!("largest latency in {SECONDS} s"), "ms", worst).published(200.0).note(
            "The paper's figure grows to 200 ms, once; here it is the length of the longest \
             outage, which is drawn.",
        ),
    );
    outcome("fig-3", "over one link", &[stream], rows)
}

pub(crate) const MANY_LINKS: Experiment = Experiment {
    key: "lte-fig-6",
    title: "Latency and autocorrelation of a constant-rate stream over one to four links",
    source: "[LTE] Fig. 6",
    run: many_links,
};

/// Measures Fig. 6, and further: one to four links.
fn many_links(run: &Run<'_>) -> Result<Outcome> {
    let mut streams = Vec::new();
    for links in 1..=4 {
        run.progress(links as u64 - 1, 4, &format!("{links} links"));
        streams.push(Stream::measure(run, links)?);
    }
    let mut rows: Vec<Row> = streams.iter().map(|stream| correlation_row(run, stream)).collect();
    for stream in &streams[1..] {
        let links = stream.links as f64;
        let of_one = stream.correlation / streams[0].correlation;
        rows.push(
            Row::new(format!("{links} links: autocorrelation over that of one"), "", of_one)
                .reference(1.0 / links)
                .within_absolute(0.12)
                .because("set by hand: links that drift on their own add or take as much")
                .note("A packet's follower on the same link comes 1 / links as often."),
        );
    }
    rows.extend(streams.iter().map(best_row));
    outcome("fig-6", "over one to four links", &streams, rows)
}

/// The length of each run; the paper's figures are taken to show about as much.
const SECONDS: f64 = 60.0;
/// Lags whose mean is told.
const LAGS: usize = 50;
/// The utilisation of every link: the reference's.
const UTILISATION: f64 = 0.675;
/// As many packets as the paper takes for its lower graph.
const BEST: usize = 500;

/// The stream over so many links, run after run.
struct Stream {
    links: usize,
    /// The first run's latencies in ms, in the order of sending.
    first: Vec<f64>,
    /// Autocorrelation at each lag from 0 on, mean of the runs.
    lags: Vec<f64>,
    /// Its mean over lags 1 to 50.
    correlation: f64,
    /// The same, in each run's calmest stretch of [`BEST`] packets.
    best: f64,
    runs: usize,
}

impl Stream {
    fn measure(run: &Run<'_>, links: usize) -> Result<Self> {
        let runs = run.choose(4, 40);
        // A block of one packet is a packet.
        let slices = Slices { source_count: 1, ..Slices::of_paper(1, SECONDS) };
        let slices = Slices { per_second: APPLICATION / slices.packet_bytes as f64, ..slices };
        let modems = vec![Modem::loaded(APPLICATION / links as f64, UTILISATION); links];
        let mut stream = Self {
            links,
            first: vec![],
            lags: vec![0.0; LAGS + 1],
            correlation: 0.0,
            best: 0.0,
            runs,
        };
        for number in 0..runs {
            let seed = run.seed.wrapping_mul(1000) + number as u64;
            let latencies = slices.packet_delays(&modems, seed)?;
            for (mean, value) in stream.lags.iter_mut().zip(autocorrelation(&latencies)) {
                *mean += value / runs as f64;
            }
            stream.best += over_lags(&autocorrelation(calmest(&latencies))) / runs as f64;
            if number == 0 {
                stream.first = latencies;
            }
        }
        stream.correlation = over_lags(&stream.lags);
        Ok(stream)
    }

    fn name(&self) -> String {
        format!("{} {}", self.links, if self.links == 1 { "link" } else { "links" })
    }
}

/// The reference's mean autocorrelation for 1 to 4 links.
const REFERENCE: [f64; 4] = [0.61, 0.29, 0.20, 0.18];

fn correlation_row(run: &Run<'_>, stream: &Stream) -> Row {
    let name = format!("{}: mean autocorrelation, lags 1 to {LAGS}", stream.name());
    let reference = REFERENCE[stream.links - 1];
    let row = Row::new(name, "", stream.correlation)
        .reference(reference)
        .within_absolute(run.choose(0.12, 0.1_f64).min(reference / 2.0))
        .because("set by hand: outages and slow swings, few in a minute, carry the correlation");
    match stream.links {
        4 => row.published(0.0).note("The paper: no correlation at all."),
        _ => row,
    }
}

fn best_row(stream: &Stream) -> Row {
    let name = format!("{}: the same, calmest {BEST} packets of each run", stream.name());
    Row::new(name, "", stream.best).note(
        "The paper draws that of its 500 best latencies: a choice that leaves out what links have \
         in common with themselves, outages and slow swings.",
    )
}

fn outcome(name: &str, over: &str, streams: &[Stream], rows: Vec<Row>) -> Result<Outcome> {
    let mut lags = Table::new("autocorrelation", ["links", "lag", "autocorrelation"]);
    let mut summary = Table::new("summary", ["links", "mean_ms", "p50_ms", "p95_ms", "largest_ms"]);
    for stream in streams {
        for (lag, value) in stream.lags.iter().enumerate() {
            lags.push([stream.links.into(), lag.into(), (*value).into()]);
        }
        let latencies = Latencies::new(stream.first.clone());
        summary.push([
            stream.links.into(),
            latencies.mean().into(),
            latencies.quantile(0.5).into(),
            latencies.quantile(0.95).into(),
            latencies.quantile(1.0).into(),
        ]);
    }
    let runs = streams[0].runs;
    Ok(Outcome::Measured(Findings {
        tables: vec![lags, summary, over_time_table(streams)],
        plots: vec![
            over_time(&format!("{name}-latency"), over, streams),
            correlogram(&format!("{name}-autocorrelation"), over, streams),
        ],
        rows,
        notes: vec![
            model_note(),
            format!(
                "1 MB/s in packets of 694 bytes, shared equally; each link's mean capacity is its \
                 load / {UTILISATION}. Autocorrelation: mean of {runs} runs of {SECONDS} s each."
            ),
            "The paper says of four modems that there is no correlation at all. Packets in turn \
             over l links of equal kind share a link with one in l of those near them: the \
             autocorrelation falls to about 1 / l of that of one link, not to zero."
                .to_owned(),
        ],
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

/// Returns the stretch of [`BEST`] packets with the least mean latency.
fn calmest(latencies: &[f64]) -> &[f64] {
    let sum = |stretch: &[f64]| stretch.iter().sum::<f64>();
    let stretches = latencies.chunks_exact(BEST);
    stretches.min_by(|a, b| sum(a).total_cmp(&sum(b))).unwrap_or(latencies)
}

/// Returns the largest latency of each tenth of a second of the first run: what an eye sees of a curve of
/// 86,400 points.
fn tenths(stream: &Stream) -> Vec<(f64, f64)> {
    let tenth = (stream.first.len() as f64 / SECONDS / 10.0) as usize;
    let largest = |packets: &[f64]| packets.iter().copied().fold(0.0, f64::max);
    let stretches = stream.first.chunks(tenth).enumerate();
    stretches.map(|(at, packets)| (at as f64 / 10.0, largest(packets))).collect()
}

fn over_time_table(streams: &[Stream]) -> Table {
    let mut table = Table::new("latency", ["links", "second", "largest_of_tenth_ms"]);
    for stream in streams {
        for (second, latency) in tenths(stream) {
            table.push([stream.links.into(), second.into(), latency.into()]);
        }
    }
    table
}

fn over_time(name: &str, over: &str, streams: &[Stream]) -> Plot {
    let y = Axis::linear("largest latency of each .1 s, ms");
    let series = streams.iter().map(|stream| Series::line(stream.name(), tenths(stream)));
    let title = format!("Latency of a constant-rate stream {over}");
    Plot::new(name, &title, Axis::linear("s"), y).with_all(series)
}

fn correlogram(name: &str, over: &str, streams: &[Stream]) -> Plot {
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
    fn the_calmest_stretch_has_the_least_sum() {
        let mut latencies = vec![9.0; 2 * BEST];
        latencies[BEST..].fill(1.0);
        assert_eq!(calmest(&latencies), &latencies[BEST..]);
    }
}
