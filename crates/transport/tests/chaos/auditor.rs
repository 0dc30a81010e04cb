use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;

use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::Rng;
use tautline_scenario::endpoint::{Application, Clock, Moment};
use tautline_scenario::script::Side;
use tautline_transport::link::State;
use tautline_transport::{
    ChannelNumber, Counters, Discard, Event, LinkNumber, Route, Session, Units,
};
use tautline_units::{Duration, Instant};

/// An application that sends units on both channels and audits its session.
///
/// It compares all session output with its own observations.
pub(crate) struct Auditor {
    side: Side,
    truth: Rc<Cell<Truth>>,
    /// Interval at which media units are sent; `None` from the end of the run on.
    pub(crate) media_interval: Option<Duration>,
    media_deadline: Duration,
    media_at: Instant,
    control_at: Instant,
    /// Last world time at which the clock estimate was missing or wrong.
    untrue_at: Instant,
    /// World time and stated error of each clock estimate of the last second.
    errors: VecDeque<(Instant, Duration)>,
    /// Last world time at which a link was up.
    pub(crate) up_at: Instant,

    /// Datagrams that the link models delivered to this end, over all lives of the session.
    pub(crate) arrived: u64,
    /// Datagrams that this end sent, over all lives of the session.
    pub(crate) sent: u64,
    /// Datagrams passed in to the present session object.
    handed: u64,
    /// Datagrams that the present session object wrote.
    left: u64,
    inits: u64,
    responses: u64,
    /// Number of datagrams with a known fate, and of handshakes, before the datagram being handled.
    before: (u64, u64),

    /// Number of establishments over all lives of the session, carried in every unit.
    pub(crate) epoch: u64,
    /// Epoch of the peer, from the newest unit received.
    pub(crate) heard_epoch: u64,
    /// Number of sealed datagrams that this end sent in this epoch, by link.
    pub(crate) sealed: [u64; LinkNumber::COUNT],
    /// Units of this epoch accepted for sending, by channel.
    accepted: [u64; 2],
    pub(crate) media_ended: BTreeSet<u64>,
    pub(crate) control_ended: BTreeSet<u64>,
    command_newest: Option<u64>,
    /// Units that the present session object refused; the following counts are of it too.
    refused: u64,
    accepted_ever: [u64; 2],
    delivered: [u64; 2],
    lost: u64,
}

/// The clocks of both ends, and the time until which a clock change has effects.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Truth {
    clocks: [Clock; 2],
    /// End of the time in which a clock was set, or stands still because it was set back.
    unsettled_until: Instant,
}

impl Truth {
    pub(crate) fn new(clocks: [Clock; 2]) -> Self {
        Self { clocks, unsettled_until: Instant::ZERO }
    }

    fn local(&self, side: Side, world: Instant) -> Instant {
        self.clocks[side as usize].local(world)
    }

    fn world(&self, side: Side, local: Instant) -> Instant {
        self.clocks[side as usize].world(local)
    }
}

impl Auditor {
    /// Creates an auditor of `side` that sends a media unit every `media_interval`.
    pub(crate) fn new(
        side: Side,
        truth: Rc<Cell<Truth>>,
        media_interval: Duration,
        media_deadline: Duration,
    ) -> Self {
        Self {
            side,
            truth,
            media_interval: Some(media_interval),
            media_deadline,
            media_at: Instant::ZERO,
            control_at: Instant::ZERO,
            untrue_at: Instant::ZERO,
            errors: VecDeque::new(),
            up_at: Instant::ZERO,
            arrived: 0,
            sent: 0,
            handed: 0,
            left: 0,
            inits: 0,
            responses: 0,
            before: (0, 0),
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

    /// Returns the number of units of `channel` that the present session has accepted.
    pub(crate) fn accepted(&self, channel: ChannelNumber) -> u64 {
        self.accepted[usize::from(channel.get())]
    }

    /// Returns the number of units in gaps too long to be reported one by one, by the session's own
    /// count.
    pub(crate) fn gaps_skipped(&self, session: &Session) -> u64 {
        units_lost(session.counters()) - self.lost
    }

    pub(crate) fn check_datagrams(&self, session: &Session) {
        let counters = session.counters();
        assert_eq!(counters.datagrams_received, self.handed);
        assert_eq!(counters.datagrams_sent, self.left);
        assert!(self.responses <= self.inits, "{} of {}", self.responses, self.inits);
    }

    pub(crate) fn check_units(&self, session: &Session) {
        let counters = session.counters();
        let units = CHANNELS.map(|channel| session.units(channel));
        for (units, channel) in units.iter().zip(CHANNELS) {
            assert_eq!(units.accepted, self.accepted_ever[usize::from(channel.get())]);
            assert_eq!(units.offered, units.accepted + units.refused());
            assert!(units.told_delivered + units.told_lost <= units.accepted);
            assert_eq!(units.delivered, self.delivered[usize::from(channel.get())]);
            assert!(units.repaired <= units.delivered);
            let ended = units.delivered + units.lost() + units.superseded;
            assert_eq!(units.heard, ended + units.open, "{channel:?}: {units:?}");
        }
        let sum = |count: fn(&Units) -> u64| units.iter().map(count).sum::<u64>();
        assert_eq!(sum(Units::lost), units_lost(counters));
        assert_eq!(sum(|of| of.superseded), counters.discarded(Discard::UnitSuperseded));
        assert_eq!(sum(Units::refused), self.refused);
        assert!(units_lost(counters) >= self.lost);
        check_packets(session);
        let refused = [Discard::SendNoLink, Discard::SendInvalid, Discard::SendCongested];
        let refused: u64 = refused.into_iter().map(|what| counters.discarded(what)).sum();
        assert_eq!(refused, self.refused);
    }

    /// Returns whether the session's estimate of the other clock is right within its stated error.
    pub(crate) fn estimate_is_true(&self, session: &Session, world: Instant) -> bool {
        let truth = self.truth.get();
        let (here, there) = (truth.local(self.side, world), truth.local(self.side.peer(), world));
        let offset = there.signed_nanos_since(here);
        session.clock().is_some_and(|clock| {
            let error = clock.error().as_nanos() as u64 + 1_000;
            clock.offset_nanos().abs_diff(offset) <= error
        })
    }

    /// Returns the time until which a clock change has effects.
    pub(crate) fn set_at(&self) -> Instant {
        self.truth.get().unsettled_until
    }

    fn end(&mut self, channel: ChannelNumber, number: u64) {
        let ended = match channel {
            ChannelNumber::COMMAND => &mut self.control_ended,
            _ => &mut self.media_ended,
        };
        assert!(ended.insert(number), "{channel:?} unit {number} ended twice");
    }

    /// Resets the state for a new session, whose numbers start at zero.
    fn forget(&mut self) {
        self.epoch += 1;
        self.heard_epoch = 0;
        self.sealed = [0; LinkNumber::COUNT];
        self.accepted = [0; 2];
        self.media_ended.clear();
        self.control_ended.clear();
        self.command_newest = None;
    }

    fn send(
        &mut self,
        session: &mut Session,
        channel: ChannelNumber,
        bytes: usize,
        deadline: Duration,
        at: Moment,
    ) {
        let unit = Unit { epoch: self.epoch, sent_world: at.world(), deadline };
        match session.send(channel, &unit.write(bytes), deadline, at.local()) {
            Ok(number) => {
                assert_eq!(number.get(), self.accepted[usize::from(channel.get())]);
                self.accepted[usize::from(channel.get())] += 1;
                self.accepted_ever[usize::from(channel.get())] += 1;
            }
            Err(_) => self.refused += 1,
        }
    }

    /// Checks a received unit: commands arrive in order, each unit once. Unless a clock was set or
    /// its estimate was wrong within the last second, the unit is in time and its stated send time
    /// right, both within the estimate's error.
    fn take(
        &mut self,
        channel: ChannelNumber,
        number: u64,
        unit: Unit,
        sent_at: Option<Instant>,
        world: Instant,
    ) {
        self.delivered[usize::from(channel.get())] += 1;
        if channel == ChannelNumber::COMMAND {
            let newest = self.command_newest.replace(number);
            assert!(newest < self.command_newest, "an older command: {number} after {newest:?}");
        }
        self.end(channel, number);
        self.heard_epoch = self.heard_epoch.max(unit.epoch);
        let unsettled = self.truth.get().unsettled_until;
        let settled = world.since(self.untrue_at.max(unsettled)) > FORGIVEN;
        if settled && self.untrue_at < world {
            // A unit keeps the deadline from its first packet.
            let error = self.errors.iter().map(|(_, error)| *error).max().unwrap_or_default();
            let most = unit.deadline + Duration::from_millis(1) + error * 2;
            let age = world.since(unit.sent_world);
            assert!(age <= most, "{age:?} old, {most:?} at most: {channel:?} {number}");
            let wrong = sent_at.map(|at| self.truth.get().world(self.side, at));
            let wrong = wrong.map_or(0, |at| at.signed_nanos_since(unit.sent_world));
            assert!(wrong.unsigned_abs() <= error.as_nanos() as u64 + 10_000);
        }
    }
}

impl Application for Auditor {
    fn next_at(&self) -> Option<Instant> {
        let media = self.media_interval.map(|_| self.media_at);
        media.into_iter().chain([self.control_at]).min()
    }

    fn produce(&mut self, session: &mut Session, rng: &mut ChaCha20Rng, at: Moment) {
        let now = at.local();
        if let Some(interval) = self.media_interval
            && now >= self.media_at
        {
            self.media_at = now + interval;
            let bytes = UNIT_BYTES_MIN + rng.next_u32() as usize % 3_000;
            self.send(session, ChannelNumber::MEDIA, bytes, self.media_deadline, at);
        }
        if now >= self.control_at {
            self.control_at = now + Duration::from_millis(20);
            self.send(session, ChannelNumber::COMMAND, 60, Duration::from_millis(250), at);
        }
    }

    fn handle_event(&mut self, _session: &Session, event: Event, at: Moment) {
        match event {
            Event::Unit { channel, number, bytes, sent_at, .. } => {
                self.take(channel, number.get(), Unit::parse(&bytes), sent_at, at.world());
            }
            Event::UnitLost { channel, number, .. } => {
                self.lost += 1;
                self.end(channel, number.get());
            }
            Event::Established => self.forget(),
            Event::Budget { .. }
            | Event::Link { .. }
            | Event::Refused { .. }
            | Event::Announced { .. } => {}
        }
    }

    fn begin(&mut self, start: Instant) {
        (self.media_at, self.control_at) = (start, start);
    }

    fn watch_arrival(&mut self, _route: Route, _datagram: &[u8], _at: Moment) {
        self.arrived += 1;
    }

    fn watch_intake(&mut self, session: &Session, datagram: &[u8], _at: Moment) {
        self.handed += 1;
        self.before = (fates(session, datagram), session.counters().handshakes);
    }

    /// Checks that a datagram passed to the session was counted under exactly one name.
    fn watch_taken(&mut self, session: &Session, datagram: &[u8], _at: Moment) {
        let (fates_before, handshakes) = self.before;
        // A new session starts new counts: the datagram that began it is its first.
        let begun = session.counters().handshakes > handshakes;
        let mut fated = if begun { 1 } else { fates(session, datagram) - fates_before };
        if fated == 0 && datagram.first().is_some_and(|head| head >> 4 == 1) {
            self.inits += 1;
            fated = 1;
        }
        assert_eq!(fated, 1, "fates of one datagram");
    }

    fn watch_departure(&mut self, session: &Session, _route: Route, datagram: &[u8], _at: Moment) {
        (self.sent, self.left) = (self.sent + 1, self.left + 1);
        assert!(datagram.len() <= 1_500);
        let (kind, link) = (datagram[0] >> 4, usize::from(datagram[0] & 0x0f));
        match kind {
            2 => self.responses += 1,
            3 => {
                self.sealed[link] += 1;
                let link = session.links().find(|known| usize::from(known.number.get()) == link);
                let state = link.map(|link| link.state);
                let gated = state == Some(State::Up) || datagram.len() <= UNGATED_BYTES_MAX;
                assert!(gated, "{} bytes on a link that is {state:?}", datagram.len());
            }
            _ => {}
        }
    }

    /// Compares the session's estimate of the other clock with the truth: it may be wrong only once
    /// a clock was set. Records when it was wrong or missing, its error, and when a link was up.
    fn watch_session(&mut self, session: &Session, at: Moment) {
        let world = at.world();
        if !self.estimate_is_true(session, world) {
            let known = session.clock().is_some();
            let set = self.truth.get().unsettled_until > Instant::ZERO;
            assert!(!known || set, "no clock was set: {:?}", session.clock());
            self.untrue_at = world;
        }
        let error = session.clock().map_or(Duration::ZERO, |clock| clock.error());
        if self.errors.back().is_none_or(|(_, last)| *last != error) {
            self.errors.push_back((world, error));
        }
        while self.errors.len() > 1 && world.since(self.errors[1].0) > FORGIVEN {
            self.errors.pop_front();
        }
        if session.links().any(|link| link.state == State::Up) {
            self.up_at = world;
        }
    }

    fn watch_clock(&mut self, clock: Clock, set_by: i64, at: Moment) {
        let mut truth = self.truth.get();
        truth.clocks[self.side as usize] = clock;
        let still = Duration::from_nanos(set_by.min(0).unsigned_abs());
        truth.unsettled_until = truth.unsettled_until.max(at.world() + still);
        self.truth.set(truth);
    }

    fn watch_restart(&mut self, session: &Session) {
        self.check_datagrams(session);
        self.check_units(session);
        (self.handed, self.left, self.inits, self.responses) = (0, 0, 0, 0);
        (self.refused, self.lost) = (0, 0);
        (self.accepted_ever, self.delivered) = ([0; 2], [0; 2]);
        self.forget();
    }
}

/// Returns the number of datagrams with a known fate, except answered inits.
fn fates(session: &Session, datagram: &[u8]) -> u64 {
    let authentic: u64 = session.links().map(|link| link.datagrams_received).sum();
    let is_init = datagram.first().is_some_and(|head| head >> 4 == 1);
    let overflow = is_init.then_some(Discard::AnswerOverflow);
    let fates = FATES.into_iter().chain(overflow);
    authentic + fates.map(|what| session.counters().discarded(what)).sum::<u64>()
}

/// Checks that every media packet given to a link is accounted for.
fn check_packets(session: &Session) {
    let counters = session.counters();
    let mut again = 0;
    for link in session.links() {
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

/// Content of a unit: what is needed to verify it on arrival.
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

/// Channels that the application uses.
const CHANNELS: [ChannelNumber; 2] = [ChannelNumber::COMMAND, ChannelNumber::MEDIA];
/// Reasons for which a received datagram may be discarded.
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
/// Tolerance after a clock error: a unit keeps the deadline from its first packet until it ends.
const FORGIVEN: Duration = Duration::from_millis(1_000);
const UNIT_BYTES_MIN: usize = 24;
/// Maximum length of a datagram that a link may carry while it is not up: pings, pongs, reports of
/// four links and a command fit; media hardly ever does.
const UNGATED_BYTES_MAX: usize = 500;
