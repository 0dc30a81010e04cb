//! Links whose way back is thin or slow: what returns over it is no reason to miss anything. 8 Mbit/s and
//! 15 ms out, 2 Mbit/s of media at most; a unit is worth something for 100 ms.

use tautline_scenario::measure::quantile;
use tautline_sim::link::{Config, Pair};
use tautline_units::{Bitrate, Duration};

use super::{Case, Measures, Row, Scenario, bounded, clean, missed};

pub(super) const ALL: &[Scenario] = &[
    Scenario {
        name: "way-back-128",
        title: "128 kbit/s back: none missed for it, commands within 60 ms",
        drive: |transport, seed| bounded(vec![thin(128); 1], transport, seed, 100),
        judge: |runs| vec![none_missed(runs), commands(runs, 60.0)],
        ..SHORT
    },
    Scenario {
        name: "way-back-128-4",
        title: "The same of four links",
        drive: |transport, seed| bounded(vec![thin(128); 4], transport, seed, 100),
        judge: |runs| vec![none_missed(runs), commands(runs, 60.0)],
        ..SHORT
    },
    Scenario {
        name: "way-back-64",
        title: "64 kbit/s back: none missed for it, commands within 100 ms",
        drive: |transport, seed| bounded(vec![thin(64); 1], transport, seed, 100),
        judge: |runs| vec![none_missed(runs), commands(runs, 100.0)],
        ..SHORT
    },
    Scenario {
        name: "way-back-64-4",
        title: "The same of four links, where copies of commands go over two",
        drive: |transport, seed| bounded(vec![thin(64); 4], transport, seed, 100),
        judge: |runs| vec![none_missed(runs), commands(runs, 100.0)],
        ..SHORT
    },
    Scenario {
        name: "way-back-slow",
        title: "15 ms out, 200 ms back on the only link: none missed for it",
        drive: |transport, seed| bounded(vec![slow(); 1], transport, seed, 100),
        judge: |runs| vec![none_missed(runs)],
        ..SHORT
    },
    Scenario {
        name: "way-back-slow-4",
        title: "The same of four links, all of them so",
        drive: |transport, seed| bounded(vec![slow(); 4], transport, seed, 100),
        judge: |runs| vec![none_missed(runs)],
        ..SHORT
    },
];

const SHORT: Scenario = Scenario {
    name: "",
    title: "",
    quick: (10, 1),
    full: (30, 20),
    case: Case::Plain,
    drive: |transport, seed| bounded(Vec::new(), transport, seed, 100),
    judge: |_| Vec::new(),
};

fn thin(kbps: u64) -> Pair {
    let down = Config::of_rate(Bitrate::from_kbps(kbps)).with_delay(Duration::from_millis(15));
    Pair { down, ..clean(8, 15) }
}

fn slow() -> Pair {
    let down = Config::of_rate(Bitrate::from_mbps(8)).with_delay(Duration::from_millis(200));
    Pair { down, ..clean(8, 15) }
}

fn none_missed(runs: &[Measures]) -> Row {
    missed("missed", runs).reference(0.0).within_absolute(0.0)
}

fn commands(runs: &[Measures], most_ms: f64) -> Row {
    let mut worst: Vec<f64> = runs.iter().map(|run| run.command_p99_ms).collect();
    let p99 = quantile(&mut worst, 1.0);
    let row = Row::new("99th percentile of the commands' delay, the worst run", "ms", p99);
    row.reference(most_ms).at_most(1.0)
}
