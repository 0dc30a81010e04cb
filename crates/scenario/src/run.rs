//! A vehicle and an operator, joined by links.

use std::net::SocketAddr;

use tautline_sim::link::Pair;
use tautline_sim::world::{self, End, LinkId, Node, NodeId, World};
use tautline_transport::{Config, Identity, LinkNumber, Route, Session};
use tautline_units::{Duration, Instant};

use crate::Error;
use crate::endpoint::{Application, Endpoint, Stalls};
use crate::faults::Faults;
use crate::measure::{self, Unit};
use crate::script::{Script, Side, Step};
use crate::traffic::Traffic;

/// Parameters of a run.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Seed of all random numbers of the links, the sessions and the endpoints; a session begun by
    /// [`Step::RestartOperator`] has the seed of that step.
    pub seed: u64,
    /// Both directions of each link: up from the vehicle, which sends media, to the operator.
    pub links: Vec<Pair>,
    /// The only link that the session may use; `None` for all. The others still exist, so that this
    /// one behaves as it does among them.
    pub only: Option<usize>,
    /// Number of links, counted from the end, that are streams to the session: lossless models.
    pub streams: usize,
    /// Clocks of the vehicle and of the operator.
    pub clocks: [world::Clock; 2],
    /// Configurations of the vehicle and of the operator.
    pub configs: [Config; 2],
    /// Faults on datagrams arriving at either endpoint.
    pub faults: Faults,
    /// Stalls of either process: mean time between two, and maximum length; `None` for no stalls.
    pub stalls: Option<(Duration, Duration)>,
    /// True if the world's log is kept, with every event; otherwise it has only a digest of
    /// datagrams.
    pub log: bool,
}

impl Setup {
    /// Creates a run over `links` with exact clocks and defaults.
    pub fn new(seed: u64, links: Vec<Pair>) -> Self {
        Self {
            seed,
            links,
            only: None,
            streams: 0,
            clocks: Default::default(),
            configs: Default::default(),
            faults: Faults::None,
            stalls: None,
            log: false,
        }
    }

    /// Sets the configuration of both sides.
    pub fn with_config(self, config: Config) -> Self {
        Self { configs: [config.clone(), config], ..self }
    }

    /// Creates a world with both endpoints and the links, at its start.
    ///
    /// # Errors
    /// For an invalid session or link configuration, or more than 255 links.
    pub fn start<A: Application>(&self, vehicle: A, operator: A) -> Result<Run<A>, Error> {
        let mut world = World::new(self.seed);
        if !self.log {
            world.log_mut().keep(0);
        }
        let nodes = self.enter(&mut world, vehicle, operator)?;
        let mut links = Vec::new();
        for (number, pair) in (0..).zip(&self.links) {
            let [here, there] = self.ends(nodes, number);
            links.push(world.link(here, there, pair)?);
        }
        Ok(Run { world, setup: self.clone(), nodes, links })
    }

    /// Adds both endpoints to an existing world at its current time, and returns their nodes: the
    /// vehicle's, then the operator's. The caller adds the links between [`Setup::ends`].
    ///
    /// # Errors
    /// For an invalid session configuration, or more than 255 links.
    pub fn enter<A: Application, N: Node + From<Endpoint<A>>>(
        &self,
        world: &mut World<N>,
        vehicle: A,
        operator: A,
    ) -> Result<[NodeId; 2], Error> {
        let found = self.links.len();
        let count = u8::try_from(found).map_err(|_| Error::Links { found })?;
        let session = self.responder(self.seed ^ 1, world.now())?;
        let operator = self.endpoint(Side::Operator, session, operator);
        let operator = world.add(operator.into(), self.clock(Side::Operator));
        // Its first message finds no link yet and is retransmitted.
        let session = self.initiator(count, world.now())?;
        let vehicle = self.endpoint(Side::Vehicle, session, vehicle);
        let vehicle = world.add(vehicle.into(), self.clock(Side::Vehicle));
        Ok([vehicle, operator])
    }

    /// Returns the ends of link `number` between these two nodes, the vehicle's first.
    pub fn ends(&self, [vehicle, operator]: [NodeId; 2], number: u8) -> [End; 2] {
        let here = self.socket(number, number);
        let here = End::new(vehicle, here, address(number, VEHICLE_PORT));
        [here, End::new(operator, self.socket(number, 0), operator_address(number))]
    }

    fn endpoint<A: Application>(
        &self,
        side: Side,
        session: Session,
        application: A,
    ) -> Endpoint<A> {
        let seed = match side {
            Side::Vehicle => self.seed ^ 3,
            Side::Operator => self.seed ^ 4,
        };
        let endpoint = Endpoint::new(session, application, self.clock(side), seed);
        let endpoint = endpoint.with_faults(self.faults.clone());
        let endpoint = match self.stalls {
            Some((every, most)) => endpoint.with_stalls(Stalls::new(every, most, seed)),
            None => endpoint,
        };
        if self.log { endpoint.with_log() } else { endpoint }
    }

    fn initiator(&self, count: u8, now: Instant) -> Result<Session, Error> {
        let used = |number: &u8| self.only.is_none_or(|only| only == usize::from(*number));
        let route = |number| Route {
            socket: self.socket(number, number),
            remote: operator_address(number),
        };
        let routes: Vec<Route> = (0..count).filter(used).map(route).collect();
        let [config, _] = self.configs.clone();
        let (identity, peer) = (identity(Side::Vehicle), identity(Side::Operator).public());
        let now = self.clock(Side::Vehicle).local(now);
        Ok(Session::initiate(config, &identity, peer, LEASE, &routes, self.seed ^ 2, now)?)
    }

    /// Returns the socket number of link `number`, which is the `index`th of the datagram links or
    /// of the streams.
    fn socket(&self, number: u8, index: u8) -> u8 {
        let is_stream = usize::from(number) + self.streams >= self.links.len();
        if is_stream { Route::stream(index, operator_address(number)).socket } else { index }
    }

    /// Returns a new session of the operator, which responds to the vehicle's.
    fn responder(&self, seed: u64, now: Instant) -> Result<Session, Error> {
        let [_, config] = self.configs.clone();
        let (identity, peer) = (identity(Side::Operator), identity(Side::Vehicle).public());
        let now = self.clock(Side::Operator).local(now);
        Ok(Session::respond(config, &identity, peer, LEASE, seed, now)?)
    }

    fn clock(&self, side: Side) -> world::Clock {
        self.clocks[side as usize]
    }
}

/// Two endpoints in a world; on a panic, its drop prints `SIM_SEED=..`.
#[derive(Debug)]
pub struct Run<A> {
    /// The world with both endpoints and the links.
    pub world: World<Endpoint<A>>,
    setup: Setup,
    nodes: [NodeId; 2],
    links: Vec<LinkId>,
}

impl<A> Drop for Run<A> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SIM_SEED={}", self.setup.seed);
        }
    }
}

impl<A: Application> Run<A> {
    /// Returns the parameters of the run.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the links' identifiers in the world, in the order of [`Setup::links`].
    pub fn links(&self) -> &[LinkId] {
        &self.links
    }

    /// Returns an endpoint's identifier in the world.
    pub fn node(&self, side: Side) -> NodeId {
        self.nodes[side as usize]
    }

    /// Returns the endpoint of one side.
    pub fn endpoint(&self, side: Side) -> &Endpoint<A> {
        self.world.node(self.node(side))
    }

    /// Returns the vehicle's endpoint.
    pub fn vehicle(&self) -> &Endpoint<A> {
        self.endpoint(Side::Vehicle)
    }

    /// Returns the operator's endpoint.
    pub fn operator(&self) -> &Endpoint<A> {
        self.endpoint(Side::Operator)
    }

    /// Runs the world until `at`, without any steps.
    pub fn until(&mut self, at: Instant) {
        self.world.run_until(at);
    }

    /// Runs until `end`, and applies the steps of `script` until then.
    pub fn play(&mut self, script: &Script, end: Instant) {
        for (at, step) in script.steps().iter().filter(|(at, _)| *at <= end) {
            self.until(*at);
            self.step(*step);
        }
        self.until(end);
    }

    /// Applies `step` now.
    ///
    /// # Panics
    /// If it refers to a link that does not exist.
    pub fn step(&mut self, step: Step) {
        match step {
            Step::Cut(link) => self.world.set_cut(self.links[link], true),
            Step::Restore(link) => self.world.set_cut(self.links[link], false),
            Step::Rebind(link, port) => {
                self.world.rebind(self.links[link], address(link as u8, port));
            }
            Step::Readdress(link, host) => {
                self.world.rebind(self.links[link], address(host, VEHICLE_PORT));
            }
            Step::SetClock(side, nanos) => {
                self.world.act(self.node(side), |endpoint, now| endpoint.set_clock(nanos, now));
            }
            Step::LimitDatagrams(side, link, bytes) => {
                let link = LinkNumber::new(link as u8).expect("a session's link");
                self.world.act(self.node(side), |endpoint, _| {
                    endpoint.session.set_datagram_bytes_max(link, bytes);
                });
            }
            Step::RestartOperator(seed) => {
                let session =
                    self.setup.responder(seed, Instant::ZERO).expect("the first one was sound");
                let node = self.node(Side::Operator);
                self.world.act(node, |endpoint, _| endpoint.restart(session));
            }
        }
    }
}

impl Run<Traffic> {
    /// Returns the media units that the vehicle offered, each with its outcome.
    pub fn media(&self) -> Vec<Unit> {
        let (from, to) = (self.vehicle(), self.operator());
        measure::units(&from.application.media.offered, &to.application.media.received)
    }

    /// Returns the commands that the operator offered, each with its outcome.
    pub fn commands(&self) -> Vec<Unit> {
        let (from, to) = (self.operator(), self.vehicle());
        measure::units(&from.application.commands.offered, &to.application.commands.received)
    }
}

/// Returns the identity of one side, the same in every run: its secret key is public.
pub fn identity(side: Side) -> Identity {
    Identity::from_seed(&[side as u8 + 1; 32])
}

/// Identifier of the lease under which the sessions of every run are.
pub const LEASE: [u8; 16] = [7; 16];

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host + 1], port))
}

fn operator_address(link: u8) -> SocketAddr {
    address(OPERATOR_HOST, OPERATOR_PORT + u16::from(link))
}

const VEHICLE_PORT: u16 = 4_000;
const OPERATOR_HOST: u8 = 9;
const OPERATOR_PORT: u16 = 5_000;
