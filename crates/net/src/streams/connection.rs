use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustix::io::Errno;
use rustls::{AlertDescription, ClientConfig, ClientConnection, ServerConfig, ServerConnection};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tautline_transport::wire::{Frames, write_frame};
use tautline_units::Instant;

use crate::control::{error, tls};
use crate::socket::Local;

/// One TCP connection that carries a link's datagrams within TLS.
///
/// Its queues are bounded: outbound one datagram, plus [`UNSENT_BYTES`] in the kernel; inbound one
/// datagram and one read.
#[derive(Debug)]
pub(super) struct Connection {
    socket: TcpStream,
    remote: SocketAddr,
    tls: rustls::Connection,
    frames: Frames,
    /// Protocol that both ends must speak within TLS, by its ALPN name.
    protocol: &'static [u8],
    phase: Phase,
    began_at: Instant,
    heard_at: Instant,
    outgoing: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The TCP handshake is in progress.
    Connecting,
    /// The TLS handshake is in progress.
    Proving,
    /// Datagrams are exchanged.
    Open,
    /// Datagrams are exchanged, but the socket accepts none now.
    Full,
}

/// A reason why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum End {
    #[error("the other end closed the connection")]
    Closed,
    #[error("the other end refuses this end's key: it has no session with it")]
    Refused,
    #[error("no answer within {HANDSHAKE_MAX:?}")]
    Unanswered,
    #[error("the other end has sent nothing for {CONNECTION_TIMEOUT:?}")]
    Silent,
    #[error("the received bytes are not a sequence of datagrams")]
    Malformed,
    #[error("the other end speaks another protocol within TLS")]
    Protocol,
    #[error("{0}")]
    Tls(crate::control::Error),
    #[error("{0}")]
    Broken(#[from] io::Error),
}

impl End {
    /// Returns whether the other end violated the protocol or refused this end.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Malformed | Self::Protocol | Self::Refused | Self::Tls(_) => true,
            Self::Closed | Self::Unanswered | Self::Silent | Self::Broken(_) => false,
        }
    }
}

impl Connection {
    /// Starts to connect to `remote` from `local`.
    pub(super) fn dial(
        remote: SocketAddr,
        local: &Local,
        (config, protocol): (&Arc<ClientConfig>, &'static [u8]),
        registry: &Registry,
        token: Token,
        now: Instant,
    ) -> Result<Self, End> {
        let socket = connect(remote, local)?;
        let tls = ClientConnection::new(Arc::clone(config), tls::server_name());
        let tls = tls.map_err(|error| tls_end(remote, error))?;
        Self::new((socket, remote), tls.into(), (Phase::Connecting, protocol), registry, token, now)
    }

    /// Creates a connection from an accepted TCP socket; its TLS handshake is still to be done.
    pub(super) fn accepted(
        socket: TcpStream,
        remote: SocketAddr,
        (config, protocol): (&Arc<ServerConfig>, &'static [u8]),
        registry: &Registry,
        token: Token,
        now: Instant,
    ) -> Result<Self, End> {
        tune(&SockRef::from(&socket))?;
        let tls = ServerConnection::new(Arc::clone(config));
        let tls = tls.map_err(|error| tls_end(remote, error))?;
        Self::new((socket, remote), tls.into(), (Phase::Proving, protocol), registry, token, now)
    }

    fn new(
        (mut socket, remote): (TcpStream, SocketAddr),
        mut tls: rustls::Connection,
        (phase, protocol): (Phase, &'static [u8]),
        registry: &Registry,
        token: Token,
        now: Instant,
    ) -> Result<Self, End> {
        tls.set_buffer_limit(Some(TLS_BYTES_MAX));
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self {
            socket,
            remote,
            tls,
            frames: Frames::default(),
            protocol,
            phase,
            began_at: now,
            heard_at: now,
            outgoing: Vec::new(),
        })
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.remote
    }

    pub(super) fn began_at(&self) -> Instant {
        self.began_at
    }

    pub(super) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// Returns whether the other end has proven its key.
    pub(super) fn is_open(&self) -> bool {
        match self.phase {
            Phase::Open | Phase::Full => true,
            Phase::Connecting | Phase::Proving => false,
        }
    }

    /// Returns whether a datagram can be sent now.
    pub(super) fn takes(&self) -> bool {
        self.phase == Phase::Open
    }

    /// Returns whether the socket accepts no data now.
    pub(super) fn is_full(&self) -> bool {
        self.phase == Phase::Full
    }

    /// Performs all work possible now, and passes each received datagram to `take`; returns whether
    /// more may wait.
    ///
    /// # Errors
    /// The reason why the connection ends.
    pub(super) fn turn(&mut self, take: impl FnMut(&[u8]), now: Instant) -> Result<bool, End> {
        let is_late = now.since(self.began_at) >= HANDSHAKE_MAX;
        if self.phase == Phase::Connecting {
            if !self.is_connected()? {
                return if is_late { Err(End::Unanswered) } else { Ok(false) };
            }
            self.phase = Phase::Proving;
        }
        let more = self.receive(take, now)?;
        self.flush()?;
        match self.phase {
            Phase::Connecting | Phase::Proving if !self.tls.is_handshaking() => {
                if self.tls.alpn_protocol() != Some(self.protocol) {
                    return Err(End::Protocol);
                }
                self.phase = Phase::Open;
            }
            Phase::Connecting | Phase::Proving if is_late => return Err(End::Unanswered),
            Phase::Connecting | Phase::Proving => {}
            Phase::Open | Phase::Full => {
                if now.since(self.heard_at) >= CONNECTION_TIMEOUT {
                    return Err(End::Silent);
                }
            }
        }
        Ok(more)
    }

    /// Sends a datagram; returns `false` and drops it if the socket accepts no data now.
    ///
    /// # Errors
    /// The reason why the connection ends.
    pub(super) fn send(&mut self, datagram: &[u8]) -> Result<bool, End> {
        if self.phase != Phase::Open {
            return Ok(false);
        }
        self.outgoing.clear();
        write_frame(datagram, &mut self.outgoing);
        // One record per datagram, so that a datagram is complete as soon as its last byte arrives.
        self.tls.writer().write_all(&self.outgoing)?;
        self.flush()?;
        Ok(true)
    }

    fn is_connected(&self) -> Result<bool, End> {
        if let Some(error) = self.socket.take_error()? {
            return Err(error.into());
        }
        match self.socket.peer_addr() {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&mut self, mut take: impl FnMut(&[u8]), now: Instant) -> Result<bool, End> {
        let mut bytes = [0; READ_BYTES];
        for _ in 0..READS_TURN {
            match self.tls.read_tls(&mut self.socket) {
                Ok(0) => return Err(End::Closed),
                Ok(_) => self.heard_at = now,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            if let Err(error) = self.tls.process_new_packets() {
                // The alert reaches the other end if its socket accepts it at once.
                let _ = self.tls.write_tls(&mut self.socket);
                return Err(tls_end(self.remote, error));
            }
            loop {
                match self.tls.reader().read(&mut bytes) {
                    Ok(0) => return Err(End::Closed),
                    Ok(length) => self.frames.push(&bytes[..length]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
                while let Some(datagram) = self.frames.take().map_err(|_| End::Malformed)? {
                    take(datagram);
                }
            }
        }
        Ok(true)
    }

    /// Writes TLS output to the socket, as far as it accepts it: an open connection is full until
    /// all is written.
    fn flush(&mut self) -> Result<(), End> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.phase == Phase::Open {
                        self.phase = Phase::Full;
                    }
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.phase == Phase::Full {
            self.phase = Phase::Open;
        }
        Ok(())
    }
}

/// Returns the reason of a connection's end by a TLS error: [`End::Refused`] if the other end
/// denied access, otherwise [`End::Tls`].
fn tls_end(remote: SocketAddr, error: rustls::Error) -> End {
    if error == rustls::Error::AlertReceived(AlertDescription::AccessDenied) {
        return End::Refused;
    }
    let failed = io::Error::new(ErrorKind::InvalidData, error);
    End::Tls(error::handshake(&remote.to_string(), failed))
}

/// Starts a non-blocking connection from `local`'s address or interface and any port.
fn connect(remote: SocketAddr, local: &Local) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(remote), Type::STREAM, Some(Protocol::TCP))?;
    match local {
        Local::Interface(name) => socket.bind_device(Some(name.as_bytes()))?,
        Local::Address(address) if !address.ip().is_unspecified() => {
            socket.bind(&SocketAddr::new(address.ip(), 0).into())?;
        }
        Local::Address(_) => {}
    }
    tune(&SockRef::from(&socket))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&remote.into()) {
        Err(error) if error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error()) => Err(error),
        Ok(()) | Err(_) => Ok(TcpStream::from_std(socket.into())),
    }
}

fn tune(socket: &SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES)?;
    // Losses on a radio link do not indicate a queue, so BBR fits best. If the kernel lacks or
    // denies it, its default is used.
    let _ = socket.set_tcp_congestion(b"bbr");
    Ok(())
}

/// Maximum time until a connection has completed its handshake; then it ends: two round trips of a
/// bad mobile link, with room for one repeated SYN.
const HANDSHAKE_MAX: Duration = Duration::from_secs(3);
/// Silence after which an open connection ends: several pings of the session, which sends at least
/// five a second.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of unsent bytes in the kernel below which a connection accepts more: 8 ms at 4 Mbit/s,
/// enough to continue sending until this process wakes.
const UNSENT_BYTES: u32 = 4_096;
/// Maximum of TLS's outbound buffer: a handshake's flight, mainly the certificate.
const TLS_BYTES_MAX: usize = 8_192;
const READ_BYTES: usize = 4_096;
/// Read calls per connection before the session may send again.
const READS_TURN: usize = 16;
