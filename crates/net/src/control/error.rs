use std::error::Error as StdError;
use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use tautline_transport::crypto::PublicKey;

use super::HostError;
use crate::open_files;
use crate::source_address::{self, IPV4_ON_IPV6};

/// An error of a control connection.
///
/// Each displays as one line that includes the cause; none has a `source`, which would repeat it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server's address cannot be bound.
    #[error("cannot listen on {address}: {}", reason(.cause))]
    Listen {
        /// Address on which the server was to listen.
        address: SocketAddr,
        /// Error of the kernel at binding.
        cause: io::Error,
    },
    /// The kernel cannot accept a connection.
    #[error("cannot accept a connection: {}{}", reason(.0), open_files::remedy(.0))]
    Accept(io::Error),
    /// The text is no address of a server.
    #[error("{0}")]
    Address(HostError),
    /// None of several paths reaches the server.
    #[error("cannot reach {address}: {reasons}")]
    NoWay {
        /// Host and port as configured.
        address: String,
        /// Reasons of failure, each with the names of the paths that failed for it.
        reasons: String,
    },
    /// The server's name cannot be resolved, or the TCP connection cannot be made.
    #[error("cannot connect to {address}: {}", unreached(.address, .cause, source_address::is_ipv6_only))]
    Connect {
        /// Host and port as configured.
        address: String,
        /// Error of the resolver or the kernel.
        cause: io::Error,
    },
    /// The other end did not answer in time during the handshake.
    #[error("no answer from {address} within {after:?}")]
    Unanswered {
        /// Address of the other end.
        address: String,
        /// Time for which the other end was waited for.
        after: Duration,
    },
    /// The server holds a key other than the pinned one.
    #[error(
        "{address} has the key {found}, expected {expected}: the address is wrong, or the key was \
         replaced"
    )]
    WrongKey {
        /// Host and port as configured.
        address: String,
        /// Pinned key.
        expected: PublicKey,
        /// Key of the server.
        found: PublicKey,
    },
    /// The server did not issue the code.
    #[error(
        "{address} has the key {found}, which does not match the code: the address is wrong, or \
         somebody intercepts the connection"
    )]
    WrongCode {
        /// Host and port as given.
        address: String,
        /// Key of the server.
        found: PublicKey,
    },
    /// The TLS handshake failed for another reason.
    #[error("TLS handshake with {address} failed: {reason}")]
    Handshake {
        /// Address of the other end.
        address: String,
        /// Error of TLS.
        reason: String,
    },
    /// The other end speaks TLS, but not this protocol within it.
    #[error("{address} does not speak the control protocol tautline-control/1")]
    Protocol {
        /// Address of the other end.
        address: String,
    },
    /// No certificate can be made of the local key.
    #[error("cannot make a certificate from the key: {0}")]
    Certificate(String),
    /// A frame exceeds the limit, so the following bytes cannot be delimited.
    #[error("a frame of {bytes} bytes exceeds the limit of {bytes_max}")]
    FrameTooLong {
        /// Length of the refused frame's body, or the length in its header.
        bytes: u64,
        /// Maximum length of a frame.
        bytes_max: u64,
    },
    /// The other end closed the connection.
    #[error("the other end closed the connection")]
    Closed,
    /// The other end sent nothing, or took no data, for too long.
    #[error("the other end has sent nothing for {after:?}")]
    Silent {
        /// Maximum time without data, which has passed.
        after: Duration,
    },
    /// The connection broke.
    #[error("the connection failed: {}", reason(.0))]
    Broken(io::Error),
    /// There is no connection now; the frame was not accepted.
    #[error("not connected")]
    NotConnected,
    /// Too many frames are queued; the frame was not accepted.
    #[error("{frames} frames are already waiting to be sent")]
    QueueFull {
        /// Number of queued frames, which is the maximum.
        frames: usize,
    },
}

impl Error {
    /// Returns whether a server other than the expected one has answered.
    pub(super) fn is_another_server(&self) -> bool {
        matches!(self, Self::WrongKey { .. } | Self::WrongCode { .. } | Self::Protocol { .. })
    }
}

/// Converts the error of a failed TLS handshake with `address`.
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

/// A mismatch of the server's key with the pinned one or the code: passed through rustls, read by
/// [`handshake`].
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the key is {found}, not the expected one")]
pub(super) struct Mismatch {
    /// Pinned key; `None` if the client expects the issuer of a code.
    pub(super) expected: Option<PublicKey>,
    pub(super) found: PublicKey,
}

/// Returns why a server is unreachable; reports an IPv4 address on an IPv6-only network as such.
fn unreached(address: &str, cause: &io::Error, is_ipv6_only: fn() -> bool) -> String {
    let is_literal = address.parse::<SocketAddrV4>().is_ok();
    match cause.kind() {
        io::ErrorKind::NetworkUnreachable if is_literal && is_ipv6_only() => {
            IPV4_ON_IPV6.to_owned()
        }
        _ => reason(cause),
    }
}

/// Returns a short text of a kernel's or TLS's error: one of our own for common kinds, else that of
/// the innermost cause.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another program uses the address".to_owned(),
        io::ErrorKind::AddrNotAvailable => "this machine does not have the address".to_owned(),
        io::ErrorKind::PermissionDenied => "not permitted".to_owned(),
        io::ErrorKind::ConnectionRefused => "connection refused: nothing listens there".to_owned(),
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
    fn an_ipv4_address_on_an_ipv6_only_machine_is_explained() {
        let cause = io::Error::from(io::ErrorKind::NetworkUnreachable);
        let words = unreached("192.0.2.1:7443", &cause, || true);
        assert!(words.contains("this machine has only IPv6") && words.contains("name"), "{words}");
        for (address, is_ipv6_only) in
            [("192.0.2.1:7443", false), ("[2001:db8::1]:7443", true), ("host:7443", true)]
        {
            let is_ipv6_only: fn() -> bool = if is_ipv6_only { || true } else { || false };
            assert_eq!(unreached(address, &cause, is_ipv6_only), reason(&cause), "{address}");
        }
    }
}
