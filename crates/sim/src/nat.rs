//! A network address translator, by what it goes by ([RFC4787]).

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use tautline_units::{Duration, Instant};

/// What a NAT goes by when it maps an address, or lets a datagram in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// Nothing of the other end.
    Nothing,
    /// The other end's address.
    Address,
    /// The other end's address and port.
    AddressAndPort,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Nothing, Self::Address, Self::AddressAndPort];

    /// Returns the part of `remote` that counts.
    fn part(self, remote: SocketAddr) -> Option<(IpAddr, Option<u16>)> {
        match self {
            Self::Nothing => None,
            Self::Address => Some((remote.ip(), None)),
            Self::AddressAndPort => Some((remote.ip(), Some(remote.port()))),
        }
    }
}

/// Parameters of a translator.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Which mapping a datagram out gets.
    pub mapping: By,
    /// Which datagrams come in by a mapping.
    pub filtering: By,
    /// Its own address.
    pub outside: IpAddr,
    /// For how long a mapping lasts of which nothing leaves.
    pub lifetime: Duration,
}

/// A translator between the addresses inside and its own.
///
/// A mapping lasts as long as datagrams leave by it; what comes in does not keep it ([RFC4787] REQ-6).
/// What a mapping lets in goes by what left through that very mapping.
#[derive(Debug, Clone)]
pub struct Nat {
    config: Config,
    mappings: BTreeMap<Key, Mapping>,
    next_port: u16,
}

/// Who maps, and the part of the other end that the mapping goes by.
type Key = (SocketAddr, Option<(IpAddr, Option<u16>)>);

#[derive(Debug, Clone)]
struct Mapping {
    port: u16,
    /// The parts of the other ends that the filter goes by.
    let_in: BTreeSet<Option<(IpAddr, Option<u16>)>>,
    used_at: Instant,
}

impl Nat {
    /// Makes a translator that has mapped nothing.
    pub fn new(config: Config) -> Self {
        Self { config, mappings: BTreeMap::new(), next_port: FIRST_PORT }
    }

    /// Takes a datagram out, and returns the address that it comes from at the other end.
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

    /// Takes a datagram in, and returns whom it is for; `None`: it is dropped.
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

    /// Forgets every mapping: the next ones have other ports.
    pub fn rebind(&mut self) {
        self.mappings.clear();
    }
}

const FIRST_PORT: u16 = 20_000;
/// So that no mapping is guessed by its neighbour.
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
        fn what_comes_in_is_for_whom_the_mapping_is(
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
