//! The summary table: each pairing on each bottleneck, with median, minimum and maximum over the
//! seeds.

use std::collections::BTreeMap;

use tautline_transport::rate::Cause;

use super::bottleneck::Bottleneck;
use super::pairing::Pairing;
use super::sweep::{Found, Sweep};
use crate::experiment::{Cell, Table};
use crate::plot::{Axis, Plot, Series};

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    /// The link.
    pub bottleneck: Bottleneck,
    /// The flow next to the session.
    pub pairing: Pairing,
    /// Results over the seeds; if there are none, the reason: the build instructions for a pairing
    /// that this build lacks, or that it was not run.
    pub outcome: Result<Summary, &'static str>,
}

/// Results of all seeds in one line.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Number of runs.
    pub runs: usize,
    /// Shares of the link used by the first session and by the other flow, %.
    pub shares_percent: [Spread; 2],
    /// [`Measures::jain`](super::measure::Measures::jain).
    pub jain: Spread,
    /// Payload of the first session's units that arrived complete and in time, Mbit/s.
    pub in_time_mbps: Spread,
    /// Share of the media units of all sessions that were not in time, %.
    pub missed_percent: Spread,
    /// Share of the datagrams of all sessions that the link dropped, %.
    pub dropped_percent: Spread,
    /// [`Measures::waiting_ms`](super::measure::Measures::waiting_ms).
    pub waiting_ms: [Spread; 4],
    /// [`Measures::alike_after_s`](super::measure::Measures::alike_after_s), over the runs that
    /// converged; `None` if none did.
    pub alike_after_s: Option<Spread>,
    /// Number of the runs that converged; `None` if the other flow is not a session.
    pub alike_runs: Option<usize>,
    /// Share of the time in which both rates are within 20 % of each other, %; `None` if the other
    /// flow is not a session.
    pub alike_percent: Option<Spread>,
    /// The most frequent limiting cause of the sessions' rates, and its mean share of the time, %;
    /// `None` without samples.
    pub cause: Option<(Cause, f64)>,
}

/// Median, minimum and maximum of a value over several seeds, in the value's unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median over the seeds.
    pub median: f64,
    /// Minimum over the seeds.
    pub least: f64,
    /// Maximum over the seeds.
    pub most: f64,
}

impl Spread {
    /// Returns the spread of `values`; for an even count, the median is the mean of the middle two.
    /// `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = (values[middle] + values[(values.len() - 1) / 2]) / 2.0;
        Some(Self { median, least, most })
    }

    /// Formats the median, followed by minimum and maximum if they round to other values.
    pub fn text(&self, decimals: usize) -> String {
        let [median, least, most] =
            [self.median, self.least, self.most].map(|value| format!("{value:.decimals$}"));
        match least == median && most == median {
            true => median,
            false => format!("{median} ({least}-{most})"),
        }
    }
}

/// Summarizes the results of a sweep, with a line for pairings that this build could not run.
pub fn of(sweep: &Sweep, found: &[Found]) -> Vec<Line> {
    let mut lines = Vec::new();
    for bottleneck in &sweep.bottlenecks {
        for pairing in sweep.pairings.iter().copied() {
            let of_it = |run: &&Found| run.bottleneck == *bottleneck && run.pairing == pairing;
            let runs: Vec<&Found> = found.iter().filter(of_it).collect();
            let outcome = match pairing.missing() {
                Some(missing) => Err(missing),
                None => summed(pairing, &runs).ok_or("not run"),
            };
            lines.push(Line { bottleneck: bottleneck.clone(), pairing, outcome });
        }
    }
    lines
}

fn summed(pairing: Pairing, runs: &[&Found]) -> Option<Summary> {
    let spread = |value: &dyn Fn(&Found) -> f64| Spread::of(runs.iter().map(|run| value(run)));
    let waiting = |at: usize| spread(&|run| run.measures.waiting_ms[at]);
    let after = || runs.iter().filter_map(|run| run.measures.alike_after_s);
    let alike = runs.iter().filter_map(|run| run.measures.alike);
    Some(Summary {
        runs: runs.len(),
        shares_percent: [
            spread(&|run| run.measures.shares[0] * 100.0)?,
            spread(&|run| run.measures.shares[1] * 100.0)?,
        ],
        jain: spread(&|run| run.measures.jain)?,
        in_time_mbps: spread(&|run| run.measures.in_time_mbps[0])?,
        missed_percent: spread(&|run| run.measures.missed * 100.0)?,
        dropped_percent: spread(&|run| run.measures.dropped * 100.0)?,
        waiting_ms: [waiting(0)?, waiting(1)?, waiting(2)?, waiting(3)?],
        alike_after_s: Spread::of(after()),
        alike_runs: pairing.is_session().then(|| after().count()),
        alike_percent: Spread::of(alike.map(|share| share * 100.0)),
        cause: cause(runs),
    })
}

fn cause(runs: &[&Found]) -> Option<(Cause, f64)> {
    let mut shares: BTreeMap<Cause, f64> = BTreeMap::new();
    for (cause, share) in runs.iter().flat_map(|run| &run.measures.causes) {
        *shares.entry(*cause).or_default() += share / runs.len() as f64 * 100.0;
    }
    shares.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b))
}

/// Columns of the printed table.
pub const HEADS: [&str; 15] = [
    "link",
    "beside",
    "share %",
    "other's %",
    "Jain",
    "in time Mbit/s",
    "missed %",
    "dropped %",
    "waits p50 ms",
    "p95",
    "p99",
    "worst",
    "alike after s",
    "alike % of time",
    "most often",
];

impl Line {
    /// Returns the cells of the printed line, in the order of [`HEADS`]: `-` for what it lacks, and
    /// the reason in the last cell if there are no results.
    pub fn cells(&self) -> [String; HEADS.len()] {
        let mut cells = [(); HEADS.len()].map(|()| "-".to_owned());
        cells[0] = self.bottleneck.name.clone();
        cells[1] = self.pairing.name().to_owned();
        let seen = match &self.outcome {
            Ok(seen) => seen,
            Err(missing) => {
                cells[HEADS.len() - 1] = (*missing).to_owned();
                return cells;
            }
        };
        let [p50, p95, p99, worst] = &seen.waiting_ms;
        cells[2] = seen.shares_percent[0].text(0);
        cells[3] = seen.shares_percent[1].text(0);
        cells[4] = seen.jain.text(2);
        cells[5] = seen.in_time_mbps.text(1);
        cells[6] = seen.missed_percent.text(1);
        cells[7] = seen.dropped_percent.text(1);
        cells[8] = p50.text(0);
        cells[9] = p95.text(0);
        cells[10] = p99.text(0);
        cells[11] = format!("{:.0}", worst.most);
        cells[12] = seen.alike_words();
        if let Some(alike) = &seen.alike_percent {
            cells[13] = alike.text(0);
        }
        if let Some((cause, percent)) = seen.cause {
            cells[14] = format!("{cause} {percent:.0} %");
        }
        cells
    }
}

impl Summary {
    fn alike_words(&self) -> String {
        match (self.alike_runs, self.alike_after_s) {
            (None, _) => "-".to_owned(),
            (Some(runs), Some(after)) if runs == self.runs => after.text(1),
            (Some(runs), Some(after)) => {
                format!("{}; {runs} of {}", after.text(1), self.runs)
            }
            (Some(_), None) => format!("never; 0 of {}", self.runs),
        }
    }
}

/// Returns the lines as a table with one row per quantity; a line without results has one row with
/// the reason.
pub fn summary_table(lines: &[Line]) -> Table {
    let mut table = Table::new(
        "summary",
        [
            "link",
            "queue_bytes",
            "queue_bdp",
            "beside",
            "runs",
            "quantity",
            "median",
            "least",
            "most",
            "note",
        ],
    );
    for line in lines {
        let mut push = |runs: usize, quantity: &str, spread: Option<Spread>, note: String| {
            table.push([
                line.bottleneck.name.as_str().into(),
                line.bottleneck.queue.get().into(),
                line.bottleneck.queue_bdp.into(),
                line.pairing.name().into(),
                runs.into(),
                quantity.into(),
                spread.map(|spread| spread.median).into(),
                spread.map(|spread| spread.least).into(),
                spread.map(|spread| spread.most).into(),
                Cell::Text(note),
            ]);
        };
        match &line.outcome {
            Err(missing) => push(0, "", None, (*missing).to_owned()),
            Ok(seen) => {
                for (quantity, spread) in seen.quantities() {
                    push(seen.runs, quantity, Some(spread), String::new());
                }
                if let Some(runs) = seen.alike_runs {
                    let note = format!("{runs} of {} runs", seen.runs);
                    push(seen.runs, "alike_after_s", seen.alike_after_s, note);
                }
                if let Some((cause, percent)) = seen.cause {
                    let spread = Spread { median: percent, least: percent, most: percent };
                    push(seen.runs, "cause_percent", Some(spread), cause.to_string());
                }
            }
        }
    }
    table
}

impl Summary {
    fn quantities(&self) -> impl Iterator<Item = (&'static str, Spread)> {
        let [p50, p95, p99, worst] = self.waiting_ms;
        let all = [
            ("share_percent", self.shares_percent[0]),
            ("share_other_percent", self.shares_percent[1]),
            ("jain", self.jain),
            ("in_time_mbps", self.in_time_mbps),
            ("missed_percent", self.missed_percent),
            ("dropped_percent", self.dropped_percent),
            ("waiting_p50_ms", p50),
            ("waiting_p95_ms", p95),
            ("waiting_p99_ms", p99),
            ("waiting_worst_ms", worst),
        ];
        all.into_iter().chain(self.alike_percent.map(|spread| ("alike_percent", spread)))
    }
}

/// Returns every run as a table.
pub fn runs_table(found: &[Found]) -> Table {
    let mut table = Table::new(
        "runs",
        [
            "link",
            "beside",
            "seed",
            "share",
            "share_other",
            "jain",
            "in_time_mbps",
            "in_time_other_mbps",
            "missed",
            "dropped",
            "waiting_p50_ms",
            "waiting_p95_ms",
            "waiting_p99_ms",
            "waiting_worst_ms",
            "alike_after_s",
            "alike",
            "causes",
            "digest",
        ],
    );
    for run in found {
        let m = &run.measures;
        let causes = m.causes.iter().map(|(cause, share)| format!("{cause} {share:.3}"));
        table.push([
            run.bottleneck.name.as_str().into(),
            run.pairing.name().into(),
            run.seed.into(),
            m.shares[0].into(),
            m.shares[1].into(),
            m.jain.into(),
            m.in_time_mbps.first().copied().into(),
            m.in_time_mbps.get(1).copied().into(),
            m.missed.into(),
            m.dropped.into(),
            m.waiting_ms[0].into(),
            m.waiting_ms[1].into(),
            m.waiting_ms[2].into(),
            m.waiting_ms[3].into(),
            m.alike_after_s.into(),
            m.alike.into(),
            causes.collect::<Vec<_>>().join("; ").into(),
            format!("{:016x}", m.digest).into(),
        ]);
    }
    table
}

/// Returns both flows' shares per second, for the first seed.
pub fn seconds_table(found: &[Found]) -> Table {
    let columns = ["link", "beside", "seed", "second", "share", "share_other"];
    let mut table = Table::new("seconds", columns);
    for run in firsts(found) {
        let [first, other] = &run.measures.by_second;
        for (second, (share, share_other)) in first.iter().zip(other).enumerate() {
            table.push([
                run.bottleneck.name.as_str().into(),
                run.pairing.name().into(),
                run.seed.into(),
                second.into(),
                (*share).into(),
                (*share_other).into(),
            ]);
        }
    }
    table
}

/// Returns one plot per link: the first session's share over time next to each flow, for the first
/// seed.
pub fn plots(found: &[Found]) -> Vec<Plot> {
    let firsts: Vec<&Found> = firsts(found).collect();
    let places = firsts.chunk_by(|a, b| a.bottleneck == b.bottleneck);
    places
        .map(|place| {
            let Bottleneck { name, queue_bdp, .. } = &place[0].bottleneck;
            let title = format!("One session's share, {name} ({queue_bdp} BDP of queue)");
            let x = Axis::linear("time, s");
            let y = Axis::linear("share of the link, %").range(0.0, 100.0);
            let lines = place.iter().map(|run| {
                let seconds = run.measures.by_second[0].iter().enumerate();
                let points = seconds.map(|(at, share)| (at as f64 + 0.5, share * 100.0));
                Series::line(format!("against {}", run.pairing), points.collect())
            });
            Plot::new(&format!("shares-{name}"), &title, x, y).with_all(lines).mark_y(50.0, "half")
        })
        .collect()
}

fn firsts(found: &[Found]) -> impl Iterator<Item = &Found> {
    let first = found.iter().map(|run| run.seed).min();
    found.iter().filter(move |run| Some(run.seed) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_shows_least_and_most_if_they_differ() {
        let spread = Spread::of([3.0, 1.0, 2.0]).unwrap();
        assert_eq!(spread, Spread { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(spread.text(1), "2.0 (1.0-3.0)");
        assert_eq!(Spread::of([2.01, 2.04]).unwrap().text(1), "2.0");
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 9.0]).map(|spread| spread.median), Some(3.0));
        assert_eq!(Spread::of([]), None);
    }
}
