//! Summary of many runs of one combo on one set.

use tautline_scenario::measure::quantile;
use tautline_units::Duration;

use super::case::Case;
use super::combo;
use super::sweep::Found;
use crate::experiment::{Cell, Table};
use crate::plot::{Axis, Plot, Series};

/// One line of the summary: all seeds of one combo on one set, case and deadline.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Name of the set of links.
    pub set: String,
    /// Impairment of the links.
    pub case: Case,
    /// Deadline, one way.
    pub deadline: Duration,
    /// Name of the combo.
    pub combo: String,
    /// True if the runs used a single link, for each seed the one with the highest goodput.
    pub alone: bool,
    /// Number of runs.
    pub runs: usize,
    /// Goodput, median over the runs, Mbit/s.
    pub goodput_mbps: f64,
    /// 5th percentile of the goodput per second, median over the runs, Mbit/s.
    pub goodput_p5_mbps: f64,
    /// Share of the offered units missed, over all runs.
    pub missed: f64,
    /// Bytes on the wire over the payload of the units on time, median over the runs.
    pub overhead: f64,
    /// 99th percentile of the delay of delivered units, in time or not; median over the runs, ms.
    pub delay_p99_ms: f64,
    /// Longest time without a unit on time, of all runs, ms.
    pub gap_ms: f64,
    /// Share of the time with a zero budget, mean of the runs.
    pub paused: f64,
    /// Time from the cut to the last media datagram sent on the cut link, median over the runs that
    /// used that link, ms; NaN without such a run.
    pub notice_ms: f64,
    /// Time from the return of the cut link until it carries half of its former rate, median over
    /// the runs that used that link, ms; NaN without such a run.
    pub recover_ms: f64,
    /// Number of units missed among those sent from one deadline after the cut until the link's
    /// return, over all runs; `None` if nothing was cut.
    pub missed_beyond: Option<u64>,
    /// Goodput relative to that of the best combo that codes 4 of 9; NaN if none was run.
    pub ratio: f64,
    /// Goodput relative to the best single link of the same seed with any combo, minimum over the
    /// runs; NaN if no single links were run.
    pub over_best_link: f64,
}

/// Summarizes runs: one line per set, case, deadline and combo, in the order of the runs.
pub fn of(found: &[Found]) -> Vec<Summary> {
    let mut lines: Vec<Summary> = Vec::new();
    let same = |a: &Found, b: &Found| (&a.set, a.case, a.deadline) == (&b.set, b.case, b.deadline);
    for place in found.chunk_by(same) {
        let best = best_alone(place);
        let mut here = Vec::new();
        for runs in place.chunk_by(|a, b| a.combo == b.combo) {
            let together: Vec<&Found> = runs.iter().filter(|run| run.alone.is_none()).collect();
            here.push(line(&together, &best));
            if runs.iter().any(|run| run.alone.is_some()) {
                let own = best_alone(runs);
                here.push(Summary { alone: true, ..line(&own, &best) });
            }
        }
        let nine = |line: &&Summary| !line.alone && combo::is_four_of_nine(&line.combo);
        let base = here.iter().filter(nine).map(|line| line.goodput_mbps).fold(f64::NAN, f64::max);
        lines.extend(here.into_iter().map(|l| Summary { ratio: l.goodput_mbps / base, ..l }));
    }
    lines
}

/// Returns, for each seed, the run with a single link that had the highest goodput.
fn best_alone(runs: &[Found]) -> Vec<&Found> {
    let mut best: Vec<&Found> = Vec::new();
    for run in runs.iter().filter(|run| run.alone.is_some()) {
        match best.iter_mut().find(|other| other.seed == run.seed) {
            Some(other) if other.measures.goodput_mbps < run.measures.goodput_mbps => *other = run,
            Some(_) => {}
            None => best.push(run),
        }
    }
    best
}

fn line(runs: &[&Found], best: &[&Found]) -> Summary {
    let first = runs[0];
    let median = |of: fn(&Found) -> f64| {
        let mut values: Vec<f64> =
            runs.iter().map(|run| of(run)).filter(|value| !value.is_nan()).collect();
        quantile(&mut values, 0.5)
    };
    let offered: u64 = runs.iter().map(|run| run.measures.offered).sum();
    let missed: f64 =
        runs.iter().map(|run| run.measures.missed * run.measures.offered as f64).sum();
    let over = runs.iter().filter_map(|run| {
        let best = best.iter().find(|other| other.seed == run.seed)?;
        Some(run.measures.goodput_mbps / best.measures.goodput_mbps)
    });
    let beyond = runs.iter().filter_map(|run| run.measures.outage.map(|o| o.missed_beyond));
    Summary {
        set: first.set.clone(),
        case: first.case,
        deadline: first.deadline,
        combo: first.combo.clone(),
        alone: false,
        runs: runs.len(),
        goodput_mbps: median(|run| run.measures.goodput_mbps),
        goodput_p5_mbps: median(|run| run.measures.goodput_p5_mbps),
        missed: missed / offered as f64,
        overhead: median(|run| run.measures.overhead),
        delay_p99_ms: median(|run| run.measures.delay_ms[2]),
        gap_ms: runs.iter().map(|run| run.measures.gap_ms).fold(0.0, f64::max),
        paused: runs.iter().map(|run| run.measures.paused).sum::<f64>() / runs.len() as f64,
        notice_ms: median(|run| run.measures.outage.map_or(f64::NAN, |o| o.notice_ms)),
        recover_ms: median(|run| run.measures.outage.map_or(f64::NAN, |o| o.recover_ms)),
        missed_beyond: beyond.reduce(|a, b| a + b),
        ratio: f64::NAN,
        over_best_link: over.fold(f64::NAN, f64::min),
    }
}

impl Summary {
    /// Returns the combo's name, with a suffix for a single link.
    pub fn label(&self) -> String {
        if self.alone { format!("{}, best link alone", self.combo) } else { self.combo.clone() }
    }
}

/// Returns every run as a table.
pub fn runs_table(found: &[Found]) -> Table {
    let mut table = Table::new(
        "runs",
        [
            "set",
            "case",
            "deadline_ms",
            "combo",
            "alone",
            "seed",
            "goodput_mbps",
            "goodput_p5_mbps",
            "missed",
            "refused",
            "paused",
            "offered",
            "overhead",
            "delay_p50_ms",
            "delay_p95_ms",
            "delay_p99_ms",
            "delay_worst_ms",
            "gap_ms",
            "frozen",
            "datagrams",
            "command_p99_ms",
            "command_gap_ms",
            "notice_ms",
            "recover_ms",
            "missed_beyond",
            "digest",
        ],
    );
    for run in found {
        let m = &run.measures;
        let datagrams: Vec<String> = m.datagrams.iter().map(u64::to_string).collect();
        table.push([
            run.set.as_str().into(),
            run.case.name().into(),
            ms(run.deadline),
            run.combo.as_str().into(),
            run.alone.as_deref().unwrap_or("").into(),
            run.seed.into(),
            m.goodput_mbps.into(),
            m.goodput_p5_mbps.into(),
            m.missed.into(),
            m.refused.into(),
            m.paused.into(),
            m.offered.into(),
            m.overhead.into(),
            m.delay_ms[0].into(),
            m.delay_ms[1].into(),
            m.delay_ms[2].into(),
            m.delay_ms[3].into(),
            m.gap_ms.into(),
            m.frozen.into(),
            datagrams.join(" ").into(),
            m.command_p99_ms.into(),
            m.command_gap_ms.into(),
            m.outage.map(|outage| outage.notice_ms).into(),
            m.outage.map(|outage| outage.recover_ms).into(),
            m.outage.map(|outage| outage.missed_beyond as f64).into(),
            format!("{:016x}", m.digest).into(),
        ]);
    }
    table
}

/// Returns the summary as a table.
pub fn summary_table(lines: &[Summary]) -> Table {
    let mut table = Table::new(
        "summary",
        [
            "set",
            "case",
            "deadline_ms",
            "combo",
            "runs",
            "goodput_mbps",
            "goodput_p5_mbps",
            "missed",
            "overhead",
            "delay_p99_ms",
            "gap_ms",
            "paused",
            "notice_ms",
            "recover_ms",
            "missed_beyond",
            "ratio_to_4_of_9",
            "ratio_to_best_link_worst",
        ],
    );
    for line in lines {
        table.push([
            line.set.as_str().into(),
            line.case.name().into(),
            ms(line.deadline),
            line.label().into(),
            line.runs.into(),
            line.goodput_mbps.into(),
            line.goodput_p5_mbps.into(),
            line.missed.into(),
            line.overhead.into(),
            line.delay_p99_ms.into(),
            line.gap_ms.into(),
            line.paused.into(),
            line.notice_ms.into(),
            line.recover_ms.into(),
            line.missed_beyond.map(|count| count as f64).into(),
            line.ratio.into(),
            line.over_best_link.into(),
        ]);
    }
    table
}

/// Returns two plots per set, case and deadline: goodput against the missed share, with one mark
/// per combo, and the 5th percentile over the seconds.
pub fn plots(lines: &[Summary]) -> Vec<Plot> {
    let same =
        |a: &Summary, b: &Summary| (&a.set, a.case, a.deadline) == (&b.set, b.case, b.deadline);
    lines
        .chunk_by(same)
        .flat_map(|place| [against_missed(place), fifth_percentile(place)])
        .collect()
}

fn against_missed(place: &[Summary]) -> Plot {
    let (name, title) = names(place, "goodput");
    let marks = place.iter().map(|line| {
        // A log axis has no zero: a share below 0.01 % is drawn as 0.01 %.
        let missed = (line.missed * 100.0).max(0.01);
        Series::points(line.label(), vec![(missed, line.goodput_mbps)])
    });
    let x = Axis::log("units missed, %");
    Plot::new(&name, &title, x, Axis::linear("goodput on time, Mbit/s")).with_all(marks)
}

fn fifth_percentile(place: &[Summary]) -> Plot {
    let (name, title) = names(place, "p5");
    let bars =
        place.iter().map(|line| Series::bars(line.label(), vec![(0.0, line.goodput_p5_mbps)]));
    let x = Axis::categories("", [place[0].set.as_str()]);
    Plot::new(&name, &title, x, Axis::linear("goodput, 5th percentile of 1 s, Mbit/s"))
        .with_all(bars)
}

fn names(place: &[Summary], what: &str) -> (String, String) {
    let Summary { set, case, deadline, .. } = &place[0];
    let millis = deadline.as_millis();
    (format!("{what}-{set}-{case}-{millis}ms"), format!("{set}, {case}, deadline {millis} ms"))
}

fn ms(duration: Duration) -> Cell {
    (duration.as_secs_f64() * 1e3).into()
}
