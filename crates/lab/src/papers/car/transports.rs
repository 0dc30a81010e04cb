//! The last results of `make transports`: the lab itself boots no kernel.

use anyhow::Result;
use serde::Deserialize;

use crate::experiment::{Measurement, Mutation, Outcome, Row};
use crate::notation::number;
use crate::plot::Series;

/// All lines of the testbed's committed table, and the origin of the measurement.
pub(super) struct Transports {
    lines: Vec<Line>,
    pub(super) measurement: Measurement,
}

/// One transport at one rate, loss and round-trip time: means over seeds, and half widths of the 95
/// % confidence intervals.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Line {
    pub(super) transport: String,
    pub(super) rate_kbyte_per_s: u64,
    pub(super) loss_percent: f64,
    pub(super) rtt_ms: u64,
    pub(super) seeds: u64,
    /// Duration for which packets were offered, s.
    pub(super) seconds: u64,
    /// Share of the offered packets that arrived.
    pub(super) received_share: f64,
    pub(super) throughput_kbyte_per_s: f64,
    pub(super) throughput_ci: f64,
    pub(super) jitter_ms: f64,
    pub(super) jitter_ci: f64,
    pub(super) owd_p50_ms: f64,
    pub(super) owd_p95_ms: f64,
    pub(super) owd_p99_ms: f64,
    pub(super) owd_p99_ci: f64,
    pub(super) network_bytes_per_byte: f64,
}

/// A transport's name in the testbed's tables, and the one shown to readers.
pub(super) struct Name {
    pub(super) here: &'static str,
    pub(super) said: &'static str,
    /// True if the paper measures this transport.
    pub(super) is_papers: bool,
}

impl Transports {
    /// Reads the committed table.
    ///
    /// # Errors
    /// If it is malformed.
    pub(super) fn read() -> Result<Self> {
        let (measurement, lines) = Measurement::read(FILE, "make transports", MADE, MEASURED)?;
        // Measured in virtual time.
        Ok(Self { lines, measurement: measurement.reproducible() })
    }

    /// Returns the lines that satisfy `is`, in the order of the table.
    pub(super) fn lines(&self, is: impl Fn(&Line) -> bool) -> Vec<&Line> {
        self.lines.iter().filter(|line| is(line)).collect()
    }

    /// Returns one transport's line of a rate, loss and round-trip time; of several durations, the
    /// longest. `None` if it was not measured.
    pub(super) fn line(
        &self,
        transport: &str,
        rate_kbyte_per_s: u64,
        loss_percent: f64,
        rtt_ms: u64,
    ) -> Option<&Line> {
        let is = |line: &&Line| {
            (line.transport.as_str(), line.rate_kbyte_per_s) == (transport, rate_kbyte_per_s)
                && (line.loss_percent, line.rtt_ms) == (loss_percent, rtt_ms)
        };
        self.lines.iter().filter(is).max_by_key(|line| line.seconds)
    }

    /// Returns one curve for each transport of `drawn` that was measured: the figure `of` at 1200
    /// kB/s over the loss, with its intervals.
    pub(super) fn over_loss(
        &self,
        drawn: &[&str],
        rtt_ms: u64,
        of: fn(&Line) -> (f64, f64),
    ) -> Vec<Series> {
        let series = names().filter(|name| drawn.contains(&name.here)).filter_map(|name| {
            let is = |line: &Line| {
                (line.transport.as_str(), line.rate_kbyte_per_s, line.rtt_ms)
                    == (name.here, RATE_OF_ALL, rtt_ms)
            };
            let lines = self.lines(is);
            let points = lines.iter().map(|line| (line.loss_percent, of(line).0)).collect();
            let reaches = lines.iter().map(|line| drawn_interval(of(line).1, line.seeds)).collect();
            (!lines.is_empty()).then(|| Series::marked(name.said, points).with_intervals(reaches))
        });
        series.collect()
    }

    /// Returns notes for the reader of these figures.
    pub(super) fn notes(&self) -> Vec<String> {
        let range = |values: Vec<u64>| match (values.iter().min(), values.iter().max()) {
            (Some(least), Some(most)) if least != most => format!("{least} to {most}"),
            (least, _) => least.copied().unwrap_or_default().to_string(),
        };
        let seconds = range(self.lines.iter().map(|line| line.seconds).collect());
        let seeds = range(self.lines.iter().map(|line| line.seeds).collect());
        let mut notes = notes();
        notes.push(format!(
            "Runs of {seconds} s; seeds in a cell: {seeds}. A whole matrix has five where the round trip is 20 ms, and in \
             the wireless network, and three elsewhere."
        ));
        notes
    }

    /// Returns the measured round-trip times, the shortest first.
    pub(super) fn rtts(&self) -> Vec<u64> {
        let mut rtts: Vec<u64> = self.lines.iter().map(|line| line.rtt_ms).collect();
        rtts.sort_unstable();
        rtts.dedup();
        rtts
    }
}

/// Returns all transports, in the order of the tables.
pub(super) fn names() -> impl Iterator<Item = &'static Name> {
    NAMES.iter()
}

/// Returns a transport's display name, or `here` if the transport is unknown.
pub(super) fn said(here: &str) -> &str {
    names().find(|name| name.here == here).map_or(here, |name| name.said)
}

/// Returns the outcome of an experiment whose lines are missing in the table.
pub(super) fn lacking(what: &str) -> Outcome {
    Outcome::skipped(
        format!("the committed measurement has no {what}"),
        "`make transports` measures it, in hours; it takes up where it stopped.",
    )
}

/// Formats the half width of the confidence interval of a mean over seeds, and the number of seeds.
/// Fewer than two seeds have no interval: only the number is given.
pub(super) fn sure(interval: f64, seeds: u64) -> String {
    match seeds {
        ..2 => of_seeds(seeds),
        _ => format!("± {}, {}", number(interval), of_seeds(seeds)),
    }
}

/// Formats the number of seeds of a figure without an interval.
pub(super) fn of_seeds(seeds: u64) -> String {
    match seeds {
        ..2 => "one seed".to_owned(),
        _ => format!("{seeds} seeds"),
    }
}

/// Returns the half width of the interval to plot: 0 with fewer than [`SEEDS_LEAST`] seeds, as it
/// would hide the rest.
pub(super) fn drawn_interval(interval: f64, seeds: u64) -> f64 {
    if seeds < SEEDS_LEAST { 0.0 } else { interval }
}

/// Returns `row`, a difference of two means, with its sign judged against the paper's `sign`. It is
/// judged only if both have at least [`SEEDS_LEAST`] seeds, and the difference exceeds the combined
/// interval; otherwise its note says why not.
pub(super) fn ordered(row: Row, interval: f64, seeds: u64, sign: f64, paper: &str) -> Row {
    let note = sure(interval, seeds);
    if seeds < SEEDS_LEAST {
        return row.note(format!("{note}: too few to judge"));
    }
    if row.measured.abs() <= interval {
        return row.note(format!("{note}: no difference beyond chance"));
    }
    let row = row.asked(0.0).note(note).because(format!("{paper}; only which is more is asked"));
    if sign < 0.0 { row.at_most(1.0) } else { row.at_least(1.0) }
}

fn notes() -> Vec<String> {
    vec![
        "Transports of Linux 6.1 and the session of Tautline in User Mode Linux, NetEm on a link of \
         100 Mbit/s, losses on the way there only; means over seeds, ± half the interval of 0.95."
            .to_owned(),
        "Time is virtual, and the processor infinitely fast: computing costs nothing, sealing and \
         coding among it, and the machine that measured makes no difference."
            .to_owned(),
        "The paper tells neither its round trip nor its kernel; the round trip decides, and is swept."
            .to_owned(),
    ]
}

const NAMES: [Name; 20] = [
    Name { here: "udp", said: "UDP", is_papers: true },
    Name { here: "udp-lite", said: "UDP-Lite", is_papers: true },
    Name { here: "reno", said: "TCP Reno, 16 KB", is_papers: true },
    Name { here: "reno-large", said: "TCP Reno, large windows", is_papers: true },
    Name { here: "westwood", said: "TCP Westwood", is_papers: true },
    Name { here: "dccp", said: "DCCP CCID 2", is_papers: true },
    Name { here: "dccp-partial", said: "DCCP, partial checksum", is_papers: true },
    Name { here: "sctp", said: "SCTP", is_papers: true },
    Name { here: "tautline", said: "Tautline, one link", is_papers: false },
    Name { here: "tautline-two", said: "Tautline, two links", is_papers: false },
    Name { here: "cubic", said: "TCP Cubic", is_papers: false },
    Name { here: "bbr", said: "TCP BBR", is_papers: false },
    Name { here: "sctp-partial", said: "SCTP, partial reliability", is_papers: false },
    Name { here: "mptcp", said: "MPTCP Cubic, two links", is_papers: false },
    Name { here: "cubic-timed", said: "TCP Cubic, frames timed", is_papers: false },
    Name { here: "bbr-timed", said: "TCP BBR, frames timed", is_papers: false },
    Name { here: "quic-streams", said: "QUIC, streams reset", is_papers: false },
    Name { here: "quic-streams-bbr", said: "QUIC BBR, streams reset", is_papers: false },
    Name { here: "quic-datagrams", said: "QUIC, datagrams", is_papers: false },
    Name { here: "udp-lite-sealed", said: "UDP-Lite, sealed", is_papers: false },
];
/// The one rate, in kB/s, at which the transports that the paper lacks were measured too.
pub(super) const RATE_OF_ALL: u64 = 1200;
/// Minimum number of seeds for a meaningful confidence interval: with fewer, rows are not judged
/// and intervals not plotted.
pub(super) const SEEDS_LEAST: u64 = 3;
/// The reason why no mutation turns a row of these experiments red.
pub(super) const SPARED: Mutation = Mutation::Spared(
    "It shows the results of `make transports`: no change of the code alters committed numbers.",
);
const MEASURED: &str = include_str!("transports.csv");
const MADE: &str = include_str!("transports.machine.json");
/// Path of the committed table, shown to the reader of the report.
const FILE: &str = "crates/lab/src/papers/car/transports.csv";

#[cfg(test)]
mod tests {
    use super::super::{conclusion, delays, throughput, videos, wireless};
    use super::*;
    use crate::experiment::{Experiment, Run, Verdict};

    #[test]
    fn an_order_is_judged_where_it_is_beyond_chance() {
        let verdict = |difference, interval, seeds, sign| {
            let row = Row::new("x", "dB", difference);
            ordered(row, interval, seeds, sign, "the paper's").verdict()
        };
        assert_eq!(verdict(2.0, 0.5, 3, 1.0), Verdict::Within);
        assert_eq!(verdict(-2.0, 0.5, 3, 1.0), Verdict::Out);
        assert_eq!(verdict(-2.0, 0.5, 3, -1.0), Verdict::Within);
        assert_eq!(verdict(2.0, 0.5, 3, -1.0), Verdict::Out);
        assert_eq!(verdict(-0.4, 0.5, 3, 1.0), Verdict::Shown, "within both intervals");
        assert_eq!(verdict(-2.0, 0.5, 2, 1.0), Verdict::Shown, "of two seeds");
    }

    #[test]
    fn committed_results_are_shown_and_missing_ones_name_a_remedy() {
        let experiments: [Experiment; 11] = [
            wireless::TABLE_1,
            wireless::FIG_1,
            wireless::FIG_4,
            wireless::BIT_ERRORS,
            conclusion::EXPERIMENT,
            throughput::TABLE_2,
            throughput::FIG_3,
            delays::JITTER,
            delays::DELAY,
            videos::FIG_5,
            videos::TABLE_3,
        ];
        for experiment in experiments {
            match (experiment.run)(&Run::silent(true, 1)).unwrap() {
                Outcome::Committed(_, findings) => {
                    let whole = !findings.tables.is_empty() && !findings.rows.is_empty();
                    assert!(whole && !findings.plots.is_empty(), "{}", experiment.key);
                    for plot in &findings.plots {
                        plot.to_svg().unwrap();
                    }
                }
                Outcome::Skipped(skipped) => assert!(skipped.remedy.contains("make transports")),
                Outcome::Measured(_) => panic!("{} measures nothing itself", experiment.key),
            }
        }
    }

    #[test]
    fn every_line_that_is_committed_can_be_read_and_named() {
        let transports = Transports::read().unwrap();
        for line in transports.lines(|_| true) {
            assert!(names().any(|name| name.here == line.transport), "{line:?}");
            assert!((0.0..=1.0).contains(&line.received_share), "{line:?}");
            assert!(line.owd_p50_ms <= line.owd_p95_ms && line.owd_p95_ms <= line.owd_p99_ms);
        }
    }
}
