//! Table I: latency of each stage from an event to the light of a screen, by the complete system.

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_video::Layout;

use super::system;
use crate::experiment::{
    Cell, Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table,
};
use crate::pictures::clip::{Figures, Passage};
use crate::pictures::coding::{quantile, sorted};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-table-1",
    title: "Sources of latency, stage by stage, by the whole system",
    source: "[LTE] Table I",
    isolation: Isolation::Processes,
    mutation: Mutation::Named("delay"),
    run,
};

/// Splits the latency of slices carried by the complete system, and adds the screen's.
fn run(run: &Run<'_>) -> Result<Outcome> {
    Ok(match system::driven(run)? {
        Ok(came) => Outcome::Measured(findings(run, &came)),
        Err(missing) => missing,
    })
}

/// A stage of the paper's table in ms, and the origin of our value.
struct Stage {
    name: &'static str,
    /// Minimum and maximum in the paper, equal if it gives one number.
    published: [f64; 2],
    source: Source,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// Derived from the cadence of a camera or screen with 60 pictures per second.
    Cadence,
    /// Measured by the clocks of processes.
    Processes,
    /// Measured by the clocks of processes, over emulated links whose usual delay is a setting.
    Links,
}

const STAGES: [Stage; 6] = [
    Stage { name: "camera capture", published: [17.0, 17.0], source: Source::Cadence },
    Stage { name: "compression", published: [17.0, 120.0], source: Source::Processes },
    Stage { name: "network", published: [10.0, 300.0], source: Source::Links },
    Stage { name: "decompression", published: [17.0, 32.0], source: Source::Processes },
    Stage { name: "frame buffer", published: [17.0, 17.0], source: Source::Cadence },
    Stage { name: "display", published: [10.0, 10.0], source: Source::Cadence },
];

fn findings(run: &Run<'_>, came: &Figures) -> Findings {
    let mut random = ChaCha8Rng::seed_from_u64(run.seed);
    let slices: Vec<[f64; STAGES.len()]> =
        came.passages.iter().map(|passage| stages(passage, &mut random)).collect();
    let times: Vec<Vec<f64>> =
        (0..STAGES.len()).map(|stage| sorted(slices.iter().map(|slice| slice[stage]))).collect();
    let whole = sorted(slices.iter().map(|slice| slice.iter().sum()));
    let slower = run.choose(2.0, 1.0);
    let mut rows: Vec<Row> =
        STAGES.iter().zip(&times).flat_map(|(stage, times)| stage.rows(times, slower)).collect();
    for (end, share) in [("p50", 0.5), ("p99", 0.99)] {
        let published = STAGES.iter().map(|stage| stage.published[usize::from(share > 0.9)]);
        rows.push(
            Row::new(
                format!("from an event to the screen's light, {end}"),
                "ms",
                quantile(&whole, share),
            )
            .published(published.sum())
            .at_most(slower)
            .because("the paper's own sum, twice that in a quick run")
            .note("Of each slice's own six stages, not the sum of their percentiles.")
            .clocked(),
        );
    }
    Findings {
        tables: vec![table(&times, &whole)],
        plots: vec![plot(&times)],
        rows,
        notes: [
            system::notes(),
            vec![
                "The paper's table holds whole pictures and gives a least and a most of three stages: p50 stands next to \
                 the least, 99 % next to the most. Here every stage is of a slice, a sixth of a picture."
                    .to_owned(),
                "Camera capture is from an event at any time until the rows that show it are read, compression from \
                 then until the slice is encoded, network from then until the console has it, frame buffer from the \
                 decoded rows to the next refresh of a screen of 60 a second, display the screen's way down to \
                 their middle. Camera and screen go by their pace, and are not measured; what a browser does is: \
                 `make latency`."
                    .to_owned(),
            ],
        ]
        .concat(),
    }
}

/// Returns the time of each stage in ms for a slice, with an event at a random time before the
/// readout, and a screen with a random refresh phase.
fn stages(passage: &Passage, random: &mut ChaCha8Rng) -> [f64; STAGES.len()] {
    let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
    let readout = PICTURE_MS / Layout::STRIP_COUNT as f64;
    let waits = [(); 2].map(|()| random.random_range(0.0..PICTURE_MS));
    [
        waits[0] + readout,
        (ms(passage.encoding) - readout).max(0.0),
        ms(passage.latency.saturating_sub(passage.encoding)),
        ms(passage.decoding),
        waits[1],
        (passage.strip as f64 + 0.5) * readout,
    ]
}

impl Stage {
    fn rows(&self, times: &[f64], slower: f64) -> [Row; 2] {
        let [least, most] = self.published;
        let row = |end: &str, share: f64, published: f64| {
            Row::new(format!("{}, {end}", self.name), "ms", quantile(times, share))
                .published(published)
                .clocked()
        };
        let judged = |row: Row, what: &str| {
            let why =
                format!("a bound, no spread: {what} of the paper's, twice that in a quick run");
            row.at_most(slower).because(why)
        };
        let paced = "by the pace of 60 pictures a second, whatever this code does";
        let (p50, p99) = (row("p50", 0.5, least), row("p99", 0.99, most));
        match self.source {
            Source::Cadence => [p50.by_construction(paced), p99.by_construction(paced)],
            Source::Processes => [judged(p50, "the least"), judged(p99, "the most")],
            Source::Links => [
                p50.note("Not judged: the emulated links' usual delay is a setting."),
                judged(p99, "the most"),
            ],
        }
    }
}

fn table(times: &[Vec<f64>], whole: &[f64]) -> Table {
    let columns = [
        "stage",
        "published_least_ms",
        "published_most_ms",
        "p5_ms",
        "p50_ms",
        "p95_ms",
        "p99_ms",
        "worst_ms",
    ];
    let mut table = Table::new("stages", columns);
    let sums = [0, 1].map(|end: usize| STAGES.iter().map(|stage| stage.published[end]).sum());
    let stages =
        STAGES.iter().zip(times).map(|(stage, times)| (stage.name, stage.published, &times[..]));
    for (name, published, times) in stages.chain([("event to light", sums, whole)]) {
        let [p5, p50, p95, p99, worst] =
            [0.05, 0.5, 0.95, 0.99, 1.0].map(|share| Cell::from(quantile(times, share)));
        let [least, most] = published.map(Cell::from);
        table.push([name.into(), least, most, p5, p50, p95, p99, worst]);
    }
    table
}

fn plot(times: &[Vec<f64>]) -> Plot {
    let points = |of: &dyn Fn(usize) -> f64| {
        (0..STAGES.len()).map(|stage| (stage as f64, of(stage))).collect::<Vec<_>>()
    };
    let x = Axis::categories("stage", STAGES.iter().map(|stage| stage.name));
    Plot::new("stages", "Time of each stage for a slice", x, Axis::linear("ms"))
        .with(
            Series::bars("published, the least", points(&|stage| STAGES[stage].published[0]))
                .published(),
        )
        .with(
            Series::bars("published, the most", points(&|stage| STAGES[stage].published[1]))
                .published(),
        )
        .with(Series::bars("measured, p50", points(&|stage| quantile(&times[stage], 0.5))))
        .with(Series::bars("measured, p99", points(&|stage| quantile(&times[stage], 0.99))))
}

/// Time between two pictures of the camera, and between two refreshes of the screen, ms.
const PICTURE_MS: f64 = 1e3 / 60.0;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn slice_stages_are_measured_times_plus_camera_and_screen() {
        let ms = Duration::from_millis;
        let passage = Passage {
            strip: 5,
            captured_at: ms(1_000),
            encoding: ms(9),
            latency: ms(40),
            decoding: ms(2),
        };
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let readout = PICTURE_MS / 6.0;
        for _ in 0..100 {
            let [camera, compression, network, decompression, frame_buffer, display] =
                stages(&passage, &mut random);
            assert!((readout..PICTURE_MS + readout).contains(&camera), "{camera}");
            assert!((compression - 9.0 + readout).abs() < 1e-9, "{compression}");
            assert_eq!((network, decompression), (31.0, 2.0));
            assert!((0.0..PICTURE_MS).contains(&frame_buffer), "{frame_buffer}");
            assert!((display - 5.5 * readout).abs() < 1e-9, "{display}");
        }
    }
}
