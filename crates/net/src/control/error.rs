use std::error::Error as StdError;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use tautline_transport::crypto::PublicKey;

use super::HostError;
use crate::reach;

/// A reason why there is no control connection.
///
/// Each displays as one clear line, the cause included: none has a `source` that would say it
/// again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server's address cannot be listened on.
    #[error("cannot listen on {address}: {}", reason(.cause))]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel says.
        cause: io::Error,
    },
    /// The kernel hands over no new connection.
    #[error("cannot accept a connection: {}", reason(.0))]
    Accept(io::Error),
    /// The text is no address of a server.
    #[error("{0}")]
    Address(HostError),
    /// The server is reached by none of several ways.
    #[error("no way leads to {address}: {reasons}")]
    NoWay {
        /// Host and port as configured.
        address: String,
        /// The reason of each way.
        reasons: String,
    },
    /// The server cannot be reached.
    #[error("cannot connect to {address}: {}", unreached(.address, .cause, reach::is_ipv6_only))]
    Connect {
        /// Host and port as configured.
        address: String,
        /// What the resolver or the kernel says.
        cause: io::Error,
    },
    /// The other end did not answer in time while the connection was made.
    #[error("no answer from {address} within {after:?}")]
    Unanswered {
        /// Whom we asked.
        address: String,
        /// How long we waited.
        after: Duration,
    },
    /// The server holds another key than the pinned one.
    #[error("{address} has the key {found}, expected {expected}: wrong address, or a new key?")]
    WrongKey {
        /// Host and port as configured.
        address: String,
        /// The pinned key.
        expected: PublicKey,
        /// The key it showed.
        found: PublicKey,
    },
    /// The server is not the one that has made the code.
    #[error(
        "{address} has the key {found}, which is not of this code: a wrong address, or somebody between"
    )]
    WrongCode {
        /// Host and port as given.
        address: String,
        /// The key it showed.
        found: PublicKey,
    },
    /// The TLS handshake failed for another reason.
    #[error("TLS handshake with {address} failed: {reason}")]
    Handshake {
        /// The other end.
        address: String,
        /// What TLS says.
        reason: String,
    },
    /// The other end does speak TLS, but not this protocol within it.
    #[error("{address} does not speak the control protocol tautline-control/1")]
    Protocol {
        /// The other end.
        address: String,
    },
    /// Our own key cannot be put into a certificate.
    #[error("no certificate can be made from the key: {0}")]
    Certificate(String),
    /// A frame is longer than the limit; what follows cannot be told apart.
    #[error("a frame of {bytes} bytes is over the limit of {bytes_max}")]
    FrameTooLong {
        /// Its length, or what the header claims it to be.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The other end closed the connection.
    #[error("the other end closed the connection")]
    Closed,
    /// The other end said nothing for too long.
    #[error("the other end has been silent for {after:?}")]
    Silent {
        /// How long.
        after: Duration,
    },
    /// The connection broke.
    #[error("the connection broke: {}", reason(.0))]
    Broken(io::Error),
    /// There is no connection at the moment; the frame was not taken.
    #[error("not connected")]
    NotConnected,
    /// Too many frames wait to be sent; the frame was not taken.
    #[error("{frames} frames wait to be sent already")]
    QueueFull {
        /// The limit, reached.
        frames: usize,
    },
}

impl Error {
    /// Returns whether a server has answered that is not the one that is meant.
    pub(super) fn is_another_server(&self) -> bool {
        matches!(self, Self::WrongKey { .. } | Self::WrongCode { .. } | Self::Protocol { .. })
    }
}

/// Returns what a failed TLS handshake with `address` was about.
pub(crate) fn handshake(address: &str, error: io::Error) -> Error {
    let address = address.to_owned();
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return match error.kind() {
            io::ErrorKind::UnexpectedEof => Error::Handshake {
                address,
                reason: "the other end closed the connection".to_owned(),
            },
            _ => Error::Handshake { address, reason: reason(&error) },
        };
    };
    if let rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) = tls
        && let Some(&Mismatch { expected, found }) = other.0.downcast_ref::<Mismatch>()
    {
        return match expected {
            Some(expected) => Error::WrongKey { address, expected, found },
            None => Error::WrongCode { address, found },
        };
    }
    Error::Handshake { address, reason: tls.to_string() }
}

/// The server's key is not the pinned one, or not of the code: carried through rustls, read by [`handshake`].
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the key is {found}, expected another")]
pub(super) struct Mismatch {
    /// `None`: whichever the code is of.
    pub(super) expected: Option<PublicKey>,
    pub(super) found: PublicKey,
}

/// Returns why a server is not reached; an IPv4 address where there is no IPv4 is told as that.
fn unreached(address: &str, cause: &io::Error, is_ipv6_only: fn() -> bool) -> String {
    let is_literal = address.parse::<SocketAddrV4>().is_ok();
    match cause.kind() {
        io::ErrorKind::NetworkUnreachable if is_literal && is_ipv6_only() => {
            reach::IPV4_ON_IPV6.to_owned()
        }
        _ => reason(cause),
    }
}

/// Returns a kernel's or TLS's error in few words: without its number, with the innermost cause.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "address in use by another program".to_owned(),
        io::ErrorKind::AddrNotAvailable => "no such address on this machine".to_owned(),
        io::ErrorKind::PermissionDenied => "not permitted".to_owned(),
        io::ErrorKind::ConnectionRefused => "connection refused: nobody listens there".to_owned(),
        _ => {
            let mut text = error.to_string();
            let mut cause = error.get_ref().and_then(|inner| inner.source());
            while let Some(inner) = cause {
                text = inner.to_string();
                cause = StdError::source(inner);
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_address_where_there_is_ipv6_alone_is_told_as_that() {
        let cause = io::Error::from(io::ErrorKind::NetworkUnreachable);
        let words = unreached("192.0.2.1:7443", &cause, || true);
        assert!(words.contains("this machine has IPv6 alone") && words.contains("name"), "{words}");
        for (address, is_ipv6_only) in
            [("192.0.2.1:7443", false), ("[2001:db8::1]:7443", true), ("host:7443", true)]
        {
            let is_ipv6_only: fn() -> bool = if is_ipv6_only { || true } else { || false };
            assert_eq!(unreached(address, &cause, is_ipv6_only), reason(&cause), "{address}");
        }
    }
}
