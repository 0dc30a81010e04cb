use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tautline_net::can_bus;
use tautline_port::safe::{self, To, can_frame};

use crate::file;

/// Bytes that stop the machine without its program, and where they go.
///
/// They are sent every 10 ms while the program does not answer, and for a second after it was
/// killed.
#[pyclass(module = "tautline", frozen)]
#[derive(Debug)]
pub(crate) struct Safe {
    to: Place,
    bytes: Vec<u8>,
}

#[derive(Debug)]
enum Place {
    File(Arc<OwnedFd>),
    Udp(SocketAddr),
    Serial(PathBuf, Option<u32>),
    Can(can_bus::Address),
}

#[pymethods]
impl Safe {
    /// Sends the bytes to an open file, socket, pipe or device: an object with `fileno()`, or the
    /// number.
    #[staticmethod]
    fn fd(file: &Bound<'_, PyAny>, data: Vec<u8>) -> PyResult<Self> {
        let number: RawFd = match file.extract() {
            Ok(number) => number,
            Err(_) => file.call_method0("fileno")?.extract()?,
        };
        Ok(Self { to: Place::File(Arc::new(file::duplicate(number)?)), bytes: data })
    }

    /// Sends the bytes as a datagram to a UDP address such as `"192.168.0.7:9000"`.
    #[staticmethod]
    fn udp(address: &str, data: Vec<u8>) -> PyResult<Self> {
        let mut resolved = address.to_socket_addrs()?;
        let address = resolved.next().ok_or_else(|| PyValueError::new_err("no such host"))?;
        Ok(Self { to: Place::Udp(address), bytes: data })
    }

    /// Sends the bytes over the serial line at `path`. Without `baud` the line's settings stay.
    #[staticmethod]
    #[pyo3(signature = (path, data, baud=None))]
    fn serial(path: PathBuf, data: Vec<u8>, baud: Option<u32>) -> Self {
        Self { to: Place::Serial(path, baud), bytes: data }
    }

    /// Sends a frame with this identifier on a CAN bus: an interface such as `"can0"`, or
    /// `"udp:ADDRESS:PORT"` of a simulator.
    #[staticmethod]
    #[pyo3(signature = (bus, id, data, extended=false))]
    fn can(bus: &str, id: u32, data: Vec<u8>, extended: bool) -> PyResult<Self> {
        let bus = bus.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
        let frame = can_frame(id, extended, &data)
            .ok_or_else(|| PyValueError::new_err("identifiers have 29 bits, frames 64 bytes"))?;
        Ok(Self { to: Place::Can(bus), bytes: frame })
    }

    fn __repr__(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Safe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.len();
        match &self.to {
            Place::File(_) => write!(f, "Safe.fd(.., {bytes} bytes)"),
            Place::Udp(address) => write!(f, "Safe.udp(\"{address}\", {bytes} bytes)"),
            Place::Serial(path, _) => write!(f, "Safe.serial({path:?}, {bytes} bytes)"),
            Place::Can(bus) => write!(f, "Safe.can(\"{bus}\", {bytes} bytes)"),
        }
    }
}

impl Safe {
    /// Opens the place.
    pub(crate) fn open(&self) -> io::Result<safe::Safe> {
        let to = match &self.to {
            Place::File(file) => To::File(file.try_clone()?),
            Place::Udp(address) => To::Udp(*address),
            Place::Serial(path, baud) => To::Serial(path.clone(), *baud),
            Place::Can(bus) => To::Can(bus.clone()),
        };
        safe::Safe::open(to, self.bytes.clone())
    }
}
