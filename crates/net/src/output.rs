//! Bytes to a socket, a serial line or any open file, written without waiting.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use socketcan::{CanFdSocket, Socket as _, SocketOptions};

/// An open place for bytes; writing to it never blocks, except as [`Output::of`] says.
#[derive(Debug)]
pub struct Output {
    file: OwnedFd,
    is_socket: bool,
    /// True if the kernel itself refuses to wait: a socket, or a file opened so.
    is_nonblocking: bool,
}

impl Output {
    /// Opens a UDP socket towards `to`.
    ///
    /// # Errors
    /// Those of the system: the address has no route.
    pub fn udp(to: SocketAddr) -> io::Result<Self> {
        let socket = match to {
            SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
            SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
        };
        socket.connect(to)?;
        Ok(Self::socket(socket.into()))
    }

    /// Opens a CAN interface for sending; it takes frames of SocketCAN's layout, `can_frame` or
    /// `canfd_frame`.
    ///
    /// # Errors
    /// Those of the system: the kernel has no CAN, or there is no such interface, or it is down.
    pub fn can(interface: &str) -> io::Result<Self> {
        let socket = CanFdSocket::open(interface)?;
        socket.set_filter_drop_all()?;
        match socket.as_raw_socket().take_error()? {
            Some(error) => Err(error),
            None => Ok(Self::socket(socket.as_raw_socket().as_fd().try_clone_to_owned()?)),
        }
    }

    /// Opens the serial line at `path`, in addition to other programs that have it open. With a
    /// `baud` rate it sets the line to raw bytes at that rate; without one the line stays as it is.
    ///
    /// # Errors
    /// Those of the system: there is no such file, it is no serial line, another program has it
    /// alone, or it has no such rate.
    pub fn serial(path: &Path, baud: Option<u32>) -> io::Result<Self> {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::empty())?;
        let mut line = tcgetattr(&file)?;
        if let Some(baud) = baud {
            line.make_raw();
            line.set_speed(baud)?;
            tcsetattr(&file, OptionalActions::Now, &line)?;
        }
        Ok(Self { file, is_socket: false, is_nonblocking: true })
    }

    /// Uses an open file, socket, pipe or device.
    ///
    /// A pipe and a device are opened anew, so that writing never waits although the program's own
    /// writing may. A device that cannot be opened twice is written to when it has room for at
    /// least one byte; its driver may then wait for more room.
    ///
    /// # Errors
    /// Those of the system: the file is not open.
    pub fn of(file: OwnedFd) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(fstat(&file)?.st_mode);
        match kind {
            FileType::Socket => Ok(Self::socket(file)),
            FileType::Fifo | FileType::CharacterDevice => {
                let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                match open(path, flags, Mode::empty()) {
                    Ok(anew) => Ok(Self { file: anew, is_socket: false, is_nonblocking: true }),
                    Err(_) => Ok(Self { file, is_socket: false, is_nonblocking: false }),
                }
            }
            _ => Ok(Self { file, is_socket: false, is_nonblocking: false }),
        }
    }

    fn socket(file: OwnedFd) -> Self {
        Self { file, is_socket: true, is_nonblocking: true }
    }

    /// Writes `bytes`; returns whether the system took all of them.
    pub fn write(&self, bytes: &[u8]) -> bool {
        let taken = match self.try_write(bytes) {
            // Says that an earlier datagram found nobody; this one is not sent yet.
            Err(Errno::CONNREFUSED) => self.try_write(bytes),
            taken => taken,
        };
        taken == Ok(bytes.len())
    }

    fn try_write(&self, bytes: &[u8]) -> rustix::io::Result<usize> {
        if self.is_socket {
            return send(&self.file, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
        if !self.is_nonblocking && !has_room(self.file.as_fd()) {
            return Err(Errno::AGAIN);
        }
        rustix::io::write(&self.file, bytes)
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn has_room(file: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(&file, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&at_once)).is_ok_and(|_| fds[0].revents().contains(PollFlags::OUT))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    #[test]
    fn a_datagram_is_sent_although_an_earlier_one_found_nobody() {
        let at = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let output = Output::udp(at).unwrap();
        assert!(output.write(b"nobody"));
        let listener = UdpSocket::bind(at).unwrap();
        listener.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        assert!(output.write(b"stop"));
        let mut buffer = [0; 16];
        assert_eq!(listener.recv(&mut buffer).unwrap(), 4);
        assert_eq!(&buffer[..4], b"stop");
    }

    #[test]
    fn a_full_pipe_is_not_waited_for_and_its_own_end_still_is() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let output = Output::of(writer.try_clone().unwrap().into()).unwrap();
        let count = (0..100_000).take_while(|_| output.write(&[7; 512])).count();
        assert!((1..100_000).contains(&count), "{count} writes");
        let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK), "the program's own end waits as before");
        let mut buffer = vec![0; 512 * count];
        reader.read_exact(&mut buffer).unwrap();
        assert!(output.write(b"stop"));
    }

    #[test]
    fn a_full_socket_and_one_whose_peer_is_gone_are_not_waited_for() {
        let (peer, socket) = UnixStream::pair().unwrap();
        let output = Output::of(socket.into()).unwrap();
        let count = (0..100_000).take_while(|_| output.write(&[7; 512])).count();
        assert!((1..100_000).contains(&count), "{count} writes");
        drop(peer);
        assert!(!output.write(b"stop"));
    }

    #[test]
    fn a_serial_line_is_set_and_gets_bytes_unchanged() {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let terminal = openpt(flags).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let path = ptsname(&terminal, Vec::new()).unwrap();
        let path = Path::new(path.to_str().unwrap());
        let output = Output::serial(path, Some(115_200)).unwrap();
        assert_eq!(tcgetattr(&output).unwrap().output_speed(), 115_200);
        // Without the raw setting a line feed would gain a carriage return.
        assert!(output.write(b"\x03\nstop"));
        let mut buffer = [0; 16];
        let length = rustix::io::read(&terminal, &mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"\x03\nstop");
        let also = Output::serial(path, None).unwrap();
        assert_eq!(tcgetattr(&also).unwrap().output_speed(), 115_200);
        assert!(Output::serial(Path::new("/dev/null"), None).is_err(), "no line");
    }
}
