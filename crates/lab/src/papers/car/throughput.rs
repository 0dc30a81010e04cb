//! Fig. 3 and Table 2: throughput of a constant bitrate by each transport.

use anyhow::Result;

use super::transports::{
    Line, SEEDS_LEAST, Transports, drawn_interval, lacking, names, ordered, said, sure,
};
use crate::experiment::{Experiment, Findings, Isolation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};

pub(crate) const FIG_3: Experiment = Experiment {
    key: "car-fig-3",
    title: "Throughput of a constant bit rate under losses on a wire",
    source: "[CAR] Fig. 3",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run,
};

/// Shows the throughput at each rate under the paper's loss of 1.5 %, and that at 1200 kB/s over
/// the loss; judges it by the paper's statements.
fn run(_: &Run<'_>) -> Result<Outcome> {
    let transports = Transports::read()?;
    let lines = transports.lines(|line| line.loss_percent == PLOTTED_LOSS);
    if lines.is_empty() {
        return Ok(lacking("losses of 1.5 %"));
    }
    let (mut plots, mut rows) = (Vec::new(), Vec::new());
    for rtt in transports.rtts() {
        plots.push(plot(&transports, rtt));
        let title = format!("Received of 1200 kB/s by loss, round trip of {rtt} ms");
        let [x, y] = [Axis::linear("lost, %").range(0.0, 5.5), Axis::linear("received, kB/s")];
        let of = |line: &Line| (line.throughput_kbyte_per_s, line.throughput_ci);
        let curves = transports.over_loss(&DRAWN, rtt, of);
        if !curves.is_empty() {
            let by_loss = Plot::new(&format!("fig-3-loss-{rtt}"), &title, x, y);
            plots.push(by_loss.with_all(curves));
        }
        rows.extend(RATES.iter().flat_map(|rate| judged(&transports, *rate, rtt)));
    }
    rows.extend(lines.into_iter().map(row));
    let mut notes = transports.notes();
    notes.push(
        "Of Fig. 3 the paper says that Westwood covers the ideal curve, and that Reno with large \
         windows is as good, with little distance to UDP."
            .to_owned(),
    );
    let tables = vec![table(&transports)];
    Ok(Outcome::committed(transports.measurement, Findings { tables, plots, rows, notes }))
}

fn plot(transports: &Transports, rtt: u64) -> Plot {
    let title = format!("Received of what is offered, 1.5 % lost, round trip of {rtt} ms");
    let name = format!("fig-3-{rtt}");
    let [x, y] = ["offered, kB/s", "received, kB/s"].map(Axis::linear);
    let mut plot = Plot::new(&name, &title, x, y);
    plot = plot.with(Series::line("ideal", vec![(450.0, 450.0), (2000.0, 2000.0)]).dashed());
    for name in names().filter(|name| DRAWN.contains(&name.here)) {
        let lines = transports.lines(|line| {
            (line.transport.as_str(), line.rtt_ms) == (name.here, rtt)
                && line.loss_percent == PLOTTED_LOSS
        });
        let point = |line: &&Line| (line.rate_kbyte_per_s as f64, line.throughput_kbyte_per_s);
        let curve: Vec<(f64, f64)> = lines.iter().map(point).collect();
        if !curve.is_empty() {
            let reaches =
                lines.iter().map(|line| drawn_interval(line.throughput_ci, line.seeds)).collect();
            plot = plot.with(Series::marked(name.said, curve).with_intervals(reaches));
        }
    }
    plot
}

/// Returns rows that compare the figures at one rate and round-trip time with the paper's
/// statements about Fig. 3. Transports that were not measured have no row.
fn judged(transports: &Transports, rate: u64, rtt: u64) -> Vec<Row> {
    let line = |name| transports.line(name, rate, PLOTTED_LOSS, rtt);
    let place = format!("{rate} kB/s, {rtt} ms round trip");
    let mut rows = Vec::new();
    if let Some(line) = line("westwood") {
        let share = |value: f64| value / rate as f64 * 100.0;
        let row = Row::new(
            format!("Westwood of what is offered, {place}"),
            "%",
            share(line.throughput_kbyte_per_s),
        );
        let row = row.published(100.0).note(sure(share(line.throughput_ci), line.seeds));
        rows.push(match line.seeds >= SEEDS_LEAST {
            true => row.within(0.02).because(
                "the paper's curve is covered by its ideal one, in whose width 2 % are; set by hand",
            ),
            false => row,
        });
    }
    for (name, other, sign, paper) in [
        (
            "reno-large",
            "reno",
            1.0,
            "the paper's large windows are close to UDP, its small ones are not",
        ),
        ("westwood", "reno", 1.0, "of the paper's TCP Westwood is the best"),
        ("sctp", "westwood", -1.0, "[4] of the paper: SCTP is worse than TCP"),
        ("dccp", "westwood", -1.0, "the paper's DCCP is worse than its TCP and its UDP"),
    ] {
        let (Some(one), Some(two)) = (line(name), line(other)) else { continue };
        let difference = one.throughput_kbyte_per_s - two.throughput_kbyte_per_s;
        let what = format!("{} less {}, {place}", said(name), said(other));
        let (interval, seeds) = (one.throughput_ci + two.throughput_ci, one.seeds.min(two.seeds));
        rows.push(ordered(Row::new(what, "kB/s", difference), interval, seeds, sign, paper));
    }
    rows
}

fn row(line: &Line) -> Row {
    let Line { transport, rate_kbyte_per_s, rtt_ms, throughput_ci, seeds, .. } = line;
    let what =
        format!("{}, {rate_kbyte_per_s} kB/s offered, {rtt_ms} ms round trip", said(transport));
    let note = sure(*throughput_ci, *seeds);
    Row::new(what, "kB/s", line.throughput_kbyte_per_s).note(note)
}

fn table(transports: &Transports) -> Table {
    let columns = [
        "transport",
        "offered_kbyte_per_s",
        "loss_percent",
        "rtt_ms",
        "seeds",
        "received_kbyte_per_s",
        "plus_minus",
        "received_share",
        "network_bytes_per_byte",
    ];
    let mut table = Table::new("fig-3", columns);
    for line in transports.lines(|_| true) {
        table.push([
            said(&line.transport).into(),
            line.rate_kbyte_per_s.into(),
            line.loss_percent.into(),
            line.rtt_ms.into(),
            line.seeds.into(),
            line.throughput_kbyte_per_s.into(),
            line.throughput_ci.into(),
            line.received_share.into(),
            line.network_bytes_per_byte.into(),
        ]);
    }
    table
}

pub(crate) const TABLE_2: Experiment = Experiment {
    key: "car-table-2",
    title: "Times between packets of 1328 bytes",
    source: "[CAR] Table 2",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run: intervals,
};

/// Shows the mean time between UDP's packets, lost ones counted, at each of the paper's rates, for
/// a round trip of 20 ms and the lowest loss measured.
fn intervals(_: &Run<'_>) -> Result<Outcome> {
    let transports = Transports::read()?;
    let (mut table, mut rows) =
        (Table::new("table-2", ["offered_kbyte_per_s", "published_us", "measured_us"]), Vec::new());
    let mut curve = Vec::new();
    for (rate, published) in PUBLISHED_MICROS {
        let is = |line: &Line| {
            (line.transport.as_str(), line.rate_kbyte_per_s) == ("udp", rate) && line.rtt_ms == 20
        };
        // The lowest loss: few packets are missing between two received ones.
        let Some(line) = transports.lines(is).into_iter().next() else { continue };
        let measured = 1328e3 / line.throughput_kbyte_per_s * line.received_share;
        table.push([rate.into(), published.into(), measured.into()]);
        curve.push((rate as f64, measured));
        rows.push(
            Row::new(format!("between two packets, {rate} kB/s"), "µs", measured)
                .published(published)
                .by_construction("the sender's times are 1328 bytes by the rate; UDP keeps them")
                .note("of UDP's packets that came, lost ones counted"),
        );
    }
    if rows.is_empty() {
        return Ok(lacking("packets over UDP"));
    }
    let [x, y] = [Axis::linear("offered, kB/s"), Axis::linear("µs")];
    let plot = Plot::new("table-2", "Times between packets", x, y)
        .with(Series::marked("here", curve))
        .with(Series::points("published", PUBLISHED_MICROS.map(point).into()).published());
    let (tables, plots, notes) = (vec![table], vec![plot], transports.notes());
    Ok(Outcome::committed(transports.measurement, Findings { tables, plots, rows, notes }))
}

fn point((rate, micros): (u64, f64)) -> (f64, f64) {
    (rate as f64, micros)
}

const PLOTTED_LOSS: f64 = 1.5;
const RATES: [u64; 4] = [450, 700, 1200, 2000];
/// Transports that are plotted: more lines would be indistinguishable, and those of the Lite
/// protocols coincide with the others.
const DRAWN: [&str; 8] =
    ["udp", "reno", "reno-large", "westwood", "dccp", "sctp", "tautline", "tautline-two"];
const PUBLISHED_MICROS: [(u64, f64); 4] =
    [(450, 2951.0), (700, 1897.0), (1200, 1106.0), (2000, 664.0)];
