//! The console's address: plain TCP on this machine, TLS beyond it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use socket2::SockRef;
use tautline_net::accept_limit::{AcceptLimit, Connection, Listener, Watched};
use tautline_net::unavailable::{self, Refused};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// Opens the console's address; waits until this machine has that address.
///
/// # Errors
/// Returns one line with the cause, such as a port in use, and the remedy.
pub(crate) async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let refused = |cause| {
        let what = format!("the console cannot listen on {address}");
        anyhow::Error::new(Refused::new(what, cause, "choose another with --console"))
    };
    unavailable::opened(async || TcpListener::bind(address).await.map_err(refused)).await
}

/// Accepts connections at `listener` limited by `door`, with TLS if that is `given`; the response
/// to a browser without TLS names `origin`, where the console is reached.
///
/// # Errors
/// Fails if the listener's own address is unknown.
pub(crate) fn accept(
    listener: TcpListener,
    given: Option<Arc<ServerConfig>>,
    origin: &str,
    door: AcceptLimit,
) -> anyhow::Result<Listener> {
    let tls = given.map(|config| Tls { acceptor: config.into(), origin: origin.into() });
    let listener = Listener::start(listener, door, move |stream| {
        prepare(stream.tcp());
        match tls.clone() {
            Some(tls) => Box::pin(tls.shake_hands(stream)),
            None => {
                let connection: Connection = Box::new(stream);
                Box::pin(std::future::ready(Ok(Some(connection))))
            }
        }
    });
    listener.context("the console's address is unknown")
}

/// TLS of the console's address, and the console's origin, which the response to a browser without
/// TLS contains.
#[derive(Clone)]
struct Tls {
    acceptor: TlsAcceptor,
    origin: Arc<str>,
}

impl Tls {
    /// Returns the encrypted connection; `None` if the peer closed at once, or for a browser
    /// without TLS, which gets a response that names the address to open.
    async fn shake_hands(self, mut stream: Watched) -> io::Result<Option<Connection>> {
        let mut first = [0];
        if stream.tcp().peek(&mut first).await? == 0 {
            return Ok(None);
        }
        if first[0] != TLS_HANDSHAKE {
            let words = format!("this console requires HTTPS: open {}/\n", self.origin);
            let head = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\
                        Content-Type: text/plain\r\nContent-Length";
            stream.write_all(format!("{head}: {}\r\n\r\n{words}", words.len()).as_bytes()).await?;
            stream.shutdown().await?;
            return Ok(None);
        }
        Ok(Some(Box::new(self.acceptor.accept(stream).await?)))
    }
}

/// Disables Nagle's algorithm and limits the system's send buffer to 128 KiB; a failure is only
/// logged. A slice is one message, so delaying its end gains nothing. Data queued here can still be
/// dropped; data in the system's buffer is shown however late it is.
fn prepare(stream: &TcpStream) {
    let small = SockRef::from(stream).set_send_buffer_size(SEND_BUFFER_BYTES);
    if let Err(error) = stream.set_nodelay(true).and(small) {
        tracing::debug!(%error, "cannot limit the send buffer: slices may be delayed");
    }
}

/// First byte of a record that holds a handshake. Source: [RFC8446] 5.1.
const TLS_HANDSHAKE: u8 = 22;
/// Size of the system's send buffer for a browser: a quarter of a second at 4 Mbit/s.
const SEND_BUFFER_BYTES: usize = 128 << 10;
