use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tautline_message::Control;
use tautline_net::clock::Clock;
use tautline_net::control::{Connection, Error, Incoming, Listener, Receiver, Sender};
use tautline_transport::crypto::Identity;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::Config;
use crate::directory::{ConnectionId, Directory, Output};

/// A switchboard that listens.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    directory: Directory,
    clock: Clock,
    queues: BTreeMap<ConnectionId, mpsc::Sender<Vec<u8>>>,
    next_id: u64,
    tasks: JoinSet<()>,
    arrivals: mpsc::Receiver<Arrival>,
    arrivals_sender: mpsc::Sender<Arrival>,
    places: Arc<Semaphore>,
}

impl Server {
    /// Binds and listens, so that clients can connect; [`serve`](Self::serve) answers them.
    ///
    /// `seed`: 32 bytes from the system's randomness; lease names grow from them.
    ///
    /// # Errors
    /// One line: what is wrong in `config`, or why its address cannot be listened on.
    pub async fn bind(
        config: &Config,
        identity: &Identity,
        clock: Clock,
        seed: [u8; 32],
    ) -> anyhow::Result<Self> {
        config.validate()?;
        let listener = Listener::bind(config.listen, identity).await?;
        let (arrivals_sender, arrivals) = mpsc::channel(ARRIVALS_MAX);
        tracing::info!(
            listen = %listener.local(),
            key = %identity.public(),
            vehicles = config.vehicles.len(),
            operators = config.operators.len(),
            "the switchboard listens"
        );
        Ok(Self {
            listener,
            directory: Directory::new(config, seed),
            clock,
            queues: BTreeMap::new(),
            next_id: 0,
            tasks: JoinSet::new(),
            arrivals,
            arrivals_sender,
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        })
    }

    /// Returns the address that is listened on.
    pub fn local(&self) -> SocketAddr {
        self.listener.local()
    }

    /// Serves until `stop` resolves, then closes every connection in order.
    pub async fn serve(mut self, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        loop {
            let timer = self.directory.poll_timeout().map(|(at, _)| at.since(self.clock.now()));
            tokio::select! {
                () = &mut stop => break,
                incoming = accept(&self.listener) => self.start_handshake(incoming),
                Some(arrival) = self.arrivals.recv() => self.arrive(arrival),
                () = sleep(timer.unwrap_or(Duration::MAX)), if timer.is_some() => {
                    self.directory.handle_timeout(self.clock.now());
                }
                Some(_) = self.tasks.join_next() => {}
            }
            self.act();
        }
        // Without its queue a connection's task closes it in order and ends.
        self.queues.clear();
        self.arrivals.close();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(CLOSE_MAX, ended).await.is_err() {
            tracing::debug!("some connections were cut");
        }
    }

    /// Starts the handshake of a new connection, in a task of its own.
    fn start_handshake(&mut self, incoming: Incoming) {
        let remote = incoming.remote();
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            return tracing::warn!(%remote, "{CONNECTIONS_MAX} connections are the most: refused");
        };
        let arrivals = self.arrivals_sender.clone();
        self.tasks.spawn(async move {
            match incoming.handshake().await {
                // If nobody takes it any more, the switchboard is ending.
                Ok(connection) => {
                    let _ = arrivals.send(Arrival::Connected { connection, place }).await;
                }
                Err(error) => tracing::info!(%remote, "{error}"),
            }
        });
    }

    fn arrive(&mut self, arrival: Arrival) {
        let now = self.clock.now();
        match arrival {
            Arrival::Connected { connection, place } => {
                let id = ConnectionId(self.next_id);
                self.next_id += 1;
                let (frames, frame_receiver) = mpsc::channel(FRAMES_MAX);
                self.queues.insert(id, frames);
                let (key, remote) = (connection.peer_key(), connection.remote());
                let arrivals = self.arrivals_sender.clone();
                self.tasks.spawn(attend(connection, id, frame_receiver, arrivals, place));
                self.directory.handle_connected(id, key, remote, now);
            }
            Arrival::Frame { id, frame } => match Control::decode(&frame) {
                Ok(message) => self.directory.handle_message(id, message, now),
                Err(error) => self.directory.handle_malformed(id, &error.to_string(), now),
            },
            Arrival::Closed { id } => {
                self.queues.remove(&id);
                self.directory.handle_closed(id, now);
            }
        }
    }

    /// Does what the directory wants done.
    fn act(&mut self) {
        while let Some(output) = self.directory.poll_output() {
            match output {
                Output::Send { to, message } => {
                    let Some(frames) = self.queues.get(&to) else { continue };
                    if frames.try_send(message.encode()).is_err() {
                        tracing::warn!(
                            connection = to.0,
                            "a connection that takes nothing was cut"
                        );
                        self.queues.remove(&to);
                        self.directory.handle_closed(to, self.clock.now());
                    }
                }
                Output::Close { to } => {
                    self.queues.remove(&to);
                }
            }
        }
    }
}

/// What connections bring to the directory.
#[derive(Debug)]
enum Arrival {
    Connected { connection: Connection, place: OwnedSemaphorePermit },
    Frame { id: ConnectionId, frame: Vec<u8> },
    Closed { id: ConnectionId },
}

/// Returns the next one who connects, whatever the kernel says in between.
async fn accept(listener: &Listener) -> Incoming {
    loop {
        match listener.accept().await {
            Ok(incoming) => return incoming,
            Err(error) => {
                tracing::warn!("{error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Carries frames both ways until either end closes the connection.
async fn attend(
    connection: Connection,
    id: ConnectionId,
    frames: mpsc::Receiver<Vec<u8>>,
    arrivals: mpsc::Sender<Arrival>,
    place: OwnedSemaphorePermit,
) {
    let remote = connection.remote();
    let (mut sender, mut receiver) = connection.split();
    if let Err(error) = carry(id, &mut sender, &mut receiver, frames, &arrivals).await {
        tracing::info!(%remote, "{error}");
    }
    // If nobody hears it any more, the switchboard is ending.
    let _ = arrivals.send(Arrival::Closed { id }).await;
    let closed = async {
        sender.close().await;
        // What the other end has sent meanwhile is read: a socket that is closed with bytes
        // unread resets the connection, and what was sent last would be lost.
        while let Ok(Some(_)) = receiver.recv().await {}
    };
    let _ = timeout(CLOSE_MAX, closed).await;
    drop(place);
}

async fn carry(
    id: ConnectionId,
    sender: &mut Sender,
    receiver: &mut Receiver,
    mut frames: mpsc::Receiver<Vec<u8>>,
    arrivals: &mpsc::Sender<Arrival>,
) -> Result<(), Error> {
    loop {
        tokio::select! {
            frame = receiver.recv() => {
                let Some(frame) = frame? else { return Ok(()) };
                if arrivals.send(Arrival::Frame { id, frame }).await.is_err() {
                    return Ok(());
                }
            }
            frame = frames.recv() => {
                let Some(frame) = frame else { return Ok(()) };
                match timeout(SEND_MAX, sender.send(&frame)).await {
                    Ok(sent) => sent?,
                    Err(_) => return Err(Error::Silent { after: SEND_MAX }),
                }
            }
        }
    }
}

/// Connections at a time, with those whose handshake is not done: far more than a switchboard of
/// 256 vehicles needs for each to come back once.
const CONNECTIONS_MAX: usize = 1_024;
/// Frames from all connections that wait for the directory; beyond it the connections wait.
const ARRIVALS_MAX: usize = 256;
/// Frames that wait for one connection; beyond it the connection is cut.
const FRAMES_MAX: usize = 64;
/// A frame that the kernel does not take for so long will find nobody.
const SEND_MAX: Duration = Duration::from_secs(3);
/// Long enough for a connection to end and give back what the kernel lacked.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What closing a connection in order may take.
const CLOSE_MAX: Duration = Duration::from_secs(1);
