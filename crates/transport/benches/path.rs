//! Cost of a datagram end to end: a vehicle's session and an operator's in one thread.
//!
//! Units are encoded, scheduled, paced, sealed, opened, recovered and reassembled. Pings, pongs and
//! reports travel in both directions, and every timer runs. Items are the datagrams sealed and
//! opened, so the time per item is the cost at both ends together. Bytes are those of the units
//! delivered.

use std::net::SocketAddr;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use tautline_scenario::direct::Direct;
use tautline_scenario::policies::{planner, rate};
use tautline_transport::{ChannelNumber, Config, Event, Route};
use tautline_units::{Bitrate, Duration, Instant};

fn main() {
    divan::main();
}

/// Load of one benchmark, and the number of links that carry it.
#[derive(Clone, Copy)]
struct Case {
    links: u8,
    /// Rate of all units, without repair packets, Mbit/s.
    mbps: u64,
    unit_bytes: usize,
}

impl std::fmt::Display for Case {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} Mbit/s, {} links", self.mbps, self.links)
    }
}

/// Returns cases from the load of a poor picture to the most that one core can carry.
fn cases() -> impl Iterator<Item = Case> {
    let loads = [(1, 700), (10, 3_500), (100, 9_000), (1_000, 35_000), (2_000, 35_000)];
    loads
        .into_iter()
        .flat_map(|(mbps, unit_bytes)| [1, 2, 4, 8].map(|links| Case { links, mbps, unit_bytes }))
}

/// A vehicle that sends units over a connection without delay or loss.
struct Sender {
    direct: Direct,
    interval: Duration,
    unit: Vec<u8>,
    delivered: u64,
}

impl Sender {
    fn new(case: Case) -> Self {
        let routes: Vec<Route> = (0..case.links)
            .map(|link| {
                let remote = SocketAddr::from(([10, 0, 0, 1], 5_000 + u16::from(link)));
                Route { socket: 0, remote }
            })
            .collect();
        let controllers = rate::Kind::Fixed.factory();
        let mut config = Config { controllers, ..Config::default() };
        if case.mbps >= 1_000 {
            // More datagrams than reports can list: a planner that depends on reports would not
            // send.
            config.planner = planner::Kind::EarliestDelivery.factory(planner::Code::default());
        }
        // Room for the repair packets and their overhead.
        config.rate.initial = Bitrate::from_mbps(case.mbps * 5 / 2 / u64::from(case.links) + 2);
        config.rate.ceiling = config.rate.initial;
        let bits = case.unit_bytes as u64 * 8;
        let mut sender = Self {
            direct: Direct::new(&routes, config.clone(), config).expect("sound"),
            interval: Duration::from_nanos(bits * 1_000 / case.mbps),
            unit: (0..case.unit_bytes).map(|at| (at * 7) as u8).collect(),
            delivered: 0,
        };
        sender.run_until(Instant::from_millis(300));
        sender.send(20);
        sender
    }

    /// Sends `units` units, one per interval; returns the number of datagrams sent and of unit
    /// bytes delivered meanwhile.
    fn send(&mut self, units: usize) -> (u64, u64) {
        let before = (self.direct.datagrams, self.delivered);
        for _ in 0..units {
            let deadline = Duration::from_millis(100);
            let now = self.direct.now;
            let sent = self.direct.vehicle.send(ChannelNumber::MEDIA, &self.unit, deadline, now);
            sent.expect("the links carry it");
            self.run_until(now + self.interval);
        }
        (self.direct.datagrams - before.0, self.delivered - before.1)
    }

    fn run_until(&mut self, end: Instant) {
        self.direct.run_until(end);
        while self.direct.vehicle.poll_event().is_some() {}
        for event in self.direct.operator_events() {
            if let Event::Unit { bytes, .. } = event {
                self.delivered += bytes.len() as u64;
            }
        }
    }
}

#[divan::bench(args = cases(), sample_count = 20, sample_size = 1)]
fn both_ends(bencher: Bencher<'_, '_>, case: Case) {
    let units = (40_000_000 / case.unit_bytes / 40).clamp(50, 500);
    let mut sender = Sender::new(case);
    let (datagrams, delivered) = sender.send(units);
    assert_eq!(delivered, (units * case.unit_bytes) as u64, "every unit is delivered");
    bencher
        .counter(ItemsCount::new(datagrams))
        .counter(BytesCount::new(delivered))
        .bench_local(|| sender.send(units));
}
