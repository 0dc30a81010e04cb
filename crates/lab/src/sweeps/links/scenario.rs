//! A scenario with a requirement, and the scenarios on roads.

pub(super) mod bad_day;
pub(super) mod l4s;

use anyhow::Result;
use tautline_scenario::measure::quantile;
use tautline_sim::link::{Config, Pair};
use tautline_sim::preset::{Carrier, Preset};
use tautline_transport as transport;
use tautline_units::{Bitrate, Duration};

use super::case::Case;
use super::drive::Drive;
use super::measure::Measures;
use crate::experiment::Row;

/// One scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Name on the command line.
    pub name: &'static str,
    /// Description of the links and the requirement.
    pub title: &'static str,
    /// Length of each run in seconds and number of seeds, in quick form.
    quick: (u64, u64),
    /// Length of each run in seconds and number of seeds, in full.
    full: (u64, u64),
    /// Impairment of the links.
    case: Case,
    drive: fn(transport::Config, u64) -> Drive,
    /// Second configuration for the same seeds; its runs follow the others in the list to judge.
    against: Option<fn(transport::Config, u64) -> Drive>,
    judge: fn(&[Measures]) -> Vec<Row>,
}

impl Scenario {
    /// Performs the scenario's runs from seed `first` on, with sessions configured as `transport`,
    /// and returns rows that judge them. `count` overrides the default number of seeds.
    ///
    /// # Errors
    /// For an invalid transport configuration.
    pub fn run(
        &self,
        transport: &transport::Config,
        first: u64,
        count: Option<u64>,
        quick: bool,
    ) -> Result<Vec<Row>> {
        let (seconds, usual) = if quick { self.quick } else { self.full };
        let seeds = count.unwrap_or(usual);
        let mut runs = Vec::new();
        for make in [Some(self.drive), self.against].into_iter().flatten() {
            for seed in (first..).take(seeds as usize) {
                let mut drive = make(transport.clone(), seed);
                drive.length = Duration::from_secs(seconds);
                self.case.befall(&mut drive);
                runs.push(drive.run()?);
            }
        }
        Ok((self.judge)(&runs))
    }
}

/// Scenarios with one link unless stated otherwise, of 8 Mbit/s, with at most 2 Mbit/s of media.
pub(super) const ROADS: &[Scenario] = &[
    Scenario {
        name: "loss-10",
        title: "RTT 30 ms, 10 % loss: under 0.1 % of the units later than 150 ms",
        quick: (8, 1),
        full: (60, 10),
        case: Case::Plain,
        drive: |transport, seed| lossy(transport, seed, 15, 0.1, 150),
        against: None,
        judge: |runs| vec![missed("later than 150 ms or never", runs).reference(0.1).at_most(1.0)],
    },
    Scenario {
        name: "loss-30",
        title: "RTT 30 ms, 30 % loss: under 1 % of the units later than 150 ms",
        quick: (8, 1),
        full: (60, 10),
        case: Case::Plain,
        drive: |transport, seed| lossy(transport, seed, 15, 0.3, 150),
        against: None,
        judge: |runs| vec![missed("later than 150 ms or never", runs).reference(1.0).at_most(1.0)],
    },
    Scenario {
        name: "far-loss-6",
        title: "RTT 240 ms, 6 % loss: frozen for at most 0.5 s in 50 s",
        quick: (12, 1),
        full: (52, 10),
        case: Case::Plain,
        drive: |transport, seed| lossy(transport, seed, 120, 0.06, 400),
        against: None,
        judge: |runs| {
            let mut worst: Vec<f64> = runs.iter().map(|run| run.frozen * 50.0).collect();
            let frozen = quantile(&mut worst, 1.0);
            let row = Row::new("frozen in 50 s, the worst run", "s", frozen);
            vec![row.reference(0.5).at_most(1.0), missed("later than 400 ms or never", runs)]
        },
    },
    Scenario {
        name: "swing",
        title: "One of two links swings from 100 to 1200 ms: the other is not dragged along",
        quick: (10, 1),
        full: (60, 10),
        case: Case::Swing,
        drive: |transport, seed| {
            let links = vec![clean(8, 25), clean(8, 25)];
            bounded(links, transport, seed, 150)
        },
        against: None,
        judge: |runs| {
            let p99 = runs.iter().map(|run| run.delay_ms[2]).fold(0.0, f64::max);
            let row = Row::new("99th percentile of the delay, the worst run", "ms", p99);
            // The good link's own 25 ms, and the same again for a slice's packets in sequence.
            vec![
                row.reference(50.0).at_most(1.0),
                missed("later than 150 ms or never", runs).reference(0.1).at_most(1.0),
            ]
        },
    },
    Scenario {
        name: "blackout",
        title: "One of four LTE links is cut: no unit missed beyond one deadline",
        quick: (8, 2),
        full: (30, 20),
        case: Case::Blackout,
        drive: |transport, seed| {
            let links = (0..4).map(|link| Preset::Lte.pair_of(Carrier::A, seed * 4 + link));
            bounded(links.collect(), transport, seed, 100)
        },
        against: None,
        judge: |runs| {
            let (beyond, notice) = outages(runs);
            vec![beyond.reference(0.0).within_absolute(0.0), notice]
        },
    },
    Scenario {
        name: "blackout-driving",
        title: "The same while driving: the other three stall of themselves as well",
        quick: (8, 2),
        full: (30, 20),
        case: Case::Blackout,
        drive: |transport, seed| {
            let links = (0..4).map(|link| Preset::LteDriving.pair_of(Carrier::A, seed * 4 + link));
            bounded(links.collect(), transport, seed, 100)
        },
        against: None,
        judge: |runs| {
            let (beyond, notice) = outages(runs);
            vec![beyond, notice, missed("missed in all", runs)]
        },
    },
];

/// Returns rows with the units missed more than one deadline after a cut, and with the time to
/// detect the cut, as the median over the runs that used the link.
fn outages(runs: &[Measures]) -> (Row, Row) {
    let outages = || runs.iter().filter_map(|run| run.outage);
    let beyond: u64 = outages().map(|outage| outage.missed_beyond).sum();
    let mut notice: Vec<f64> =
        outages().map(|outage| outage.notice_ms).filter(|ms| !ms.is_nan()).collect();
    (
        Row::new("units missed beyond one deadline, all runs", "", beyond as f64),
        Row::new("time to notice, median", "ms", quantile(&mut notice, 0.5)),
    )
}

fn lossy(transport: transport::Config, seed: u64, delay: u64, loss: f64, deadline: u64) -> Drive {
    let mut link = clean(8, delay);
    (link.up.loss, link.down.loss) = (loss, loss);
    bounded(vec![link], transport, seed, deadline)
}

fn bounded(links: Vec<Pair>, transport: transport::Config, seed: u64, deadline: u64) -> Drive {
    let mut drive = Drive::new(links, transport, seed);
    drive.deadline = Duration::from_millis(deadline);
    drive.rate_max = Bitrate::from_mbps(2);
    drive
}

fn clean(mbps: u64, delay: u64) -> Pair {
    let config = Config::of_rate(Bitrate::from_mbps(mbps));
    Pair::symmetric(config.with_delay(Duration::from_millis(delay)))
}

fn missed(what: &str, runs: &[Measures]) -> Row {
    let offered: u64 = runs.iter().map(|run| run.offered).sum();
    let missed: f64 = runs.iter().map(|run| run.missed * run.offered as f64).sum();
    Row::new(format!("units {what}"), "%", missed / offered as f64 * 100.0)
}
