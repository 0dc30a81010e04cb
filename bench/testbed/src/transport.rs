//! The transports under comparison, and the sockets that they open.

use std::fmt;
use std::io;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};

use crate::native;
use crate::packet::Packet;
use crate::place::End;

/// A transport, in the order of the tables.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Transport {
    Udp,
    /// UDP-Lite, whose checksum covers only the headers of IP and of our packets.
    UdpLite,
    /// TCP Reno with windows of 16 KB.
    Reno,
    /// TCP Reno with the largest windows that the kernel grants on request.
    RenoLarge,
    /// TCP Westwood+ with the largest windows that the kernel grants on request.
    Westwood,
    /// DCCP with CCID 2.
    Dccp,
    /// DCCP with a checksum that covers only the headers.
    DccpPartial,
    Sctp,
    /// Tautline's session over one link.
    Tautline,
    /// Tautline's session over two links, each with the loss and the delay of the cell.
    TautlineTwo,
    /// TCP Cubic with the kernel's own windows, as most systems send today.
    Cubic,
    /// TCP BBR with the kernel's own windows.
    Bbr,
    /// SCTP that abandons a message after 200 ms, and delivers in any order.
    SctpPartial,
    /// TCP Cubic over two links (MPTCP).
    Mptcp,
    /// TCP Cubic whose application abandons frames that would be late.
    CubicTimed,
    /// TCP BBR whose application abandons frames that would be late.
    BbrTimed,
    /// QUIC with Cubic and one stream per frame, reset once it would be late.
    QuicStreams,
    /// QUIC with BBR and one stream per frame, reset once it would be late.
    QuicStreamsBbr,
    /// QUIC datagrams, without retransmission; Cubic.
    QuicDatagrams,
    /// UDP-Lite whose packets are sealed, as Tautline's are: for bit errors.
    UdpLiteSealed,
}

/// Service model of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Connectionless packets; the end of the flow is not signalled.
    Datagrams,
    /// Packets of a connection.
    Messages,
    /// Bytes of a connection.
    Stream,
    /// Bytes of a connection, abandoned frame by frame.
    TimedStream,
    /// Streams or datagrams of QUIC.
    Quic,
    /// Units of a session with sockets of its own.
    Session,
}

impl Transport {
    /// Returns the paper's transports.
    pub(crate) fn papers() -> [Self; 8] {
        [
            Self::Udp,
            Self::UdpLite,
            Self::Reno,
            Self::RenoLarge,
            Self::Westwood,
            Self::Dccp,
            Self::DccpPartial,
            Self::Sctp,
        ]
    }

    /// Returns the number of links that it uses.
    pub(crate) fn links(self) -> u8 {
        match self {
            Self::TautlineTwo | Self::Mptcp => 2,
            _ => 1,
        }
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Udp | Self::UdpLite | Self::UdpLiteSealed => Kind::Datagrams,
            Self::Dccp | Self::DccpPartial | Self::Sctp | Self::SctpPartial => Kind::Messages,
            Self::Reno
            | Self::RenoLarge
            | Self::Westwood
            | Self::Cubic
            | Self::Bbr
            | Self::Mptcp => Kind::Stream,
            Self::CubicTimed | Self::BbrTimed => Kind::TimedStream,
            Self::QuicStreams | Self::QuicStreamsBbr | Self::QuicDatagrams => Kind::Quic,
            Self::Tautline | Self::TautlineTwo => Kind::Session,
        }
    }

    /// Returns the kernel's name of the TCP congestion control; `None` for other protocols.
    pub(crate) fn congestion_control(self) -> Option<&'static str> {
        match self {
            Self::Reno | Self::RenoLarge => Some("reno"),
            Self::Westwood => Some("westwood"),
            Self::Cubic | Self::CubicTimed | Self::Mptcp => Some("cubic"),
            Self::Bbr | Self::BbrTimed => Some("bbr"),
            _ => None,
        }
    }

    /// Opens a socket with this transport's options; neither bound nor connected.
    pub(crate) fn open(self, end: End) -> io::Result<Socket> {
        let (kind, protocol) = match self {
            Self::UdpLite | Self::UdpLiteSealed => (Type::DGRAM, Protocol::UDPLITE),
            Self::Mptcp => (Type::STREAM, Protocol::MPTCP),
            Self::Dccp | Self::DccpPartial => (Type::DCCP, Protocol::DCCP),
            Self::Sctp | Self::SctpPartial => (Type::STREAM, Protocol::SCTP),
            Self::Udp
            | Self::Tautline
            | Self::TautlineTwo
            | Self::QuicStreams
            | Self::QuicStreamsBbr
            | Self::QuicDatagrams => (Type::DGRAM, Protocol::UDP),
            Self::Reno
            | Self::RenoLarge
            | Self::Westwood
            | Self::Cubic
            | Self::Bbr
            | Self::CubicTimed
            | Self::BbrTimed => (Type::STREAM, Protocol::TCP),
        };
        let socket = Socket::new(Domain::IPV4, kind, Some(protocol))?;
        socket.set_reuse_address(true)?;
        if let Some(bytes) = self.buffer_bytes() {
            match end {
                End::Sender => socket.set_send_buffer_size(bytes)?,
                End::Receiver => socket.set_recv_buffer_size(bytes)?,
            }
        }
        if let Some(name) = self.congestion_control() {
            socket.set_tcp_congestion(name.as_bytes())?;
            socket.set_tcp_nodelay(true)?;
        }
        match self {
            Self::UdpLite | Self::UdpLiteSealed => {
                native::cover_udp_lite(&socket, end, Packet::HEADER_BYTES)?;
            }
            Self::Dccp | Self::DccpPartial => {
                socket.set_dccp_service(SERVICE)?;
                socket.set_dccp_ccid(2)?;
                // 1 covers the header alone; each further step adds four bytes.
                let covered = 1 + Packet::HEADER_BYTES as u32 / 4;
                match (self, end) {
                    (Self::DccpPartial, End::Sender) => socket.set_dccp_send_cscov(covered)?,
                    (Self::DccpPartial, End::Receiver) => socket.set_dccp_recv_cscov(covered)?,
                    _ => {}
                }
            }
            Self::Sctp => native::send_sctp_at_once(&socket)?,
            Self::SctpPartial => {
                native::send_sctp_at_once(&socket)?;
                native::abandon_sctp(&socket, ABANDONED_AFTER)?;
            }
            _ => {}
        }
        Ok(socket)
    }

    /// Returns the bytes to request for the send and receive buffers, which the kernel doubles;
    /// `None` for the kernel's own sizes.
    fn buffer_bytes(self) -> Option<usize> {
        match self {
            Self::Reno => Some(16 << 10),
            Self::RenoLarge | Self::Westwood => Some(BUFFER_BYTES_MAX),
            _ => None,
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_possible_value() {
            Some(value) => f.pad(value.get_name()),
            None => Err(fmt::Error),
        }
    }
}

/// Maximum bytes of a buffer that the kernel grants on request, by its default `rmem_max`.
const BUFFER_BYTES_MAX: usize = 212_992;
/// DCCP's service code: an arbitrary number, equal at both ends.
const SERVICE: u32 = 42;
/// Deadline of Tautline's media, and of all transports that abandon data.
pub(crate) const ABANDONED_AFTER: Duration = Duration::from_millis(200);
