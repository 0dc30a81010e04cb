//! Links with ECN marking: throughput with an L4S queue of 1 ms on 10 Mbit/s, 15 ms each way,
//! compared to the same without marks.

use tautline_sim::link::{L4s, Pair};
use tautline_transport as transport;
use tautline_transport::rate::Cause;

use super::bad_day::{LONG, SHORT, carried, even, filled, shared, up};
use super::{Drive, Measures, Row, Scenario, quantile};

pub(in crate::sweeps::links) const ALL: &[Scenario] = &[
    Scenario {
        name: "l4s",
        title: "An L4S queue of 1 ms: a third of the queueing, 90 % of what is carried without marks",
        drive: |transport, seed| followed(transport, seed, vec![marking()]),
        against: Some(|transport, seed| followed(transport, seed, vec![even()])),
        judge,
        ..SHORT
    },
    Scenario {
        name: "l4s-2",
        title: "The same next to a link that does not mark",
        drive: |transport, seed| followed(transport, seed, vec![marking(), even()]),
        against: Some(|transport, seed| followed(transport, seed, vec![even(), even()])),
        judge,
        ..SHORT
    },
    Scenario {
        name: "l4s-pictures",
        title: "The same for 15 units a second, whole pictures, which leave at once",
        drive: |transport, seed| pictures(transport, seed, marking()),
        against: Some(|transport, seed| pictures(transport, seed, even())),
        judge,
        ..SHORT
    },
    Scenario {
        name: "l4s-cubic-32k",
        title: "A queue of 32 kB that marks and that a CUBIC flow fills: a quarter of the link",
        drive: |transport, seed| {
            let mut link = shared(seed, 32_000);
            link.up.l4s = Some(L4s::default());
            filled(transport, seed, vec![link])
        },
        judge: |runs| vec![carried(runs, 2.5)],
        ..LONG
    },
];

fn pictures(transport: transport::Config, seed: u64, link: Pair) -> Drive {
    Drive { units_per_second: 15, ..followed(transport, seed, vec![link]) }
}

fn followed(transport: transport::Config, seed: u64, links: Vec<Pair>) -> Drive {
    Drive { follows: true, ..filled(transport, seed, links) }
}

fn marking() -> Pair {
    up(|link| link.l4s = Some(L4s::default()))
}

/// Returns rows that judge the first half of the runs, on the marking link, against the second
/// half, on the link without marks.
fn judge(runs: &[Measures]) -> Vec<Row> {
    let (marked, plain) = runs.split_at(runs.len() / 2);
    let worst = |runs: &[Measures]| {
        runs.iter().filter_map(|run| run.queueing_p99_ms.first()).copied().fold(0.0, f64::max)
    };
    let median = |runs: &[Measures]| {
        let mut rates: Vec<f64> = runs.iter().map(|run| run.goodput_mbps).collect();
        quantile(&mut rates, 0.5)
    };
    let most = |of: fn(&Measures) -> f64| marked.iter().map(of).fold(0.0, f64::max) * 100.0;
    let queueing = Row::new("99th percentile of the queueing, the worst run", "ms", worst(marked));
    let carried = Row::new("in time, the median run", "Mbit/s", median(marked));
    let dropped = Row::new("datagrams dropped, the worst run", "%", most(|run| run.dropped));
    let caused = |run: &Measures| run.causes.get(&Cause::Marks).copied().unwrap_or(0.0);
    vec![
        queueing.reference(worst(plain)).at_most(1.0 / 3.0),
        carried.reference(median(plain)).at_least(0.9),
        dropped.reference(0.0).within_absolute(0.0),
        Row::new("datagrams marked, the worst run", "%", most(|run| run.marked)),
        Row::new("time in which marks are why the rate is what it is, most", "%", most(caused)),
    ]
}
