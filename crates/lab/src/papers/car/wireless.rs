//! Table 1, Figs. 1 and 4, and the bit errors of 3.1: the paper's wireless network, as a model used
//! by kernel sockets.

use anyhow::Result;
use serde::Deserialize;

use super::transports::{SEEDS_LEAST, lacking, names, of_seeds, ordered, said, sure};
use crate::experiment::{Experiment, Findings, Isolation, Measurement, Outcome, Row, Run, Table};
use crate::notation::number;
use crate::plot::{Axis, Plot, Series};

pub(crate) const TABLE_1: Experiment = Experiment {
    key: "car-table-1",
    title: "Throughput in a car's wireless network by received power",
    source: "[CAR] Table 1",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run: table_1,
};

/// Shows the throughput of UDP and of TCP with large windows, each offered 5 MB/s, at each power,
/// without other stations.
fn table_1(_: &Run<'_>) -> Result<Outcome> {
    let air = Air::read()?;
    let mut table = Table::new("table-1", ["power_dbm", "transport", "published", "mbyte_per_s"]);
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    for (here, published) in PUBLISHED_CEILINGS {
        let mut curve = Vec::new();
        for (power, published) in published {
            let is = |line: &Line| {
                (line.transport.as_str(), line.power_dbm, line.disturbed) == (here, power, false)
                    && line.rate_kbyte_per_s == SATURATING
            };
            let Some(line) = air.lines(is).into_iter().next() else { continue };
            let measured = line.throughput_kbyte_per_s / 1e3;
            table.push([
                (power as f64).into(),
                said(here).into(),
                published.into(),
                measured.into(),
            ]);
            curve.push((power as f64, measured));
            let row = Row::new(format!("{} at {power} dBm", said(here)), "MB/s", measured);
            let sure = sure(line.throughput_ci / 1e3, line.seeds);
            let note = sure;
            let row = row.published(published).note(note);
            rows.push(row.by_construction("two numbers of the model are fitted to these two"));
        }
        curves.push(Series::marked(said(here), curve));
        let published = published.map(|(power, value)| (power as f64, value));
        curves.push(
            Series::points(format!("{}, published", said(here)), published.to_vec()).published(),
        );
    }
    if rows.is_empty() {
        return Ok(lacking("saturated wireless network"));
    }
    let axes = (Axis::linear("received power, dBm"), Axis::linear("MB/s").range(0.0, 5.0));
    let plot = Plot::new("table-1", "Throughput by received power", axes.0, axes.1);
    let (tables, plots, notes) = (vec![table], vec![plot.with_all(curves)], air.notes());
    Ok(Outcome::committed(air.measurement, Findings { tables, plots, rows, notes }))
}

pub(crate) const FIG_1: Experiment = Experiment {
    key: "car-fig-1",
    title: "Losses in a car's wireless network by the rate that is sent",
    source: "[CAR] Fig. 1",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run: fig_1,
};

/// Shows the loss of UDP at each rate, at -20 and -35 dBm without other stations, and the share of
/// it that occurs in the access point's queue.
fn fig_1(_: &Run<'_>) -> Result<Outcome> {
    let air = Air::read()?;
    let columns =
        ["power_dbm", "sent_mbyte_per_s", "lost_percent", "of_it_in_the_queue_percent", "seeds"];
    let mut table = Table::new("fig-1", columns);
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    for power in [-20, -35] {
        let is = |line: &Line| {
            (line.transport.as_str(), line.power_dbm, line.disturbed) == ("udp", power, false)
        };
        let mut curve = Vec::new();
        for line in air.lines(is) {
            let sent = line.rate_kbyte_per_s as f64 / 1e3;
            let lost = (1.0 - line.received_share) * 100.0;
            let queue = line.dropped_queue_share * 100.0;
            table.push([
                (power as f64).into(),
                sent.into(),
                lost.into(),
                queue.into(),
                line.seeds.into(),
            ]);
            curve.push((sent, lost));
            rows.extend(losses(line, power));
        }
        curves.push(Series::marked(format!("{power} dBm"), curve));
    }
    if rows.is_empty() {
        return Ok(lacking("wireless network by rates"));
    }
    let [x, y] = [Axis::linear("sent, MB/s"), Axis::linear("lost, %")];
    let plot = Plot::new("fig-1", "UDP's losses in the wireless network", x, y).with_all(curves);
    let plot = plot.mark_x(4.2, "saturated, says the paper");
    let mut notes = air.notes();
    notes.push(
        "The figure's points cannot be read from the scan; its text says: very low up to the saturation at some 4.2 \
         MB/s, then many, mainly by overflow of the access point's queue."
            .to_owned(),
    );
    let (tables, plots) = (vec![table], vec![plot]);
    Ok(Outcome::committed(air.measurement, Findings { tables, plots, rows, notes }))
}

/// Returns rows with the loss at a rate, and with the share of it that occurs in the access point's
/// queue; with at least three seeds, judged by the figure's text.
fn losses(line: &Line, power: i64) -> [Row; 2] {
    let sent = line.rate_kbyte_per_s as f64 / 1e3;
    let place = format!("{} MB/s at {power} dBm", number(sent));
    let lost = 1.0 - line.received_share;
    let (row, queue) = (
        Row::new(format!("lost of {place}"), "%", lost * 100.0),
        Row::new(
            format!("of it in the queue, {place}"),
            "%",
            line.dropped_queue_share / lost.max(1e-9) * 100.0,
        ),
    );
    let [row, queue] = [row, queue].map(|row| row.note(of_seeds(line.seeds)));
    if line.seeds < SEEDS_LEAST {
        return [row, queue];
    }
    match sent {
        ..4.0 => [row.by_construction("below what the channel carries losses are a setting"), queue],
        ..4.3 => [
            row.published(1.5).at_most(1.0).because(
                "very low up to some 4.2 MB/s, says the figure's text, and section 3.2 has 1.5 % for a saturated channel",
            ),
            queue,
        ],
        _ => [
            row,
            queue.asked(50.0).at_least(1.0).because("mainly by the access point's queue, says the figure's text"),
        ],
    }
}

/// Returns, for each of the paper's transports at each power with cross traffic, its name with the
/// power, its mean jitter in ms, and its number of seeds.
pub(super) fn jitters() -> Result<Vec<(String, f64, u64)>> {
    let is = |line: &Line| (line.disturbed, line.rate_kbyte_per_s) == (true, FIG_4_RATE);
    let lines = Air::read()?.lines;
    let papers = |line: &Line| names().any(|it| it.here == line.transport && it.is_papers);
    let lines = lines.iter().filter(|line| is(line) && papers(line));
    let of = |line: &Line| {
        let what = format!("{}, wireless at {} dBm", said(&line.transport), line.power_dbm);
        (what, line.jitter_ms, line.seeds)
    };
    Ok(lines.map(of).collect())
}

pub(crate) const FIG_4: Experiment = Experiment {
    key: "car-fig-4",
    title: "Distribution of the throughput in a car's wireless network",
    source: "[CAR] Fig. 4",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run: fig_4,
};

/// Shows the distribution of the throughput per second, at 2000 kB/s and -35 dBm with cross
/// traffic.
fn fig_4(_: &Run<'_>) -> Result<Outcome> {
    let air = Air::read()?;
    let lines = air.lines(|line| {
        (line.power_dbm, line.disturbed, line.rate_kbyte_per_s) == (-35, true, FIG_4_RATE)
    });
    if lines.is_empty() {
        return Ok(lacking("wireless network with another's flow"));
    }
    let columns = [
        "transport",
        "seeds",
        "received_share",
        "mean",
        "p10",
        "p25",
        "p50",
        "p75",
        "p90",
        "owd_p50_ms",
        "owd_p99_ms",
        "network_bytes_per_byte",
    ];
    let mut table = Table::new("fig-4", columns);
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    let udp = lines.iter().find(|line| line.transport == "udp").copied();
    for line in lines {
        let name = said(&line.transport);
        let spread = [
            (0.1, line.second_p10),
            (0.25, line.second_p25),
            (0.5, line.second_p50),
            (0.75, line.second_p75),
            (0.9, line.second_p90),
        ];
        let [p10, p25, p50, p75, p90] = spread.map(|(_, value)| value);
        table.push([
            name.into(),
            line.seeds.into(),
            line.received_share.into(),
            line.throughput_kbyte_per_s.into(),
            p10.into(),
            p25.into(),
            p50.into(),
            p75.into(),
            p90.into(),
            line.owd_p50_ms.into(),
            line.owd_p99_ms.into(),
            line.network_bytes_per_byte.into(),
        ]);
        if names().any(|it| it.here == line.transport && DRAWN.contains(&it.here)) {
            curves.push(Series::line(name, spread.map(|(share, value)| (value, share)).to_vec()));
        }
        let note = format!(
            "from {} to {} in four seconds of five; 99 % came within {} ms",
            number(p10),
            number(p90),
            number(line.owd_p99_ms)
        );
        let row = Row::new(format!("{name}, median of a second"), "kB/s", p50);
        rows.push(row.note(format!("{note}; {}", sure(line.throughput_ci, line.seeds))));
        let is_papers = names().any(|it| it.here == line.transport && it.is_papers);
        if let Some(udp) =
            udp.filter(|udp| is_papers && !line.transport.starts_with(&udp.transport))
        {
            let difference = udp.throughput_kbyte_per_s - line.throughput_kbyte_per_s;
            let row = Row::new(format!("UDP less {name}, mean"), "kB/s", difference);
            let interval = udp.throughput_ci + line.throughput_ci;
            let paper = "UDP performs better in the wireless network, says the paper";
            rows.push(ordered(row, interval, udp.seeds.min(line.seeds), 1.0, paper));
        }
    }
    let [x, y] = [
        Axis::linear("received in a second, kB/s"),
        Axis::linear("share of seconds").range(0.0, 1.0),
    ];
    let title = "Throughput at 2000 kB/s and -35 dBm, 10th to 90th percentile";
    let plot = Plot::new("fig-4", title, x, y).with_all(curves).mark_x(2000.0, "ideal");
    let mut notes = air.notes();
    notes.push(
        "The figure has no numbers that could be read; its text says that UDP is the better one there. The rate of the \
         other flow is not given; here it is 2000 kB/s too, so that both together nearly fill the channel."
            .to_owned(),
    );
    let (tables, plots) = (vec![table], vec![plot]);
    Ok(Outcome::committed(air.measurement, Findings { tables, plots, rows, notes }))
}

pub(crate) const BIT_ERRORS: Experiment = Experiment {
    key: "car-bit-errors",
    title: "Packets with a wrong bit: what UDP-Lite saves, and what a seal leaves of that",
    source: "[CAR] 3.1",
    isolation: Isolation::Shared,
    mutation: super::transports::SPARED,
    run: bit_errors,
};

/// Shows how many of the packets with a bit error, at -60 dBm with cross traffic, are useful to the
/// application.
fn bit_errors(_: &Run<'_>) -> Result<Outcome> {
    let air = Air::read()?;
    let lines = air.lines(|line| {
        (line.power_dbm, line.rate_kbyte_per_s) == (-60, BIT_ERRORS_RATE) && line.disturbed
    });
    if lines.is_empty() {
        return Ok(lacking("bit errors"));
    }
    let columns = ["transport", "seeds", "damaged_percent", "damaged", "came_damaged", "of_use"];
    let mut table = Table::new("bit-errors", columns);
    let (mut rows, mut bars) = (Vec::new(), Vec::new());
    for (at, line) in lines.iter().enumerate() {
        let name = said(&line.transport);
        let of_use = if line.transport == SEALED { 0 } else { line.damaged_came };
        table.push([
            name.into(),
            line.seeds.into(),
            (line.damaged_share * 100.0).into(),
            line.damaged.into(),
            line.damaged_came.into(),
            of_use.into(),
        ]);
        let share = of_use as f64 / line.damaged.max(1) as f64 * 100.0;
        bars.push(Series::bars(name, vec![(at as f64, share)]));
        let row = Row::new(format!("{name}: of use of those with a wrong bit"), "%", share);
        let row = match line.transport.as_str() {
            "udp" => row.by_construction("UDP's checksum covers all of a packet"),
            SEALED => row.by_construction("no seal opens over a wrong bit"),
            _ if line.seeds >= SEEDS_LEAST => row.reference(UNCOVERED_PERCENT).within(0.1).because(
                "of 1356 bytes 1316 are covered by no checksum; a tenth for the few packets that there are",
            ),
            _ => row,
        };
        let note = match line.transport.as_str() {
            SEALED => format!("{} came, none opened", line.damaged_came),
            _ => format!("{} of {}", of_use, line.damaged),
        };
        rows.push(row.note(note));
    }
    let [x, y] = [Axis::linear(""), Axis::linear("of use, %").range(0.0, 100.0)];
    let plot = Plot::new("bit-errors", "Packets with a wrong bit that are of use", x, y);
    let mut notes = air.notes();
    notes.push(
        "One bit of .18 % of the packets is changed at -60 dBm, the paper's share where it is worst. UDP's checksum \
         drops all of them; UDP-Lite's covers the headers alone. Sealed is as Tautline's datagrams are, with \
         ChaCha20-Poly1305: what a bit has changed does not open, and is a loss as it is over UDP."
            .to_owned(),
    );
    let (tables, plots) = (vec![table], vec![plot.with_all(bars)]);
    Ok(Outcome::committed(air.measurement, Findings { tables, plots, rows, notes }))
}

/// All lines of the testbed's committed table of the wireless network.
struct Air {
    lines: Vec<Line>,
    measurement: Measurement,
}

/// One transport at one rate and power, with or without cross traffic (`disturbed`): means over
/// seeds. `second_p10` to `second_p90` are percentiles of the throughput over the seconds of all
/// seeds, kB/s.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    transport: String,
    rate_kbyte_per_s: u64,
    power_dbm: i64,
    disturbed: bool,
    seeds: u64,
    seconds: u64,
    received_share: f64,
    jitter_ms: f64,
    throughput_kbyte_per_s: f64,
    throughput_ci: f64,
    owd_p50_ms: f64,
    owd_p99_ms: f64,
    network_bytes_per_byte: f64,
    dropped_queue_share: f64,
    damaged_share: f64,
    damaged: u64,
    damaged_came: u64,
    second_p10: f64,
    second_p25: f64,
    second_p50: f64,
    second_p75: f64,
    second_p90: f64,
}

impl Air {
    fn read() -> Result<Self> {
        let (measurement, lines) = Measurement::read(FILE, "make transports", MADE, MEASURED)?;
        // Measured in virtual time.
        Ok(Self { lines, measurement: measurement.reproducible() })
    }

    fn lines(&self, is: impl Fn(&Line) -> bool) -> Vec<&Line> {
        self.lines.iter().filter(|line| is(line)).collect()
    }

    fn notes(&self) -> Vec<String> {
        let seconds = self.lines.iter().map(|line| line.seconds).max().unwrap_or_default();
        vec![
            "Sockets of Linux 6.1 over TUN devices between which the model of `tautline-sim` stands: one channel for both \
             directions, so that acknowledgements take time of the data, an access point's queue of 120 packets, \
             losses and bit errors by the power. Time is virtual: computing costs nothing."
                .to_owned(),
            "Fitted at each power: time of a frame in addition to its bytes, to UDP's throughput in Table 1, and how often \
             frames of both sides collide, to TCP's. Losses by the power are ours, .4 % on average as in the paper."
                .to_owned(),
            format!("Runs of {seconds} s where the paper took 300."),
        ]
    }
}

const PUBLISHED_CEILINGS: [(&str, [(i64, f64); 3]); 2] = [
    ("udp", [(-20, 4.24), (-35, 4.18), (-60, 3.6)]),
    ("reno-large", [(-20, 3.2), (-35, 3.1), (-60, 2.4)]),
];
const SATURATING: u64 = 5000;
const FIG_4_RATE: u64 = 2000;
const BIT_ERRORS_RATE: u64 = 1200;
/// Percentage of the bytes of a UDP-Lite packet that no checksum covers: all but the headers of IP
/// and UDP-Lite and our 12 bytes.
const UNCOVERED_PERCENT: f64 = 1316.0 / 1356.0 * 100.0;
const SEALED: &str = "udp-lite-sealed";
/// Transports that are plotted: more lines would be indistinguishable.
const DRAWN: [&str; 8] =
    ["udp", "reno", "reno-large", "westwood", "dccp", "sctp", "tautline", "bbr"];
const MEASURED: &str = include_str!("wireless.csv");
const MADE: &str = include_str!("transports.machine.json");
/// Path of the committed table, shown to the reader of the report.
const FILE: &str = "crates/lab/src/papers/car/wireless.csv";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_that_is_committed_can_be_read_and_named() {
        for line in Air::read().unwrap().lines(|_| true) {
            assert!(names().any(|name| name.here == line.transport), "{line:?}");
            assert!((0.0..=1.0).contains(&line.received_share), "{line:?}");
            assert!(line.second_p10 <= line.second_p50 && line.second_p50 <= line.second_p90);
        }
    }
}
