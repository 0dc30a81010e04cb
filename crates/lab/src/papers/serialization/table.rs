//! Table 1 and Fig. 2: today's codecs compared to the paper's.

use anyhow::{Context, Result};

use super::codecs::{Codecs, METRICS, Published, note, published};
use crate::experiment::{Experiment, Findings, Isolation, Outcome, Row, Run, Table};
use crate::notation::number;
use crate::plot::{Axis, Plot, Series};

pub(crate) const TABLE_1: Experiment = Experiment {
    key: "timing-table-1",
    title: "Serialization of 10,000 lidar points",
    source: "[TIMING] Table 1",
    isolation: Isolation::Shared,
    mutation: super::codecs::SPARED,
    run,
};

/// Shows the committed time of every codec in every metric of Table 1, next to the paper's.
fn run(_: &Run<'_>) -> Result<Outcome> {
    let codecs = Codecs::read()?;
    let memcpy = codecs.micros("table", "memcpy", "hot", "copy").context("no memcpy")?;
    let mut table = Table::new(
        "table-1",
        ["codec", "metric", "published_us", "measured_us", "cold_us", "times_memcpy", "harmed"],
    );
    let (mut rows, paper) = (Vec::new(), published()?);
    for name in codecs.names("table") {
        let published = paper.iter().find(|line| line.here == name);
        for (at, metric) in METRICS.iter().enumerate() {
            let Some(measured) = codecs.micros("table", name, "hot", metric) else { continue };
            let theirs = published.map(|line| line.micros[at]);
            let cold = codecs.micros("table", name, "cold", metric);
            let (memcpys, harmed) = (measured / memcpy, codecs.harmed(name));
            table.push([
                name.into(),
                (*metric).into(),
                theirs.into(),
                measured.into(),
                cold.into(),
                memcpys.into(),
                harmed.into(),
            ]);
            // The paper rounds to tenths, and shows less than 0.05 as zero.
            if let Some(theirs) = theirs.filter(|theirs| *theirs >= 0.05) {
                rows.push(
                    Row::new(format!("{metric}, {name}"), "µs", measured)
                        .published(theirs)
                        .note(format!("{} times memcpy", number(memcpys))),
                );
            }
        }
    }
    rows.extend(ours(&codecs, memcpy)?);
    let notes = vec![
        note(),
        "Cyclone DDS stands for the paper's commercial DDS. Fig. 1's page says why each codec stands \
         elsewhere today."
            .to_owned(),
        "The same formats with points in one run of bytes (FlatBuffers in bulk, PointCloud2 in CDR, \
         foxglove.PointCloud) come near memcpy, which no shape of the paper's did: the schema \
         decides, not the format."
            .to_owned(),
    ];
    let (tables, plots) = (vec![table, phases(&codecs)], vec![metrics(&codecs)?]);
    Ok(Outcome::committed(codecs.measurement, Findings { tables, plots, rows, notes }))
}

/// Returns a table with the times of the conversion steps of codecs that have structures of their
/// own.
fn phases(codecs: &Codecs) -> Table {
    let mut table = Table::new("phases", ["codec", "fill_us", "write_us", "parse_us", "normal_us"]);
    for name in codecs.names("phases") {
        let [fill, write, parse, normal] = ["fill", "write", "parse", "normal"]
            .map(|phase| codecs.micros("phases", name, "hot", phase).into());
        table.push([name.into(), fill, write, parse, normal]);
    }
    table
}

/// Plots Table 1: all codecs of the paper in every metric, in the table's order.
fn metrics(codecs: &Codecs) -> Result<Plot> {
    let paper = published()?;
    let names: Vec<&str> = paper.iter().map(|line| line.paper).collect();
    let x = Axis::linear(&names.join(", ")).range(0.0, names.len() as f64 + 1.0);
    let mut plot = Plot::new("table-1", "10,000 points, today", x, Axis::log("µs"));
    for metric in METRICS {
        let micros = |line: &Published| codecs.micros("table", line.here, "hot", metric);
        let curve = (1..).zip(&paper).filter_map(|(at, line)| Some((f64::from(at), micros(line)?)));
        plot = plot.with(Series::marked(metric, curve.collect()));
    }
    Ok(plot)
}

/// Returns rows with the times of Tautline's message: relative to memcpy with a target, and next to
/// the best of the other safe codecs that evolve.
fn ours(codecs: &Codecs, memcpy: f64) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (metric, target) in [("encode", 2.4), ("decode", 1.1)] {
        let micros = codecs.micros("table", OURS, "hot", metric).context("Tautline is missing")?;
        let quantity = format!("{metric}, Tautline, times memcpy");
        let records = codecs.micros("table", "records", "hot", metric).context("no records")?;
        rows.push(
            Row::new(quantity, "", micros / memcpy)
                .asked(target)
                .note(format!("fixed records take {}", number(records / memcpy))),
        );
    }
    for metric in METRICS {
        let time = |name: &str| codecs.micros("table", name, "hot", metric);
        let rivals = EVOLVING.into_iter().filter(|name| codecs.harmed(name) == Some(0.0));
        let best = rivals.filter_map(time).fold(f64::INFINITY, f64::min);
        let ours = time(OURS).context("Tautline is missing")?;
        rows.push(
            Row::new(format!("{metric}, Tautline, first of the safe that evolve"), "µs", ours)
                .reference(best)
                .note("against the best of the others that no mutated message harms"),
        );
    }
    Ok(rows)
}

pub(crate) const FIG_2: Experiment = Experiment {
    key: "timing-fig-2",
    title: "Serialization over the number of points",
    source: "[TIMING] Fig. 2",
    isolation: Isolation::Shared,
    mutation: super::codecs::SPARED,
    run: sizes,
};

/// Shows Fig. 2: encode and sum over the number of points.
fn sizes(_: &Run<'_>) -> Result<Outcome> {
    let codecs = Codecs::read()?;
    let mut table = Table::new("fig-2", ["codec", "points", "encode_us", "sum_us"]);
    let mut plot = Plot::new(
        "fig-2",
        "Round trip to the sum of all numbers",
        Axis::log("points"),
        Axis::log("µs"),
    );
    let mut rows = Vec::new();
    for name in codecs.names("sizes").into_iter().filter(|name| *name != NOTHING) {
        let mut curve = Vec::new();
        for points in SIZES {
            let case = points.to_string();
            let [encode, sum] =
                ["encode", "sum"].map(|metric| codecs.micros("sizes", name, &case, metric));
            let (Some(encode), Some(sum)) = (encode, sum) else { continue };
            table.push([name.into(), points.into(), encode.into(), sum.into()]);
            if points > 0 {
                curve.push((points as f64, encode + sum));
            }
        }
        if let (Some(one), Some(most)) = (curve.first(), curve.last()) {
            rows.push(
                Row::new(format!("from 1 to 100,000 points, {name}"), "times", most.1 / one.1)
                    .reference(1e5)
                    .note("what grows faster than the points does not stream"),
            );
        }
        if DRAWN.contains(&name) {
            plot = plot.with(Series::marked(name, curve));
        }
    }
    let notes = vec![
        note(),
        "The paper prints no numbers of Fig. 2. Its remark holds that FlatBuffers costs most where \
         points are few: the cost of a message without its points is the curve's left end."
            .to_owned(),
    ];
    Ok(Outcome::committed(
        codecs.measurement,
        Findings { tables: vec![table], plots: vec![plot], rows, notes },
    ))
}

const OURS: &str = "Tautline";
/// Name of the harness without a codec.
const NOTHING: &str = "no operation";
/// Codecs whose messages can evolve. Those that mutated messages harm are excluded from the
/// comparison by the figures.
const EVOLVING: [&str; 11] = [
    "capnp",
    "capnp packed",
    "FlatBuffers, structs",
    "FlatBuffers, tables",
    "FlatBuffers, bulk",
    "prost",
    "quick-protobuf",
    "foxglove Protobuf",
    "SBE",
    "protobuf (C++)",
    "protobuf (Java)",
];
const SIZES: [usize; 7] = [0, 1, 10, 100, 1000, 10_000, 100_000];
/// Codecs that are plotted: more lines would be indistinguishable.
const DRAWN: [&str; 8] = [
    "Tautline",
    "FlatBuffers, structs",
    "capnp",
    "prost",
    "bincode 1.3.3",
    "LCM (C)",
    "Cyclone DDS (C)",
    "Fast-CDR (C++)",
];
