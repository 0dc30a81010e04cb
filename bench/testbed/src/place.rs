//! The addresses of both ends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Sender,
    Receiver,
}

/// Addresses of a flow, one per link and end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Links between the guest's two network namespaces.
    Guest,
    /// This machine's loopback interface, with separate addresses for each number.
    Loopback(u8),
}

impl Place {
    /// Returns the address of an end on a link.
    pub(crate) fn address(self, end: End, link: u8) -> SocketAddr {
        let host = match end {
            End::Sender => 1,
            End::Receiver => 2,
        };
        let ip = match self {
            Self::Guest => IpAddr::V4(Ipv4Addr::new(10, 0, link, host)),
            Self::Loopback(number) => IpAddr::V4(Ipv4Addr::new(127, number, 1 + link, host)),
        };
        SocketAddr::new(ip, PORT)
    }
}

const PORT: u16 = 9000;
