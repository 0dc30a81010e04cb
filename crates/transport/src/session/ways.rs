//! Ways to the peer that come with the lease, or are learned, while a session is under way.

use tautline_units::Instant;

use super::Session;
use super::active::Active;
use super::called::Called;
use crate::config::Config;
use crate::counters::Discard;
use crate::link::{Link, Route, Routing};
use crate::reach::Way;
use crate::wire::{KNOCK_BYTES, KNOCK_TAG_BYTES, LinkNumber};

impl Session {
    /// Takes the ways that the lease tells by now: the initiator tries all of them, and of each group media
    /// takes the best that is up. What was told before and is up goes on.
    pub fn offer(&mut self, ways: &[Way], now: Instant) {
        self.now = self.now.max(now);
        let Self { handshake, active, shared, .. } = self;
        let is_up = |at: usize| active.as_deref().is_some_and(|active| active.is_up(at));
        let places = handshake.offer(ways, is_up, self.now);
        if let Some(active) = active {
            for at in places {
                active.enlist(at, &handshake.called()[at], &shared.config, self.now);
            }
            active.elect(self.now);
        }
        self.timers_stale = true;
    }

    /// Sets where the responder knocks: from each of its sockets at each address where the initiator may
    /// be, so that its own NAT lets in what comes from there.
    pub fn knock(&mut self, routes: &[Route], now: Instant) {
        self.now = self.now.max(now);
        self.handshake.knock(routes, self.now);
        self.timers_stale = true;
    }

    // protocol 10
    pub(super) fn handle_knock(
        &mut self,
        route: Route,
        end: u8,
        signed: &[u8],
        tag: &[u8; KNOCK_TAG_BYTES],
    ) -> Result<(), Discard> {
        let Self { handshake, active, shared, .. } = self;
        let is_up = |at: usize| active.as_deref().is_some_and(|active| active.is_up(at));
        let (at, is_new) = handshake.handle_knock(route, end, signed, tag, is_up)?;
        let Some(active) = active else { return Ok(()) };
        if is_new {
            tracing::info!(remote = %route.remote, "the peer knocks from another address");
            active.enlist(at, &handshake.called()[at], &shared.config, self.now);
        }
        active.on_knock(at, route, self.now);
        Ok(())
    }
}

impl Active {
    /// Returns whether the link of that number is up.
    fn is_up(&self, at: usize) -> bool {
        self.place_of(at).is_some_and(|place| self.links[place].is_up())
    }

    /// Makes a link of a way, or leads the one of that number there, unless it is up.
    pub(super) fn enlist(&mut self, at: usize, called: &Called, config: &Config, now: Instant) {
        let Some(number) = LinkNumber::new(at as u8) else { return };
        let routing = match called.is_learned {
            true => Routing::learned(called.route, now),
            false => Routing::given(called.route, now),
        };
        let place = match self.place_of(at) {
            Some(place) => {
                let link = &mut self.links[place];
                if !link.is_up() && link.route() != called.route {
                    link.lead(routing, now);
                }
                place
            }
            None => self.links.insert(Link::new(number, routing, config, now)),
        };
        if let Some((group, rank)) = called.choice {
            self.links[place].enlist(group, rank);
        }
    }

    /// Takes note that the peer knocked by the link's route: a ping is due there.
    fn on_knock(&mut self, at: usize, route: Route, now: Instant) {
        let Some(place) = self.place_of(at) else { return };
        let link = &mut self.links[place];
        if !link.is_up() && link.route() == route {
            link.on_knock(route, KNOCK_BYTES, now);
        }
    }

    fn place_of(&self, at: usize) -> Option<usize> {
        self.links.place(LinkNumber::new(at as u8)?)
    }
}
