//! One link: its route, its state, and its send queues.

mod choice;
mod control_rate;
mod dispersion;
mod headroom;
mod in_flight;
mod liveness;
mod loss;
mod low_rate;
mod marking;
mod media;
mod mtu;
mod on_time;
mod outgoing;
mod over_stream;
mod pacing;
mod pair;
mod pong_due;
mod probe;
mod queue;
mod receive_gap;
mod reduced_reporting;
mod route;
mod rtt;
mod snapshot;
mod spread;
mod stream;
mod timeouts;
mod view;

use std::collections::VecDeque;

pub use media::Media;
pub use route::Route;
pub use spread::Percentiles;
use tautline_units::{Bitrate, ByteCount, Duration, Ecn, Instant, Probability};
pub use view::{Spreads, View};

pub(crate) use in_flight::{Fate, Settled};
pub(crate) use pacing::Entry;
pub(crate) use route::Routing;

use crate::clock::{ClockEstimate, Estimator};
use crate::config::Config;
use crate::counters::{Counters, Discard};
pub use crate::life::State;
use crate::planner::OnTimeCurve;
use crate::rate::{self, Controller, Grant};
use crate::receiver::Arrivals;
use crate::round_trips::RoundTrips;
use crate::sequence::{Verdict, Window};
use crate::wire::{LinkNumber, Ping, Pong, Report};
use choice::Choice;
use control_rate::ControlRate;
use dispersion::Dispersion;
use headroom::Headroom;
use in_flight::{Fates, InFlight};
use liveness::Liveness;
use loss::{Loss, Told};
use marking::Marking;
use mtu::Mtu;
use on_time::{OnTime, Outlook};
use pacing::{Pacer, UrgentQueue};
use pong_due::PongDue;
use probe::{Asked, Probe};
use queue::Queue;
pub(crate) use receive_gap::ReceiveGap;
use reduced_reporting::ReducedReporting;
use route::Arrival;
use rtt::Rtt;
use stream::Stream;

/// State and behaviour of one link of a session.
#[derive(Debug)]
pub(crate) struct Link {
    number: LinkNumber,
    routing: Routing,
    choice: Choice,
    liveness: Liveness,
    probe: Probe,
    rtt: Rtt,
    /// Statistics of our sending, from the peer's reports.
    loss: Loss,
    queue: Queue,
    controller: Box<dyn Controller>,
    grant: Grant,
    /// Bytes by which media in flight may exceed the window, as the planner last set it; zero
    /// before the first media unit.
    reserve: ByteCount,
    pacer: Pacer,
    headroom: Headroom,
    control_rate: ControlRate,
    in_flight: InFlight,
    marking: Marking,
    fates: Fates,
    on_time: OnTime,
    /// Time of the last media packet sent on the link; creation time of the link before the first.
    media_at: Instant,
    urgent: UrgentQueue,
    pongs: VecDeque<PongDue>,
    next_number: u64,
    media: Media,
    replay: Window,
    /// Datagrams received on the link, from which the reports to the peer are made.
    arrivals: Arrivals,
    /// Discovery of the largest datagram that passes.
    mtu: Mtu,
    dispersion: Dispersion,
    stream: Stream,
    reduced_reporting: ReducedReporting,
    /// Time before which the link sets no timer to become suspect or silent: 10 ms after the last
    /// check during a gap in which nothing arrived over any link. Zero before the first such check.
    judged_from: Instant,
    /// Report interval that the peer announced, and the time of the announcement; `None` if it
    /// reports at the configured interval.
    cadence: Option<(Duration, Instant)>,
}

/// Changes that one call has caused to a link, which the session must act on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Change {
    /// True if the application's budget may have changed.
    pub(crate) budget: bool,
    /// New state of the link, if it changed.
    pub(crate) state: Option<State>,
}

/// Cause why a media packet did not arrive in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missed {
    /// Lost or overtaken on its own, or with a few others.
    ByChance,
    /// Missed together with the other packets of its link.
    WithLink,
}

impl Link {
    pub(crate) fn new(number: LinkNumber, routing: Routing, config: &Config, now: Instant) -> Self {
        let controller = config.controllers.controller(&config.rate);
        let grant = controller.initial();
        Self {
            number,
            routing,
            choice: Choice::default(),
            liveness: Liveness::new(now),
            probe: Probe::new(now),
            rtt: Rtt::new(),
            loss: Loss::new(),
            queue: Queue::default(),
            controller,
            grant,
            reserve: ByteCount::ZERO,
            pacer: Pacer::new(grant.rate, now),
            headroom: Headroom::new(now),
            control_rate: ControlRate::new(now),
            in_flight: InFlight::new(),
            marking: Marking::default(),
            fates: Fates::default(),
            on_time: OnTime::new(),
            media_at: now,
            urgent: UrgentQueue::default(),
            pongs: VecDeque::with_capacity(PONGS_MAX),
            next_number: 0,
            media: Media::default(),
            replay: Window::new(),
            arrivals: Arrivals::new(now),
            mtu: Mtu::new(config.datagram_bytes_max.get() as usize, now),
            dispersion: Dispersion::default(),
            stream: Stream::default(),
            reduced_reporting: ReducedReporting::default(),
            judged_from: Instant::ZERO,
            cadence: None,
        }
    }

    pub(crate) fn number(&self) -> LinkNumber {
        self.number
    }

    pub(crate) fn route(&self) -> Route {
        self.routing.route()
    }

    /// Returns whether the link is up: a pong has arrived, and the link is not silent since.
    pub(crate) fn is_up(&self) -> bool {
        self.liveness.is_up()
    }

    /// Returns whether the link is up and neither its pongs nor its reports are overdue.
    pub(crate) fn is_trusted(&self) -> bool {
        self.liveness.is_trusted()
    }

    /// Returns whether the link is trusted and, if it has ever been silent, eight pongs have
    /// arrived since.
    pub(crate) fn is_settled(&self) -> bool {
        self.liveness.is_settled()
    }

    /// Returns when the link last ceased to be trusted; its creation time if it never has.
    pub(crate) fn doubted_at(&self) -> Instant {
        self.liveness.doubted_at()
    }

    /// Returns whether the pong of a small ping on the link's route has ever arrived.
    pub(crate) fn has_been_up(&self) -> bool {
        self.rtt.rtt_min().is_some()
    }

    /// Returns whether rate control tries a higher rate at present; padding then fills what media
    /// does not use.
    pub(crate) fn is_rate_probing(&self) -> bool {
        self.grant.probing
    }

    /// Returns the measured lower bound of the link's capacity; zero before the first measurement.
    pub(crate) fn shown(&self) -> Bitrate {
        self.dispersion.shown()
    }

    /// Returns the length of the largest datagram that we may send, in bytes of UDP payload.
    pub(crate) fn datagram_bytes_max(&self) -> usize {
        self.mtu.size()
    }

    /// Sets the length of the largest datagram to use and to probe for, in bytes of UDP payload.
    pub(crate) fn set_datagram_bytes_max(&mut self, most: usize, now: Instant) {
        self.mtu.set_most(most, now);
    }

    /// Marks datagrams of `bytes` bytes as too large, because the kernel reports that they exceed
    /// the MTU of the link's route. Ignored up to 150 bytes.
    pub(crate) fn on_too_large(&mut self, bytes: usize, now: Instant) {
        self.mtu.on_refused(bytes, now);
    }
}

/// Inputs: datagrams received, and reports on datagrams sent.
impl Link {
    /// Returns the full packet number of a received datagram with the low bits `number_low`, unless
    /// it arrived before or is older than the replay window.
    ///
    /// # Errors
    /// [`Discard::DatagramReplayed`] or [`Discard::DatagramStale`].
    // protocol 3
    pub(crate) fn expand(&self, number_low: u32) -> Result<u64, Discard> {
        let number = self.replay.expand(number_low);
        match self.replay.check(number) {
            Verdict::New => Ok(number),
            Verdict::Replayed => Err(Discard::DatagramReplayed),
            Verdict::Stale => Err(Discard::DatagramStale),
        }
    }

    /// Records the received datagram `number` of `bytes` bytes, which is authentic and new, and
    /// makes its route the candidate if that is another one and the datagram is the newest.
    pub(crate) fn on_datagram(
        &mut self,
        number: u64,
        route: Route,
        (bytes, ecn): (usize, Ecn),
        config: &Config,
        now: Instant,
    ) {
        let newest = self.replay.highest().is_none_or(|highest| number > highest);
        self.replay.note(number);
        self.choice.heard_at = now;
        let interval = self.report_interval(config);
        let soon = if self.is_reduced() { interval } else { interval / GAP_INTERVALS };
        self.arrivals.note(number, bytes, (soon, interval), now);
        self.arrivals.note_ecn(ecn);
        match self.routing.note(route, bytes, newest, now) {
            Arrival::Active | Arrival::CandidateAgain | Arrival::Ignored => {}
            Arrival::Candidate => {
                tracing::debug!(link = self.number.get(), to = %route.remote, "new address");
            }
        }
    }

    /// Records that a received datagram carried media or data: reports are then due at the full
    /// rate.
    pub(crate) fn on_media(&mut self, config: &Config, now: Instant) {
        self.arrivals.on_media(self.report_interval(config), now);
    }

    /// Handles a ping received by `route` and queues a pong for that route. If [`PONGS_MAX`] pongs
    /// wait already, the oldest is dropped. The ping's delay counts if it came by the link's route
    /// and its send time is not ahead of the clock.
    pub(crate) fn on_ping(
        &mut self,
        route: Route,
        ping: &Ping,
        clock: Option<ClockEstimate>,
        config: &Config,
        counters: &mut Counters,
        now: Instant,
    ) {
        let is_ahead = clock.is_some_and(|clock| clock.age(ping.sent_at, now).is_none());
        if is_ahead {
            counters.discard(Discard::TimeAhead);
        } else if route == self.routing.route() {
            self.rtt.on_arrival(ping.sent_at, clock, now);
        }
        self.arrivals.on_ping(self.report_interval(config), now);
        if self.pongs.len() == PONGS_MAX {
            self.pongs.pop_front();
            counters.discard(Discard::AnswerOverflow);
        }
        self.pongs.push_back(PongDue { route, id: ping.id, received_at: now });
    }

    /// Handles a pong: updates the clock estimate and the route. If the ping was sent on the link's
    /// route, the pong of a padded one also confirms the datagram size, and that of a small one
    /// updates delays and liveness. An unknown or impossible pong is only counted. Returns the new
    /// state if the link has come up, and whether the media budget may have changed.
    pub(crate) fn on_pong(
        &mut self,
        pong: &Pong,
        (clock, round_trips): (&mut Estimator, &mut RoundTrips),
        counters: &mut Counters,
        now: Instant,
    ) -> Change {
        let Some(Asked { sent_at, route: asked, padded }) = self.probe.answer(pong.id) else {
            counters.discard(Discard::PongUnknown);
            return Change::default();
        };
        let (held, rtt) = (pong.sent_at.since(pong.received_at), now.since(sent_at));
        // The peer's clock may run faster than ours.
        if pong.sent_at < pong.received_at || held - held / DRIFT_DIVISOR > rtt {
            counters.discard(Discard::PongImpossible);
            return Change::default();
        }
        let lower = pong.sent_at.signed_nanos_since(now);
        let upper = pong.received_at.signed_nanos_since(sent_at);
        if clock.observe(lower, upper, now).is_err() {
            counters.discard(Discard::ClockStep);
        }
        if self.routing.prove(asked, now) {
            tracing::info!(link = self.number.get(), remote = %asked.remote, "route moved");
            counters.routes_moved += 1;
            self.mtu.restart(now);
            self.marking.restart(self.in_flight.passed());
            self.dispersion = Dispersion::default();
            self.set_blocked(false);
        }
        if asked != self.routing.route() {
            return Change::default();
        }
        self.stream.answered_at = self.stream.answered_at.max(Some(sent_at));
        if padded {
            let confirmed = self.mtu.on_pong(pong.id, now);
            if let Some(bytes) = confirmed {
                self.dispersion.on_padded(upper, bytes);
            }
            // The budget accounts for the overhead per packet.
            return Change { budget: confirmed.is_some(), state: None };
        }
        self.dispersion.on_small(upper);
        let (times, clock) = ([sent_at, pong.received_at, pong.sent_at, now], clock.estimate(now));
        self.rtt.on_pong(times, clock);
        round_trips.note(self.number, times, clock);
        self.reduced_reporting.on_ping_answered(upper, now);
        self.pace(now);
        let state = self.liveness.on_pong(now);
        if state.is_some() {
            self.probe.hurry(now);
            // The link may have returned on another network path.
            self.mtu.doubt(now);
        }
        Change { budget: state.is_some(), state }
    }

    /// Handles a report of what arrived at the peer and appends the media packets that it settles
    /// to `settled`. A report of a newer datagram makes a suspect link trusted; on a trusted link,
    /// rate control then grants a new rate. Returns false, without any effect, for a report no
    /// newer than an earlier one.
    ///
    /// # Errors
    /// [`Discard::ReportImpossible`] if the report covers more than was sent or contradicts an
    /// earlier one; [`Discard::TimeAhead`] if it was taken later than now by more than the clock
    /// error.
    // protocol 4, report
    pub(crate) fn on_report(
        &mut self,
        report: &Report,
        clock: Option<ClockEstimate>,
        settled: &mut Vec<Settled>,
        config: &Config,
        now: Instant,
    ) -> Result<bool, Discard> {
        // A report from the future would make all later ones look old.
        if clock.is_some_and(|clock| clock.age(report.taken_at, now).is_none()) {
            return Err(Discard::TimeAhead);
        }
        let seen_until = match (clock, self.rtt.owd_out(clock)) {
            (Some(clock), Some(owd)) => (clock.to_local(report.taken_at) - owd).min(now),
            (Some(_) | None, None) | (None, Some(_)) => now,
        };
        let sample = match self.loss.on_report(*report, self.next_number, seen_until) {
            Told::News(sample) => sample,
            // The same report travels over every link; a slow link delivers it after its successor.
            Told::Old => return Ok(false),
            Told::Impossible => return Err(Discard::ReportImpossible),
        };
        if self.loss.recent().get() > LOSS_DOUBTED {
            self.mtu.doubt(now);
        }
        // A packet arrived at some time between this report and the previous one.
        self.cadence = self.cadence.filter(|(_, at)| now.since(*at) < CADENCE_LIFE);
        let half = self.feedback(config) / 2;
        let by = clock.map(|clock| clock.for_sending(config.media_deadline));
        let known_at = by.map_or(now, |clock| clock.to_local(report.taken_at)) - half;
        let departed = self.in_flight.sent_at(report.highest);
        let sent_until = self.in_flight.sent_until(report.highest);
        let hole = self.in_flight.hole(report);
        let trip = self.rtt.rtt_min().unwrap_or(OWD_GUESS * 2);
        let news = self.in_flight.on_report(report, known_at, trip, settled, now);
        let marked = self.marking.on_report(report.marks, self.in_flight.passed());
        if marked.is_some() {
            self.pacer.limit_bursts();
        }
        if news {
            self.liveness.on_news();
        }
        if self.liveness.is_trusted() {
            let transit = departed
                .zip(report.age)
                .filter(|_| news)
                .map(|(departed, age)| (report.taken_at - age).signed_nanos_since(departed));
            if let Some(transit) = transit {
                self.rtt.on_transit(transit, clock, now);
                self.queue.observe(transit, now);
            }
            self.queue.advance(now);
            let departed_by = self.queue.departed_by(report.taken_at);
            let waiting = departed_by.map(|at| self.in_flight.waiting(at));
            if let Some((waiting, departed_by)) = waiting.zip(departed_by) {
                self.queue.note_waiting(waiting, departed_by, self.loss.received(), now);
            }
            self.headroom.on_report(report.highest, transit, now);
            let rtt = self.rtt.rtt_smoothed().zip(self.rtt.rtt_min());
            self.grant = self.controller.on_report(&rate::Evidence {
                sample,
                taken_at: report.taken_at,
                received: report.bytes,
                sent: self.loss.bytes_counted(),
                newest: departed.zip(sent_until).filter(|_| news),
                hole,
                lost: self.in_flight.lost(),
                queue: self.queue.standing(),
                jitter: self.queue.jitter(),
                reordering: self.in_flight.reordering(),
                waiting: waiting.unwrap_or_default(),
                marked,
                queueing: rtt.map(|(smoothed, least)| smoothed.saturating_sub(least)),
                rtt_min: self.rtt.rtt_min(),
                feedback: self.cadence.map(|(interval, _)| interval),
                now,
            });
            self.reduce_by_rate(now);
            self.pace(now);
        }
        Ok(true)
    }

    /// Counts the media packets that one report settles, by fate. Call it before
    /// [`Link::on_settled`] for each of them.
    pub(crate) fn count_fates(&mut self, settled: &[Settled]) {
        self.fates.count(settled);
    }

    /// Updates the link's statistics with the outcome of a media packet. Returns the cause if the
    /// packet did not arrive in time.
    pub(crate) fn on_settled(&mut self, packet: &Settled, now: Instant) -> Option<Missed> {
        self.media.settle(packet.fate);
        let missed = packet.fate != Fate::InTime;
        let by_chance = missed && self.fates.is_chance(packet);
        if !by_chance {
            self.on_time.observe(packet.entry.standing, !missed, now);
        }
        if by_chance || !missed {
            let late = packet.fate == Fate::Late;
            self.on_time.observe_chance(by_chance && !late, by_chance && late);
        }
        missed.then_some(if by_chance { Missed::ByChance } else { Missed::WithLink })
    }
}

/// Media: prospects of new packets, and packets queued or in flight.
impl Link {
    /// Returns the index of the on-time statistics for a packet queued now that would arrive
    /// `headroom` before its deadline; see `link/on_time.rs`.
    pub(crate) fn standing(&self, headroom: Duration, config: &Config, now: Instant) -> u8 {
        let unheard_for = self.unheard_for(config, now);
        self.on_time.standing(&Outlook { unheard_for, headroom }, now)
    }

    /// Returns the probability that a packet queued now arrives in time, by its headroom before the
    /// deadline.
    pub(crate) fn on_time(&self, config: &Config, now: Instant) -> OnTimeCurve {
        self.on_time.curve(self.unheard_for(config, now), now)
    }

    /// Returns for how long a report on media in flight has been overdue; zero if none is.
    fn unheard_for(&self, config: &Config, now: Instant) -> Duration {
        self.news_due_at(config).map_or(Duration::ZERO, |at| now.since(at))
    }

    /// Returns the probability of a random loss, independent of other packets.
    pub(crate) fn chance_loss(&self) -> Probability {
        self.on_time.loss()
    }

    /// Returns the probability that a packet of lifetime `span` and its retransmissions are all
    /// missed, by random loss or delay. It assumes as many retransmissions as fit into `span`, at
    /// most [`ROUNDS_MOST`], and none if they are disabled.
    pub(crate) fn chance_of_missing(
        &self,
        span: Duration,
        clock: Option<ClockEstimate>,
        config: &Config,
        now: Instant,
    ) -> Probability {
        let (lost, late) = (self.on_time.loss().get(), self.on_time.late().get());
        if lost == 0.0 {
            return self.on_time.late();
        }
        let round = self.rtt.rtt_min().unwrap_or(OWD_GUESS * 2) + self.feedback(config) * 2;
        let headroom = span.saturating_sub(self.owd_out_or_guess(clock, now) + NEWS_PAUSE);
        let rounds = match config.retransmit {
            true => {
                (headroom.as_nanos() as u64 / (round.as_nanos() as u64).max(1)).min(ROUNDS_MOST)
            }
            false => 0,
        };
        let missing = lost * (lost + LOST_AGAIN).powi(rounds as i32) + late;
        Probability::new(missing.min(1.0)).unwrap_or(Probability::ONE)
    }

    /// Returns the expected one-way delay of a packet sent now. Before it is known: half the
    /// smoothed RTT; before the first pong, [`OWD_GUESS`].
    pub(crate) fn owd_out_or_guess(&self, clock: Option<ClockEstimate>, now: Instant) -> Duration {
        let half = self.rtt.rtt_smoothed().map(|rtt| rtt / 2);
        self.owd_out(clock, now).or(half).unwrap_or(OWD_GUESS)
    }

    /// Returns the expected one-way delay of a packet sent now: the smoothed delay, or less if the
    /// link's own queue has drained since. `None` before the first pong, and without a clock
    /// estimate.
    fn owd_out(&self, clock: Option<ClockEstimate>, now: Instant) -> Option<Duration> {
        let (smoothed, clock) = (self.rtt.owd_out(clock)?, clock?);
        let ahead = self.queue.transit_ahead(self.in_flight.bytes(), now).map(|transit| {
            let nanos = transit.saturating_sub(clock.offset_nanos());
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
        });
        Some(ahead.map_or(smoothed, |ahead| smoothed.min(ahead)))
    }

    /// Returns the smallest possible one-way delay: the expected one minus the clock estimate's
    /// error; zero while the delay is unknown.
    pub(crate) fn owd_out_least(&self, clock: Option<ClockEstimate>, now: Instant) -> Duration {
        match (clock, self.owd_out(clock, now)) {
            (Some(clock), Some(owd)) => owd.saturating_sub(clock.error()),
            (Some(_) | None, _) => Duration::ZERO,
        }
    }

    pub(crate) fn rtt_min(&self) -> Option<Duration> {
        self.rtt.rtt_min()
    }

    /// Returns the pacing rate of media.
    pub(crate) fn rate(&self) -> Bitrate {
        self.pacer.rate()
    }

    /// Returns when all queued media will have been sent at the pacing rate.
    pub(crate) fn free_at(&self, now: Instant) -> Instant {
        self.pacer.free_at(now)
    }

    /// Returns when the queued media with a deadline up to `deadline` will have been sent.
    pub(crate) fn free_before(&self, deadline: Instant, now: Instant) -> Instant {
        self.pacer.free_before(deadline, now)
    }

    /// Returns the total length of the queued media packets' datagrams.
    pub(crate) fn queued(&self) -> ByteCount {
        self.pacer.queued()
    }

    /// Returns the bytes that were sent and that no report shows as arrived or lost yet, without
    /// those of data packets and MTU probes.
    pub(crate) fn bytes_in_flight(&self) -> ByteCount {
        self.in_flight.bytes() - self.headroom.in_flight()
    }

    /// Returns whether the window has room for a data datagram of `bytes` bytes in addition to
    /// everything in flight, including media and data; always true without a window.
    pub(crate) fn has_room_for_data(&self, bytes: ByteCount) -> bool {
        self.grant.window.is_none_or(|most| self.in_flight.bytes() + bytes < most)
    }

    /// Returns the earliest time at which the rate available to data lets the next datagram with
    /// data be sent.
    pub(crate) fn data_free_at(&self) -> Instant {
        self.headroom.free_at()
    }

    /// Returns the rate available to units of priority data: what media leaves of the granted rate
    /// and data has found free, or a twentieth of media's rate if that is more.
    pub(crate) fn data_rate(&self) -> Bitrate {
        self.headroom.rate(self.grant.rate)
    }

    /// Returns the maximum length of a datagram with data: 150 to 1500 bytes, so that it delays the
    /// next command by at most 3 ms.
    pub(crate) fn data_bytes_max(&self) -> ByteCount {
        self.headroom.datagram_bytes_max()
    }

    /// Returns the maximum number of unreported bytes in flight; `None` without a limit.
    pub(crate) fn window(&self) -> Option<ByteCount> {
        self.grant.window
    }

    /// Returns the rate of traffic that is neither media nor data.
    pub(crate) fn control_rate(&self) -> Bitrate {
        self.control_rate.rate()
    }

    /// Returns when media was last sent on the link; its creation time before the first.
    pub(crate) fn media_at(&self) -> Instant {
        self.media_at
    }

    /// Returns the bytes by which media in flight may exceed the window.
    pub(crate) fn reserve(&self) -> ByteCount {
        self.reserve
    }

    /// Sets the bytes by which media in flight may exceed the window.
    pub(crate) fn set_reserve(&mut self, bytes: ByteCount) {
        self.reserve = bytes;
    }

    /// Returns whether the window, enlarged by the reserve, has room for a datagram of `bytes`
    /// bytes that is not data, next to all in flight but data; always true without a window.
    pub(crate) fn has_room(&self, bytes: ByteCount) -> bool {
        let most = self.grant.window.map(|window| window + self.reserve);
        most.is_none_or(|most| self.bytes_in_flight() + bytes < most)
    }

    /// Returns whether a media packet is queued and the window has room for it.
    pub(crate) fn may_send_next(&self) -> bool {
        self.pacer.next_bytes().is_some_and(|bytes| self.has_room(bytes))
    }

    /// Returns whether pacing allows a datagram now, the socket is not blocked, and there is media
    /// or padding to send: media is queued, or rate control is probing.
    pub(crate) fn has_media(&self, now: Instant) -> bool {
        let waits = self.grant.probing || self.pacer.next_bytes().is_some();
        waits && !self.is_blocked() && self.pacer.is_ready(now)
    }

    /// Returns the media rate that the budget may count on here; `span` is the lifetime of a media
    /// unit. It is the sustained rate, less while the last ping met a queue. Queued media that
    /// takes longer than a quarter of `span` reduces it so that the excess drains within
    /// [`BACKLOG_TIME`].
    pub(crate) fn budget(&self, span: Duration) -> Bitrate {
        let sustained = self.grant.sustained.scale(self.queue_factor());
        let backlog = self.pacer.queued() - sustained * (span / 4);
        sustained - Bitrate::of(backlog, BACKLOG_TIME)
    }

    /// Queues a media packet, or returns it if the queue is full.
    pub(crate) fn push(&mut self, entry: Entry) -> Result<(), Entry> {
        self.pacer.push(entry)
    }

    /// Queues a media packet that another link was to deliver, and counts it as [`Media::again`];
    /// returns it if the queue is full.
    pub(crate) fn push_again(&mut self, entry: Entry) -> Result<(), Entry> {
        self.pacer.push(entry)?;
        self.media.again += 1;
        Ok(())
    }

    /// Removes and returns the queued media packet with the earliest deadline; `None` without one.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        self.pacer.pop()
    }

    /// Removes and returns a queued media packet, and counts it as withdrawn, because the link may
    /// no longer carry media; `None` without one.
    pub(crate) fn withdraw(&mut self) -> Option<Entry> {
        let entry = self.pacer.pop()?;
        self.media.withdrawn += 1;
        Some(entry)
    }

    /// Returns the sent media packets whose outcome is unknown and that were not resent over
    /// another link, oldest first.
    pub(crate) fn doubtful(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.in_flight.doubtful()
    }

    /// Returns how many packets of a unit are queued or in flight here.
    pub(crate) fn expected(&self, unit: u64) -> usize {
        self.in_flight.carried(unit) + self.pacer.holds(unit)
    }

    /// Sets the pacing rate to the granted rate, or less while the last ping met a queue, unless
    /// the controller handles queues itself. Another controller judges by samples of 400 ms, and
    /// within that time a queue can grow beyond the deadline.
    fn pace(&mut self, now: Instant) {
        self.pacer.set_rate(self.grant.rate.scale(self.queue_factor()), now);
    }

    /// Returns the share of the granted rate that remains with the queue that the last ping met,
    /// from [`QUEUE_FACTOR_LEAST`] to 1; always 1 if the controller handles queues itself.
    fn queue_factor(&self) -> f64 {
        if !self.controller.avoids_queues() {
            return 1.0;
        }
        let queue = self.rtt.queueing_latest().unwrap_or_default();
        let over = queue.saturating_sub(QUEUE_FREE).as_secs_f64();
        (1.0 - over / QUEUE_SPAN.as_secs_f64()).max(QUEUE_FACTOR_LEAST)
    }
}

/// Time after which an announcement of the peer's report interval is forgotten, and the configured
/// interval assumed.
const CADENCE_LIFE: Duration = Duration::from_secs(1);
/// Maximum number of retransmission rounds assumed in the probability that a packet is missed.
const ROUNDS_MOST: u64 = 2;
/// Additional loss probability of a retransmission: the report may be lost as well.
const LOST_AGAIN: f64 = 0.02;
/// Divisor of a time that the peer measured, for the excess to tolerate: 400 ppm, as both clocks
/// may be wrong by 200 ppm.
const DRIFT_DIVISOR: u32 = 2_500;
/// Maximum number of queued pongs; a further one displaces the oldest.
const PONGS_MAX: usize = 8;
/// Loss ratio above which the size of datagrams is probed again: all large ones may be lost.
const LOSS_DOUBTED: f64 = 0.05;
/// Part of a packet's lifetime, in addition to its one-way delay, in which no retransmission round
/// is assumed: a report may come that late without jitter.
const NEWS_PAUSE: Duration = Duration::from_millis(10);
/// Time in which a backlog is to drain: the default lifetime of a unit, so that the next units are
/// not late.
const BACKLOG_TIME: Duration = Duration::from_millis(200);
/// Queueing delay of the last ping up to which the rate is not reduced: it comes from radio
/// retransmissions, or drains soon.
const QUEUE_FREE: Duration = Duration::from_millis(40);
/// Queueing delay in addition to [`QUEUE_FREE`] that would reduce the rate to zero without
/// [`QUEUE_FACTOR_LEAST`].
const QUEUE_SPAN: Duration = Duration::from_millis(120);
const QUEUE_FACTOR_LEAST: f64 = 0.25;
/// Divisor of the report interval for a report of newly missing datagrams, which is due sooner.
const GAP_INTERVALS: u32 = 4;
/// Assumed one-way delay before the first pong: a mobile link's usual one.
const OWD_GUESS: Duration = Duration::from_millis(40);
