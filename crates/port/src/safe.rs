//! Bytes that stop a machine without its program.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use tautline_net::can_bus;
use tautline_net::output::Output;

/// Bytes that its owner declares as safe, with the open place that they are sent to: what an
/// actuator obeys although the machine's program no longer answers.
#[derive(Debug)]
pub struct Safe {
    output: Output,
    bytes: Vec<u8>,
    /// Description of the place, for the log.
    to: String,
}

/// Place that the bytes are sent to.
#[derive(Debug)]
pub enum To {
    /// An open file, socket, pipe or device.
    File(OwnedFd),
    /// A UDP address.
    Udp(SocketAddr),
    /// A serial line: its path, and its baud rate; `None` leaves the line as it is.
    Serial(PathBuf, Option<u32>),
    /// A CAN bus; the bytes are a frame of SocketCAN's layout ([`can_frame`]).
    Can(can_bus::Address),
}

impl Safe {
    /// Maximum length of the bytes.
    pub const BYTES_MAX: usize = 4096;

    /// Opens the place.
    ///
    /// # Errors
    /// Those of the system, and more bytes than [`BYTES_MAX`](Self::BYTES_MAX).
    pub fn open(to: To, bytes: Vec<u8>) -> io::Result<Self> {
        if bytes.is_empty() || bytes.len() > Self::BYTES_MAX {
            let limits = format!("{} bytes; 1 to {} are possible", bytes.len(), Self::BYTES_MAX);
            return Err(io::Error::new(io::ErrorKind::InvalidInput, limits));
        }
        let name = to.to_string();
        let (output, bytes) = match to {
            To::File(file) => (Output::of(file)?, bytes),
            To::Udp(address) => (Output::udp(address)?, bytes),
            To::Serial(path, baud) => (Output::serial(&path, baud)?, bytes),
            To::Can(can_bus::Address::Udp(address)) => (Output::udp(address)?, bytes),
            To::Can(can_bus::Address::Interface(name)) => {
                (Output::can(&name)?, can_bus::in_kernel_order(&bytes))
            }
        };
        Ok(Self { output, bytes, to: name })
    }

    /// Creates safe bytes for a place that another process has opened.
    pub(crate) fn received(output: OwnedFd, bytes: Vec<u8>) -> io::Result<Self> {
        Ok(Self { output: Output::of(output)?, bytes, to: "a place of the machine".to_owned() })
    }

    /// Sends the bytes; returns whether the system took them. Never waits, except as
    /// [`Output::of`] says.
    pub fn send(&self) -> bool {
        self.output.write(&self.bytes)
    }

    pub(crate) fn output(&self) -> &Output {
        &self.output
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Returns a frame of a CAN bus in the layout of SocketCAN, with a little-endian identifier: 16
/// bytes, or 72 of CAN FD for more than 8 data bytes. `None` for more than 64, or an identifier of
/// more than 29 bits. One of more than 11 bits is an extended one, as is any if `is_extended`.
pub fn can_frame(id: u32, is_extended: bool, data: &[u8]) -> Option<Vec<u8>> {
    if id >= 1 << 29 || data.len() > 64 {
        return None;
    }
    let extended = if is_extended || id >= 1 << 11 { 1 << 31 } else { 0 };
    let is_classic = data.len() <= 8;
    let room = if is_classic { 8 } else { 64 };
    // CAN FD has these lengths alone above 8 bytes.
    let length = [12, 16, 20, 24, 32, 48, 64].into_iter().find(|length| data.len() <= *length);
    let length = if is_classic { data.len() } else { length.unwrap_or(64) };
    let mut frame = Vec::with_capacity(8 + room);
    frame.extend((id | extended).to_le_bytes());
    frame.extend([length as u8, if is_classic { 0 } else { FD }, 0, 0]);
    frame.extend(data);
    frame.resize(8 + room, 0);
    Some(frame)
}

impl fmt::Display for Safe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to)
    }
}

impl fmt::Display for To {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(_) => f.write_str("an open file"),
            Self::Udp(address) => write!(f, "UDP {address}"),
            Self::Serial(path, _) => write!(f, "{}", Path::display(path)),
            Self::Can(bus) => write!(f, "CAN {bus}"),
        }
    }
}

/// Flag that marks a frame as CAN FD (`linux/can.h`).
const FD: u8 = 4;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_frame_has_the_layout_of_socketcan() {
        let classic = can_frame(0x123, false, &[1, 2]).unwrap();
        assert_eq!(classic, [0x23, 1, 0, 0, 2, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0]);
        let extended = can_frame(0x1ABCDEF0, false, &[]).unwrap();
        assert_eq!(extended[..5], [0xF0, 0xDE, 0xBC, 0x9A, 0]);
        assert_eq!(can_frame(1, true, &[]).unwrap()[3], 0x80);
        let fd = can_frame(1, false, &[9; 13]).unwrap();
        assert_eq!((fd.len(), fd[4], fd[5], fd[20], fd[21]), (72, 16, 4, 9, 0));
        assert!(can_frame(1 << 29, true, &[]).is_none() && can_frame(1, false, &[0; 65]).is_none());
    }

    #[test]
    fn a_simulated_bus_gets_the_frame_and_no_wrong_length() {
        let simulator = UdpSocket::bind("127.0.0.1:0").unwrap();
        let bus = can_bus::Address::Udp(simulator.local_addr().unwrap());
        let frame = can_frame(0x7F, false, &[1]).unwrap();
        let safe = Safe::open(To::Can(bus.clone()), frame.clone()).unwrap();
        assert!(safe.send() && safe.to_string().starts_with("CAN udp:127.0.0.1"));
        let mut buffer = [0; 80];
        let length = simulator.recv(&mut buffer).unwrap();
        assert_eq!(buffer[..length], frame);
        for bytes in [vec![], vec![0; 4097]] {
            assert!(Safe::open(To::Can(bus.clone()), bytes).is_err());
        }
    }
}
