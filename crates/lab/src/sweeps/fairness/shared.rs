//! One run: two flows through one link, and its observations.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use tautline_scenario::endpoint::Endpoint;
use tautline_scenario::measure::{Unit, units};
use tautline_scenario::run::Setup;
use tautline_scenario::traffic::{Commands, Media, Traffic};
use tautline_sim::link::{Bbr, Cubic, Pair};
use tautline_sim::world::{Clock, Direction, LinkId, Node, NodeId, Route, World};
use tautline_transport::Config;
use tautline_transport::rate::Cause;
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::bottleneck::Bottleneck;
use super::pairing::Pairing;
#[cfg(feature = "gcc")]
use crate::sweeps::gcc;
use crate::sweeps::links::followed::Followed;
use crate::sweeps::links::trail::Passage;

/// Parameters of one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared<'a> {
    pub(super) bottleneck: &'a Bottleneck,
    pub(super) pairing: Pairing,
    /// Duration from the world's start, warm-up included.
    pub(super) length: Duration,
    pub(super) seed: u64,
}

/// Observations of a run.
#[derive(Debug)]
pub(super) struct Trail {
    /// Start time of the second flow.
    pub(super) begun: Instant,
    /// Bytes of each flow that entered the queue, headers included, per [`BIN`].
    pub(super) carried: [Vec<u64>; 2],
    /// Observations of the one or two flows that are sessions.
    pub(super) sessions: Vec<Session>,
    /// Digest of all events.
    pub(super) digest: u64,
}

/// Observations of a session.
#[derive(Debug)]
pub(super) struct Session {
    /// All datagrams from vehicle to operator.
    pub(super) passages: Vec<Passage>,
    /// All media units.
    pub(super) units: Vec<Unit>,
    /// Number of samples after the warm-up in which each cause limited the rate.
    pub(super) causes: BTreeMap<Cause, u64>,
}

impl Shared<'_> {
    /// Performs the run.
    ///
    /// # Errors
    /// For an invalid session or link configuration, or a pairing that this build lacks.
    pub(super) fn run(&self) -> Result<Trail> {
        let mut world = World::new(self.seed);
        world.log_mut().keep(0);
        let pair = self.pair();
        let setup = self.setup(self.seed, CLOCKS[0]);
        let [vehicle, operator] = apart();
        let first = setup.enter(&mut world, vehicle, operator)?;
        let [here, there] = setup.ends(first, 0);
        let link = world.link(here, there, &pair)?;
        let begun = self.pairing.begins(self.seed);
        world.run_until(begun);
        let second = self.join(&mut world, link, &pair)?;
        let foreign = self.watch(&mut world, link);
        // Leave time for the queue to drain at the end.
        world.run_until(Instant::ZERO + self.length + AFTERWARDS);
        let mut sessions = vec![session(&world, first)];
        let other = match second {
            Second::Session(nodes) => {
                let other = session(&world, nodes);
                let bins = self.bins(&other.passages);
                sessions.push(other);
                bins
            }
            #[cfg(feature = "gcc")]
            Second::Call(nodes) => self.bins(&call(&world, nodes)),
            Second::InLink => foreign,
        };
        let carried = [self.bins(&sessions[0].passages), other];
        Ok(Trail { begun, carried, sessions, digest: world.log().digest() })
    }

    fn pair(&self) -> Pair {
        let mut pair = self.bottleneck.pair();
        let rtt_ms = self.bottleneck.round_trip().as_secs_f64() * 1e3;
        let from_s = self.pairing.begins(self.seed).since(Instant::ZERO).as_secs_f64();
        match self.pairing {
            Pairing::Cubic => pair.up.cubic = Some(Cubic { rtt_ms, from_s, until_s: None }),
            Pairing::Bbr => pair.up.bbr = vec![Bbr { rtt_ms, from_s, until_s: None }],
            Pairing::Together | Pairing::Later | Pairing::Farther | Pairing::Gcc => {}
        }
        pair
    }

    fn setup(&self, seed: u64, clocks: [(u64, f64); 2]) -> Setup {
        let clocks = clocks.map(|(millis, ppm)| Clock::new(Duration::from_millis(millis), ppm));
        let transport = Config { media_deadline: DEADLINE, ..Config::default() };
        let setup = Setup::new(seed, vec![self.bottleneck.pair()]).with_config(transport);
        Setup { clocks, ..setup }
    }

    /// Adds the second flow to the world, unless the link model already contains it.
    fn join(&self, world: &mut World<Member>, link: LinkId, pair: &Pair) -> Result<Second> {
        let mut down = pair.down.clone();
        match self.pairing {
            Pairing::Together | Pairing::Later => {}
            Pairing::Farther => {
                let delay = self.bottleneck.delay + self.bottleneck.round_trip() * 2;
                down = down.with_delay(delay);
            }
            Pairing::Cubic | Pairing::Bbr => return Ok(Second::InLink),
            Pairing::Gcc => return call_beside(world, link, pair),
        }
        let setup = self.setup(!self.seed, CLOCKS[1]);
        let [vehicle, operator] = apart();
        let nodes = setup.enter(world, vehicle, operator)?;
        let [here, there] = setup.ends(nodes, 0);
        world.link_beside(link, here, there, &down)?;
        Ok(Second::Session(nodes))
    }

    /// Runs to the end and returns the bytes of cross traffic in the link model, per [`BIN`].
    fn watch(&self, world: &mut World<Member>, link: LinkId) -> Vec<u64> {
        let mut before = 0;
        let bins = (1..=self.bin_count()).map(|bin| {
            world.run_until(Instant::ZERO + BIN * bin);
            let bytes = world.counters(link, Direction::Up).foreign_bytes.get();
            bytes - std::mem::replace(&mut before, bytes)
        });
        bins.collect()
    }

    /// Returns the bytes of the datagrams that arrived, headers included, per [`BIN`] of their
    /// departure.
    fn bins(&self, passages: &[Passage]) -> Vec<u64> {
        let mut bins = vec![0; self.bin_count() as usize];
        for passage in passages.iter().filter(|passage| passage.arrived.is_some()) {
            let bin = passage.at.since(Instant::ZERO).as_nanos() / BIN.as_nanos();
            if let Some(bytes) = bins.get_mut(bin as usize) {
                *bytes += (passage.bytes + HEADERS).get();
            }
        }
        bins
    }

    fn bin_count(&self) -> u32 {
        (self.length.as_nanos() / BIN.as_nanos()) as u32
    }
}

/// Returns both applications of a session: media at its budget one way, commands the other.
fn apart() -> [Followed; 2] {
    let slices = Media::slices(UNITS_PER_SECOND, RATE_MAX);
    let media = Media { deadline: DEADLINE, bytes_min: UNIT_BYTES_MIN, ..slices };
    let vehicle = Traffic::default().with_media(media);
    let operator = Traffic::default().with_commands(Commands::default());
    [vehicle, operator].map(|traffic| Followed::new(traffic, true, Instant::ZERO + WARM_UP))
}

fn session(world: &World<Member>, nodes: [NodeId; 2]) -> Session {
    let [vehicle, operator] = nodes.map(|node| match world.node(node) {
        Member::Session(endpoint) => &endpoint.application,
        #[cfg(feature = "gcc")]
        Member::Call(_) => unreachable!("a session was put there"),
    });
    let arrived: HashMap<_, Instant> = operator.arrivals.iter().copied().collect();
    let passages = vehicle.departures.iter().map(|departure| Passage {
        at: departure.at,
        link: departure.link,
        bytes: departure.bytes,
        media: departure.media,
        arrived: arrived.get(&departure.sealed).copied(),
    });
    Session {
        passages: passages.collect(),
        units: units(&vehicle.traffic.media.offered, &operator.traffic.media.received),
        causes: vehicle.causes.clone(),
    }
}

/// The flow next to a session.
enum Second {
    Session([NodeId; 2]),
    #[cfg(feature = "gcc")]
    Call([NodeId; 2]),
    /// A flow simulated by the link model.
    InLink,
}

#[cfg(feature = "gcc")]
fn call_beside(world: &mut World<Member>, link: LinkId, pair: &Pair) -> Result<Second> {
    use tautline_sim::world::End;

    let receiver = world.add(Member::Call(gcc::Endpoint::receiver()), Clock::default());
    let sender = gcc::Endpoint::sender(world.now());
    let sender = world.add(Member::Call(sender), Clock::default());
    let ends = [End::new(sender, 0, gcc::here()), End::new(receiver, 0, gcc::there())];
    world.link_beside(link, ends[0], ends[1], &pair.down)?;
    Ok(Second::Call([sender, receiver]))
}

#[cfg(not(feature = "gcc"))]
fn call_beside(_world: &mut World<Member>, _link: LinkId, _pair: &Pair) -> Result<Second> {
    anyhow::bail!("gcc: {}", Pairing::Gcc.missing().unwrap_or_default())
}

#[cfg(feature = "gcc")]
fn call(world: &World<Member>, nodes: [NodeId; 2]) -> Vec<Passage> {
    let [sender, receiver] = nodes.map(|node| match world.node(node) {
        Member::Call(endpoint) => endpoint,
        Member::Session(_) => unreachable!("a call was put there"),
    });
    sender.passages(receiver)
}

/// A node of the world.
enum Member {
    Session(Box<Endpoint<Followed>>),
    #[cfg(feature = "gcc")]
    Call(gcc::Endpoint),
}

impl Member {
    fn node(&self) -> &dyn Node {
        match self {
            Self::Session(endpoint) => endpoint,
            #[cfg(feature = "gcc")]
            Self::Call(endpoint) => endpoint,
        }
    }

    fn node_mut(&mut self) -> &mut dyn Node {
        match self {
            Self::Session(endpoint) => endpoint,
            #[cfg(feature = "gcc")]
            Self::Call(endpoint) => endpoint,
        }
    }
}

impl From<Endpoint<Followed>> for Member {
    fn from(endpoint: Endpoint<Followed>) -> Self {
        Self::Session(Box::new(endpoint))
    }
}

impl Node for Member {
    fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) {
        self.node_mut().handle_datagram(route, datagram, now);
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        self.node_mut().poll_transmit(buffer, now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node().poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node_mut().handle_timeout(now);
    }

    fn poll_log(&mut self, now: Instant) -> Option<String> {
        self.node_mut().poll_log(now)
    }
}

/// Clocks of vehicle and operator in each session: offsets in ms, and drifts in microseconds per
/// second. No two clocks agree, and none is exact.
const CLOCKS: [[(u64, f64); 2]; 2] =
    [[(3_217, 18.0), (1_003, -23.0)], [(2_111, -7.0), (4_409, 12.0)]];
/// Time at the start of a run that is excluded from the measurement: a second session that starts
/// after 10 s has 10 s to converge.
pub(super) const WARM_UP: Duration = Duration::from_secs(20);
/// Deadline of a unit, one way.
pub(super) const DEADLINE: Duration = Duration::from_millis(100);
/// Interval over which throughput is measured.
pub(super) const BIN: Duration = Duration::from_millis(100);
/// Bytes of the IPv4 (20) and UDP (8) headers that the links count with each datagram.
pub(super) const HEADERS: ByteCount = ByteCount::new(28);
/// Media units per second: six slices of 60 pictures.
const UNITS_PER_SECOND: u64 = 360;
/// Minimum size of a unit: that of its number.
const UNIT_BYTES_MIN: ByteCount = ByteCount::new(8);
/// Maximum rate of the source: high enough never to be the limit.
const RATE_MAX: Bitrate = Bitrate::from_mbps(80);
/// Simulated time after the measured one, in which the last datagrams arrive: longer than the drain
/// time of the largest queue.
const AFTERWARDS: Duration = Duration::from_secs(2);
