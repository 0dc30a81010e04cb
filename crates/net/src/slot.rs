use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mio::{Interest, Registry, Token};
use tautline_units::{Ecn, Instant};

use crate::socket::Local;
use crate::udp::{Received, Udp};

/// One local end and its socket, which is opened anew when the kernel has refused to send for a
/// while.
///
/// A modem that was unplugged and comes back is another interface to the kernel, even under the
/// old name: a socket that was bound to it never sends again.
#[derive(Debug)]
pub(crate) struct Slot {
    local: Local,
    token: Token,
    /// `None` while it cannot be opened.
    socket: Option<Udp>,
    address: SocketAddr,
    /// Since when every send was refused.
    refused_since: Option<Instant>,
    tried_at: Instant,
}

impl Slot {
    pub(crate) fn open(local: &Local, token: Token, registry: &Registry) -> anyhow::Result<Self> {
        let mut socket = Udp::new(local.open()?)?;
        registry.register(socket.socket_mut(), token, Interest::READABLE)?;
        let address = socket.local_addr()?;
        Ok(Self {
            local: local.clone(),
            token,
            socket: Some(socket),
            address,
            refused_since: None,
            tried_at: Instant::ZERO,
        })
    }

    pub(crate) fn local(&self) -> &Local {
        &self.local
    }

    /// Sends a datagram; `None` if there is no socket at present.
    pub(crate) fn send(
        &self,
        datagram: &[u8],
        remote: SocketAddr,
        ecn: Ecn,
    ) -> Option<io::Result<()>> {
        let remote = match remote.ip() {
            // A socket of both families speaks of IPv4 addresses as of some of IPv6.
            IpAddr::V4(ip) if self.address.is_ipv6() => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), remote.port())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => remote,
        };
        Some(self.socket.as_ref()?.send_to(datagram, remote, ecn))
    }

    /// Reads what waits of one sender; `None` if there is no socket at present.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Option<io::Result<Received>> {
        let received = self.socket.as_ref()?.receive(buffer);
        Some(received.map(|mut received| {
            received.remote.set_ip(received.remote.ip().to_canonical());
            received
        }))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn on_sent(&mut self) {
        self.refused_since = None;
    }

    pub(crate) fn on_refused(&mut self, now: Instant) {
        self.refused_since.get_or_insert(now);
    }

    /// Opens the socket anew, on its port if that is free, if it has been of no use for
    /// [`REFUSED_MAX`]; tries once in [`RETRY`].
    pub(crate) fn renew(&mut self, registry: &Registry, now: Instant) {
        let useless = self.refused_since.is_some_and(|since| now.since(since) >= REFUSED_MAX);
        if !useless || now.since(self.tried_at) < RETRY {
            return;
        }
        self.tried_at = now;
        // The port is free only once the old socket is gone.
        if let Some(mut socket) = self.socket.take() {
            let _ = registry.deregister(socket.socket_mut());
        }
        let opened = self.local.open_on(self.address.port()).or_else(|_| self.local.open());
        let opened = opened.and_then(|socket| Ok(Udp::new(socket)?));
        let mut socket = match opened {
            Ok(socket) => socket,
            Err(error) => return tracing::debug!(%error, "a socket cannot be opened again yet"),
        };
        let registered = registry.register(socket.socket_mut(), self.token, Interest::READABLE);
        match registered.and_then(|()| socket.local_addr()) {
            Ok(address) => {
                tracing::info!(local = %self.local, %address, "socket opened again");
                self.address = address;
                self.socket = Some(socket);
                self.refused_since = None;
            }
            Err(error) => tracing::debug!(%error, "a socket cannot be watched"),
        }
    }
}

/// Shorter than a modem takes to come back.
const REFUSED_MAX: Duration = Duration::from_millis(500);
const RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use mio::Poll;

    use super::*;

    #[test]
    fn a_socket_of_both_families_speaks_with_both() {
        let poll = Poll::new().unwrap();
        let both = Slot::open(&"[::]:0".parse().unwrap(), Token(0), poll.registry()).unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(other) = std::net::UdpSocket::bind(address) else { continue };
            let there = other.local_addr().unwrap();
            if there.is_ipv6() && both.address().is_ipv4() {
                continue;
            }
            both.send(b"there", there, Ecn::Ect1).unwrap().unwrap();
            let mut bytes = [0; 9];
            let (_, from) = other.recv_from(&mut bytes).unwrap();
            assert_eq!((from.ip(), from.port()), (there.ip(), both.address().port()));
            other.send_to(b"back", from).unwrap();
            let received = (0..1_000).find_map(|_| {
                std::thread::sleep(Duration::from_millis(1));
                both.receive(&mut bytes).unwrap().ok()
            });
            let received = received.unwrap();
            assert_eq!(received.remote, there);
            assert!(received.datagrams(&bytes).eq([b"back"]));
        }
    }
}
