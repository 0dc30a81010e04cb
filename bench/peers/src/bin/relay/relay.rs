use std::net::UdpSocket;
use std::process::Child;

use anyhow::{Context, Result};
use socket2::SockRef;

/// A relay between two sockets, or a direct connection.
pub(crate) struct Relay {
    pub(crate) name: &'static str,
    /// The relay's process; `None` for the direct connection.
    pub(crate) process: Option<Child>,
    pub(crate) from: UdpSocket,
    pub(crate) to: UdpSocket,
    /// Header in front of each datagram to the relay; empty for the direct connection.
    pub(crate) head: Vec<u8>,
}

/// Opens a socket with a 4 MiB receive buffer: the usual 200 KiB hold three milliseconds of
/// datagrams.
pub(crate) fn socket() -> Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0").context("no free port")?;
    SockRef::from(&socket).set_recv_buffer_size(BUFFER_BYTES).context("no room")?;
    Ok(socket)
}

/// Returns a port of the loopback interface that is currently free.
pub(crate) fn free_port() -> Result<u16> {
    Ok(socket()?.local_addr()?.port())
}

const BUFFER_BYTES: usize = 4 << 20;
