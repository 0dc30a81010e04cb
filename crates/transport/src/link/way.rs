//! A link as one way among others of its group, of which media takes one.

use tautline_units::{Duration, Instant};

use super::choice::Choice;
use super::{Link, Route, Routing};
use crate::config::Config;
use crate::wire::LinkNumber;

impl Link {
    /// Makes the link a way of `group`: it stands by until it is chosen, unless it carries already.
    pub(crate) fn enlist(&mut self, group: u16, rank: u8) {
        let stands_by = self.choice.stands_by || !self.is_up();
        self.choice = Choice { group: Some(group), rank, stands_by, ..self.choice };
    }

    /// Returns the group, if the link is one way of several.
    pub(crate) fn group(&self) -> Option<u16> {
        self.choice.group
    }

    /// Returns what the link is worth in its group, the smaller the better.
    pub(crate) fn rank(&self) -> u8 {
        self.choice.rank
    }

    /// Returns whether another link of its group carries media in its place.
    pub(crate) fn stands_by(&self) -> bool {
        self.choice.stands_by
    }

    /// Lets the link stand by, or carry media.
    pub(crate) fn set_stands_by(&mut self, stands_by: bool, now: Instant) {
        if std::mem::replace(&mut self.choice.stands_by, stands_by) && !stands_by {
            // Its pongs were few: those of the faster rhythm are waited for from now on.
            self.liveness.renew(now);
            self.probe.hurry(now);
            // Of pings that were lost no rate is made.
            self.grant = self.controller.on_silent(now);
            self.pace(now);
        }
    }

    /// Notes whether the link is trusted, and returns whether it has been for a while.
    pub(crate) fn is_steady(&mut self, now: Instant) -> bool {
        let trusted = self.is_trusted();
        let since = self.choice.trusted_since.filter(|_| trusted).or(trusted.then_some(now));
        self.choice.trusted_since = since;
        since.is_some_and(|since| now.since(since) >= STEADY)
    }

    /// Doubts the link, if nothing at all has come over it of late; true if media is to go elsewhere for that.
    pub(crate) fn doubt(&mut self, now: Instant) -> bool {
        now.since(self.choice.heard_at) >= DOUBTED_AFTER && self.liveness.suspect(now)
    }

    /// Pings at once over a link that is up, no more often than over one that carries media.
    pub(crate) fn hurry(&mut self, config: &Config, now: Instant) {
        if self.is_up() && now.since(self.choice.hurried_at) >= config.ping_interval {
            self.choice.hurried_at = now;
            self.probe.hurry(now);
        }
    }

    /// Leads the link another way; what is known of the old one is forgotten as far as it misleads.
    pub(crate) fn lead(&mut self, routing: Routing, now: Instant) {
        tracing::debug!(link = self.number.get(), to = %routing.route().remote, "another way");
        self.routing = routing;
        self.mtu.restart(now);
        self.marking.restart(self.in_flight.passed());
        self.probe.hurry(now);
    }

    /// Notes that the peer knocked from the link's route, with so many bytes.
    pub(crate) fn on_knock(&mut self, route: Route, bytes: usize, now: Instant) {
        self.routing.note(route, bytes, false, now);
        self.probe.hurry(now);
    }

    /// Returns the time between two pings, of a link by datagrams.
    pub(super) fn way_ping_interval(&self, config: &Config) -> Duration {
        let factor = match (self.choice.stands_by, self.is_up()) {
            (false, _) => 1,
            (true, false) => TRYING_INTERVALS,
            (true, true) => STANDBY_INTERVALS,
        };
        config.ping_interval * factor
    }

    /// Returns how long no pong may come before the link is silent.
    pub(super) fn way_timeout(&self, config: &Config) -> Duration {
        match self.choice.stands_by {
            true => config.link_timeout * STANDBY_TIMEOUTS,
            false => config.link_timeout,
        }
    }

    /// Returns the link's bit.
    pub(crate) fn bit(&self) -> u16 {
        1 << self.number.get()
    }
}

/// Two pings of the peer's are missing, and some of its reports where there is media.
const DOUBTED_AFTER: Duration = Duration::from_millis(40);
/// So long a better way must do well before media moves there: some pongs in a row.
const STEADY: Duration = Duration::from_millis(300);
/// A way that is not up is tried half as often as a link that carries is pinged.
const TRYING_INTERVALS: u32 = 2;
/// One that stands by is pinged every 100 ms: it is warm, and on a metered relay costs little.
const STANDBY_INTERVALS: u32 = 5;
/// At that rhythm as many pongs are missing as of a link that carries.
const STANDBY_TIMEOUTS: u32 = 4;

const _: () = assert!(LinkNumber::COUNT == 16, "a bit for each link");
