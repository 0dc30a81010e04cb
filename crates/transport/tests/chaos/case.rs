use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use strum::VariantArray;
use tautline_scenario::endpoint::{Clock, Endpoint};
use tautline_scenario::faults::{Faults, Random, Rates};
use tautline_scenario::policies::{planner, rate};
use tautline_scenario::run::{Run, Setup};
use tautline_scenario::script::{Script, Side, Step};
use tautline_sim::link::{Bbr, Config as LinkConfig, Cubic, Jitter, L4s, Outage, Pair, Policer};
use tautline_sim::world::{self, Direction};
use tautline_transport::protect::Code;
use tautline_transport::{ChannelNumber, Config, Discard};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use crate::auditor::{Auditor, Truth};

/// All parameters of one run, drawn from its seed.
#[derive(Debug)]
pub(crate) struct Case {
    setup: Setup,
    media_deadline: Duration,
    media_interval: Duration,
    script: Script,
}

/// A run whose faults have ended.
pub(crate) struct Ended {
    pub(crate) run: Run<Auditor>,
}

/// A source of random draws for a case, reproducible from its seed.
struct Draws(ChaCha20Rng);

impl Draws {
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

impl Case {
    pub(crate) fn of(seed: u64) -> Self {
        let rng = &mut Draws(ChaCha20Rng::seed_from_u64(seed));
        let drawn = [config(rng), config(rng)];
        let yields = drawn.each_ref().map(|(_, control)| *control == rate::Kind::DelayRate);
        let mut configs = drawn.map(|(config, _)| config);
        let links: Vec<Pair> = (0..1 + rng.below(4)).map(|_| pair(rng, yields)).collect();
        let clock = |rng: &mut Draws| {
            world::Clock::new(
                Duration::from_millis(rng.below(100_000_000)),
                rng.within(-95.0, 95.0),
            )
        };
        let clocks = [clock(rng), clock(rng)];
        let steps: Vec<_> = (0..rng.below(14))
            .map(|_| (Instant::from_millis(rng.below(FAULTS_MS)), step(rng, links.len())))
            .collect();
        let media_deadline = Duration::from_millis(30 + rng.below(270));
        let media_interval = Duration::from_millis(3 + rng.below(60));
        let rates = Rates {
            loss: rng.pick(&[0.0, 0.05, 0.3]),
            burst: rng.pick(&[0.0, 0.02]),
            corruption: rng.within(0.0, 0.1),
            duplication: rng.within(0.0, 0.2),
            reordering: rng.within(0.0, 0.1),
            readdressing: rng.within(0.0, 0.02),
        };
        for config in &mut configs {
            config.protect.code = rng.pick(&[Code::Block, Code::Stream]);
        }
        let faults = Faults::Random(Random::new(rates));
        let setup = Setup { clocks, configs, faults, log: true, ..Setup::new(seed, links) };
        Self { setup, media_deadline, media_interval, script: steps.into_iter().collect() }
    }

    pub(crate) fn run(self) -> Ended {
        let mut run = self.start();
        run.play(&self.script, Instant::from_millis(FAULTS_MS));
        for link in run.links().to_vec() {
            run.world.set_cut(link, false);
        }
        for side in Side::BOTH {
            run.world.act(run.node(side), |endpoint, _| endpoint.faults = Faults::None);
        }
        // The initiator finds a restarted operator two seconds after its last datagram.
        let mut recovered = FAULTS_MS + 500;
        run.until(Instant::from_millis(recovered));
        let mut ended = Ended { run };
        while !(ended.is_one_session() && ended.is_up()) && recovered < FAULTS_MS + 5_000 {
            recovered += 250;
            ended.run.until(Instant::from_millis(recovered));
        }
        let run = &mut ended.run;
        for side in Side::BOTH {
            let stop = |endpoint: &mut Endpoint<Auditor>, _| {
                endpoint.application.media_interval = None;
            };
            run.world.act(run.node(side), stop);
        }
        // Longer than any unit lives.
        run.until(Instant::from_millis(recovered + 700));
        ended
    }

    fn start(&self) -> Run<Auditor> {
        let truth = Rc::new(Cell::new(Truth::new(self.setup.clocks.map(Clock::from))));
        let auditor =
            |side| Auditor::new(side, truth.clone(), self.media_interval, self.media_deadline);
        let mut run = self.setup.start(auditor(Side::Vehicle), auditor(Side::Operator)).unwrap();
        if std::env::var_os("SIM_SEED").is_none() {
            run.world.log_mut().keep(0);
        }
        run
    }
}

/// Draws both directions of a link. `yields` is true for each sender whose rate control yields to a
/// queue; one that does not would fill a low-rate or policed link permanently.
fn pair(rng: &mut Draws, yields: [bool; 2]) -> Pair {
    let mut up = link(rng, 300..6_300);
    let mut down = match rng.below(5) {
        0 | 1 => up.clone(),
        2 => link(rng, if yields[1] { 128..300 } else { 300..6_300 }),
        3 => link(rng, 300..6_300),
        _ => {
            let mut long = link(rng, 300..6_300);
            // Commands live for 250 ms.
            long.delay_ms = rng.within(120.0, 200.0);
            long
        }
    };
    for (direction, yields) in [&mut up, &mut down].into_iter().zip(yields) {
        direction.policer.take_if(|_| !yields);
    }
    Pair { up, down }
}

fn link(rng: &mut Draws, kbps: Range<u64>) -> LinkConfig {
    let rate = Bitrate::from_kbps(kbps.start + rng.below(kbps.end - kbps.start));
    let mut link = LinkConfig::of_rate(rate);
    link.delay_ms = rng.within(0.0, 120.0);
    link.queue_bytes = 3_000 + (rate * Duration::from_millis(rng.below(700))).get();
    link.loss = rng.pick(&[0.0, 0.01, 0.05]);
    link.reorder = rng.one_in(2);
    if rng.one_in(2) {
        link.jitter =
            Some(Jitter { sigma_ms: rng.within(0.0, 60.0), tau_ms: rng.within(1.0, 300.0) });
    }
    if rng.one_in(3) {
        link.mtu_bytes = Some(200 + rng.below(1_350));
    }
    if rng.one_in(4) {
        link.outage_losing = Some(Outage { every_s: 1.0, mean_ms: 60.0 });
    }
    if rng.one_in(4) {
        link.outage_holding = Some(Outage { every_s: 1.0, mean_ms: 60.0 });
    }
    if rng.one_in(5) {
        let burst_bytes = 1_500 + rng.below(60_000);
        link.policer = Some(Policer { rate_mbps: rng.within(0.2, 4.0), burst_bytes });
    }
    // Competing traffic in the queue, while there are faults.
    let (from_s, until_s) = (rng.within(0.0, 1.0), Some(FAULTS_MS as f64 / 1e3));
    if rng.one_in(6) {
        link.cubic = Some(Cubic { rtt_ms: rng.within(5.0, 100.0), from_s, until_s });
    }
    if rng.one_in(6) {
        link.bbr = vec![Bbr { rtt_ms: rng.within(5.0, 100.0), from_s, until_s }];
    }
    if rng.one_in(5) {
        link.l4s = Some(L4s::default());
    }
    link
}

/// Draws a configuration, and returns it with the rate control that it names.
fn config(rng: &mut Draws) -> (Config, rate::Kind) {
    let mut config = Config {
        datagram_bytes_max: ByteCount::new(150 + rng.below(1_351)),
        ping_interval: Duration::from_millis(5 + rng.below(40)),
        link_timeout: Duration::from_millis(100 + rng.below(300)),
        report_interval: Duration::from_millis(10 + rng.below(100)),
        spread: rng.one_in(2),
        ..Config::default()
    };
    let planner = rng.pick(planner::Kind::VARIANTS);
    let control = rng.pick(rate::Kind::VARIANTS);
    config.controllers = control.factory();
    config.rate.initial = Bitrate::from_kbps(800 + rng.below(4_000));
    config.planner = planner.factory(planner::Code::of_rate(rng.within(0.2, 1.0)));
    (config, control)
}

fn step(rng: &mut Draws, links: usize) -> Step {
    let link = rng.below(links as u64) as usize;
    let side = |rng: &mut Draws| Side::BOTH[rng.below(2) as usize];
    match rng.below(16) {
        0..4 => Step::Cut(link),
        4..8 => Step::Restore(link),
        8..11 => Step::Rebind(link, 10_000 + rng.below(50_000) as u16),
        11 => Step::SetClock(side(rng), rng.below(4_000_000_000) as i64),
        12 => Step::SetClock(side(rng), -(rng.below(200_000_000) as i64)),
        13..15 => {
            let side = side(rng);
            Step::LimitDatagrams(side, link, ByteCount::new(150 + rng.below(1_351)))
        }
        _ => Step::RestartOperator(rng.0.next_u64()),
    }
}

impl Ended {
    fn endpoint(&self, side: Side) -> &Endpoint<Auditor> {
        self.run.endpoint(side)
    }

    /// Checks that every datagram is accounted for: in the models, between them and the sessions,
    /// and between the two ends' counts of one link.
    pub(crate) fn check_links(&self) {
        let world = &self.run.world;
        let mut pushed = 0;
        for (side, direction) in Side::BOTH.into_iter().zip([Direction::Up, Direction::Down]) {
            let mut delivered = 0;
            for link in self.run.links() {
                let model = world.counters(*link, direction);
                let dropped = model.dropped_total();
                let flying = world.in_flight(*link, direction);
                assert_eq!(model.pushed, model.delivered + dropped + flying, "{direction:?}");
                pushed += model.pushed;
                delivered += model.delivered;
            }
            let Endpoint { session, application, .. } = self.endpoint(side);
            application.check_datagrams(session);
            let arrived = self.endpoint(side.peer()).application.arrived;
            assert_eq!(arrived, delivered, "{direction:?}");
        }
        let sent: u64 =
            Side::BOTH.into_iter().map(|side| self.endpoint(side).application.sent).sum();
        assert_eq!(sent, pushed + world.dropped_no_route());
        for side in Side::BOTH {
            let (here, there) = (self.endpoint(side), self.endpoint(side.peer()));
            if !self.is_one_session() {
                continue;
            }
            for out in here.session.links() {
                let sealed = here.application.sealed[usize::from(out.number.get())];
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

    /// Checks that every accepted unit was delivered, was lost for one reason, or remained unknown.
    pub(crate) fn check_units(&self) {
        for side in Side::BOTH {
            let (from, to) = (self.endpoint(side), self.endpoint(side.peer()));
            to.application.check_units(&to.session);
            if !self.is_one_session() {
                continue;
            }
            let (out, into) =
                (from.session.units(ChannelNumber::MEDIA), to.session.units(ChannelNumber::MEDIA));
            let (from, receiver) = (&from.application, &to.application);
            let accepted = from.accepted(ChannelNumber::MEDIA);
            assert!(out.told_delivered <= into.delivered || from.epoch > 1);
            assert!(out.told_lost <= into.lost() || from.epoch > 1);
            let heard = receiver.media_ended.last().map_or(0, |last| last + 1);
            assert!(heard <= accepted, "unit {heard} of {accepted}");
            let ended = receiver.media_ended.len() as u64;
            let skipped = receiver.gaps_skipped(&to.session);
            // After a clock change, a unit may still wait for a deadline seconds ahead.
            let all = ended + skipped >= heard || receiver.set_at() > Instant::ZERO;
            assert!(ended <= heard && all, "{ended} of {heard}, {skipped} skipped");
            let commands = receiver.control_ended.len() as u64;
            assert!(commands <= from.accepted(ChannelNumber::COMMAND));
        }
    }

    /// Checks that after the faults both ends are in one session, a link is up at both, and the
    /// clock estimate is right unless a clock was set recently. Also checks that no event was
    /// dropped and no packet malformed.
    pub(crate) fn check_recovered(&self) {
        assert!(self.is_one_session(), "the two have not found each other again");
        assert!(self.is_up(), "no link came up again");
        for side in Side::BOTH {
            let Endpoint { session, application, .. } = self.endpoint(side);
            let (now, clock) = (self.run.world.now(), session.clock());
            let forgotten = now.since(application.set_at()) > BOUNDS_KEPT;
            let is_true = application.estimate_is_true(session, now);
            assert!(is_true || !forgotten, "{side:?}: {clock:?}");
            let counters = session.counters();
            assert_eq!(counters.discarded(Discard::EventOverflow), 0);
            assert_eq!(counters.discarded(Discard::PacketMalformed), 0);
        }
    }

    /// Returns whether both sides had a link that was up within the last 700 ms.
    fn is_up(&self) -> bool {
        let now = self.run.world.now();
        let down = |side| now.since(self.endpoint(side).application.up_at);
        Side::BOTH.into_iter().all(|side| down(side) < Duration::from_millis(700))
    }

    /// Returns whether both ends are in the same session.
    fn is_one_session(&self) -> bool {
        let of = |side| &self.endpoint(side).application;
        Side::BOTH.into_iter().all(|side| of(side).heard_epoch == of(side.peer()).epoch)
    }
}

/// Time until the clock estimate's old bounds expire: a clock change smaller than the estimate's
/// error is noticed only then.
const BOUNDS_KEPT: Duration = Duration::from_millis(5_500);
const FAULTS_MS: u64 = 1_500;
