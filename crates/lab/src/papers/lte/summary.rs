//! The paper's headline result by the complete system: its processes, real sockets, links like the
//! paper's, one run.

use std::time::Duration;

use anyhow::Result;

use super::system;
use crate::experiment::{
    Cell, Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table,
};
use crate::pictures::clip;
use crate::pictures::coding::{mean, quantile};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-summary",
    title: "The whole system over four links: quality and latency, stage by stage",
    source: "[LTE] V",
    isolation: Isolation::Processes,
    mutation: Mutation::Named("quantizer-floor"),
    run,
};

/// Sends the simulated camera's pictures from a vehicle to an operator process, and compares the
/// result.
fn run(run: &Run<'_>) -> Result<Outcome> {
    Ok(match system::driven(run)? {
        Ok(came) => Outcome::Measured(findings(run, &came)),
        Err(missing) => missing,
    })
}

fn findings(run: &Run<'_>, came: &clip::Figures) -> Findings {
    let stages = [
        ("camera and compression", in_ms(&came.encoding)),
        ("network", in_ms(&came.network)),
        ("decompression", in_ms(&came.decoding)),
    ];
    let whole = in_ms(&came.latency);
    let seconds = came.pictures as f64 / came.pictures_per_second;
    let shown = came.slices_in_time as f64 / came.slices as f64;
    let slower = run.choose(2.0, 1.0);
    let mut rows = vec![
        Row::new("luma PSNR, mean of pictures", "dB", mean(&came.psnr))
            .published(36.0)
            .at_least(1.0)
            .because("the paper's mean, whose scene and rate it does not tell"),
        Row::new("from readout to decompressed, mean", "ms", mean(&whole) + mean(&stages[2].1))
            .published(90.0)
            .at_most(slower)
            .because("the paper's mean from an event to the screen, twice that in a quick run")
            .clocked(),
        Row::new("of that the network's share", "%", 100.0 * mean(&stages[1].1) / mean(&whole)),
        Row::new("slices in time", "%", 100.0 * shown),
        Row::new("pictures a second, by their slices", "1/s", shown * came.pictures_per_second)
            .published(60.0),
        Row::new("H.264 shown", "Mbit/s", came.bytes as f64 * 8e-6 / seconds),
    ];
    for (stage, times) in &stages {
        for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
            rows.push(Row::new(format!("{stage}, {name}"), "ms", quantile(times, share)).clocked());
        }
    }
    let mut table =
        Table::new("stages", ["stage", "p5_ms", "p50_ms", "p95_ms", "p99_ms", "worst_ms"]);
    let all = stages.iter().map(|(stage, times)| (*stage, times));
    for (stage, times) in all.chain([("readout to console", &whole)]) {
        let [p5, p50, p95, p99, worst] =
            [0.05, 0.5, 0.95, 0.99, 1.0].map(|share| Cell::from(quantile(times, share)));
        table.push([stage.into(), p5, p50, p95, p99, worst]);
    }
    let steps = |label: &str, times: &[f64]| {
        let points = (0..=POINTS).map(|at| f64::from(at) / f64::from(POINTS));
        Series::steps(label, points.map(|share| (quantile(times, share), share)).collect())
    };
    let plot = Plot::new(
        "latency",
        "A slice from its readout to the console, and its parts",
        Axis::linear("ms"),
        Axis::linear("share of slices").range(0.0, 1.0),
    )
    .with(steps("camera and compression", &stages[0].1))
    .with(steps("network", &stages[1].1))
    .with(steps("readout to console", &whole))
    .mark_x(90.0, "published mean, event to screen");
    Findings {
        tables: vec![table],
        plots: vec![plot],
        rows,
        notes: [
            system::notes(),
            vec![
                "Before it an event waits half a picture in the mean until its row is read; behind it the \
                 browser draws and the screen shows: `lte-table-1`, `lte-fig-14`, and `make latency` in a \
                 browser."
                    .to_owned(),
            ],
        ]
        .concat(),
    }
}

fn in_ms(times: &[Duration]) -> Vec<f64> {
    times.iter().map(|time| time.as_secs_f64() * 1e3).collect()
}

/// Points per curve.
const POINTS: u32 = 400;
