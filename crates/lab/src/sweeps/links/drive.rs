//! One run: two sessions in a world, over given links, and its observations.

use anyhow::Result;
use tautline_scenario::measure::units;
use tautline_scenario::run::{Run, Setup};
use tautline_scenario::script::{Script, Step};
use tautline_scenario::traffic::{Commands, Media, Traffic};
use tautline_sim::link::Pair;
use tautline_sim::world::{Clock, Direction};
use tautline_transport::Config;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::followed::Followed;
use super::measure::{self, Measures};
use super::trail::{Carried, Cut, Passage, Trail, WARM_UP};

/// Parameters of one run.
#[derive(Clone, Debug)]
pub struct Drive {
    /// The links; media goes up.
    pub links: Vec<Pair>,
    /// The only link that the session may use; `None` for all. The others still exist, so that this
    /// one behaves as it does among them.
    pub only: Option<usize>,
    /// Configuration of both sessions; its media deadline is set to [`Drive::deadline`].
    pub transport: Config,
    /// Maximum time from a unit's sending to its delivery, one way, for it to be on time.
    pub deadline: Duration,
    /// Media units per second, at even intervals; 360 are six slices of 60 pictures.
    pub units_per_second: u64,
    /// Maximum rate of the source, if its budget is higher.
    pub rate_max: Bitrate,
    /// Duration from the world's start, warm-up included.
    pub length: Duration,
    /// Seed of every random number of the links and the sessions.
    pub seed: u64,
    /// Events on the links.
    pub script: Script,
    /// True if datagrams are tracked, as required by [`Measures::queueing_p99_ms`]. With a script
    /// they are tracked in any case.
    pub follows: bool,
}

impl Drive {
    /// Returns a run over `links` with all other parameters at their defaults: 30 s, 65 ms, 360
    /// units per second.
    pub fn new(links: Vec<Pair>, transport: Config, seed: u64) -> Self {
        Self {
            links,
            only: None,
            transport,
            deadline: Duration::from_millis(65),
            units_per_second: 360,
            rate_max: Bitrate::from_mbps(80),
            length: Duration::from_secs(30),
            seed,
            script: Script::default(),
            follows: false,
        }
    }

    /// Adds a cut to the script.
    pub fn cut(&mut self, cut: Cut) {
        self.script.cut(cut.link, cut.from, cut.to);
    }

    /// Performs the run and measures it.
    ///
    /// # Errors
    /// For an invalid transport or link configuration.
    pub fn run(&self) -> Result<Measures> {
        Ok(measure::of(&self.trail(self.follows || !self.script.is_empty())?))
    }

    /// Performs the run, measures it, and returns every datagram of the session that was sent after
    /// the warm-up.
    ///
    /// # Errors
    /// As [`Drive::run`].
    pub fn run_following(&self) -> Result<(Measures, Vec<Passage>)> {
        let trail = self.trail(true)?;
        Ok((measure::of(&trail), trail.passages()))
    }

    /// Returns the first cut of the script; `None` without one, or if it does not end.
    fn first_cut(&self) -> Option<Cut> {
        let mut steps = self.script.steps().iter();
        let (from, link) = steps.find_map(|(at, step)| match step {
            Step::Cut(link) => Some((*at, *link)),
            _ => None,
        })?;
        let (to, _) = steps.find(|(_, step)| *step == Step::Restore(link))?;
        Some(Cut { link, from, to: *to })
    }

    fn trail(&self, follows: bool) -> Result<Trail> {
        let mut run = self.start(follows)?;
        let (warm, end) = (Instant::ZERO + WARM_UP, Instant::ZERO + self.length);
        let (warming, measured) = self.script.clone().split(warm);
        run.play(&warming, warm);
        let before = carried(&run);
        run.play(&measured, end);
        let after = carried(&run);
        // Leave time for the last units to arrive.
        run.until(end + self.deadline);
        let carried = before.iter().zip(after).map(|(before, after)| Carried {
            datagrams: after.datagrams - before.datagrams,
            bytes: after.bytes - before.bytes,
            dropped: after.dropped - before.dropped,
            marked: after.marked - before.marked,
        });
        let (vehicle, operator) = (&run.vehicle().application, &run.operator().application);
        let (sent, came) = (&vehicle.traffic, &operator.traffic);
        Ok(Trail {
            length: self.length,
            deadline: self.deadline,
            units_per_second: self.units_per_second,
            cut: self.first_cut(),
            units: units(&sent.media.offered, &came.media.received),
            pauses: sent.pauses.clone(),
            departures: vehicle.departures.clone(),
            arrivals: operator.arrivals.clone(),
            commands: units(&came.commands.offered, &sent.commands.received),
            carried: carried.collect(),
            causes: vehicle.causes.clone(),
            digest: run.world.log().digest(),
        })
    }

    fn start(&self, follows: bool) -> Result<Run<Followed>> {
        let mut transport = self.transport.clone();
        transport.media_deadline = self.deadline;
        // The clocks neither agree nor are exact.
        let clocks = [
            Clock::new(Duration::from_millis(3_217), 18.0),
            Clock::new(Duration::from_millis(1_003), -23.0),
        ];
        let setup = Setup { only: self.only, clocks, ..Setup::new(self.seed, self.links.clone()) };
        let media = Media {
            deadline: self.deadline,
            bytes_min: UNIT_BYTES_MIN,
            ..Media::slices(self.units_per_second, self.rate_max)
        };
        let vehicle = Traffic::default().with_media(media);
        let operator = Traffic::default().with_commands(Commands::default());
        let from = Instant::ZERO + WARM_UP;
        let [vehicle, operator] = [vehicle, operator].map(|it| Followed::new(it, follows, from));
        Ok(setup.with_config(transport).start(vehicle, operator)?)
    }
}

fn carried(run: &Run<Followed>) -> Vec<Carried> {
    let counters = run.links().iter().map(|link| run.world.counters(*link, Direction::Up));
    let carried = counters.map(|up| Carried {
        datagrams: up.pushed,
        bytes: up.pushed_bytes,
        dropped: up.dropped_total(),
        marked: up.marked,
    });
    carried.collect()
}

/// Minimum size of a unit: that of its number.
const UNIT_BYTES_MIN: ByteCount = ByteCount::new(8);
