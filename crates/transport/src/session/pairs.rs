//! Candidate pairs that arrive with the lease, or are learned, during a session.

use tautline_units::Instant;

use super::Session;
use super::active::Active;
use super::remote_links::RemoteLink;
use crate::config::Config;
use crate::counters::Discard;
use crate::link::{Link, Route, Routing};
use crate::reach::CandidatePair;
use crate::shared::Shared;
use crate::wire::{HOLE_PUNCH_BYTES, HOLE_PUNCH_TAG_BYTES, LinkNumber};

impl Session {
    /// Sets the candidate pairs of the lease; without effect at the responder. The initiator tries
    /// all of them and sends media on the best one of each group that is up. Earlier candidate
    /// pairs that are up continue; those no longer listed become suspect if they have received
    /// nothing for 40 ms.
    pub fn offer(&mut self, pairs: &[CandidatePair], now: Instant) {
        self.now = self.now.max(now);
        let Self { handshake, active, shared, .. } = self;
        let is_up = |at: usize| active.as_deref().is_some_and(|active| active.is_up(at));
        let places = handshake.offer(pairs, is_up, self.now);
        if let Some(active) = active {
            for at in places {
                active.enlist(at, &handshake.called()[at], &shared.config, self.now);
            }
            // Candidates that are no longer listed are former addresses of the peer.
            let is_told = |route| pairs.iter().any(|pair| pair.route == route);
            active.doubt(|link| link.group().is_some() && !is_told(link.route()), shared, self.now);
        }
        self.timers_stale = true;
    }

    /// Handles a change of address of one of our sockets.
    ///
    /// The peer may now reach the socket only through the `relayed` routes, whose relays know the
    /// new address: these are pinged. Links on all other routes of the socket become suspect if
    /// they have received nothing for 40 ms.
    // protocol 10
    pub fn handle_moved(&mut self, socket: u8, relayed: &[Route], now: Instant) {
        self.now = self.now.max(now);
        let Self { active: Some(active), shared, .. } = self else { return };
        let is_relayed = |route| relayed.contains(&route);
        let moved = |link: &Link| link.route().socket == socket;
        active.doubt(|link| moved(link) && !is_relayed(link.route()), shared, self.now);
        for link in active.links.iter_mut().filter(|link| is_relayed(link.route())) {
            link.hurry(&shared.config, self.now);
        }
        self.timers_stale = true;
    }

    /// Makes a ping due on each standby link that is up, at most once per ping interval: no packets
    /// have arrived for several ping intervals, and a standby link may show whether the peer is
    /// reachable.
    pub fn hurry(&mut self, now: Instant) {
        self.now = self.now.max(now);
        let Self { active: Some(active), shared, .. } = self else { return };
        for link in active.links.iter_mut().filter(|link| link.stands_by()) {
            link.hurry(&shared.config, self.now);
        }
        self.timers_stale = true;
    }

    /// Sets the routes of the responder's hole punches: from each of its sockets to each address of
    /// the initiator. Hole punches make the responder's own NAT admit packets from there. Without
    /// effect at the initiator.
    pub fn punch(&mut self, routes: &[Route], now: Instant) {
        self.now = self.now.max(now);
        self.handshake.punch(routes, self.now);
        self.timers_stale = true;
    }

    // protocol 10
    pub(super) fn handle_hole_punch(
        &mut self,
        route: Route,
        end: u8,
        signed: &[u8],
        tag: &[u8; HOLE_PUNCH_TAG_BYTES],
    ) -> Result<(), Discard> {
        let Self { handshake, active, shared, .. } = self;
        let is_up = |at: usize| active.as_deref().is_some_and(|active| active.is_up(at));
        let (at, is_new) = handshake.handle_hole_punch(route, end, signed, tag, is_up)?;
        let Some(active) = active else { return Ok(()) };
        if is_new {
            tracing::info!(remote = %route.remote, "the peer punches from another address");
            active.enlist(at, &handshake.called()[at], &shared.config, self.now);
        }
        active.on_hole_punch(at, route, self.now);
        Ok(())
    }
}

impl Active {
    /// Marks each trusted link for which `lost` is true suspect, if it has received nothing for 40
    /// ms; then selects the links for media anew.
    fn doubt(&mut self, lost: impl Fn(&Link) -> bool, shared: &mut Shared, now: Instant) {
        if self.links.doubt(lost, now) {
            self.sender.doubt_budget();
        }
        self.elect(now);
        self.sender.settle(&mut self.links, shared, now);
    }

    /// Returns whether the link with number `at` is up.
    fn is_up(&self, at: usize) -> bool {
        self.place_of(at).is_some_and(|place| self.links[place].is_up())
    }

    /// Creates a link for the route `called`, or moves the existing link of that number to it
    /// unless it is up. Adds the link to the group of `called`, if it has one.
    pub(super) fn enlist(&mut self, at: usize, called: &RemoteLink, config: &Config, now: Instant) {
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

    /// Handles that the peer punched on `route`: makes a ping due on the link with number `at`, if
    /// that has this route and is not up.
    fn on_hole_punch(&mut self, at: usize, route: Route, now: Instant) {
        let Some(place) = self.place_of(at) else { return };
        let link = &mut self.links[place];
        if !link.is_up() && link.route() == route {
            link.on_hole_punch(route, HOLE_PUNCH_BYTES, now);
        }
    }

    fn place_of(&self, at: usize) -> Option<usize> {
        self.links.place(LinkNumber::new(at as u8)?)
    }
}
