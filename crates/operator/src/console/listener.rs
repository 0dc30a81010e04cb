//! The console's address: TCP, or beyond this machine TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use socket2::SockRef;
use tautline_net::absence::{self, Refused};
use tautline_net::door::{Connection, Door, Listener, Watched};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
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

/// Accepts at `listener` behind `door`, by TLS if that is `given`; `origin` is where browsers reach it.
///
/// # Errors
/// When the listener's own address is not known.
pub(crate) fn accept(
    listener: TcpListener,
    given: Option<Arc<ServerConfig>>,
    origin: &str,
    door: Door,
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
    listener.context("the console's address is not known")
}

/// TLS, and where a browser that does not speak it is sent.
#[derive(Clone)]
struct Tls {
    acceptor: TlsAcceptor,
    origin: Arc<str>,
}

impl Tls {
    /// Returns the sealed connection; `None` for a browser that did not speak TLS, and was told.
    async fn shake_hands(self, mut stream: Watched) -> io::Result<Option<Connection>> {
        let mut first = [0];
        if stream.tcp().peek(&mut first).await? == 0 {
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
/// A quarter of a second at 4 Mbit/s.
const SEND_BUFFER_BYTES: usize = 128 << 10;
