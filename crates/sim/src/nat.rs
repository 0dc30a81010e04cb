//! A network address translator, by its mapping and filtering behaviour ([RFC4787]).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use tautline_units::{Duration, Instant};

/// Dependence of a NAT's mapping or filtering on the remote endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// Endpoint-independent: the remote endpoint does not matter.
    Nothing,
    /// Address-dependent: the remote address matters, its port does not.
    Address,
    /// Address- and port-dependent: remote address and port matter.
    AddressAndPort,
}

impl By {
    /// All kinds of dependence.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Address, Self::AddressAndPort];

    /// Returns the part of `remote` by which a translator of this kind distinguishes; `None` if it
    /// does not distinguish at all.
    fn part(self, remote: SocketAddr) -> Option<(IpAddr, Option<u16>)> {
        match self {
            Self::Nothing => None,
            Self::Address => Some((remote.ip(), None)),
            Self::AddressAndPort => Some((remote.ip(), Some(remote.port()))),
        }
    }
}

/// Parameters of a simulated network address translator (NAT).
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Mapping behaviour for outgoing datagrams.
    pub mapping: By,
    /// Filtering behaviour for incoming datagrams.
    pub filtering: By,
    /// External address, which all translated datagrams have as their source.
    pub outside: IpAddr,
    /// Lifetime of a mapping without outgoing datagrams.
    pub lifetime: Duration,
}

/// A translator between internal addresses and one external address.
///
/// Only outgoing datagrams refresh a mapping; incoming ones do not ([RFC4787] REQ-6). Each mapping
/// filters by the destinations of its own outgoing datagrams.
#[derive(Debug, Clone)]
pub struct Nat {
    config: Config,
    mappings: BTreeMap<Key, Mapping>,
    next_port: u16,
}

/// Key of a mapping: internal endpoint, and the part of the remote endpoint that it depends on.
type Key = (SocketAddr, Option<(IpAddr, Option<u16>)>);

#[derive(Debug, Clone)]
struct Mapping {
    port: u16,
    /// Remote endpoints to which the mapping has sent, by the part that the filter distinguishes.
    let_in: BTreeSet<Option<(IpAddr, Option<u16>)>>,
    used_at: Instant,
}

impl Nat {
    /// Creates a network address translator without mappings.
    pub fn new(config: Config) -> Self {
        Self { config, mappings: BTreeMap::new(), next_port: FIRST_PORT }
    }

    /// Translates an outgoing datagram, and returns the source address that the other end sees.
    /// Creates or refreshes its mapping, which lets answers from `to` in, and removes expired ones.
    pub fn outbound(&mut self, from: SocketAddr, to: SocketAddr, now: Instant) -> SocketAddr {
        let Config { mapping, filtering, outside, lifetime } = self.config;
        self.mappings.retain(|_, mapping| now.since(mapping.used_at) < lifetime);
        let next_port = &mut self.next_port;
        let mapping = self.mappings.entry((from, mapping.part(to))).or_insert_with(|| {
            *next_port = next_port.checked_add(PORT_STEP).unwrap_or(FIRST_PORT);
            Mapping { port: *next_port, let_in: BTreeSet::new(), used_at: now }
        });
        mapping.used_at = now;
        mapping.let_in.insert(filtering.part(to));
        SocketAddr::new(outside, mapping.port)
    }

    /// Translates an incoming datagram, and returns its internal destination, or `None` if it is
    /// dropped: `to` belongs to no mapping, or to an expired one, or the mapping's filter refuses
    /// `from`.
    pub fn inbound(&self, from: SocketAddr, to: SocketAddr, now: Instant) -> Option<SocketAddr> {
        let Config { filtering, outside, lifetime, .. } = self.config;
        let is_its = |mapping: &Mapping| {
            to == SocketAddr::new(outside, mapping.port)
                && now.since(mapping.used_at) < lifetime
                && mapping.let_in.contains(&filtering.part(from))
        };
        let found = self.mappings.iter().find(|(_, mapping)| is_its(mapping));
        found.map(|((inside, _), _)| *inside)
    }

    /// Clears all mappings, as a restart does; new ones get other ports.
    pub fn rebind(&mut self) {
        self.mappings.clear();
    }
}

const FIRST_PORT: u16 = 20_000;
/// Difference of the ports of two successive mappings: above 1, so that a port cannot be predicted
/// from its neighbour.
const PORT_STEP: u16 = 7;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nat(mapping: By, filtering: By) -> Nat {
        let (outside, lifetime) = ("198.51.100.1".parse().unwrap(), Duration::from_secs(30));
        Nat::new(Config { mapping, filtering, outside, lifetime })
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_translator_maps_and_filters_by_what_it_goes_by() {
        let (inside, near, port, far) =
            (at("10.0.0.1:5"), at("192.0.2.1:1"), at("192.0.2.1:2"), at("192.0.2.2:1"));
        for mapping in By::ALL {
            for filtering in By::ALL {
                let mut nat = nat(mapping, filtering);
                let mapped = nat.outbound(inside, near, Instant::ZERO);
                let lets = [near, port, far]
                    .map(|from| nat.inbound(from, mapped, Instant::ZERO).is_some());
                let expected = match filtering {
                    By::Nothing => [true, true, true],
                    By::Address => [true, true, false],
                    By::AddressAndPort => [true, false, false],
                };
                assert_eq!(lets, expected, "{filtering:?}");
                let same =
                    [near, port, far].map(|to| nat.outbound(inside, to, Instant::ZERO) == mapped);
                let expected = match mapping {
                    By::Nothing => [true, true, true],
                    By::Address => [true, true, false],
                    By::AddressAndPort => [true, false, false],
                };
                assert_eq!(same, expected, "{mapping:?}");
            }
        }
    }

    #[test]
    fn a_mapping_lasts_as_long_as_datagrams_leave_by_it() {
        let (inside, far) = (at("10.0.0.1:5"), at("192.0.2.1:1"));
        let mut nat = nat(By::Nothing, By::Nothing);
        let mapped = nat.outbound(inside, far, Instant::ZERO);
        assert_eq!(nat.inbound(far, mapped, Instant::from_millis(29_999)), Some(inside));
        assert_eq!(nat.inbound(far, mapped, Instant::from_millis(30_000)), None);
        assert_ne!(nat.outbound(inside, far, Instant::from_millis(30_000)), mapped);
        let mapped = nat.outbound(inside, far, Instant::from_millis(30_000));
        nat.rebind();
        assert_eq!(nat.inbound(far, mapped, Instant::from_millis(30_000)), None);
    }

    proptest! {
        #[test]
        fn inbound_packets_reach_the_mappings_owner(
            out in prop::collection::vec((0..4_u16, 0..4_u16), 1..60),
        ) {
            let mut nat = nat(By::AddressAndPort, By::Address);
            for (from, to) in out {
                let inside = SocketAddr::from(([10, 0, 0, 1], 5 + from));
                let far = SocketAddr::from(([192, 0, 2, 1], 1 + to));
                let mapped = nat.outbound(inside, far, Instant::ZERO);
                prop_assert_eq!(nat.inbound(far, mapped, Instant::ZERO), Some(inside));
            }
        }
    }
}
