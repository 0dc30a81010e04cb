use tautline_units::{Bitrate, ByteCount, Duration, Instant};

use super::Shared;
use super::budget::Budget;
use super::handshake::HalfOpen;
use super::outgoing::Outgoing;
use super::rescue::Carrying;
use crate::clock::{ClockEstimate, Estimator};
use crate::counters::Discard;
use crate::crypto::{Accepted, Keys};
use crate::event::{Event, Timer, UnitNumber};
use crate::link::{
    self, Arrival, Asked, ControlQueue, InFlight, Link, Liveness, Loss, Mtu, OnTime, PONGS_MAX,
    Pacer, PongDue, Probe, Route, Routing, Rtt, Settled, State, Told,
};
use crate::rate;
use crate::receiver::{Arrivals, Inbox, Outcome, Stream};
use crate::sequence::{Verdict, Window};
use crate::wire::stream::Part;
use crate::wire::{Class, Coded, LinkNumber, Packet, Packets, Ping, Pong, Report, Tally};

/// A session whose keys are agreed.
#[derive(Debug)]
pub(crate) struct Active {
    pub(super) keys: Keys,
    /// The id by which the peer calls us.
    session: u16,
    /// The id by which we call the peer.
    pub(super) peer_session: u16,
    /// The responder's: the first message that began it, and its answer.
    begun_by: Option<(Vec<u8>, Vec<u8>)>,
    pub(super) links: Vec<Link>,
    clock: Estimator,
    control: Inbox,
    media: Inbox,
    stream: Stream,
    pub(super) outgoing: Outgoing,
    pub(super) budget: Budget,
    /// When the last authentic datagram came, or the session began.
    heard_at: Instant,
    plaintext: Vec<u8>,
    outcomes: Vec<Outcome>,
    settled: Vec<Settled>,
    /// Whether something happened that the budget depends on.
    pub(super) unsettled: bool,
    settled_at: Instant,
}

/// A sealed datagram as it came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sealed<'a> {
    pub(crate) route: Route,
    pub(crate) link: LinkNumber,
    pub(crate) number_low: u32,
    pub(crate) ciphertext: &'a [u8],
    pub(crate) bytes: usize,
}

/// Whether `sealed` opens with `keys` as the first datagram of its link.
pub(crate) fn opens(keys: &Keys, sealed: &Sealed<'_>) -> bool {
    let number = Window::new().expand(sealed.number_low);
    keys.open(sealed.link, number, sealed.ciphertext, &mut Vec::new())
}

impl Active {
    /// The initiator's: every route is a link.
    pub(crate) fn initiated(
        shared: &Shared,
        accepted: Accepted,
        session: u16,
        routes: &[Route],
        now: Instant,
    ) -> Self {
        let mut active = Self::new(shared, accepted.keys, session, accepted.peer_session, now);
        for (number, route) in (0..).zip(routes) {
            if let Some(number) = LinkNumber::new(number) {
                active.links.push(new_link(shared, number, Routing::given(*route, now), now));
            }
        }
        active
    }

    /// The responder's: links come with their datagrams.
    pub(crate) fn responded(shared: &Shared, half: HalfOpen, now: Instant) -> Self {
        let mut active = Self::new(shared, half.keys, half.session, half.peer_session, now);
        active.begun_by = Some((half.init, half.response));
        active
    }

    fn new(shared: &Shared, keys: Keys, session: u16, peer_session: u16, now: Instant) -> Self {
        Self {
            keys,
            session,
            peer_session,
            begun_by: None,
            links: Vec::new(),
            clock: Estimator::new(),
            control: Inbox::new(Class::Control),
            media: Inbox::new(Class::Media),
            stream: Stream::default(),
            outgoing: Outgoing::new(&shared.config),
            budget: Budget::new(),
            heard_at: now,
            plaintext: Vec::new(),
            outcomes: Vec::new(),
            settled: Vec::new(),
            unsettled: true,
            settled_at: now,
        }
    }

    pub(crate) fn session_id(&self) -> u16 {
        self.session
    }

    /// The answer to the first message that began this session, if `init` is it.
    pub(crate) fn answered(&self, init: &[u8]) -> Option<(u16, &Vec<u8>)> {
        let (begun_by, response) = self.begun_by.as_ref()?;
        (begun_by == init).then_some((self.peer_session, response))
    }

    /// Whether the application was told that it may send media.
    pub(crate) fn budget_told(&self) -> bool {
        self.budget.is_told()
    }

    /// What became of the media units that the peer sent.
    pub(super) fn media_tally(&self) -> Tally {
        self.media.tally()
    }

    pub(crate) fn clock(&self, now: Instant) -> Option<ClockEstimate> {
        self.clock.estimate(now)
    }

    pub(crate) fn spreads(&self, now: Instant) -> impl Iterator<Item = link::Spreads> + '_ {
        self.links.iter().map(move |link| link.spreads(now))
    }

    pub(crate) fn links(
        &self,
        clock: Option<ClockEstimate>,
    ) -> impl Iterator<Item = link::View> + '_ {
        let carrying = Carrying::of(&self.links);
        let span = self.outgoing.media_span;
        self.links.iter().map(move |link| {
            let budget = match carrying.allows(link) {
                true => link.to_hand_out(span),
                false => Bitrate::ZERO,
            };
            link.view(budget, clock)
        })
    }

    /// Units of `class` that are on their way in.
    pub(crate) fn units_open(&self, class: Class) -> u64 {
        match class {
            Class::Control => self.control.open_count(),
            Class::Media => self.media.open_count(),
        }
    }

    pub(crate) fn set_datagram_bytes_max(
        &mut self,
        link: LinkNumber,
        most: ByteCount,
        now: Instant,
    ) -> bool {
        let link = self.links.iter_mut().find(|known| known.number == link);
        link.map(|link| link.mtu.set_most(most.get().clamp(150, 1_500) as usize, now)).is_some()
    }

    /// Takes the kernel's word that a datagram is too large for a route.
    pub(crate) fn on_too_large(&mut self, route: Route, bytes: usize, now: Instant) {
        for link in self.links.iter_mut().filter(|link| link.routing.route() == route) {
            link.mtu.on_refused(bytes, now);
        }
    }

    /// Gives up what is on its way, for another session takes this one's place.
    pub(crate) fn end(&mut self, shared: &mut Shared, now: Instant) {
        for class in Class::ALL {
            let inbox = match class {
                Class::Control => &mut self.control,
                Class::Media => &mut self.media,
            };
            inbox.abandon(&mut shared.counters, &mut self.outcomes);
            self.tell(class, None, shared, now);
        }
        for link in &mut self.links {
            while link.pacer.pop().is_some() {
                shared.counters.discard(Discard::MediaSilenced);
            }
        }
    }

    /// How long nothing authentic has come.
    pub(crate) fn quiet_for(&self, now: Instant) -> Duration {
        now.since(self.heard_at)
    }

    pub(crate) fn handle_sealed(
        &mut self,
        sealed: &Sealed<'_>,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<(), Discard> {
        let mut plaintext = std::mem::take(&mut self.plaintext);
        let opened = self.open(sealed, &mut plaintext, shared, now);
        if let Ok(at) = opened {
            for packet in Packets::of(&plaintext) {
                match packet {
                    Ok(packet) => self.handle_packet(at, sealed.route, packet, shared, now),
                    Err(malformed) => {
                        tracing::debug!(%malformed, link = sealed.link.get(), "authentic datagram");
                        shared.counters.discard(Discard::PacketMalformed);
                    }
                }
            }
            self.settle(shared, now);
        }
        self.plaintext = plaintext;
        opened.map(|_| ())
    }

    /// Authenticates a datagram and gives its link's place.
    fn open(
        &mut self,
        sealed: &Sealed<'_>,
        plaintext: &mut Vec<u8>,
        shared: &mut Shared,
        now: Instant,
    ) -> Result<usize, Discard> {
        let known = self.links.iter().position(|link| link.number == sealed.link);
        let number = match known {
            Some(at) => {
                let replay = &self.links[at].replay;
                let number = replay.expand(sealed.number_low);
                match replay.check(number) {
                    Verdict::New => number,
                    Verdict::Replayed => return Err(Discard::DatagramReplayed),
                    Verdict::Stale => return Err(Discard::DatagramStale),
                }
            }
            None if self.begun_by.is_none() => return Err(Discard::DatagramUnknownLink),
            None => Window::new().expand(sealed.number_low),
        };
        if !self.keys.open(sealed.link, number, sealed.ciphertext, plaintext) {
            return Err(Discard::DatagramForged);
        }
        let at = match known {
            Some(at) => at,
            None => self.learn(shared, sealed, now),
        };
        self.heard_at = now;
        let link = &mut self.links[at];
        let newest = link.replay.highest().is_none_or(|highest| number > highest);
        link.replay.note(number);
        if link.arrivals.note(number, sealed.bytes, now) {
            // A hole is news as well.
            link.arrivals.hurry(shared.config.report_interval);
        }
        match link.routing.note(sealed.route, sealed.bytes, newest, now) {
            Arrival::Active | Arrival::CandidateAgain | Arrival::Ignored => {}
            Arrival::Candidate => {
                tracing::debug!(link = link.number.get(), to = %sealed.route.remote, "new address");
            }
        }
        Ok(at)
    }

    fn learn(&mut self, shared: &Shared, sealed: &Sealed<'_>, now: Instant) -> usize {
        let at = self.links.partition_point(|link| link.number < sealed.link);
        let routing = Routing::learned(sealed.route, now);
        self.links.insert(at, new_link(shared, sealed.link, routing, now));
        at
    }

    fn handle_packet(
        &mut self,
        at: usize,
        route: Route,
        packet: Packet<'_>,
        shared: &mut Shared,
        now: Instant,
    ) {
        match packet {
            Packet::Coded(coded) => {
                if coded.class == Class::Media {
                    self.links[at].arrivals.on_media(shared.config.report_interval, now);
                }
                self.handle_coded(&coded, shared, now);
            }
            Packet::Ping(ping) => self.handle_ping(at, route, ping, shared, now),
            Packet::Pong(pong) => self.handle_pong(at, pong, shared, now),
            Packet::Report(report) => self.handle_report(report, shared, now),
            Packet::Tally(tally) => self.outgoing.on_tally(&tally, &mut shared.counters),
            Packet::Source(source) => {
                self.links[at].arrivals.on_media(shared.config.report_interval, now);
                let arrived = self.stream.handle_source(&source, &mut shared.counters);
                if let Some(number) = arrived {
                    self.handle_part(number, &source.part, false, shared, now);
                    self.handle_recovered(arrived, shared, now);
                }
            }
            Packet::Repair(repair) => {
                self.links[at].arrivals.on_media(shared.config.report_interval, now);
                self.stream.handle_repair(&repair, &mut shared.counters);
                self.handle_recovered(None, shared, now);
            }
        }
    }

    fn handle_coded(&mut self, coded: &Coded<'_>, shared: &mut Shared, now: Instant) {
        let clock = self.clock.estimate(now);
        let span = match coded.class {
            Class::Control => shared.config.control_deadline,
            Class::Media => shared.config.media_deadline,
        };
        let deadline = local_deadline(coded.deadline_low, clock, span, now);
        let inbox = match coded.class {
            Class::Control => &mut self.control,
            Class::Media => &mut self.media,
        };
        inbox.handle(coded, deadline, &mut shared.counters, &mut self.outcomes, now);
        self.tell(coded.class, clock, shared, now);
    }

    /// Takes a source packet of the stream, that came or was recovered.
    fn handle_part(
        &mut self,
        number: u64,
        part: &Part<'_>,
        recovered: bool,
        shared: &mut Shared,
        now: Instant,
    ) {
        let clock = self.clock.estimate(now);
        let span = shared.config.media_deadline;
        let deadline = local_deadline(part.deadline_low, clock, span, now);
        let (counters, outcomes) = (&mut shared.counters, &mut self.outcomes);
        self.media.handle_part(number, part, recovered, deadline, counters, outcomes, now);
        self.tell(Class::Media, clock, shared, now);
    }

    /// Takes what repair packets have made known of the stream, beside what arrived itself.
    fn handle_recovered(&mut self, arrived: Option<u64>, shared: &mut Shared, now: Instant) {
        let mut stream = std::mem::take(&mut self.stream);
        stream.recover(arrived, |number, part| match part {
            Ok(part) => self.handle_part(number, &part, true, shared, now),
            Err(malformed) => {
                tracing::debug!(%malformed, number, "recovered source packet");
                shared.counters.discard(Discard::PacketInconsistent);
            }
        });
        self.stream = stream;
    }

    /// Turns outcomes of `class` into events.
    fn tell(
        &mut self,
        class: Class,
        clock: Option<ClockEstimate>,
        shared: &mut Shared,
        now: Instant,
    ) {
        for outcome in self.outcomes.drain(..) {
            shared.event(match outcome {
                Outcome::Unit { number, bytes, prefix, repaired } => {
                    let sent_at = clock.map(|c| c.to_local(prefix.sent_at(c.to_peer(now))));
                    Event::Unit { class, number: UnitNumber::new(number), bytes, sent_at, repaired }
                }
                Outcome::Lost { number, reason } => {
                    Event::UnitLost { class, number: UnitNumber::new(number), reason }
                }
            });
        }
    }

    fn handle_ping(
        &mut self,
        at: usize,
        route: Route,
        ping: Ping,
        shared: &mut Shared,
        now: Instant,
    ) {
        let clock = self.clock.estimate(now);
        let link = &mut self.links[at];
        if route == link.routing.route() {
            link.rtt.on_arrival(ping.sent_at, clock, now);
        }
        link.arrivals.on_ping(shared.config.report_interval, now);
        if link.pongs.len() == PONGS_MAX {
            link.pongs.pop_front();
            shared.counters.discard(Discard::AnswerOverflow);
        }
        link.pongs.push_back(PongDue { route, id: ping.id, received_at: now });
    }

    fn handle_pong(&mut self, at: usize, pong: Pong, shared: &mut Shared, now: Instant) {
        let link = &mut self.links[at];
        let Some(Asked { sent_at, route: asked, padded }) = link.probe.answer(pong.id) else {
            return shared.counters.discard(Discard::PongUnknown);
        };
        let lower = pong.sent_at.signed_nanos_since(now);
        let upper = pong.received_at.signed_nanos_since(sent_at);
        if self.clock.observe(lower, upper, now).is_err() {
            shared.counters.discard(Discard::ClockStep);
        }
        if link.routing.prove(asked, now) {
            tracing::info!(link = link.number.get(), remote = %asked.remote, "route moved");
            shared.counters.routes_moved += 1;
            link.mtu.restart(now);
        }
        if asked != link.routing.route() {
            return;
        }
        if padded {
            // The budget counts what goes around each packet.
            self.unsettled |= link.mtu.on_pong(pong.id, now);
            return;
        }
        let times = [sent_at, pong.received_at, pong.sent_at, now];
        link.rtt.on_pong(times, self.clock.estimate(now));
        link.keep_pace(now);
        if let Some(state) = link.liveness.on_pong(now) {
            link.probe.hurry(now);
            self.unsettled = true;
            // What came back may be another path.
            link.mtu.doubt(now);
            announce(link.number, state, shared);
        }
    }

    fn handle_report(&mut self, report: Report, shared: &mut Shared, now: Instant) {
        let clock = self.clock.estimate(now);
        let probing = self.links.iter().any(|l| l.number != report.link && l.grant.probing);
        let Some(place) = self.links.iter().position(|link| link.number == report.link) else {
            return shared.counters.discard(Discard::ReportImpossible);
        };
        let link = &mut self.links[place];
        let seen_until = match (clock, link.rtt.owd_out(clock)) {
            (Some(clock), Some(owd)) => (clock.to_local(report.taken_at) - owd).min(now),
            (Some(_) | None, None) | (None, Some(_)) => now,
        };
        let sample = match link.loss.on_report(report, link.next_number, seen_until) {
            Told::News(sample) => sample,
            // The same report comes over every link, by a slow one after its successor.
            Told::Old => return,
            Told::Impossible => return shared.counters.discard(Discard::ReportImpossible),
        };
        self.unsettled = true;
        if link.loss.recent().get() > LOSS_DOUBTED {
            link.mtu.doubt(now);
        }
        let mut settled = std::mem::take(&mut self.settled);
        let departed = link.in_flight.sent_at(report.highest);
        let news = link.in_flight.on_report(&report, &mut settled, now);
        if news {
            link.liveness.on_news();
        }
        if link.liveness.is_trusted() {
            let transit = departed
                .zip(report.age)
                .filter(|_| news)
                .map(|(departed, age)| (report.taken_at - age).signed_nanos_since(departed));
            if let Some(transit) = transit {
                link.rtt.on_transit(transit, clock, now);
            }
            let rtt = link.rtt.rtt_smoothed().zip(link.rtt.rtt_min());
            link.grant = link.controller.on_report(&rate::View {
                sample,
                taken_at: report.taken_at,
                received: report.bytes,
                sent: link.loss.bytes_counted(),
                transit,
                in_flight: link.in_flight.in_flight(),
                loss: link.loss.recent(),
                queueing: rtt.map(|(smoothed, least)| smoothed.saturating_sub(least)),
                rtt_min: link.rtt.rtt_min(),
                may_probe: !probing,
                now,
            });
            link.keep_pace(now);
        }
        // A packet arrived somewhere between this report and the one before it.
        let half = shared.config.report_interval / 2;
        let known_at = clock.map_or(now, |clock| clock.to_local(report.taken_at)) - half;
        self.settle_packets(place, &mut settled, known_at, shared, now);
        self.settled = settled;
    }

    pub(crate) fn handle_timeout(&mut self, shared: &mut Shared, now: Instant) {
        let clock = self.clock.estimate(now);
        for class in Class::ALL {
            let inbox = match class {
                Class::Control => &mut self.control,
                Class::Media => &mut self.media,
            };
            inbox.expire(&mut shared.counters, &mut self.outcomes, now);
            self.tell(class, clock, shared, now);
        }
        let mut settled = std::mem::take(&mut self.settled);
        for place in 0..self.links.len() {
            let link = &mut self.links[place];
            link.routing.expire(now);
            link.in_flight.expire(&mut settled, now);
            self.settle_packets(place, &mut settled, now, shared, now);
        }
        self.settled = settled;
        self.doubt(shared, now);
        self.look(shared, now);
        self.settle(shared, now);
    }

    /// Moves media off links that may not carry it, and tells the budget if it has changed: what
    /// the links that can be in time may send.
    fn settle(&mut self, shared: &mut Shared, now: Instant) {
        self.rescue(shared, now);
        if !std::mem::take(&mut self.unsettled) && now.since(self.settled_at) < SETTLE_INTERVAL {
            return;
        }
        self.settled_at = now;
        let carrying = Carrying::of(&self.links);
        let media = self.affordable(carrying, shared, now);
        if let Some(media) = self.budget.update(media) {
            shared.event(Event::Budget { media });
        }
    }

    /// The largest datagram that every link that is up can carry.
    pub(super) fn datagram_bytes_max(&self, shared: &Shared) -> usize {
        let up = self.links.iter().filter(|link| link.liveness.is_up());
        let configured = shared.config.datagram_bytes_max.get() as usize;
        up.map(|link| link.mtu.size()).min().unwrap_or(configured)
    }

    pub(crate) fn poll_timeout(&self, shared: &Shared) -> Option<(Instant, Timer)> {
        let mut first: Option<(Instant, Timer)> = None;
        let mut take = |at: Instant, timer: Timer| {
            if first.is_none_or(|first| (at, timer) < first) {
                first = Some((at, timer));
            }
        };
        for at in [&self.control, &self.media].into_iter().filter_map(Inbox::due_at) {
            // A unit is in time up to its deadline and lost a nanosecond later.
            take(Instant::from_nanos(at.as_nanos().saturating_add(1)), Timer::Deadline);
        }
        if let Some(at) = self.outgoing.tracker.look_due_at() {
            take(at, Timer::Deadline);
        }
        let carrying = Carrying::of(&self.links);
        for link in &self.links {
            take(link.probe.due_at(), Timer::Probe);
            take(link.arrivals.report_due_at(), Timer::Probe);
            if link.liveness.is_trusted()
                && let Some(at) = link.news_overdue_at(&shared.config)
            {
                take(at, Timer::Silence);
            }
            let pace = match link.grant.probing && carrying.allows(link) {
                true => Some(link.pacer.next_at()),
                false => link.pacer.due_at().filter(|_| link.may_send_next()),
            };
            if let Some(at) = pace {
                take(at, Timer::Pace);
            }
            let patience = link.patience(&shared.config);
            if let Some(at) = link.liveness.due_at(patience, shared.config.silence) {
                take(at, Timer::Silence);
            }
        }
        first
    }
}

fn new_link(shared: &Shared, number: LinkNumber, routing: Routing, now: Instant) -> Link {
    let controller = shared.config.rate.controller();
    let grant = controller.initial();
    Link {
        number,
        routing,
        liveness: Liveness::new(now),
        probe: Probe::new(now),
        rtt: Rtt::new(),
        loss: Loss::new(),
        controller,
        grant,
        reserve: ByteCount::ZERO,
        pacer: Pacer::new(grant.rate, now),
        in_flight: InFlight::new(),
        on_time: OnTime::new(),
        media_at: now,
        control: ControlQueue::default(),
        pongs: std::collections::VecDeque::with_capacity(PONGS_MAX),
        next_number: 0,
        media: link::Media::default(),
        replay: Window::new(),
        arrivals: Arrivals::new(now),
        mtu: Mtu::new(shared.config.datagram_bytes_max.get() as usize, now),
    }
}

/// A share of losses that may be those of all large datagrams.
const LOSS_DOUBTED: f64 = 0.05;

pub(super) fn announce(link: LinkNumber, state: State, shared: &mut Shared) {
    tracing::info!(link = link.get(), ?state, "link");
    shared.event(Event::Link { link, state });
}

/// A deadline on our clock; while the clocks have not been compared, `span` from now.
fn local_deadline(low: u16, clock: Option<ClockEstimate>, span: Duration, now: Instant) -> Instant {
    match clock {
        Some(clock) => clock.to_local(deadline(low, clock.to_peer(now))),
        None => now + span,
    }
}

/// Shorter than a slice's time: the budget is never older.
const SETTLE_INTERVAL: Duration = Duration::from_millis(2);

/// The deadline whose milliseconds modulo 65536 are `low`: the nearest to the sender's clock.
fn deadline(low: u16, peer_now: Instant) -> Instant {
    let millis = crate::sequence::expand(peer_now.as_millis(), u64::from(low), 16);
    Instant::from_millis(millis)
}
