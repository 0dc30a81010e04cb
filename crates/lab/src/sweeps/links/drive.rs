//! One run: two sessions in a world, over given links, and what is seen of it.

use std::collections::HashMap;

use anyhow::{Context, Result};
use tautline_sim::link::Pair;
use tautline_sim::world::{Clock, Direction, End, LinkId, NodeId, World};
use tautline_transport::{Config, Identity, Route, Session};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::measure::{self, Measures};
use super::party::{Departure, Offered, Operator, Party, Source, Vehicle, here, there};

/// Is one run, before it is made.
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
    /// What happens to links, in order of time.
    pub steps: Vec<Step>,
}

/// Is a link cut from one instant to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The link, by its place in [`Drive::links`].
    pub link: usize,
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
}

/// Is something that happens to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub at: Instant,
    /// To which link.
    pub link: usize,
    /// Whether it is cut or restored.
    pub cut: bool,
}

/// Is one datagram on its way from vehicle to operator.
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

/// Is what was seen of a run.
#[derive(Debug)]
pub(super) struct Trail {
    pub(super) offered: Vec<Offered>,
    /// When each of `offered` was delivered.
    pub(super) delivered: Vec<Option<Instant>>,
    pub(super) pauses: Vec<Instant>,
    pub(super) departures: Vec<Departure>,
    arrivals: Vec<(u8, u32, Instant)>,
    pub(super) commands: Vec<(Instant, Duration)>,
    /// Per link, what it took in the media's direction from the warm-up's end on.
    pub(super) carried: Vec<Carried>,
    /// A digest of everything that happened.
    pub(super) digest: u64,
}

/// Is what a link took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) datagrams: u64,
    /// UDP payload.
    pub(super) bytes: ByteCount,
}

impl Drive {
    /// A run over `links` with everything else at its default: 30 s, 65 ms, 360 units a second.
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
            steps: Vec::new(),
        }
    }

    /// Adds a cut.
    pub fn cut(&mut self, cut: Cut) {
        let Cut { link, from, to } = cut;
        self.steps.push(Step { at: from, link, cut: true });
        self.steps.push(Step { at: to, link, cut: false });
        self.steps.sort_by_key(|step| step.at);
    }

    /// Makes the run and measures it.
    ///
    /// # Errors
    /// For a transport or a link that cannot be configured so.
    pub fn run(&self) -> Result<Measures> {
        Ok(measure::of(self, &self.trail(!self.steps.is_empty())?))
    }

    /// Makes the run, measures it, and gives every datagram of the session that left after the
    /// warm-up.
    ///
    /// # Errors
    /// As [`Drive::run`].
    pub fn run_following(&self) -> Result<(Measures, Vec<Passage>)> {
        let trail = self.trail(true)?;
        let arrived: HashMap<(u8, u32), Instant> =
            trail.arrivals.iter().map(|(link, number, at)| ((*link, *number), *at)).collect();
        let measured = Instant::ZERO + WARM_UP..Instant::ZERO + self.length;
        let departures = trail.departures.iter().filter(|d| measured.contains(&d.at));
        let passages = departures.map(|departure| Passage {
            at: departure.at,
            bytes: departure.bytes,
            media: departure.media,
            arrived: arrived.get(&(departure.link, departure.number)).copied(),
        });
        let passages = passages.collect();
        Ok((measure::of(self, &trail), passages))
    }

    /// The first cut, if there is one.
    pub(super) fn first_cut(&self) -> Option<Cut> {
        let from = self.steps.iter().find(|step| step.cut)?;
        let ends = |step: &&Step| !step.cut && step.link == from.link && step.at > from.at;
        let to = self.steps.iter().find(ends)?;
        Some(Cut { link: from.link, from: from.at, to: to.at })
    }

    fn trail(&self, keeps_departures: bool) -> Result<Trail> {
        let mut stage = self.stage(keeps_departures)?;
        let end = Instant::ZERO + self.length;
        let mut before = Vec::new();
        let warm = Step { at: Instant::ZERO + WARM_UP, link: usize::MAX, cut: false };
        let mut steps = self.steps.clone();
        steps.push(warm);
        steps.sort_by_key(|step| step.at);
        for step in steps.iter().filter(|step| step.at < end) {
            stage.world.run_until(step.at);
            match stage.links.get(step.link) {
                Some(link) => stage.world.set_cut(*link, step.cut),
                None => before = stage.carried(),
            }
        }
        stage.world.run_until(end);
        let after = stage.carried();
        // The last units have their time as well.
        stage.world.run_until(end + self.deadline);
        Ok(stage.trail(&before, &after))
    }

    fn stage(&self, keeps_departures: bool) -> Result<Stage> {
        let mut transport = self.transport.clone();
        transport.media_deadline = self.deadline;
        let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
        let count = u8::try_from(self.links.len()).context("more links than can be numbered")?;
        let used = |number: &u8| self.only.is_none_or(|only| only == usize::from(*number));
        let routes: Vec<Route> =
            (0..count).filter(used).map(|socket| Route { socket, remote: there(socket) }).collect();
        // No two clocks agree, and neither runs true.
        let clock_a = Clock::new(Duration::from_millis(3_217), 18.0);
        let clock_b = Clock::new(Duration::from_millis(1_003), -23.0);
        let (local_a, local_b) = (clock_a.local(Instant::ZERO), clock_b.local(Instant::ZERO));
        let seed = self.seed;
        let operator =
            Session::respond(transport.clone(), &b, a.public(), LEASE, seed ^ 1, local_b)?;
        let vehicle =
            Session::initiate(transport, &a, b.public(), LEASE, &routes, seed ^ 2, local_a)?;
        let source = Source {
            units_per_second: self.units_per_second,
            deadline: self.deadline,
            rate_max: self.rate_max,
            keeps_departures,
        };
        let mut world = World::new(seed);
        world.log_mut().keep(0);
        let operator =
            world.add(Party::Operator(Operator::new(operator, clock_b, keeps_departures)), clock_b);
        // Its first message finds no link yet and is sent again.
        let vehicle = world.add(Party::Vehicle(Vehicle::new(vehicle, clock_a, &source)), clock_a);
        let mut links = Vec::new();
        for (number, pair) in (0..count).zip(&self.links) {
            let here = End::new(vehicle, number, here(number));
            let there = End::new(operator, 0, there(number));
            links.push(world.link(here, there, pair)?);
        }
        Ok(Stage { world, vehicle, operator, links })
    }
}

/// A world with its two parties.
struct Stage {
    world: World<Party>,
    vehicle: NodeId,
    operator: NodeId,
    links: Vec<LinkId>,
}

impl Stage {
    fn carried(&self) -> Vec<Carried> {
        let counters = self.links.iter().map(|link| self.world.counters(*link, Direction::Up));
        counters.map(|up| Carried { datagrams: up.pushed, bytes: up.pushed_bytes }).collect()
    }

    fn trail(self, before: &[Carried], after: &[Carried]) -> Trail {
        let carried = before.iter().zip(after).map(|(before, after)| Carried {
            datagrams: after.datagrams - before.datagrams,
            bytes: after.bytes - before.bytes,
        });
        let Party::Vehicle(vehicle) = self.world.node(self.vehicle) else {
            unreachable!("stage() put the vehicle there");
        };
        let Party::Operator(operator) = self.world.node(self.operator) else {
            unreachable!("stage() put the operator there");
        };
        let mut delivered = vec![None; vehicle.offered.len()];
        for (number, at) in &operator.delivered {
            if let Some(slot) = delivered.get_mut(*number as usize) {
                *slot = Some(*at);
            }
        }
        Trail {
            offered: vehicle.offered.clone(),
            delivered,
            pauses: vehicle.pauses.clone(),
            departures: vehicle.departures.clone(),
            arrivals: operator.arrivals.clone().unwrap_or_default(),
            commands: vehicle.commands.clone(),
            carried: carried.collect(),
            digest: self.world.log().digest(),
        }
    }
}

/// Not measured: the first handshake, pings and steps of the rate control.
pub const WARM_UP: Duration = Duration::from_secs(2);
const LEASE: [u8; 16] = [7; 16];
