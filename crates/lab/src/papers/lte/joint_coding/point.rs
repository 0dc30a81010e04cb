//! Streams sent over two modems, and their results.

use anyhow::{Context, Result};
use strum::VariantArray;
use tautline_scenario::policies::rate;
use tautline_sim::link::Pair;
use tautline_units::Bitrate;

use crate::experiment::Run;
use crate::papers::lte::latencies::Latencies;
use crate::papers::lte::slices::{Came, PER_SECOND, SOURCES, Stream, modem};
use crate::sweeps::links::set::Set;
use crate::workers;

/// Links, and their rate control.
pub(super) struct Load {
    pub(super) control: rate::Kind,
    pub(super) links: Links,
}

/// The modems' links.
pub(super) enum Links {
    /// Modelled links, with a mean capacity determined by their utilisation.
    Modelled { utilisation: f64, outages: bool },
    /// Two recordings.
    Recorded(Set),
}

impl Links {
    /// Returns the first and the second modem's link in a run with this seed.
    fn pairs(&self, seed: u64) -> Result<[Pair; 2]> {
        match self {
            Self::Modelled { utilisation, outages } => {
                // The sum of the modems' rates is that of the coded stream.
                let coded = Stream::of_paper(Vec::new(), PACKETS, 1).wire_bytes();
                let modem_of = |share: f64| modem(coded * share / 7.0 / utilisation, *outages);
                Ok([modem_of(4.0), modem_of(3.0)])
            }
            Self::Recorded(set) => set.pairs(seed).try_into().ok().context("a set of two links"),
        }
    }
}

/// All results over the same links.
pub(super) struct Point {
    pub(super) coded: Latencies,
    /// Coded slices received, in bytes per second.
    pub(super) carried: f64,
    /// Single packets of a constant-rate stream on either modem, as the paper measured.
    single: [Latencies; 2],
    /// Uncoded slices through the first modem alone, which carries the full 1 MB/s.
    pub(super) one_modem: Latencies,
    /// Uncoded slices over both modems.
    pub(super) both_modems: Latencies,
}

/// The streams that are measured over the same links, each in sessions of its own.
#[derive(Clone, Copy, strum::VariantArray)]
enum Sent {
    /// Slices coded 4 of 7, over both modems.
    Coded,
    /// Single packets over the first modem, at the rate of its share of the coded stream.
    SingleFirst,
    /// Single packets over the second modem, at the rate of its share of the coded stream.
    SingleSecond,
    /// Uncoded slices over the first modem.
    OneModem,
    /// Uncoded slices over both modems.
    BothModems,
}

impl Sent {
    fn stream(self, [first, second]: [Pair; 2], seconds: u64) -> Stream {
        let packets = |link: Pair, share: f64| {
            let per_second = (PER_SECOND * PACKETS as u64) as f64 * share / 7.0;
            let packets = Stream::of_packets(vec![link], per_second.round() as u64, seconds);
            Stream { adapts: true, ..packets }
        };
        match self {
            Self::Coded => Stream::of_paper(vec![first, second], PACKETS, seconds),
            Self::SingleFirst => packets(first, 4.0),
            Self::SingleSecond => packets(second, 3.0),
            Self::OneModem => Stream::of_paper(vec![first], SOURCES, seconds),
            Self::BothModems => Stream::of_paper(vec![first, second], SOURCES, seconds),
        }
    }
}

/// Sends all streams under all loads, and returns one point per load.
pub(super) fn measure(run: &Run<'_>, loads: &[Load]) -> Result<Vec<Point>> {
    let jobs: Vec<(&Load, Sent, u64)> = loads
        .iter()
        .flat_map(|load| Sent::VARIANTS.iter().map(move |sent| (load, *sent)))
        .flat_map(|(load, sent)| (0..RUNS).map(move |number| (load, sent, number)))
        .collect();
    let (total, first) = (jobs.len() as u64, run.seed.wrapping_mul(1000));
    let seconds = seconds(run);
    let mut made = workers::each(
        workers::count(),
        &jobs,
        |(Load { control, links }, sent, number)| {
            // Each stream has the links to itself; models have a separate time for each.
            let seed = first + number * 10;
            let stream = sent.stream(links.pairs(seed)?, seconds);
            Stream { control: *control, ..stream }.send(seed + *sent as u64)
        },
        |done, _| run.progress(done as u64, total, "sessions over links"),
    )?
    .into_iter();
    let mut next = || {
        let mut sum = Came::default();
        for came in made.by_ref().take(RUNS as usize) {
            sum.rate = Bitrate::from_bps(sum.rate.bps() + came.rate.bps() / RUNS);
            sum.add(came);
        }
        (Latencies::new(sum.latencies), sum.rate.as_f64() / 8.0)
    };
    let points = loads.iter().map(|_| {
        let (coded, carried) = next();
        Point {
            coded,
            carried,
            single: [next().0, next().0],
            one_modem: next().0,
            both_modems: next().0,
        }
    });
    Ok(points.collect())
}

impl Point {
    /// Returns the quantile of the latency of a slice, in ms, if the latencies of its four packets
    /// are drawn independently from those of single packets on one modem.
    pub(super) fn drawn(&self, modem: usize, probability: f64) -> f64 {
        self.single[modem].quantile_of_latest(SOURCES as u32, probability)
    }

    /// Returns the paper's gain at [`LEVEL`] in ms: the latency of a slice by independent draws,
    /// mean of the two modems, less that of the coded slices.
    pub(super) fn gain_drawn(&self) -> f64 {
        (self.drawn(0, LEVEL) + self.drawn(1, LEVEL)) / 2.0 - self.coded.quantile(LEVEL)
    }

    pub(super) fn gain_over(&self, baseline: &Latencies) -> f64 {
        baseline.quantile(LEVEL) - self.coded.quantile(LEVEL)
    }
}

/// N of the figure, with K = 4.
const PACKETS: usize = 7;
pub(super) const LEVEL: f64 = 0.95;
/// Number of runs of each stream that are pooled; each has another seed.
pub(super) const RUNS: u64 = 4;

pub(super) fn seconds(run: &Run<'_>) -> u64 {
    run.choose(30, 60)
}
