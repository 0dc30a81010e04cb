//! Jitter, of which the paper gives a bound in words, and one-way delays, of which it gives none.

use anyhow::Result;

use super::transports::{Line, Transports, lacking, names, said, sure};
use crate::experiment::{Experiment, Findings, Outcome, Row, Run, Table};
use crate::notation::number;
use crate::plot::{Axis, Plot, Series};

pub(crate) const JITTER: Experiment = Experiment {
    key: "car-jitter",
    title: "Mean jitter of the times between packets",
    source: "[CAR] 4",
    run: jitter,
};

/// Shows the jitter of every transport at 1200 kB/s.
fn jitter(_: &Run<'_>) -> Result<Outcome> {
    let transports = Transports::read()?;
    let lines = transports.lines(|line| line.rate_kbyte_per_s == RATE);
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
        let published = names().any(|it| it.here == line.transport && it.is_papers);
        let row = Row::new(format!("{name}, {loss_percent} % lost, {rtt_ms} ms"), "ms", *jitter_ms);
        let holds = if *jitter_ms < JITTER_MAX_MS { "below" } else { "not below" };
        let note = sure(*jitter_ci, *seeds);
        rows.push(match published {
            true => row.published(JITTER_MAX_MS).note(format!("{note}; {holds} the paper's bound")),
            false => row.note(note),
        });
    }
    let plot = by_loss(&transports, "jitter", "Mean jitter at 1200 kB/s", |it| it.jitter_ms);
    let mut notes = transports.notes();
    notes.push(
        "The paper: lower than 4 ms on average, more for reliable protocols. Jitter is how much a \
         time between two packets that came differs from that between their due times, on average."
            .to_owned(),
    );
    let (tables, plots) = (vec![table], vec![plot]);
    Ok(Outcome::committed(transports.measurement, Findings { tables, plots, rows, notes }))
}

pub(crate) const DELAY: Experiment = Experiment {
    key: "car-delay",
    title: "One-way delays of packets, from due to delivered",
    source: "[CAR] 5",
    run: delay,
};

/// Shows percentiles of the one-way delay at every rate, and what they cost.
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
        if line.rate_kbyte_per_s == RATE {
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
    let plot = by_loss(&transports, "delay", "99 % came within, 1200 kB/s", |it| it.owd_p99_ms);
    let mut notes = transports.notes();
    notes.push(
        "A transport that blocks makes its application late: the delay counts from when a packet was \
         due. Tautline gives a packet up 200 ms after that; the other reliable ones never do."
            .to_owned(),
    );
    let (tables, plots) = (vec![table], vec![plot]);
    Ok(Outcome::committed(transports.measurement, Findings { tables, plots, rows, notes }))
}

/// Draws a figure over the loss, at a round trip of 20 ms.
fn by_loss(transports: &Transports, name: &str, title: &str, of: fn(&Line) -> f64) -> Plot {
    let mut plot = Plot::new(
        name,
        &format!("{title}, round trip of 20 ms"),
        Axis::linear("lost, %").range(0.0, 5.5),
        Axis::log("ms"),
    );
    for transport in names().filter(|name| DRAWN.contains(&name.here)) {
        let lines = transports.lines(|line| {
            line.transport == transport.here && line.rate_kbyte_per_s == RATE && line.rtt_ms == 20
        });
        let curve: Vec<_> = lines.iter().map(|line| (line.loss_percent, of(line))).collect();
        if !curve.is_empty() {
            plot = plot.with(Series::marked(transport.said, curve));
        }
    }
    plot
}

/// The rate at which today's transports were measured too.
const RATE: u64 = 1200;
const JITTER_MAX_MS: f64 = 4.0;
/// More lines could not be told apart.
const DRAWN: [&str; 8] =
    ["udp", "reno-large", "westwood", "dccp", "sctp", "tautline", "tautline-two", "bbr"];
