//! The console's address: TCP, or beyond this machine TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use socket2::SockRef;
use tautline_net::absence::{self, Refused};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// Opens the console's address, as soon as this machine has it.
///
/// # Errors
/// One line that says that the port is taken and what to do.
pub(crate) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let refused = |cause| {
        let what = format!("the console cannot listen on {address}");
        anyhow::Error::new(Refused::new(what, cause, "choose another with --console"))
    };
    absence::opened(async || TcpListener::bind(address).await.map_err(refused)).await
}

/// The connections that are accepted, past their TLS handshake where there is one.
#[derive(Debug)]
pub(crate) struct Listener {
    accepted: mpsc::Receiver<(Connection, Peer)>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

type Connection = Box<dyn Duplex>;

/// Bytes both ways, sealed or not.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// TLS, and where a browser that does not speak it is sent.
#[derive(Clone)]
struct Tls {
    acceptor: TlsAcceptor,
    origin: Arc<str>,
}

impl Listener {
    /// Accepts at `listener`, by TLS if that is `given`; `origin` is where browsers reach it.
    ///
    /// # Errors
    /// When the listener's own address is not known.
    pub(crate) fn start(
        listener: TcpListener,
        given: Option<Arc<ServerConfig>>,
        origin: &str,
    ) -> anyhow::Result<Self> {
        let address = listener.local_addr().context("the console's address is not known")?;
        let (sender, accepted) = mpsc::channel(1);
        let tls = given.map(|config| Tls { acceptor: config.into(), origin: origin.into() });
        let accepting = tokio::spawn(accept(listener, tls, sender));
        Ok(Self { accepted, address, accepting })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = Peer;

    async fn accept(&mut self) -> (Connection, Peer) {
        match self.accepted.recv().await {
            Some(accepted) => accepted,
            // The task that accepts ends with this listener alone.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer(self.address))
    }
}

impl Connected<IncomingStream<'_, Listener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        *stream.remote_addr()
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<Tls>,
    accepted: mpsc::Sender<(Connection, Peer)>,
) {
    let handshakes = Arc::new(Semaphore::new(HANDSHAKES_MAX));
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::debug!(%error, "a connection to the console was not accepted");
                sleep(RETRY).await;
                continue;
            }
        };
        prepare(&stream);
        let Some(tls) = tls.clone() else {
            if accepted.send((Box::new(stream), Peer(peer))).await.is_err() {
                return;
            }
            continue;
        };
        // A peer too many is turned away; each has little time.
        let Ok(place) = handshakes.clone().try_acquire_owned() else { continue };
        let accepted = accepted.clone();
        tokio::spawn(async move {
            let _place = place;
            match timeout(HANDSHAKE_MAX, tls.shake_hands(stream)).await {
                Ok(Ok(Some(connection))) => {
                    let _ = accepted.send((connection, Peer(peer))).await;
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a browser's TLS handshake failed"),
                Err(_) => tracing::debug!("a browser's TLS handshake was not finished in time"),
            }
        });
    }
}

impl Tls {
    /// Returns the sealed connection; `None` for a browser that did not speak TLS, and was told.
    async fn shake_hands(&self, mut stream: TcpStream) -> io::Result<Option<Connection>> {
        let mut first = [0];
        if stream.peek(&mut first).await? == 0 {
            return Ok(None);
        }
        if first[0] != TLS_HANDSHAKE {
            let words = format!("this console speaks HTTPS alone: {}/\n", self.origin);
            let head = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
                        Content-Type: text/plain\r\nContent-Length";
            stream.write_all(format!("{head}: {}\r\n\r\n{words}", words.len()).as_bytes()).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
        Ok(Some(Box::new(self.acceptor.accept(stream).await?)))
    }
}

/// Sends at once, and keeps little with the system. A slice is one message: nothing is gained by
/// holding its end back for more to come; and what waits here can still be dropped, while what the
/// system has taken is shown, however late.
fn prepare(stream: &TcpStream) {
    let small = SockRef::from(stream).set_send_buffer_size(SEND_BUFFER_BYTES);
    if let Err(error) = stream.set_nodelay(true).and(small) {
        tracing::debug!(%error, "a console's slices may wait for its acknowledgements");
    }
}

/// First byte of a record that holds a handshake. Source: [RFC8446] 5.1.
const TLS_HANDSHAKE: u8 = 22;
const HANDSHAKES_MAX: usize = 32;
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(100);
/// A quarter of a second at 4 Mbit/s.
const SEND_BUFFER_BYTES: usize = 128 << 10;
