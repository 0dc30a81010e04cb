//! One run: two sessions in a world, over given links, and what is seen of it.

use std::collections::HashMap;

use anyhow::Result;
use tautline_scenario::measure::{self, Unit};
use tautline_scenario::run::{Run, Setup};
use tautline_scenario::script::{Script, Step};
use tautline_scenario::traffic::{Commands, Media, Traffic};
use tautline_sim::link::Pair;
use tautline_sim::world::{Clock, Direction};
use tautline_transport::Config;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::followed::{Departure, Followed, Sealed};
use super::measure::{Measures, of};

/// One run, before it is made.
#[derive(Clone, Debug)]
pub struct Drive {
    /// The links, media going up.
    pub links: Vec<Pair>,
    /// The one link that the session may use, or all. The others are there all the same, so that
    /// this one meets the same fate as among them.
    pub only: Option<usize>,
    /// What both sessions are configured with; its media deadline is set to [`Drive::deadline`].
    pub transport: Config,
    /// From a unit's hand-over to its delivery, one way.
    pub deadline: Duration,
    /// Media units a second, at even intervals; 360 are six slices of 60 pictures.
    pub units_per_second: u64,
    /// The most that the source sends, if its budget is above.
    pub rate_max: Bitrate,
    /// From the world's beginning, the warm-up included.
    pub length: Duration,
    /// Of every random number: links, sessions.
    pub seed: u64,
    /// What happens to links.
    pub script: Script,
}

/// A link cut from one instant to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The link, by its place in [`Drive::links`].
    pub link: usize,
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
}

/// One datagram on its way from vehicle to operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When it left, in the world's time.
    pub at: Instant,
    /// UDP payload.
    pub bytes: ByteCount,
    /// Whether it held a media packet.
    pub media: bool,
    /// When it arrived, if it did.
    pub arrived: Option<Instant>,
}

/// What was seen of a run.
#[derive(Debug)]
pub(super) struct Trail {
    /// Every media unit that the vehicle handed over.
    pub(super) units: Vec<Unit>,
    /// Every instant at which a unit was due and the budget zero.
    pub(super) pauses: Vec<Instant>,
    pub(super) departures: Vec<Departure>,
    arrivals: Vec<(Sealed, Instant)>,
    /// Every command that the operator handed over.
    pub(super) commands: Vec<Unit>,
    /// Per link, what it took in the media's direction from the warm-up's end on.
    pub(super) carried: Vec<Carried>,
    /// A digest of everything that happened.
    pub(super) digest: u64,
}

/// What a link took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) datagrams: u64,
    /// UDP payload.
    pub(super) bytes: ByteCount,
}

impl Drive {
    /// Returns a run over `links` with everything else at its default: 30 s, 65 ms, 360 units a second.
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
        }
    }

    /// Adds a cut.
    pub fn cut(&mut self, cut: Cut) {
        self.script.cut(cut.link, cut.from, cut.to);
    }

    /// Makes the run and measures it.
    ///
    /// # Errors
    /// For a transport or a link that cannot be configured so.
    pub fn run(&self) -> Result<Measures> {
        Ok(of(self, &self.trail(!self.script.is_empty())?))
    }

    /// Makes the run, measures it, and gives every datagram of the session that left after the
    /// warm-up.
    ///
    /// # Errors
    /// As [`Drive::run`].
    pub fn run_following(&self) -> Result<(Measures, Vec<Passage>)> {
        let trail = self.trail(true)?;
        let arrived: HashMap<Sealed, Instant> = trail.arrivals.iter().copied().collect();
        let measured = Instant::ZERO + WARM_UP..Instant::ZERO + self.length;
        let departures = trail.departures.iter().filter(|d| measured.contains(&d.at));
        let passages = departures.map(|departure| Passage {
            at: departure.at,
            bytes: departure.bytes,
            media: departure.media,
            arrived: arrived.get(&departure.sealed).copied(),
        });
        let passages = passages.collect();
        Ok((of(self, &trail), passages))
    }

    /// Returns the first cut, if there is one.
    pub(super) fn first_cut(&self) -> Option<Cut> {
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
        // The last units have their time as well.
        run.until(end + self.deadline);
        Ok(trail(&run, &before, &after))
    }

    fn start(&self, follows: bool) -> Result<Run<Followed>> {
        let mut transport = self.transport.clone();
        transport.media_deadline = self.deadline;
        // No two clocks agree, and neither runs true.
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
        let [vehicle, operator] = [vehicle, operator].map(|it| Followed::new(it, follows));
        Ok(setup.with_config(transport).start(vehicle, operator)?)
    }
}

fn carried(run: &Run<Followed>) -> Vec<Carried> {
    let counters = run.links().iter().map(|link| run.world.counters(*link, Direction::Up));
    counters.map(|up| Carried { datagrams: up.pushed, bytes: up.pushed_bytes }).collect()
}

fn trail(run: &Run<Followed>, before: &[Carried], after: &[Carried]) -> Trail {
    let carried = before.iter().zip(after).map(|(before, after)| Carried {
        datagrams: after.datagrams - before.datagrams,
        bytes: after.bytes - before.bytes,
    });
    let (vehicle, operator) = (&run.vehicle().application, &run.operator().application);
    let (sent, came) = (&vehicle.traffic, &operator.traffic);
    Trail {
        units: measure::units(&sent.media.offered, &came.media.received),
        pauses: sent.pauses.clone(),
        departures: vehicle.departures.clone(),
        arrivals: operator.arrivals.clone(),
        commands: measure::units(&came.commands.offered, &sent.commands.received),
        carried: carried.collect(),
        digest: run.world.log().digest(),
    }
}

/// Not measured: the first handshake, pings and steps of the rate control.
pub const WARM_UP: Duration = Duration::from_secs(2);
/// A unit's number.
const UNIT_BYTES_MIN: ByteCount = ByteCount::new(8);
