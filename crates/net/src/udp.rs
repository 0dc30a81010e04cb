//! UDP sockets with ECN codepoints, whose answers leave from the address that received the request.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::io::Errno;
use socket2::SockRef;
use tautline_units::Ecn;

/// A socket of mio, tokio or the standard library that sends and receives an ECN codepoint with
/// each datagram ([RFC3168]). If the kernel reports none, all are Not-ECT.
///
/// A wildcard socket is reachable at every address of the machine, and the kernel's routes select
/// the source address of a datagram. A NAT drops an answer from an address other than the one
/// asked. So each received datagram carries its destination address, and an answer specifies it as
/// the source (IP_PKTINFO, IPV6_PKTINFO).
#[derive(Debug)]
pub struct Udp<S = mio::net::UdpSocket> {
    socket: S,
    state: UdpSocketState,
    /// `true` if the socket is bound to the wildcard address.
    is_wildcard: bool,
}

/// Result of one read: datagrams of one sender and one codepoint, each of `stride` bytes except the
/// last.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Address of the sender.
    pub remote: SocketAddr,
    /// Local address that the sender used; `None` if the socket is bound to one, the kernel reports
    /// none, or it is a multicast or broadcast address.
    pub local: Option<IpAddr>,
    /// ECN codepoint of the datagrams, as the network has set or left it.
    pub ecn: Ecn,
    bytes: usize,
    stride: usize,
}

/// A datagram to send, or several of equal length except the last, which the kernel splits.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Bytes of the datagram, or of several concatenated ones.
    pub bytes: &'a [u8],
    /// Length of each datagram in bytes, if `bytes` holds several; `None` for a single one.
    pub segment: Option<usize>,
    /// Destination of the datagrams.
    pub to: SocketAddr,
    /// Local source address of the datagrams; `None` leaves the choice to the kernel.
    pub from: Option<IpAddr>,
    /// ECN codepoint of the datagrams.
    pub ecn: Ecn,
}

impl<S: AsFd> Udp<S> {
    /// Wraps a bound socket, and makes it non-blocking.
    ///
    /// # Errors
    /// When the kernel refuses the options for codepoints and addresses.
    pub fn new(socket: S) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        let bound = local_addr(&socket)?;
        Ok(Self { socket, state, is_wildcard: bound.ip().is_unspecified() })
    }

    /// Returns the socket given to [`new`](Self::new).
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Returns the socket, for registration.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Returns the bound address.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_addr(&self.socket)
    }

    /// Returns the maximum number of equal-length datagrams per send call.
    pub fn segments_max(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends a datagram, or several.
    ///
    /// # Errors
    /// The kernel's; [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable) if `from` is no
    /// longer an address of this machine: then send without it, from another address.
    pub fn send(&mut self, outgoing: &Outgoing<'_>) -> io::Result<()> {
        let Outgoing { bytes, segment, to, from, ecn } = *outgoing;
        let transmit = Transmit {
            destination: to,
            ecn: EcnCodepoint::from_bits(ecn.bits()),
            contents: bytes,
            segment_size: segment,
            src_ip: from,
        };
        let sent = self.state.try_send((&self.socket).into(), &transmit);
        match sent {
            Err(error) if from.is_some() && is_gone(&error) => {
                // The kernel reports the same error for codepoints and trains that it cannot send,
                // and quinn-udp then disables those permanently: a new state enables them again.
                self.state = UdpSocketState::new((&self.socket).into())?;
                Err(io::ErrorKind::AddrNotAvailable.into())
            }
            sent => sent,
        }
    }

    /// Receives the waiting datagrams of one sender into `buffer`; see [`BUFFER_BYTES`].
    ///
    /// # Errors
    /// The kernel's; [`WouldBlock`](io::ErrorKind::WouldBlock) if no datagram is waiting.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut received = [None];
        self.receive_many(&mut [IoSliceMut::new(buffer)], &mut received)?;
        let [received] = received;
        received.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    /// Receives the waiting datagrams of one sender into each of `buffers`; the first entries of
    /// `received` describe them.
    ///
    /// # Errors
    /// Same as [`receive`](Self::receive).
    pub fn receive_many<const COUNT: usize>(
        &self,
        buffers: &mut [IoSliceMut<'_>; COUNT],
        received: &mut [Option<Received>; COUNT],
    ) -> io::Result<()> {
        let mut metas = [RecvMeta::default(); COUNT];
        let count = self.state.recv((&self.socket).into(), buffers, &mut metas)?;
        received.fill(None);
        for (received, meta) in received.iter_mut().zip(&metas).take(count) {
            let RecvMeta { addr, len, stride, ecn, dst_ip, .. } = *meta;
            *received = Some(Received {
                remote: addr,
                local: dst_ip.filter(|local| self.is_wildcard && is_own(*local)),
                ecn: Ecn::of_bits(ecn.map_or(0, |ecn| ecn as u8)),
                bytes: len,
                stride: stride.max(1),
            });
        }
        Ok(())
    }
}

impl Received {
    /// Returns the datagrams of this read in `buffer` one by one: the kernel may have coalesced a
    /// sender's datagrams of equal length.
    pub fn datagrams(self, buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
        let bytes = &buffer[..self.bytes.min(buffer.len())];
        // An empty datagram counts as one too.
        let empty = bytes.is_empty().then_some(bytes);
        bytes.chunks(self.stride).chain(empty)
    }
}

/// Buffer size for one read: the maximum size of one sender's coalesced datagrams in bytes.
pub const BUFFER_BYTES: usize = 65_536;

fn local_addr(socket: &impl AsFd) -> io::Result<SocketAddr> {
    let bound = SockRef::from(socket).local_addr()?.as_socket();
    bound.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Returns whether a datagram may leave from `local`: not from a multicast or broadcast address.
fn is_own(local: IpAddr) -> bool {
    let local = local.to_canonical();
    !local.is_multicast() && !local.is_unspecified() && local != Ipv4Addr::BROADCAST
}

/// Returns whether the kernel reports that the source is no address of this machine: the error
/// depends on the kernel's version.
fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::INVAL, Errno::ADDRNOTAVAIL, Errno::NETUNREACH].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|error| gone.contains(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    use mio::net::UdpSocket;

    fn open(address: &str) -> Option<Udp> {
        Udp::new(UdpSocket::bind(address.parse().unwrap()).ok()?).ok()
    }

    fn send(socket: &mut Udp, to: SocketAddr, from: Option<IpAddr>, ecn: Ecn) -> io::Result<()> {
        let bytes = [ecn.bits(); 9];
        socket.send(&Outgoing { bytes: &bytes, segment: None, to, from, ecn })
    }

    fn eventually(socket: &Udp, buffer: &mut [u8]) -> Received {
        let received = (0..2_000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            socket.receive(buffer).ok()
        });
        received.expect("loopback loses nothing")
    }

    #[test]
    fn codepoints_survive_ipv4_and_ipv6() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Some((mut from, to)) = open(address).zip(open(address)) else { continue };
            let mut buffer = vec![0; BUFFER_BYTES];
            for bits in [0, 1, 2, 3, 1] {
                let ecn = Ecn::of_bits(bits);
                send(&mut from, to.local_addr().unwrap(), None, ecn).unwrap();
                let received = eventually(&to, &mut buffer);
                assert_eq!((received.ecn, received.remote), (ecn, from.local_addr().unwrap()));
                assert_eq!(received.local, None, "it is bound to one");
                let datagrams: Vec<&[u8]> = received.datagrams(&buffer).collect();
                assert_eq!(datagrams, [[bits; 9]]);
            }
        }
    }

    #[test]
    fn an_answer_leaves_from_the_queried_address_while_it_exists() {
        for any in ["0.0.0.0:0", "[::]:0"] {
            let Some((mut client, mut server)) = open("127.0.0.1:0").zip(open(any)) else {
                continue;
            };
            let mut buffer = vec![0; BUFFER_BYTES];
            let (own, port) = (client.local_addr().unwrap(), server.local_addr().unwrap().port());
            // The kernel's own choice towards 127.0.0.1 is 127.0.0.1.
            for asked in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
                let asked = SocketAddr::new(asked.parse().unwrap(), port);
                send(&mut client, asked, None, Ecn::Ect1).unwrap();
                let Received { remote, local, .. } = eventually(&server, &mut buffer);
                assert_eq!(remote.ip().to_canonical(), own.ip());
                send(&mut server, remote, local, Ecn::Ect1).unwrap();
                let answer = eventually(&client, &mut buffer);
                assert_eq!((answer.remote, answer.ecn), (asked, Ecn::Ect1), "{any}");
            }
            let remote = match server.local_addr().unwrap() {
                SocketAddr::V4(_) => own,
                SocketAddr::V6(_) => {
                    let SocketAddr::V4(own) = own else { panic!("{own}") };
                    SocketAddr::from((own.ip().to_ipv6_mapped(), own.port()))
                }
            };
            let gone = Some("192.0.2.77".parse().unwrap());
            let error = send(&mut server, remote, gone, Ecn::Ect1).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable, "{any}");
            send(&mut server, remote, None, Ecn::Ect1).unwrap();
            assert_eq!(eventually(&client, &mut buffer).ecn, Ecn::Ect1, "codepoints go on");
        }
    }

    #[test]
    fn coalesced_datagrams_are_split() {
        let remote = "127.0.0.1:9".parse().unwrap();
        let of = |bytes, stride| Received { remote, local: None, ecn: Ecn::NotEct, bytes, stride };
        let lengths = |received: Received| {
            received.datagrams(&[0; 100]).map(<[u8]>::len).collect::<Vec<usize>>()
        };
        assert_eq!(lengths(of(25, 10)), [10, 10, 5]);
        assert_eq!(lengths(of(10, 10)), [10]);
        assert_eq!(lengths(of(0, 1)), [0]);
        assert_eq!(lengths(of(900, 60)), [60, 40]);
    }
}
