use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tautline_transport::crypto::Identity;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use super::{Connection, Error, error, tls};
use crate::handover::Outlet;

/// A listening socket of a control server, with one identity for all connections.
pub struct Listener {
    tcp: TcpListener,
    local: SocketAddr,
    acceptor: TlsAcceptor,
}

/// A new TCP connection whose TLS handshake is still to be done.
pub struct Incoming {
    tcp: TcpStream,
    remote: SocketAddr,
    acceptor: TlsAcceptor,
}

impl Listener {
    /// Listens on `address`; port 0 takes any free port.
    ///
    /// # Errors
    /// [`Error::Listen`] if the address is in use, not this machine's, or not permitted;
    /// [`Error::Certificate`] if no certificate can be made of `identity`.
    pub async fn bind(address: SocketAddr, identity: &Identity) -> Result<Self, Error> {
        let acceptor = TlsAcceptor::from(Arc::new(tls::server(identity, None, tls::CONTROL)?));
        let listen = |cause| Error::Listen { address, cause };
        let tcp = TcpListener::bind(address).await.map_err(listen)?;
        let local = tcp.local_addr().map_err(listen)?;
        Ok(Self { tcp, local, acceptor })
    }

    /// Returns the bound address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns the next connection. Safe to cancel.
    ///
    /// [`Incoming::handshake`] does the handshake in a task of its own, so that a slow or silent
    /// client delays nobody.
    ///
    /// # Errors
    /// [`Error::Accept`], for instance without free file descriptors: wait a little, then continue.
    pub async fn accept(&self) -> Result<Incoming, Error> {
        let (tcp, remote) = self.tcp.accept().await.map_err(Error::Accept)?;
        Ok(Incoming { tcp, remote, acceptor: self.acceptor.clone() })
    }
}

impl Incoming {
    /// Returns the remote address of the connection.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Waits for the client's hello, and returns whether it requests a relay; `false` if no
    /// complete hello arrives within 3 s. The bytes stay in the socket for the server that handles
    /// the connection.
    pub async fn asks_for_relay(&self) -> bool {
        let looked = async {
            let mut hello = vec![0; HELLO_BYTES_MAX];
            loop {
                let length = self.tcp.peek(&mut hello).await.unwrap_or(0);
                match tls::asks_for(tls::RELAY, &hello[..length]) {
                    None if (1..HELLO_BYTES_MAX).contains(&length) => {
                        // More is in transit, without a notification.
                        tokio::time::sleep(HELLO_PAUSE).await;
                    }
                    found => return found.unwrap_or(false),
                }
            }
        };
        tokio::time::timeout(HANDSHAKE_MAX, looked).await.unwrap_or(false)
    }

    /// Hands the connection over to the process that serves it.
    ///
    /// # Errors
    /// [`Error::Broken`] if that process is absent, or its queue is full.
    pub fn hand_over(self, outlet: &Outlet) -> Result<(), Error> {
        outlet.hand_over(&self.tcp).map_err(Error::Broken)
    }

    /// Does the TLS handshake, within 3 s: afterwards the client's key is known and proven.
    ///
    /// The caller decides what that key may do, so that a refusal can carry a reason.
    ///
    /// # Errors
    /// [`Error::Unanswered`] after 3 s, [`Error::Handshake`] if TLS fails or the client shows no
    /// usable key, [`Error::Protocol`] for another protocol in TLS, [`Error::Broken`] if the socket
    /// fails.
    pub async fn handshake(self) -> Result<Connection, Error> {
        let address = self.remote.to_string();
        // Disables Nagle's algorithm: frames are small and latency matters.
        self.tcp.set_nodelay(true).map_err(Error::Broken)?;
        let accept = self.acceptor.accept(self.tcp);
        match tokio::time::timeout(HANDSHAKE_MAX, accept).await {
            Err(_) => Err(Error::Unanswered { address, after: HANDSHAKE_MAX }),
            Ok(Err(failed)) => Err(error::handshake(&address, failed)),
            Ok(Ok(stream)) => Connection::new(stream.into(), &address),
        }
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("local", &self.local).finish_non_exhaustive()
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("remote", &self.remote).finish_non_exhaustive()
    }
}

/// Maximum length of a hello; a longer one does not count as a request for a relay. This project's
/// client sends about 300 bytes.
const HELLO_BYTES_MAX: usize = 2_048;
const HELLO_PAUSE: Duration = Duration::from_millis(10);
/// Maximum time of a handshake: two round trips of a bad mobile link, with room for one repeated
/// SYN.
pub(super) const HANDSHAKE_MAX: Duration = Duration::from_secs(3);
