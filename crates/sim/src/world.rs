//! A network in virtual time: nodes with their own clocks, joined by links.
//!
//! A [`Node`] is any sans-I/O component. The world passes it datagrams and timeouts in its local
//! time, then polls it for datagrams until it returns none. Events run in an order that depends on
//! the seed alone. The [`Log`] is identical, byte for byte, for equal seeds.
//!
//! ```
//! use std::time::Duration;
//! use tautline_sim::link::{Config, Pair};
//! use tautline_sim::world::{Clock, End, Node, Route, World};
//! use tautline_units::{Bitrate, Instant};
//!
//! /// Sends one datagram and echoes what it hears.
//! struct Echo { outbox: Vec<(Route, Vec<u8>)>, heard: u32 }
//!
//! impl Node for Echo {
//!     fn handle_datagram(&mut self, route: Route, datagram: &[u8], _now: Instant) {
//!         self.heard += 1;
//!         self.outbox.push((route, datagram.to_vec()));
//!     }
//!     fn poll_transmit(&mut self, buffer: &mut Vec<u8>, _now: Instant) -> Option<Route> {
//!         let (route, datagram) = self.outbox.pop()?;
//!         buffer.extend_from_slice(&datagram);
//!         Some(route)
//!     }
//!     fn poll_timeout(&self) -> Option<Instant> { None }
//!     fn handle_timeout(&mut self, _now: Instant) {}
//! }
//!
//! let mut world = World::new(7);
//! let vehicle = world.add(Echo { outbox: vec![], heard: 0 }, Clock::default());
//! let operator = world.add(Echo { outbox: vec![], heard: 0 }, Clock::new(Duration::from_secs(3), 20.0));
//! let (here, there) = ("10.0.0.1:4000".parse()?, "10.0.9.9:5000".parse()?);
//! let link = Pair::symmetric(Config::of_rate(Bitrate::from_mbps(8)).with_delay(Duration::from_millis(20)));
//! let link = world.link(End::new(vehicle, 0, here), End::new(operator, 0, there), &link)?;
//!
//! world.act(vehicle, |node, _now| node.outbox.push((Route { socket: 0, remote: there }, vec![1])));
//! world.run_until(Instant::from_millis(30));
//! assert_eq!(world.node(operator).heard, 1);
//! world.set_cut(link, true);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod direction;
mod log;

use std::net::SocketAddr;

use tautline_units::{ByteCount, Ecn, Instant};

pub use clock::Clock;
pub use direction::Direction;
pub use log::Log;

use log::{Passage, digest_of};

use crate::Error;
use crate::link::{Config, Counters, Link, Pair, Seeds};

/// Route of a datagram from a node's point of view: its destination or its origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// The node's own socket.
    pub socket: u8,
    /// The address at the far end.
    pub remote: SocketAddr,
}

/// A participant in the world: a session, or a stand-in for one.
///
/// Every `now` is the node's own clock. After each call of `handle_*` and after [`World::act`] the
/// world drains `poll_transmit`, then `poll_log`, then reads `poll_timeout`.
pub trait Node {
    /// Handles an incoming datagram.
    fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant);
    /// Handles an incoming datagram with ECN codepoint `ecn`. Only nodes that react to marks
    /// override this.
    fn handle_marked(&mut self, route: Route, datagram: &[u8], _ecn: Ecn, now: Instant) {
        self.handle_datagram(route, datagram, now);
    }
    /// Writes the next datagram into the empty `buffer` and returns its route, or `None` if there
    /// are no more.
    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route>;
    /// Returns the codepoint of the datagram that [`Node::poll_transmit`] wrote last.
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    /// Returns the next time at which [`Node::handle_timeout`] must be called; `None` if it need
    /// not be.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Handles all expired timers.
    fn handle_timeout(&mut self, now: Instant);
    /// Returns the next line for the world's log, such as a session event, or `None` if there are
    /// no more.
    fn poll_log(&mut self, _now: Instant) -> Option<String> {
        None
    }
}

impl<N: Node + ?Sized> Node for Box<N> {
    fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) {
        (**self).handle_datagram(route, datagram, now);
    }
    fn handle_marked(&mut self, route: Route, datagram: &[u8], ecn: Ecn, now: Instant) {
        (**self).handle_marked(route, datagram, ecn, now);
    }
    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<Route> {
        (**self).poll_transmit(buffer, now)
    }
    fn ecn(&self) -> Ecn {
        (**self).ecn()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }
    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }
    fn poll_log(&mut self, now: Instant) -> Option<String> {
        (**self).poll_log(now)
    }
}

/// Index of a node in its world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(usize);

/// Index of a link in its world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(usize);

/// One end of a link: a node's socket, and the address at which the far end sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Node at this end.
    pub node: NodeId,
    /// Number of the node's socket.
    pub socket: u8,
    /// Address at which the far end of the link sees the socket.
    pub address: SocketAddr,
}

impl End {
    /// Returns socket `socket` of `node`, seen as `address`.
    pub fn new(node: NodeId, socket: u8, address: SocketAddr) -> Self {
        Self { node, socket, address }
    }
}

/// Nodes of one type `N` and the links between them. `Box<dyn Node>` mixes types.
#[derive(Debug)]
pub struct World<N> {
    seed: u64,
    now: Instant,
    nodes: Vec<Place<N>>,
    joins: Vec<Join>,
    /// Indexed by [`Join::up`] and [`Join::down`].
    links: Vec<Link<Datagram>>,
    no_route: u64,
    log: Log,
    buffer: Vec<u8>,
    /// Datagram buffers for reuse.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Place<N> {
    node: N,
    clock: Clock,
    /// Next timeout of the node, in world time; `None` if it has none.
    timeout: Option<Instant>,
    /// Routes, each with its link and direction. The list is short, so a linear search is fastest.
    routes: Vec<(Route, usize, Direction)>,
}

#[derive(Debug)]
struct Join {
    vehicle: End,
    operator: End,
    /// Index in [`World::links`] of the direction from first to second end; several joins may share
    /// it. `down` is that of the other direction.
    up: usize,
    down: usize,
}

#[derive(Debug)]
struct Datagram {
    bytes: Vec<u8>,
    ecn: Ecn,
    /// Digest of `bytes`, by [`digest_of`], for the log.
    digest: u64,
    /// Index of the two joined ends between which the datagram travels.
    join: usize,
    direction: Direction,
}

impl Join {
    fn place(&self, direction: Direction) -> usize {
        match direction {
            Direction::Up => self.up,
            Direction::Down => self.down,
        }
    }
}

/// Maximum datagrams a node may send, or timeouts it may request, at one instant. Above this, the
/// world panics, because the node is in an endless loop.
const TURNS_MAX: u32 = 100_000;

/// Maximum number of buffers kept for reuse; a further one is freed. Only long fat links have more
/// datagrams in flight.
const SPARE_MAX: usize = 1024;

impl<N: Node> World<N> {
    /// Returns an empty world at [`Instant::ZERO`].
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Instant::ZERO,
            nodes: Vec::new(),
            joins: Vec::new(),
            links: Vec::new(),
            no_route: 0,
            log: Log::new(seed),
            buffer: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Adds a node with its clock, and transmits its initial datagrams; returns its index in the
    /// world.
    pub fn add(&mut self, node: N, clock: Clock) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(Place { node, clock, timeout: None, routes: Vec::new() });
        self.settle(id.0);
        id
    }

    /// Joins two ends by a link, whose up direction carries from `first` to `second`; returns its
    /// index in the world.
    ///
    /// The link's seed combines the world's seed and the link's number. Processes that links have
    /// in common use the world's seed alone. Datagrams sent before the link exists have no route.
    ///
    /// # Errors
    /// Those of [`Link::new`].
    ///
    /// # Panics
    /// If one end already has a route to the other's address on that socket.
    pub fn link(&mut self, first: End, second: End, pair: &Pair) -> Result<LinkId, Error> {
        let (up, down) = pair.links_of(self.next_seeds())?;
        let place = self.links.len();
        self.links.extend([up, down]);
        Ok(self.join(first, second, [place, place + 1]))
    }

    /// Joins two more ends over the up direction of `link`, so that they share its queue, capacity
    /// and interruptions with the existing ends. The down direction, `down`, is their own.
    ///
    /// Counters and cuts of the shared direction apply to all its ends.
    ///
    /// # Errors
    /// As [`World::link`].
    ///
    /// # Panics
    /// As [`World::link`].
    pub fn link_beside(
        &mut self,
        link: LinkId,
        first: End,
        second: End,
        down: &Config,
    ) -> Result<LinkId, Error> {
        let down = Link::with_seeds(down, self.next_seeds())?;
        let (up, place) = (self.joins[link.0].up, self.links.len());
        self.links.push(down);
        Ok(self.join(first, second, [up, place]))
    }

    fn next_seeds(&self) -> Seeds {
        // The golden ratio's bits spread neighbouring numbers over all seeds.
        let number = self.joins.len() as u64 + 1;
        let seed = self.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Seeds { common: self.seed, ..Seeds::of(seed) }
    }

    fn join(&mut self, first: End, second: End, [up, down]: [usize; 2]) -> LinkId {
        let id = self.joins.len();
        self.enter_routes(id, first, second);
        self.joins.push(Join { vehicle: first, operator: second, up, down });
        LinkId(id)
    }

    /// Gives the first end of `link` a new address, as a rebinding carrier NAT does.
    ///
    /// Datagrams sent to the old address have no route from now on. Datagrams already in flight
    /// arrive from the address that is current on arrival.
    ///
    /// # Panics
    /// If the second end already has a route to that address.
    pub fn rebind(&mut self, link: LinkId, address: SocketAddr) {
        let (first, second) = (self.joins[link.0].vehicle, self.joins[link.0].operator);
        for node in [first.node, second.node] {
            self.nodes[node.0].routes.retain(|(_, id, _)| *id != link.0);
        }
        let first = End { address, ..first };
        self.enter_routes(link.0, first, second);
        self.joins[link.0].vehicle = first;
        self.log.line(self.now, format_args!("link {} rebind {address}", link.0));
    }

    fn enter_routes(&mut self, id: usize, first: End, second: End) {
        let ends = [(first, second, Direction::Up), (second, first, Direction::Down)];
        for (from, to, direction) in ends {
            let route = Route { socket: from.socket, remote: to.address };
            let routes = &mut self.nodes[from.node.0].routes;
            let taken = routes.iter().any(|(other, ..)| *other == route);
            assert!(!taken, "node {} already has the route {route:?}", from.node.0);
            routes.push((route, id, direction));
        }
    }

    /// Returns the world's own time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the time on a node's clock.
    pub fn now_at(&self, id: NodeId) -> Instant {
        self.nodes[id.0].clock.local(self.now)
    }

    /// Returns a node's clock.
    pub fn clock(&self, id: NodeId) -> Clock {
        self.nodes[id.0].clock
    }

    /// Returns a node for inspection.
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id.0].node
    }

    /// Runs `action` on a node at the current instant; its `now` is the node's own clock.
    ///
    /// Afterwards the node's pending datagrams are transmitted, and the result of `action` is
    /// returned.
    pub fn act<R>(&mut self, id: NodeId, action: impl FnOnce(&mut N, Instant) -> R) -> R {
        let place = &mut self.nodes[id.0];
        let local = place.clock.local(self.now);
        let result = action(&mut place.node, local);
        self.settle(id.0);
        result
    }

    /// Cuts both directions of a link, or restores them.
    pub fn set_cut(&mut self, id: LinkId, cut: bool) {
        for direction in [Direction::Up, Direction::Down] {
            self.links[self.joins[id.0].place(direction)].set_cut(cut);
        }
        let word = if cut { "cut" } else { "restored" };
        self.log.line(self.now, format_args!("link {} {word}", id.0));
    }

    /// Returns the counters of one direction of a link.
    pub fn counters(&self, id: LinkId, direction: Direction) -> &Counters {
        self.links[self.joins[id.0].place(direction)].counters()
    }

    /// Returns the datagrams in flight in one direction of a link that will arrive unless the link
    /// is cut.
    pub fn in_flight(&self, id: LinkId, direction: Direction) -> u64 {
        self.links[self.joins[id.0].place(direction)].in_flight()
    }

    /// Returns the number of datagrams sent to an address to which the sender has no link.
    pub fn dropped_no_route(&self) -> u64 {
        self.no_route
    }

    /// Returns the log of all events so far.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Returns the log, for writing or configuration.
    pub fn log_mut(&mut self) -> &mut Log {
        &mut self.log
    }

    /// Returns the instant of the next event, or `None` if nothing is scheduled.
    pub fn next_event(&self) -> Option<Instant> {
        let arrivals = self.links.iter().filter_map(Link::next_departure);
        arrivals.chain(self.nodes.iter().filter_map(|place| place.timeout)).min()
    }

    /// Runs all events up to and including `until`, and advances the world's time to `until`.
    ///
    /// # Panics
    /// If a node never stops sending, or does not advance its timeout, at one instant.
    pub fn run_until(&mut self, until: Instant) {
        let mut turns = 0;
        while let Some(at) = self.next_event().filter(|at| *at <= until) {
            turns = if at > self.now { 0 } else { turns + 1 };
            assert!(turns < TURNS_MAX, "SIM_SEED={}: time stands still at {at:?}", self.seed);
            self.now = self.now.max(at);
            self.deliver();
            self.fire();
        }
        self.now = self.now.max(until);
    }

    /// Delivers every datagram that has arrived, link by link.
    fn deliver(&mut self) {
        for place in 0..self.links.len() {
            while let Some(datagram) = self.take(place) {
                let Datagram { bytes, ecn, digest, join: link, direction } = datagram;
                let join = &self.joins[link];
                let (from, to) = match direction {
                    Direction::Up => (join.vehicle, join.operator),
                    Direction::Down => (join.operator, join.vehicle),
                };
                let route = Route { socket: to.socket, remote: from.address };
                let passage = Passage::Arrived { link, direction };
                self.log.datagram(self.now, passage, bytes.len(), digest);
                let place = &mut self.nodes[to.node.0];
                let local = place.clock.local(self.now);
                place.node.handle_marked(route, &bytes, ecn, local);
                if self.spare.len() < SPARE_MAX {
                    self.spare.push(bytes);
                }
                self.settle(to.node.0);
            }
        }
    }

    fn take(&mut self, place: usize) -> Option<Datagram> {
        let link = &mut self.links[place];
        if link.next_departure()? > self.now {
            return None;
        }
        link.pop(self.now).map(|(_, datagram)| datagram)
    }

    /// Calls every node whose timeout is due.
    fn fire(&mut self) {
        for id in 0..self.nodes.len() {
            let place = &mut self.nodes[id];
            if place.timeout.is_some_and(|at| at <= self.now) {
                let local = place.clock.local(self.now);
                place.node.handle_timeout(local);
                self.settle(id);
            }
        }
    }

    /// Drains a node and arms its timeout. Called after every mutation of the node.
    fn settle(&mut self, id: usize) {
        let local = self.nodes[id].clock.local(self.now);
        let mut buffer = std::mem::take(&mut self.buffer);
        for turn in 0.. {
            assert!(turn < TURNS_MAX, "SIM_SEED={}: node {id} never stops sending", self.seed);
            buffer.clear();
            let Some(route) = self.nodes[id].node.poll_transmit(&mut buffer, local) else { break };
            self.transmit(id, route, &buffer);
        }
        self.buffer = buffer;
        let place = &mut self.nodes[id];
        while let Some(line) = place.node.poll_log(local) {
            self.log.line(self.now, format_args!("node {id} {line}"));
        }
        place.timeout = place.node.poll_timeout().map(|at| place.clock.world(at));
    }

    fn transmit(&mut self, id: usize, route: Route, datagram: &[u8]) {
        let (bytes, digest) = (datagram.len(), digest_of(datagram));
        let found = self.nodes[id].routes.iter().find(|(known, ..)| *known == route);
        let Some((_, link, direction)) = found.copied() else {
            self.no_route += 1;
            let passage = Passage::NoRoute { node: id, remote: route.remote };
            self.log.datagram(self.now, passage, bytes, digest);
            return;
        };
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(datagram);
        let model = &mut self.links[self.joins[link].place(direction)];
        let ecn = model.mark(self.now, self.nodes[id].node.ecn());
        let payload = Datagram { bytes: copy, ecn, digest, join: link, direction };
        let fate = model.push(self.now, ByteCount::of(datagram), payload);
        let passage = Passage::Taken { link, direction, fate };
        self.log.datagram(self.now, passage, bytes, digest);
    }
}

#[cfg(test)]
mod tests;
