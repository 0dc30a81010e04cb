//! A link as one candidate pair of its group: all but one of them are on standby.

use tautline_units::{Duration, Instant};

use super::choice::Choice;
use super::{Link, Route, Routing};
use crate::config::Config;
use crate::wire::LinkNumber;

impl Link {
    /// Adds the link to `group` with `rank`. It is on standby until it is elected, unless it is up
    /// and was not on standby before.
    pub(crate) fn enlist(&mut self, group: u16, rank: u8) {
        let stands_by = self.choice.stands_by || !self.is_up();
        self.choice = Choice { group: Some(group), rank, stands_by, ..self.choice };
    }

    /// Returns the number of the link's group; `None` if it is not one of several candidate pairs.
    pub(crate) fn group(&self) -> Option<u16> {
        self.choice.group
    }

    /// Returns the link's rank in its group; lower is better.
    pub(crate) fn rank(&self) -> u8 {
        self.choice.rank
    }

    /// Returns whether the link is on standby in its group, whatever its liveness. On standby it
    /// carries media only while no link outside standby is trusted.
    pub(crate) fn stands_by(&self) -> bool {
        self.choice.stands_by
    }

    /// Puts the link on standby, or ends its standby. The end makes a ping due immediately, lets
    /// the wait for a pong begin anew, and reduces the rate as after a silence.
    pub(crate) fn set_stands_by(&mut self, stands_by: bool, now: Instant) {
        if std::mem::replace(&mut self.choice.stands_by, stands_by) && !stands_by {
            // Standby pongs were infrequent: restart the wait at the faster ping rate.
            self.liveness.renew(now);
            self.probe.hurry(now);
            // Losses of standby pings must not determine the rate.
            self.grant = self.controller.on_silent(now);
            self.pace(now);
        }
    }

    /// Updates since when the link has been trusted, and returns whether that is at least
    /// [`STEADY`] ago; false while it is not trusted.
    pub(crate) fn is_steady(&mut self, now: Instant) -> bool {
        let trusted = self.is_trusted();
        let since = self.choice.trusted_since.filter(|_| trusted).or(trusted.then_some(now));
        self.choice.trusted_since = since;
        since.is_some_and(|since| now.since(since) >= STEADY)
    }

    /// Marks a trusted link suspect if no datagram has arrived over it for 40 ms. Returns true if
    /// it has just become suspect, so that its media must move.
    pub(crate) fn doubt(&mut self, now: Instant) -> bool {
        now.since(self.choice.heard_at) >= DOUBTED_AFTER && self.liveness.suspect(now)
    }

    /// Makes a ping due immediately on a link that is up, at most once per ping interval.
    pub(crate) fn hurry(&mut self, config: &Config, now: Instant) {
        if self.is_up() && now.since(self.choice.hurried_at) >= config.ping_interval {
            self.choice.hurried_at = now;
            self.probe.hurry(now);
        }
    }

    /// Moves the link to another route: restarts the search for the datagram size and the trial of
    /// ECT(1) there, and makes a ping due immediately.
    pub(crate) fn lead(&mut self, routing: Routing, now: Instant) {
        tracing::debug!(link = self.number.get(), to = %routing.route().remote, "new candidate pair");
        self.routing = routing;
        self.mtu.restart(now);
        self.marking.restart(self.in_flight.passed());
        self.probe.hurry(now);
    }

    /// Records a hole punch of `bytes` bytes received by `route`, which adds to what may be sent
    /// there before validation, and makes a ping due immediately.
    pub(crate) fn on_hole_punch(&mut self, route: Route, bytes: usize, now: Instant) {
        self.routing.note(route, bytes, false, now);
        self.probe.hurry(now);
    }

    /// Returns the interval between pings of a datagram link before reduced reporting, by its role
    /// in the group and whether it is up.
    pub(super) fn pair_ping_interval(&self, config: &Config) -> Duration {
        let factor = match (self.choice.stands_by, self.is_up()) {
            (false, _) => 1,
            (true, false) => TRYING_INTERVALS,
            (true, true) => STANDBY_INTERVALS,
        };
        config.ping_interval * factor
    }

    /// Returns the time without a pong after which a datagram link is silent, by its role in the
    /// group.
    pub(super) fn way_timeout(&self, config: &Config) -> Duration {
        match self.choice.stands_by {
            true => config.link_timeout * STANDBY_TIMEOUTS,
            false => config.link_timeout,
        }
    }

    /// Returns the link's bit in masks of link numbers.
    pub(crate) fn bit(&self) -> u16 {
        1 << self.number.get()
    }
}

/// Time without datagrams on a link after which it may be marked suspect: two of the peer's pings
/// are missing, and several reports while there is media.
const DOUBTED_AFTER: Duration = Duration::from_millis(40);
/// Time for which a better link must have been trusted before media moves there from a trusted one.
const STEADY: Duration = Duration::from_millis(300);
/// Ping interval factor of a standby link that is not up: half the rate of a link that carries
/// media.
const TRYING_INTERVALS: u32 = 2;
/// Ping interval factor of a standby link that is up: a ping every 100 ms keeps the NAT's mappings
/// open and costs little on a metered relay.
const STANDBY_INTERVALS: u32 = 5;
/// Timeout factor on standby, so that about as many pongs are missing as on a link that carries
/// media.
const STANDBY_TIMEOUTS: u32 = 4;

const _: () = assert!(LinkNumber::COUNT == 16, "a bit for each link");
