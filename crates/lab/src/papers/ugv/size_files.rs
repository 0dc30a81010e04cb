//! Tables 1 and 2 with processes: the bins of packet sizes, from the latency files.

use std::time::Duration;

use anyhow::{Context, Result};
use tautline_net::latency::{Leg, Summary};

use super::bins::fitted;
use super::published::{Column, TABLE_1, TABLE_2, mean_of_columns};
use super::stand::{Drive, Files, Program, RATE, SENT, TRANSPORT, Way};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::pictures::coding::mean;
use crate::plot::{Axis, Plot, Series};
use crate::sweeps::packet_size::{CHOSEN_BY, LIMITS};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "ugv-files-sizes",
    title: "Delay bins over packet sizes, from the files of switchboard and operator",
    source: "[UGV] Table 1",
    isolation: Isolation::Processes,
    mutation: Mutation::Named("packet-sizes"),
    run,
};

/// Performs a drive with each of the tables' pairs of packet sizes over the links fitted to Table
/// 1, and reads the latency files that the switchboard wrote.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let program = match Program::ready(run.seed)? {
        Ok(program) => program,
        Err(missing) => return Ok(missing),
    };
    let length = Duration::from_secs(run.choose(12, 20));
    let links = fitted(run);
    let cells = cells(run);
    let drive = |number: usize, cell: &Cell| Drive {
        vehicle_link: links.vehicle_link.clone(),
        operator_link: links.operator_link.clone(),
        vehicle: settings(cell.up),
        operator: settings(cell.column.size),
        ping_ms: PING_MS,
        // A different seed for each, so that the drives of a table together have many outages.
        seed: run.seed.wrapping_mul(1000) + number as u64,
        number: NUMBER + number,
    };
    let jobs: Vec<Drive> =
        cells.iter().enumerate().map(|(number, cell)| drive(number, cell)).collect();
    let made = match program.drives(run, &jobs, length, AT_A_TIME)? {
        Ok(made) => made,
        Err(too_busy) => return Ok(too_busy),
    };
    Ok(Outcome::Measured(findings(run, length, &cells, &made)?))
}

/// A column of one of the paper's tables, with the drive's packet size from the vehicle.
struct Cell {
    /// Bytes from the vehicle.
    up: u64,
    column: &'static Column,
}

fn cells(run: &Run<'_>) -> Vec<Cell> {
    let of =
        |up: u64, columns: &'static [Column]| columns.iter().map(move |column| Cell { up, column });
    let all = of(400, &TABLE_1).chain(of(500, &TABLE_2));
    let is_wanted =
        |cell: &Cell| !run.quick || (cell.up == 400 && QUICK.contains(&cell.column.size));
    all.filter(is_wanted).collect()
}

fn settings(datagram_bytes_max: u64) -> String {
    format!("{TRANSPORT}datagram_bytes_max = {datagram_bytes_max}\n{RATE}")
}

fn findings(run: &Run<'_>, length: Duration, cells: &[Cell], made: &[Files]) -> Result<Findings> {
    let drives = || cells.iter().zip(made);
    let mut rows = fitted_rows(run, cells, made)?;
    for (cell, files) in drives() {
        let name =
            format!("{} B up, {} B down: end to end below 250 ms", cell.up, cell.column.size);
        let share = percent_below(files, LEGS[2], CHOSEN_BY)?;
        let row = Row::new(name, "%", share).published(cell.column.percent[2][CHOSEN_BY]);
        rows.push(row.note(format!("The paper: {} messages.", cell.column.messages[2])));
    }
    let video: Vec<f64> = made.iter().map(Files::video_kbps).collect();
    rows.push(Row::new("H.264 shown, mean of the drives", "kbit/s", mean(&video)));
    rows.extend(all(made).machine_rows());
    let series = [400, 500].into_iter().filter_map(|up| {
        let of_size = drives().filter(|(cell, _)| cell.up == up);
        let point = |(cell, files): (&Cell, &Files)| {
            Some((cell.column.size as f64, percent_below(files, LEGS[2], CHOSEN_BY).ok()?))
        };
        let points: Vec<_> = of_size.filter_map(point).collect();
        (!points.is_empty()).then(|| Series::marked(format!("{up} B from the vehicle"), points))
    });
    let y = Axis::linear("end to end below 250 ms, %").range(0.0, 100.0);
    Ok(Findings {
        rows,
        tables: vec![table(cells, made)?],
        plots: vec![
            Plot::new("sizes", "Pings in time, by processes", Axis::linear("bytes to the vehicle"), y)
                .with_all(series),
        ],
        notes: vec![
            format!(
                "Switchboard, relay, vehicle and operator as processes, each end behind its link of `ugv-table-1`, emulated \
                 in real time between network namespaces; {} drives of {} s, {AT_A_TIME} at a time. Vehicle only and \
                 operator only: the way out of the switchboard's pings, every {PING_MS} ms; end to end: that of the \
                 session's pings from the operator, through the relay. A size is `datagram_bytes_max` of the end that \
                 sends; control connections keep the kernel's. {SENT}",
                cells.len(),
                length.as_secs()
            ),
            "Pings are smaller than any size: here a size decides how the video before them is cut, and in \
             `ugv-table-1` how messages of 1000 bytes are."
                .to_owned(),
            "A session pings a silent link more seldom, so outages count for less end to end than with messages."
                .to_owned(),
        ],
    })
}

/// Returns rows that judge the drives of Table 1 together.
fn fitted_rows(run: &Run<'_>, cells: &[Cell], made: &[Files]) -> Result<Vec<Row>> {
    let fitted = cells.iter().zip(made).filter(|(cell, _)| cell.up == 400);
    let files = all(fitted.map(|(_, files)| files));
    let published = mean_of_columns(&TABLE_1);
    let mut rows = Vec::new();
    for (way, leg) in LEGS.into_iter().enumerate() {
        for (limit, below) in LIMITS.iter().enumerate() {
            let name = format!("mean of Table 1, {}, below {} ms", leg.0, below.as_millis());
            let row = Row::new(name, "%", percent_below(&files, leg, limit)?);
            let row = row.published(published[way][limit]).clocked();
            rows.push(match (way, limit) {
                (2, 0) => row.within_absolute(run.choose(16.0, 10.0)).because(NEAR),
                (2, _) => row.within_absolute(run.choose(16.0, 8.0)).because(FORETOLD),
                (_, 0) => row.within_absolute(run.choose(16.0, 8.0)).because(FITTED),
                _ => row.within_absolute(run.choose(12.0, 5.0)).because(FITTED),
            });
        }
    }
    Ok(rows)
}

/// Returns the contents of the files of several drives, joined.
fn all<'a>(made: impl IntoIterator<Item = &'a Files>) -> Files {
    let mut all = Files::default();
    made.into_iter().cloned().for_each(|files| all.append(files));
    all
}

/// Returns the percentage of a leg's delays below the limit at index `limit` of [`LIMITS`]. Fails
/// if the files have no delay of the leg.
fn percent_below(files: &Files, (name, leg, way): LegOf, limit: usize) -> Result<f64> {
    let summary = Summary::of(&mut files.delays(leg, way));
    Ok(100.0 * summary.with_context(|| format!("no pings: {name}"))?.within[limit])
}

fn table(cells: &[Cell], made: &[Files]) -> Result<Table> {
    let columns = [
        "up_bytes",
        "down_bytes",
        "way",
        "below_125_ms",
        "below_250_ms",
        "below_375_ms",
        "below_500_ms",
        "pings",
    ];
    let mut table = Table::new("bins", columns);
    for (cell, files) in cells.iter().zip(made) {
        for (name, leg, way) in LEGS {
            let mut delays = files.delays(leg, way);
            let summary = Summary::of(&mut delays).with_context(|| format!("no pings: {name}"))?;
            let [a, b, c, d] = summary.within.map(crate::experiment::Cell::from);
            let (up, down) = (cell.up.into(), cell.column.size.into());
            table.push([up, down, name.into(), a, b, c, d, summary.count.into()]);
        }
    }
    Ok(table)
}

type LegOf = (&'static str, Leg, Way);

/// The paper's three kinds of messages, and the corresponding part of the files.
const LEGS: [LegOf; 3] = [
    ("vehicle only", Leg::SwitchboardVehicle, Way::Out),
    ("operator only", Leg::SwitchboardOperator, Way::Out),
    ("end to end", Leg::OperatorVehicle, Way::Out),
];
const FITTED: &str =
    "the links are fitted in `ugv-table-1`; set by hand: outages are few in a drive";
const FORETOLD: &str = "foretold; set by hand: outages are few in a drive, and the paper's columns differ by 9.4 points with \
                        no trend in the size";
const NEAR: &str = "foretold; set by hand: every ms moves it by 1.4 points, and a machine that is not too busy may add six";
/// Number of the first drive; other experiments use lower ones.
const NUMBER: usize = 100;
/// Sizes to the vehicle in a quick run.
const QUICK: [u64; 3] = [150, 400, 600];
/// Number of parallel drives: their processes are mostly idle.
const AT_A_TIME: usize = 11;
const PING_MS: u64 = 100;
