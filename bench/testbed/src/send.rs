//! The sending end over a kernel socket.

use std::io::ErrorKind;
use std::net::Shutdown;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use socket2::Socket;

use crate::cell::Cell;
use crate::clock;
use crate::counters::Counters;
use crate::packet::Packet;
use crate::place::{End, Place};
use crate::schedule::Schedule;
use crate::timed;
use crate::transport::{Kind, Transport};

/// Results of the sending end.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Packets accepted by the transport.
    pub(crate) packets: u64,
    /// Packets abandoned by the application before the transport.
    pub(crate) abandoned: u64,
    /// Kernel counters of this end, after the flow.
    pub(crate) counters: Counters,
}

/// Offers the packets of a cell, each at its due time.
///
/// If the transport blocks, later packets are late. Packets not offered by the end of the cell's
/// duration are not offered at all.
pub(crate) fn run(cell: &Cell, schedule: &Schedule, place: Place) -> Result<Sent> {
    clock::wake_exactly();
    let socket = connect(cell.transport, place)?;
    let offered = match cell.transport.kind() {
        Kind::TimedStream => timed::offer(cell, schedule, &socket)?,
        _ => timed::Offered { taken: offer(cell, schedule, &socket)?, abandoned: 0 },
    };
    end(cell.transport.kind(), &socket)?;
    let counters = Counters::read();
    Ok(Sent { packets: offered.taken, abandoned: offered.abandoned, counters })
}

fn connect(transport: Transport, place: Place) -> Result<Socket> {
    let to = place.address(End::Receiver, 0);
    for _ in 0..CONNECT_TRIES {
        let socket = transport.open(End::Sender).with_context(|| format!("no {transport}"))?;
        match socket.connect(&to.into()) {
            Ok(()) => return Ok(socket),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                clock::sleep_until(clock::now() + clock::nanos(CONNECT_AGAIN));
            }
            Err(error) => return Err(error).context("the receiver cannot be reached"),
        }
    }
    bail!("nobody listens on {to}")
}

/// Offers each packet at its due time until the cell's duration has passed. Returns how many the
/// socket accepted.
fn offer(cell: &Cell, schedule: &Schedule, socket: &Socket) -> Result<u64> {
    let begin = clock::now();
    let end = begin + clock::nanos(cell.duration());
    for number in 0..schedule.packets() {
        let due_nanos = begin + clock::nanos(schedule.due(number));
        clock::sleep_until(due_nanos);
        if clock::now() > end {
            return Ok(number.into());
        }
        let packet = Packet { number, due_nanos };
        let bytes = match cell.transport {
            Transport::UdpLiteSealed => packet.sealed()?,
            _ => packet.to_bytes(),
        };
        send(socket, &bytes).with_context(|| format!("packet {number} was refused"))?;
    }
    Ok(schedule.packets().into())
}

fn send(socket: &Socket, bytes: &[u8]) -> std::io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match socket.send_with_flags(rest, libc::MSG_NOSIGNAL) {
            Ok(taken) => rest = &rest[taken..],
            // DCCP's short queue is full; its sockets offer no other indication.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                clock::sleep_until(clock::now() + clock::nanos(SEND_AGAIN));
            }
            // No listener yet, or none any more: for a datagram that is a loss.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Signals the end of the flow. On a connection, it waits until all accepted packets are delivered,
/// or a timeout passes.
fn end(kind: Kind, socket: &Socket) -> Result<()> {
    if kind == Kind::Datagrams {
        for _ in 0..LAST_COPIES {
            clock::sleep_until(clock::now() + clock::nanos(LAST_EVERY));
            send(socket, &Packet::last().to_bytes())?;
        }
        return Ok(());
    }
    // DCCP has no half-closed state, and its queue is short.
    let _ = socket.shutdown(Shutdown::Write);
    socket.set_read_timeout(Some(match kind {
        Kind::Stream | Kind::TimedStream => DRAINED_WITHIN,
        _ => MESSAGES_DRAINED_WITHIN,
    }))?;
    let mut nothing = [std::mem::MaybeUninit::uninit()];
    let _ = socket.recv(&mut nothing);
    Ok(())
}

const CONNECT_TRIES: u32 = 50;
const CONNECT_AGAIN: Duration = Duration::from_millis(100);
/// Pause before another attempt while DCCP's queue is full. The queue is 5 packets, which last 3 ms
/// at 2000 kB/s.
const SEND_AGAIN: Duration = Duration::from_millis(1);
const LAST_COPIES: u32 = 5;
/// Interval of the packets that mark the end, longer than the longest delay of a packet.
const LAST_EVERY: Duration = Duration::from_millis(50);
/// Maximum time until a stream is delivered: TCP's timeouts double, up to two minutes.
const DRAINED_WITHIN: Duration = Duration::from_secs(130);
/// Maximum time until messages are delivered: SCTP's timeouts end at one minute.
const MESSAGES_DRAINED_WITHIN: Duration = Duration::from_secs(65);
