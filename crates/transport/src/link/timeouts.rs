//! Timers of a link: actions that are due, and the next timeout.

use tautline_units::{Duration, Instant};

use super::{Change, Link, NEWS_PAUSE, ReceiveGap, Settled};
use crate::config::Config;
use crate::event::Timer;

impl Link {
    /// Returns whether [`Link::expire`] has something to drop.
    pub(crate) fn is_expiring(&self, now: Instant) -> bool {
        self.routing.is_expiring(now) || self.in_flight.is_expiring(now)
    }

    /// Drops a candidate address that was not validated in time, and records of datagrams that
    /// stayed unreported for two seconds; appends the media packets among them to `settled`, as
    /// lost.
    pub(crate) fn expire(&mut self, settled: &mut Vec<Settled>, now: Instant) {
        self.routing.expire(now);
        self.in_flight.expire(settled, now);
    }

    /// Marks the link suspect if pongs or reports are overdue, and silent if pongs are missing for
    /// the link timeout. Either may make rate control grant a new rate. `receive_gap` tells which
    /// times do not count; `None` if no other link is up.
    pub(crate) fn on_timeout(
        &mut self,
        receive_gap: Option<&ReceiveGap>,
        config: &Config,
        now: Instant,
    ) -> Change {
        let mut change = Change::default();
        let beyond =
            |from| receive_gap.map_or(Duration::ZERO, |receive_gap| receive_gap.beyond(from, now));
        let news = self.news_due_at(config).zip(self.news_overdue_at(config));
        let (unheard, untold) = (
            beyond(self.liveness.heard_at()),
            news.map_or(Duration::ZERO, |(due_at, _)| beyond(due_at)),
        );
        if unheard.max(untold) > Duration::ZERO {
            self.judged_from = now + JUDGED_AGAIN;
        }
        let suspect_after = self.suspect_after(config) + unheard;
        let overdue = news.is_some_and(|(_, at)| now >= at + untold) && self.liveness.suspect(now);
        if overdue || self.liveness.on_doubt(suspect_after, now) {
            change.budget = true;
            tracing::debug!(link = self.number.get(), ?suspect_after, overdue, "suspect");
            if self.rtt.queueing_latest().is_some_and(|queue| queue < STALL_QUEUE_MOST) {
                self.grant = self.controller.on_stall(now);
                self.pace(now);
            }
        }
        change.state = self.liveness.on_timeout(self.link_timeout(config), now);
        if change.state.is_some() {
            change.budget = true;
            self.queue.clear();
            self.marking.doubt(self.in_flight.passed());
            self.grant = self.controller.on_silent(now);
            self.pace(now);
        }
        change
    }

    /// Returns the link's next timeout and its reason; `may_carry` is true if the link may carry
    /// media. While the socket is blocked, only the times at which the link becomes suspect or
    /// silent count; the end of the clock's range without one.
    pub(crate) fn next_timeout(&self, config: &Config, may_carry: bool) -> (Instant, Timer) {
        let news = self.news_overdue_at(config).filter(|_| self.is_trusted());
        let news = news.map(|at| at.max(self.judged_from));
        let pace = match self.grant.probing && may_carry {
            true => Some(self.pacer.next_at()),
            false => self.pacer.due_at().filter(|_| self.may_send_next()),
        };
        let liveness = self.liveness.due_at(self.suspect_after(config), self.link_timeout(config));
        let liveness = liveness.map(|at| at.max(self.judged_from));
        let (pace, probe) = match self.is_blocked() {
            // The socket reports when it is writable again.
            true => (None, NEVER),
            false => (pace, self.beside_due_at()),
        };
        [(news, Timer::Liveness), (pace, Timer::Pacing), (liveness, Timer::Liveness)]
            .into_iter()
            .filter_map(|(at, timer)| Some((at?, timer)))
            .fold((probe, Timer::Probe), Ord::min)
    }

    /// Returns the time without a pong after which a trusted link becomes suspect.
    // protocol 3, life of a link
    fn suspect_after(&self, config: &Config) -> Duration {
        let jitter = self.rtt.jitter().unwrap_or_default();
        SUSPECT_AFTER_LEAST.max(self.ping_interval(config) * PONGS_MISSED + jitter * JITTERS)
    }

    /// Returns the interval of the peer's reports: as announced, between the configured one and
    /// [`CADENCE_MOST`].
    pub(crate) fn feedback(&self, config: &Config) -> Duration {
        let told = self.cadence.map_or(Duration::ZERO, |(interval, _)| interval);
        told.clamp(config.report_interval, CADENCE_MOST.max(config.report_interval))
    }

    /// Handles the peer's announcement of its report interval; one no longer than the configured
    /// interval ends an earlier one.
    // protocol 4, cadence
    pub(crate) fn on_cadence(&mut self, interval: Duration, config: &Config, now: Instant) {
        self.cadence = Some((interval, now)).filter(|_| interval > config.report_interval);
    }

    /// Returns when reports on media in flight are overdue: a report interval and a pause that
    /// jitter explains after the report was expected. `None` while no media is in flight.
    fn news_overdue_at(&self, config: &Config) -> Option<Instant> {
        let jitter = self.rtt.jitter().unwrap_or_default();
        Some(self.news_due_at(config)? + self.feedback(config) + NEWS_PAUSE + jitter * JITTERS)
    }

    /// Returns whether a report on media in flight is late by more than the peer's report interval.
    pub(crate) fn is_overdue(&self, config: &Config, now: Instant) -> bool {
        self.news_due_at(config).is_some_and(|at| now > at + self.feedback(config))
    }

    /// Returns when the next report on media in flight is expected: a round trip and a report
    /// interval after the oldest packet was sent, or at the last report with news if that was
    /// later. `None` while no media is in flight, and before the first pong.
    pub(super) fn news_due_at(&self, config: &Config) -> Option<Instant> {
        let trip = self.rtt.rtt_min()? + self.feedback(config);
        self.in_flight.news_due_at(trip)
    }
}

/// Interval at which a link's liveness is checked again while nothing arrives over any link.
const JUDGED_AGAIN: Duration = Duration::from_millis(10);
/// Number of ping intervals without a pong after which a link may become suspect; fewer are
/// explained by jitter and radio retransmissions.
const PONGS_MISSED: u32 = 3;
const JITTERS: u32 = 4;
const SUSPECT_AFTER_LEAST: Duration = Duration::from_millis(60);
/// Queueing delay of the last ping below which a link without pongs did not stop because of its
/// queue, but stalled.
const STALL_QUEUE_MOST: Duration = Duration::from_millis(60);
const NEVER: Instant = Instant::from_nanos(u64::MAX);
/// Maximum report interval accepted from the peer; a longer one counts as this, unless the
/// configured interval is longer still.
const CADENCE_MOST: Duration = Duration::from_millis(500);
