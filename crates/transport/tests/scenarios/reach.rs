//! Two ends behind NATs of every behaviour, a server that reports addresses, and a lease that
//! brings each end those of the other. Ends that can connect directly must do so.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use tautline_sim::nat::{By, Config as NatConfig, Nat};
use tautline_transport::link::State;
use tautline_transport::reach::{
    Behaviour, CANDIDATE_PAIRS_MAX, Candidate, CandidatePair, Discovery, Gatherer, Kind,
    candidate_pairs,
};
use tautline_transport::stun::{self, Message};
use tautline_transport::{ChannelNumber, Config, Event, Identity, Route, Session, Units};
use tautline_units::{Duration, Instant};

use crate::harness::ms;

/// A network of two ends, each behind its NATs, the outermost last.
struct World {
    now: Instant,
    flights: BTreeMap<(Instant, u64), Flight>,
    flown: u64,
    ends: [End; 2],
    /// Messages of the lease, by arrival time: destination end and candidates.
    lease: BTreeMap<(Instant, u64), (usize, Vec<Candidate>)>,
}

struct End {
    inside: SocketAddr,
    boxes: Vec<Nat>,
    /// IPv6 address of the end; `None` if it has only IPv4.
    six: Option<SocketAddr>,
    gatherer: Gatherer,
    session: Option<Session>,
    /// Candidates last received from the lease.
    peer: Vec<Candidate>,
    /// Arrival times of the units that this end received.
    units: Vec<Instant>,
}

struct Flight {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

const VEHICLE: usize = 0;
const OPERATOR: usize = 1;
const LEASE: [u8; 16] = [7; 16];
const ONE_WAY: Duration = Duration::from_millis(20);
const OUTSIDE: [&str; 2] = ["198.51.100.1", "198.51.100.2"];

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Returns the four endpoints of the server: its first address with each of its two ports, then its
/// second address with each.
fn corners() -> [SocketAddr; 4] {
    ["192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1", "192.0.2.2:2"].map(at)
}

fn nat(mapping: By, filtering: By, outside: &str) -> Nat {
    let (outside, lifetime) = (outside.parse().unwrap(), Duration::from_secs(120));
    Nat::new(NatConfig { mapping, filtering, outside, lifetime })
}

impl World {
    /// Creates a network of the two ends' NATs; without any, an end has a public address.
    fn new(boxes: [Vec<Nat>; 2]) -> Self {
        let mut place = 0;
        let ends = boxes.map(|boxes| {
            let inside = match boxes.is_empty() {
                true => SocketAddr::new(OUTSIDE[place].parse().unwrap(), 7_000),
                false => SocketAddr::from(([10, 0, place as u8, 1], 7_000)),
            };
            place += 1;
            let mut gatherer = Gatherer::new(&[inside], place as u64);
            gatherer.set_hosts(0, inside, vec![inside.ip()], Instant::ZERO);
            gatherer.set_servers(&corners()[..1], Instant::ZERO);
            End {
                inside,
                boxes,
                six: None,
                gatherer,
                session: None,
                peer: Vec::new(),
                units: Vec::new(),
            }
        });
        let (flights, lease) = (BTreeMap::new(), BTreeMap::new());
        Self { now: Instant::ZERO, flights, flown: 0, ends, lease }
    }

    /// Introduces the two ends: creates their sessions with the candidates known so far.
    fn introduce(&mut self) {
        let identities = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]));
        let [vehicle, operator] = &identities;
        let (config, now) = (Config::default(), self.now);
        let begun = self.ends[VEHICLE].pairs();
        let routes: Vec<Route> = begun.iter().map(|pair| pair.route).collect();
        let peer = operator.public();
        let mut session =
            Session::initiate(config.clone(), vehicle, peer, LEASE, &routes, 3, now).unwrap();
        session.offer(&begun, now);
        self.ends[VEHICLE].session = Some(session);
        let mut session =
            Session::respond(config, operator, vehicle.public(), LEASE, 4, now).unwrap();
        session.punch(&self.ends[OPERATOR].punch_targets(), now);
        self.ends[OPERATOR].session = Some(session);
    }

    fn send(&mut self, end: usize, to: SocketAddr, bytes: Vec<u8>) {
        let End { inside, boxes, six, .. } = &mut self.ends[end];
        let now = self.now;
        let from = match six.filter(|_| to.is_ipv6()) {
            Some(six) => six,
            None => boxes.iter_mut().fold(*inside, |from, nat| nat.outbound(from, to, now)),
        };
        self.fly(Flight { from, to, bytes });
    }

    fn fly(&mut self, flight: Flight) {
        self.flown += 1;
        self.flights.insert((self.now + ONE_WAY, self.flown), flight);
    }

    fn land(&mut self, flight: Flight) {
        let Flight { from, to, bytes } = flight;
        if let Some(corner) = corners().iter().position(|corner| *corner == to) {
            let Ok(Message::Request(request)) = Message::parse(&bytes) else { return };
            let by = corner
                ^ (usize::from(request.change.address) << 1 | usize::from(request.change.port));
            let (origin, other) = (corners()[by], corners()[corner ^ 3]);
            let bytes = stun::answer(&request, from, Some([origin, other]));
            return self.fly(Flight { from: origin, to: from, bytes });
        }
        let now = self.now;
        for (index, end) in self.ends.iter_mut().enumerate() {
            let mut boxes = end.boxes.iter().rev();
            let landed = boxes.try_fold(to, |to, nat| nat.inbound(from, to, now));
            if landed != Some(end.inside) && Some(to) != end.six {
                continue;
            }
            if stun::is_stun(&bytes) {
                end.gatherer.handle_datagram(0, from, &bytes, now);
            } else if let Some(session) = &mut end.session {
                session.handle_datagram(Route { socket: 0, remote: from }, &bytes, now);
            }
            return self.flush(index);
        }
    }

    /// Sends everything that an end has to send: its session's and its gatherer's datagrams, and
    /// changed candidates by the lease. Records the arrival of received units.
    fn flush(&mut self, index: usize) {
        let (now, mut out, mut buffer) = (self.now, Vec::new(), Vec::new());
        let end = &mut self.ends[index];
        if let Some(session) = &mut end.session {
            while let Some(route) = session.poll_transmit(&mut buffer, now) {
                out.push((route.remote, buffer.clone()));
            }
            while let Some(event) = session.poll_event() {
                if let Event::Unit { .. } = event {
                    end.units.push(now);
                }
            }
            // As the event loop does.
            if session.heard_at().is_some_and(|at| now.since(at) >= Duration::from_millis(50)) {
                end.gatherer.hurry(now);
            }
        }
        while let Some((_, server, bytes)) = end.gatherer.poll_transmit(now) {
            out.push((server, bytes));
        }
        if let Some(found) = end.gatherer.poll_candidates() {
            self.flown += 1;
            self.lease.insert((now + ONE_WAY * 2, self.flown), (1 - index, found.to_vec()));
        }
        for (to, bytes) in out {
            self.send(index, to, bytes);
        }
    }

    fn run_until(&mut self, until: Instant) {
        loop {
            let flight = self.flights.keys().next().map(|key| key.0);
            let told = self.lease.keys().next().map(|key| key.0);
            let ends = self.ends.iter().flat_map(|end| {
                let session = end.session.as_ref().and_then(Session::poll_timeout);
                [session.map(|(at, _)| at), end.gatherer.poll_timeout()]
            });
            let due = ends.chain([flight, told]).flatten().min();
            let Some(due) = due.filter(|due| *due <= until) else { break };
            self.now = self.now.max(due);
            while let Some(first) = self.flights.first_entry()
                && first.key().0 <= self.now
            {
                let flight = first.remove();
                self.land(flight);
            }
            while let Some(first) = self.lease.first_entry()
                && first.key().0 <= self.now
            {
                let (index, candidates) = first.remove();
                self.ends[index].on_lease(index, candidates, self.now);
                self.flush(index);
            }
            for index in 0..2 {
                if let Some(session) = &mut self.ends[index].session
                    && session.poll_timeout().is_some_and(|(at, _)| at <= self.now)
                {
                    session.handle_timeout(self.now);
                }
                self.flush(index);
            }
        }
        self.now = until;
    }

    /// Sends a unit in each direction every 20 ms until `until`.
    fn drive_until(&mut self, until: Instant) {
        while self.now < until {
            for (index, channel) in [(0, ChannelNumber::MEDIA), (1, ChannelNumber::COMMAND)] {
                if let Some(session) = &mut self.ends[index].session {
                    let _ = session.send(channel, &[1; 600], Duration::from_millis(150), self.now);
                }
                self.flush(index);
            }
            self.run_until(self.now + Duration::from_millis(20));
        }
    }

    /// Gathers for a tenth of a second, introduces the ends, and drives for two seconds. Returns
    /// the time from the introduction until units had arrived at both ends; `None` if at one none
    /// has.
    fn meet(&mut self) -> Option<Duration> {
        self.flush(0);
        self.flush(1);
        self.run_until(ms(100));
        self.introduce();
        self.drive_until(ms(2_100));
        let first = self.ends.iter().map(|end| end.units.first().copied());
        Some(first.collect::<Option<Vec<_>>>()?.into_iter().max()?.since(ms(100)))
    }

    /// Returns the longest time since `since` without an arrival from the other end.
    fn longest_gap(&self, end: usize, since: Instant) -> Duration {
        let units = self.ends[end].units.iter().filter(|at| **at >= since);
        let at: Vec<_> = [since].iter().chain(units).copied().chain([self.now]).collect();
        at.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap()
    }
}

impl End {
    fn punch_targets(&self) -> Vec<Route> {
        self.pairs().into_iter().map(|pair| pair.route).collect()
    }

    fn pairs(&self) -> Vec<CandidatePair> {
        let local = if self.six.is_some() { at("[::]:7000") } else { self.inside };
        candidate_pairs(&[local], &self.peer, CANDIDATE_PAIRS_MAX)
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

/// Returns whether two ends behind such NATs can connect without a relay according to RFC 4787.
fn can_meet(a: (By, By), b: (By, By)) -> bool {
    let is_open = |(mapping, _): (By, By)| mapping == By::Nothing;
    match (is_open(a), is_open(b)) {
        (true, true) => true,
        // The other end's address for us is unknown before its first packet, which must be admitted
        // anyway.
        (true, false) => a.1 != By::AddressAndPort,
        (false, true) => b.1 != By::AddressAndPort,
        (false, false) => {
            let lets = |one: (By, By), other: (By, By)| {
                one.1 == By::Nothing && other.1 != By::AddressAndPort
            };
            lets(a, b) || lets(b, a)
        }
    }
}

fn behaviours() -> impl Iterator<Item = (By, By)> {
    By::ALL.into_iter().flat_map(|mapping| By::ALL.map(|filtering| (mapping, filtering)))
}

#[test]
fn every_box_is_found_out_for_what_it_is() {
    let is = |by: By| match by {
        By::Nothing => Behaviour::EndpointIndependent,
        By::Address => Behaviour::AddressDependent,
        By::AddressAndPort => Behaviour::AddressAndPortDependent,
    };
    for (mapping, filtering) in behaviours() {
        let mut world = World::new([vec![nat(mapping, filtering, OUTSIDE[0])], Vec::new()]);
        let mut discovery = Discovery::new(corners()[0], 1, world.now);
        while let Some(due) = discovery.poll_timeout() {
            while let Some((to, bytes)) = discovery.poll_transmit(world.now) {
                world.send(VEHICLE, to, bytes);
            }
            let first = world.flights.first_entry();
            match first.filter(|first| first.key().0 <= due) {
                None => world.now = due,
                Some(first) => {
                    world.now = first.key().0;
                    let Flight { from, to, bytes } = first.remove();
                    let end = &world.ends[VEHICLE];
                    let inside = end.boxes[0].inbound(from, to, world.now);
                    match inside {
                        Some(_) => discovery.handle_datagram(&bytes, world.now),
                        None => world.land(Flight { from, to, bytes }),
                    }
                }
            }
        }
        let found = discovery.found();
        let expected = (Some(is(mapping)), Some(is(filtering)));
        assert_eq!((found.mapping, found.filtering), expected);
        assert_eq!(found.mapped.unwrap().ip().to_string(), OUTSIDE[0]);
    }
}

#[test]
fn compatible_nats_connect_without_relay_within_a_second() {
    let mut slowest = Duration::ZERO;
    for vehicle in behaviours() {
        for operator in behaviours() {
            let boxes = [(vehicle, OUTSIDE[0]), (operator, OUTSIDE[1])];
            let boxes = boxes.map(|((by, let_in), outside)| vec![nat(by, let_in, outside)]);
            let met = World::new(boxes).meet();
            let told = format!("{vehicle:?} and {operator:?}: {met:?}");
            assert_eq!(met.is_some(), can_meet(vehicle, operator), "{told}");
            slowest = slowest.max(met.unwrap_or_default());
        }
    }
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
}

#[test]
fn two_layers_are_as_good_as_their_worse_one() {
    let home = || nat(By::Nothing, By::AddressAndPort, "100.64.0.2");
    for carrier in behaviours() {
        let vehicle = vec![home(), nat(carrier.0, carrier.1, OUTSIDE[0])];
        let operator = vec![nat(By::Nothing, By::Address, OUTSIDE[1])];
        assert!(World::new([vehicle, operator]).meet().is_some(), "{carrier:?}");
        let vehicle = vec![home(), nat(By::Nothing, carrier.1, OUTSIDE[0])];
        let operator = vec![nat(By::Nothing, By::AddressAndPort, OUTSIDE[1])];
        assert!(World::new([vehicle, operator]).meet().is_some(), "{carrier:?}");
    }
}

#[test]
fn a_translator_that_moves_is_followed_from_either_side() {
    for side in [VEHICLE, OPERATOR] {
        let mut world =
            World::new(OUTSIDE.map(|outside| vec![nat(By::Nothing, By::AddressAndPort, outside)]));
        assert!(world.meet().is_some());
        let mut gaps = [Duration::ZERO; 2];
        for turn in 1..=3_u64 {
            let moved_at = ms(30_000 * turn);
            world.drive_until(moved_at);
            world.ends[side].boxes[0].rebind();
            world.drive_until(moved_at + Duration::from_secs(5));
            for end in [VEHICLE, OPERATOR] {
                gaps[end] = gaps[end].max(world.longest_gap(end, moved_at));
            }
        }
        // Noticed after 50 ms; then a round trip to the server, one of the lease, and one of the
        // link.
        let [commands, media] = gaps;
        println!("side {side}: media {media:?}, commands {commands:?}");
        assert!(media <= Duration::from_millis(240), "side {side}: media {media:?}");
        assert!(commands <= Duration::from_millis(300), "side {side}: commands {commands:?}");
    }
}

#[test]
fn a_better_pair_takes_over_without_loss_and_falls_back() {
    let mut world = World::new([Vec::new(), Vec::new()]);
    for (end, six) in world.ends.iter_mut().zip(["[2001:db8::1]:7000", "[2001:db8::2]:7000"]) {
        end.six = Some(at(six));
    }
    assert!(world.meet().is_some());
    let carries = |world: &World| {
        let session = world.ends[VEHICLE].session.as_ref().unwrap();
        let carriers = session.links().filter(|link| link.state == State::Up && !link.stands_by);
        carriers.map(|link| link.route.remote.is_ipv6()).collect::<Vec<_>>()
    };
    assert_eq!(carries(&world), [false]);
    for index in [VEHICLE, OPERATOR] {
        let mut candidates = world.ends[index].peer.clone();
        let address = world.ends[1 - index].six.unwrap();
        candidates.push(Candidate { kind: Kind::Host, end: 0, address });
        world.ends[index].on_lease(index, candidates, world.now);
    }
    world.drive_until(ms(4_000));
    assert_eq!(carries(&world), [true]);
    let lost = |world: &World| {
        let of = |end: usize| world.ends[end].session.as_ref().unwrap();
        let media = of(OPERATOR).units(ChannelNumber::MEDIA);
        let commands = of(VEHICLE).units(ChannelNumber::COMMAND);
        let sent = of(VEHICLE).units(ChannelNumber::MEDIA).accepted;
        let lost = |units: Units| units.missing + units.incomplete + units.late;
        (sent - media.delivered, lost(media), lost(commands))
    };
    // One is in flight.
    let (under_way, media, commands) = lost(&world);
    assert!(under_way <= 2 && media == 0 && commands == 0, "{under_way} {media} {commands}");
    // The better one is cut: the other is on standby with fresh state.
    let cut_at = world.now;
    for end in &mut world.ends {
        end.six = Some(at("[2001:db8::dead]:9"));
    }
    world.drive_until(cut_at + Duration::from_secs(2));
    assert_eq!(carries(&world), [false]);
    let gap = world.longest_gap(OPERATOR, cut_at);
    assert!(gap <= Duration::from_millis(130), "{gap:?}");
}

#[test]
fn a_hole_punch_is_answered_in_equal_length_a_forged_one_never() {
    let identities = [1, 2].map(|seed| Identity::from_seed(&[seed; 32]));
    let [vehicle, operator] = &identities;
    let told = Route { socket: 0, remote: at("192.0.2.9:9") };
    let peer = operator.public();
    let mut session =
        Session::initiate(Config::default(), vehicle, peer, LEASE, &[told], 3, ms(1)).unwrap();
    let punch = |lease| {
        let peer = vehicle.public();
        let mut session =
            Session::respond(Config::default(), operator, peer, lease, 4, ms(1)).unwrap();
        session.punch(&[told], ms(1));
        let mut datagram = Vec::new();
        assert_eq!(session.poll_transmit(&mut datagram, ms(1)), Some(told));
        datagram
    };
    let mut out = |datagram: &[u8], from: SocketAddr| {
        let mut buffer = Vec::new();
        while session.poll_transmit(&mut buffer, ms(2)).is_some() {}
        session.handle_datagram(Route { socket: 0, remote: from }, datagram, ms(2));
        let mut sent = Vec::new();
        while let Some(route) = session.poll_transmit(&mut buffer, ms(2)) {
            sent.push((route.remote, buffer.len()));
        }
        sent
    };
    let victim = at("203.0.113.66:6");
    let good = punch(LEASE);
    assert_eq!(good.len(), 150);
    for _ in 0..3 {
        assert_eq!(out(&good, victim), [(victim, 150)], "an init for a punch");
    }
    assert_eq!(out(&punch([8; 16]), victim), []);
    let mut spoilt = good.clone();
    spoilt[5] ^= 1;
    assert_eq!(out(&spoilt, victim), []);
    assert_eq!(out(&good[..149], victim), []);
    // Nothing else is sent to other addresses by the schedule of the first message.
    let others = (0..9_u8).flat_map(|last| out(&good, SocketAddr::from(([203, 0, 113, last], 6))));
    assert_eq!(others.filter(|(to, _)| *to != told.remote).count(), 9);
}
