use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use mio::{Interest, Registry, Token};
use tautline_units::{Ecn, Instant};

use crate::local_addresses::LocalAddresses;
use crate::log_limit::LogLimit;
use crate::socket::Local;
use crate::udp::{Outgoing, Received, Udp};
use crate::unavailable::comes_by_itself;

/// A local end and its socket. The socket is opened as soon as the local end exists, and reopened
/// after the kernel has refused to send for a while.
///
/// To the kernel, a modem that was unplugged and reconnected is another interface, even under the
/// old name: a socket bound to the former one never sends again. The same applies to a modem that
/// appears after the start of this process.
#[derive(Debug)]
pub(crate) struct Slot {
    local: Local,
    token: Token,
    /// Open socket; `None` while it cannot be opened.
    socket: Option<Udp>,
    address: SocketAddr,
    /// Time of the first refused send since the last accepted one or since the socket was opened;
    /// `None` if none was refused since.
    refused_since: Option<Instant>,
    tried_at: Instant,
    /// Reason of the last refusal, until a datagram is sent.
    refusal: Option<io::Error>,
    refusals: LogLimit,
    /// Last logged reason why there is no socket; `None` before the first, and once the socket is
    /// open again.
    told: Option<String>,
    called: LocalAddresses,
}

impl Slot {
    /// Opens the socket of a local end; one that does not exist yet is opened later by
    /// [`renew`](Self::renew).
    ///
    /// # Errors
    /// When the settings cannot work: the port is in use or not permitted.
    pub(crate) fn open(local: &Local, token: Token, registry: &Registry) -> anyhow::Result<Self> {
        let mut slot = Self {
            local: local.clone(),
            token,
            socket: None,
            address: local.address(),
            refused_since: None,
            tried_at: Instant::ZERO,
            refusal: None,
            refusals: LogLimit::default(),
            told: None,
            called: LocalAddresses::default(),
        };
        if let Err(error) = slot.try_open(registry) {
            if !comes_by_itself(&error) {
                return Err(error);
            }
            slot.tell_absent(&error);
        }
        Ok(slot)
    }

    /// Opens the socket: on its previous port if that is free, otherwise on the configured one.
    fn try_open(&mut self, registry: &Registry) -> anyhow::Result<()> {
        let opened = match self.address.port() {
            0 => self.local.open(),
            port => self.local.open_on(port).or_else(|_| self.local.open()),
        };
        let mut socket = Udp::new(opened?)?;
        registry.register(socket.socket_mut(), self.token, Interest::READABLE)?;
        self.address = socket.local_addr()?;
        self.socket = Some(socket);
        self.refused_since = None;
        Ok(())
    }

    /// Logs why there is no socket, once for each reason.
    fn tell_absent(&mut self, error: &anyhow::Error) {
        let why = format!("{error:#}");
        if self.told.as_ref() == Some(&why) {
            return tracing::debug!(why, "still without a socket");
        }
        tracing::warn!("a link is missing: {why}; it is used once it is available");
        self.told = Some(why);
    }

    pub(crate) fn local(&self) -> &Local {
        &self.local
    }

    /// Sends a datagram, from the address that its link has called, or from one that the kernel
    /// chooses if that address has gone. `None` if there is no socket now.
    pub(crate) fn send(
        &mut self,
        datagram: &[u8],
        remote: SocketAddr,
        ecn: Ecn,
        now: Instant,
    ) -> Option<io::Result<()>> {
        let from = self.called.local(remote, datagram, now);
        let to = match remote.ip() {
            // A dual-stack socket represents IPv4 addresses as mapped IPv6 ones.
            IpAddr::V4(ip) if self.address.is_ipv6() => {
                SocketAddr::new(ip.to_ipv6_mapped().into(), remote.port())
            }
            IpAddr::V4(_) | IpAddr::V6(_) => remote,
        };
        let socket = self.socket.as_mut()?;
        let outgoing = Outgoing { bytes: datagram, segment: None, to, from, ecn };
        Some(match socket.send(&outgoing) {
            Err(error) if from.is_some() && error.kind() == io::ErrorKind::AddrNotAvailable => {
                self.called.forget(remote, datagram);
                socket.send(&Outgoing { from: None, ..outgoing })
            }
            sent => sent,
        })
    }

    /// Receives the waiting datagrams of one sender; `None` if there is no socket now.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> Option<io::Result<Received>> {
        let received = self.socket.as_ref()?.receive(buffer);
        Some(received.map(|mut received| {
            received.remote.set_ip(received.remote.ip().to_canonical());
            received
        }))
    }

    /// Records that an authentic datagram of a peer that has called arrived at `local`.
    pub(crate) fn on_called(
        &mut self,
        remote: SocketAddr,
        datagram: &[u8],
        local: IpAddr,
        now: Instant,
    ) {
        self.called.note(remote, datagram, local, now);
    }

    /// Handles a change of the socket's route: the kernel chooses source addresses until another
    /// one is called.
    pub(crate) fn on_moved(&mut self) {
        self.called.leave();
    }

    /// Returns the address of the socket, or of the last one if there is none now; before the first
    /// open, the configured address, with port 0 if the system chooses it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns whether there is a socket now.
    pub(crate) fn is_open(&self) -> bool {
        self.socket.is_some()
    }

    pub(crate) fn on_sent(&mut self) {
        self.refused_since = None;
        self.refusal = None;
    }

    pub(crate) fn on_refused(&mut self, error: io::Error, now: Instant) {
        self.refused_since.get_or_insert(now);
        self.refusal = Some(error);
    }

    /// Logs that the system refuses to send, with its reason, or that sending works again.
    fn tell_refused(&mut self, is_refused: bool, now: Instant) {
        match &self.refusal {
            Some(error) if is_refused => {
                let help = match error.kind() {
                    io::ErrorKind::PermissionDenied => ": a firewall of this machine blocks UDP",
                    io::ErrorKind::NetworkUnreachable => ": there is no route",
                    _ => "",
                };
                let words = format!("cannot send over {}: {error}{help}", self.local);
                if let Some(left_out) = self.refusals.take_of(&words, now) {
                    tracing::warn!(left_out, "{words}");
                }
            }
            Some(_) => {}
            None => {
                if let Some(left_out) = self.refusals.end() {
                    tracing::info!(link = %self.local, left_out, "the link sends again");
                }
            }
        }
    }

    /// Opens the socket if there is none, and reopens it, on its port if that is free, after sends
    /// were refused for [`REFUSED_MAX`]. Tries once per [`RETRY`]. Returns whether the socket is a
    /// new one.
    pub(crate) fn renew(&mut self, registry: &Registry, now: Instant) -> bool {
        let is_refused = self.refused_since.is_some_and(|since| now.since(since) >= REFUSED_MAX);
        self.tell_refused(is_refused, now);
        let is_useless = self.socket.is_none() || is_refused;
        if !is_useless || now.since(self.tried_at) < RETRY {
            return false;
        }
        self.tried_at = now;
        // The port is free only after the old socket is closed.
        if let Some(mut socket) = self.socket.take() {
            let _ = registry.deregister(socket.socket_mut());
        }
        match self.try_open(registry) {
            Ok(()) => {
                if self.told.take().is_some() {
                    tracing::info!(link = %self.local, address = %self.address, "the link is \
                                                                                 available");
                } else {
                    tracing::debug!(link = %self.local, address = %self.address, "new socket");
                }
                true
            }
            Err(error) => {
                self.tell_absent(&error);
                false
            }
        }
    }
}

/// Time of refused sends after which the socket is reopened: shorter than a modem takes to return.
const REFUSED_MAX: Duration = Duration::from_millis(500);
const RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use mio::Poll;

    use super::*;

    #[test]
    fn a_missing_local_address_is_awaited_and_a_used_one_refused() {
        let poll = Poll::new().unwrap();
        for local in ["wwan-never", "192.0.2.1:0"] {
            let slot = Slot::open(&local.parse().unwrap(), Token(0), poll.registry()).unwrap();
            assert!(!slot.is_open(), "{local}");
        }
        let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = Local::Address(taken.local_addr().unwrap());
        let refused = Slot::open(&local, Token(0), poll.registry()).unwrap_err().to_string();
        assert!(refused.contains("cannot open a UDP socket"), "{refused}");
    }

    #[test]
    fn a_socket_is_tried_again_once_a_second_until_it_is_there() {
        let poll = Poll::new().unwrap();
        // Simulates a modem whose address appears later, with a free port.
        let mut slot =
            Slot::open(&"192.0.2.1:0".parse().unwrap(), Token(0), poll.registry()).unwrap();
        slot.local = "127.0.0.1:0".parse().unwrap();
        let at = |millis| Instant::from_millis(millis);
        assert!(!slot.renew(poll.registry(), at(999)));
        assert!(slot.renew(poll.registry(), at(1_000)) && slot.is_open());
        assert_eq!(slot.address().ip().to_string(), "127.0.0.1");
        assert!(!slot.renew(poll.registry(), at(5_000)), "it is of use");
    }

    #[test]
    fn a_socket_of_both_families_speaks_with_both() {
        let poll = Poll::new().unwrap();
        let mut both = Slot::open(&"[::]:0".parse().unwrap(), Token(0), poll.registry()).unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(other) = std::net::UdpSocket::bind(address) else { continue };
            let there = other.local_addr().unwrap();
            if there.is_ipv6() && both.address().is_ipv4() {
                continue;
            }
            both.send(b"there", there, Ecn::Ect1, Instant::ZERO).unwrap().unwrap();
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
