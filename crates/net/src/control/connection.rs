use std::io;
use std::net::SocketAddr;

use rustls::pki_types::CertificateDer;
use tautline_transport::crypto::PublicKey;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use super::frame::{Assembler, frame};
use super::{Error, tls};

/// An authenticated connection that carries frames in both directions.
#[derive(Debug)]
pub struct Connection {
    peer_key: PublicKey,
    local: SocketAddr,
    remote: SocketAddr,
    sender: Sender,
    receiver: Receiver,
}

/// The sending half of a [`Connection`].
#[derive(Debug)]
pub struct Sender {
    stream: WriteHalf<TlsStream<TcpStream>>,
}

/// The receiving half of a [`Connection`].
#[derive(Debug)]
pub struct Receiver {
    stream: ReadHalf<TlsStream<TcpStream>>,
    assembler: Assembler,
}

impl Connection {
    /// Wraps a stream after its handshake; `address` names the other end in errors. Fails if that
    /// end speaks another protocol or has shown no usable key.
    pub(super) fn new(stream: TlsStream<TcpStream>, address: &str) -> Result<Self, Error> {
        let (tcp, session) = stream.get_ref();
        let ends = tcp.local_addr().and_then(|local| Ok((local, tcp.peer_addr()?)));
        let (local, remote) = ends.map_err(Error::Broken)?;
        if session.alpn_protocol() != Some(tls::CONTROL) {
            return Err(Error::Protocol { address: address.to_owned() });
        }
        let certificate: Option<&CertificateDer<'_>> =
            session.peer_certificates().and_then(|chain| chain.first());
        let key = certificate.map(tls::key_of);
        let Some(Ok(peer_key)) = key else {
            let reason = "it sent no usable key".to_owned();
            return Err(Error::Handshake { address: address.to_owned(), reason });
        };
        let (read, write) = tokio::io::split(stream);
        let receiver = Receiver { stream: read, assembler: Assembler::default() };
        Ok(Self { peer_key, local, remote, sender: Sender { stream: write }, receiver })
    }

    /// Returns the key that the other end has proven to hold.
    pub fn peer_key(&self) -> PublicKey {
        self.peer_key
    }

    /// Returns the local address of this connection.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Returns the remote address of this connection.
    pub fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Sends one frame; see [`Sender::send`].
    ///
    /// # Errors
    /// Same as [`Sender::send`].
    pub async fn send(&mut self, body: &[u8]) -> Result<(), Error> {
        self.sender.send(body).await
    }

    /// Returns the next frame; see [`Receiver::recv`].
    ///
    /// # Errors
    /// Same as [`Receiver::recv`].
    pub async fn recv(&mut self) -> Result<Option<Vec<u8>>, Error> {
        self.receiver.recv().await
    }

    /// Splits the connection into halves for two tasks, or two arms of a `select!`.
    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }
}

impl Sender {
    /// Sends one frame; returns when the kernel has accepted it.
    ///
    /// Not safe to cancel: after a cancelled call only [`close`](Self::close) is valid.
    ///
    /// # Errors
    /// [`Error::FrameTooLong`] if `body` exceeds [`BODY_BYTES_MAX`](super::BODY_BYTES_MAX): then
    /// nothing is sent. [`Error::Broken`] or [`Error::Closed`] if the connection is lost.
    pub async fn send(&mut self, body: &[u8]) -> Result<(), Error> {
        let bytes = frame(body)?;
        self.stream.write_all(&bytes).await.map_err(broken)?;
        self.stream.flush().await.map_err(broken)
    }

    /// Signals the end of the data to the other end.
    pub async fn close(&mut self) {
        // A lost connection needs no closing.
        let _ = self.stream.shutdown().await;
    }
}

impl Receiver {
    /// Returns the next frame's body, or `None` after the other end has closed the connection.
    ///
    /// Safe to cancel: a partly read frame is kept for the next call.
    ///
    /// # Errors
    /// [`Error::FrameTooLong`] if the header exceeds [`BODY_BYTES_MAX`](super::BODY_BYTES_MAX):
    /// then the connection must be dropped. [`Error::Closed`] in the middle of a frame,
    /// [`Error::Broken`] if the connection broke.
    pub async fn recv(&mut self) -> Result<Option<Vec<u8>>, Error> {
        loop {
            if let Some(body) = self.assembler.next()? {
                return Ok(Some(body));
            }
            match self.stream.read_buf(self.assembler.space()).await.map_err(broken) {
                Ok(0) | Err(Error::Closed) => {
                    let cut = self.assembler.is_within_frame();
                    return if cut { Err(Error::Closed) } else { Ok(None) };
                }
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Converts the kernel's error: to [`Error::Closed`] if the other end has gone, also without TLS's
/// close_notify, which a killed process does not send; else to [`Error::Broken`].
fn broken(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => Error::Closed,
        _ => Error::Broken(error),
    }
}
