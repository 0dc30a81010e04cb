use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tautline_sim::link::{Config as LinkConfig, Drop as Lost, Jitter, Outage, Pair};
use tautline_sim::world::{Clock, Direction, End, LinkId, NodeId, World};
use tautline_transport::sender::planner;
use tautline_transport::sender::protect::Code;
use tautline_transport::{Class, Config, Discard, Identity, LinkNumber, Route, Session, rate};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::party::{Mischief, Party, Truth};

/// All of one run, drawn from its seed.
#[derive(Debug)]
pub(crate) struct Storm {
    seed: u64,
    links: Vec<Pair>,
    clocks: [Clock; 2],
    configs: [Config; 2],
    media_deadline: Duration,
    media_interval: Duration,
    mischief: Mischief,
    steps: Vec<(Instant, Step)>,
}

/// What happens to the whole.
#[derive(Debug, Clone, Copy)]
enum Step {
    Cut(usize),
    Restore(usize),
    Rebind(usize, u16),
    /// The clock of the vehicle (0) or the operator (1) is set by so many nanoseconds.
    Jump(usize, i64),
    /// The largest datagram of a side's link changes.
    Size(usize, usize, u64),
    /// The operator loses its memory; what it begins with next is drawn from this seed.
    Anew(u64),
}

/// A storm that has passed.
pub(crate) struct Run {
    pub(crate) world: World<Party>,
    seed: u64,
    nodes: [NodeId; 2],
    links: Vec<LinkId>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("SIM_SEED={}", self.seed);
        }
    }
}

struct Dice(ChaCha20Rng);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn within(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.0.next_u32() as f64 / f64::from(u32::MAX)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

impl Storm {
    pub(crate) fn of(seed: u64) -> Self {
        let dice = &mut Dice(ChaCha20Rng::seed_from_u64(seed));
        let links: Vec<Pair> = (0..1 + dice.below(4)).map(|_| pair(dice)).collect();
        let clock = |dice: &mut Dice| {
            Clock::new(Duration::from_millis(dice.below(100_000_000)), dice.within(-95.0, 95.0))
        };
        let clocks = [clock(dice), clock(dice)];
        let configs = [config(dice), config(dice)];
        let steps: Vec<_> = (0..dice.below(14))
            .map(|_| (Instant::from_millis(dice.below(STORM_MS)), step(dice, links.len())))
            .collect();
        let mut storm = Self {
            seed,
            links,
            clocks,
            configs,
            media_deadline: Duration::from_millis(30 + dice.below(270)),
            media_interval: Duration::from_millis(3 + dice.below(60)),
            mischief: Mischief {
                swallow: dice.pick(&[0.0, 0.05, 0.3]),
                burst: dice.pick(&[0.0, 0.02]),
                damage: dice.within(0.0, 0.1),
                repeat: dice.within(0.0, 0.2),
                hold: dice.within(0.0, 0.1),
                elsewhere: dice.within(0.0, 0.02),
            },
            steps,
        };
        for config in &mut storm.configs {
            config.protect.code = dice.pick(&[Code::Block, Code::Stream]);
        }
        storm
    }

    pub(crate) fn run(mut self) -> Run {
        self.steps.sort_by_key(|(at, _)| *at);
        let mut run = self.begin();
        for (at, step) in std::mem::take(&mut self.steps) {
            run.world.run_until(at);
            self.step(&mut run, step);
        }
        run.world.run_until(Instant::from_millis(STORM_MS));
        for link in &run.links {
            run.world.set_cut(*link, false);
        }
        for node in run.nodes {
            run.world.act(node, |party, _| party.calm());
        }
        // An operator that began anew is found again after two seconds of silence.
        let mut calm = STORM_MS + 500;
        run.world.run_until(Instant::from_millis(calm));
        while !(run.is_one_session() && run.is_up()) && calm < STORM_MS + 5_000 {
            calm += 250;
            run.world.run_until(Instant::from_millis(calm));
        }
        for node in run.nodes {
            run.world.act(node, |party, _| party.media_interval = None);
        }
        // Longer than any unit lives.
        run.world.run_until(Instant::from_millis(calm + 700));
        run
    }

    fn begin(&self) -> Run {
        let mut world = World::new(self.seed);
        if std::env::var_os("SIM_SEED").is_none() {
            world.log_mut().keep(0)
        };
        let truth = Rc::new(Cell::new(Truth::new(self.clocks)));
        let routes: Vec<Route> = (0..self.links.len() as u8)
            .map(|socket| Route { socket, remote: address(9, 5_000 + u16::from(socket)) })
            .collect();
        let now = self.clocks[0].local(Instant::ZERO);
        let vehicle = Session::initiate(
            self.configs[0].clone(),
            &identity(1),
            identity(2).public(),
            LEASE,
            &routes,
            self.seed ^ 2,
            now,
        );
        let party = |side, session, seed| {
            let mut party = Party::new(side, session, truth.clone(), self.mischief, seed);
            party.media_deadline = self.media_deadline;
            party.media_interval = Some(self.media_interval);
            party
        };
        let operator = party(1, self.responder(self.seed ^ 1, self.clocks[1]), self.seed ^ 4);
        let operator = world.add(operator, self.clocks[1]);
        let vehicle = world.add(party(0, vehicle.unwrap(), self.seed ^ 3), self.clocks[0]);
        let mut links = Vec::new();
        for (number, pair) in (0..).zip(&self.links) {
            let here = End::new(vehicle, number, address(number, 4_000));
            let there = End::new(operator, 0, address(9, 5_000 + u16::from(number)));
            links.push(world.link(here, there, pair).unwrap());
        }
        Run { world, seed: self.seed, nodes: [vehicle, operator], links }
    }

    fn responder(&self, seed: u64, clock: Clock) -> Session {
        let (me, peer) = (identity(2), identity(1).public());
        let now = clock.local(Instant::ZERO);
        Session::respond(self.configs[1].clone(), &me, peer, LEASE, seed, now).unwrap()
    }

    fn step(&self, run: &mut Run, step: Step) {
        match step {
            Step::Cut(link) => run.world.set_cut(run.links[link], true),
            Step::Restore(link) => run.world.set_cut(run.links[link], false),
            Step::Rebind(link, port) => {
                run.world.rebind(run.links[link], address(link as u8, port))
            }
            Step::Jump(side, nanos) => run.world.act(run.nodes[side], |p, now| p.jump(nanos, now)),
            Step::Size(side, link, bytes) => run.world.act(run.nodes[side], |party, _| {
                let link = LinkNumber::new(link as u8).unwrap();
                party.session.set_datagram_bytes_max(link, ByteCount::new(bytes));
            }),
            Step::Anew(seed) => run.world.act(run.nodes[1], |party, _| {
                party.begin_anew(self.responder(seed, self.clocks[1]));
            }),
        }
    }
}

fn pair(dice: &mut Dice) -> Pair {
    let up = link(dice);
    let down = if dice.one_in(2) { link(dice) } else { up.clone() };
    Pair { up, down }
}

fn link(dice: &mut Dice) -> LinkConfig {
    let rate = Bitrate::from_kbps(300 + dice.below(6_000));
    let mut link = LinkConfig::of_rate(rate);
    link.delay_ms = dice.within(0.0, 120.0);
    link.queue_bytes = 3_000 + (rate * Duration::from_millis(dice.below(700))).get();
    link.loss = dice.pick(&[0.0, 0.01, 0.05]);
    link.reorder = dice.one_in(2);
    if dice.one_in(2) {
        link.jitter =
            Some(Jitter { sigma_ms: dice.within(0.0, 40.0), tau_ms: dice.within(1.0, 300.0) });
    }
    if dice.one_in(3) {
        link.mtu_bytes = Some(200 + dice.below(1_350));
    }
    if dice.one_in(4) {
        link.outage_losing = Some(Outage { every_s: 1.0, mean_ms: 60.0 });
    }
    if dice.one_in(4) {
        link.outage_holding = Some(Outage { every_s: 1.0, mean_ms: 60.0 });
    }
    link
}

fn config(dice: &mut Dice) -> Config {
    let mut config = Config {
        datagram_bytes_max: ByteCount::new(150 + dice.below(1_351)),
        ping_interval: Duration::from_millis(5 + dice.below(40)),
        silence: Duration::from_millis(100 + dice.below(300)),
        report_interval: Duration::from_millis(10 + dice.below(100)),
        spread: dice.one_in(2),
        schedule: dice.pick(&SCHEDULES),
        ..Config::default()
    };
    config.rate.controller = dice.pick(&CONTROLLERS);
    config.rate.initial = Bitrate::from_kbps(800 + dice.below(4_000));
    config.protect.code_rate = dice.within(0.2, 1.0);
    config
}

fn step(dice: &mut Dice, links: usize) -> Step {
    let link = dice.below(links as u64) as usize;
    match dice.below(16) {
        0..4 => Step::Cut(link),
        4..8 => Step::Restore(link),
        8..11 => Step::Rebind(link, 10_000 + dice.below(50_000) as u16),
        11 => Step::Jump(dice.below(2) as usize, dice.below(4_000_000_000) as i64),
        12 => Step::Jump(dice.below(2) as usize, -(dice.below(200_000_000) as i64)),
        13..15 => Step::Size(dice.below(2) as usize, link, 150 + dice.below(1_351)),
        _ => Step::Anew(dice.0.next_u64()),
    }
}

impl Run {
    fn party(&self, side: usize) -> &Party {
        self.world.node(self.nodes[side])
    }

    /// Every datagram is somewhere: in the models, between them and the sessions, and in what the
    /// two ends say of one link.
    pub(crate) fn check_links(&self) {
        let directions = [Direction::Up, Direction::Down];
        let mut pushed = 0;
        for (side, direction) in directions.into_iter().enumerate() {
            let mut delivered = 0;
            for link in &self.links {
                let model = self.world.counters(*link, direction);
                let dropped: u64 = Lost::ALL.into_iter().map(|why| model.dropped(why)).sum();
                let flying = self.world.in_flight(*link, direction);
                assert_eq!(model.pushed, model.delivered + dropped + flying, "{direction:?}");
                pushed += model.pushed;
                delivered += model.delivered;
            }
            self.party(side).check_datagrams();
            assert_eq!(self.party(1 - side).arrived, delivered, "{direction:?}");
        }
        let sent = self.party(0).sent + self.party(1).sent;
        assert_eq!(sent, pushed + self.world.dropped_no_route());
        for side in [0, 1] {
            let (here, there) = (self.party(side), self.party(1 - side));
            if !self.is_one_session() {
                continue;
            }
            for out in here.session.links() {
                let sealed = here.sealed[usize::from(out.number.get())];
                assert_eq!(out.datagrams_sent, sealed, "link {}", out.number.get());
                assert!(out.datagrams_reported + out.datagrams_lost <= out.datagrams_sent);
                let Some(into) = there.session.links().find(|l| l.number == out.number) else {
                    continue;
                };
                assert!(out.datagrams_reported <= into.datagrams_received);
                assert!(into.datagrams_received <= out.datagrams_sent);
                let (came, went) = (into.bytes_received, out.bytes_sent);
                assert!(came <= went, "link {}: {came} of {went}", out.number.get());
            }
        }
    }

    /// Every unit accepted has been delivered, is lost for one reason, or was never heard of.
    pub(crate) fn check_units(&self) {
        for side in [0, 1] {
            let (from, to) = (self.party(side), self.party(1 - side));
            to.check_units();
            if !self.is_one_session() {
                continue;
            }
            let accepted = from.accepted(Class::Media);
            let (out, into) = (from.session.units(Class::Media), to.session.units(Class::Media));
            assert!(out.told_delivered <= into.delivered || from.epoch > 1);
            assert!(out.told_lost <= into.lost() || from.epoch > 1);
            let heard = to.media_ended.last().map_or(0, |last| last + 1);
            assert!(heard <= accepted, "unit {heard} of {accepted}");
            let ended = to.media_ended.len() as u64;
            let skipped = to.gaps_skipped();
            // Where a clock was set, a unit may still wait for a deadline seconds ahead.
            let all = ended + skipped >= heard || to.set_at() > Instant::ZERO;
            assert!(ended <= heard && all, "{ended} of {heard}, {skipped} skipped");
            let commands = to.control_ended.len() as u64;
            assert!(commands <= from.accepted(Class::Control));
        }
    }

    /// After the storm a link is up, clocks are compared, and commands cross.
    pub(crate) fn check_calm(&self) {
        assert!(self.is_one_session(), "the two have not found each other again");
        assert!(self.is_up(), "no link came up again");
        for side in [0, 1] {
            let party = self.party(side);
            let (now, clock) = (self.world.now(), party.session.clock());
            let forgotten = now.since(party.set_at()) > BOUNDS_KEPT;
            assert!(party.estimate_is_true(now) || !forgotten, "side {side}: {clock:?}");
            let counters = party.session.counters();
            assert_eq!(counters.discarded(Discard::EventOverflow), 0);
            assert_eq!(counters.discarded(Discard::PacketMalformed), 0);
        }
    }

    /// Whether both sides have, or have just had, a link.
    fn is_up(&self) -> bool {
        let down = |side: usize| self.world.now().since(self.party(side).up_at);
        [0, 1].into_iter().all(|side| down(side) < Duration::from_millis(700))
    }

    /// Whether the present session of the one is that of the other.
    fn is_one_session(&self) -> bool {
        [0, 1].into_iter().all(|side| self.party(side).heard_epoch == self.party(1 - side).epoch)
    }
}

pub(crate) fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host + 1], port))
}

fn identity(seed: u8) -> Identity {
    Identity::from_seed(&[seed; 32])
}

const LEASE: [u8; 16] = [7; 16];
/// A clock that is set by less than the error of its estimate is noticed only when the bounds from
/// before are given up.
const BOUNDS_KEPT: Duration = Duration::from_millis(5_500);
const STORM_MS: u64 = 1_500;
const SCHEDULES: [planner::Kind; 6] = [
    planner::Kind::Quantile,
    planner::Kind::EarliestDelivery,
    planner::Kind::TransmissionEnd,
    planner::Kind::RoundRobin,
    planner::Kind::Redundant,
    planner::Kind::BestLink,
];
const CONTROLLERS: [rate::Kind; 3] =
    [rate::Kind::TwoState, rate::Kind::DelayRate, rate::Kind::Fixed];
