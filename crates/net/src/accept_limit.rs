//! Admission of connections to a TCP server: limits on their number and on their silence.
//!
//! A process has few file descriptors (usually 1,024), and a drive needs some at any time. So the
//! number of unproven connections is limited, per network and in total, and a newer one evicts the
//! oldest. One that does not finish its handshake, or the header of its request, is closed. A
//! proven holder has places of its own.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use axum::serve::IncomingStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Sleep, sleep, timeout};

use crate::clock::Clock;
use crate::connection_limit::{ConnectionLimit, Place};
use crate::log_limit::LogLimit;
use crate::open_files;

/// Admission control of one server's connections; clones share it.
#[derive(Clone, Debug)]
pub struct AcceptLimit(Arc<Shared>);

/// Connections that a server could not keep, by reason.
#[derive(Debug, Default)]
pub struct Counters {
    /// Unproven connections evicted by a newer one, or after a failed accept call.
    pub turned_away: AtomicU64,
    /// Connections closed because a handshake, a request's header or an answer took too long.
    pub silent: AtomicU64,
    /// Failed accept calls, for instance without free file descriptors.
    pub not_accepted: AtomicU64,
}

impl Counters {
    /// Returns every counter with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let named = [
            ("turned_away", &self.turned_away),
            ("silent", &self.silent),
            ("not_accepted", &self.not_accepted),
        ];
        named.map(|(name, count)| (name, count.load(Ordering::Relaxed))).into_iter()
    }
}

#[derive(Debug)]
struct Shared {
    /// Display name of the server: `the console`.
    what: &'static str,
    clock: Clock,
    /// Time limit of a handshake, of a request's header, and between two parts of an answer.
    silent_max: Duration,
    counters: Arc<Counters>,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    places: ConnectionLimit<u64>,
    callers: BTreeMap<Place, Weak<Caller>>,
    /// Evicted connections that may not be closed yet: each still has its file.
    evicted: Vec<Weak<Caller>>,
    /// Rate limits for logs of evicted, silent and failed connections.
    limits: [LogLimit; 3],
}

/// A connection as known to the handlers of its requests.
#[derive(Debug)]
pub struct Caller {
    place: Place,
    limit: Arc<Shared>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Number of changes of phase, and of parts of an answer that were written; the deadline
    /// restarts with each.
    turn: u64,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Waiting for a handshake or a request's header, or sending an answer.
    Asking,
    /// A request of the connection is being handled.
    Answering,
    /// Upgraded to another protocol, which has its own limits.
    Open,
    /// Evicted, or silent for too long: the connection fails at its next use.
    Ended,
}

/// Address and handle of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Remote address of the connection.
    pub address: SocketAddr,
    /// Handle of the connection, for its limits and its end.
    pub caller: Arc<Caller>,
}

/// A connection that fails with an error when it is silent for too long or evicted.
#[derive(Debug)]
pub struct Watched {
    stream: TcpStream,
    caller: Arc<Caller>,
    deadline: Pin<Box<Sleep>>,
    turn: u64,
}

/// A bidirectional stream of bytes, encrypted or not.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection after its handshake, if it has one.
pub type Connection = Box<dyn Duplex>;

/// A running handshake: yields the connection, or `None` if the other end was already answered and
/// nothing remains to be served.
pub type Shaken = Pin<Box<dyn Future<Output = io::Result<Option<Connection>>> + Send>>;

/// An HTTP listener behind a [`AcceptLimit`].
#[derive(Debug)]
pub struct Listener {
    accepted: mpsc::Receiver<(Connection, Peer)>,
    address: SocketAddr,
    limit: AcceptLimit,
    accepting: JoinHandle<()>,
}

impl AcceptLimit {
    /// Creates the limit of `what`, the display name of a server: `the console`.
    pub fn new(what: &'static str, clock: Clock) -> Self {
        Self::with_silence(what, SILENT_MAX, clock)
    }

    fn with_silence(what: &'static str, silent_max: Duration, clock: Clock) -> Self {
        let inside = Inside {
            places: ConnectionLimit::new([]),
            callers: BTreeMap::new(),
            evicted: Vec::new(),
            limits: Default::default(),
        };
        let (counters, inside) = (Arc::default(), Mutex::new(inside));
        Self(Arc::new(Shared { what, clock, silent_max, counters, inside }))
    }

    /// Returns the counters of this limit.
    pub fn counters(&self) -> Arc<Counters> {
        self.0.counters.clone()
    }

    /// Waits for the next connection and gives it a place; beyond a limit, the oldest unproven
    /// connection is evicted for it. A failed accept call is counted, logged with its cause at
    /// growing intervals, and repeated after [`ACCEPT_PAUSE`]; it too evicts the oldest unproven
    /// connection. While evicted ones are being closed, none is accepted, for at most
    /// [`CLOSE_MAX`].
    pub async fn accept(&self, listener: &TcpListener) -> (Watched, Peer) {
        loop {
            if timeout(CLOSE_MAX, self.close_evicted()).await.is_err() {
                self.0.inside().evicted.clear();
            }
            match listener.accept().await {
                Ok((stream, remote)) => return self.enter(stream, remote),
                Err(error) => {
                    self.0.not_accepted(&error);
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Waits until every evicted connection is closed: before that, its file is not free.
    async fn close_evicted(&self) {
        while self.0.has_evicted() {
            sleep(CLOSE_POLL).await;
        }
    }

    fn enter(&self, stream: TcpStream, remote: SocketAddr) -> (Watched, Peer) {
        let mut inside = self.0.inside();
        let (place, evicted) = inside.places.take(remote.ip());
        let evicted = evicted.and_then(|place| inside.callers.remove(&place));
        let state = State { phase: Phase::Asking, turn: 0, waker: None };
        let caller = Arc::new(Caller { place, limit: self.0.clone(), state: Mutex::new(state) });
        inside.callers.insert(place, Arc::downgrade(&caller));
        inside.evicted.extend(evicted.clone());
        drop(inside);
        if let Some(evicted) = evicted.and_then(|evicted| evicted.upgrade()) {
            evicted.set(Phase::Ended);
            self.0.count_turned_away(remote, "evicts the oldest one without a handshake");
        }
        let deadline = Box::pin(sleep(self.0.silent_max));
        let watched = Watched { stream, caller: caller.clone(), deadline, turn: 0 };
        (watched, Peer { address: remote, caller })
    }
}

impl Shared {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether an evicted connection is not closed yet.
    fn has_evicted(&self) -> bool {
        let mut inside = self.inside();
        inside.evicted.retain(|evicted| evicted.strong_count() > 0);
        !inside.evicted.is_empty()
    }

    /// Returns the number of lines of `kind` (an index of `limits`) suppressed since the last one;
    /// `None` if this line must be suppressed too.
    fn log(&self, kind: usize) -> Option<u64> {
        self.inside().limits[kind].take(self.clock.now())
    }

    fn not_accepted(&self, error: &io::Error) {
        let count = self.counters.not_accepted.fetch_add(1, Ordering::Relaxed) + 1;
        let mut inside = self.inside();
        let now = self.clock.now();
        let logged = inside.limits[2].take_of(&error.to_string(), now);
        let evicted = inside.places.evict();
        let evicted = evicted.and_then(|place| inside.callers.remove(&place));
        inside.evicted.extend(evicted.clone());
        drop(inside);
        if let Some(evicted) = evicted.and_then(|evicted| evicted.upgrade()) {
            evicted.set(Phase::Ended);
            self.counters.turned_away.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(left_out) = logged {
            let (what, remedy) = (self.what, open_files::remedy(error));
            tracing::warn!(count, left_out, "{what} cannot accept a connection: {error}{remedy}");
        }
    }

    fn count_turned_away(&self, remote: SocketAddr, words: &str) {
        let count = self.counters.turned_away.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(left_out) = self.log(0) {
            tracing::warn!(%remote, count, left_out, "too many connections to {}: {words}", self.what);
        }
    }

    fn count_silent(&self, remote: Option<SocketAddr>) {
        let count = self.counters.silent.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(left_out) = self.log(1) {
            let what = self.what;
            tracing::info!(
                ?remote,
                count,
                left_out,
                "a connection to {what} sent no request in time"
            );
        }
    }
}

impl Caller {
    /// Assigns the connection a place of `holder`, who has proven authorization; returns `false`
    /// without a change if the holder has reached its limit or the connection was evicted.
    pub fn hold(&self, holder: u64) -> bool {
        self.limit.inside().places.hold(self.place, holder).is_some()
    }

    fn set(&self, phase: Phase) {
        let mut state = self.state();
        if state.phase != Phase::Ended {
            (state.phase, state.turn) = (phase, state.turn + 1);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// Returns the TCP socket of the connection.
    pub fn tcp(&self) -> &TcpStream {
        &self.stream
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let mut state = self.caller.state();
        let (phase, turn) = (state.phase, state.turn);
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => state.waker = Some(context.waker().clone()),
        }
        drop(state);
        let most = match phase {
            Phase::Asking => self.caller.limit.silent_max,
            Phase::Answering => ANSWER_MAX,
            Phase::Open => return Ok(()),
            Phase::Ended => return Err(io::ErrorKind::ConnectionAborted.into()),
        };
        if turn != self.turn {
            self.turn = turn;
            self.deadline = Box::pin(sleep(most));
        }
        if self.deadline.as_mut().poll(context).is_ready() {
            self.caller.set(Phase::Ended);
            self.caller.limit.count_silent(self.stream.peer_addr().ok());
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check(context)?;
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.check(context)?;
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        // A peer that reads its answer is not silent, however slow its link is.
        if matches!(written, Poll::Ready(Ok(1..))) {
            let mut state = this.caller.state();
            state.turn += u64::from(state.phase == Phase::Asking);
        }
        written
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut inside = self.caller.limit.inside();
        inside.places.give_back(self.caller.place);
        inside.callers.remove(&self.caller.place);
    }
}

impl Listener {
    /// Accepts on `listener` behind `limit`; `shake` does the handshake of a connection, if there
    /// is one. A connection whose handshake fails, or takes longer than the limit's silence, is
    /// dropped.
    ///
    /// # Errors
    /// When the listener's own address is unknown.
    pub fn start(
        listener: TcpListener,
        limit: AcceptLimit,
        shake: impl Fn(Watched) -> Shaken + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (sender, accepted) = mpsc::channel(1);
        let accepting = tokio::spawn(accept(listener, limit.clone(), Arc::new(shake), sender));
        Ok(Self { accepted, address, limit, accepting })
    }

    /// Accepts on `listener` behind `limit`, without a handshake.
    ///
    /// # Errors
    /// Same as [`start`](Self::start).
    pub fn plain(listener: TcpListener, limit: AcceptLimit) -> io::Result<Self> {
        Self::start(listener, limit, |stream| {
            let connection: Connection = Box::new(stream);
            Box::pin(std::future::ready(Ok(Some(connection))))
        })
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
            // The accepting task ends only with this listener.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        let state = State { phase: Phase::Ended, turn: 0, waker: None };
        let (place, limit) = (Place::NONE, self.limit.0.clone());
        let caller = Arc::new(Caller { place, limit, state: Mutex::new(state) });
        Ok(Peer { address: self.address, caller })
    }
}

impl Connected<IncomingStream<'_, Listener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        stream.remote_addr().clone()
    }
}

/// Marks a connection as answering while a request of it is handled; afterwards as open if the
/// response switches protocols, and otherwise as awaiting the next request. It must be the
/// outermost layer of a router served by a [`Listener`].
pub async fn attend(
    ConnectInfo(Peer { caller, .. }): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    caller.set(Phase::Answering);
    let response = next.run(request).await;
    caller.set(match response.status() {
        StatusCode::SWITCHING_PROTOCOLS => Phase::Open,
        _ => Phase::Asking,
    });
    response
}

async fn accept(
    listener: TcpListener,
    limit: AcceptLimit,
    shake: Arc<impl Fn(Watched) -> Shaken + Send + Sync + 'static>,
    accepted: mpsc::Sender<(Connection, Peer)>,
) {
    loop {
        let (stream, peer) = limit.accept(&listener).await;
        let (accepted, shake, limit) = (accepted.clone(), shake.clone(), limit.clone());
        tokio::spawn(async move {
            match timeout(limit.0.silent_max, shake(stream)).await {
                Ok(Ok(Some(connection))) => {
                    // Restarts the time limit, for its first request.
                    peer.caller.set(Phase::Asking);
                    let _ = accepted.send((connection, peer)).await;
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "a handshake failed"),
                Err(_) => limit.0.count_silent(Some(peer.address)),
            }
        });
    }
}

/// Default of the longest silence of a caller before its request is complete; then its connection
/// ends. A browser needs a second over any usable link.
const SILENT_MAX: Duration = Duration::from_secs(5);
/// Longest silence of a connection while its request is answered; then it ends. The slowest answer,
/// a probe of the links, takes less.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Pause after a failed accept call: time for a connection to end and release the resource that the
/// kernel lacked.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum time for which no connection is accepted while evicted ones are being closed: longer
/// than a busy process takes to close one.
const CLOSE_MAX: Duration = Duration::from_millis(100);
/// Interval at which it is checked whether the evicted connections are closed.
const CLOSE_POLL: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::middleware;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::connection_limit::{NETWORK_MAX, UNPROVEN_MAX};

    async fn serve(silent_max: Duration) -> (SocketAddr, AcceptLimit) {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let limit = AcceptLimit::with_silence("a test", silent_max, Clock::start());
        let address = tcp.local_addr().unwrap();
        let listener = Listener::plain(tcp, limit.clone()).unwrap();
        let hold = async |ConnectInfo(peer): ConnectInfo<Peer>| peer.caller.hold(7).to_string();
        let routes = Router::new().route("/", get(async || "here")).route("/hold", get(hold));
        let routes = routes.layer(middleware::from_fn(attend));
        let service = routes.into_make_service_with_connect_info::<Peer>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        (address, limit)
    }

    async fn ask(stream: &mut TcpStream, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut bytes = [0; 500];
        let length = stream.read(&mut bytes).await.unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[tokio::test]
    async fn idle_connections_leave_room_for_one_that_sends_a_request() {
        let (address, limit) = serve(Duration::from_secs(60)).await;
        let mut held = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut held, "/hold").await.ends_with("true"));
        let mut idle = Vec::new();
        for turn in 0..3 * NETWORK_MAX {
            idle.push(TcpStream::connect(address).await.unwrap());
            if turn % 16 == 0 {
                let mut good = TcpStream::connect(address).await.unwrap();
                assert!(ask(&mut good, "/").await.ends_with("here"), "after {turn}");
            }
        }
        let turned_away = limit.counters().turned_away.load(Ordering::Relaxed);
        assert!(turned_away > NETWORK_MAX as u64, "{turned_away}");
        assert!(limit.0.inside().callers.len() <= NETWORK_MAX + 1);
        assert_eq!(idle[0].read(&mut [0; 1]).await.unwrap_or(0), 0, "the oldest was closed");
        assert!(ask(&mut held, "/").await.ends_with("here"), "who has a place of its own keeps it");
        const { assert!(UNPROVEN_MAX < 1_024 / 2) }
    }

    #[tokio::test]
    async fn endless_headers_and_idle_connections_time_out() {
        let most = Duration::from_millis(1_500);
        let (address, limit) = serve(most).await;
        let mut slow = TcpStream::connect(address).await.unwrap();
        let mut idle = TcpStream::connect(address).await.unwrap();
        assert!(ask(&mut idle, "/").await.ends_with("here"));
        slow.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n").await.unwrap();
        // A byte now and then does not complete a header.
        let mut lines = 0;
        while lines < 200 && slow.write_all(b"X: y\r\n").await.is_ok() {
            sleep(most / 10).await;
            lines += 1;
        }
        assert!(lines < 200, "it was given up");
        assert_eq!(idle.read(&mut [0; 1]).await.unwrap_or(0), 0);
        assert_eq!(limit.counters().silent.load(Ordering::Relaxed), 2);
        assert!(limit.0.inside().callers.is_empty(), "their places are free again");
    }
}
