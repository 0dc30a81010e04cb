//! How two ends find a way to each other: the addresses of each, and the ways that these make.
//!
//! Each end finds its own addresses ([`Gatherer`]); the lease brings each end the other's; the initiator
//! tries the ways that [`ways`] makes of both, and the responder knocks, so that its own NAT lets the
//! initiator in. docs/protocol.md, section 10.

mod behaviour;
mod gatherer;

use std::net::{IpAddr, SocketAddr};

pub use behaviour::{Behaviour, Discovery, Found};
pub use gatherer::Gatherer;

use crate::link::Route;

/// An address at which an end may be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Candidate {
    /// Where it comes from.
    pub kind: Kind,
    /// Which of the end's sockets it leads to: candidates of one are ways of one link.
    pub end: u8,
    /// The address.
    pub address: SocketAddr,
}

/// Where a candidate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An interface has it.
    Host,
    /// A server saw it: that of a NAT before the end.
    Reflexive,
    /// A relay's, which forwards what comes there.
    Relayed,
}

/// A route that may reach the peer, and what it is worth among the others of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// From which socket to which address.
    pub route: Route,
    /// The ways of one group are alternatives: media takes one of them.
    pub group: u16,
    /// The smaller the better.
    pub rank: u8,
}

impl Candidate {
    /// Returns what a way to it is worth: direct before relayed, IPv6 before IPv4, no NAT before one.
    pub fn rank(&self) -> u8 {
        let four = u8::from(self.address.is_ipv4());
        match self.kind {
            Kind::Host => four,
            Kind::Reflexive => 2 + four,
            Kind::Relayed => RANK_RELAYED + four,
        }
    }
}

impl Way {
    /// Makes the way through a relay at `route`, to the peer's first socket.
    pub fn relayed(route: Route) -> Self {
        let rank = RANK_RELAYED + u8::from(route.remote.is_ipv4());
        Self { route, group: group(route.socket, 0), rank }
    }

    /// Makes the way that the peer has been found to come by, though nobody told it.
    pub(crate) fn learned(route: Route, end: u8) -> Self {
        Self { route, group: group(route.socket, end), rank: RANK_LEARNED }
    }
}

/// Returns the ways from our sockets to the peer's candidates, at most `most`: of each pair of sockets
/// the best first, and then the next of each.
pub fn ways(locals: &[SocketAddr], candidates: &[Candidate], most: usize) -> Vec<Way> {
    let mut groups: Vec<Vec<Way>> = Vec::new();
    for (socket, local) in (0..=u8::MAX).zip(locals) {
        for candidate in candidates.iter().filter(|candidate| reaches(local, &candidate.address)) {
            let way = Way {
                route: Route { socket, remote: candidate.address },
                group: group(socket, candidate.end),
                rank: candidate.rank(),
            };
            match groups.iter_mut().find(|ways| ways[0].group == way.group) {
                Some(ways) if ways.iter().any(|known| known.route == way.route) => {}
                Some(ways) => ways.push(way),
                None => groups.push(vec![way]),
            }
        }
    }
    groups.iter_mut().for_each(|ways| ways.sort_by_key(|way| way.rank));
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    let turns = (0..longest).flat_map(|turn| groups.iter().filter_map(move |ways| ways.get(turn)));
    turns.copied().take(most).collect()
}

/// Returns whether a datagram from a socket bound to `local` can reach `remote`: of one family, or from
/// a socket of both, and loopback only with loopback.
pub fn reaches(local: &SocketAddr, remote: &SocketAddr) -> bool {
    let any = local.ip().is_unspecified();
    let both = any && local.is_ipv6();
    (both || local.is_ipv4() == remote.is_ipv4())
        && (any || local.ip().is_loopback() == remote.ip().is_loopback())
        && !remote.ip().is_unspecified()
        && remote.port() != 0
}

/// Returns whether others may reach `ip`: no wildcard, and no address that needs an interface beside it.
pub fn is_told(ip: IpAddr) -> bool {
    let scoped = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(scoped || ip.is_unspecified() || ip.is_multicast())
}

fn group(socket: u8, end: u8) -> u16 {
    u16::from_be_bytes([socket, end])
}

/// Most ways that are tried of those that the lease tells; the others are for those that are learned.
pub const WAYS_MAX: usize = 12;
/// Behind every direct way that was told, before every relayed one.
const RANK_LEARNED: u8 = 4;
const RANK_RELAYED: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(kind: Kind, end: u8, address: &str) -> Candidate {
        Candidate { kind, end, address: address.parse().unwrap() }
    }

    #[test]
    fn of_each_pair_of_sockets_the_best_way_comes_first() {
        let locals = ["[::]:5".parse().unwrap(), "192.0.2.1:6".parse().unwrap()];
        let candidates = [
            candidate(Kind::Relayed, 0, "198.51.100.9:1"),
            candidate(Kind::Reflexive, 0, "198.51.100.7:7"),
            candidate(Kind::Host, 0, "[2001:db8::1]:7"),
            candidate(Kind::Host, 0, "10.0.0.1:7"),
        ];
        let found = ways(&locals, &candidates, 5);
        let told: Vec<_> =
            found.iter().map(|way| (way.route.socket, way.route.remote.to_string())).collect();
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

    #[test]
    fn addresses_that_mean_nothing_elsewhere_are_not_told() {
        for (ip, told) in [
            ("10.0.0.1", true),
            ("2001:db8::1", true),
            ("127.0.0.1", true),
            ("0.0.0.0", false),
            ("169.254.1.2", false),
            ("fe80::1", false),
        ] {
            assert_eq!(is_told(ip.parse().unwrap()), told, "{ip}");
        }
    }
}
