use std::net::SocketAddr;

use tautline_units::{Duration, Instant};

/// Route of a link to the peer: a local socket and a remote address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// Index of the local socket, as the application numbers its sockets: datagram sockets below
    /// 128, streams from 128 on.
    pub socket: u8,
    /// Address of the peer, or of a relay to it.
    pub remote: SocketAddr,
}

impl Route {
    /// Creates a route over a stream: reliable, ordered, with the delay that this costs.
    ///
    /// `index`, below 128, is the application's number of the stream. The link carries media only
    /// while the datagram links are silent or stalled.
    // protocol 9
    pub fn stream(index: u8, remote: SocketAddr) -> Self {
        Self { socket: STREAMS_FROM | index, remote }
    }

    /// Returns the stream's index; `None` for a datagram route.
    pub fn stream_index(&self) -> Option<u8> {
        self.socket.checked_sub(STREAMS_FROM)
    }
}

/// A link's route, and the candidate route it may move to.
///
/// A newer authentic datagram from another address creates a candidate: a NAT rebound the link, or
/// a modem reconnected with a new address. Only pings and pongs are sent to the candidate, never
/// more bytes than arrived from it. A pong to such a ping validates it, and the link moves. Until
/// then the old route stays in use, so a datagram replayed from a victim's address moves nothing.
#[derive(Debug, Clone)]
pub(crate) struct Routing {
    active: Leg,
    candidate: Option<Leg>,
}

#[derive(Debug, Clone, Copy)]
struct Leg {
    route: Route,
    since: Instant,
    proof: Proof,
    pinged_at: Option<Instant>,
}

/// Validation state of a route's remote address, which decides how much may be sent there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    /// Not validated: at most as many bytes may be sent there as were received from there.
    /// `received` and `sent` count them so far.
    Owed { received: u64, sent: u64 },
    /// Validated by a pong, or configured by the application.
    Shown,
}

/// Effect of an authentic datagram on a link's routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The datagram came by the link's route.
    Active,
    /// The newest datagram came by an unknown route, which is now the candidate: a ping is due
    /// there.
    Candidate,
    /// The datagram came by the candidate route again.
    CandidateAgain,
    /// The datagram came by an unknown route, but is not the newest: it has no effect.
    Ignored,
}

impl Routing {
    /// Creates the routing of an initiator's link whose route the application configured, or
    /// offered as a candidate pair: valid from the start.
    pub(crate) fn given(route: Route, now: Instant) -> Self {
        Self { active: Leg::new(route, Proof::Shown, now), candidate: None }
    }

    /// Creates the routing of a link whose route is not validated yet: a responder's, learned from
    /// a datagram, or an initiator's, learned from a hole punch.
    pub(crate) fn learned(route: Route, now: Instant) -> Self {
        let proof = Proof::Owed { received: 0, sent: 0 };
        Self { active: Leg::new(route, proof, now), candidate: None }
    }

    pub(crate) fn route(&self) -> Route {
        self.active.route
    }

    pub(crate) fn candidate(&self) -> Option<Route> {
        self.candidate.map(|leg| leg.route)
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.active.proof == Proof::Shown
    }

    /// Records an authentic datagram of `bytes` bytes from `route`; `newest` if it has the highest
    /// packet number of the link. The newest one makes an unknown route the candidate; if it came
    /// by the link's own route, it drops the candidate.
    pub(crate) fn note(
        &mut self,
        route: Route,
        bytes: usize,
        newest: bool,
        now: Instant,
    ) -> Arrival {
        if route == self.active.route {
            self.active.credit(bytes);
            if newest {
                // The peer still sends from its known address: nothing has moved.
                self.candidate = None;
            }
            return Arrival::Active;
        }
        match &mut self.candidate {
            Some(leg) if leg.route == route => {
                leg.credit(bytes);
                Arrival::CandidateAgain
            }
            Some(_) | None if newest => {
                let proof = Proof::Owed { received: bytes as u64, sent: 0 };
                self.candidate = Some(Leg::new(route, proof, now));
                Arrival::Candidate
            }
            Some(_) | None => Arrival::Ignored,
        }
    }

    /// Returns whether a datagram of `bytes` bytes may be sent to `route` now; false for a route
    /// that is neither the link's nor the candidate.
    pub(crate) fn allows(&self, route: Route, bytes: usize) -> bool {
        self.leg(route).is_some_and(|leg| leg.room() >= bytes as u64)
    }

    /// Returns whether there is a candidate route that the link may move to.
    pub(crate) fn is_moving(&self) -> bool {
        self.candidate.is_some()
    }

    /// Returns the candidate if a ping of `bytes` bytes may be sent there now; at most one per
    /// `interval`.
    pub(crate) fn ping_candidate(
        &mut self,
        bytes: usize,
        interval: Duration,
        now: Instant,
    ) -> Option<Route> {
        let leg = self.candidate.as_mut()?;
        let due = leg.pinged_at.is_none_or(|at| now.since(at) >= interval);
        if !due || leg.room() < bytes as u64 {
            return None;
        }
        leg.pinged_at = Some(now);
        Some(leg.route)
    }

    /// Records that a datagram of `bytes` bytes was sent to `route`; one that is not the candidate
    /// counts as the link's own.
    pub(crate) fn spend(&mut self, route: Route, bytes: usize) {
        let candidate = self.candidate.iter_mut().find(|leg| leg.route == route);
        let leg = match candidate {
            Some(leg) => leg,
            None => &mut self.active,
        };
        match &mut leg.proof {
            Proof::Owed { sent, .. } => *sent += bytes as u64,
            Proof::Shown => {}
        }
    }

    /// Marks `route` as validated; returns true if it was the candidate, to which the link has then
    /// moved. An unknown route is ignored.
    pub(crate) fn prove(&mut self, route: Route, now: Instant) -> bool {
        if route == self.active.route {
            self.active.proof = Proof::Shown;
            return false;
        }
        if self.candidate() != Some(route) {
            return false;
        }
        self.active = Leg::new(route, Proof::Shown, now);
        self.candidate = None;
        true
    }

    /// Returns whether there is a candidate older than [`CANDIDATE_LIFE`].
    pub(crate) fn is_expiring(&self, now: Instant) -> bool {
        self.candidate.is_some_and(|leg| now.since(leg.since) > CANDIDATE_LIFE)
    }

    /// Drops the candidate if it is older than [`CANDIDATE_LIFE`].
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.is_expiring(now) {
            self.candidate = None;
        }
    }

    fn leg(&self, route: Route) -> Option<&Leg> {
        [Some(&self.active), self.candidate.as_ref()]
            .into_iter()
            .flatten()
            .find(|leg| leg.route == route)
    }
}

impl Leg {
    fn new(route: Route, proof: Proof, since: Instant) -> Self {
        Self { route, since, proof, pinged_at: None }
    }

    fn credit(&mut self, bytes: usize) {
        match &mut self.proof {
            Proof::Owed { received, .. } => *received += bytes as u64,
            Proof::Shown => {}
        }
    }

    fn room(&self) -> u64 {
        match self.proof {
            Proof::Owed { received, sent } => received.saturating_sub(sent),
            Proof::Shown => u64::MAX,
        }
    }
}

/// First socket index of streams; sixteen links need fewer datagram sockets than that.
const STREAMS_FROM: u8 = 128;
/// Time after which a candidate route that is not validated is dropped: longer than any RTT that an
/// operator could drive with.
const CANDIDATE_LIFE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn route(port: u16) -> Route {
        Route { socket: 0, remote: SocketAddr::from(([127, 0, 0, 1], port)) }
    }

    #[test]
    fn a_stream_route_is_distinguished_from_a_socket_route() {
        let remote = SocketAddr::from(([127, 0, 0, 1], 443));
        assert_eq!(Route::stream(3, remote).stream_index(), Some(3));
        assert_eq!(Route { socket: 3, remote }.stream_index(), None);
    }

    #[test]
    fn an_unproved_route_is_sent_no_more_than_it_sent() {
        let mut routing = Routing::learned(route(1), Instant::ZERO);
        assert!(!routing.allows(route(1), 1));
        routing.note(route(1), 100, true, Instant::ZERO);
        assert!(routing.allows(route(1), 100));
        routing.spend(route(1), 60);
        assert!(!routing.allows(route(1), 41));
        assert!(!routing.prove(route(1), Instant::ZERO));
        assert!(routing.allows(route(1), 1_000_000));
    }

    #[test]
    fn a_link_moves_only_to_a_proved_address() {
        let mut routing = Routing::given(route(1), Instant::ZERO);
        assert_eq!(routing.note(route(2), 50, false, Instant::ZERO), Arrival::Ignored);
        assert_eq!(routing.note(route(2), 50, true, Instant::ZERO), Arrival::Candidate);
        assert_eq!(routing.route(), route(1));
        assert!(!routing.prove(route(3), Instant::ZERO));
        assert!(routing.prove(route(2), Instant::ZERO));
        assert_eq!(routing.route(), route(2));
    }

    #[test]
    fn news_from_the_old_address_or_time_ends_a_candidate() {
        let mut routing = Routing::given(route(1), Instant::ZERO);
        routing.note(route(2), 50, true, Instant::ZERO);
        routing.note(route(1), 50, true, Instant::ZERO);
        assert_eq!(routing.candidate(), None);
        routing.note(route(2), 50, true, Instant::ZERO);
        routing.expire(Instant::from_millis(3_001));
        assert_eq!(routing.candidate(), None);
    }
}
