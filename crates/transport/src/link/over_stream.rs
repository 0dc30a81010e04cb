//! Behaviour specific to a link over a stream: standby while datagram links carry the media, and
//! blocking sockets.

use tautline_units::{Duration, Instant};

use super::Link;
use crate::config::Config;

// protocol 9
impl Link {
    /// Returns whether the link's route is a stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.routing.route().stream_index().is_some()
    }

    /// Returns whether the link is a stream on standby: while trusted datagram links carry the
    /// media, it carries only pings and reports.
    pub(crate) fn is_standby(&self) -> bool {
        self.stream.is_standby
    }

    /// Puts the link on standby.
    pub(crate) fn stand_by(&mut self) {
        self.stream.is_standby = true;
    }

    /// Ends standby: makes a ping due immediately and restarts rate control, because standby's
    /// traffic showed nothing of the rate.
    pub(crate) fn call(&mut self, config: &Config, now: Instant) {
        self.stream.is_standby = false;
        self.probe.hurry(now);
        self.controller = config.controllers.controller(&config.rate);
        self.grant = self.controller.initial();
        self.pace(now);
    }

    /// Returns whether the link is live: up, and not a stream on standby. Commands and reports are
    /// copied to live links.
    pub(crate) fn is_live(&self) -> bool {
        self.is_up() && !self.is_standby()
    }

    /// Returns whether the link is live and its socket accepts data.
    pub(crate) fn can_speak(&self) -> bool {
        self.is_live() && !self.is_blocked()
    }

    /// Returns whether the link is a stream whose socket accepts no data at present.
    pub(crate) fn is_blocked(&self) -> bool {
        self.stream.is_blocked
    }

    /// Sets whether the link's socket accepts no data.
    pub(crate) fn set_blocked(&mut self, is_blocked: bool) {
        self.stream.is_blocked = is_blocked;
    }

    /// Returns whether a ping that was sent at `since` or later has been answered.
    pub(crate) fn answered_since(&self, since: Instant) -> bool {
        self.stream.answered_at.is_some_and(|at| at >= since)
    }

    /// Returns the interval between pings while the link is up; while it is not, the interval from
    /// which the back-off starts.
    pub(super) fn ping_interval(&self, config: &Config) -> Duration {
        match self.is_standby() {
            true => config.ping_interval.max(STANDBY_PING_INTERVAL),
            false => self.pair_ping_interval(config) * self.reduced_pings(),
        }
    }

    /// Returns the time without a pong after which the link is silent; longer for a stream and on
    /// standby.
    pub(super) fn link_timeout(&self, config: &Config) -> Duration {
        match self.is_stream() {
            true => config.link_timeout * STREAM_TIMEOUTS,
            false => self.way_timeout(config),
        }
    }
}

/// Ping interval of a stream on standby. With one report per second it takes 20 kbit/s in each
/// direction, including TCP headers and acknowledgements.
const STANDBY_PING_INTERVAL: Duration = Duration::from_millis(100);
/// Factor on the link timeout of a stream. A stream stalls on a lost segment, for 200 ms and a
/// round trip if that is lost twice, and keeps all its data. Waiting costs nothing beyond that.
const STREAM_TIMEOUTS: u32 = 3;
