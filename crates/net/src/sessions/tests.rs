use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tautline_transport::crypto::Identity;
use tautline_transport::{ChannelNumber, Config};

use super::*;

/// A vehicle and two operators, each with its own link without delay.
struct World {
    vehicle: End,
    operators: [End; 2],
    /// `true` for each operator whose link works.
    carries: [bool; 2],
    now: Instant,
    lease: u8,
}

/// One process, with the events of its sessions.
#[derive(Default)]
struct End {
    sessions: Sessions,
    established: usize,
    /// Arrival time and first byte of each unit.
    units: Vec<(Instant, u8)>,
    budget: Bitrate,
}

impl World {
    fn new() -> Self {
        Self {
            vehicle: End::default(),
            operators: [End::default(), End::default()],
            carries: [true; 2],
            now: Instant::from_millis(1_000),
            lease: 0,
        }
    }

    /// Returns a world in which the first operator drives.
    fn driving() -> Self {
        let mut world = Self::new();
        world.introduce(0, || false);
        world.run(Duration::from_millis(500));
        assert_eq!(world.established(), (1, 1));
        world
    }

    /// Introduces the vehicle and an operator to each other, under a new lease.
    fn introduce(&mut self, operator: usize, may_take_over: impl Fn() -> bool + Send + 'static) {
        self.introduce_vehicle(operator, may_take_over);
        let lease = [self.lease; 16];
        let own = identity(operator);
        let vehicle = Identity::from_seed(&[VEHICLE; 32]).public();
        let seed = [100 + self.lease; 32];
        let respond = Session::respond(Config::default(), &own, vehicle, lease, seed, self.now);
        let (sessions, session) = (&mut self.operators[operator].sessions, respond.unwrap());
        sessions.introduce(session, Condition::new(|| false), self.now);
    }

    /// Introduces only the vehicle.
    fn introduce_vehicle(
        &mut self,
        operator: usize,
        may_take_over: impl Fn() -> bool + Send + 'static,
    ) {
        self.lease += 1;
        let own = Identity::from_seed(&[VEHICLE; 32]);
        let peer = identity(operator).public();
        let (lease, routes, seed) = ([self.lease; 16], [route(operator)], [self.lease; 32]);
        let config = Config::default();
        let session = Session::initiate(config, &own, peer, lease, &routes, seed, self.now);
        let condition = Condition::new(may_take_over);
        self.vehicle.sessions.introduce(session.unwrap(), condition, self.now);
    }

    /// Runs for `time`: every end with a session sends a unit every 20 ms; operators send their
    /// number, the vehicle 9.
    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            let now = self.now;
            if self.now.as_millis().is_multiple_of(20) {
                self.vehicle.send(9, now);
                for (number, operator) in (0..).zip(&mut self.operators) {
                    operator.send(number, now);
                }
            }
            self.exchange();
            for end in std::iter::once(&mut self.vehicle).chain(&mut self.operators) {
                end.sessions.handle_timeout(now);
            }
            self.exchange();
            for end in std::iter::once(&mut self.vehicle).chain(&mut self.operators) {
                end.take_events(now);
            }
        }
    }

    fn exchange(&mut self) {
        let mut datagram = Vec::new();
        let mut moved = true;
        while moved {
            moved = false;
            while let Some((to, _)) = self.vehicle.sessions.poll_transmit(&mut datagram, self.now) {
                let operator = usize::from(to.remote.port()) - 1;
                if self.carries[operator] {
                    let sessions = &mut self.operators[operator].sessions;
                    sessions.handle_datagram(to, &datagram, Ecn::NotEct, self.now);
                    moved = true;
                }
            }
            for (number, operator) in self.operators.iter_mut().enumerate() {
                while let Some((to, _)) = operator.sessions.poll_transmit(&mut datagram, self.now) {
                    if self.carries[number] {
                        self.vehicle.sessions.handle_datagram(to, &datagram, Ecn::NotEct, self.now);
                        moved = true;
                    }
                }
            }
        }
    }

    /// Returns how often the vehicle's and the first operator's session began.
    fn established(&self) -> (usize, usize) {
        (self.vehicle.established, self.operators[0].established)
    }

    /// Returns the longest time without a command, from `from` to now.
    fn longest_gap(&self, from: Instant) -> Duration {
        let times = self.vehicle.units.iter().map(|(at, _)| *at).filter(|at| *at >= from);
        let times: Vec<Instant> = [from].into_iter().chain(times).chain([self.now]).collect();
        times.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap()
    }

    /// Returns the operator whose commands arrived within the last 100 ms.
    fn driver(&self) -> Option<u8> {
        let (at, operator) = self.vehicle.units.last()?;
        (self.now.since(*at) <= Duration::from_millis(100)).then_some(*operator)
    }
}

impl End {
    fn send(&mut self, content: u8, now: Instant) {
        let channel = match content {
            9 => ChannelNumber::MEDIA,
            _ => ChannelNumber::COMMAND,
        };
        if let Some(session) = self.sessions.present_mut() {
            // Before the session is established, errors are expected.
            let _ = session.send(channel, &[content], Duration::from_millis(200), now);
        }
    }

    fn take_events(&mut self, now: Instant) {
        while let Some((event, _)) = self.sessions.poll_event() {
            match event {
                Event::Established => self.established += 1,
                Event::Unit { bytes, .. } => self.units.push((now, bytes[0])),
                Event::Budget { media, .. } => self.budget = media,
                _ => {}
            }
        }
    }
}

#[test]
fn a_session_that_lives_outlasts_every_introduction() {
    let mut world = World::driving();
    let begun = world.now;
    for _ in 0..100 {
        world.introduce(0, || true);
        world.run(Duration::from_millis(115));
    }
    assert!(world.vehicle.sessions.successor.is_some());
    // Both ends receive each other: the successor is discarded, and the session continues.
    world.run(Duration::from_secs(11));
    assert!(world.vehicle.sessions.successor.is_none());
    assert!(world.operators[0].sessions.successor.is_none());
    assert_eq!(world.established(), (1, 1));
    assert!(
        world.longest_gap(begun) <= Duration::from_millis(20),
        "{:?}",
        world.longest_gap(begun)
    );
    assert!(world.vehicle.budget > Bitrate::ZERO);
}

#[test]
fn a_restarted_peer_is_reached_by_the_successor_session() {
    let mut world = World::driving();
    // The operator's process is killed and restarts.
    world.operators[0] = End::default();
    world.introduce(0, || false);
    world.run(Duration::from_millis(400));
    assert_eq!(world.vehicle.established, 1);
    world.run(Duration::from_millis(400));
    assert_eq!(world.established(), (2, 1));
    assert_eq!(world.driver(), Some(0));
    assert!(world.vehicle.sessions.successor.is_none());
    // Then the vehicle's process.
    world.vehicle = End::default();
    world.introduce(0, || false);
    world.run(Duration::from_millis(1_000));
    assert_eq!(world.established(), (1, 2));
    assert_eq!(world.driver(), Some(0));
    let pictures = world.operators[0].units.last().unwrap();
    assert!(world.now.since(pictures.0) <= Duration::from_millis(40));
    assert!(world.vehicle.budget > Bitrate::ZERO);
}

#[test]
fn after_all_links_were_out_the_two_agree_on_one_session() {
    for outage in [100, 300, 450, 550, 800, 3_000] {
        let mut world = World::driving();
        world.introduce(0, || false);
        world.run(Duration::from_millis(300));
        world.carries[0] = false;
        world.run(Duration::from_millis(outage));
        world.carries[0] = true;
        world.run(Duration::from_millis(1_500));
        assert_eq!(world.driver(), Some(0), "after {outage} ms");
        let (vehicle, operator) = world.established();
        assert_eq!(vehicle, operator, "after {outage} ms");
    }
}

#[test]
fn another_operator_waits_until_its_condition_holds() {
    let mut world = World::driving();
    let begun = world.now;
    let stands = Arc::new(AtomicBool::new(false));
    let asked = stands.clone();
    world.introduce(1, move || asked.load(Ordering::Relaxed));
    world.run(Duration::from_secs(30));
    assert_eq!((world.driver(), world.vehicle.established), (Some(0), 1));
    assert!(world.longest_gap(begun) <= Duration::from_millis(20));
    // Its commands meanwhile reach nobody, and it can be notified of the reason.
    assert!(world.vehicle.sessions.units_of_successor() > 1_000);
    let told = world.operators[1].units.len();
    let waiting = world.vehicle.sessions.waiting_mut().unwrap();
    let reason = Duration::from_millis(200);
    waiting.send(ChannelNumber::COMMAND, &[7], reason, world.now).unwrap();
    world.run(Duration::from_millis(100));
    assert_eq!(world.operators[1].units[told..].iter().map(|unit| unit.1).next(), Some(7));
    stands.store(true, Ordering::Relaxed);
    world.run(Duration::from_millis(200));
    assert_eq!((world.driver(), world.vehicle.established), (Some(1), 2));
}

#[test]
fn another_operator_need_not_wait_for_one_who_has_gone() {
    let mut world = World::driving();
    world.introduce(1, || false);
    world.carries[0] = false;
    world.run(Duration::from_millis(9_900));
    assert_eq!((world.driver(), world.vehicle.established), (None, 1));
    world.run(Duration::from_millis(300));
    assert_eq!((world.driver(), world.vehicle.established), (Some(1), 2));
}

#[test]
fn an_introduction_without_an_answer_changes_nothing() {
    let mut world = World::driving();
    let begun = world.now;
    // The introduced operator does not know about it.
    world.introduce_vehicle(1, || true);
    world.run(Duration::from_secs(15));
    world.introduce_vehicle(0, || true);
    world.run(Duration::from_secs(15));
    assert_eq!((world.driver(), world.established()), (Some(0), (1, 1)));
    assert!(world.longest_gap(begun) <= Duration::from_millis(20));
}

#[test]
fn a_released_session_ends_only_after_its_peer_is_gone() {
    let mut world = World::driving();
    let begun = world.now;
    for _ in 0..50 {
        world.vehicle.sessions.release();
        world.operators[0].sessions.release();
        world.run(Duration::from_millis(300));
    }
    assert_eq!((world.driver(), world.established()), (Some(0), (1, 1)));
    assert!(world.longest_gap(begun) <= Duration::from_millis(20));
    world.carries[0] = false;
    world.run(Duration::from_millis(9_900));
    assert!(world.vehicle.sessions.present().is_some());
    assert_eq!(world.vehicle.budget, Bitrate::ZERO);
    world.run(Duration::from_millis(300));
    assert!(world.vehicle.sessions.present().is_none());
    assert!(!world.vehicle.sessions.handle_datagram(route(0), &[3; 60], Ecn::NotEct, world.now));
}

#[test]
fn a_session_never_established_is_replaced_at_once() {
    let mut world = World::new();
    world.introduce_vehicle(0, || false);
    world.run(Duration::from_secs(1));
    world.introduce(1, || false);
    world.run(Duration::from_millis(200));
    assert_eq!((world.driver(), world.vehicle.established), (Some(1), 1));
}

#[test]
fn forged_datagrams_find_a_session_and_change_none() {
    let mut world = World::driving();
    world.introduce(0, || false);
    let begun = world.now;
    let mut datagram = vec![0; 1_400];
    for turn in 0..2_000_u32 {
        let length = (turn * 37 % 1_400) as usize;
        datagram[..4].copy_from_slice(&turn.wrapping_mul(2_654_435_761).to_be_bytes());
        datagram[0] = (turn % 5) as u8;
        world.vehicle.sessions.handle_datagram(
            route(0),
            &datagram[..length],
            Ecn::NotEct,
            world.now,
        );
        world.operators[0].sessions.handle_datagram(
            route(0),
            &datagram[..length],
            Ecn::NotEct,
            world.now,
        );
        world.run(STEP);
    }
    assert_eq!((world.driver(), world.established()), (Some(0), (1, 1)));
    assert!(world.longest_gap(begun) <= Duration::from_millis(20));
}

fn identity(operator: usize) -> Identity {
    Identity::from_seed(&[operator as u8 + 1; 32])
}

fn route(operator: usize) -> Route {
    let remote = SocketAddr::from(([10, 0, 0, 1], operator as u16 + 1));
    Route { socket: 0, remote }
}

const VEHICLE: u8 = 77;
const STEP: Duration = Duration::from_millis(5);

#[test]
fn a_session_to_end_continues_until_its_condition_holds() {
    let mut world = World::driving();
    let may_end = Arc::new(AtomicBool::new(false));
    let asked = may_end.clone();
    world.vehicle.sessions.end(Condition::new(move || asked.load(Ordering::Relaxed)));
    world.run(Duration::from_millis(300));
    assert_eq!(world.driver(), Some(0), "it goes on meanwhile");
    // Another lease with the same operator: the old session lives, and is replaced all the same.
    world.introduce(0, || false);
    world.run(Duration::from_millis(300));
    assert_eq!(world.established(), (1, 1));
    may_end.store(true, Ordering::Relaxed);
    world.run(Duration::from_secs(2));
    assert_eq!(world.established(), (2, 2));
    assert_eq!(world.driver(), Some(0));
}

#[test]
fn a_successor_begun_before_a_session_is_ended_ends_with_it() {
    let mut world = World::driving();
    world.introduce(1, || true);
    world.vehicle.sessions.end(Condition::new(|| true));
    world.run(Duration::from_secs(2));
    assert!(world.vehicle.sessions.present().is_none());
    assert_eq!(world.vehicle.established, 1, "neither drives any more");
    world.introduce(1, || false);
    world.run(Duration::from_millis(500));
    assert_eq!(world.driver(), Some(1), "one that is introduced later does");
}
