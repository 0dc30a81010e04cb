//! What a link over a stream has of its own: it stands by while others live, and its socket may be full.

use tautline_units::{Duration, Instant};

use super::Link;
use crate::config::Config;

// protocol 9
impl Link {
    /// Returns whether the link's route is a stream.
    pub(crate) fn is_stream(&self) -> bool {
        self.routing.route().stream_index().is_some()
    }

    /// Returns whether the link waits until no link by datagrams lives.
    pub(crate) fn is_standby(&self) -> bool {
        self.stream.is_standby
    }

    /// Lets the link stand by.
    pub(crate) fn stand_by(&mut self) {
        self.stream.is_standby = true;
    }

    /// Ends that: the next ping leaves at once, and the rate begins anew, for pings showed nothing of it.
    pub(crate) fn call(&mut self, config: &Config, now: Instant) {
        self.stream.is_standby = false;
        self.probe.hurry(now);
        self.controller = config.rate.controller();
        self.grant = self.controller.initial();
        self.pace(now);
    }

    /// Returns whether what goes over every live link goes over this one.
    pub(crate) fn is_live(&self) -> bool {
        self.is_up() && !self.is_standby()
    }

    /// Returns whether anything can leave over the link now, as far as that is known.
    pub(crate) fn can_speak(&self) -> bool {
        self.is_live() && !self.is_blocked()
    }

    /// Returns whether the link's socket takes nothing at present.
    pub(crate) fn is_blocked(&self) -> bool {
        self.stream.is_blocked
    }

    /// Takes note that the link's socket takes nothing, or takes datagrams again.
    pub(crate) fn set_blocked(&mut self, is_blocked: bool) {
        self.stream.is_blocked = is_blocked;
    }

    /// Returns whether a ping that left at `since` or later has been answered.
    pub(crate) fn answered_since(&self, since: Instant) -> bool {
        self.stream.answered_at.is_some_and(|at| at >= since)
    }

    /// Returns the pause between two pings while the link is up.
    pub(super) fn ping_interval(&self, config: &Config) -> Duration {
        match self.is_standby() {
            true => config.ping_interval.max(STANDBY_PING_INTERVAL),
            false => self.way_ping_interval(config) * self.sparing_pings(),
        }
    }

    /// Returns how long the link may be without a pong before it is silent.
    pub(super) fn link_timeout(&self, config: &Config) -> Duration {
        match self.is_stream() {
            true => config.link_timeout * STREAM_TIMEOUTS,
            false => self.way_timeout(config),
        }
    }
}

/// With reports a second: 20 kbit/s each way, headers of TCP and its acknowledgements included.
const STANDBY_PING_INTERVAL: Duration = Duration::from_millis(100);
/// A stream stands still for a lost segment, 200 ms and a round trip where that is lost twice, and holds
/// all that it was given: to wait costs nothing that is not lost anyway.
const STREAM_TIMEOUTS: u32 = 3;
