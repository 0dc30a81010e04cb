//! III.B: the two-state rate control over time: on a capacity step, on links with varying capacity,
//! and on recordings.

use anyhow::{Context, Result};
use tautline_scenario::policies::rate::Kind;
use tautline_sim::link::{Config, Pair, Step};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::latencies::Latencies;
use super::recorded::{self, Recorded};
use super::slices::{Came, Look, PER_SECOND, SOURCES, Stream, WARM_UP, modem};
use crate::experiment::{Experiment, Findings, Isolation, Mutation, Outcome, Row, Run, Table};
use crate::plot::{Axis, Plot, Series};
use crate::sweeps::links::set::Set;
use crate::workers;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    key: "lte-rate-control",
    title: "The rate control of two states: a step, wandering links, recordings",
    source: "[LTE] III.B",
    isolation: Isolation::Shared,
    mutation: Mutation::Named("raise"),
    run,
};

/// Runs each link alone under both rate controls, with a source that fills its budget, and shows
/// the granted rate over time.
fn run(run: &Run<'_>) -> Result<Outcome> {
    let Recorded { sets: recordings, none } = Recorded::singles(run)?;
    let names = ["step", "wandering"].map(String::from).into_iter();
    let names: Vec<String> = names.chain(recordings.iter().map(|set| set.name.clone())).collect();
    let jobs: Vec<(usize, Kind)> = (0..names.len())
        .flat_map(|link| [Kind::TwoState, Kind::DelayRate].map(|control| (link, control)))
        .collect();
    let (seed, others) = (run.seed, run.choose(20, recorded::SECONDS));
    let made = workers::each(
        workers::count(),
        &jobs,
        |(link, control)| {
            let (pair, capacity) = match *link {
                0 => (stepping(), None),
                1 => (modem(WANDERING, true), None),
                at => link_of(&recordings[at - 2], seed)?,
            };
            let seconds = if *link == 0 { STEP_SECONDS } else { others };
            let came = filling(pair, *control, seconds).send(seed)?;
            Ok(Ridden { name: names[*link].clone(), control: *control, came, capacity })
        },
        |done, ridden| run.progress(done as u64, jobs.len() as u64, &ridden.name),
    )?;
    let mut notes = vec![
        format!(
            "One link, {PER_SECOND} slices a second that fill the budget, uncoded, in virtual time. Step: {HIGH} \
             Mbit/s, {LOW} from second {DOWN_AT} on, {HIGH} again from second {UP_AT} on, 15 ms each way, a \
             queue of 1 MB. In addition to the paper's control the transport's own, which no row here is about."
        ),
        "The climb after the step up is faster than by the published constants, and is held against them: a link \
         that has fallen probes sooner and by half, the sixth deviation of the table."
            .to_owned(),
    ];
    notes.extend(none);
    Ok(Outcome::Measured(Findings {
        rows: rows(&made),
        tables: vec![summary(&made), over_time_table(&made), deviations()],
        plots: made.chunks(2).map(over_time).collect(),
        notes,
    }))
}

/// Capacity before and after the step, Mbit/s.
const HIGH: f64 = 30.0;
/// Capacity during the step, Mbit/s.
const LOW: f64 = 8.0;
/// Time of the step down, in seconds after the warm-up.
const DOWN_AT: u64 = 25;
/// Time of the step up, in seconds after the warm-up.
const UP_AT: u64 = 45;
const STEP_SECONDS: u64 = 80;
/// Mean capacity of the varying link, in bytes per second.
const WANDERING: f64 = 1.5e6;

/// Results of one link under one control.
struct Ridden {
    name: String,
    control: Kind,
    came: Came,
    /// Mean capacity of the recording, Mbit/s; `None` for a link that is not recorded.
    capacity: Option<f64>,
}

/// Returns a stream over one link whose source fills its budget.
fn filling(link: Pair, control: Kind, seconds: u64) -> Stream {
    let bytes = ByteCount::new(30_000);
    Stream { bytes, control, ..Stream::of_paper(vec![link], SOURCES, seconds) }
}

fn stepping() -> Pair {
    let at = |second: u64, rate_mbps| Step { at_s: (WARM_UP.as_secs() + second) as f64, rate_mbps };
    let of_rate =
        |mbps| Config::of_rate(Bitrate::from_mbps(mbps)).with_delay(Duration::from_millis(15));
    let steps = vec![at(DOWN_AT, LOW), at(UP_AT, HIGH)];
    Pair { up: Config { steps, queue_bytes: 1_000_000, ..of_rate(HIGH as u64) }, down: of_rate(10) }
}

fn link_of(set: &Set, seed: u64) -> Result<(Pair, Option<f64>)> {
    let pair = set.pairs(seed).pop().context("a recording is a link")?;
    let from = Instant::ZERO + WARM_UP;
    let span = Duration::from_secs(recorded::SECONDS);
    let capacity =
        set.capacity(seed, 0, from, from + span).context("a recording has a capacity")?;
    Ok((pair, Some(Bitrate::of(capacity, span).as_f64() / 1e6)))
}

fn rows(made: &[Ridden]) -> Vec<Row> {
    let looks = &made[0].came.looks;
    let before = looks.iter().filter(|look| look.second < DOWN_AT as f64);
    let climb = levels(&before.copied().collect::<Vec<_>>());
    let (raise, pause) = steps(&climb);
    let down = DOWN_AT as f64;
    let after = |from: f64, bar: &dyn Fn(&Look) -> bool| {
        let first = looks.iter().find(|look| look.second >= from && bar(look));
        first.map_or(f64::NAN, |look| look.second - from)
    };
    let settled = after(down, &|look| look.granted <= LOW);
    let climbed = after(UP_AT as f64, &|look| look.granted >= CLIMBED * HIGH);
    let mean = |from: f64, to: f64| {
        let within = looks.iter().filter(|look| (from..to).contains(&look.second));
        let (sum, count) =
            within.fold((0.0, 0), |(sum, count), look| (sum + look.granted, count + 1));
        sum / f64::from(count)
    };
    let by_published = (CLIMBED * HIGH / (0.9 * LOW)).ln() / 1.2_f64.ln() * PROBATION_SECONDS;
    let steady = "with more room than a fifth a probation succeeds";
    let queue = looks.iter().map(|look| look.queueing).fold(0.0, f64::max);
    let mut rows = vec![
        Row::new("climb: a probation that succeeds raises the rate by", "x", raise)
            .reference(1.2)
            .within(0.03)
            .because("the mean of three received samples of 100 ms"),
        Row::new("climb: from one probation to the next", "s", pause)
            .reference(PROBATION_SECONDS)
            .within(0.05)
            .because("reports come every 100 ms, and are looked at every 50"),
        Row::new(
            "granted in the 5 s before the step, of the capacity",
            "%",
            100.0 * mean(down - 5.0, down) / HIGH,
        )
        .asked(STEADY)
        .at_least(1.0)
        .because(steady),
        Row::new("step down: until no more is granted than the link carries", "s", settled)
            .reference(0.9)
            .within(0.3)
            .because("four reports until less arrives in the mean, half a second between two changes, and a trip"),
        Row::new(
            "granted in the 10 s before it ends, of the capacity",
            "%",
            100.0 * mean(UP_AT as f64 - 10.0, UP_AT as f64) / LOW,
        )
        .asked(STEADY)
        .at_least(1.0)
        .because(steady),
        Row::new("largest queue that is seen in the link", "ms", queue),
        Row::new(format!("step up: until {CLIMBED} of the capacity are granted"), "s", climbed)
            .reference(by_published)
            .at_most(1.0)
            .because("by the published constants; a link that has fallen may only climb faster")
            .note("From .9 of what the step left, a fifth more every 2.3 s."),
    ];
    for ridden in made {
        rows.extend(ridden.rows());
    }
    rows
}

impl Ridden {
    fn title(&self) -> String {
        let control: &str = self.control.into();
        format!("{}, {control}", self.name)
    }

    fn rows(&self) -> Vec<Row> {
        let latencies = Latencies::new(self.came.latencies.clone());
        vec![
            Row::new(
                format!("{}: slices carried", self.title()),
                "Mbit/s",
                self.came.rate.as_f64() / 1e6,
            ),
            Row::new(format!("{}: latency, p95", self.title()), "ms", latencies.quantile(0.95)),
            Row::new(format!("{}: lost", self.title()), "%", 100.0 * self.came.lost_share()),
        ]
    }
}

/// Waiting time of [LLMLNCL] before a probation, plus its eight reports.
const PROBATION_SECONDS: f64 = 2.3;
/// Percentage of the capacity expected to be granted between probations: a probation raises the
/// rate by a fifth.
const STEADY: f64 = 100.0 / 1.2;
/// Share of the capacity whose grant ends the climb after the step up.
const CLIMBED: f64 = 0.8;

/// Returns the grants that lasted for at least a second, each as (start in s, Mbit/s): the rates
/// between probations.
fn levels(looks: &[Look]) -> Vec<(f64, f64)> {
    let parts = looks.chunk_by(|a, b| a.granted == b.granted);
    let lasting = parts.filter(|part| part[part.len() - 1].second - part[0].second >= 1.0);
    lasting.map(|part| (part[0].second, part[0].granted)).collect()
}

/// Returns the median ratio of two consecutive levels of which the second is higher, and the median
/// time in s between their starts; NaN without a rise.
fn steps(levels: &[(f64, f64)]) -> (f64, f64) {
    let rising = levels.windows(2).filter(|pair| pair[1].1 > 1.01 * pair[0].1);
    let (raises, pauses): (Vec<f64>, Vec<f64>) =
        rising.map(|pair| (pair[1].1 / pair[0].1, pair[1].0 - pair[0].0)).unzip();
    if raises.is_empty() {
        return (f64::NAN, f64::NAN);
    }
    (Latencies::new(raises).quantile(0.5), Latencies::new(pauses).quantile(0.5))
}

fn summary(made: &[Ridden]) -> Table {
    let columns = [
        "link",
        "control",
        "carried_mbps",
        "capacity_mbps",
        "p50_ms",
        "p95_ms",
        "later_than_100_ms",
        "lost",
    ];
    let mut table = Table::new("summary", columns).shown("Each link under either control");
    for ridden in made {
        let latencies = Latencies::new(ridden.came.latencies.clone());
        let control: &str = ridden.control.into();
        table.push([
            ridden.name.as_str().into(),
            control.into(),
            (ridden.came.rate.as_f64() / 1e6).into(),
            ridden.capacity.unwrap_or(f64::NAN).into(),
            latencies.quantile(0.5).into(),
            latencies.quantile(0.95).into(),
            (1.0 - latencies.share_below(100.0)).into(),
            ridden.came.lost_share().into(),
        ]);
    }
    table
}

fn over_time_table(made: &[Ridden]) -> Table {
    let columns = ["link", "control", "second", "granted_mbps", "received_mbps", "queue_ms"];
    let mut table = Table::new("rate", columns);
    for ridden in made {
        let control: &str = ridden.control.into();
        for look in &ridden.came.looks {
            table.push([
                ridden.name.as_str().into(),
                control.into(),
                look.second.into(),
                look.granted.into(),
                look.received.into(),
                look.queueing.into(),
            ]);
        }
    }
    table
}

fn over_time(both: &[Ridden]) -> Plot {
    let name = &both[0].name;
    let line = |ridden: &Ridden, what: &str, of: &dyn Fn(&Look) -> f64| {
        let control: &str = ridden.control.into();
        let points = ridden.came.looks.iter().map(|look| (look.second, of(look)));
        Series::line(format!("{control}, {what}"), points.collect())
    };
    let title = format!("Granted rate of the link: {name}");
    Plot::new(&format!("rate-{name}"), &title, Axis::linear("s"), Axis::linear("Mbit/s"))
        .with(line(&both[0], "granted", &|look| look.granted))
        .with(line(&both[0], "arrives", &|look| look.received))
        .with(line(&both[1], "granted", &|look| look.granted))
}

/// Returns a table of the control's deviations from the published code.
fn deviations() -> Table {
    let mut table = Table::new("deviations", ["number", "deviation"]).shown("Where it deviates");
    for (number, deviation) in DEVIATIONS.iter().enumerate() {
        table.push([(number + 1).into(), (*deviation).into()]);
    }
    table
}

/// Deviations of the two-state control from the published code, the same list as in
/// `tautline_scenario::policies::rate::TwoState`.
const DEVIATIONS: [&str; 8] = [
    "sent and received samples are of the same datagrams, not of the same 100 ms",
    "a link that sends less than .7 of its grant does not probe",
    "a link that sends less than the floor never falls, one that sends less than .7 of its grant only while a queue stands",
    "padding fills the grant while the link probes",
    "a stall of the link begins the samples anew, and lowers nothing",
    "a link below .6 of its rate of the last 20 s probes after .5 s, and once that has shown room by half",
    "a probation is aborted below half the floor, not below the floor",
    "while a queue of 80 ms stands there is no probation, and the rate falls if less than .7 of it arrives",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_what_lasts_and_steps_lie_between_them() {
        let looks: Vec<Look> = (0..120)
            .map(|at| {
                let second = f64::from(at) / 20.0;
                // A level of two seconds, then a short raise and a short fall.
                let granted = match (at / 50, at % 50) {
                    (turn, 0..40) => 8.0 * 1.2_f64.powi(turn),
                    (turn, 40..45) => 9.6 * 1.2_f64.powi(turn),
                    (turn, _) => 6.4 * 1.2_f64.powi(turn),
                };
                Look { second, granted, received: 0.0, queueing: 0.0 }
            })
            .collect();
        let levels = levels(&looks);
        assert_eq!(levels.len(), 2, "{levels:?}");
        let (raise, pause) = steps(&levels);
        assert!((raise - 1.2).abs() < 1e-9 && (pause - 2.5).abs() < 1e-9, "{raise} {pause}");
        assert!(steps(&levels[..1]).0.is_nan());
    }

    #[test]
    fn every_deviation_that_the_control_names_is_listed() {
        let control = include_str!("../../../../scenario/src/policies/rate/two_state.rs");
        let named = control.lines().filter(|line| line.starts_with("/// - ")).count();
        assert_eq!(named, DEVIATIONS.len());
    }
}
