//! Limits on the number of one server's simultaneous connections.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use crate::open_files;

/// Simultaneous connections by the class of their holder.
///
/// A holder without a proof of a listed key `K` is *unproven*. Unproven connections have a limit
/// per network, so that a flood from one does not exclude others. A new connection is never refused
/// for idle ones: if the places of its network, or all, are taken, it evicts the oldest. A holder
/// with a proof of a listed key has separate places.
#[derive(Debug)]
pub struct ConnectionLimit<K> {
    listed: BTreeSet<K>,
    holders: BTreeMap<Place, Holder<K>>,
    next: u64,
    /// Maximum unproven connections of one network.
    network_max: usize,
    /// Maximum unproven connections of all networks together.
    unproven_max: usize,
    /// Number of refused and evicted connections.
    turned_away: u64,
}

/// Number of a place, never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place(u64);

impl Place {
    /// Placeholder without a place: no connection has this number.
    pub(crate) const NONE: Self = Self(u64::MAX);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder<K> {
    Unproven(IpAddr),
    Proven(K),
}

impl<K: Copy + Ord> ConnectionLimit<K> {
    /// Creates the limit without connections; each of the `listed` keys has places of its own.
    ///
    /// Unproven connections get at most a quarter of the files that this process may open, so that
    /// the rest is left for proven ones and for the process's own work.
    pub fn new(listed: impl IntoIterator<Item = K>) -> Self {
        Self {
            listed: listed.into_iter().collect(),
            holders: BTreeMap::new(),
            next: 0,
            network_max: open_files::share(16, UNPROVEN_MIN, NETWORK_MAX),
            unproven_max: open_files::share(4, UNPROVEN_MIN, UNPROVEN_MAX),
            turned_away: 0,
        }
    }

    /// Replaces the list of keys that have places of their own; connections keep their places.
    pub fn list(&mut self, listed: impl IntoIterator<Item = K>) {
        self.listed = listed.into_iter().collect();
    }

    /// Takes an unproven place for a connection from `remote`; also returns the place of the
    /// connection evicted for it, if any.
    pub fn take(&mut self, remote: IpAddr) -> (Place, Option<Place>) {
        let network = network(remote);
        let (own, all) = (Holder::Unproven(network), |holder: &Holder<K>| holder.is_unproven());
        let evicted = self
            .oldest_of(self.network_max, |holder| *holder == own)
            .or_else(|| self.oldest_of(self.unproven_max, all));
        if let Some(evicted) = evicted {
            self.turned_away += 1;
            self.holders.remove(&evicted);
        }
        let place = Place(self.next);
        self.next += 1;
        self.holders.insert(place, own);
        (place, evicted)
    }

    /// Evicts the oldest unproven connection, because the process has no file left for another, and
    /// returns its place; `None` if there is none.
    pub fn evict(&mut self) -> Option<Place> {
        let evicted = self.oldest_of(0, Holder::is_unproven)?;
        self.turned_away += 1;
        self.holders.remove(&evicted);
        Some(evicted)
    }

    /// Assigns `place` to `key`, which its holder has proven, if the key is listed, and returns
    /// `Some(true)`. Returns `Some(false)` if the key is not listed: the place stays unproven.
    /// Returns `None` if the key has reached its limit, or the place was evicted.
    pub fn prove(&mut self, place: Place, key: K) -> Option<bool> {
        match self.listed.contains(&key) {
            true => self.hold(place, key).map(|()| true),
            false => self.holders.contains_key(&place).then_some(false),
        }
    }

    /// Assigns `place` to `key`, listed or not; returns `None` if that key has reached its limit,
    /// or the place was evicted.
    pub fn hold(&mut self, place: Place, key: K) -> Option<()> {
        let held = self.count(Holder::Proven(key));
        let holder = self.holders.get_mut(&place)?;
        if *holder == Holder::Proven(key) {
            return Some(());
        }
        if held >= KEY_MAX {
            self.turned_away += 1;
            return None;
        }
        *holder = Holder::Proven(key);
        Some(())
    }

    /// Frees a place; does nothing if it was evicted.
    pub fn give_back(&mut self, place: Place) {
        self.holders.remove(&place);
    }

    /// Returns the number of refused and evicted connections.
    pub fn turned_away(&self) -> u64 {
        self.turned_away
    }

    fn count(&self, of: Holder<K>) -> usize {
        self.holders.values().filter(|holder| **holder == of).count()
    }

    /// Returns the oldest place whose holder satisfies `are`, if at least `most` places do.
    fn oldest_of(&self, most: usize, are: impl Fn(&Holder<K>) -> bool) -> Option<Place> {
        let mut places = self.holders.iter().filter(|(_, holder)| are(holder));
        let oldest = places.next().map(|(place, _)| *place)?;
        (places.count() + 1 >= most).then_some(oldest)
    }
}

impl<K> Holder<K> {
    fn is_unproven(&self) -> bool {
        matches!(self, Self::Unproven(_))
    }
}

/// Returns the part of `remote` that counts as one network: the whole of an IPv4 address, also of
/// one mapped to IPv6, or the first 64 bits of an IPv6 address with zeros after them.
pub fn network(remote: IpAddr) -> IpAddr {
    match remote.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => {
            Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into()
        }
    }
}

/// Maximum unproven connections from one network, beyond which the oldest is evicted: those of the
/// machines that start at the same time behind one NAT, with room for others there.
pub(crate) const NETWORK_MAX: usize = 64;
/// Maximum unproven connections in total, beyond which the oldest is evicted: each handshake takes
/// a few hundred milliseconds over a mobile link.
pub(crate) const UNPROVEN_MAX: usize = 256;
/// Minimum of both limits on unproven connections, in a process with very few files: the
/// connections that a browser opens at once.
const UNPROVEN_MIN: usize = 8;
/// Maximum connections per key, beyond which a further one is refused: one, its successor after a
/// restart, and two that are being closed.
const KEY_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use tautline_transport::crypto::{Identity, PublicKey};

    use super::*;

    fn address(number: u16) -> IpAddr {
        let [high, low] = number.to_be_bytes();
        [10, 0, high, low].into()
    }

    fn key(seed: u8) -> PublicKey {
        Identity::from_seed(&[seed; 32]).public()
    }

    #[test]
    fn a_flood_from_one_address_leaves_the_places_of_others() {
        let mut places = ConnectionLimit::new([key(1)]);
        let (first, _) = places.take(address(2));
        let evicted = (0..1_000).filter(|_| places.take(address(1)).1.is_some()).count();
        assert_eq!(
            (evicted, places.turned_away()),
            (1_000 - NETWORK_MAX, 1_000 - NETWORK_MAX as u64)
        );
        assert_eq!(places.prove(first, key(1)), Some(true), "it was there all the while");
        // Mapped addresses equal the ones that they map, and an IPv6 /64 counts as one network.
        assert!(places.take("::ffff:10.0.0.1".parse().unwrap()).1.is_some());
        let evicted = (0..100_u128).filter(|host| {
            let host = Ipv6Addr::from_bits((0x2001_0db8 << 96) + host);
            places.take(host.into()).1.is_some()
        });
        assert_eq!(evicted.count(), 100 - NETWORK_MAX);
        assert_eq!(places.take("2001:db8:0:1::1".parse().unwrap()).1, None);
    }

    #[test]
    fn a_flooding_address_evicts_its_oldest_unproven_connection() {
        let mut places = ConnectionLimit::new([key(1)]);
        for _ in 0..1_100 {
            places.take(address(1));
        }
        let (place, evicted) = places.take(address(1));
        assert!(evicted.is_some_and(|evicted| evicted < place));
        for _ in 1..NETWORK_MAX {
            assert_ne!(places.take(address(1)).1, Some(place));
        }
        assert_eq!(places.take(address(1)).1, Some(place));
        assert_eq!(places.prove(place, key(1)), None);
    }

    #[test]
    fn the_oldest_unproven_connection_is_evicted_never_a_proven_one() {
        let mut places = ConnectionLimit::new([key(1)]);
        let (own, _) = places.take(address(0));
        assert_eq!(places.prove(own, key(1)), Some(true));
        let mut taken = Vec::new();
        for number in 1..2_000 {
            let (place, evicted) = places.take(address(number));
            taken.push(place);
            let expected = taken.len().checked_sub(UNPROVEN_MAX + 1).map(|at| taken[at]);
            assert_eq!(evicted, expected);
        }
        assert_eq!(places.holders.len(), UNPROVEN_MAX + 1);
        assert!(places.holders.contains_key(&own));
        // An evicted holder has lost its place.
        assert_eq!(places.prove(taken[0], key(1)), None);
    }

    #[test]
    fn a_listed_key_has_a_reserved_quota_and_an_unlisted_one_none() {
        let mut places = ConnectionLimit::new([key(1)]);
        let mut take = |seed: u8| {
            let (place, _) = places.take(address(seed.into()));
            let is_its_own = places.prove(place, key(seed));
            if is_its_own.is_none() {
                places.give_back(place);
            }
            is_its_own
        };
        let own = (0..20).filter(|_| take(1) == Some(true)).count();
        assert_eq!(own, KEY_MAX);
        // An unlisted key is refused with a reason, from an unproven place.
        assert!((0..NETWORK_MAX).all(|_| take(2) == Some(false)));
        assert!(places.take(address(2)).1.is_some());
        assert_eq!(places.take(address(1)).1, None);
    }

    #[test]
    fn without_a_free_file_the_oldest_unproven_is_evicted() {
        let mut places = ConnectionLimit::new([key(1)]);
        let (own, _) = places.take(address(1));
        assert_eq!(places.prove(own, key(1)), Some(true));
        assert_eq!(places.evict(), None, "a proven one is kept");
        let (first, second) = (places.take(address(1)).0, places.take(address(2)).0);
        assert_eq!(places.evict(), Some(first));
        assert_eq!(places.evict(), Some(second));
        assert_eq!((places.evict(), places.turned_away()), (None, 2));
    }

    #[test]
    fn a_place_that_was_given_back_is_free() {
        let mut places = ConnectionLimit::<PublicKey>::new([]);
        for _ in 0..1_000 {
            let (place, _) = places.take(address(1));
            places.give_back(place);
            places.give_back(place);
        }
        assert_eq!(places.turned_away(), 0);
    }
}
