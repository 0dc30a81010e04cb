//! Four links of a moving car, of which some are cut for three seconds every ten.

use tautline_sim::preset::{Carrier, Preset};
use tautline_transport::Config;
use tautline_units::{Bitrate, Duration, Instant};

use crate::Error;
use crate::measure::{delays_ms, longest_gap, millis, within};
use crate::run::{Run, Setup};
use crate::script::Step;
use crate::traffic::{Commands, Media, Traffic};

/// Selection of the links that are cut in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// No link.
    None,
    /// The given number of links, those with the highest granted rates.
    Best(usize),
    /// One link per cut, a different one each time, in turn.
    AnyOne,
    /// Two links per cut, a different pair each time, in turn.
    AnyTwo,
}

/// Measurements at the operator over one or more runs; delays and gaps in ms, rates in Mbit/s.
#[derive(Debug, Clone, Default)]
pub struct Measures {
    /// Longest time without a media unit delivered to the operator during each cut, in ms.
    pub gaps: Vec<f64>,
    /// Number of the vehicle's media units that its session accepted within one second of the start
    /// of a cut, over all cuts.
    pub sent_after: usize,
    /// Number of the units of `sent_after` that arrived, however late.
    pub came_after: usize,
    /// Number of the vehicle's media units that its session accepted after the first three seconds.
    pub sent: usize,
    /// Delays of the units of `sent` that arrived, in ms.
    pub delays: Vec<f64>,
    /// Budget for media of the vehicle's session in Mbit/s, every 100 ms after the first three
    /// seconds.
    pub budgets: Vec<f64>,
    /// Rate granted to the vehicle on each link at the end of each run, in Mbit/s.
    pub granted: Vec<f64>,
}

impl Measures {
    /// Performs one run of 52 s, in which the links of `choice` are cut four times, and returns its
    /// measurements.
    ///
    /// # Errors
    /// If the session configuration is invalid.
    pub fn of(config: Config, choice: Choice, seed: u64) -> Result<Self, Error> {
        let links = (0..4).zip(CARRIERS);
        let links = links.map(|(at, carrier)| Preset::LteDriving.pair_of(carrier, seed * 4 + at));
        let setup = Setup::new(seed + 100, links.collect()).with_config(config);
        // Slice sizes vary: every sixth is twice as large as the others.
        let media = Media { large_every: 6, large_factor: 2.0, ..Media::slices(360, MEDIA) };
        let vehicle = Traffic::default().with_media(media);
        let operator = Traffic::default().with_commands(Commands::default());
        let mut run = setup.start(vehicle, operator)?;
        let mut measures = Self::default();
        for cycle in 0..CUTS {
            let at = FIRST + CYCLE * cycle;
            run.until(at);
            let cut = choice.links(&run, (seed + u64::from(cycle)) as usize);
            cut.iter().for_each(|link| run.step(Step::Cut(*link)));
            run.until(at + CUT);
            cut.iter().for_each(|link| run.step(Step::Restore(*link)));
            measures.note_cut(&run, at);
        }
        run.until(FIRST + CYCLE * CUTS);
        measures.note_all(&run);
        Ok(measures)
    }

    /// Adds the counts of `other` to these, and appends its lists.
    pub fn add(&mut self, other: Self) {
        self.gaps.extend(other.gaps);
        self.sent_after += other.sent_after;
        self.came_after += other.came_after;
        self.sent += other.sent;
        self.delays.extend(other.delays);
        self.budgets.extend(other.budgets);
        self.granted.extend(other.granted);
    }

    /// Returns the delivered share of the units of `sent_after`, 0 to 1; NaN without any.
    pub fn share_after(&self) -> f64 {
        self.came_after as f64 / self.sent_after as f64
    }

    /// Returns the delivered share of the units of `sent`; NaN without any.
    pub fn share(&self) -> f64 {
        self.delays.len() as f64 / self.sent as f64
    }

    fn note_cut(&mut self, run: &Run<Traffic>, at: Instant) {
        let media = run.media();
        let came = media.iter().filter_map(|unit| unit.received.map(|received| received.at));
        self.gaps.push(millis(longest_gap(came, at..at + CUT)));
        for unit in within(&media, at..at + AFTER) {
            self.sent_after += usize::from(unit.offered.accepted.is_some());
            self.came_after += usize::from(unit.received.is_some());
        }
    }

    fn note_all(&mut self, run: &Run<Traffic>) {
        let (media, end) = (run.media(), run.world.now());
        let settled = || within(&media, SETTLED..end);
        self.sent += settled().filter(|unit| unit.offered.accepted.is_some()).count();
        self.delays.extend(delays_ms(settled()));
        let vehicle = run.vehicle();
        let budgets = &vehicle.application.budgets;
        let mut at = SETTLED;
        while at < end {
            let before = budgets.partition_point(|(told, _)| *told <= at).checked_sub(1);
            self.budgets.push(before.map_or(0.0, |last| budgets[last].1.as_f64() / 1e6));
            at += BUDGET_INTERVAL;
        }
        self.granted.extend(vehicle.session.links().map(|link| link.granted.as_f64() / 1e6));
    }
}

impl Choice {
    /// Returns the indices of the links to cut now; `turn` selects the link or the pair.
    fn links(self, run: &Run<Traffic>, turn: usize) -> Vec<usize> {
        match self {
            Self::None => Vec::new(),
            Self::Best(count) => {
                let mut links: Vec<_> = run.vehicle().session.links().enumerate().collect();
                links.sort_by_key(|(at, link)| (std::cmp::Reverse(link.granted), *at));
                links.into_iter().take(count).map(|(at, _)| at).collect()
            }
            Self::AnyOne => vec![turn % CARRIERS.len()],
            Self::AnyTwo => PAIRS[turn % PAIRS.len()].to_vec(),
        }
    }
}

const MEDIA: Bitrate = Bitrate::from_mbps(6);
const CARRIERS: [Carrier; 4] = [Carrier::A, Carrier::A, Carrier::B, Carrier::B];
const PAIRS: [[usize; 2]; 6] = [[0, 1], [2, 3], [0, 2], [1, 3], [0, 3], [1, 2]];
/// Start of the measurement, after the startup of the rate control.
const SETTLED: Instant = Instant::from_millis(3_000);
const FIRST: Instant = Instant::from_millis(12_000);
const CUT: Duration = Duration::from_secs(3);
const AFTER: Duration = Duration::from_secs(1);
const CYCLE: Duration = Duration::from_secs(10);
const CUTS: u32 = 4;
const BUDGET_INTERVAL: Duration = Duration::from_millis(100);
