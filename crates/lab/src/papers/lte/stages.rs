//! Table I: what each stage from the camera to the picture takes, on this code.

use anyhow::Result;
use tautline_units::Bitrate;
use tautline_video::Layout;

use super::rig::{self, Behind, Rig};
use super::slices::{Stream, model_note, modem};
use crate::experiment::{Cell, Experiment, Findings, Outcome, Row, Run, Table};
use crate::pictures::coding::{quantile, sorted};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-table-1",
    title: "Sources of latency, stage by stage",
    source: "[LTE] Table I",
    run,
};

/// Runs camera and encoders in real time, decodes what they give, and sends as much over links that
/// are modelled.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let footage = rig::footage(run)?;
    run.progress(0, 2, "camera and encoders");
    let bitrate = run.choose(Bitrate::from_kbps(1_000), Bitrate::from_mbps(8));
    let rig = Rig {
        backend: rig::BACKEND,
        workers: 2,
        strips: Layout::STRIP_COUNT,
        bitrate,
        pictures: run.choose(30, 600),
        behind: Behind::Nothing,
    };
    let passages = rig.watch(&footage)?.passages;
    let decoding = rig::decode(&passages)?;
    let skipped = passages.len() - rig::settled(&passages).len();
    let passages = rig::settled(&passages);
    run.progress(1, 2, "links");
    let ms = |duration: std::time::Duration| duration.as_secs_f64() * 1e3;
    let stages = [
        Stage::new(
            "camera",
            17.0,
            sorted(passages.iter().map(|p| ms(p.read_at.since(p.captured_at)))),
        ),
        Stage::new(
            "compression",
            17.0,
            sorted(passages.iter().map(|p| ms(p.encoded_at.since(p.read_at)))),
        ),
        Stage::new("network", 10.0, sorted(network_delays(run)?.into_iter())),
        Stage::new("decompression", 17.0, sorted(decoding[skipped..].iter().map(|time| ms(*time)))),
    ];
    let slower = run.choose(10.0, 1.0);
    let mut rows: Vec<Row> = stages.iter().flat_map(|stage| stage.rows(slower)).collect();
    let sum = |share: f64| stages.iter().map(|stage| quantile(&stage.times, share)).sum::<f64>();
    rows.push(
        Row::new("camera to decompressed, sum of p50", "ms", sum(0.5))
            .published(61.0)
            .at_most(slower)
            .because(rig::SLOWER)
            .clocked(),
    );
    rows.push(Row::new("camera to decompressed, sum of p99", "ms", sum(0.99)).published(469.0));
    Ok(Outcome::Measured(Findings {
        tables: vec![table(&stages)],
        plots: vec![plot(&stages)],
        rows,
        notes: vec![
            "The paper's table holds whole pictures (a picture's time at 60/s in each of camera, codec \
             and frame buffer) and gives ranges: published is the least. Here every stage is of a \
             slice, a sixth of a picture, from the first of its rows on. What compression takes \
             counts its wait for an encoder."
                .to_owned(),
            "Frame buffer (17 ms) and display (10 ms) are no stages here: a strip is drawn as it \
             comes. What the browser and its screen add is measured in the browser: \
             `make latency`."
                .to_owned(),
            format!("Network: slices of 8 packets for 4 over four modems. {}", model_note()),
        ],
    }))
}

/// One stage and its times in ms, ascending.
struct Stage {
    name: &'static str,
    /// The least of the paper's range.
    published: f64,
    times: Vec<f64>,
}

impl Stage {
    fn new(name: &'static str, published: f64, times: Vec<f64>) -> Self {
        Self { name, published, times }
    }

    fn rows(&self, slower: f64) -> [Row; 2] {
        // A model's mean delay is the model's: shown, not judged.
        let p50 = Row::new(format!("{}, p50", self.name), "ms", quantile(&self.times, 0.5))
            .published(self.published);
        let p50 = match self.name {
            "network" => p50,
            "camera" => p50.by_construction("the simulated sensor reads at this pace").clocked(),
            _ => p50.at_most(slower).because(rig::SLOWER).clocked(),
        };
        [p50, Row::new(format!("{}, p99", self.name), "ms", quantile(&self.times, 0.99))]
    }
}

/// Returns slices' latencies in ms over four modems that each carry a quarter of the coded stream.
fn network_delays(run: &Run<'_>) -> Result<Vec<f64>> {
    let links = vec![modem(LINK_BYTES, true); 4];
    Ok(Stream::of_paper(links, 8, run.choose(5, 30)).send(run.seed)?.latencies)
}

fn table(stages: &[Stage]) -> Table {
    let mut table =
        Table::new("stages", ["stage", "p5_ms", "p50_ms", "p95_ms", "p99_ms", "worst_ms"]);
    for stage in stages {
        let [p5, p50, p95, p99, worst] =
            [0.05, 0.5, 0.95, 0.99, 1.0].map(|share| Cell::from(quantile(&stage.times, share)));
        table.push([stage.name.into(), p5, p50, p95, p99, worst]);
    }
    table
}

fn plot(stages: &[Stage]) -> Plot {
    let points = |of: &dyn Fn(&Stage) -> f64| {
        stages
            .iter()
            .enumerate()
            .map(|(place, stage)| (place as f64, of(stage)))
            .collect::<Vec<_>>()
    };
    let x = Axis::categories("stage", stages.iter().map(|stage| stage.name));
    Plot::new("stages", "What each stage takes of a slice", x, Axis::linear("ms"))
        .with(Series::bars("published, the least", points(&|stage| stage.published)).published())
        .with(Series::bars("measured, p50", points(&|stage| quantile(&stage.times, 0.5))))
        .with(Series::bars("measured, p99", points(&|stage| quantile(&stage.times, 0.99))))
}

/// What one of four modems can carry, bytes a second: 2 MB/s of packets are 70 % of all four.
const LINK_BYTES: f64 = 0.7e6;
