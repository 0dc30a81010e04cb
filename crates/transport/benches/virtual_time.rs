//! How fast virtual time runs: two real sessions over four links, 10 Mbit/s of media.
//!
//! Items are virtual seconds: "100 item/s" is a hundred times faster than life. One core, the links'
//! models, encryption and the repair packets of both ends included.

use std::net::SocketAddr;
use std::time::Duration;

use divan::counter::ItemsCount;
use tautline_sim::preset;
use tautline_sim::world::{self, Clock, End, Node, NodeId, World};
use tautline_transport::{Class, Config, Event, Identity, Route, Session, rate};
use tautline_units::{Bitrate, Instant};

fn main() {
    divan::main();
}

const LINKS: u8 = 4;

/// Six slices of sixty pictures.
const UNITS_PER_SECOND: u64 = 360;

const MEDIA: Bitrate = Bitrate::from_mbps(10);

/// Twice the media's quarter, and a fifth for headers, reports and pings.
const PER_LINK: Bitrate = Bitrate::from_kbps(6_000);

const SECONDS: u64 = 5;

#[divan::bench(sample_count = 10, sample_size = 1)]
fn four_links_at_10_mbps(bencher: divan::Bencher<'_, '_>) {
    let bencher = bencher.counter(ItemsCount::new(SECONDS));
    bencher.with_inputs(established).bench_values(|(mut world, operator)| {
        let from = world.now();
        world.run_until(from + Duration::from_secs(SECONDS));
        let units = world.node(operator).units;
        assert!(units >= SECONDS * UNITS_PER_SECOND * 97 / 100, "only {units} units came");
        world
    });
}

/// A world whose sessions have exchanged keys and know their links.
fn established() -> (World<Party>, NodeId) {
    let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
    let mut config = Config::default();
    config.rate.controller = rate::Kind::Fixed;
    config.rate.initial = PER_LINK;
    let far = |link: u8| SocketAddr::from(([10, 0, 1, 1], 5_000 + u16::from(link)));
    let routes: Vec<Route> =
        (0..LINKS).map(|socket| Route { socket, remote: far(socket) }).collect();
    let start = Instant::ZERO;
    let operator = Session::respond(config.clone(), &b, a.public(), [7; 16], 1, start);
    let vehicle = Session::initiate(config, &a, b.public(), [7; 16], &routes, 2, start);
    let mut world = World::new(1);
    world.log_mut().keep(0);
    let operator = world.add(Party::new(operator.expect("sound"), None), Clock::default());
    let vehicle = Party::new(vehicle.expect("sound"), Some(MEDIA));
    let vehicle = world.add(vehicle, Clock::default());
    for link in 0..LINKS {
        let here = End::new(vehicle, link, SocketAddr::from(([10, 0, 0, link], 4_000)));
        let there = End::new(operator, 0, far(link));
        world.link(here, there, &preset::model(PER_LINK)).expect("sound");
    }
    world.run_until(Instant::from_millis(2_000));
    let party = |party: &mut Party, now: Instant| {
        (party.units, party.next) = (0, now);
    };
    world.act(vehicle, party);
    world.act(operator, party);
    (world, operator)
}

/// A session that sends media, or takes them and sends commands.
struct Party {
    session: Session,
    media: Option<Bitrate>,
    next: Instant,
    /// Units that came.
    units: u64,
    unit: Vec<u8>,
}

impl Party {
    fn new(session: Session, media: Option<Bitrate>) -> Self {
        Self { session, media, next: Instant::ZERO, units: 0, unit: Vec::new() }
    }

    fn produce(&mut self, now: Instant) {
        let (class, interval, bytes, deadline) = match self.media {
            Some(rate) => {
                let interval = Duration::from_secs(1) / UNITS_PER_SECOND as u32;
                (Class::Media, interval, (rate * interval).get(), Duration::from_millis(200))
            }
            None => (Class::Control, Duration::from_millis(20), 60, Duration::from_millis(250)),
        };
        self.next = now + interval;
        self.unit.resize(bytes as usize, 1);
        // A refused unit is missing at the far end, where they are counted.
        let _ = self.session.send(class, &self.unit, deadline, now);
    }

    fn observe(&mut self) {
        while let Some(event) = self.session.poll_event() {
            if let Event::Unit { .. } = event {
                self.units += 1;
            }
        }
    }
}

impl Node for Party {
    fn handle_datagram(&mut self, route: world::Route, datagram: &[u8], now: Instant) {
        let route = Route { socket: route.socket, remote: route.remote };
        self.session.handle_datagram(route, datagram, now);
        self.observe();
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<world::Route> {
        let route = self.session.poll_transmit(buffer, now)?;
        Some(world::Route { socket: route.socket, remote: route.remote })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.poll_timeout().map(|(at, _)| at);
        session.into_iter().chain([self.next]).min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
        if now >= self.next {
            self.produce(now);
        }
        self.observe();
    }
}
