//! The receiving end over a kernel socket.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use socket2::Socket;

use crate::cell::Cell;
use crate::clock;
use crate::counters::Counters;
use crate::log::Log;
use crate::packet::Packet;
use crate::place::{End, Place};
use crate::transport::{Kind, Transport};

/// Results of the receiving end.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) log: Log,
    /// Packets that arrived damaged; sealed ones are not in the log.
    pub(crate) damaged: u64,
    /// Kernel counters of this end, after the flow.
    pub(crate) counters: Counters,
}

/// A listening socket at the sender's destination.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    transport: Transport,
}

impl Listener {
    /// Opens the socket.
    pub(crate) fn open(cell: &Cell, place: Place) -> Result<Self> {
        let transport = cell.transport;
        let socket = transport.open(End::Receiver).with_context(|| format!("no {transport}"))?;
        let at = place.address(End::Receiver, 0);
        socket.bind(&at.into()).with_context(|| format!("{at} is taken"))?;
        socket.set_read_timeout(Some(FIRST_WITHIN))?;
        if transport.kind() != Kind::Datagrams {
            socket.listen(1)?;
        }
        Ok(Self { socket, transport })
    }

    /// Receives packets until the flow ends.
    pub(crate) fn run(self) -> Result<Received> {
        let accepted = match self.transport.kind() {
            Kind::Datagrams => None,
            _ => Some(self.socket.accept().context("nobody connected")?.0),
        };
        let socket = accepted.as_ref().unwrap_or(&self.socket);
        let (log, damaged) = take(socket, self.transport)?;
        let counters = Counters::read();
        Ok(Received { log, damaged, counters })
    }
}

fn take(mut socket: &Socket, transport: Transport) -> Result<(Log, u64)> {
    let kind = transport.kind();
    let (mut log, mut damaged) = (Log::default(), 0);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut filled = 0;
    socket.set_read_timeout(Some(FIRST_WITHIN))?;
    loop {
        let length = match socket.read(&mut buffer[filled..]) {
            // The connection ended.
            Ok(0) => return Ok((log, damaged)),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok((log, damaged)),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // DCCP ends like this.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok((log, damaged)),
            Err(error) => return Err(error).context("cannot receive"),
        };
        let now = clock::now();
        if log.arrivals.is_empty() {
            socket.set_read_timeout(Some(match kind {
                Kind::Datagrams => DATAGRAM_TIMEOUT,
                _ => CONNECTION_TIMEOUT,
            }))?;
        }
        filled += length;
        let (packets, rest) = buffer[..filled].as_chunks::<{ Packet::BYTES }>();
        let is_stream = matches!(kind, Kind::Stream | Kind::TimedStream);
        ensure!(is_stream || rest.is_empty(), "a packet of {length} bytes");
        for bytes in packets {
            let packet = Packet::parse(bytes).context("no packet")?;
            if packet.is_last() {
                return Ok((log, damaged));
            }
            let is_whole = match transport {
                Transport::UdpLiteSealed => Packet::opens(bytes),
                _ => Packet::is_whole(bytes),
            };
            damaged += u64::from(!is_whole);
            if is_whole || transport != Transport::UdpLiteSealed {
                log.push(packet, now);
            }
        }
        let rest = packets.len() * Packet::BYTES..filled;
        filled = rest.len();
        buffer.copy_within(rest, 0);
    }
}

const BUFFER_BYTES: usize = 1 << 20;
/// Timeout for the first packet: handshakes get lost too, and are repeated after seconds.
const FIRST_WITHIN: Duration = Duration::from_secs(60);
/// Timeout for the next datagram, after which the flow has ended.
const DATAGRAM_TIMEOUT: Duration = Duration::from_secs(4);
/// Timeout for the next packet of a connection, whose end is signalled. TCP's own timeouts double,
/// up to two minutes.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(130);
