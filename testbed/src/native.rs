//! System calls that no library in use has a safe name for: socket options, and the machine's end.
#![allow(unsafe_code, reason = "setsockopt takes a pointer")]

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::Socket;

use crate::transport::End;

/// Lets the checksum of UDP-Lite cover its header and so many bytes behind it.
pub(crate) fn cover_udp_lite(socket: &Socket, end: End, bytes: usize) -> io::Result<()> {
    let name = match end {
        End::Sender => UDPLITE_SEND_CSCOV,
        End::Receiver => UDPLITE_RECV_CSCOV,
    };
    let covered = (UDPLITE_HEADER_BYTES + bytes) as libc::c_int;
    set(socket, SOL_UDPLITE, name, covered)
}

/// Makes SCTP send small messages without waiting for more.
pub(crate) fn send_sctp_at_once(socket: &Socket) -> io::Result<()> {
    set(socket, libc::IPPROTO_SCTP, SCTP_NODELAY, 1)
}

/// Makes SCTP give up a message that is `after` old, and deliver messages in any order.
pub(crate) fn abandon_sctp(socket: &Socket, after: Duration) -> io::Result<()> {
    // The kernel's `struct sctp_default_prinfo`: the association, the value, the policy.
    let mut bytes = [0; 12];
    bytes[4..8].copy_from_slice(&(after.as_millis() as u32).to_ne_bytes());
    bytes[8..10].copy_from_slice(&SCTP_PR_SCTP_TTL.to_ne_bytes());
    set(socket, libc::IPPROTO_SCTP, SCTP_DEFAULT_PRINFO, bytes)?;
    // The kernel's `struct sctp_sndinfo`: stream, flags, payload protocol, context, association.
    let mut bytes = [0; 16];
    bytes[2..4].copy_from_slice(&SCTP_UNORDERED.to_ne_bytes());
    set(socket, libc::IPPROTO_SCTP, SCTP_DEFAULT_SNDINFO, bytes)
}

/// Ends the machine, which only its first process may.
pub(crate) fn power_off() -> io::Error {
    // SAFETY: no pointer is passed.
    let _ = unsafe { libc::reboot(libc::RB_POWER_OFF) };
    io::Error::last_os_error()
}

fn set<T: Copy>(
    socket: &Socket,
    level: libc::c_int,
    name: libc::c_int,
    value: T,
) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of `value`, which outlives the call.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

const SOL_UDPLITE: libc::c_int = 136;
const UDPLITE_SEND_CSCOV: libc::c_int = 10;
const UDPLITE_RECV_CSCOV: libc::c_int = 11;
const UDPLITE_HEADER_BYTES: usize = 8;
const SCTP_NODELAY: libc::c_int = 3;
const SCTP_PR_SCTP_TTL: u16 = 0x10;
const SCTP_DEFAULT_PRINFO: libc::c_int = 114;
const SCTP_DEFAULT_SNDINFO: libc::c_int = 34;
const SCTP_UNORDERED: u16 = 1;
