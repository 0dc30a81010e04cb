//! The sender that [CAR] asks for: over TCP, with an application that schedules its frames and
//! abandons those that would be late.

use std::io::ErrorKind;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use crate::cell::Cell;
use crate::clock;
use crate::native;
use crate::packet::Packet;
use crate::schedule::Schedule;
use crate::transport::ABANDONED_AFTER;

/// Result of offering the packets of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    /// Packets accepted by the socket.
    pub(crate) taken: u64,
    /// Packets abandoned by the application before the socket.
    pub(crate) abandoned: u64,
}

/// Offers the packets of a cell, each at its due time. After a frame's deadline, its remaining
/// packets are skipped, and the next frame starts.
///
/// The kernel buffers little unsent data, so that packets wait here, where they can be abandoned.
/// TCP retransmits sent data for as long as necessary.
pub(crate) fn offer(cell: &Cell, schedule: &Schedule, socket: &Socket) -> Result<Offered> {
    socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
    socket.set_nonblocking(true)?;
    let begin = clock::now();
    let end = begin + clock::nanos(cell.duration());
    let mut offered = Offered::default();
    let mut given_up = None;
    for number in 0..schedule.packets() {
        let due_nanos = begin + clock::nanos(schedule.due(number));
        clock::sleep_until(due_nanos);
        if clock::now() > end {
            break;
        }
        let frame = schedule.frame(number);
        let complete = begin + clock::nanos(schedule.frame_complete(number));
        // Data sent now arrives half a round trip later.
        let way = native::smoothed_rtt(socket)? / 2;
        let last = complete + clock::nanos(ABANDONED_AFTER.saturating_sub(way));
        if given_up == Some(frame) || !has_room(socket, Some(last))? {
            given_up = Some(frame);
            offered.abandoned += 1;
            continue;
        }
        let bytes = Packet { number, due_nanos }.to_bytes();
        send(socket, &bytes).with_context(|| format!("packet {number} was refused"))?;
        offered.taken += 1;
    }
    socket.set_nonblocking(false)?;
    Ok(offered)
}

/// Waits until the socket has room, and returns whether it has. It waits until `last` in
/// nanoseconds, or without a limit for `None`.
fn has_room(socket: &Socket, last: Option<u64>) -> Result<bool> {
    loop {
        let left = last.map(|last| Duration::from_nanos(last.saturating_sub(clock::now())));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(false);
        }
        let timeout = left.map(Timespec::try_from).transpose()?;
        let mut fds = [PollFd::new(socket, PollFlags::OUT)];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) => {}
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends a packet completely: part of a packet in a stream cannot be withdrawn.
fn send(socket: &Socket, bytes: &[u8]) -> Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match socket.send_with_flags(rest, libc::MSG_NOSIGNAL) {
            Ok(taken) => rest = &rest[taken..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                has_room(socket, None)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Maximum unsent bytes in the kernel: three packets.
const UNSENT_BYTES_MAX: u32 = 4096;
