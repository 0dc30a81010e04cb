//! UDP sockets, one per local interface.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use anyhow::bail;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
use serde::{Deserialize, Serialize, Serializer};
use socket2::{Domain, Protocol, Socket, Type};

use crate::refused::Refused;

/// Local end of a UDP socket: an address, or a network interface by name.
///
/// Text form: `192.0.2.7:0`, `[2001:db8::7]:7000`, `[::]:7000` for both families, or an interface
/// such as `wwan0` (any free port on it, both families).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Local {
    /// A local address; port 0 takes any free one.
    Address(SocketAddr),
    /// All traffic through this interface, regardless of the routing table.
    Interface(String),
}

impl Local {
    /// Opens the socket, non-blocking, with buffers for bursts.
    ///
    /// # Errors
    /// When the address is in use or not of this machine, the interface does not exist, or this
    /// process may not bind to it; the text names the address or interface, and usually a remedy.
    pub fn open(&self) -> anyhow::Result<mio::net::UdpSocket> {
        self.open_on(match self {
            Self::Address(address) => address.port(),
            Self::Interface(_) => 0,
        })
    }

    /// Returns the configured address: the wildcard address for an interface.
    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Address(address) => *address,
            Self::Interface(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        }
    }

    /// Opens the socket as [`Local::open`] does, on this port.
    pub(crate) fn open_on(&self, port: u16) -> anyhow::Result<mio::net::UdpSocket> {
        let socket = self.bind(port).map_err(|cause| {
            let help = match (self, cause.kind()) {
                (_, io::ErrorKind::AddrInUse) => "another program uses the port",
                (Self::Address(_), io::ErrorKind::AddrNotAvailable) => {
                    "no interface of this machine has the address"
                }
                (Self::Interface(_), io::ErrorKind::PermissionDenied) => {
                    "binding to an interface needs root or CAP_NET_RAW"
                }
                (Self::Interface(_), _) => "`ip link` lists the interfaces",
                (Self::Address(_), _) => "",
            };
            Refused::new(format!("cannot open a UDP socket on {self}"), cause, help)
        })?;
        Ok(mio::net::UdpSocket::from_std(socket.into()))
    }

    /// Binds to both families if the settings allow both, or to IPv4 if the system lacks IPv6.
    fn bind(&self, port: u16) -> io::Result<Socket> {
        let (ip, family_is_open) = match self {
            Self::Address(address) => (address.ip(), address.ip() == Ipv6Addr::UNSPECIFIED),
            Self::Interface(_) => (Ipv6Addr::UNSPECIFIED.into(), true),
        };
        match self.bind_to(SocketAddr::new(ip, port)) {
            Err(error) if family_is_open && lacks_family(&error) => {
                self.bind_to(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))
            }
            bound => bound,
        }
    }

    fn bind_to(&self, address: SocketAddr) -> io::Result<Socket> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.ip() == Ipv6Addr::UNSPECIFIED {
            socket.set_only_v6(false)?;
            sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
        }
        if let Self::Interface(name) = self {
            socket.bind_device(Some(name.as_bytes()))?;
        }
        // The kernel limits these by rmem_max and wmem_max; smaller buffers still work.
        let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
        let _ = socket.set_send_buffer_size(BUFFER_BYTES);
        // A datagram beyond the path MTU is lost instead of fragmented: the session discovers the
        // maximum by itself, without the kernel's estimates.
        match address {
            SocketAddr::V4(_) => {
                sockopt::set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
            }
            SocketAddr::V6(_) => {
                sockopt::set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
            }
        }
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Ok(socket)
    }
}

impl Default for Local {
    /// Returns the wildcard address of both families with any port.
    fn default() -> Self {
        Self::Address(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
    }
}

impl FromStr for Local {
    type Err = anyhow::Error;
    fn from_str(text: &str) -> anyhow::Result<Self> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Address(address));
        }
        let name_like = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !text.is_empty() && text.len() < 16 && text.chars().all(name_like) {
            return Ok(Self::Interface(text.to_owned()));
        }
        bail!("{text:?} is neither an address with a port (192.0.2.7:0) nor an interface (wwan0)")
    }
}

impl TryFrom<String> for Local {
    type Error = anyhow::Error;
    fn try_from(text: String) -> anyhow::Result<Self> {
        text.parse()
    }
}

impl Serialize for Local {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Address(address) => to.collect_str(address),
            Self::Interface(name) => to.serialize_str(name),
        }
    }
}

impl std::fmt::Display for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Interface(name) => write!(f, "interface {name}"),
        }
    }
}

/// Returns whether `error` shows that the system has no IPv6, or none at present.
fn lacks_family(error: &io::Error) -> bool {
    let lacks = [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|error| lacks.contains(&error))
}

/// Requested size of a socket's buffer in each direction: a tenth of a second at 80 Mbit/s.
const BUFFER_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_end_is_an_address_or_an_interface() {
        assert_eq!(
            "127.0.0.1:0".parse::<Local>().unwrap(),
            Local::Address("127.0.0.1:0".parse().unwrap())
        );
        assert_eq!("wwan0".parse::<Local>().unwrap(), Local::Interface("wwan0".into()));
        assert!("no such thing".parse::<Local>().is_err());
        assert!("127.0.0.1:port".parse::<Local>().is_err());
    }

    #[test]
    fn a_datagram_beyond_the_mtu_is_refused_not_fragmented() {
        for local in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(socket) = local.parse::<Local>().unwrap().open() else { continue };
            let to = socket.local_addr().unwrap();
            assert!(socket.send_to(&[0; 1_500], to).is_ok());
            // Larger than any loopback's 65,536 bytes with headers.
            let error = socket.send_to(&[0; 65_520], to).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MSGSIZE.raw_os_error()));
        }
    }

    #[test]
    fn a_port_in_use_is_reported_as_such() {
        let first = "127.0.0.1:0".parse::<Local>().unwrap().open().unwrap();
        let taken = Local::Address(first.local_addr().unwrap());
        let error = format!("{:#}", taken.open().unwrap_err());
        assert!(error.ends_with("(os error 98): another program uses the port"), "{error}");
    }
}
