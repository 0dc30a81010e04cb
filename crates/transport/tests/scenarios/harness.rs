use std::collections::VecDeque;
use std::net::SocketAddr;

use tautline_sim::link::Pair;
use tautline_sim::world::{self, Clock, End, LinkId, Node, NodeId, World};
use tautline_transport::link::State;
use tautline_transport::{Class, Config, Event, Identity, LossReason, Route, Session};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// What happens, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Cut(usize),
    Restore(usize),
    /// The vehicle's end of a link comes from another port.
    Rebind(usize, u16),
    /// The vehicle's end of a link has another address.
    Readdress(usize, u8),
}

/// A run of two sessions: the vehicle sends media, the operator commands.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) links: Vec<Pair>,
    /// The vehicle's and the operator's.
    pub(crate) clocks: [Clock; 2],
    pub(crate) config: Config,
    /// Media units a second; their size follows the budget, up to `media_most`.
    pub(crate) media_per_second: u64,
    pub(crate) media_most: Bitrate,
    pub(crate) media_deadline: Duration,
    /// Hands every session forged, replayed and damaged datagrams beside the true ones.
    pub(crate) hostile: bool,
    pub(crate) steps: Vec<(u64, Step)>,
    pub(crate) run_ms: u64,
}

impl Scenario {
    pub(crate) fn new(seed: u64, links: Vec<Pair>) -> Self {
        Self {
            seed,
            links,
            clocks: [Clock::default(); 2],
            config: Config::default(),
            media_per_second: 360,
            media_most: Bitrate::from_mbps(4),
            media_deadline: Duration::from_millis(200),
            hostile: false,
            steps: Vec::new(),
            run_ms: 5_000,
        }
    }

    /// The operator's session, ignorant of all others.
    pub(crate) fn responder(&self, seed: u64) -> Session {
        let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
        let now = self.clocks[1].local(Instant::ZERO);
        Session::respond(self.config.clone(), &b, a.public(), [7; 16], seed, now).unwrap()
    }

    pub(crate) fn run(&self) -> Run {
        let seed = std::env::var("SIM_SEED").ok().and_then(|text| text.parse().ok());
        let mut run = Run::new(&Self { seed: seed.unwrap_or(self.seed), ..self.clone() });
        let mut steps = self.steps.clone();
        steps.sort_by_key(|(at, _)| *at);
        for (at, step) in steps {
            run.until(at);
            run.step(step);
        }
        run.until(self.run_ms);
        run
    }
}

pub(crate) struct Run {
    pub(crate) world: World<Party>,
    pub(crate) vehicle: NodeId,
    pub(crate) operator: NodeId,
    pub(crate) links: Vec<LinkId>,
    seed: u64,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SIM_SEED={}", self.seed);
        }
    }
}

impl Run {
    fn new(scenario: &Scenario) -> Self {
        let (a, b) = (Identity::from_seed(&[1; 32]), Identity::from_seed(&[2; 32]));
        let mut world = World::new(scenario.seed);
        let count = scenario.links.len() as u8;
        let routes: Vec<Route> = (0..count)
            .map(|socket| Route { socket, remote: address(9, 5_000 + u16::from(socket)) })
            .collect();
        let [clock_a, clock_b] = scenario.clocks;
        let seed = scenario.seed;
        let operator = scenario.responder(seed ^ 1);
        let vehicle = Session::initiate(
            scenario.config.clone(),
            &a,
            b.public(),
            [7; 16],
            &routes,
            seed ^ 2,
            clock_a.local(Instant::ZERO),
        )
        .unwrap();
        let mut sender = Party::new(vehicle, scenario, clock_a);
        sender.media_per_second = Some(scenario.media_per_second);
        let mut commander = Party::new(operator, scenario, clock_b);
        commander.commands = true;
        let operator = world.add(commander, clock_b);
        // Its first message finds no link yet and is sent again.
        let vehicle = world.add(sender, clock_a);
        let mut links = Vec::new();
        for (number, pair) in (0..count).zip(&scenario.links) {
            let here = End::new(vehicle, number, address(number, 4_000));
            let there = End::new(operator, 0, address(9, 5_000 + u16::from(number)));
            links.push(world.link(here, there, pair).unwrap());
        }
        Self { world, vehicle, operator, links, seed }
    }

    pub(crate) fn until(&mut self, millis: u64) {
        self.world.run_until(Instant::from_millis(millis));
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Cut(link) => self.world.set_cut(self.links[link], true),
            Step::Restore(link) => self.world.set_cut(self.links[link], false),
            Step::Rebind(link, port) => {
                self.world.rebind(self.links[link], address(link as u8, port));
            }
            Step::Readdress(link, host) => {
                self.world.rebind(self.links[link], address(host, 4_000));
            }
        }
    }

    pub(crate) fn sender(&self) -> &Party {
        self.world.node(self.vehicle)
    }

    pub(crate) fn receiver(&self) -> &Party {
        self.world.node(self.operator)
    }

    /// Shares of the media units sent between `from` and `to` (ms) that were delivered.
    pub(crate) fn delivered_share(&self, from: u64, to: u64) -> f64 {
        let within = |at: Instant| (from..to).contains(&at.as_millis());
        let sent = self.sender().sent.iter().filter(|sent| within(sent.at)).count();
        let came = self.receiver().media.iter().filter(|unit| within(unit.sent_world)).count();
        assert!(sent > 0, "nothing was sent between {from} and {to} ms");
        came as f64 / sent as f64
    }

    /// Quantile of the media units' delay, in milliseconds of the world.
    pub(crate) fn delay_ms(&self, quantile: f64) -> f64 {
        let mut delays: Vec<f64> =
            self.receiver().media.iter().map(|u| u.delay.as_secs_f64() * 1e3).collect();
        delays.sort_by(f64::total_cmp);
        delays[((delays.len() - 1) as f64 * quantile) as usize]
    }
}

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host + 1], port))
}

/// A session with something to do: one node of the world.
pub(crate) struct Party {
    pub(crate) session: Session,
    clock: Clock,
    /// Units a second, if this side sends media.
    media_per_second: Option<u64>,
    pub(crate) commands: bool,
    media_most: Bitrate,
    pub(crate) media_deadline: Duration,
    budget: Bitrate,
    media_at: Instant,
    command_at: Instant,
    counter: u64,
    hostile: Option<Hostile>,
    lines: VecDeque<String>,
    pub(crate) sent: Vec<Sent>,
    pub(crate) media_refused: u64,
    pub(crate) media: Vec<Received>,
    pub(crate) control: Vec<(u64, Duration)>,
    pub(crate) lost: Vec<(u64, LossReason)>,
    pub(crate) budgets: Vec<(Instant, Bitrate)>,
    pub(crate) states: Vec<(Instant, u8, State)>,
    pub(crate) established: u32,
}

/// A media unit as it was handed over, at the world's time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) number: u64,
}

/// A media unit as it was delivered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Received {
    pub(crate) number: u64,
    /// When it was handed over, in the world's time.
    pub(crate) sent_world: Instant,
    /// From there to its delivery, in the world's time.
    pub(crate) delay: Duration,
    /// What the session says about the hand-over less the truth, in nanoseconds.
    pub(crate) sent_at_wrong: Option<i64>,
    /// The clock estimate's error then.
    pub(crate) clock_error: Option<Duration>,
    pub(crate) repaired: bool,
}

impl Party {
    fn new(session: Session, scenario: &Scenario, clock: Clock) -> Self {
        let start = clock.local(Instant::ZERO);
        Self {
            session,
            clock,
            media_per_second: None,
            commands: false,
            media_most: scenario.media_most,
            media_deadline: scenario.media_deadline,
            budget: Bitrate::ZERO,
            media_at: start,
            command_at: start,
            counter: 0,
            hostile: scenario.hostile.then(|| Hostile::new(scenario.seed)),
            lines: VecDeque::new(),
            sent: Vec::new(),
            media_refused: 0,
            media: Vec::new(),
            control: Vec::new(),
            lost: Vec::new(),
            budgets: Vec::new(),
            states: Vec::new(),
            established: 0,
        }
    }

    /// Hands over what is due.
    fn produce(&mut self, now: Instant) {
        if let Some(per_second) = self.media_per_second
            && now >= self.media_at
        {
            let interval = Duration::from_nanos(1_000_000_000 / per_second);
            self.media_at = (self.media_at + interval).max(now);
            if self.budget > Bitrate::ZERO {
                self.send_media(interval, now);
            }
        }
        if self.commands && now >= self.command_at {
            self.command_at = now + Duration::from_millis(20);
            let unit = self.unit(60, now);
            let _ = self.session.send(Class::Control, &unit, Duration::from_millis(250), now);
        }
    }

    fn send_media(&mut self, interval: Duration, now: Instant) {
        // Slices differ: every sixth is twice as large as the others.
        let mean = (self.budget.min(self.media_most) * interval).get() as usize;
        let bytes = if self.counter.is_multiple_of(6) { mean * 12 / 7 } else { mean * 6 / 7 };
        let unit = self.unit(bytes.max(24), now);
        match self.session.send(Class::Media, &unit, self.media_deadline, now) {
            Ok(number) => {
                let at = self.clock.world(now);
                self.sent.push(Sent { at, number: number.get() });
            }
            Err(_) => self.media_refused += 1,
        }
    }

    /// A unit that proves itself: counter, time of the sender's clock, then a pattern.
    fn unit(&mut self, bytes: usize, now: Instant) -> Vec<u8> {
        let counter = self.counter;
        self.counter += 1;
        let mut unit = counter.to_be_bytes().to_vec();
        unit.extend_from_slice(&self.clock.world(now).as_nanos().to_be_bytes());
        unit.extend((16..bytes).map(|at| (at as u64 ^ counter) as u8));
        unit
    }

    /// Takes all events; asserts that units are what was sent.
    fn observe(&mut self, now: Instant) {
        let world = self.clock.world(now);
        while let Some(event) = self.session.poll_event() {
            let line = match event {
                Event::Unit { class, number, bytes, sent_at, repaired } => {
                    let counter = u64::from_be_bytes(bytes[..8].try_into().unwrap());
                    let sent_world = u64::from_be_bytes(bytes[8..16].try_into().unwrap());
                    for (at, byte) in bytes.iter().enumerate().skip(16) {
                        assert_eq!(*byte, (at as u64 ^ counter) as u8, "damaged unit");
                    }
                    let sent_world = Instant::from_nanos(sent_world);
                    let delay = world.since(sent_world);
                    match class {
                        Class::Control => self.control.push((number.get(), delay)),
                        Class::Media => self.media.push(Received {
                            number: number.get(),
                            sent_world,
                            delay,
                            sent_at_wrong: sent_at
                                .map(|at| at.signed_nanos_since(self.clock.local(sent_world))),
                            clock_error: self.session.clock().map(|clock| clock.error()),
                            repaired,
                        }),
                    }
                    format!("{class:?} {number:?} {} B {sent_at:?} {repaired}", bytes.len())
                }
                Event::UnitLost { class, number, reason } => {
                    if class == Class::Media {
                        self.lost.push((number.get(), reason));
                    }
                    format!("{class:?} {number:?} lost: {reason:?}")
                }
                Event::Budget { media } => {
                    self.budget = media;
                    self.budgets.push((world, media));
                    format!("budget {media}")
                }
                Event::Link { link, state } => {
                    self.states.push((world, link.get(), state));
                    format!("link {} {state:?}", link.get())
                }
                Event::Established => {
                    self.established += 1;
                    "established".into()
                }
            };
            self.lines.push_back(line);
        }
    }
}

impl Node for Party {
    fn handle_datagram(&mut self, route: world::Route, datagram: &[u8], now: Instant) {
        let route = Route { socket: route.socket, remote: route.remote };
        if let Some(mut hostile) = self.hostile.take() {
            for (route, forged) in hostile.beside(route, datagram) {
                self.session.handle_datagram(route, &forged, now);
            }
            self.session.handle_datagram(route, datagram, now);
            for replayed in hostile.after(datagram) {
                self.session.handle_datagram(route, &replayed, now);
            }
            self.hostile = Some(hostile);
        } else {
            self.session.handle_datagram(route, datagram, now);
        }
        self.observe(now);
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<world::Route> {
        let route = self.session.poll_transmit(buffer, now)?;
        Some(world::Route { socket: route.socket, remote: route.remote })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let media = self.media_per_second.map(|_| self.media_at);
        let command = self.commands.then_some(self.command_at);
        let session = self.session.poll_timeout().map(|(at, _)| at);
        [media, command, session].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.session.handle_timeout(now);
        self.observe(now);
        self.produce(now);
        self.observe(now);
    }

    fn poll_log(&mut self, _now: Instant) -> Option<String> {
        self.lines.pop_front()
    }
}

/// Somebody on the way who cannot break the cipher.
struct Hostile {
    state: u64,
    kept: VecDeque<Vec<u8>>,
}

impl Hostile {
    fn new(seed: u64) -> Self {
        Self { state: seed | 1, kept: VecDeque::new() }
    }

    fn next(&mut self) -> usize {
        // xorshift64
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) as usize
    }

    /// Damaged copies and inventions that arrive ahead of the true datagram.
    fn beside(&mut self, route: Route, datagram: &[u8]) -> Vec<(Route, Vec<u8>)> {
        let elsewhere = Route { remote: address(77, 666), ..route };
        let from = if self.next().is_multiple_of(2) { route } else { elsewhere };
        let mut flipped = datagram.to_vec();
        let at = self.next() % flipped.len();
        flipped[at] ^= 1 << (self.next() % 8);
        let truncated = datagram[..self.next() % datagram.len()].to_vec();
        let mut invented: Vec<u8> = (0..self.next() % 200).map(|_| self.next() as u8).collect();
        if let (Some(head), Some(first)) = (invented.get_mut(..3), datagram.get(..3)) {
            head.copy_from_slice(first);
        }
        match self.next() % 4 {
            0 => vec![(from, flipped)],
            1 => vec![(from, truncated)],
            2 => vec![(from, invented)],
            _ => Vec::new(),
        }
    }

    /// Replays that arrive behind it: itself, or an old one.
    fn after(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.kept.push_back(datagram.to_vec());
        let mut replays = Vec::new();
        if self.next().is_multiple_of(3) {
            replays.push(datagram.to_vec());
        }
        if self.kept.len() > 200 {
            replays.extend(self.kept.pop_front());
        }
        replays
    }
}

/// A link of constant rate that loses nothing.
pub(crate) fn clean(mbps: f64, delay_ms: f64) -> Pair {
    let rate = Bitrate::from_bps((mbps * 1e6) as u64);
    let config = tautline_sim::link::Config::of_rate(rate);
    Pair::symmetric(config.with_delay(Duration::from_nanos((delay_ms * 1e6) as u64)))
}

/// A link that loses each datagram with this probability, either way.
pub(crate) fn lossy(mbps: f64, delay_ms: f64, loss: f64) -> Pair {
    let mut pair = clean(mbps, delay_ms);
    (pair.up.loss, pair.down.loss) = (loss, loss);
    pair
}

/// A configuration that sends at a given rate whatever comes back.
pub(crate) fn fixed(kbps: u64) -> Config {
    let schedule = tautline_transport::sender::planner::Kind::EarliestDelivery;
    let mut config = Config { schedule, ..Config::default() };
    config.rate.controller = tautline_transport::rate::Kind::Fixed;
    config.rate.initial = Bitrate::from_kbps(kbps);
    config
}

/// Bytes as a count.
pub(crate) fn bytes(count: u64) -> ByteCount {
    ByteCount::new(count)
}
