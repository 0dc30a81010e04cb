use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::ClientConfig;
use tautline_transport::crypto::{Identity, PublicKey};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::dial::{Dialler, Reached};
use super::{Error, Host, Receiver, Sender, tls};
use crate::socket::Local;

/// A client that connects and reconnects for as long as it lives: over each of its links and over
/// the system's own route, whichever reaches the server first.
///
/// An attempt starts the paths one after another, 250 ms apart or as soon as one has failed. The
/// first complete handshake wins, and the other attempts end. The path of a lost connection is
/// tried last the next time. The client retries 200 ms after a failure, then after 400 ms, 800 ms
/// and so on up to 3 s. A connection that lasted 3 s resets this delay. A server without a message
/// for [`SERVER_TIMEOUT`] is considered dead, so it must send about once a second. Data sent to the
/// server does not count.
///
/// Dropping the client cuts the connection at once; [`close`](Self::close) ends it in order.
#[derive(Debug)]
pub struct Client {
    handle: Handle,
    task: JoinHandle<()>,
}

/// A handle to the [`Client`] for any task or thread.
#[derive(Clone, Debug)]
pub struct Handle {
    inputs: mpsc::Sender<Input>,
    shared: Arc<Shared>,
}

/// An event for the application.
#[derive(Debug)]
pub enum Event {
    /// The server has proven its key, and the greeting was sent.
    Connected {
        /// Local address of the connection: the one this machine uses towards the server.
        local: SocketAddr,
        /// Display name of the link that the connection uses.
        by: String,
        /// Addresses of the server, that of the connection first.
        servers: Vec<SocketAddr>,
    },
    /// A frame arrived that the answer function did not answer.
    Frame(Vec<u8>),
    /// The connection is lost, or could not be established.
    Disconnected {
        /// Reason why the connection ended, or why no path led to the server.
        error: Error,
        /// Time until the next attempt.
        retry_in: Duration,
    },
}

impl Client {
    /// Starts to connect to `address` (a [`Host`], resolved at each attempt), where the holder of
    /// `server_key` must answer, over the system's own route.
    ///
    /// `greeting` contains the frames sent first on every new connection; [`Handle::set_greeting`]
    /// changes them. `answer` returns the automatic answer to a frame: such frames are answered at
    /// once and do not appear as events. Events use a bounded channel: an application that stops
    /// reading it also stops answering, and the server drops it.
    ///
    /// # Errors
    /// [`Error::Address`] if `address` is invalid, [`Error::Certificate`] if no certificate can be
    /// made of `identity`. A missing server or a wrong key is reported as an event, since both may
    /// change.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(
        address: impl Into<String>,
        server_key: PublicKey,
        identity: &Identity,
        greeting: Vec<Vec<u8>>,
        answer: impl FnMut(&[u8]) -> Option<Vec<u8>> + Send + 'static,
    ) -> Result<(Self, mpsc::Receiver<Event>), Error> {
        Self::start_by(&[], address, server_key, identity, greeting, answer)
    }

    /// Starts as [`start`](Self::start) does, but tries a path over each of `links`, a session's
    /// local ends, in addition to the system's own route; there is one connection, over the first
    /// path whose handshake is complete.
    ///
    /// # Errors
    /// Same as [`start`](Self::start).
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start_by(
        links: &[Local],
        address: impl Into<String>,
        server_key: PublicKey,
        identity: &Identity,
        greeting: Vec<Vec<u8>>,
        answer: impl FnMut(&[u8]) -> Option<Vec<u8>> + Send + 'static,
    ) -> Result<(Self, mpsc::Receiver<Event>), Error> {
        let host = address.into().parse::<Host>().map_err(Error::Address)?;
        let dialler = Dialler::new(host, links);
        Self::start_with(dialler, server_key, identity, greeting, Box::new(answer), SERVER_TIMEOUT)
    }

    /// Starts as [`start`](Self::start) does, over the paths of `dialler` and with
    /// `server_timeout` in place of [`SERVER_TIMEOUT`].
    pub(super) fn start_with(
        dialler: Dialler,
        server_key: PublicKey,
        identity: &Identity,
        greeting: Vec<Vec<u8>>,
        answer: Answer,
        server_timeout: Duration,
    ) -> Result<(Self, mpsc::Receiver<Event>), Error> {
        let config = Arc::new(tls::client(identity, server_key, tls::CONTROL)?);
        let (inputs, input_receiver) = mpsc::channel(QUEUE_FRAMES_MAX);
        let (events, event_receiver) = mpsc::channel(QUEUE_FRAMES_MAX);
        let shared = Arc::new(Shared {
            greeting: Mutex::new(greeting),
            is_connected: AtomicBool::new(false),
        });
        let task = Task {
            dialler,
            config,
            answer,
            server_timeout,
            inputs: input_receiver,
            events,
            shared: Arc::clone(&shared),
            backoff: Backoff::default(),
        };
        let task = tokio::spawn(task.run());
        Ok((Self { handle: Handle { inputs, shared }, task }, event_receiver))
    }

    /// Returns a handle to this client.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Sends what is queued, closes the connection in order, and ends; gives up after a second.
    pub async fn close(mut self) {
        let ended = async {
            // A failed send means that the task has already ended.
            let _ = self.handle.inputs.send(Input::Close).await;
            let _ = (&mut self.task).await;
        };
        let _ = timeout(CLOSE_MAX, ended).await;
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.task.abort();
        self.handle.shared.is_connected.store(false, Ordering::Release);
    }
}

impl Handle {
    /// Queues a frame for the current connection.
    ///
    /// If that connection breaks before the frame is sent, the frame is lost: frames that must
    /// survive belong in the greeting.
    ///
    /// # Errors
    /// [`Error::NotConnected`] or [`Error::QueueFull`]; the frame was not taken.
    pub fn send(&self, frame: Vec<u8>) -> Result<(), Error> {
        if !self.is_connected() {
            return Err(Error::NotConnected);
        }
        self.inputs.try_send(Input::Send(frame)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::QueueFull { frames: QUEUE_FRAMES_MAX },
            mpsc::error::TrySendError::Closed(_) => Error::NotConnected,
        })
    }

    /// Sets the frames that are sent first on every new connection from now on.
    ///
    /// Nothing is sent on the current connection.
    pub fn set_greeting(&self, frames: Vec<Vec<u8>>) {
        *self.shared.greeting.lock().unwrap_or_else(PoisonError::into_inner) = frames;
    }

    /// Returns whether there is a connection now.
    pub fn is_connected(&self) -> bool {
        self.shared.is_connected.load(Ordering::Acquire)
    }
}

#[derive(Debug)]
struct Shared {
    greeting: Mutex<Vec<Vec<u8>>>,
    is_connected: AtomicBool,
}

#[derive(Debug)]
enum Input {
    Send(Vec<u8>),
    Close,
}

pub(super) type Answer = Box<dyn FnMut(&[u8]) -> Option<Vec<u8>> + Send>;

struct Task {
    dialler: Dialler,
    config: Arc<ClientConfig>,
    answer: Answer,
    server_timeout: Duration,
    inputs: mpsc::Receiver<Input>,
    events: mpsc::Sender<Event>,
    shared: Arc<Shared>,
    backoff: Backoff,
}

/// The end of the client, which the application has closed or whose events it has dropped.
struct Ended;

impl Task {
    async fn run(mut self) {
        let Err(Ended) = self.connect_for_ever().await;
        self.shared.is_connected.store(false, Ordering::Release);
    }

    async fn connect_for_ever(&mut self) -> Result<std::convert::Infallible, Ended> {
        loop {
            let attempt = tokio::select! {
                attempt = self.dialler.dial(&self.config) => attempt,
                Ended = discard(&mut self.inputs) => return Err(Ended),
            };
            let error = match attempt {
                Ok(reached) => self.serve(reached).await?,
                Err(error) => error,
            };
            let retry_in = self.backoff.step();
            self.tell(Event::Disconnected { error, retry_in }).await?;
            tokio::select! {
                () = sleep(retry_in) => {}
                Ended = discard(&mut self.inputs) => return Err(Ended),
            }
        }
    }

    /// Serves one connection until it ends; returns the reason, or [`Ended`] if the application has
    /// ended the client.
    async fn serve(&mut self, reached: Reached) -> Result<Error, Ended> {
        let Reached { connection, source, servers } = reached;
        let (local, by) = (connection.local(), self.dialler.name_of(source));
        let (mut sender, mut receiver) = connection.split();
        let greeting = self.shared.greeting.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for frame in greeting {
            if let Err(error) = send(&mut sender, &frame).await {
                self.dialler.handle_lost(source);
                return Ok(error);
            }
        }
        self.shared.is_connected.store(true, Ordering::Release);
        self.tell(Event::Connected { local, by, servers }).await?;
        let end = self.exchange(&mut sender, &mut receiver).await;
        self.dialler.handle_lost(source);
        self.shared.is_connected.store(false, Ordering::Release);
        // If the other end still listens, it then need not wait for its timeout.
        let _ = timeout(TLS_CLOSE_MAX, sender.close()).await;
        end
    }

    async fn exchange(
        &mut self,
        sender: &mut Sender,
        receiver: &mut Receiver,
    ) -> Result<Error, Ended> {
        let mut server_timeout = pin!(sleep(self.server_timeout));
        let mut settled = pin!(sleep(SETTLED));
        let mut is_settled = false;
        loop {
            tokio::select! {
                frame = receiver.recv() => {
                    let frame = match frame {
                        Ok(Some(frame)) => frame,
                        Ok(None) => return Ok(Error::Closed),
                        Err(error) => return Ok(error),
                    };
                    server_timeout.set(sleep(self.server_timeout));
                    match (self.answer)(&frame) {
                        None => self.tell(Event::Frame(frame)).await?,
                        Some(answer) => if let Err(error) = send(sender, &answer).await {
                            return Ok(error);
                        }
                    }
                }
                input = self.inputs.recv() => match input {
                    Some(Input::Send(frame)) => if let Err(error) = send(sender, &frame).await {
                        return Ok(error);
                    }
                    Some(Input::Close) | None => return Err(Ended),
                },
                () = &mut settled, if !is_settled => {
                    is_settled = true;
                    self.backoff = Backoff::default();
                }
                () = &mut server_timeout => return Ok(Error::Silent { after: self.server_timeout }),
            }
        }
    }

    async fn tell(&mut self, event: Event) -> Result<(), Ended> {
        self.events.send(event).await.map_err(|_| Ended)
    }
}

/// Sends one frame; fails with [`Error::Silent`] if the other end takes no data for
/// [`SERVER_TIMEOUT`].
async fn send(sender: &mut Sender, frame: &[u8]) -> Result<(), Error> {
    match timeout(SERVER_TIMEOUT, sender.send(frame)).await {
        Ok(sent) => sent,
        Err(_) => Err(Error::Silent { after: SERVER_TIMEOUT }),
    }
}

/// Discards requests while there is no connection, until the close request.
async fn discard(inputs: &mut mpsc::Receiver<Input>) -> Ended {
    while let Some(Input::Send(_)) = inputs.recv().await {}
    Ended
}

/// Delays between attempts, which double with each failure from [`RETRY_MIN`] to [`RETRY_MAX`].
#[derive(Debug, Default)]
struct Backoff {
    failures: u32,
}

impl Backoff {
    fn step(&mut self) -> Duration {
        let wait = RETRY_MIN.saturating_mul(1 << self.failures.min(8)).min(RETRY_MAX);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

/// Time without a message after which a server is considered dead. It pings once a second: two lost
/// pings and a late one are tolerated.
pub const SERVER_TIMEOUT: Duration = Duration::from_secs(3);
/// Delay before the first new attempt: short enough that a server's restart is hardly noticed.
const RETRY_MIN: Duration = Duration::from_millis(200);
/// Maximum delay between two attempts: long enough that attempts to reach an absent server cost
/// almost nothing.
const RETRY_MAX: Duration = Duration::from_secs(3);
/// Duration after which a connection counts as stable: the delay before the next attempt is then
/// [`RETRY_MIN`] again.
const SETTLED: Duration = Duration::from_secs(3);
/// Maximum of queued frames, beyond which sending fails, and of queued events, beyond which the
/// client waits for the application: some seconds of the control plane's traffic.
const QUEUE_FRAMES_MAX: usize = 64;
const CLOSE_MAX: Duration = Duration::from_secs(1);
const TLS_CLOSE_MAX: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_grow_rarer_up_to_a_bound() {
        let mut backoff = Backoff::default();
        let steps: Vec<_> = (0..7).map(|_| backoff.step().as_millis()).collect();
        assert_eq!(steps, [200, 400, 800, 1600, 3000, 3000, 3000]);
    }
}
