use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use tautline_transport::Route;

/// Address of an end, in the form used by the switchboard.
///
/// Text form: `192.0.2.7:7000` for datagrams, `tls:192.0.2.7:443` over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// UDP datagrams.
    Datagrams(SocketAddr),
    /// TLS over TCP.
    Tls(SocketAddr),
}

impl Destination {
    /// Returns the remote address of a route, with the transport that the route uses.
    pub fn of(route: Route) -> Self {
        match route.stream_index() {
            Some(_) => Self::Tls(route.remote),
            None => Self::Datagrams(route.remote),
        }
    }

    /// Returns the address without the transport.
    pub fn address(&self) -> SocketAddr {
        match self {
            Self::Datagrams(address) | Self::Tls(address) => *address,
        }
    }

    /// Returns `address` with the transport of this destination.
    pub fn at(&self, address: SocketAddr) -> Self {
        match self {
            Self::Datagrams(_) => Self::Datagrams(address),
            Self::Tls(_) => Self::Tls(address),
        }
    }
}

impl FromStr for Destination {
    type Err = std::net::AddrParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix(TLS) {
            Some(address) => address.parse().map(Self::Tls),
            None => text.parse().map(Self::Datagrams),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datagrams(address) => write!(f, "{address}"),
            Self::Tls(address) => write!(f, "{TLS}{address}"),
        }
    }
}

const TLS: &str = "tls:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_read_as_it_is_written() {
        for text in ["192.0.2.7:7000", "tls:192.0.2.7:443", "tls:[2001:db8::7]:443"] {
            assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
        }
        let remote = "192.0.2.7:443".parse().unwrap();
        assert_eq!(Destination::of(Route::stream(0, remote)).to_string(), "tls:192.0.2.7:443");
        assert_eq!(Destination::of(Route { socket: 0, remote }).to_string(), "192.0.2.7:443");
        for text in ["tls:", "tls:192.0.2.7", "udp:192.0.2.7:1", "tls:tls:192.0.2.7:1", ""] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
