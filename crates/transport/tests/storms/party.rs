use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tautline_sim::world::{self, Clock, Node};
use tautline_transport::link::State;
use tautline_transport::{Class, Counters, Discard, Event, LinkNumber, Route, Session, Units};
use tautline_units::{Duration, Instant};

use crate::storm::address;

/// A session that sends units of both classes, to which nothing comes unharmed.
///
/// It holds everything that the session says against what it has seen itself.
pub(crate) struct Party {
    pub(crate) session: Session,
    side: usize,
    truth: Rc<Cell<Truth>>,
    mischief: Option<Mischief>,
    dice: ChaCha20Rng,
    bursting: bool,
    held: VecDeque<(Route, Vec<u8>)>,
    kept: VecDeque<(Route, Vec<u8>)>,
    pub(crate) media_interval: Option<Duration>,
    pub(crate) media_deadline: Duration,
    media_at: Instant,
    control_at: Instant,
    /// The latest time that the session was told.
    session_now: Instant,
    /// The world's last instant at which the clock estimate was missing or wrong.
    untrue_at: Instant,
    /// The errors that the estimate stated within the last second.
    errors: VecDeque<(Instant, Duration)>,
    /// The world's last instant at which a link was up.
    pub(crate) up_at: Instant,
    lines: VecDeque<String>,

    /// Datagrams that the models have delivered here, and that left here.
    pub(crate) arrived: u64,
    pub(crate) sent: u64,
    /// The same of this session object: handed in, sent.
    handed: u64,
    left: u64,
    inits: u64,
    responses: u64,

    /// How often the session was established, counted over its lives; in every unit.
    pub(crate) epoch: u64,
    /// That of the peer, by the newest unit that came.
    pub(crate) heard_epoch: u64,
    /// Of this epoch: sealed datagrams by link, units by class.
    pub(crate) sealed: [u64; LinkNumber::COUNT],
    accepted: [u64; 2],
    pub(crate) media_ended: BTreeSet<u64>,
    pub(crate) control_ended: BTreeSet<u64>,
    command_newest: Option<u64>,
    /// Of this session object.
    refused: u64,
    accepted_ever: [u64; 2],
    delivered: [u64; 2],
    lost: u64,
}

/// What happens to a datagram on its last metre; probabilities.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mischief {
    pub(crate) swallow: f64,
    /// A row of losses begins with it.
    pub(crate) burst: f64,
    pub(crate) damage: f64,
    /// It comes again: at once, and later.
    pub(crate) repeat: f64,
    /// It comes after the next few.
    pub(crate) hold: f64,
    /// It comes from an address that is nobody's.
    pub(crate) elsewhere: f64,
}

/// What both clocks show, and when one of them was set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    clocks: [Clock; 2],
    shifts: [i64; 2],
    /// A clock was set, or stands still because it was set back.
    unsettled_until: Instant,
}

impl Truth {
    pub(crate) fn new(clocks: [Clock; 2]) -> Self {
        Self { clocks, shifts: [0; 2], unsettled_until: Instant::ZERO }
    }

    fn local(&self, side: usize, world: Instant) -> Instant {
        self.clocks[side].local(world).offset_by_nanos(self.shifts[side])
    }

    fn world(&self, side: usize, local: Instant) -> Instant {
        self.clocks[side].world(local.offset_by_nanos(-self.shifts[side]))
    }
}

impl Party {
    pub(crate) fn new(
        side: usize,
        session: Session,
        truth: Rc<Cell<Truth>>,
        mischief: Mischief,
        seed: u64,
    ) -> Self {
        let start = truth.get().local(side, Instant::ZERO);
        Self {
            session,
            side,
            truth,
            mischief: Some(mischief),
            dice: ChaCha20Rng::seed_from_u64(seed),
            bursting: false,
            held: VecDeque::new(),
            kept: VecDeque::new(),
            media_interval: None,
            media_deadline: Duration::ZERO,
            media_at: start,
            control_at: start,
            session_now: start,
            untrue_at: Instant::ZERO,
            errors: VecDeque::new(),
            up_at: Instant::ZERO,
            lines: VecDeque::new(),
            arrived: 0,
            sent: 0,
            handed: 0,
            left: 0,
            inits: 0,
            responses: 0,
            epoch: 0,
            heard_epoch: 0,
            sealed: [0; LinkNumber::COUNT],
            accepted: [0; 2],
            media_ended: BTreeSet::new(),
            control_ended: BTreeSet::new(),
            command_newest: None,
            refused: 0,
            accepted_ever: [0; 2],
            delivered: [0; 2],
            lost: 0,
        }
    }

    /// From now on datagrams come as the links bring them.
    pub(crate) fn calm(&mut self) {
        self.mischief = None;
    }

    /// Sets the clock. A session's time never goes back: it stands until the clock has caught up.
    pub(crate) fn jump(&mut self, nanos: i64, now: Instant) {
        let mut truth = self.truth.get();
        let world = truth.clocks[self.side].world(now);
        truth.shifts[self.side] += nanos;
        let still = Duration::from_nanos(nanos.min(0).unsigned_abs());
        truth.unsettled_until = truth.unsettled_until.max(world + still);
        self.truth.set(truth);
        self.handle_timeout(now);
    }

    /// Forgets the session for another, as a machine does that starts again.
    pub(crate) fn begin_anew(&mut self, session: Session) {
        self.check_datagrams();
        self.check_units();
        self.session = session;
        (self.handed, self.left, self.inits, self.responses) = (0, 0, 0, 0);
        (self.refused, self.lost) = (0, 0);
        (self.accepted_ever, self.delivered) = ([0; 2], [0; 2]);
        self.forget();
    }

    /// What the present session has accepted.
    pub(crate) fn accepted(&self, class: Class) -> u64 {
        self.accepted[class as usize]
    }

    /// Units in gaps too long to be told one by one, by the session's own count.
    pub(crate) fn gaps_skipped(&self) -> u64 {
        units_lost(self.session.counters()) - self.lost
    }

    pub(crate) fn check_datagrams(&self) {
        let counters = self.session.counters();
        assert_eq!(counters.datagrams_received, self.handed);
        assert_eq!(counters.datagrams_sent, self.left);
        assert!(self.responses <= self.inits, "{} of {}", self.responses, self.inits);
    }

    pub(crate) fn check_units(&self) {
        let counters = self.session.counters();
        let units = Class::ALL.map(|class| self.session.units(class));
        for (units, class) in units.iter().zip(Class::ALL) {
            assert_eq!(units.accepted, self.accepted_ever[class as usize]);
            assert_eq!(units.offered, units.accepted + units.refused());
            assert!(units.told_delivered + units.told_lost <= units.accepted);
            assert_eq!(units.delivered, self.delivered[class as usize]);
            assert!(units.repaired <= units.delivered);
            let ended = units.delivered + units.lost() + units.superseded;
            assert_eq!(units.heard, ended + units.open, "{class:?}: {units:?}");
        }
        let sum = |count: fn(&Units) -> u64| units.iter().map(count).sum::<u64>();
        assert_eq!(sum(Units::lost), units_lost(counters));
        assert_eq!(sum(|of| of.superseded), counters.discarded(Discard::ControlSuperseded));
        assert_eq!(sum(Units::refused), self.refused);
        assert!(units_lost(counters) >= self.lost);
        self.check_packets();
        let refused = [Discard::SendNoLink, Discard::SendInvalid, Discard::SendCongested];
        let refused: u64 = refused.into_iter().map(|what| counters.discarded(what)).sum();
        assert_eq!(refused, self.refused);
    }

    /// Every media packet that a link was given is somewhere.
    fn check_packets(&self) {
        let counters = self.session.counters();
        let mut again = 0;
        for link in self.session.links() {
            let media = link.media;
            let left = media.waiting + media.dropped + media.withdrawn + media.sent;
            assert_eq!(media.given, left, "link {}: {media:?}", link.number.get());
            let told = media.open + media.in_time + media.late + media.lost;
            assert_eq!(media.sent, told, "link {}: {media:?}", link.number.get());
            assert!(media.again <= media.given && media.sent <= link.datagrams_sent);
            again += media.again;
        }
        let moved = counters.media_moved + counters.repairs_asked;
        assert!(again <= moved);
        assert!(again == moved || counters.handshakes > 1, "{again} of {moved}");
    }

    /// Whether the session's idea of the other clock is right within the error that it states.
    pub(crate) fn estimate_is_true(&self, world: Instant) -> bool {
        let truth = self.truth.get();
        let (here, there) = (truth.local(self.side, world), truth.local(1 - self.side, world));
        let offset = there.signed_nanos_since(here);
        self.session.clock().is_some_and(|clock| {
            let error = clock.error().as_nanos() as u64 + 1_000;
            clock.offset_nanos().abs_diff(offset) <= error
        })
    }

    /// When a clock was last set, or had last stood still.
    pub(crate) fn set_at(&self) -> Instant {
        self.truth.get().unsettled_until
    }

    /// The clock's time now, and the world's.
    fn times(&self, now: Instant) -> (Instant, Instant) {
        let truth = self.truth.get();
        let world = truth.clocks[self.side].world(now);
        (truth.local(self.side, world), world)
    }

    /// Hands a datagram to the session: it becomes one thing, and one only.
    fn feed(&mut self, route: Route, datagram: &[u8], now: Instant) {
        let (local, _) = self.times(now);
        self.session_now = self.session_now.max(local);
        self.handed += 1;
        let (fates, handshakes) = (self.fates(datagram), self.session.counters().handshakes);
        self.session.handle_datagram(route, datagram, local);
        // A new session counts anew: the datagram that began it is its first.
        let begun = self.session.counters().handshakes > handshakes;
        let mut fated = if begun { 1 } else { self.fates(datagram) - fates };
        if fated == 0 && datagram.first().is_some_and(|head| head >> 4 == 1) {
            self.inits += 1;
            fated = 1;
        }
        assert_eq!(fated, 1, "fates of one datagram");
        self.observe(now);
    }

    /// Datagrams of which it is known what became of them, but for inits that are answered.
    fn fates(&self, datagram: &[u8]) -> u64 {
        let authentic: u64 = self.session.links().map(|link| link.datagrams_received).sum();
        let is_init = datagram.first().is_some_and(|head| head >> 4 == 1);
        let overflow = is_init.then_some(Discard::AnswerOverflow);
        let fates = FATES.into_iter().chain(overflow);
        authentic + fates.map(|what| self.session.counters().discarded(what)).sum::<u64>()
    }

    /// Lets the session tell what it has to, and holds it to the truth.
    fn observe(&mut self, now: Instant) {
        let (_, world) = self.times(now);
        let unsettled = self.truth.get().unsettled_until;
        if !self.estimate_is_true(world) {
            let known = self.session.clock().is_some();
            let set = unsettled > Instant::ZERO;
            assert!(!known || set, "no clock was set: {:?}", self.session.clock());
            self.untrue_at = world;
        }
        let error = self.session.clock().map_or(Duration::ZERO, |clock| clock.error());
        if self.errors.back().is_none_or(|(_, last)| *last != error) {
            self.errors.push_back((world, error));
        }
        while self.errors.len() > 1 && world.since(self.errors[1].0) > FORGIVEN {
            self.errors.pop_front();
        }
        if self.session.links().any(|link| link.state == State::Up) {
            self.up_at = world;
        }
        while let Some(event) = self.session.poll_event() {
            let line = match &event {
                Event::Unit { class, number, bytes, .. } => {
                    format!("{class:?} {number:?} {} B", bytes.len())
                }
                other => format!("{other:?}"),
            };
            match event {
                Event::Unit { class, number, bytes, sent_at, .. } => {
                    self.delivered[class as usize] += 1;
                    if class == Class::Control {
                        let newest = self.command_newest.replace(number.get());
                        assert!(newest < self.command_newest, "an older command: {line}");
                    }
                    self.end(class, number.get());
                    let unit = Unit::parse(&bytes);
                    self.heard_epoch = self.heard_epoch.max(unit.epoch);
                    let settled = world.since(self.untrue_at.max(unsettled)) > FORGIVEN;
                    if settled && self.untrue_at < world {
                        // A unit keeps the deadline that its first packet was given.
                        let error = self.errors.iter().map(|(_, error)| *error).max();
                        let error = error.unwrap_or_default();
                        let most = unit.deadline + Duration::from_millis(1) + error * 2;
                        let age = world.since(unit.sent_world);
                        assert!(age <= most, "{age:?} old, {most:?} at most: {line}");
                        let wrong = sent_at.map(|at| self.truth.get().world(self.side, at));
                        let wrong = wrong.map_or(0, |at| at.signed_nanos_since(unit.sent_world));
                        assert!(wrong.unsigned_abs() <= error.as_nanos() as u64 + 10_000);
                    }
                }
                Event::UnitLost { class, number, .. } => {
                    self.lost += 1;
                    self.end(class, number.get());
                }
                Event::Established => self.forget(),
                Event::Budget { .. } | Event::Link { .. } => {}
            }
            self.lines.push_back(line);
        }
    }

    fn end(&mut self, class: Class, number: u64) {
        let ended = match class {
            Class::Control => &mut self.control_ended,
            Class::Media => &mut self.media_ended,
        };
        assert!(ended.insert(number), "{class:?} unit {number} ended twice");
    }

    /// A new session begins: numbers start at zero.
    fn forget(&mut self) {
        self.epoch += 1;
        self.heard_epoch = 0;
        self.sealed = [0; LinkNumber::COUNT];
        self.accepted = [0; 2];
        self.media_ended.clear();
        self.control_ended.clear();
        self.command_newest = None;
    }

    /// Hands over what is due.
    fn produce(&mut self, now: Instant) {
        let (local, world) = self.times(now);
        if let Some(interval) = self.media_interval
            && local >= self.media_at
        {
            self.media_at = local + interval;
            let bytes = UNIT_BYTES_MIN + self.dice.next_u32() as usize % 3_000;
            self.send(Class::Media, bytes, self.media_deadline, local, world);
        }
        if local >= self.control_at {
            self.control_at = local + Duration::from_millis(20);
            self.send(Class::Control, 60, Duration::from_millis(250), local, world);
        }
    }

    fn send(&mut self, class: Class, bytes: usize, deadline: Duration, now: Instant, at: Instant) {
        let unit = Unit { epoch: self.epoch, sent_world: at, deadline };
        match self.session.send(class, &unit.write(bytes), deadline, now) {
            Ok(number) => {
                assert_eq!(number.get(), self.accepted[class as usize]);
                self.accepted[class as usize] += 1;
                self.accepted_ever[class as usize] += 1;
            }
            Err(_) => self.refused += 1,
        }
    }

    fn chance(&mut self, probability: f64) -> bool {
        f64::from(self.dice.next_u32()) < probability * f64::from(u32::MAX)
    }

    /// Damages, repeats, holds and swallows.
    fn mistreat(&mut self, mischief: Mischief, route: Route, datagram: &[u8], now: Instant) {
        let route = match self.chance(mischief.elsewhere) {
            true => Route { remote: address(77, 666), ..route },
            false => route,
        };
        self.bursting = match self.bursting {
            true => self.chance(BURST_GOES_ON),
            false => self.chance(mischief.burst),
        };
        if self.bursting || self.chance(mischief.swallow) {
            return;
        }
        if self.chance(mischief.hold) {
            self.held.push_back((route, datagram.to_vec()));
            return;
        }
        if self.chance(mischief.damage) {
            let mut damaged = datagram.to_vec();
            let bits = 1 + self.dice.next_u32() % 3;
            for _ in 0..bits {
                let at = self.dice.next_u32() as usize % damaged.len();
                damaged[at] ^= 1 << (self.dice.next_u32() % 8);
            }
            if self.chance(0.3) {
                damaged.truncate(self.dice.next_u32() as usize % (damaged.len() + 1));
            }
            return self.feed(route, &damaged, now);
        }
        self.feed(route, datagram, now);
        if self.chance(mischief.repeat) {
            self.feed(route, datagram, now);
            self.kept.push_back((route, datagram.to_vec()));
        }
        if self.held.len() > 3 {
            for (route, datagram) in std::mem::take(&mut self.held) {
                self.feed(route, &datagram, now);
            }
        }
        if self.kept.len() > 30
            && let Some((route, datagram)) = self.kept.pop_front()
        {
            self.feed(route, &datagram, now);
        }
    }
}

impl Node for Party {
    fn handle_datagram(&mut self, route: world::Route, datagram: &[u8], now: Instant) {
        let route = Route { socket: route.socket, remote: route.remote };
        self.arrived += 1;
        match self.mischief {
            Some(mischief) => self.mistreat(mischief, route, datagram, now),
            None => self.feed(route, datagram, now),
        }
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<world::Route> {
        let (local, _) = self.times(now);
        self.session_now = self.session_now.max(local);
        let route = self.session.poll_transmit(buffer, local)?;
        (self.sent, self.left) = (self.sent + 1, self.left + 1);
        assert!(buffer.len() <= 1_500);
        let (kind, link) = (buffer[0] >> 4, usize::from(buffer[0] & 0x0f));
        match kind {
            2 => self.responses += 1,
            3 => {
                self.sealed[link] += 1;
                let link =
                    self.session.links().find(|known| usize::from(known.number.get()) == link);
                let state = link.map(|link| link.state);
                let gated = state == Some(State::Up) || buffer.len() <= UNGATED_BYTES_MAX;
                assert!(gated, "{} bytes on a link that is {state:?}", buffer.len());
            }
            _ => {}
        }
        Some(world::Route { socket: route.socket, remote: route.remote })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.poll_timeout().map(|(at, _)| at);
        let media = self.media_interval.map(|_| self.media_at);
        let due = [session, media, Some(self.control_at)].into_iter().flatten().min()?;
        // While the clock stands still, nothing is due that was not before.
        Some(due.max(self.session_now).offset_by_nanos(-self.truth.get().shifts[self.side]))
    }

    fn handle_timeout(&mut self, now: Instant) {
        let (local, _) = self.times(now);
        self.session_now = self.session_now.max(local);
        self.session.handle_timeout(local);
        self.observe(now);
        self.produce(now);
        self.observe(now);
    }

    fn poll_log(&mut self, _now: Instant) -> Option<String> {
        self.lines.pop_front()
    }
}

/// A unit that proves itself.
#[derive(Debug, Clone, Copy)]
struct Unit {
    epoch: u64,
    sent_world: Instant,
    deadline: Duration,
}

impl Unit {
    fn write(&self, bytes: usize) -> Vec<u8> {
        let mut unit = Vec::with_capacity(bytes);
        unit.extend(self.epoch.to_be_bytes());
        unit.extend(self.sent_world.as_nanos().to_be_bytes());
        unit.extend((self.deadline.as_nanos() as u64).to_be_bytes());
        unit.extend(
            (UNIT_BYTES_MIN..bytes).map(|at| (at as u64 ^ self.sent_world.as_nanos()) as u8),
        );
        unit
    }

    fn parse(bytes: &[u8]) -> Self {
        let field = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
        let unit = Self {
            epoch: field(0),
            sent_world: Instant::from_nanos(field(8)),
            deadline: Duration::from_nanos(field(16)),
        };
        assert_eq!(unit.write(bytes.len()), bytes, "a damaged unit");
        unit
    }
}

fn units_lost(counters: &Counters) -> u64 {
    let units = [
        Discard::UnitMissing,
        Discard::UnitIncomplete,
        Discard::UnitLate,
        Discard::UnitEvicted,
        Discard::UnitMalformed,
    ];
    units.into_iter().map(|what| counters.discarded(what)).sum()
}

/// What becomes of a datagram that is not taken.
const FATES: [Discard; 10] = [
    Discard::DatagramMalformed,
    Discard::DatagramUnknownSession,
    Discard::DatagramForged,
    Discard::DatagramReplayed,
    Discard::DatagramStale,
    Discard::DatagramUnknownLink,
    Discard::HandshakeForged,
    Discard::HandshakeWrongPeer,
    Discard::HandshakeUnexpected,
    Discard::HandshakeLimited,
];
/// A unit keeps the deadline that its first packet was given, right or wrong, until it ends.
const FORGIVEN: Duration = Duration::from_millis(1_000);
const BURST_GOES_ON: f64 = 0.8;
const UNIT_BYTES_MIN: usize = 24;
/// Pings, pongs, reports of four links and a command fit; media hardly ever does.
const UNGATED_BYTES_MAX: usize = 500;
