//! A CAN bus: frames by SocketCAN, or one per datagram to and from a simulator.

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use socketcan::errors::{CAN_ERR_BUSOFF, CAN_ERR_CRTL, CAN_ERR_RESTARTED};
use socketcan::id::{CAN_EFF_FLAG, CAN_EFF_MASK, CAN_ERR_FLAG, CAN_RTR_FLAG, CAN_SFF_MASK};
use socketcan::{CanAnyFrame, CanFdSocket, EmbeddedFrame, Frame, Socket as _, SocketOptions};

use crate::clock::Clock;

/// Address of a bus.
///
/// Text form: a network interface such as `can0`, or `udp:127.0.0.1:7600`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A CAN interface of this computer.
    Interface(String),
    /// A simulator at a UDP address: each datagram is a frame. An empty datagram after the opening
    /// shows it where the frames for this end go.
    Udp(SocketAddr),
}

/// An open bus; never blocks. Frames have the layout of SocketCAN's `can_frame` (16 bytes) or
/// `canfd_frame` (72 bytes), with a little-endian identifier.
#[derive(Debug)]
pub struct Bus(Socket);

#[derive(Debug)]
enum Socket {
    Can(CanFdSocket),
    Udp(UdpSocket),
}

/// An identifier whose frames are received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Identifier, of 11 or 29 bits.
    pub id: u32,
    /// True if the identifier has 29 bits.
    pub is_extended: bool,
}

/// A frame or a report that a bus has received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// A frame in the buffer.
    Frame {
        /// Length in the buffer in bytes.
        length: usize,
        /// Time since the frame arrived in the kernel; zero for a datagram, whose arrival time is
        /// not known.
        age: Duration,
    },
    /// A report that the controller is off the bus after too many errors.
    BusOff,
    /// A report that the controller is on the bus again.
    Restarted,
    /// A report of another error of the controller.
    Error,
}

/// Fate of a frame that was given to a bus.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// The kernel has accepted the frame.
    Accepted,
    /// The transmit queue is full (`ENOBUFS`): the frame is not sent, and may be given again.
    Full,
}

/// A handle that ends a [`wait`] from another thread; clones end the same wait.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Bus {
    /// Length in bytes of a buffer for any frame.
    pub const BYTES_MAX: usize = 72;

    /// Opens the bus. Of a CAN interface, only data frames with the `accepted` identifiers and
    /// reports of its controller are received.
    ///
    /// # Errors
    /// Those of the system: the kernel has no CAN, there is no such interface, it is no CAN
    /// interface, or it is down.
    pub fn open(address: &Address, accepted: &[Accepted]) -> io::Result<Self> {
        match address {
            Address::Interface(name) => open_can(name, accepted).map(Socket::Can).map(Self),
            Address::Udp(address) => open_udp(*address).map(Socket::Udp).map(Self),
        }
    }

    /// Sends a frame. Bytes that are no frame are refused by a CAN interface, but sent to a
    /// simulator.
    ///
    /// # Errors
    /// Those of the system: the bus is down or gone, or the frame is of CAN FD and the interface
    /// is not.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<Sent> {
        let sent = match &mut self.0 {
            Socket::Can(socket) => socket.write(&in_kernel_order(frame)),
            Socket::Udp(socket) => socket.send(frame),
        };
        match sent {
            Ok(_) => Ok(Sent::Accepted),
            Err(error) if is_full(&error) => Ok(Sent::Full),
            Err(error) => Err(error),
        }
    }

    /// Receives the next frame or report; `None` if nothing is waiting. Datagrams that are empty or
    /// longer than `buffer` are skipped.
    ///
    /// # Errors
    /// Those of the system: the bus is down or gone.
    pub fn receive(&mut self, buffer: &mut [u8; Self::BYTES_MAX]) -> io::Result<Option<Received>> {
        let received = match &self.0 {
            Socket::Can(socket) => receive_can(socket, buffer),
            Socket::Udp(socket) => receive_udp(socket, buffer),
        };
        match received {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Bus {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Socket::Can(socket) => socket.as_fd(),
            Socket::Udp(socket) => socket.as_fd(),
        }
    }
}

impl Waker {
    /// Creates a waker.
    ///
    /// # Errors
    /// When the system gives no file descriptor.
    pub fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?)))
    }

    /// Ends the present wait, or the next one.
    pub fn wake(&self) {
        // Fails only if a wake is due already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// Waits until something is received on `bus`, `waker` wakes, or `longest` has passed, and clears
/// the wake. Blocks.
pub fn wait(bus: Option<&Bus>, waker: &Waker, longest: Duration) {
    let mut fds = vec![PollFd::new(&waker.0, PollFlags::IN)];
    fds.extend(bus.map(|bus| PollFd::new(bus, PollFlags::IN)));
    let limit = Timespec::try_from(longest).ok();
    // An interrupted wait is a short one.
    let _ = poll(&mut fds, limit.as_ref());
    let _ = rustix::io::read(&*waker.0, &mut [0; 8]);
}

fn open_can(name: &str, accepted: &[Accepted]) -> io::Result<CanFdSocket> {
    let socket = CanFdSocket::open(name)?;
    socket.set_nonblocking(true)?;
    let filters: Vec<(u32, u32)> = accepted.iter().map(|it| it.filter()).collect();
    socket.set_filters(&filters)?;
    socket.set_error_filter(CAN_ERR_BUSOFF | CAN_ERR_RESTARTED | CAN_ERR_CRTL)?;
    socket.set_recv_timestamp(true)?;
    // An interface that is down can be bound to, and says so here.
    match socket.as_raw_socket().take_error()? {
        Some(error) => Err(error),
        None => Ok(socket),
    }
}

fn open_udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
        SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
    };
    socket.set_nonblocking(true)?;
    socket.connect(address)?;
    socket.send(&[])?;
    Ok(socket)
}

fn receive_can(socket: &CanFdSocket, buffer: &mut [u8; Bus::BYTES_MAX]) -> io::Result<Received> {
    let (frame, stamps) = socket.read_frame_with_timestamps()?;
    if let CanAnyFrame::Error(report) = &frame {
        return Ok(report_of(report.error_bits()));
    }
    let age = stamps.socket.map_or(Duration::ZERO, Clock::age_of_unix);
    Ok(Received::Frame { length: lay_out(&frame, buffer), age })
}

fn receive_udp(socket: &UdpSocket, buffer: &mut [u8; Bus::BYTES_MAX]) -> io::Result<Received> {
    let mut longer = [0; Bus::BYTES_MAX + 1];
    loop {
        let length = socket.recv(&mut longer)?;
        if (1..=Bus::BYTES_MAX).contains(&length) {
            buffer[..length].copy_from_slice(&longer[..length]);
            return Ok(Received::Frame { length, age: Duration::ZERO });
        }
    }
}

/// Returns the meaning of an error frame's class bits (`linux/can/error.h`).
fn report_of(bits: u32) -> Received {
    match bits {
        bits if bits & CAN_ERR_BUSOFF != 0 => Received::BusOff,
        bits if bits & CAN_ERR_RESTARTED != 0 => Received::Restarted,
        _ => Received::Error,
    }
}

/// Writes a frame into `buffer`, with a little-endian identifier; returns its length there.
fn lay_out(frame: &CanAnyFrame, buffer: &mut [u8; Bus::BYTES_MAX]) -> usize {
    let (length, flags) = match frame {
        CanAnyFrame::Fd(fd) => (Bus::BYTES_MAX, FD | u8::from(fd.is_brs())),
        CanAnyFrame::Normal(_) | CanAnyFrame::Remote(_) | CanAnyFrame::Error(_) => {
            (CLASSIC_BYTES, 0)
        }
    };
    let data = frame.data();
    *buffer = [0; Bus::BYTES_MAX];
    buffer[..4].copy_from_slice(&frame.id_word().to_le_bytes());
    // At most 64.
    buffer[4] = data.len() as u8;
    buffer[5] = flags;
    buffer[HEAD_BYTES..HEAD_BYTES + data.len()].copy_from_slice(data);
    length
}

/// Returns `frame`, whose identifier is little-endian, with the identifier in this computer's byte
/// order.
pub fn in_kernel_order(frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if let Some(id) = frame.first_chunk_mut::<4>() {
        *id = u32::from_le_bytes(*id).to_ne_bytes();
    }
    frame
}

fn is_full(error: &io::Error) -> bool {
    let is_without_room = error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error());
    is_without_room || error.kind() == ErrorKind::WouldBlock
}

impl Accepted {
    /// Returns identifier and mask as SocketCAN compares them; requests for data do not match.
    fn filter(self) -> (u32, u32) {
        let flags = CAN_EFF_FLAG | CAN_RTR_FLAG | CAN_ERR_FLAG;
        match self.is_extended {
            true => (self.id | CAN_EFF_FLAG, CAN_EFF_MASK | flags),
            false => (self.id, CAN_SFF_MASK | flags),
        }
    }
}

impl FromStr for Address {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        if let Some(Ok(address)) = text.strip_prefix("udp:").map(str::parse) {
            return Ok(Self::Udp(address));
        }
        let name_like = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !text.is_empty() && text.len() < 16 && text.chars().all(name_like) {
            return Ok(Self::Interface(text.to_owned()));
        }
        bail!("{text:?} is neither a CAN interface (can0) nor a simulator (udp:127.0.0.1:7600)")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interface(name) => f.write_str(name),
            Self::Udp(address) => write!(f, "udp:{address}"),
        }
    }
}

/// Length in bytes of a classic frame.
const CLASSIC_BYTES: usize = 16;
const HEAD_BYTES: usize = 8;
/// Flag that marks a frame as CAN FD (`linux/can.h`); bit 0 is the bitrate switch.
const FD: u8 = 4;

#[cfg(test)]
mod tests {
    use socketcan::id::FdFlags;
    use socketcan::{CanDataFrame, CanFdFrame, ExtendedId, StandardId};

    use super::*;

    fn bus(simulator: &UdpSocket) -> Bus {
        let address = Address::Udp(simulator.local_addr().unwrap());
        Bus::open(&address, &[]).unwrap()
    }

    fn simulator() -> UdpSocket {
        let simulator = UdpSocket::bind("127.0.0.1:0").unwrap();
        simulator.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        simulator
    }

    /// Returns what the bus receives within ten seconds.
    fn received(bus: &mut Bus, buffer: &mut [u8; 72]) -> io::Result<Received> {
        let waker = Waker::new().unwrap();
        for _ in 0..100 {
            wait(Some(bus), &waker, Duration::from_millis(100));
            match bus.receive(buffer) {
                Ok(None) => {}
                Ok(Some(received)) => return Ok(received),
                Err(error) => return Err(error),
            }
        }
        panic!("nothing was received");
    }

    #[test]
    fn a_bus_is_an_interface_or_a_simulator() {
        let parsed = |text: &str| text.parse::<Address>();
        assert_eq!(parsed("vcan0").unwrap(), Address::Interface("vcan0".into()));
        let udp = Address::Udp("[::1]:7600".parse().unwrap());
        assert_eq!(parsed("udp:[::1]:7600").unwrap(), udp);
        for text in ["vcan0", "udp:[::1]:7600"] {
            assert_eq!(parsed(text).unwrap().to_string(), text);
        }
        for wrong in ["", "udp:", "udp:here", "127.0.0.1:7600", "a-name-of-16-chars"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_simulator_is_shown_the_way_and_exchanges_frames() {
        let simulator = simulator();
        let mut bus = bus(&simulator);
        let mut buffer = [0; 72];
        let (length, way) = simulator.recv_from(&mut buffer).unwrap();
        assert_eq!(length, 0);
        assert_eq!(bus.send(&[7; 16]).unwrap(), Sent::Accepted);
        assert_eq!(simulator.recv(&mut buffer).unwrap(), 16);
        for datagram in [&[][..], &[1; 73], &[9; 72]] {
            simulator.send_to(datagram, way).unwrap();
        }
        let frame = received(&mut bus, &mut buffer).unwrap();
        assert_eq!(frame, Received::Frame { length: 72, age: Duration::ZERO });
        assert_eq!((buffer, bus.receive(&mut buffer).unwrap()), ([9; 72], None));
    }

    #[test]
    fn a_simulator_that_ends_is_an_error() {
        let simulator = simulator();
        let mut bus = bus(&simulator);
        drop(simulator);
        let _ = bus.send(&[1; 16]);
        let error = received(&mut bus, &mut [0; 72]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }

    #[test]
    fn an_interface_that_is_missing_or_no_bus_is_an_error() {
        for name in ["can-never", "lo"] {
            let error = Bus::open(&Address::Interface(name.into()), &[]).unwrap_err();
            assert!(error.raw_os_error().is_some(), "{name}: {error}");
        }
    }

    #[test]
    fn a_wake_ends_a_wait_even_if_it_came_before() {
        let waker = Waker::new().unwrap();
        waker.clone().wake();
        // Would otherwise take longer than the test may.
        wait(None, &waker, Duration::from_secs(3_600));
    }

    #[test]
    fn frames_are_laid_out_as_socketcan_has_them() {
        let mut buffer = [0xFF; 72];
        let id = StandardId::new(0x2E4).unwrap();
        let classic = CanDataFrame::new(id, &[1, 2, 3]).unwrap();
        assert_eq!(lay_out(&classic.into(), &mut buffer), 16);
        assert_eq!(buffer[..12], [0xE4, 2, 0, 0, 3, 0, 0, 0, 1, 2, 3, 0]);
        let id = ExtendedId::new(0x18FF_50E5).unwrap();
        let fd = CanFdFrame::with_flags(id, &[5; 12], FdFlags::BRS).unwrap();
        assert_eq!(lay_out(&fd.into(), &mut buffer), 72);
        assert_eq!(buffer[..9], [0xE5, 0x50, 0xFF, 0x98, 12, 5, 0, 0, 5]);
    }

    #[test]
    fn a_filter_takes_data_frames_of_its_identifier_alone() {
        let takes = |accepted: Accepted, word: u32| {
            let (id, mask) = accepted.filter();
            word & mask == id & mask
        };
        let standard = Accepted { id: 0x123, is_extended: false };
        let extended = Accepted { id: 0x123, is_extended: true };
        for (word, expected) in [
            (0x123, [true, false]),
            (0x124, [false, false]),
            (0x123 | CAN_EFF_FLAG, [false, true]),
            (0x123 | CAN_RTR_FLAG, [false, false]),
            (0x1_0123 | CAN_EFF_FLAG, [false, false]),
        ] {
            assert_eq!([takes(standard, word), takes(extended, word)], expected, "{word:#x}");
        }
    }

    #[test]
    fn reports_of_the_controller_are_told_apart() {
        assert_eq!(report_of(CAN_ERR_BUSOFF | CAN_ERR_CRTL), Received::BusOff);
        assert_eq!(report_of(CAN_ERR_RESTARTED), Received::Restarted);
        assert_eq!(report_of(CAN_ERR_CRTL), Received::Error);
    }
}
