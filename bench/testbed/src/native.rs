//! System calls without a safe wrapper in the libraries used: socket options, and powering off.
#![allow(unsafe_code, reason = "setsockopt and ioctl take pointers")]

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use socket2::Socket;

use crate::place::End;

/// Sets the checksum coverage of UDP-Lite to its header and `bytes` bytes behind it.
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

/// Makes SCTP abandon a message after `after`, and deliver messages in any order.
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

/// Returns a connection's smoothed round-trip time as TCP measures it.
pub(crate) fn smoothed_rtt(socket: &Socket) -> io::Result<Duration> {
    let mut info = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes `length` bytes at most, which `info` has, all of them numbers.
    let info = unsafe {
        let fd = socket.as_raw_fd();
        let to = info.as_mut_ptr().cast();
        if libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length) != 0 {
            return Err(io::Error::last_os_error());
        }
        info.assume_init()
    };
    Ok(Duration::from_micros(info.tcpi_rtt.into()))
}

/// Creates a TUN device for IP packets in the calling thread's namespace, with non-blocking reads.
pub(crate) fn tun(name: &str) -> io::Result<File> {
    let mut options = File::options();
    let device = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(TUN)?;
    // The kernel's `struct ifreq`: a name of 16 bytes, flags, and padding.
    let mut request = [0_u8; 40];
    let length = name.len().min(15);
    request[..length].copy_from_slice(&name.as_bytes()[..length]);
    request[16..18].copy_from_slice(&((libc::IFF_TUN | libc::IFF_NO_PI) as u16).to_ne_bytes());
    // SAFETY: the kernel reads and writes an `ifreq`, as large as `request`.
    let outcome = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, request.as_mut_ptr()) };
    if outcome == 0 { Ok(device) } else { Err(io::Error::last_os_error()) }
}

/// Powers off the machine; only its init process may.
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

const TUN: &str = "/dev/net/tun";
const SOL_UDPLITE: libc::c_int = 136;
const UDPLITE_SEND_CSCOV: libc::c_int = 10;
const UDPLITE_RECV_CSCOV: libc::c_int = 11;
const UDPLITE_HEADER_BYTES: usize = 8;
const SCTP_NODELAY: libc::c_int = 3;
const SCTP_PR_SCTP_TTL: u16 = 0x10;
const SCTP_DEFAULT_PRINFO: libc::c_int = 114;
const SCTP_DEFAULT_SNDINFO: libc::c_int = 34;
const SCTP_UNORDERED: u16 = 1;
