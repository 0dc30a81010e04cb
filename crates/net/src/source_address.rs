//! The source address that the system would use, which shows its routes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, Protocol, Socket, Type};

use crate::socket::Local;

/// Returns the source address of a datagram through `local` to `to`; `None` without a route.
pub(crate) fn source(local: &Local, to: SocketAddr) -> Option<IpAddr> {
    let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP)).ok()?;
    if let Local::Interface(name) = local {
        socket.bind_device(Some(name.as_bytes())).ok()?;
    }
    socket.connect(&to.into()).ok()?;
    Some(socket.local_addr().ok()?.as_socket()?.ip())
}

/// Returns whether this machine now has an IPv6 route and no IPv4 route.
pub fn is_ipv6_only() -> bool {
    let any = Local::default();
    let [six, four] = ANYWHERE.map(|anywhere| source(&any, anywhere).is_some());
    six && !four
}

/// Error text for an IPv4 address if [`is_ipv6_only`] holds.
pub const IPV4_ON_IPV6: &str = "it is an IPv4 address and this machine has only IPv6: give the \
                                server's name, which works through the network's NAT64, or its \
                                IPv6 address";

/// Documentation addresses that represent any IPv6 or IPv4 address: nothing is sent there.
pub(crate) const ANYWHERE: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 9),
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 9),
];
