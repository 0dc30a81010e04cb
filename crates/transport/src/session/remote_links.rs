use std::ops::Deref;

use crate::counters::Discard;
use crate::link::Route;
use crate::reach::{CANDIDATE_PAIRS_MAX, CandidatePair};
use crate::wire::LinkNumber;

/// A link of the initiator, configured or learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemoteLink {
    pub(super) route: Route,
    /// Group of candidate pairs, and rank within it; `None` for a route configured without them.
    pub(super) choice: Option<(u16, u8)>,
    /// True if the route was learned from a hole punch, and the lease does not list it.
    pub(super) is_learned: bool,
}

impl RemoteLink {
    fn told(pair: &CandidatePair, is_learned: bool) -> Self {
        Self { route: pair.route, choice: Some((pair.group, pair.rank)), is_learned }
    }

    /// Returns whether the link is over datagrams and was configured without a group, so that it
    /// may get one. A stream is a group of its own.
    fn is_plain(&self) -> bool {
        self.choice.is_none() && self.route.stream_index().is_none()
    }
}

/// The initiator's links, indexed by link number.
#[derive(Debug)]
pub(super) struct RemoteLinks(Vec<RemoteLink>);

impl RemoteLinks {
    /// Creates the links for the routes passed to the initiator.
    pub(super) fn given(routes: &[Route]) -> Self {
        let plain = |route: &Route| RemoteLink { route: *route, choice: None, is_learned: false };
        Self(routes.iter().map(plain).collect())
    }

    /// Adds the candidate pairs of the lease, and gives datagram links without a group one. Returns
    /// the indices of the links that have changed or are listed, and whether any route is new.
    /// Nothing changes if `pairs` is empty.
    ///
    /// If no number is free, a candidate pair takes the number of a link that is not up and whose
    /// route the lease no longer lists; without such a link it is left out.
    pub(super) fn offer(
        &mut self,
        pairs: &[CandidatePair],
        is_up: impl Fn(usize) -> bool,
    ) -> (Vec<usize>, bool) {
        let (mut places, mut is_any_new) = (Vec::new(), false);
        if pairs.is_empty() {
            // The peer sends no candidates: each route forms its own group.
            return (places, is_any_new);
        }
        for (at, known) in self.0.iter_mut().enumerate().filter(|(_, known)| known.is_plain()) {
            // The route was configured before candidates arrived; assume the peer's first socket.
            known.choice = Some((CandidatePair::learned(known.route, 0).group, RANK_GIVEN));
            places.push(at);
        }
        for pair in pairs {
            let known = self.place(pair.route);
            let Some(at) = known.or_else(|| self.room_for(pair, pairs, &is_up)) else { continue };
            self.put(at, RemoteLink::told(pair, false));
            places.push(at);
            is_any_new |= known.is_none();
        }
        (places, is_any_new)
    }

    /// Adds a route learned from a hole punch of the peer's socket `end`. Without a free number, it
    /// replaces a learned link that is not up. Returns its link index and whether it is new.
    ///
    /// # Errors
    /// [`Discard::AnswerOverflow`] if no number is free for a learned link and all learned links
    /// are up.
    pub(super) fn learn(
        &mut self,
        route: Route,
        end: u8,
        is_up: impl Fn(usize) -> bool,
    ) -> Result<(usize, bool), Discard> {
        if let Some(at) = self.place(route) {
            return Ok((at, false));
        }
        let learned = self.0.iter().filter(|known| known.is_learned).count();
        let at = if learned < LEARNED_MAX && self.0.len() < LinkNumber::COUNT {
            self.0.len()
        } else {
            let mut links = self.0.iter().enumerate();
            let idle = links.position(|(at, known)| known.is_learned && !is_up(at));
            idle.ok_or(Discard::AnswerOverflow)?
        };
        self.put(at, RemoteLink::told(&CandidatePair::learned(route, end), true));
        Ok((at, true))
    }

    fn place(&self, route: Route) -> Option<usize> {
        self.0.iter().position(|known| known.route == route)
    }

    /// Returns the index for a new candidate pair: a free one, or that of a link that is not up and
    /// not among `pairs`, preferably of the same group; `None` if there is none.
    fn room_for(
        &self,
        pair: &CandidatePair,
        pairs: &[CandidatePair],
        is_up: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if self.0.len() < CANDIDATE_PAIRS_MAX {
            return Some(self.0.len());
        }
        let is_idle = |(at, known): &(usize, &RemoteLink)| {
            !is_up(*at) && !pairs.iter().any(|pair| pair.route == known.route)
        };
        let is_other =
            |known: &RemoteLink| known.choice.is_none_or(|(group, _)| group != pair.group);
        let idle = self.0.iter().enumerate().filter(is_idle);
        idle.min_by_key(|(_, known)| is_other(known)).map(|(at, _)| at)
    }

    fn put(&mut self, at: usize, called: RemoteLink) {
        match self.0.get_mut(at) {
            Some(known) => *known = called,
            None => self.0.push(called),
        }
    }
}

impl Deref for RemoteLinks {
    type Target = [RemoteLink];

    fn deref(&self) -> &[RemoteLink] {
        &self.0
    }
}

/// Maximum number of addresses learned from hole punches: one per peer socket. Replayed hole
/// punches cannot evict a link that is up.
const LEARNED_MAX: usize = 4;
/// Rank of a route that was configured before the lease sent candidates: behind direct candidates.
const RANK_GIVEN: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn route(port: u16) -> Route {
        Route { socket: 0, remote: ([192, 0, 2, 1], port).into() }
    }

    #[test]
    fn routes_are_used_directly_until_the_lease_has_candidates() {
        let mut links = RemoteLinks::given(&[route(7), route(8)]);
        assert_eq!(links.offer(&[], |_| true), (vec![], false));
        assert!(links.iter().all(|called| called.choice.is_none()));
        assert_eq!(
            links.offer(&[CandidatePair::relayed(route(9))], |_| true),
            (vec![0, 1, 2], true)
        );
        assert!(links.iter().all(|called| called.choice.is_some()));
    }

    #[test]
    fn hole_punches_evict_only_learned_links_that_are_down() {
        let mut links = RemoteLinks::given(&[route(7)]);
        for port in 0..LEARNED_MAX as u16 {
            let learned = links.learn(route(100 + port), 0, |_| true);
            assert_eq!(learned.ok(), Some((usize::from(port) + 1, true)));
        }
        assert_eq!(links.learn(route(100), 0, |_| true).ok(), Some((1, false)));
        assert!(matches!(links.learn(route(200), 0, |_| true), Err(Discard::AnswerOverflow)));
        assert_eq!(links.learn(route(200), 0, |at| at != 3).ok(), Some((3, true)));
        assert_eq!(links.learn(route(201), 0, |at| at != 0).ok(), None, "what was given stays");
        assert_eq!(links[0].route, route(7));
    }
}
