//! The paper's first argument: every millisecond of reaction time is an inch of road.

use anyhow::{Context, Result};

use super::codecs::{Codecs, note, published};
use crate::experiment::{Experiment, Findings, Isolation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "timing-reaction",
    title: "Cost of serialization in inches at 60 miles per hour",
    source: "[TIMING] Significance arguments",
    isolation: Isolation::Shared,
    mutation: super::codecs::SPARED,
    run,
};

/// Computes the distance driven while a scan of 10,000 points passes from sensor to planner and on:
/// two round trips.
fn run(_: &Run<'_>) -> Result<Outcome> {
    let codecs = Codecs::read()?;
    let mut table = Table::new("reaction", ["codec", "published_mm", "measured_mm"]);
    let (mut here, paper) = (Vec::new(), published()?);
    for name in codecs.names("table") {
        let trip = |metric| codecs.micros("table", name, "hot", metric);
        let (Some(encode), Some(decode)) = (trip("encode"), trip("decode")) else { continue };
        if name == "no operation" {
            continue;
        }
        let published = paper.iter().find(|line| line.here == name);
        let published = published.map(|line| millimetres(line.micros[0] + line.micros[1]));
        table.push([name.into(), published.into(), millimetres(encode + decode).into()]);
        here.push((name, millimetres(encode + decode)));
    }
    here.sort_by(|one, other| one.1.total_cmp(&other.1));
    let curve = here.iter().zip(1..).map(|((_, road), at)| (f64::from(at), *road)).collect();
    let names: Vec<&str> = here.iter().map(|(name, _)| *name).collect();
    let of = |wanted: &str| here.iter().find(|(name, _)| *name == wanted).map(|(_, road)| *road);
    let (ours, json) =
        (of("Tautline").context("no Tautline")?, of("serde_json").context("no JSON")?);
    let rows = vec![
        Row::new("road in a millisecond", "inch", METRES_PER_SECOND * 1e-3 / INCH)
            .published(1.0)
            .note("the paper: at least an inch"),
        Row::new("road in two round trips, Tautline", "mm", ours),
        Row::new("road in two round trips, serde_json", "mm", json)
            .published(millimetres(3495.1 + 11452.8)),
        Row::new("serde_json against Tautline", "times", json / ours),
    ];
    let x = Axis::linear("codecs, fastest first").range(0.0, here.len() as f64 + 1.0);
    let plot = Plot::new("reaction", "Road in two round trips, 60 mile/h", x, Axis::log("mm"))
        .with(Series::marked("here", curve));
    let notes = vec![
        note(),
        format!("From the fastest on: {}.", names.join(", ")),
        "Sense, plan and act are three components: a scan is encoded and decoded twice on its way. \
         Since 2018 the processors have made millimetres of most of the paper's inches; JSON is what \
         still costs some."
            .to_owned(),
    ];
    Ok(Outcome::committed(
        codecs.measurement,
        Findings { tables: vec![table], plots: vec![plot], rows, notes },
    ))
}

/// Returns the distance driven during two round trips of the given microseconds.
fn millimetres(round_trip_micros: f64) -> f64 {
    2.0 * round_trip_micros * 1e-6 * METRES_PER_SECOND * 1e3
}

/// 60 miles per hour, in m/s.
const METRES_PER_SECOND: f64 = 26.8224;
const INCH: f64 = 0.0254;
