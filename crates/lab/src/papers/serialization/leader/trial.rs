//! Three members in virtual time, under faults chosen by a seed.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tautline_sim::link::{Config as LinkConfig, Pair};
use tautline_sim::world::{Clock, End, LinkId, Node, NodeId, Route, World};
use tautline_units::{Bitrate, Instant};

use crate::quorum::{Config, Kept, Member};

/// A fault of a member, mostly the leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    /// The member's process ends, and restarts later.
    Killed,
    /// The member's process is suspended, and later resumes without noticing.
    Paused,
    /// The member is disconnected from the network, and later connected again.
    CutOff,
}

/// A span of true time in which a member may act.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Reign {
    pub(super) member: usize,
    pub(super) from: Instant,
    pub(super) until: Instant,
}

/// Result of one fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Failover {
    /// Time from the fault until another member acts.
    pub(super) duration: Duration,
    /// Time from the end of the old leader's lease until another member acts: nobody acts in it.
    pub(super) unled: Duration,
}

/// Assumptions of the three members about each other and their clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust {
    /// Missed heartbeats before each calls an election. They must be equal, otherwise a leader's
    /// lease may outlast the waiting time of the others.
    pub(super) timeout_heartbeats: [u8; 3],
    /// Maximum error of each clock in ppm; a lease allows for 2000.
    pub(super) drift_ppm: f64,
}

impl Trust {
    /// The assumptions of a real vehicle.
    pub(super) const SOUND: Self =
        Self { timeout_heartbeats: [TIMEOUT_HEARTBEATS; 3], drift_ppm: 200.0 };
}

/// Three computers on one switch.
pub(super) struct Trial {
    world: World<Seat>,
    nodes: [NodeId; 3],
    links: [LinkId; 3],
    reigns: Vec<Reign>,
    random: ChaCha8Rng,
}

impl Trial {
    /// Creates three members with clocks of their own. Delays depend on the seed, and if `rough`,
    /// so do losses of up to a fifth of the datagrams of each link; otherwise nothing is lost.
    pub(super) fn new(seed: u64, heartbeat: Duration, rough: bool, trust: &Trust) -> Result<Self> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut world = World::new(seed);
        let drift = trust.drift_ppm;
        let nodes = [1, 2, 3].map(|id| {
            let seed = random.random();
            let timeout_heartbeats = trust.timeout_heartbeats[usize::from(id) - 1];
            let config = Config { id, members: 3, heartbeat, timeout_heartbeats, seed };
            let offset = Duration::from_millis(random.random_range(0..100_000));
            let clock = Clock::new(offset, random.random_range(-drift..drift));
            let seat = Seat::new(config, clock.local(Instant::ZERO));
            world.add(seat, clock)
        });
        let mut links = Vec::new();
        for (first, second) in [(0, 1), (0, 2), (1, 2)] {
            let loss = if rough { random.random_range(0.0..0.2) } else { 0.0 };
            let delay = Duration::from_micros(random.random_range(100..2000));
            let link = LinkConfig::of_rate(Bitrate::from_mbps(100)).with_delay(delay);
            let pair = Pair::symmetric(LinkConfig { loss, ..link });
            let end = |at: usize, other: usize| End::new(nodes[at], other as u8, address(at));
            links.push(world.link(end(first, second), end(second, first), &pair)?);
        }
        let links = [links[0], links[1], links[2]];
        Ok(Self { world, nodes, links, reigns: Vec::new(), random })
    }

    /// Runs until `until`, and records which members may act.
    fn run_until(&mut self, until: Instant) {
        while let Some(at) = self.world.next_event().filter(|at| *at <= until) {
            self.world.run_until(at);
            self.note();
        }
        self.world.run_until(until);
        self.note();
    }

    /// Extends or begins a reign for each lease that is in force, and ends that of a member that
    /// has stepped down.
    fn note(&mut self) {
        let now = self.world.now();
        for (member, node) in self.nodes.into_iter().enumerate() {
            let last = self.reigns.iter_mut().rev().find(|reign| reign.member == member);
            let Some(lease) = self.world.node(node).leads_until() else {
                // A member that has stepped down does not act, even if its lease would have
                // continued.
                last.into_iter().for_each(|reign| reign.until = reign.until.min(now));
                continue;
            };
            let until = self.world.clock(node).world(lease);
            if until <= now {
                continue;
            }
            match last {
                Some(reign) if reign.until >= now => reign.until = reign.until.max(until),
                _ => self.reigns.push(Reign { member, from: now, until }),
            }
        }
    }

    fn leader(&self) -> Option<usize> {
        let now = self.world.now();
        self.nodes.iter().position(|node| {
            let until = self.world.node(*node).leads_until();
            until.is_some_and(|until| self.world.clock(*node).world(until) > now)
        })
    }

    /// Waits for a leader, applies `fault` to the leader at a random time up to 100 ms later, waits
    /// for another, and ends the fault; `None` if there is no leader in time.
    pub(super) fn fail_over(&mut self, fault: Fault) -> Option<Failover> {
        let leader = self.wait_for(None)?;
        // At a random time between two heartbeats.
        let wait = Duration::from_micros(self.random.random_range(0..100_000));
        let at = self.world.now() + wait;
        self.run_until(at);
        let leader = self.leader().unwrap_or(leader);
        let struck_at = self.world.now();
        self.strike(leader, fault);
        self.wait_for(Some(leader))?;
        let now = self.world.now();
        let old = self.reigns.iter().rev().find(|reign| reign.member == leader)?;
        let ended = if fault == Fault::Killed { struck_at } else { old.until.min(now) };
        self.mend(leader, fault);
        Some(Failover { duration: now.since(struck_at), unled: now.since(ended) })
    }

    fn wait_for(&mut self, not: Option<usize>) -> Option<usize> {
        let deadline = self.world.now() + TIMEOUT_WITH_ELECTIONS;
        while self.world.now() < deadline {
            if let Some(leader) = self.leader().filter(|leader| Some(*leader) != not) {
                return Some(leader);
            }
            let next = self.world.next_event()?.min(deadline);
            self.world.run_until(next);
            self.note();
        }
        None
    }

    /// Applies this number of random faults at random times, each for up to 400 ms, mostly to the
    /// leader; then runs for one more second.
    pub(super) fn befall(&mut self, faults: u32) {
        for _ in 0..faults {
            let calm = Duration::from_millis(self.random.random_range(0..400));
            self.run_until(self.world.now() + calm);
            // Mostly the leader: only its loss can do harm.
            let any = self.random.random_range(0..3);
            let whom = self.leader().filter(|_| self.random.random_bool(0.7)).unwrap_or(any);
            let fault = FAULTS[self.random.random_range(0..FAULTS.len())];
            self.strike(whom, fault);
            let lasting = Duration::from_millis(self.random.random_range(0..400));
            self.run_until(self.world.now() + lasting);
            self.mend(whom, fault);
        }
        self.run_until(self.world.now() + Duration::from_secs(1));
    }

    fn strike(&mut self, member: usize, fault: Fault) {
        match fault {
            Fault::Killed => self.world.act(self.nodes[member], |seat, _| seat.kill()),
            Fault::Paused => self.world.act(self.nodes[member], |seat, _| seat.paused = true),
            Fault::CutOff => self.cut(member, true),
        }
        self.note();
    }

    fn mend(&mut self, member: usize, fault: Fault) {
        match fault {
            Fault::Killed => self.world.act(self.nodes[member], Seat::start),
            Fault::Paused => self.world.act(self.nodes[member], Seat::resume),
            Fault::CutOff => self.cut(member, false),
        }
        self.note();
    }

    fn cut(&mut self, member: usize, cut: bool) {
        for (link, ends) in self.links.into_iter().zip([[0, 1], [0, 2], [1, 2]]) {
            if ends.contains(&member) {
                self.world.set_cut(link, cut);
            }
        }
    }

    /// Returns two overlapping reigns of different members, if any.
    pub(super) fn overlap(&self) -> Option<(Reign, Reign)> {
        let mut reigns = self.reigns.clone();
        reigns.sort_by_key(|reign| (reign.from, reign.until));
        reigns.iter().enumerate().find_map(|(at, one)| {
            let later = reigns[at + 1..].iter().take_while(|other| other.from < one.until);
            let clash = later.into_iter().find(|other| other.member != one.member)?;
            Some((*one, *clash))
        })
    }

    /// Returns the number of reigns until now.
    pub(super) fn reign_count(&self) -> usize {
        self.reigns.len()
    }
}

/// A computer with a disk, on which a member starts and ends.
struct Seat {
    config: Config,
    disk: Kept,
    member: Option<Member>,
    paused: bool,
    /// Datagrams that arrived while the process is suspended, at most [`WAITING_MAX`]; more are
    /// dropped, as by a full socket buffer.
    waiting: VecDeque<Vec<u8>>,
}

impl Seat {
    fn new(config: Config, now: Instant) -> Self {
        let mut seat = Self {
            config,
            disk: Kept::default(),
            member: None,
            paused: false,
            waiting: VecDeque::new(),
        };
        seat.start(now);
        seat
    }

    fn start(&mut self, now: Instant) {
        let member = Member::new(self.config, self.disk.clone(), now);
        self.member = Some(member.expect("what a member kept starts one"));
    }

    fn kill(&mut self) {
        self.member = None;
        self.waiting.clear();
    }

    fn resume(&mut self, now: Instant) {
        self.paused = false;
        for datagram in std::mem::take(&mut self.waiting) {
            if let Some(member) = &mut self.member {
                member.handle_datagram(&datagram, now);
            }
        }
    }

    /// Returns the end of the member's lease by its own clock, whether or not it can currently act;
    /// `None` if it does not lead or its process has ended.
    fn leads_until(&self) -> Option<Instant> {
        self.member.as_ref()?.leads_until()
    }
}

impl Node for Seat {
    fn handle_datagram(&mut self, _: Route, datagram: &[u8], now: Instant) {
        match &mut self.member {
            Some(member) if !self.paused => member.handle_datagram(datagram, now),
            Some(_) if self.waiting.len() < WAITING_MAX => {
                self.waiting.push_back(datagram.to_vec())
            }
            // The buffer is full, or nobody listens.
            Some(_) | None => {}
        }
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, _: Instant) -> Option<Route> {
        let member = self.member.as_mut().filter(|_| !self.paused)?;
        if let Some(kept) = member.poll_keep() {
            self.disk = kept.clone();
        }
        let (to, datagram) = member.poll_transmit()?;
        buffer.extend_from_slice(&datagram);
        let to = usize::from(to) - 1;
        Some(Route { socket: to as u8, remote: address(to) })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.member.as_ref().filter(|_| !self.paused).map(Member::poll_timeout)
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(member) = self.member.as_mut().filter(|_| !self.paused) {
            member.handle_timeout(now);
        }
    }
}

fn address(member: usize) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, member as u8 + 1)), 7000)
}

/// All faults of a member.
pub(super) const FAULTS: [Fault; 3] = [Fault::Killed, Fault::Paused, Fault::CutOff];
/// Missed heartbeats before a member calls an election.
pub(super) const TIMEOUT_HEARTBEATS: u8 = 5;
/// Waiting time, much longer than any election, after which a trial without the leader that it
/// waits for has failed.
const TIMEOUT_WITH_ELECTIONS: Duration = Duration::from_secs(30);
const WAITING_MAX: usize = 256;
