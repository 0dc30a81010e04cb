use std::io;

use rustix::io::Errno;

/// An operation that the system refused.
///
/// Displays as one line: the operation, the system's error, and a hint. It has no `source`, which
/// would repeat the system's error.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {cause}{}{help}", if .help.is_empty() { "" } else { ": " })]
pub struct Refused {
    what: String,
    cause: io::Error,
    help: &'static str,
}

impl Refused {
    /// Creates the error of the operation `what`; `help` may be empty.
    pub fn new(what: impl Into<String>, cause: io::Error, help: &'static str) -> Self {
        Self { what: what.into(), cause, help }
    }

    /// Returns whether the missing resource may appear by itself; see
    /// [`unavailable::comes_by_itself`](crate::unavailable::comes_by_itself).
    pub fn comes_by_itself(&self) -> bool {
        is_absent(&self.cause)
    }
}

/// Returns whether the system reports that something does not exist.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    match error.raw_os_error() {
        Some(code) => ABSENT.iter().any(|absent| absent.raw_os_error() == code),
        None => matches!(
            error.kind(),
            io::ErrorKind::AddrNotAvailable
                | io::ErrorKind::NetworkDown
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::NotFound
        ),
    }
}

/// Errors of the system for something that does not exist.
pub(crate) const ABSENT: [Errno; 9] = [
    Errno::NODEV,
    Errno::NXIO,
    Errno::NOENT,
    Errno::ADDRNOTAVAIL,
    // A family of addresses whose module is loaded later.
    Errno::AFNOSUPPORT,
    Errno::NETDOWN,
    Errno::NETUNREACH,
    Errno::HOSTUNREACH,
    // A disk that is mounted read-only until it has been checked.
    Errno::ROFS,
];
