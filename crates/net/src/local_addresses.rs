//! Local addresses that a peer has called: a wildcard socket has several.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tautline_units::Instant;

/// Local address that each link of a peer called last, by the peer's address; answers use it as
/// their source.
///
/// Only the called end stores entries. The calling end leaves the choice to the kernel, whose
/// routes may change.
#[derive(Debug, Default)]
pub(crate) struct LocalAddresses(BTreeMap<(SocketAddr, u8), Entry>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    local: IpAddr,
    heard_at: Instant,
    /// `true` after the socket's route changed: the kernel then chooses the source address, until
    /// the link calls another one.
    is_left: bool,
}

impl LocalAddresses {
    /// Records that an authentic datagram of `remote` arrived at `local`. Beyond [`ENTRIES_MAX`]
    /// the entry that was heard longest ago is dropped.
    pub(crate) fn note(
        &mut self,
        remote: SocketAddr,
        datagram: &[u8],
        local: IpAddr,
        now: Instant,
    ) {
        let key = (remote, link(datagram));
        let is_left = self.0.get(&key).is_some_and(|entry| entry.is_left && entry.local == local);
        if self.0.len() >= ENTRIES_MAX && !self.0.contains_key(&key) {
            let oldest = self.0.iter().min_by_key(|(_, entry)| entry.heard_at);
            let oldest = oldest.map(|(key, _)| *key);
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
        self.0.insert(key, Entry { local, heard_at: now, is_left });
    }

    /// Returns the source address for `datagram`; `None` leaves the choice to the kernel, also when
    /// the link's last call is older than [`HEARD_MAX`].
    pub(crate) fn local(
        &self,
        remote: SocketAddr,
        datagram: &[u8],
        now: Instant,
    ) -> Option<IpAddr> {
        let entry = self.0.get(&(remote, link(datagram)))?;
        (!entry.is_left && now.since(entry.heard_at) < HEARD_MAX).then_some(entry.local)
    }

    /// Leaves the choice to the kernel for this peer and link, because the address has gone.
    pub(crate) fn forget(&mut self, remote: SocketAddr, datagram: &[u8]) {
        self.0.remove(&(remote, link(datagram)));
    }

    /// Leaves the choice to the kernel for every link until it calls another address, because the
    /// socket's route has changed.
    pub(crate) fn leave(&mut self) {
        self.0.values_mut().for_each(|entry| entry.is_left = true);
    }
}

/// Returns the link of a session's datagram, in the first byte in every version.
// protocol 3
fn link(datagram: &[u8]) -> u8 {
    datagram.first().map_or(0, |head| head & 0x0f)
}

/// Maximum entries: the sixteen links of a session, each before and after a change of address, and
/// those of the successor session.
const ENTRIES_MAX: usize = 64;
/// Time without a datagram from a link after which the kernel chooses the source address again: the
/// called one may be the cause. A live link has at least five pings a second.
const HEARD_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_link_is_answered_from_the_local_address_it_used() {
        let (mut called, at) = (LocalAddresses::default(), Instant::from_millis);
        let remote: SocketAddr = "192.0.2.9:7".parse().unwrap();
        let [one, other]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|it| it.parse().unwrap());
        called.note(remote, &[0x21], one, at(0));
        called.note(remote, &[0x22], other, at(500));
        assert_eq!(called.local(remote, &[0x31], at(600)), Some(one));
        assert_eq!(called.local(remote, &[0x32], at(600)), Some(other));
        assert_eq!(called.local(remote, &[0x33], at(600)), None);
        assert_eq!(called.local("192.0.2.9:8".parse().unwrap(), &[0x31], at(600)), None);
        assert_eq!(called.local(remote, &[0x31], at(1_000)), None, "silent for a second");
        called.forget(remote, &[0x32]);
        assert_eq!(called.local(remote, &[0x32], at(600)), None);
    }

    #[test]
    fn after_a_route_change_the_kernel_chooses_the_source_address() {
        let (mut called, at) = (LocalAddresses::default(), Instant::from_millis);
        let remote: SocketAddr = "192.0.2.9:7".parse().unwrap();
        let [one, other]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|it| it.parse().unwrap());
        called.note(remote, &[1], one, at(0));
        called.leave();
        called.note(remote, &[1], one, at(10));
        assert_eq!(called.local(remote, &[1], at(20)), None);
        called.note(remote, &[1], other, at(30));
        assert_eq!(called.local(remote, &[1], at(40)), Some(other));
    }

    #[test]
    fn a_peer_that_moves_without_end_takes_no_more_room() {
        let mut called = LocalAddresses::default();
        let local = "10.0.0.1".parse().unwrap();
        for port in 1..2_000 {
            let remote = SocketAddr::from(([192, 0, 2, 9], port));
            called.note(remote, &[1], local, Instant::from_millis(port.into()));
            assert!(called.0.len() <= ENTRIES_MAX);
        }
        let newest = SocketAddr::from(([192, 0, 2, 9], 1_999));
        assert_eq!(called.local(newest, &[1], Instant::from_millis(2_000)), Some(local));
    }
}
