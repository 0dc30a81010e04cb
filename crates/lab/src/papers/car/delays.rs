//! Jitter, which the paper bounds in its text, and one-way delays, which it does not give.

use anyhow::Result;

use super::transports::{
    Line, RATE_OF_ALL, SEEDS_LEAST, Transports, lacking, names, of_seeds, ordered, said, sure,
};
use super::wireless;
use crate::experiment::{Experiment, Findings, Isolation, Outcome, Row, Run, Table};
use crate::notation::number;
use crate::plot::{Axis, Plot};

pub(crate) const JITTER: Experiment = Experiment {
    key: "car-jitter",
    title: "Mean jitter of the times between packets",
    source: "[CAR] 4",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run: jitter,
};

/// Shows the jitter of all transports at 1200 kB/s, and judges those of the paper by its bound.
/// Skipped if no transport was measured at that rate.
fn jitter(_: &Run<'_>) -> Result<Outcome> {
    let transports = Transports::read()?;
    let lines = transports.lines(|line| line.rate_kbyte_per_s == RATE_OF_ALL);
    if lines.is_empty() {
        return Ok(lacking("rate of 1200 kB/s"));
    }
    let columns = ["transport", "loss_percent", "rtt_ms", "jitter_ms", "plus_minus"];
    let mut table = Table::new("jitter", columns);
    let mut rows = Vec::new();
    for line in lines {
        let Line { loss_percent, rtt_ms, seeds, jitter_ms, jitter_ci, .. } = line;
        let name = said(&line.transport);
        table.push([
            name.into(),
            (*loss_percent).into(),
            (*rtt_ms).into(),
            (*jitter_ms).into(),
            (*jitter_ci).into(),
        ]);
        let is_papers = names().any(|it| it.here == line.transport && it.is_papers);
        let row = Row::new(format!("{name}, {loss_percent} % lost, {rtt_ms} ms"), "ms", *jitter_ms);
        let row = row.note(sure(*jitter_ci, *seeds));
        rows.push(match is_papers {
            true => bounded(row, *seeds),
            false => row,
        });
    }
    rows.extend(transports.rtts().into_iter().flat_map(|rtt| reliable(&transports, rtt)));
    rows.extend(wireless::jitters()?.into_iter().map(|(what, jitter_ms, seeds)| {
        bounded(Row::new(what, "ms", jitter_ms).note(of_seeds(seeds)), seeds)
    }));
    let of = |line: &Line| (line.jitter_ms, line.jitter_ci);
    let plots = by_loss(&transports, "jitter", "Mean jitter at 1200 kB/s", of);
    let mut notes = transports.notes();
    notes.push(
        "The paper: lower than 4 ms on average, more for reliable protocols. Jitter is how much a \
         time between two packets that came differs from that between their due times, on average."
            .to_owned(),
    );
    let tables = vec![table];
    Ok(Outcome::committed(transports.measurement, Findings { tables, plots, rows, notes }))
}

pub(crate) const DELAY: Experiment = Experiment {
    key: "car-delay",
    title: "One-way delays of packets, from due to delivered",
    source: "[CAR] 5",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run: delay,
};

/// Shows percentiles of the one-way delay at every rate, and the network usage.
fn delay(_: &Run<'_>) -> Result<Outcome> {
    let transports = Transports::read()?;
    let lines = transports.lines(|_| true);
    if lines.is_empty() {
        return Ok(lacking("packets"));
    }
    let columns = [
        "transport",
        "offered_kbyte_per_s",
        "loss_percent",
        "rtt_ms",
        "owd_p50_ms",
        "owd_p95_ms",
        "owd_p99_ms",
        "p99_plus_minus",
        "received_share",
        "network_bytes_per_byte",
    ];
    let mut table = Table::new("delay", columns);
    let mut rows = Vec::new();
    for line in lines {
        let name = said(&line.transport);
        table.push([
            name.into(),
            line.rate_kbyte_per_s.into(),
            line.loss_percent.into(),
            line.rtt_ms.into(),
            line.owd_p50_ms.into(),
            line.owd_p95_ms.into(),
            line.owd_p99_ms.into(),
            line.owd_p99_ci.into(),
            line.received_share.into(),
            line.network_bytes_per_byte.into(),
        ]);
        if line.rate_kbyte_per_s == RATE_OF_ALL {
            let Line { loss_percent, rtt_ms, .. } = line;
            let what = format!("p99, {name}, {loss_percent} % lost, {rtt_ms} ms round trip");
            let note = format!(
                "{}; {} % came, {} bytes on the network a byte",
                sure(line.owd_p99_ci, line.seeds),
                number(line.received_share * 100.0),
                number(line.network_bytes_per_byte)
            );
            rows.push(Row::new(what, "ms", line.owd_p99_ms).note(note));
        }
    }
    if rows.is_empty() {
        return Ok(lacking("rate of 1200 kB/s"));
    }
    let of = |line: &Line| (line.owd_p99_ms, line.owd_p99_ci);
    let plots = by_loss(&transports, "delay", "99 % came within, 1200 kB/s", of);
    let mut notes = transports.notes();
    notes.push(
        "A transport that blocks makes its application late: the delay counts from when a packet was \
         due. Tautline gives a packet up 200 ms after that; the other reliable ones never do."
            .to_owned(),
    );
    let tables = vec![table];
    Ok(Outcome::committed(transports.measurement, Findings { tables, plots, rows, notes }))
}

/// Sets the paper's bound on the jitter as the row's published value, and judges the row by it if
/// there are at least [`SEEDS_LEAST`] seeds.
fn bounded(row: Row, seeds: u64) -> Row {
    let row = row.published(JITTER_MAX_MS);
    match seeds >= SEEDS_LEAST {
        true => row
            .at_most(1.0)
            .because("lower than 4 ms on average, says the paper, in both of its networks"),
        false => row,
    }
}

/// Returns a row for each loss and each retransmitting transport: its jitter less that of UDP,
/// judged by whether it is more, as the paper says. Combinations that were not measured have no
/// row.
fn reliable(transports: &Transports, rtt: u64) -> Vec<Row> {
    let rows = LOSSES.iter().flat_map(|loss| {
        let line = |name| transports.line(name, RATE_OF_ALL, *loss, rtt);
        let udp = line("udp");
        RELIABLE.iter().filter_map(move |name| {
            let (one, udp) = (line(name)?, udp?);
            let what = format!("{} less UDP, {loss} % lost, {rtt} ms", said(name));
            let row = Row::new(what, "ms", one.jitter_ms - udp.jitter_ms);
            let (interval, seeds) = (one.jitter_ci + udp.jitter_ci, one.seeds.min(udp.seeds));
            let paper = "reliable protocols show a larger jitter, says the paper";
            Some(ordered(row, interval, seeds, 1.0, paper))
        })
    });
    rows.collect()
}

/// Plots the figure `of` of the transports in [`DRAWN`] at 1200 kB/s over the loss, one plot per
/// round-trip time at which any was measured.
fn by_loss(
    transports: &Transports,
    name: &str,
    title: &str,
    of: fn(&Line) -> (f64, f64),
) -> Vec<Plot> {
    let plots = transports.rtts().into_iter().filter_map(|rtt| {
        let curves = transports.over_loss(&DRAWN, rtt, of);
        let [x, y] = [Axis::linear("lost, %").range(0.0, 5.5), Axis::log("ms")];
        let title = format!("{title}, round trip of {rtt} ms");
        let plot = Plot::new(&format!("{name}-{rtt}"), &title, x, y);
        (!curves.is_empty()).then(|| plot.with_all(curves))
    });
    plots.collect()
}

const JITTER_MAX_MS: f64 = 4.0;
const LOSSES: [f64; 3] = [0.4, 1.5, 5.0];
/// The paper's transports that retransmit lost packets.
const RELIABLE: [&str; 4] = ["reno", "reno-large", "westwood", "sctp"];
/// Transports that are plotted: more lines would be indistinguishable.
const DRAWN: [&str; 9] =
    ["udp", "reno-large", "westwood", "dccp", "sctp", "tautline", "tautline-two", "cubic", "bbr"];
