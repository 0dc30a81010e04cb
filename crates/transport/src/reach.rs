//! Connectivity between two ends: the addresses of each, and the candidate pairs that they form.
//!
//! Each end finds its own addresses ([`Gatherer`]), and the lease brings it those of the other. The
//! initiator tries the candidate pairs that [`candidate_pairs()`] forms of both. The responder
//! punches holes, so that its own NAT admits the initiator. docs/protocol.md, section 10.

mod address;
mod behaviour;
mod candidate;
mod gatherer;

use std::net::SocketAddr;

pub use address::{is_told, reaches};
pub use behaviour::{Behaviour, Discovery, Found};
pub use candidate::{Candidate, Kind};
pub use gatherer::Gatherer;

use crate::link::Route;
use candidate::RANK_RELAYED;

/// A candidate pair: a route that may reach the peer, with its rank within its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CandidatePair {
    /// Local socket and remote address to try.
    pub route: Route,
    /// Group of the pairs between the same two sockets; all but one of a group are on standby.
    pub group: u16,
    /// Preference within the group; lower is better.
    pub rank: u8,
}

impl CandidatePair {
    /// Creates the candidate pair for a relay at `route`, to the peer's first socket.
    pub fn relayed(route: Route) -> Self {
        let rank = RANK_RELAYED + u8::from(route.remote.is_ipv4());
        Self { route, group: group(route.socket, 0), rank }
    }

    /// Creates the candidate pair for a route, to the peer's socket with index `end`, that the peer
    /// did not send as a candidate.
    pub(crate) fn learned(route: Route, end: u8) -> Self {
        Self { route, group: group(route.socket, end), rank: RANK_LEARNED }
    }
}

/// Returns the candidate pairs of our sockets, bound to `locals`, and the peer's candidates: the
/// best pair of each group, then the second best of each, and so on, at most `most` pairs in all.
/// Pairs that cannot reach the peer are left out.
pub fn candidate_pairs(
    locals: &[SocketAddr],
    candidates: &[Candidate],
    most: usize,
) -> Vec<CandidatePair> {
    let mut groups: Vec<Vec<CandidatePair>> = Vec::new();
    for (socket, local) in (0..=u8::MAX).zip(locals) {
        for candidate in candidates.iter().filter(|candidate| reaches(local, &candidate.address)) {
            let pair = CandidatePair {
                route: Route { socket, remote: candidate.address },
                group: group(socket, candidate.end),
                rank: candidate.rank(),
            };
            match groups.iter_mut().find(|pairs| pairs[0].group == pair.group) {
                Some(pairs) if pairs.iter().any(|known| known.route == pair.route) => {}
                Some(pairs) => pairs.push(pair),
                None => groups.push(vec![pair]),
            }
        }
    }
    groups.iter_mut().for_each(|pairs| pairs.sort_by_key(|pair| pair.rank));
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    let turns =
        (0..longest).flat_map(|turn| groups.iter().filter_map(move |pairs| pairs.get(turn)));
    turns.copied().take(most).collect()
}

fn group(socket: u8, end: u8) -> u16 {
    u16::from_be_bytes([socket, end])
}

/// Maximum number of candidate pairs from the lease; the rest of the sixteen links is for learned
/// ones.
pub const CANDIDATE_PAIRS_MAX: usize = 12;
/// Rank behind every direct candidate pair from the lease, and before every relayed one.
const RANK_LEARNED: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(kind: Kind, end: u8, address: &str) -> Candidate {
        Candidate { kind, end, address: address.parse().unwrap() }
    }

    #[test]
    fn the_best_candidate_pair_of_each_socket_pair_comes_first() {
        let locals = ["[::]:5".parse().unwrap(), "192.0.2.1:6".parse().unwrap()];
        let candidates = [
            candidate(Kind::Relayed, 0, "198.51.100.9:1"),
            candidate(Kind::Reflexive, 0, "198.51.100.7:7"),
            candidate(Kind::Host, 0, "[2001:db8::1]:7"),
            candidate(Kind::Host, 0, "10.0.0.1:7"),
        ];
        let found = candidate_pairs(&locals, &candidates, 5);
        let told: Vec<_> =
            found.iter().map(|pair| (pair.route.socket, pair.route.remote.to_string())).collect();
        let expected = [
            (0, "[2001:db8::1]:7"),
            (1, "10.0.0.1:7"),
            (0, "10.0.0.1:7"),
            (1, "198.51.100.7:7"),
            (0, "198.51.100.7:7"),
        ];
        assert_eq!(told, expected.map(|(socket, to)| (socket, to.to_owned())));
        assert_eq!(found[0].group, found[2].group);
        assert_ne!(found[0].group, found[1].group);
    }
}
