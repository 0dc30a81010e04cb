use std::collections::BTreeMap;
use std::net::IpAddr;

use tautline_units::Instant;

use crate::connection_limit::network;

/// A rate limit for new handshakes, each of which costs a third of a millisecond.
#[derive(Debug, Default)]
pub(super) struct HandshakeLimit {
    second: u64,
    /// Number of handshakes admitted in this second, by network.
    taken: BTreeMap<IpAddr, u32>,
    total: u32,
}

impl HandshakeLimit {
    /// Returns whether a handshake from `address` may begin, and counts it if so.
    pub(super) fn admits(&mut self, address: IpAddr, now: Instant) -> bool {
        let second = now.as_millis() / 1_000;
        if second != self.second {
            *self = Self { second, ..Self::default() };
        }
        if self.total >= TOTAL_MAX {
            return false;
        }
        let taken = self.taken.entry(network(address)).or_default();
        if *taken >= NETWORK_MAX {
            return false;
        }
        (*taken, self.total) = (*taken + 1, self.total + 1);
        true
    }
}

/// Maximum handshakes per second from all networks, beyond which none is admitted: a fiftieth of a
/// core.
const TOTAL_MAX: u32 = 64;
/// Maximum handshakes per second from one network, beyond which none of it is admitted: half of a
/// vehicle's sixteen links reconnecting at once.
const NETWORK_MAX: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_from_one_network_keeps_no_other_out() {
        let (mut handshake_limit, now) = (HandshakeLimit::default(), Instant::from_millis(5_100));
        let flood = (0..1_000_u32).filter(|turn| {
            let address = format!("2001:db8::{turn:x}").parse().unwrap();
            handshake_limit.admits(address, now)
        });
        assert_eq!(flood.count(), 8);
        assert!(handshake_limit.admits("192.0.2.1".parse().unwrap(), now));
        let all = (0..=255_u8)
            .filter(|last| handshake_limit.admits([10, 0, 0, *last].into(), now))
            .count();
        assert_eq!(all, 64 - 9);
        assert!(handshake_limit.admits("192.0.2.1".parse().unwrap(), Instant::from_millis(6_000)));
    }
}
