//! What a datagram costs on the whole way: a vehicle's session and an operator's in one thread.
//!
//! Units are coded, shared out, paced, sealed, opened, recovered and joined; pings, pongs and
//! reports go both ways; every timer is served. Items are the datagrams that were sealed and
//! opened, so a time divided by them is what one costs at both ends together; bytes are those of
//! the units delivered.

use std::net::SocketAddr;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use tautline_transport::sender::planner;
use tautline_transport::{Class, Config, Event, Identity, Route, Session, rate};
use tautline_units::{Bitrate, Duration, Instant};

fn main() {
    divan::main();
}

/// How many links carry how much.
#[derive(Clone, Copy)]
struct Case {
    links: u8,
    /// Of units, without repair packets.
    mbps: u64,
    unit_bytes: usize,
}

impl std::fmt::Display for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} Mbit/s, {} links", self.mbps, self.links)
    }
}

/// From a poor picture to as much as a core can do.
fn cases() -> impl Iterator<Item = Case> {
    let loads = [(1, 700), (10, 3_500), (100, 9_000), (1_000, 35_000), (2_000, 35_000)];
    loads
        .into_iter()
        .flat_map(|(mbps, unit_bytes)| [1, 2, 4, 8].map(|links| Case { links, mbps, unit_bytes }))
}

/// Two sessions over a wire without delay or loss.
struct Couple {
    vehicle: Session,
    operator: Session,
    now: Instant,
    interval: Duration,
    unit: Vec<u8>,
    buffer: Vec<u8>,
    datagrams: u64,
    delivered: u64,
}

impl Couple {
    fn new(case: Case) -> Self {
        let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
        let now = Instant::from_millis(1);
        let routes: Vec<Route> = (0..case.links)
            .map(|link| {
                let remote = SocketAddr::from(([10, 0, 0, 1], 5_000 + u16::from(link)));
                Route { socket: 0, remote }
            })
            .collect();
        let mut config = Config::default();
        config.rate.controller = rate::Kind::Fixed;
        if case.mbps >= 1_000 {
            // More than reports tell one by one: what is chosen by them would not be sent.
            config.schedule = planner::Kind::EarliestDelivery;
        }
        // Room for the repair packets and for what goes around all of them.
        config.rate.initial = Bitrate::from_mbps(case.mbps * 5 / 2 / u64::from(case.links) + 2);
        config.rate.ceiling = config.rate.initial;
        let vehicle = Session::initiate(config.clone(), &a, b.public(), [7; 16], &routes, 1, now)
            .expect("valid routes");
        let operator = Session::respond(config, &b, a.public(), [7; 16], 2, now)
            .expect("a valid configuration");
        let bits = case.unit_bytes as u64 * 8;
        let mut couple = Self {
            vehicle,
            operator,
            now,
            interval: Duration::from_nanos(bits * 1_000 / case.mbps),
            unit: (0..case.unit_bytes).map(|at| (at * 7) as u8).collect(),
            buffer: Vec::new(),
            datagrams: 0,
            delivered: 0,
        };
        couple.run_until(Instant::from_millis(300));
        couple.send(20);
        couple
    }

    /// Hands over `units` units, one each interval; gives what that took and brought.
    fn send(&mut self, units: usize) -> (u64, u64) {
        let before = (self.datagrams, self.delivered);
        for _ in 0..units {
            let deadline = Duration::from_millis(100);
            let sent = self.vehicle.send(Class::Media, &self.unit, deadline, self.now);
            sent.expect("the links carry it");
            self.run_until(self.now + self.interval);
        }
        (self.datagrams - before.0, self.delivered - before.1)
    }

    fn run_until(&mut self, end: Instant) {
        self.exchange();
        loop {
            let [vehicle, operator] =
                [&self.vehicle, &self.operator].map(|session| session.poll_timeout());
            let due = [vehicle, operator]
                .map(|timer| timer.map_or(Instant::from_nanos(u64::MAX), |(at, _)| at));
            let next = due[0].min(due[1]);
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            if due[0] <= self.now {
                self.vehicle.handle_timeout(self.now);
            }
            if due[1] <= self.now {
                self.operator.handle_timeout(self.now);
            }
            self.exchange();
        }
        self.now = end;
    }

    fn exchange(&mut self) {
        let Self { vehicle, operator, now, buffer, datagrams, .. } = self;
        let mut moved = true;
        while moved {
            moved = false;
            while let Some(route) = vehicle.poll_transmit(buffer, *now) {
                operator.handle_datagram(route, buffer, *now);
                (*datagrams, moved) = (*datagrams + 1, true);
            }
            while let Some(route) = operator.poll_transmit(buffer, *now) {
                vehicle.handle_datagram(route, buffer, *now);
                (*datagrams, moved) = (*datagrams + 1, true);
            }
        }
        while vehicle.poll_event().is_some() {}
        while let Some(event) = operator.poll_event() {
            if let Event::Unit { bytes, .. } = event {
                self.delivered += bytes.len() as u64;
            }
        }
    }
}

#[divan::bench(args = cases(), sample_count = 20, sample_size = 1)]
fn both_ends(bencher: Bencher<'_, '_>, case: Case) {
    let units = (40_000_000 / case.unit_bytes / 40).clamp(50, 500);
    let mut couple = Couple::new(case);
    let (datagrams, delivered) = couple.send(units);
    assert_eq!(delivered, (units * case.unit_bytes) as u64, "every unit is delivered");
    bencher
        .counter(ItemsCount::new(datagrams))
        .counter(BytesCount::new(delivered))
        .bench_local(|| couple.send(units));
}
