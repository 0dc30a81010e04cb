//! Links that vary, lose, reorder, or carry cross traffic: requirements for one link of 10 Mbit/s,
//! 15 ms each way, alone and with others. The source fills its budget; the deadline of a unit is
//! 100 ms.

use tautline_sim::link::{Config, Cubic, Jitter, Pair, Policer, Step};
use tautline_sim::preset::{Carrier, Preset};
use tautline_transport as transport;
use tautline_transport::rate::Cause;
use tautline_units::{Bitrate, Duration};

use super::{Case, Drive, Measures, Row, Scenario, clean, missed, quantile};
use crate::sweeps::links::trail::WARM_UP;

pub(in crate::sweeps::links) const ALL: &[Scenario] = &[
    Scenario {
        name: "dip",
        title: "10 Mbit/s, 2 s at 1, then 10: a gap under 250 ms, 80 % within 3 s",
        drive: |transport, seed| filled(transport, seed, vec![dipping(seed)]),
        judge: |runs| vec![gap(runs, 250.0), recovered(runs)],
        ..SHORT
    },
    Scenario {
        name: "dip-2",
        title: "The same next to one of 10 Mbit/s",
        drive: |transport, seed| filled(transport, seed, vec![dipping(seed), even()]),
        judge: |runs| vec![gap(runs, 250.0), recovered(runs)],
        ..SHORT
    },
    Scenario {
        name: "dip-4",
        title: "The same of four, all at once",
        drive: |transport, seed| filled(transport, seed, vec![dipping(seed); 4]),
        judge: |runs| vec![gap(runs, 250.0), recovered(runs)],
        ..SHORT
    },
    Scenario {
        name: "turns",
        title: "10 and 2 Mbit/s in turns of 2 s: at least 4 Mbit/s, under 5 % missed",
        drive: |transport, seed| filled(transport, seed, vec![turning(seed, 0.0)]),
        judge: |runs| vec![carried(runs, 4.0), missed_of_all(runs, 5.0)],
        ..SHORT
    },
    Scenario {
        name: "turns-2",
        title: "Two such, one at 10 while the other is at 2: no less than one alone",
        drive: |transport, seed| {
            filled(transport, seed, vec![turning(seed, 0.0), turning(seed, 2.0)])
        },
        judge: |runs| vec![carried(runs, 4.0), missed_of_all(runs, 5.0)],
        ..SHORT
    },
    Scenario {
        name: "turns-4",
        title: "Four such, each a second after the one before it: no less than one alone",
        drive: |transport, seed| {
            let links = [0.0, 1.0, 2.0, 3.0].map(|late| turning(seed, late));
            filled(transport, seed, links.to_vec())
        },
        judge: |runs| vec![carried(runs, 4.0), missed_of_all(runs, 5.0)],
        ..SHORT
    },
    Scenario {
        name: "cubic-32k",
        title: "Next to a CUBIC flow in a queue of 32 kB: a quarter of the link, no gap of 1 s",
        drive: |transport, seed| filled(transport, seed, vec![shared(seed, 32_000)]),
        judge: |runs| vec![carried(runs, 2.5), gap(runs, 1_000.0), foreign(runs)],
        ..LONG
    },
    Scenario {
        name: "cubic-128k",
        title: "The same in a queue of 128 kB, 102 ms of the link",
        drive: |transport, seed| filled(transport, seed, vec![shared(seed, 128_000)]),
        judge: |runs| vec![carried(runs, 2.5), gap(runs, 1_000.0), foreign(runs)],
        ..LONG
    },
    Scenario {
        name: "cubic-1m",
        title: "The same in a queue of 1 MB: it is said that the queue is another's",
        drive: |transport, seed| filled(transport, seed, vec![shared(seed, 1_000_000)]),
        judge: |runs| vec![foreign(runs).reference(50.0).at_least(1.0), carried_shown(runs)],
        ..LONG
    },
    Scenario {
        name: "cubic-32k-2",
        title: "A CUBIC flow in a queue of 32 kB on one of two links: as that link alone",
        drive: |transport, seed| filled(transport, seed, vec![shared(seed, 32_000), even()]),
        judge: |runs| vec![carried(runs, 2.5), gap(runs, 1_000.0)],
        ..LONG
    },
    Scenario {
        name: "cubic-128k-2",
        title: "The same in a queue of 128 kB: what the other alone carries",
        drive: |transport, seed| filled(transport, seed, vec![shared(seed, 128_000), even()]),
        judge: |runs| vec![carried(runs, 9.0), gap(runs, 1_000.0)],
        ..LONG
    },
    Scenario {
        name: "cubic-128k-4",
        title: "Four links, each with such a queue: no less than one alone",
        drive: |transport, seed| filled(transport, seed, vec![shared(seed, 128_000); 4]),
        judge: |runs| vec![carried(runs, 2.5), gap(runs, 1_000.0)],
        ..LONG
    },
    Scenario {
        name: "cubic-1m-2",
        title: "A queue of 1 MB on one of two links: what the other alone carries",
        drive: |transport, seed| filled(transport, seed, vec![shared(seed, 1_000_000), even()]),
        judge: |runs| vec![carried(runs, 9.0), gap(runs, 1_000.0)],
        ..LONG
    },
    Scenario {
        name: "policer-4",
        title: "A policer of 4 Mbit/s: under 3 % lost, 80 % of the rate",
        drive: |transport, seed| filled(transport, seed, vec![policed(4.0)]),
        judge: |runs| vec![dropped(runs), carried(runs, 3.2)],
        ..SHORT
    },
    Scenario {
        name: "policer-4-pictures",
        title: "The same for 15 units a second, whole pictures, each worth something for 200 ms",
        drive: |transport, seed| {
            let mut drive = filled(transport, seed, vec![policed(4.0)]);
            drive.units_per_second = 15;
            drive.deadline = Duration::from_millis(200);
            drive
        },
        judge: |runs| vec![dropped(runs), carried(runs, 3.2)],
        ..SHORT
    },
    Scenario {
        name: "policer-1",
        title: "A policer of 1 Mbit/s: under 3 % lost, 80 % of the rate",
        drive: |transport, seed| filled(transport, seed, vec![policed(1.0)]),
        judge: |runs| vec![dropped(runs), carried(runs, 0.8)],
        ..SHORT
    },
    Scenario {
        name: "policer-4-2",
        title: "Two policers of 4 Mbit/s: under 3 % lost, no less than one alone",
        drive: |transport, seed| filled(transport, seed, vec![policed(4.0); 2]),
        judge: |runs| vec![dropped(runs), carried(runs, 3.2)],
        ..SHORT
    },
    Scenario {
        name: "policer-4-4",
        title: "Four of them",
        drive: |transport, seed| filled(transport, seed, vec![policed(4.0); 4]),
        judge: |runs| vec![dropped(runs), carried(runs, 3.2)],
        ..SHORT
    },
    Scenario {
        name: "policer-1-2",
        title: "Two policers of 1 Mbit/s: under 3 % lost, no less than is asked of one",
        drive: |transport, seed| filled(transport, seed, vec![policed(1.0); 2]),
        judge: |runs| vec![dropped(runs), carried(runs, 0.8)],
        ..SHORT
    },
    Scenario {
        name: "both-lose-10",
        title: "10 % of all lost both ways: at least 7 Mbit/s",
        drive: |transport, seed| filled(transport, seed, vec![losing(0.1)]),
        judge: |runs| vec![carried(runs, 7.0), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "both-lose-30",
        title: "30 % of all lost both ways: at least 3 Mbit/s",
        drive: |transport, seed| filled(transport, seed, vec![losing(0.3)]),
        judge: |runs| vec![carried(runs, 3.0), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "both-lose-10-2",
        title: "A link that loses 10 % both ways next to another: what the other alone carries",
        drive: |transport, seed| filled(transport, seed, vec![losing(0.1), even()]),
        judge: |runs| vec![carried(runs, 9.0), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "both-lose-30-4",
        title: "Four links that lose 30 % both ways: no less than is asked of one",
        drive: |transport, seed| filled(transport, seed, vec![losing(0.3); 4]),
        judge: |runs| vec![carried(runs, 3.0), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "reordering",
        title: "Each packet's delay drawn anew, sigma 50 ms: no freeze, half of what a clean link carries",
        drive: |transport, seed| filled(transport, seed, vec![reordering(1.0)]),
        judge: |runs| vec![carried(runs, 4.0), frozen(runs), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "reordering-slow",
        title: "The same where delays wander in 50 ms",
        drive: |transport, seed| filled(transport, seed, vec![reordering(50.0)]),
        judge: |runs| vec![carried(runs, 4.0), frozen(runs), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "reordering-2",
        title: "A link that reorders next to another: no freeze, what the other alone carries",
        drive: |transport, seed| filled(transport, seed, vec![reordering(1.0), even()]),
        judge: |runs| vec![carried(runs, 9.0), frozen(runs), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "reordering-4",
        title: "Four that reorder: no freeze, no less than is asked of one",
        drive: |transport, seed| filled(transport, seed, vec![reordering(1.0); 4]),
        judge: |runs| vec![carried(runs, 4.0), frozen(runs), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "10-and-2",
        title: "10 and 2 Mbit/s, clean: at least 9, what the larger alone carries",
        drive: |transport, seed| filled(transport, seed, vec![even(), clean(2, 15)]),
        judge: |runs| vec![carried(runs, 9.0), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "way-back-128k",
        title: "A way back of 128 kbit/s: none missed for it",
        drive: |transport, seed| filled(transport, seed, vec![back(128, 15)]),
        judge: |runs| vec![missed_for_it(runs), carried_shown(runs)],
        ..SHORT
    },
    Scenario {
        name: "way-back-128k-4",
        title: "Four links, each with a way back of 128 kbit/s: none missed for it",
        drive: |transport, seed| filled(transport, seed, vec![back(128, 15); 4]),
        judge: |runs| vec![missed_for_it(runs), carried_shown(runs)],
        ..SHORT
    },
    Scenario {
        name: "way-back-200ms",
        title: "The only link's way back takes 200 ms, its way out 15: none missed for it",
        drive: |transport, seed| filled(transport, seed, vec![back(10_000, 200)]),
        judge: |runs| vec![missed_for_it(runs), carried_shown(runs)],
        ..SHORT
    },
    Scenario {
        name: "way-back-200ms-2",
        title: "Such a way back next to a link with one of 15: none missed for it",
        drive: |transport, seed| filled(transport, seed, vec![back(10_000, 200), even()]),
        judge: |runs| vec![missed_for_it(runs), carried_shown(runs)],
        ..SHORT
    },
    Scenario {
        name: "pictures",
        title: "15 units a second, whole pictures, each worth something for 100 ms: at least 6 Mbit/s",
        drive: |transport, seed| {
            let mut drive = filled(transport, seed, vec![even()]);
            drive.units_per_second = 15;
            drive
        },
        judge: |runs| vec![carried(runs, 6.0), missed("missed", runs)],
        ..SHORT
    },
    Scenario {
        name: "miss-target-0.5",
        title: "Two LTE links while driving, a target of .5 % missed: within 1.5 times of it",
        drive: |transport, seed| targeting(transport, seed, 0.005),
        judge: |runs| [&on_target(runs, 0.5)[..], &[carried_shown(runs)]].concat(),
        ..LONG
    },
    Scenario {
        name: "miss-target-1",
        title: "The same with a target of 1 %",
        drive: |transport, seed| targeting(transport, seed, 0.01),
        judge: |runs| [&on_target(runs, 1.0)[..], &[carried_shown(runs)]].concat(),
        ..LONG
    },
];

pub(super) const SHORT: Scenario = Scenario {
    name: "",
    title: "",
    quick: (20, 1),
    full: (30, 10),
    case: Case::Plain,
    drive: |transport, seed| filled(transport, seed, vec![even()]),
    against: None,
    judge: |_| Vec::new(),
};
pub(super) const LONG: Scenario = Scenario { quick: (30, 1), full: (60, 10), ..SHORT };

pub(super) fn filled(transport: transport::Config, seed: u64, links: Vec<Pair>) -> Drive {
    let mut drive = Drive::new(links, transport, seed);
    drive.deadline = Duration::from_millis(100);
    drive
}

pub(super) fn even() -> Pair {
    clean(10, 15)
}

pub(super) fn up(change: impl FnOnce(&mut Config)) -> Pair {
    let mut pair = even();
    change(&mut pair.up);
    pair
}

/// Returns a time shift of less than 0.1 s that depends on the seed, which varies the phase of
/// reports and packets.
fn shift(seed: u64) -> f64 {
    (seed * 13 % 100) as f64 / 1e3
}

fn dipping(seed: u64) -> Pair {
    let at = DIP_AT + shift(seed);
    let step = |at_s, rate_mbps| Step { at_s, rate_mbps };
    up(|link| link.steps = vec![step(at, 1.0), step(at + DIP, 10.0)])
}

fn turning(seed: u64, late: f64) -> Pair {
    let step = |turn: u32| Step {
        at_s: f64::from(turn) * 2.0 + late + shift(seed),
        rate_mbps: if turn.is_multiple_of(2) { 2.0 } else { 10.0 },
    };
    up(|link| link.steps = (1..200).map(step).collect())
}

pub(super) fn shared(seed: u64, queue_bytes: u64) -> Pair {
    // It starts before the measurement.
    let cubic = Cubic { rtt_ms: 30.0, from_s: 1.0 + shift(seed), until_s: None };
    up(|link| (link.queue_bytes, link.cubic) = (queue_bytes, Some(cubic)))
}

/// Returns a link with a policer whose bucket holds a tenth of a second.
fn policed(rate_mbps: f64) -> Pair {
    let burst_bytes = (rate_mbps * 12_500.0) as u64;
    up(|link| link.policer = Some(Policer { rate_mbps, burst_bytes }))
}

fn losing(loss: f64) -> Pair {
    let mut pair = even();
    (pair.up.loss, pair.down.loss) = (loss, loss);
    pair
}

fn reordering(tau_ms: f64) -> Pair {
    up(|link| (link.jitter, link.reorder) = (Some(Jitter { sigma_ms: 50.0, tau_ms }), true))
}

/// Returns a link with a return path of `kbps` kbit/s and `millis` ms.
fn back(kbps: u64, millis: u64) -> Pair {
    let down = Config::of_rate(Bitrate::from_kbps(kbps)).with_delay(Duration::from_millis(millis));
    Pair { down, ..even() }
}

fn targeting(mut transport: transport::Config, seed: u64, misses: f64) -> Drive {
    transport.protect.miss_target = misses;
    let links = [Carrier::A, Carrier::B].into_iter().zip(seed * 4..);
    let links = links.map(|(carrier, seed)| Preset::LteDriving.pair_of(carrier, seed));
    filled(transport, seed, links.collect())
}

fn gap(runs: &[Measures], bar: f64) -> Row {
    let longest = runs.iter().map(|run| run.gap_ms).fold(0.0, f64::max);
    Row::new("longest gap, the worst run", "ms", longest).reference(bar).at_most(1.0)
}

/// Returns a row that judges the goodput of the second that begins 3 s after the end of the dip,
/// relative to that before the dip, in the worst run.
fn recovered(runs: &[Measures]) -> Row {
    let second = |at: f64| (at - WARM_UP.as_secs_f64()) as usize;
    let share = |run: &Measures| {
        let seconds = &run.goodput_by_second_mbps;
        let before = &seconds[second(DIP_AT - 4.0)..second(DIP_AT)];
        let before = before.iter().sum::<f64>() / before.len() as f64;
        seconds[second(DIP_AT + DIP + 3.0)] / before
    };
    let least = runs.iter().map(share).fold(f64::INFINITY, f64::min);
    let row = Row::new("carried 3 s later, of what was before, the worst run", "%", least * 100.0);
    row.reference(80.0).at_least(1.0)
}

fn carried_shown(runs: &[Measures]) -> Row {
    let mut rates: Vec<f64> = runs.iter().map(|run| run.goodput_mbps).collect();
    Row::new("in time, the median run", "Mbit/s", quantile(&mut rates, 0.5))
}

pub(super) fn carried(runs: &[Measures], bar: f64) -> Row {
    carried_shown(runs).reference(bar).at_least(1.0)
}

fn missed_of_all(runs: &[Measures], bar: f64) -> Row {
    missed("missed", runs).reference(bar).at_most(1.0)
}

fn missed_for_it(runs: &[Measures]) -> Row {
    missed("missed", runs).reference(0.0).within_absolute(0.0)
}

/// Returns rows that judge the share of missed units over all runs: at most 1.5 times the target of
/// `percent`, and at least the target divided by 1.5, because too few misses mean an unused budget.
fn on_target(runs: &[Measures], percent: f64) -> [Row; 2] {
    let most = missed("missed, 1.5 times the target at most", runs).reference(percent).at_most(1.5);
    let least = missed("missed, a 1.5th of it at least", runs).reference(percent);
    [most, least.at_least(1.0 / 1.5)]
}

fn dropped(runs: &[Measures]) -> Row {
    let share = runs.iter().map(|run| run.dropped).fold(0.0, f64::max);
    let row = Row::new("datagrams dropped by the links, the worst run", "%", share * 100.0);
    row.reference(3.0).at_most(1.0)
}

fn foreign(runs: &[Measures]) -> Row {
    let share = |run: &Measures| run.causes.get(&Cause::ForeignQueue).copied().unwrap_or(0.0);
    let least = runs.iter().map(share).fold(1.0, f64::min);
    Row::new("time in which the queue is said to be another's, least", "%", least * 100.0)
}

fn frozen(runs: &[Measures]) -> Row {
    let share = runs.iter().map(|run| run.frozen).fold(0.0, f64::max);
    let row = Row::new("time in which the picture stands still, the worst run", "%", share * 100.0);
    row.reference(0.0).within_absolute(0.0)
}

/// Start of the dip of the link's capacity, in s from the start of the run, before the seed's
/// shift.
const DIP_AT: f64 = 8.0;
/// Length of the dip of the link's capacity, s.
const DIP: f64 = 2.0;
