use std::time::Duration;

use std::sync::Arc;

use strum::VariantArray;

use super::*;
use crate::link::{
    Bbr, BurstLoss, Common, Config, Cubic, Dip, Drop, Handover, Jitter, Outage, Policer, Replay,
    Retransmission, Step, Swing,
};
use crate::recording::{Columns, Recording};
use crate::trace::Trace;
use tautline_units::Bitrate;

/// A node that sends a numbered datagram every 10 ms of its own time and answers with one byte.
struct Ticker {
    remote: SocketAddr,
    next: Option<Instant>,
    outbox: Vec<(Route, Vec<u8>)>,
    sent: u32,
    heard: Vec<(Instant, Vec<u8>)>,
    events: Vec<String>,
}

impl Ticker {
    fn new(remote: SocketAddr, first: Option<Instant>) -> Self {
        let (outbox, heard, events) = (Vec::new(), Vec::new(), Vec::new());
        Self { remote, next: first, outbox, sent: 0, heard, events }
    }
}

impl Node for Ticker {
    fn handle_datagram(&mut self, route: Route, datagram: &[u8], now: Instant) {
        self.heard.push((now, datagram.to_vec()));
        self.events.push(format!("heard {} B", datagram.len()));
        if datagram.len() > 1 {
            self.outbox.push((route, vec![datagram[0]]));
        }
    }
    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, _now: Instant) -> Option<Route> {
        let (route, datagram) = self.outbox.pop()?;
        buffer.extend_from_slice(&datagram);
        Some(route)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.sent += 1;
        let number = self.sent.to_be_bytes();
        self.outbox.push((Route { socket: 0, remote: self.remote }, number.repeat(250)));
        self.next = Some(now + Duration::from_millis(10));
    }
    fn poll_log(&mut self, _now: Instant) -> Option<String> {
        self.events.pop()
    }
}

fn vehicle_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 4000))
}

fn operator_address() -> SocketAddr {
    SocketAddr::from(([10, 0, 9, 9], 5000))
}

fn build(seed: u64, config: Config) -> (World<Ticker>, NodeId, NodeId, LinkId) {
    let mut world = World::new(seed);
    let skewed = Clock::new(Duration::from_secs(5), -50.0);
    let first = Some(Instant::from_millis(5_000));
    let vehicle = world.add(Ticker::new(operator_address(), first), skewed);
    let operator = world.add(Ticker::new(vehicle_address(), None), Clock::default());
    let pair = Pair::symmetric(config);
    let ends = (End::new(vehicle, 0, vehicle_address()), End::new(operator, 3, operator_address()));
    let link = world.link(ends.0, ends.1, &pair).expect("a sound link");
    (world, vehicle, operator, link)
}

fn eight_mbps() -> Config {
    let config = Config::of_rate(Bitrate::from_mbps(8)).with_delay(Duration::from_millis(20));
    Config { overhead_bytes: 0, ..config }
}

#[test]
fn datagrams_travel_with_rate_and_delay_by_the_receivers_clock() {
    let (mut world, vehicle, operator, _) = build(1, eight_mbps());
    world.run_until(Instant::from_millis(1_000));
    let heard = &world.node(operator).heard;
    assert_eq!(heard[0].0, Instant::from_millis(21), "1 ms at 8 Mbit/s and 20 ms of delay");
    assert!(heard.len() >= 97, "{}", heard.len());
    let echo = &world.node(vehicle).heard[0];
    assert_eq!(echo.0, world.clock(vehicle).local(Instant::from_micros(41_001)));
    assert_eq!(world.now(), Instant::from_millis(1_000));
    assert_eq!(world.now_at(vehicle), Instant::from_nanos(5_999_950_000));
}

#[test]
fn two_sessions_share_the_uplink_and_have_own_return_paths() {
    let slow = Config { overhead_bytes: 0, ..Config::of_rate(Bitrate::from_kbps(800)) };
    let (mut world, first, _, link) = build(1, slow);
    // 1000 bytes each 10 ms fill the link: a second sender builds up a queue, and half of all
    // packets are lost.
    let second = world
        .add(Ticker::new(operator_address(), Some(Instant::from_millis(1_000))), Clock::default());
    let other = world.add(Ticker::new(vehicle_address(), None), Clock::default());
    let ends = [End::new(second, 0, vehicle_address()), End::new(other, 3, operator_address())];
    let back = eight_mbps().with_delay(Duration::from_millis(70));
    let beside = world.link_beside(link, ends[0], ends[1], &back).expect("a sound link");
    world.run_until(Instant::from_millis(1_000));
    let alone = world.node(first).heard.len();
    assert!((97..=100).contains(&alone), "{alone}");
    world.run_until(Instant::from_millis(11_000));
    let up = *world.counters(link, Direction::Up);
    assert_eq!(up, *world.counters(beside, Direction::Up));
    assert!(up.dropped(Drop::Queue) > 500, "{up:?}");
    assert!((1_080..=1_100).contains(&up.delivered), "{up:?}");
    let answered = [first, second].map(|node| world.node(node).heard.len());
    assert!(answered.iter().all(|count| *count > 200), "{answered:?}");
    for (way, node) in [(link, first), (beside, second)] {
        let down = world.counters(way, Direction::Down);
        assert_eq!(down.delivered, world.node(node).heard.len() as u64);
    }
    // The two senders stay separate. The second one's delay: a queue of 2.56 s, 10 ms for itself,
    // and 70 ms back.
    let (at, _) = world.node(second).heard[0];
    assert!(at >= Instant::from_millis(1_080), "{at:?}");
    world.set_cut(beside, true);
    world.run_until(Instant::from_millis(12_000));
    assert_eq!(world.counters(link, Direction::Up).delivered, up.delivered);
}

#[test]
fn equal_seeds_give_equal_logs() {
    let lossy = || Config { loss: 0.1, ..eight_mbps() };
    let run = |seed| {
        let (mut world, ..) = build(seed, lossy());
        world.run_until(Instant::from_millis(2_000));
        world
    };
    let (a, b, c) = (run(7), run(7), run(8));
    assert_eq!(a.log().lines(), b.log().lines());
    assert_eq!(a.log().digest(), b.log().digest());
    assert_ne!(a.log().lines()[1..], c.log().lines()[1..]);
    assert!(a.log().lines().iter().any(|line| line.contains(": loss #")));
    assert!(a.log().lines().iter().any(|line| line.contains("node 0 heard")));
}

/// A node that sends on every link each millisecond or so and answers each third datagram.
struct Talker {
    routes: Vec<Route>,
    next: Instant,
    outbox: Vec<(Route, Vec<u8>)>,
    heard: u32,
}

impl Node for Talker {
    fn handle_datagram(&mut self, route: Route, datagram: &[u8], _now: Instant) {
        self.heard += 1;
        if self.heard.is_multiple_of(3) {
            self.outbox.push((route, datagram[..datagram.len() / 4].to_vec()));
        }
    }
    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, _now: Instant) -> Option<Route> {
        let (route, datagram) = self.outbox.pop()?;
        buffer.extend_from_slice(&datagram);
        Some(route)
    }
    fn poll_timeout(&self) -> Option<Instant> {
        (!self.routes.is_empty()).then_some(self.next)
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.next = now + Duration::from_micros(1_300);
        let bytes = 40 + now.as_micros() as usize % 1_200;
        let datagram = vec![now.as_nanos() as u8; bytes];
        self.outbox.extend(self.routes.iter().map(|route| (*route, datagram.clone())));
    }
    fn poll_log(&mut self, _now: Instant) -> Option<String> {
        None
    }
}

/// Returns all models together, with different numbers in each direction.
fn every_model() -> Vec<Pair> {
    let trace = Trace::parse(b"0\n1\n1\n4\n6\n7\n9\n30\n", None).expect("a trace");
    let rows = (0..40_u32).map(|row| match row % 20 {
        3 | 4 => format!("{},\n", row * 50),
        late @ 10..17 => format!("{},{}\n", row * 50, 50 * (18 - late)),
        _ => format!("{},{}\n", row * 50, 30 + row),
    });
    let rows = format!("t_ms,rtt_ms\n{}", rows.collect::<String>());
    let columns = Columns { operator: None, interval: Duration::from_secs(1) };
    let recording = Arc::new(Recording::parse(rows.as_bytes(), columns).expect("a recording"));
    let outage = |every_s, mean_ms| Some(Outage { every_s, mean_ms });
    let carrier = Common {
        name: "carrier a".to_owned(),
        outage_losing: outage(2.0, 70.0),
        outage_holding: outage(3.0, 90.0),
        dip: Some(Dip { every_s: 1.0, mean_ms: 200.0, factor: 0.2 }),
    };
    let all = Config {
        swing: Some(Swing { sigma: 0.5, tau_ms: 80.0 }),
        queue_bytes: 20_000,
        jitter: Some(Jitter { sigma_ms: 3.0, tau_ms: 300.0 }),
        retransmission: Some(Retransmission { probability: 0.1, delay_ms: 8.0 }),
        handover: Some(Handover { step_ms: 100.0, every_s: [1.0, 2.0] }),
        outage_losing: outage(2.0, 60.0),
        outage_holding: outage(2.0, 60.0),
        loss: 0.02,
        burst_loss: Some(BurstLoss { enter: 0.01, leave: 0.2, loss: 0.9 }),
        common: vec![carrier.clone()],
        mtu_bytes: Some(1_000),
        ..eight_mbps()
    };
    let recorded = Config { common: vec![carrier], ..Config::of_trace(Arc::new(trace)) };
    let replayed = Config {
        recording: Some(Replay::of(recording)),
        steps: vec![Step { at_s: 3.0, rate_mbps: 4.0 }],
        policer: Some(Policer { rate_mbps: 0.1, burst_bytes: 3_000 }),
        cubic: Some(Cubic { rtt_ms: 30.0, from_s: 1.0, until_s: Some(8.0) }),
        bbr: vec![Bbr { rtt_ms: 50.0, from_s: 2.0, until_s: None }],
        ..eight_mbps()
    };
    let back =
        |config: &Config| Config { delay_ms: 9.0, loss: 0.1, reorder: true, ..config.clone() };
    let pairs = [&all, &recorded, &replayed];
    pairs.map(|up| Pair { up: up.clone(), down: back(up) }).into()
}

#[test]
fn all_models_together_give_one_log_for_one_seed() {
    let run = |seed: u64| {
        let mut world = World::new(seed);
        let far = |link: usize| SocketAddr::from(([10, 0, 9, 9], 5_000 + link as u16));
        let talker = |routes| Talker { routes, next: Instant::ZERO, outbox: Vec::new(), heard: 0 };
        let pairs = every_model();
        let routes = (0..pairs.len()).map(|link| Route { socket: link as u8, remote: far(link) });
        let fast = Clock::new(Duration::from_secs(7), 80.0);
        let slow = Clock::new(Duration::from_millis(3), -120.0);
        let vehicle = world.add(talker(routes.collect()), fast);
        let operator = world.add(talker(Vec::new()), slow);
        for (link, pair) in pairs.iter().enumerate() {
            let near = SocketAddr::from(([10, 0, 0, link as u8], 4_000));
            let ends = (End::new(vehicle, link as u8, near), End::new(operator, 0, far(link)));
            world.link(ends.0, ends.1, pair).expect("a sound link");
        }
        world.run_until(Instant::from_millis(5_000));
        world.set_cut(LinkId(0), true);
        world.rebind(LinkId(1), SocketAddr::from(([10, 0, 0, 77], 4_001)));
        world.run_until(Instant::from_millis(6_000));
        world.set_cut(LinkId(0), false);
        world.run_until(Instant::from_millis(10_000));
        world
    };
    let (one, again, other) = (run(21), run(21), run(22));
    assert!(one.log().lines() == again.log().lines(), "byte for byte");
    assert_eq!(one.log().digest(), again.log().digest());
    assert_ne!(one.log().digest(), other.log().digest());
    let dropped = |reason| {
        let both = [Direction::Up, Direction::Down];
        let links = (0..3).flat_map(|link| both.map(|way| one.counters(LinkId(link), way)));
        links.map(|counters| counters.dropped(reason)).sum::<u64>()
    };
    assert!(Drop::VARIANTS.iter().all(|reason| dropped(*reason) > 10), "every kind occurs");
    assert!(one.log().lines_total() > 30_000);
}

#[test]
fn time_may_be_run_in_any_steps() {
    let mut whole = build(3, eight_mbps()).0;
    let mut pieces = build(3, eight_mbps()).0;
    whole.run_until(Instant::from_millis(500));
    for millis in 0..=500 {
        pieces.run_until(Instant::from_millis(millis));
    }
    assert_eq!(whole.log().digest(), pieces.log().digest());
}

#[test]
fn a_cut_link_carries_nothing_until_it_is_restored() {
    let (mut world, _, operator, link) = build(4, eight_mbps());
    world.run_until(Instant::from_millis(100));
    world.set_cut(link, true);
    let heard = world.node(operator).heard.len();
    world.run_until(Instant::from_millis(200));
    assert_eq!(world.node(operator).heard.len(), heard);
    assert!(world.counters(link, Direction::Up).dropped(Drop::Cut) >= 10);
    world.set_cut(link, false);
    world.run_until(Instant::from_millis(300));
    assert!(world.node(operator).heard.len() >= heard + 7);
}

#[test]
fn a_datagram_to_nowhere_is_counted() {
    let (mut world, vehicle, ..) = build(5, eight_mbps());
    let nowhere = Route { socket: 9, remote: operator_address() };
    world.act(vehicle, |node, _| node.outbox.push((nowhere, vec![1, 2])));
    assert_eq!(world.dropped_no_route(), 1);
}

#[test]
fn a_rebound_link_shows_its_new_address() {
    let (mut world, _, operator, link) = build(6, eight_mbps());
    world.run_until(Instant::from_millis(50));
    world.rebind(link, SocketAddr::from(([10, 0, 0, 1], 4999)));
    world.run_until(Instant::from_millis(100));
    assert_eq!(world.dropped_no_route(), 0, "the echo answers the address it saw");
    let old = Route { socket: 3, remote: vehicle_address() };
    world.act(operator, |node, _| node.outbox.push((old, vec![1])));
    assert_eq!(world.dropped_no_route(), 1);
}

#[test]
#[should_panic(expected = "time stands still")]
fn a_node_that_does_not_move_its_timeout_is_found() {
    struct Stuck;
    impl Node for Stuck {
        fn handle_datagram(&mut self, _: Route, _: &[u8], _: Instant) {}
        fn poll_transmit(&mut self, _: &mut Vec<u8>, _: Instant) -> Option<Route> {
            None
        }
        fn poll_timeout(&self) -> Option<Instant> {
            Some(Instant::from_millis(1))
        }
        fn handle_timeout(&mut self, _: Instant) {}
    }
    let mut world: World<Box<dyn Node>> = World::new(0);
    world.add(Box::new(Stuck), Clock::default());
    world.run_until(Instant::from_millis(2));
}
