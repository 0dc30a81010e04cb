//! Reachability of addresses.

use std::net::{IpAddr, SocketAddr};

/// Returns whether a datagram from a socket bound to `local` can reach `remote`. The families must
/// match, unless the socket is bound to the IPv6 wildcard. A socket bound to a loopback address
/// reaches only loopback, one bound to another address all but loopback, one bound to the wildcard
/// both. Nothing reaches the wildcard or port 0.
pub fn reaches(local: &SocketAddr, remote: &SocketAddr) -> bool {
    let any = local.ip().is_unspecified();
    let both = any && local.is_ipv6();
    (both || local.is_ipv4() == remote.is_ipv4())
        && (any || local.ip().is_loopback() == remote.ip().is_loopback())
        && !remote.ip().is_unspecified()
        && remote.port() != 0
}

/// Returns whether `ip` is worth sending to the other end as a candidate: it is not a wildcard,
/// multicast or link-local address.
pub fn is_told(ip: IpAddr) -> bool {
    let scoped = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    !(scoped || ip.is_unspecified() || ip.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_without_meaning_elsewhere_are_not_announced() {
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
