use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use tautline_units::Instant;

use crate::log_limit::LogLimit;
use crate::open_files;

/// A listening socket of the event loop. After a failed call it waits, until a connection may have
/// ended.
#[derive(Debug)]
pub(super) struct Accepting {
    pub(super) socket: TcpListener,
    not_before: Instant,
    failures: u64,
    log: LogLimit,
}

/// Result of an attempt to accept a connection.
#[derive(Debug)]
pub(super) enum Accepted {
    Connection(TcpStream, SocketAddr),
    /// None is waiting, or it is too early after a failure.
    Nothing,
    /// The kernel could not accept the waiting connection, which was counted and logged.
    Refused,
}

impl Accepting {
    pub(super) fn new(socket: TcpListener) -> Self {
        Self { socket, not_before: Instant::ZERO, failures: 0, log: LogLimit::default() }
    }

    /// Accepts the next connection, if one is waiting; does nothing within [`PAUSE`] of a failed
    /// call.
    pub(super) fn accept(&mut self, now: Instant) -> Accepted {
        if now < self.not_before {
            return Accepted::Nothing;
        }
        let error = match self.socket.accept() {
            Ok((socket, remote)) => return Accepted::Connection(socket, remote),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Accepted::Nothing,
            Err(error) => error,
        };
        self.not_before = now + PAUSE;
        self.failures += 1;
        if let Some(left_out) = self.log.take_of(&error.to_string(), now) {
            let (count, remedy) = (self.failures, open_files::remedy(&error));
            tracing::warn!(count, left_out, "cannot accept a connection for TLS: {error}{remedy}");
        }
        Accepted::Refused
    }
}

/// Time after a failed accept call in which no other is made: a connection may end and release the
/// resource that the kernel lacked.
const PAUSE: Duration = Duration::from_millis(100);
