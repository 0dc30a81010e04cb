//! A NAT that changes its ports every half minute, in virtual time: gaps in the reception of
//! pictures and commands with a warm relay, with another link, and with neither.
#![allow(clippy::unwrap_used, reason = "a world that cannot be set up has failed")]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tautline_relay::config::Limits;
use tautline_relay::table::{Fate, Table};
use tautline_sim::nat::{By, Config as NatConfig, Nat};
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_transport::reach::{
    CANDIDATE_PAIRS_MAX, Candidate, CandidatePair, Gatherer, candidate_pairs,
};
use tautline_transport::relay::{Admission, Client, Grant, Side, Ticket, Token};
use tautline_transport::stun::{self, Message};
use tautline_transport::{ChannelNumber, Config, Event, Route, Session};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// Network in addition to the two ends.
#[derive(Clone, Copy, Default)]
struct Setup {
    has_relay: bool,
    vehicle_links: usize,
}

struct World {
    now: Instant,
    flights: BTreeMap<(Instant, u64), (SocketAddr, SocketAddr, Vec<u8>)>,
    /// Candidates in transit through the lease, by arrival time, with the receiving end.
    lease: BTreeMap<(Instant, u64), (usize, Vec<Candidate>)>,
    count: u64,
    ends: [End; 2],
    relay: Table,
}

/// An end, with a NAT in front of each of its sockets.
struct End {
    sockets: Vec<(SocketAddr, Nat)>,
    gatherer: Gatherer,
    client: Client,
    session: Option<Session>,
    /// Candidates last received through the lease.
    peer: Vec<Candidate>,
    /// Arrival times of the units that the end has received.
    units: Vec<Instant>,
}

impl World {
    fn new(setup: Setup) -> Self {
        let keys = [VEHICLE, OPERATOR].map(|end| identity(end as u8).public());
        let ends = [VEHICLE, OPERATOR].map(|end| {
            let links = if end == VEHICLE { setup.vehicle_links } else { 1 };
            let socket = |link: usize| {
                let outside = format!("198.51.100.{}", 1 + end * 8 + link).parse().unwrap();
                let lifetime = Duration::from_secs(120);
                let (mapping, filtering) = (By::Nothing, By::AddressAndPort);
                let nat = Nat::new(NatConfig { mapping, filtering, outside, lifetime });
                (SocketAddr::from(([10, 0, end as u8, 1 + link as u8], 7_000)), nat)
            };
            let sockets: Vec<_> = (0..links).map(socket).collect();
            let locals: Vec<_> = sockets.iter().map(|(inside, _)| *inside).collect();
            let mut gatherer = Gatherer::new(&locals, 1 + end as u64);
            gatherer.set_servers(&[server()], Instant::ZERO);
            let mut client = Client::default();
            if setup.has_relay {
                let side = if end == VEHICLE { Side::Initiator } else { Side::Responder };
                let (holder, peer) = (keys[end], keys[1 - end]);
                client.admit(&admission(end, side, holder, peer), &locals, Instant::ZERO);
            }
            let (peer, units) = (Vec::new(), Vec::new());
            End { sockets, gatherer, client, session: None, peer, units }
        });
        let limits = Limits {
            leases_max: 4,
            lease_rate: Bitrate::from_mbps(100),
            link_bytes_max: ByteCount::new(1 << 40),
        };
        let (own, switchboard) = (identity(RELAY), identity(SWITCHBOARD).public());
        let relay = Table::new(own, switchboard, limits, Duration::from_secs(1_000), [7; 32]);
        let (flights, lease) = (BTreeMap::new(), BTreeMap::new());
        let mut world = Self { now: Instant::ZERO, flights, lease, count: 0, ends, relay };
        world.flush(VEHICLE);
        world.flush(OPERATOR);
        world.run_until(Instant::from_millis(500));
        world.introduce();
        world.drive_until(Instant::from_millis(5_000));
        assert!(world.ends.iter().all(|end| !end.units.is_empty()), "they meet");
        world
    }

    fn introduce(&mut self) {
        let [vehicle, operator] = [VEHICLE, OPERATOR].map(|end| identity(end as u8));
        let (config, now) = (Config::default(), self.now);
        let begun = self.ends[VEHICLE].pairs();
        let routes: Vec<Route> = begun.iter().map(|pair| pair.route).collect();
        let peer = operator.public();
        let session = Session::initiate(config.clone(), &vehicle, peer, LEASE, &routes, 3, now);
        let mut session = session.unwrap();
        session.offer(&begun, now);
        self.ends[VEHICLE].session = Some(session);
        let session = Session::respond(config, &operator, vehicle.public(), LEASE, 4, now);
        let mut session = session.unwrap();
        session.punch(&self.ends[OPERATOR].punch_targets(), now);
        self.ends[OPERATOR].session = Some(session);
    }

    fn fly(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.count += 1;
        let near = from == relay() || to == relay();
        let at = self.now + if near { TO_RELAY } else { ONE_WAY };
        self.flights.insert((at, self.count), (from, to, bytes));
    }

    fn land(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let now = self.now;
        if to == server() {
            let Ok(Message::Request(request)) = Message::parse(&bytes) else { return };
            return self.fly(to, from, stun::answer(&request, from, None));
        }
        if to == relay() {
            let mut answer = Vec::new();
            let came = Route { socket: 0, remote: from };
            match self.relay.handle_datagram(came, &bytes, &mut answer, now) {
                Fate::Forwarded(on) => self.fly(to, on.remote, bytes),
                Fate::Answered => self.fly(to, from, answer),
                Fate::Dropped => {}
            }
            return;
        }
        for index in [VEHICLE, OPERATOR] {
            let end = &mut self.ends[index];
            for socket in 0..end.sockets.len() {
                let (inside, nat) = &mut end.sockets[socket];
                if nat.inbound(from, to, now) != Some(*inside) {
                    continue;
                }
                let route = Route { socket: socket as u8, remote: from };
                if stun::is_stun(&bytes) {
                    end.gatherer.handle_datagram(route.socket, from, &bytes, now);
                } else if !end.client.handle_datagram(route, &bytes, now)
                    && let Some(session) = &mut end.session
                {
                    session.handle_datagram(route, &bytes, now);
                }
                return self.flush(index);
            }
        }
    }

    /// Runs the event loop's work for an end.
    fn flush(&mut self, index: usize) {
        let (now, mut out, mut buffer) = (self.now, Vec::new(), Vec::new());
        let End { gatherer, client, session, units, .. } = &mut self.ends[index];
        if let Some(session) = session {
            if session.heard_at().is_some_and(|at| now.since(at) >= UNHEARD) {
                gatherer.hurry(now);
                client.hurry(now);
                session.hurry(now);
            }
            while let Some(socket) = client.poll_moved().or_else(|| gatherer.poll_moved()) {
                let relayed: Vec<Route> = client.legs().map(|leg| leg.route).collect();
                gatherer.hurry(now);
                session.handle_moved(socket, &relayed, now);
            }
        }
        while let Some(route) = client.poll_transmit(&mut buffer, now) {
            out.push((usize::from(route.socket), route.remote, buffer.clone()));
        }
        if let Some(session) = session {
            while let Some(route) = session.poll_transmit(&mut buffer, now) {
                out.push((usize::from(route.socket), route.remote, buffer.clone()));
            }
            while let Some(event) = session.poll_event() {
                if let Event::Unit { .. } = event {
                    units.push(now);
                }
            }
        }
        while let Some((socket, server, bytes)) = gatherer.poll_transmit(now) {
            out.push((usize::from(socket), server, bytes));
        }
        if let Some(found) = gatherer.poll_candidates() {
            self.count += 1;
            self.lease.insert((now + ONE_WAY * 2, self.count), (1 - index, found.to_vec()));
        }
        for (socket, to, bytes) in out {
            let (inside, nat) = &mut self.ends[index].sockets[socket];
            let from = nat.outbound(*inside, to, now);
            self.fly(from, to, bytes);
        }
    }

    fn run_until(&mut self, until: Instant) {
        loop {
            let flight = self.flights.keys().next().map(|key| key.0);
            let told = self.lease.keys().next().map(|key| key.0);
            let now = self.now;
            let ends = self.ends.iter().flat_map(|end| {
                let session = end.session.as_ref();
                let unheard = session.and_then(Session::heard_at).map(|at| at + UNHEARD);
                let session = session.and_then(Session::poll_timeout).map(|(at, _)| at);
                let unheard = unheard.filter(|at| *at > now);
                [session, unheard, end.gatherer.poll_timeout(), end.client.poll_timeout()]
            });
            let due = ends.chain([flight, told]).flatten().min();
            let Some(due) = due.filter(|due| *due <= until) else { break };
            self.now = self.now.max(due);
            while let Some(first) = self.flights.first_entry()
                && first.key().0 <= self.now
            {
                let (from, to, bytes) = first.remove();
                self.land(from, to, bytes);
            }
            while let Some(first) = self.lease.first_entry()
                && first.key().0 <= self.now
            {
                let (index, candidates) = first.remove();
                self.ends[index].on_lease(index, candidates, self.now);
                self.flush(index);
            }
            for index in [VEHICLE, OPERATOR] {
                if let Some(session) = &mut self.ends[index].session
                    && session.poll_timeout().is_some_and(|(at, _)| at <= self.now)
                {
                    session.handle_timeout(self.now);
                }
                self.flush(index);
            }
            self.relay.handle_timeout(self.now);
        }
        self.now = until;
    }

    /// Sends a slice every 5 ms, as at thirty pictures a second, and a command every 10 ms in the
    /// other direction.
    fn drive_until(&mut self, until: Instant) {
        let mut turn = 0;
        while self.now < until {
            for (index, channel) in [(0, ChannelNumber::MEDIA), (1, ChannelNumber::COMMAND)] {
                if let Some(session) =
                    self.ends[index].session.as_mut().filter(|_| index + turn % 2 < 2)
                {
                    let _ = session.send(channel, &[1; 600], Duration::from_millis(150), self.now);
                }
                self.flush(index);
            }
            turn += 1;
            self.run_until(self.now + Duration::from_millis(5));
        }
    }

    /// Changes the mapping of one end's first socket three times. Returns the longest time without
    /// a command at the vehicle, and without a slice at the operator.
    fn moves(&mut self, side: usize) -> [Duration; 2] {
        let mut longest = [Duration::ZERO; 2];
        for _ in 0..3 {
            // Not in phase with any periodic event.
            let moved_at = self.now + Duration::from_millis(30_007);
            self.drive_until(moved_at);
            self.ends[side].sockets[0].1.rebind();
            self.drive_until(moved_at + Duration::from_secs(5));
            for end in [VEHICLE, OPERATOR] {
                longest[end] = longest[end].max(self.longest_gap(end, moved_at));
            }
        }
        longest
    }

    fn longest_gap(&self, end: usize, since: Instant) -> Duration {
        let units = &self.ends[end].units;
        let first = units.partition_point(|at| *at < since).saturating_sub(1);
        let at: Vec<_> = units[first..].iter().copied().chain([self.now]).collect();
        at.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap()
    }
}

impl End {
    fn pairs(&self) -> Vec<CandidatePair> {
        let locals: Vec<_> = self.sockets.iter().map(|(inside, _)| *inside).collect();
        let mut found = candidate_pairs(&locals, &self.peer, CANDIDATE_PAIRS_MAX);
        found.extend(self.client.legs().map(|leg| CandidatePair::relayed(leg.route)));
        found
    }

    fn punch_targets(&self) -> Vec<Route> {
        let locals: Vec<_> = self.sockets.iter().map(|(inside, _)| *inside).collect();
        candidate_pairs(&locals, &self.peer, CANDIDATE_PAIRS_MAX)
            .into_iter()
            .map(|pair| pair.route)
            .collect()
    }

    fn on_lease(&mut self, index: usize, candidates: Vec<Candidate>, now: Instant) {
        self.peer = candidates;
        let (punches, pairs) = (self.punch_targets(), self.pairs());
        let Some(session) = &mut self.session else { return };
        match index {
            VEHICLE => session.offer(&pairs, now),
            _ => session.punch(&punches, now),
        }
    }
}

#[test]
fn a_warm_relay_carries_pictures_within_a_tenth_of_a_second() {
    for side in [VEHICLE, OPERATOR] {
        let mut world = World::new(Setup { has_relay: true, vehicle_links: 1 });
        let [commands, media] = world.moves(side);
        println!("side {side}, a warm relay: media {media:?}, commands {commands:?}");
        assert!(media <= Duration::from_millis(100), "side {side}: media {media:?}");
        assert!(commands <= Duration::from_millis(150), "side {side}: commands {commands:?}");
    }
}

#[test]
fn another_link_carries_pictures_within_a_tenth_of_a_second() {
    let mut world = World::new(Setup { has_relay: false, vehicle_links: 2 });
    let [commands, media] = world.moves(VEHICLE);
    println!("another link: media {media:?}, commands {commands:?}");
    assert!(media <= Duration::from_millis(100), "media {media:?}");
    assert!(commands <= Duration::from_millis(100), "commands {commands:?}");
}

#[test]
fn without_relay_or_second_link_a_move_costs_two_round_trips() {
    for side in [VEHICLE, OPERATOR] {
        let mut world = World::new(Setup { has_relay: false, vehicle_links: 1 });
        let [commands, media] = world.moves(side);
        println!("side {side}, alone: media {media:?}, commands {commands:?}");
        let bar = ONE_WAY * 4 + Duration::from_millis(100);
        assert!(media <= bar, "side {side}: media {media:?}");
        assert!(commands <= bar + Duration::from_millis(100), "side {side}: commands {commands:?}");
    }
}

fn admission(end: usize, side: Side, holder: PublicKey, peer: PublicKey) -> Admission {
    let own = identity(RELAY).public();
    let grant = Grant { side, holder, peer, relay: own, until: Duration::from_secs(1_000_000) };
    let token = Token::issue(&grant, &identity(SWITCHBOARD));
    let (addresses, streams) = (vec![relay()], Vec::new());
    let tickets = vec![Ticket { addresses, streams, relay: own, token }];
    Admission { identity: identity(end as u8), peer, tickets, seed: (9 + end as u64).into() }
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed + 1; 32])
}

fn server() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 7_443))
}

fn relay() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 9], 7_444))
}

const VEHICLE: usize = 0;
const OPERATOR: usize = 1;
const RELAY: u8 = 2;
const SWITCHBOARD: u8 = 3;
const LEASE: [u8; 16] = [7; 16];
/// Delay from one end to the other, and from an end to the switchboard.
const ONE_WAY: Duration = Duration::from_millis(20);
/// Delay from an end to the relay, which is half-way.
const TO_RELAY: Duration = Duration::from_millis(10);
/// Silence after which an end queries its addresses again, the same as in the event loop.
const UNHEARD: Duration = Duration::from_millis(30);
