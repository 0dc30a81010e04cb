//! Datagrams between processes of one machine or one bus: a server, and clients that know its
//! address.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::bail;
use rustix::net::{SocketAddrUnix, bind};
use serde::{Deserialize, Serialize, Serializer};
use tautline_units::Ecn;

use crate::udp::{BUFFER_BYTES, Outgoing, Udp};

use crate::refused::Refused;

/// Address of a server: a path on this machine, or an address for UDP.
///
/// Text form: a path that contains a `/`, or `127.0.0.1:7500`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Address {
    /// A Unix datagram socket.
    Path(PathBuf),
    /// A UDP socket.
    Udp(SocketAddr),
}

/// The end with a known address, which receives from any sender; never blocks.
#[derive(Debug)]
pub struct Server(ServerSocket);

#[derive(Debug)]
enum ServerSocket {
    Unix(UnixDatagram, PathBuf),
    Udp(Box<Mutex<UdpServer>>),
}

/// A UDP socket, and data read from it but not yet returned: the kernel coalesces a sender's
/// datagrams (GRO).
#[derive(Debug)]
struct UdpServer {
    udp: Udp<UdpSocket>,
    buffer: Vec<u8>,
    waiting: VecDeque<Range<usize>>,
    /// Sender of the waiting datagrams, and the local address that they used.
    from: (SocketAddr, Option<IpAddr>),
}

/// Sender of a datagram to a [`Server`].
#[derive(Clone, Debug)]
pub struct Sender(SenderAddress);

#[derive(Clone, Debug)]
enum SenderAddress {
    Unix(UnixAddr),
    /// Remote address, and the local address that it used: a client accepts answers from that one
    /// only.
    Udp(SocketAddr, Option<IpAddr>),
}

/// The end that communicates with one server only; never blocks. It finds a server that starts
/// later, or again, by itself.
#[derive(Debug)]
pub struct Client {
    address: Address,
    socket: Option<ClientSocket>,
}

#[derive(Debug)]
enum ClientSocket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
}

impl Address {
    /// Returns the path, to change it; `None` for a UDP address.
    pub fn path_mut(&mut self) -> Option<&mut PathBuf> {
        match self {
            Self::Path(path) => Some(path),
            Self::Udp(_) => None,
        }
    }
}

impl Server {
    /// Opens a server; a path left by an earlier process is reused, with access for this user only.
    ///
    /// # Errors
    /// One line that names the address: another process or another machine has it, or the folder of
    /// the path does not exist.
    pub fn open(address: &Address) -> anyhow::Result<Self> {
        let socket = match address {
            Address::Path(path) => open_path(path).map(|it| ServerSocket::Unix(it, path.clone())),
            Address::Udp(address) => UdpSocket::bind(address)
                .and_then(UdpServer::new)
                .map(|server| ServerSocket::Udp(Box::new(Mutex::new(server)))),
        };
        let socket = socket.map_err(|cause| {
            let help = match (address, cause.kind()) {
                (_, ErrorKind::AddrInUse) => "another program listens there",
                (Address::Path(_), ErrorKind::NotFound) => "its folder does not exist",
                (Address::Udp(_), ErrorKind::AddrNotAvailable) => {
                    "no interface of this machine has the address"
                }
                (Address::Path(_) | Address::Udp(_), _) => "",
            };
            Refused::new(format!("cannot listen on {address}"), cause, help)
        })?;
        Ok(Self(socket))
    }

    /// Returns the address, with the port that the system chose if none was requested.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn local_address(&self) -> io::Result<Address> {
        match &self.0 {
            ServerSocket::Unix(_, path) => Ok(Address::Path(path.clone())),
            ServerSocket::Udp(server) => lock(server).udp.local_addr().map(Address::Udp),
        }
    }

    /// Receives the next datagram into `buffer`, truncated to its length; returns length and
    /// sender, or `None` if no datagram is waiting or [`ERRORS_MAX`] reads have failed.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<(usize, Sender)> {
        // An error of one datagram, such as a client that has gone, does not affect the next.
        for _ in 0..ERRORS_MAX {
            let received = match &self.0 {
                ServerSocket::Unix(socket, _) => {
                    socket.recv_from(buffer).map(|(n, from)| (n, SenderAddress::Unix(from)))
                }
                ServerSocket::Udp(server) => lock(server)
                    .receive(buffer)
                    .map(|(n, (remote, local))| (n, SenderAddress::Udp(remote, local))),
            };
            match received {
                Ok((length, from)) => return Some((length, Sender(from))),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => {}
            }
        }
        None
    }

    /// Sends a datagram; returns whether the system accepted it.
    pub fn send(&self, bytes: &[u8], to: &Sender) -> bool {
        let sent = match (&self.0, &to.0) {
            (ServerSocket::Unix(socket, _), SenderAddress::Unix(to)) => {
                socket.send_to_addr(bytes, to)
            }
            (ServerSocket::Udp(server), SenderAddress::Udp(to, from)) => {
                let (to, from, ecn) = (*to, *from, Ecn::NotEct);
                let answer = Outgoing { bytes, segment: None, to, from, ecn };
                return lock(server).udp.send(&answer).is_ok();
            }
            (ServerSocket::Unix(..), SenderAddress::Udp(..))
            | (ServerSocket::Udp(_), SenderAddress::Unix(_)) => return false,
        };
        sent.is_ok()
    }
}

impl UdpServer {
    fn new(socket: UdpSocket) -> io::Result<Self> {
        let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Ok(Self {
            udp: Udp::new(socket)?,
            buffer: vec![0; BUFFER_BYTES],
            waiting: VecDeque::new(),
            from: (nobody, None),
        })
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<(usize, (SocketAddr, Option<IpAddr>))> {
        let range = match self.waiting.pop_front() {
            Some(range) => range,
            None => {
                let received = self.udp.receive(&mut self.buffer)?;
                self.from = (received.remote, received.local);
                let mut end = 0;
                self.waiting.extend(received.datagrams(&self.buffer).map(|datagram| {
                    let begin = end;
                    end += datagram.len();
                    begin..end
                }));
                self.waiting.pop_front().unwrap_or_default()
            }
        };
        let length = range.len().min(into.len());
        into[..length].copy_from_slice(&self.buffer[range.start..range.start + length]);
        Ok((length, self.from))
    }
}

fn lock(server: &Mutex<UdpServer>) -> MutexGuard<'_, UdpServer> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Server {
    fn drop(&mut self) {
        if let ServerSocket::Unix(_, path) = &self.0 {
            // If this fails, the next server reuses the path.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl PartialEq for Sender {
    fn eq(&self, other: &Self) -> bool {
        use std::os::linux::net::SocketAddrExt;
        match (&self.0, &other.0) {
            (SenderAddress::Udp(this, _), SenderAddress::Udp(other, _)) => this == other,
            (SenderAddress::Unix(this), SenderAddress::Unix(other)) => {
                !this.is_unnamed()
                    && this.as_pathname() == other.as_pathname()
                    && this.as_abstract_name() == other.as_abstract_name()
            }
            (SenderAddress::Udp(..), SenderAddress::Unix(_))
            | (SenderAddress::Unix(_), SenderAddress::Udp(..)) => false,
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SenderAddress::Unix(address) => write!(f, "{address:?}"),
            SenderAddress::Udp(address, _) => write!(f, "{address}"),
        }
    }
}

impl Client {
    /// Creates a client of the server at `address`, which need not run yet.
    pub fn new(address: &Address) -> Self {
        Self { address: address.clone(), socket: None }
    }

    /// Receives the server's next datagram into `buffer`, truncated to its length; returns the
    /// length, or `None` if no datagram is waiting, nothing was sent yet, or [`ERRORS_MAX`] reads
    /// have failed.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        for _ in 0..ERRORS_MAX {
            let received = match self.socket.as_ref()? {
                ClientSocket::Unix(socket) => socket.recv(buffer),
                ClientSocket::Udp(socket) => socket.recv(buffer),
            };
            match received {
                Ok(length) => return Some(length),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(_) => {}
            }
        }
        None
    }

    /// Sends a datagram to the server, over a new socket if there is none; returns whether the
    /// system accepted it. A failure at a path, except of a full queue, closes the socket.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        if self.socket.is_none() {
            self.socket = self.connect().ok();
        }
        let sent = match &self.socket {
            Some(ClientSocket::Unix(socket)) => socket.send(bytes),
            Some(ClientSocket::Udp(socket)) => socket.send(bytes),
            None => return false,
        };
        match sent {
            Ok(_) => true,
            Err(error) => {
                // A restarted server at a path is a new socket.
                let is_gone = error.kind() != ErrorKind::WouldBlock;
                if is_gone && matches!(self.socket, Some(ClientSocket::Unix(_))) {
                    self.socket = None;
                }
                false
            }
        }
    }

    /// Opens a connected socket, which receives only from its server.
    fn connect(&self) -> io::Result<ClientSocket> {
        match &self.address {
            Address::Path(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.set_nonblocking(true)?;
                // The system assigns a name, for the server's answers.
                bind(&socket, &SocketAddrUnix::new_unnamed())?;
                socket.connect(path)?;
                Ok(ClientSocket::Unix(socket))
            }
            Address::Udp(address) => {
                let any = match address {
                    SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                    SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                };
                let socket = UdpSocket::bind(any)?;
                socket.set_nonblocking(true)?;
                socket.connect(address)?;
                Ok(ClientSocket::Udp(socket))
            }
        }
    }
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Udp(address));
        }
        if text.contains('/') {
            return Ok(Self::Path(text.into()));
        }
        bail!("{text:?} is neither an address with a port (127.0.0.1:7500) nor a path with a /")
    }
}

impl TryFrom<String> for Address {
    type Error = anyhow::Error;

    fn try_from(text: String) -> anyhow::Result<Self> {
        text.parse()
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Udp(address) => write!(f, "{address}"),
        }
    }
}

pub(crate) fn open_path(path: &Path) -> io::Result<UnixDatagram> {
    use std::os::unix::fs::PermissionsExt;
    let socket = match UnixDatagram::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_left_behind(path) => {
            std::fs::remove_file(path)?;
            UnixDatagram::bind(path)?
        }
        bound => bound?,
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Returns whether `path` is a socket that no process has open. To connect to any other file is
/// refused as well.
fn is_left_behind(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::metadata(path).is_ok_and(|it| it.file_type().is_socket());
    let tried = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    is_socket && tried.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// Number of failed reads after which a call gives up, as if no datagram were waiting.
const ERRORS_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> (tempfile::TempDir, [Address; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let path = Address::Path(folder.path().join("server.sock"));
        (folder, [path, "127.0.0.1:0".parse().unwrap()])
    }

    /// Returns the first result within a second.
    fn eventually<T>(mut receive: impl FnMut() -> Option<T>) -> Option<T> {
        (0..1_000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            receive()
        })
    }

    #[test]
    fn an_address_is_a_path_or_for_udp() {
        assert_eq!("/run/a.sock".parse::<Address>().unwrap(), Address::Path("/run/a.sock".into()));
        let udp = Address::Udp("[::1]:7500".parse().unwrap());
        assert_eq!("[::1]:7500".parse::<Address>().unwrap(), udp);
        let refused = "7500".parse::<Address>().unwrap_err().to_string();
        assert!(refused.contains("neither an address"), "{refused}");
    }

    #[test]
    fn a_client_is_answered_and_finds_a_server_that_began_anew() {
        let (_folder, addresses) = addresses();
        for address in addresses {
            let server = Server::open(&address).unwrap();
            let address = server.local_address().unwrap();
            let (mut client, mut buffer) = (Client::new(&address), [0; 8]);
            for round in 0..2_u8 {
                let server = match round {
                    0 => &server,
                    _ => &Server::open(&Address::Udp("127.0.0.1:0".parse().unwrap())).unwrap(),
                };
                let at = server.local_address().unwrap();
                if round == 1 {
                    client = Client::new(&at);
                }
                assert!(client.send(&[round, 7]));
                let (length, from) = eventually(|| server.receive(&mut buffer)).unwrap();
                assert_eq!(buffer[..length], [round, 7]);
                assert!(server.send(&[9], &from));
                assert_eq!(eventually(|| client.receive(&mut buffer)), Some(1));
            }
        }
    }

    #[test]
    fn a_wildcard_server_answers_a_client_at_any_address() {
        for any in ["0.0.0.0:0", "[::]:0"] {
            let Ok(server) = Server::open(&any.parse().unwrap()) else { continue };
            let Address::Udp(at) = server.local_address().unwrap() else { panic!("{any}") };
            for asked in ["127.0.0.1", "127.0.0.2"] {
                let asked = Address::Udp(SocketAddr::new(asked.parse().unwrap(), at.port()));
                let (mut client, mut buffer) = (Client::new(&asked), [0; 8]);
                // The kernel may coalesce the two.
                assert!(client.send(&[1, 2]) && client.send(&[3, 4]));
                for expected in [[1, 2], [3, 4]] {
                    let (length, from) = eventually(|| server.receive(&mut buffer)).unwrap();
                    assert_eq!(buffer[..length], expected);
                    assert!(server.send(&[9], &from));
                    assert_eq!(eventually(|| client.receive(&mut buffer)), Some(1), "{asked}");
                }
            }
        }
    }

    #[test]
    fn a_path_is_found_again_after_its_server_began_anew() {
        let (_folder, [address, _]) = addresses();
        let mut client = Client::new(&address);
        assert!(!client.send(&[1]), "there is no server yet");
        let mut buffer = [0; 8];
        for round in 0..2 {
            let server = Server::open(&address).unwrap();
            assert!((0..3).any(|_| client.send(&[round])));
            assert!(eventually(|| server.receive(&mut buffer)).is_some());
        }
    }

    #[test]
    fn a_file_at_the_path_is_left_there() {
        let (folder, [address, _]) = addresses();
        let path = folder.path().join("server.sock");
        std::fs::write(&path, "a letter").unwrap();
        assert!(Server::open(&address).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
    }

    #[test]
    fn a_path_is_taken_from_a_dead_server_and_not_from_a_living_one() {
        let (folder, [address, _]) = addresses();
        let left_behind = UnixDatagram::bind(folder.path().join("server.sock")).unwrap();
        drop(left_behind);
        let server = Server::open(&address).unwrap();
        let refused = format!("{:#}", Server::open(&address).unwrap_err());
        assert!(refused.contains("another program listens there"), "{refused}");
        let other = Server::open(&"127.0.0.1:0".parse().unwrap()).unwrap();
        let (mut client, mut buffer) = (Client::new(&address), [0; 8]);
        client.send(&[1]);
        let (_, from) = eventually(|| server.receive(&mut buffer)).unwrap();
        assert!(!other.send(&[1], &from), "a path's client is not reached by UDP");
    }

    #[test]
    fn a_client_hears_its_server_alone() {
        let (_folder, [address, _]) = addresses();
        let server = Server::open(&address).unwrap();
        let (mut client, mut buffer) = (Client::new(&address), [0; 8]);
        client.send(&[1]);
        let (_, from) = eventually(|| server.receive(&mut buffer)).unwrap();
        let SenderAddress::Unix(to) = from.0 else { panic!("{from}") };
        assert!(UnixDatagram::unbound().unwrap().send_to_addr(&[2], &to).is_err());
        assert_eq!(client.receive(&mut buffer), None);
    }
}
