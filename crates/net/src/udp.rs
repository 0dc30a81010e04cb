//! A UDP socket whose datagrams have codepoints.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use mio::net::UdpSocket;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use tautline_units::Ecn;

/// A socket by which each datagram leaves with a codepoint of its own, and comes with that which the network left of it
/// ([RFC3168]); where the kernel tells none, all are Not-ECT.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    state: UdpSocketState,
}

/// What was read at once: datagrams of one sender and one codepoint, each of `stride` bytes but the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) remote: SocketAddr,
    pub(crate) ecn: Ecn,
    bytes: usize,
    stride: usize,
}

impl Udp {
    /// Makes it of a socket that does not block.
    ///
    /// # Errors
    /// When the kernel refuses what codepoints need.
    pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, state })
    }

    /// Returns the socket, to be watched.
    pub(crate) fn socket_mut(&mut self) -> &mut UdpSocket {
        &mut self.socket
    }

    /// Returns the address that it is bound to.
    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends a datagram.
    pub(crate) fn send_to(&self, datagram: &[u8], to: SocketAddr, ecn: Ecn) -> io::Result<()> {
        let transmit = Transmit {
            destination: to,
            ecn: EcnCodepoint::from_bits(ecn.bits()),
            contents: datagram,
            segment_size: None,
            src_ip: None,
        };
        self.state.try_send((&self.socket).into(), &transmit)
    }

    /// Reads into `buffer` what waits, of one sender; see [`BUFFER_BYTES`].
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        let mut metas = [RecvMeta::default()];
        self.state.recv((&self.socket).into(), &mut [IoSliceMut::new(buffer)], &mut metas)?;
        let [RecvMeta { addr, len, stride, ecn, .. }] = metas;
        let ecn = Ecn::of_bits(ecn.map_or(0, |ecn| ecn as u8));
        Ok(Received { remote: addr, ecn, bytes: len, stride: stride.max(1) })
    }
}

impl Received {
    /// Takes it apart: the kernel may have put a sender's datagrams of one length together.
    pub(crate) fn datagrams(self, buffer: &[u8]) -> impl Iterator<Item = &[u8]> {
        let bytes = &buffer[..self.bytes.min(buffer.len())];
        // An empty datagram is one all the same.
        let empty = bytes.is_empty().then_some(bytes);
        bytes.chunks(self.stride).chain(empty)
    }
}

/// What the kernel may put together of one sender's datagrams.
pub(crate) const BUFFER_BYTES: usize = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    fn open(address: &str) -> Option<Udp> {
        Udp::new(UdpSocket::bind(address.parse().unwrap()).ok()?).ok()
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
            let Some((from, to)) = open(address).zip(open(address)) else { continue };
            let mut buffer = vec![0; BUFFER_BYTES];
            for bits in [0, 1, 2, 3, 1] {
                let ecn = Ecn::of_bits(bits);
                from.send_to(&[bits; 9], to.local_addr().unwrap(), ecn).unwrap();
                let received = eventually(&to, &mut buffer);
                assert_eq!((received.ecn, received.remote), (ecn, from.local_addr().unwrap()));
                let datagrams: Vec<&[u8]> = received.datagrams(&buffer).collect();
                assert_eq!(datagrams, [[bits; 9]]);
            }
        }
    }

    #[test]
    fn what_the_kernel_put_together_comes_apart() {
        let remote = "127.0.0.1:9".parse().unwrap();
        let of = |bytes, stride| Received { remote, ecn: Ecn::NotEct, bytes, stride };
        let lengths = |received: Received| {
            received.datagrams(&[0; 100]).map(<[u8]>::len).collect::<Vec<usize>>()
        };
        assert_eq!(lengths(of(25, 10)), [10, 10, 5]);
        assert_eq!(lengths(of(10, 10)), [10]);
        assert_eq!(lengths(of(0, 1)), [0]);
        assert_eq!(lengths(of(900, 60)), [60, 40]);
    }
}
