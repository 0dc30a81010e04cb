//! A UDP socket whose datagrams have codepoints, and whose answers leave by the address that was asked.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::io::Errno;
use socket2::SockRef;
use tautline_units::Ecn;

/// A socket of mio, tokio or the standard library by which each datagram leaves with a codepoint of its own, and comes
/// with the one that the network left on it ([RFC3168]); where the kernel reports none, all are Not-ECT.
///
/// A socket that is bound to no address is reached at each one of the machine, and the kernel chooses by its routes
/// from which one a datagram leaves. A NAT drops an answer from an address that was not asked: so each datagram comes
/// with the address that it was sent to, and an answer names it (IP_PKTINFO, IPV6_PKTINFO).
#[derive(Debug)]
pub struct Udp<S = mio::net::UdpSocket> {
    socket: S,
    state: UdpSocketState,
    /// Whether it is bound to no address.
    is_wildcard: bool,
}

/// The result of one read: datagrams of one sender and one codepoint, each of `stride` bytes but the last.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// The sender's address.
    pub remote: SocketAddr,
    /// Our address that the sender has used; `None` where the socket is bound to one, or the kernel reports none.
    pub local: Option<IpAddr>,
    /// The codepoint that the network left.
    pub ecn: Ecn,
    bytes: usize,
    stride: usize,
}

/// A datagram to be sent, or several of one length but the last, which the kernel cuts up.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    /// Its bytes; of several, end to end.
    pub bytes: &'a [u8],
    /// The length of each, if there are several.
    pub segment: Option<usize>,
    /// Its destination.
    pub to: SocketAddr,
    /// Our address from which it leaves; `None` leaves the choice to the kernel.
    pub from: Option<IpAddr>,
    /// Its codepoint.
    pub ecn: Ecn,
}

impl<S: AsFd> Udp<S> {
    /// Wraps a socket that is bound already, and makes it one that does not block.
    ///
    /// # Errors
    /// When the kernel refuses what codepoints and addresses need.
    pub fn new(socket: S) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        let bound = local_addr(&socket)?;
        Ok(Self { socket, state, is_wildcard: bound.ip().is_unspecified() })
    }

    /// Returns the socket.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// Returns the socket, to be registered.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Returns the address that it is bound to.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        local_addr(&self.socket)
    }

    /// Returns how many datagrams of one length the kernel takes at a time.
    pub fn segments_max(&self) -> usize {
        self.state.max_gso_segments()
    }

    /// Sends a datagram, or several.
    ///
    /// # Errors
    /// That of the kernel; [`AddrNotAvailable`](io::ErrorKind::AddrNotAvailable) when `from` is no address of this
    /// machine any more: sent without it, the datagram leaves from another one.
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
                // The kernel says the same of codepoints and trains that it cannot send, and quinn-udp gives those up
                // for good: a fresh state has them again.
                self.state = UdpSocketState::new((&self.socket).into())?;
                Err(io::ErrorKind::AddrNotAvailable.into())
            }
            sent => sent,
        }
    }

    /// Reads into `buffer` the waiting datagrams of one sender; see [`BUFFER_BYTES`].
    ///
    /// # Errors
    /// That of the kernel; [`WouldBlock`](io::ErrorKind::WouldBlock) when nothing waits.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut received = [None];
        self.receive_many(&mut [IoSliceMut::new(buffer)], &mut received)?;
        let [received] = received;
        received.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    /// Reads into each of `buffers` the waiting datagrams of one sender; the first entries of `received` say of whom.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
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
    /// Splits what was read: the kernel may have put a sender's datagrams of one length together.
    pub fn datagrams(self, buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
        let bytes = &buffer[..self.bytes.min(buffer.len())];
        // An empty datagram is one all the same.
        let empty = bytes.is_empty().then_some(bytes);
        bytes.chunks(self.stride).chain(empty)
    }
}

/// The most that the kernel puts together of one sender's datagrams.
pub const BUFFER_BYTES: usize = 65_536;

fn local_addr(socket: &impl AsFd) -> io::Result<SocketAddr> {
    let bound = SockRef::from(socket).local_addr()?.as_socket();
    bound.ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Returns whether a datagram may leave from `local`: from no group and no broadcast address.
fn is_own(local: IpAddr) -> bool {
    let local = local.to_canonical();
    !local.is_multicast() && !local.is_unspecified() && local != Ipv4Addr::BROADCAST
}

/// Returns whether the kernel says that the source is no address of this machine: its word for that depends on its age.
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
    fn a_datagram_comes_with_the_codepoint_that_it_left_with_over_both_families() {
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
    fn an_answer_leaves_by_the_address_that_was_asked_and_by_another_once_that_is_gone() {
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
    fn what_the_kernel_put_together_comes_apart() {
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
