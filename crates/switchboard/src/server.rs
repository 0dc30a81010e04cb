use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tautline_message::Control;
use tautline_net::LogLimit;
use tautline_net::clock::Clock;
use tautline_net::connection_limit::{ConnectionLimit, Place};
use tautline_net::control::{Code, Connection, Error, Incoming, Listener, Receiver, Sender};
use tautline_net::handover::Outlet;
use tautline_net::latency::{self, Sample};
use tautline_net::unavailable;
use tautline_transport::crypto::{Identity, PublicKey};
use tautline_units::Instant;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::Config;
use crate::directory::{Answer, ConnectionId, Directory, Output};
use crate::relays::Issuer;
use crate::store::{Change, Store};

/// A listening switchboard.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    directory: Directory,
    store: Store,
    /// Changes of the stored state that are not on disk yet, in order.
    changes: Vec<Change>,
    latency: Option<latency::Log>,
    clock: Clock,
    queues: BTreeMap<ConnectionId, mpsc::Sender<Vec<u8>>>,
    next_id: u64,
    tasks: JoinSet<()>,
    arrivals: mpsc::Receiver<Arrival>,
    arrivals_sender: mpsc::Sender<Arrival>,
    places: ConnectionLimit<PublicKey>,
    /// Connections without a proof of a listed key, by the place that each occupies.
    unproven: BTreeMap<Place, Unproven>,
    own: PublicKey,
    settings: mpsc::Receiver<Config>,
    settings_sender: mpsc::Sender<Config>,
    freed: mpsc::UnboundedReceiver<Place>,
    freed_sender: mpsc::UnboundedSender<Place>,
    /// Rate limit for logs of connections without a place.
    turned_away: LogLimit,
    /// Destination of connections for the relay that shares the port; `None` if none does.
    relay: Option<Outlet>,
    counters: Arc<Counters>,
    /// Rate limit for logs of connections that break, before and after their handshake.
    broken: Arc<Mutex<LogLimit>>,
}

/// Counters of a switchboard.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections refused for lack of a place, or evicted for another.
    pub turned_away: AtomicU64,
    /// Failed accept calls, for instance without free file descriptors.
    pub not_accepted: AtomicU64,
    /// Current connections that have proven a key, listed or not.
    pub connections: AtomicU64,
    /// Connections handed over to the relay that shares the port.
    pub handed_over: AtomicU64,
    /// Answers of vehicles to orders for which no supervisor waited.
    pub unclaimed_answers: AtomicU64,
    /// Answered pings that the latency log could not store.
    pub latency_lost: AtomicU64,
}

/// A connection without a proof of a listed key, which may be evicted.
#[derive(Debug)]
struct Unproven {
    /// Handle that aborts the connection's task.
    task: AbortHandle,
    /// Identifier of the connection, once it has proven an unlisted key.
    id: Option<ConnectionId>,
}

/// A place that is freed when its holder is dropped, for any reason.
#[derive(Debug)]
struct Held {
    place: Place,
    freed: mpsc::UnboundedSender<Place>,
}

impl Server {
    /// Binds and listens, so that clients can connect; [`serve`](Self::serve) answers them.
    ///
    /// `seed`: 32 bytes from the system's randomness, the seed for lease names. The server restores
    /// the state in `store` and stores all later changes there.
    ///
    /// # Errors
    /// One line: the fault in `config`, the address or folder that cannot be used, or why the store
    /// cannot be read.
    pub async fn bind(
        config: &Config,
        identity: &Identity,
        store: Store,
        clock: Clock,
        seed: [u8; 32],
    ) -> anyhow::Result<Self> {
        config.validate()?;
        let kept = store.load().context("state: cannot read the stored state")?;
        let latency = config
            .latency
            .as_deref()
            .map(|folder| latency::Log::open(folder, config.latency_bytes_max(), clock));
        let latency = latency.transpose()?;
        let listen = async || Ok(Listener::bind(config.listen, identity).await?);
        let listener = unavailable::opened(listen).await?;
        let (arrivals_sender, arrivals) = mpsc::channel(ARRIVALS_MAX);
        // Bounded by the number of places.
        let (freed_sender, freed) = mpsc::unbounded_channel();
        let (settings_sender, settings) = mpsc::channel(1);
        let mut directory = Directory::new(config, seed);
        let life = config.relay_token_life();
        directory.name_relays(Issuer::new(identity, &config.relays, life));
        directory.restore(&kept, clock.unix_zero(), clock.now());
        directory.obey(identity.public());
        let listed: Vec<_> = directory.known().chain([identity.public()]).collect();
        tracing::info!(
            listen = %listener.local(),
            key = %identity.public(),
            vehicles = config.vehicles.len(),
            operators = config.operators.len(),
            relays = config.relays.len(),
            "the switchboard is listening"
        );
        Ok(Self {
            listener,
            directory,
            store,
            changes: Vec::new(),
            latency,
            clock,
            queues: BTreeMap::new(),
            next_id: 0,
            tasks: JoinSet::new(),
            arrivals,
            arrivals_sender,
            places: ConnectionLimit::new(listed),
            unproven: BTreeMap::new(),
            own: identity.public(),
            settings,
            settings_sender,
            freed,
            freed_sender,
            turned_away: LogLimit::default(),
            relay: config.shared_port.as_deref().map(Outlet::new),
            counters: Arc::default(),
            broken: Arc::default(),
        })
    }

    /// Returns the bound address.
    pub fn local(&self) -> SocketAddr {
        self.listener.local()
    }

    /// Returns a sender for later settings, whose vehicles, operators and supervisors replace the
    /// current ones.
    pub fn settings(&self) -> mpsc::Sender<Config> {
        self.settings_sender.clone()
    }

    /// Returns the counters of this switchboard, updated while it serves.
    pub fn counters(&self) -> Arc<Counters> {
        self.counters.clone()
    }

    /// Serves until `stop` resolves, then closes every connection in order; those that are still
    /// open a second later are cut.
    ///
    /// # Errors
    /// When the store fails: changes that cannot be stored are not announced.
    pub async fn serve(mut self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let (mut stop, mut not_accepted) = (pin!(stop), LogLimit::default());
        let mut accept_from = self.clock.now();
        loop {
            self.directory.handle_unix_start(self.clock.unix_zero());
            let timer = self.directory.poll_timeout().map(|(at, _)| at.since(self.clock.now()));
            tokio::select! {
                () = &mut stop => break,
                accepted = accept(&self.listener, accept_from, self.clock) => match accepted {
                    Ok(incoming) => self.start_handshake(incoming),
                    Err(error) => {
                        accept_from = self.clock.now() + ACCEPT_PAUSE;
                        self.give_way(&error, &mut not_accepted);
                    }
                },
                Some(arrival) = self.arrivals.recv() => self.arrive(arrival),
                () = sleep(timer.unwrap_or(Duration::MAX)), if timer.is_some() => {
                    self.directory.handle_timeout(self.clock.now());
                }
                Some(config) = self.settings.recv() => self.relist(&config),
                Some(place) = self.freed.recv() => {
                    self.places.give_back(place);
                    self.unproven.remove(&place);
                }
                Some(_) = self.tasks.join_next() => {}
            }
            self.act().context("state: cannot store the changes")?;
            self.note_round_trip();
            self.counters.turned_away.store(self.places.turned_away(), Ordering::Relaxed);
            let unclaimed = self.directory.unclaimed_answers();
            self.counters.unclaimed_answers.store(unclaimed, Ordering::Relaxed);
            self.counters.connections.store(self.queues.len() as u64, Ordering::Relaxed);
        }
        // When its queue is dropped, a connection's task closes it in order and ends.
        self.queues.clear();
        self.arrivals.close();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(CLOSE_MAX, ended).await.is_err() {
            tracing::debug!("some connections were cut");
        }
        Ok(())
    }

    /// Adds the round trip of the newest pong to the latency files, if there are any.
    fn note_round_trip(&mut self) {
        let Some(trip) = self.directory.poll_round_trip() else { return };
        let Some(latency) = &mut self.latency else { return };
        let unix = |at| Duration::from_nanos(self.clock.unix_nanos(at));
        latency.note(Sample {
            leg: trip.leg,
            peer: trip.name.into(),
            link: "".into(),
            sent_at: unix(trip.sent_at),
            seen_at: trip.seen_at.map(|at| at.since(Instant::ZERO)),
            back_at: unix(trip.back_at),
            held: Duration::ZERO,
            one_way: trip.one_way,
        });
        self.counters.latency_lost.store(latency.lost(), Ordering::Relaxed);
    }

    fn relist(&mut self, config: &Config) {
        self.directory.list_supervisors(&config.supervisors);
        self.directory.relist(&config.vehicles, &config.operators, self.clock.now());
        self.places.list(self.directory.known().chain([self.own]));
        // Enrolled machines are listed in addition.
        let (vehicles, operators) = (config.vehicles.len(), config.operators.len());
        tracing::info!(vehicles, operators, "the settings were read again");
    }

    /// Closes the oldest connection without a proof, if there is one, since the kernel could not
    /// accept another for `error`, which is counted and logged.
    fn give_way(&mut self, error: &Error, limit: &mut LogLimit) {
        let count = self.counters.not_accepted.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(left_out) = limit.take_of(&error.to_string(), self.clock.now()) {
            tracing::warn!(count, left_out, "{error}");
        }
        let evicted = self.places.evict();
        self.close_evicted(evicted);
    }

    /// Closes the connection that had this place; returns whether there was one.
    fn close_evicted(&mut self, place: Option<Place>) -> bool {
        let Some(Unproven { task, id }) = place.and_then(|it| self.unproven.remove(&it)) else {
            return false;
        };
        task.abort();
        if let Some(id) = id {
            self.queues.remove(&id);
            self.directory.handle_closed(id, self.clock.now());
        }
        true
    }

    /// Starts the TLS handshake of a new connection, in a task of its own; one for the relay that
    /// shares the port is handed over. Without a free place, the oldest unproven connection is
    /// closed.
    fn start_handshake(&mut self, incoming: Incoming) {
        let remote = incoming.remote();
        let (place, evicted) = self.places.take(remote.ip());
        if self.close_evicted(evicted) {
            self.log_turned_away(remote);
        }
        let arrivals = self.arrivals_sender.clone();
        let held = Held { place, freed: self.freed_sender.clone() };
        let (broken, clock) = (self.broken.clone(), self.clock);
        let (relay, counters) = (self.relay.clone(), self.counters.clone());
        let task = self.tasks.spawn(async move {
            if let Some(relay) = relay
                && incoming.asks_for_relay().await
            {
                return match incoming.hand_over(&relay) {
                    Ok(()) => drop(counters.handed_over.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => log_broken(&broken, remote, &error, clock),
                };
            }
            match incoming.handshake().await {
                // A failed send means that the switchboard is ending.
                Ok(connection) => {
                    let _ = arrivals.send(Arrival::Connected { connection, held }).await;
                }
                Err(error) => log_broken(&broken, remote, &error, clock),
            }
        });
        self.unproven.insert(place, Unproven { task, id: None });
    }

    fn log_turned_away(&mut self, remote: SocketAddr) {
        if let Some(left_out) = self.turned_away.take(self.clock.now()) {
            let count = self.places.turned_away();
            tracing::warn!(%remote, count, left_out, "too many connections: evicts the oldest one \
                                                      without a handshake");
        }
    }

    fn arrive(&mut self, arrival: Arrival) {
        let now = self.clock.now();
        match arrival {
            Arrival::Connected { connection, held } => {
                let (key, remote, place) = (connection.peer_key(), connection.remote(), held.place);
                self.unproven.remove(&place);
                let Some(is_its_own) = self.places.prove(place, key) else {
                    return self.log_turned_away(remote);
                };
                let id = ConnectionId(self.next_id);
                self.next_id += 1;
                let (frames, frame_receiver) = mpsc::channel(FRAMES_MAX);
                self.queues.insert(id, frames);
                let (arrivals, broken) = (self.arrivals_sender.clone(), self.broken.clone());
                let carried = attend(connection, id, frame_receiver, arrivals, broken, self.clock);
                let task = self.tasks.spawn(async move {
                    carried.await;
                    drop(held);
                });
                if !is_its_own {
                    self.unproven.insert(place, Unproven { task, id: Some(id) });
                }
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

    /// Carries out the directory's outputs in order; a message is sent only after the changes
    /// before it are on disk.
    fn act(&mut self) -> anyhow::Result<()> {
        while let Some(output) = self.directory.poll_output() {
            match output {
                Output::Keep(change) => self.changes.push(change),
                Output::Send { to, message } => {
                    self.keep()?;
                    self.send(to, &message);
                }
                Output::Answer { to, answer } => {
                    self.keep()?;
                    let answer = match answer {
                        Answer::Copy => self.store.load()?.encode(),
                        Answer::Text(text) => text.into_bytes(),
                        Answer::Code(number, secret) => {
                            Code::new(self.own, number, secret).to_string().into_bytes()
                        }
                    };
                    self.answer(to, &answer);
                }
                Output::Relist => self.places.list(self.directory.known().chain([self.own])),
                Output::Close { to } => {
                    self.queues.remove(&to);
                }
            }
        }
        self.keep()
    }

    /// Commits pending changes to disk, before any later message is sent.
    fn keep(&mut self) -> anyhow::Result<()> {
        if !self.changes.is_empty() {
            self.store.commit(&self.changes)?;
            self.changes.clear();
        }
        Ok(())
    }

    fn answer(&mut self, to: ConnectionId, answer: &[u8]) {
        let mut parts = answer.chunks(PART_BYTES_MAX).peekable();
        if parts.peek().is_none() {
            self.send(to, &Control::OrderPart { bytes: Vec::new(), is_last: true });
        }
        while let Some(part) = parts.next() {
            let is_last = parts.peek().is_none();
            self.send(to, &Control::OrderPart { bytes: part.to_vec(), is_last });
        }
    }

    fn send(&mut self, to: ConnectionId, message: &Control) {
        let Some(frames) = self.queues.get(&to) else { return };
        if frames.try_send(message.encode()).is_err() {
            tracing::warn!(connection = to.0, "cut a connection that does not read");
            self.queues.remove(&to);
            self.directory.handle_closed(to, self.clock.now());
        }
    }
}

/// Input for the directory from a connection's task.
#[derive(Debug)]
enum Arrival {
    Connected { connection: Connection, held: Held },
    Frame { id: ConnectionId, frame: Vec<u8> },
    Closed { id: ConnectionId },
}

/// Waits until `from`, then for the next connection. Returns an error of the kernel.
async fn accept(listener: &Listener, from: Instant, clock: Clock) -> Result<Incoming, Error> {
    let wait = from.since(clock.now());
    // Even a sleep of no time lasts until the next tick of the timer.
    if !wait.is_zero() {
        sleep(wait).await;
    }
    listener.accept().await
}

/// Sends the queued `frames` and passes received ones to the directory, until either end closes the
/// connection; then reports its end to the directory.
async fn attend(
    connection: Connection,
    id: ConnectionId,
    frames: mpsc::Receiver<Vec<u8>>,
    arrivals: mpsc::Sender<Arrival>,
    broken: Arc<Mutex<LogLimit>>,
    clock: Clock,
) {
    let remote = connection.remote();
    let (mut sender, mut receiver) = connection.split();
    if let Err(error) = carry(id, &mut sender, &mut receiver, frames, &arrivals).await {
        log_broken(&broken, remote, &error, clock);
    }
    // A failed send means that the switchboard is ending.
    let _ = arrivals.send(Arrival::Closed { id }).await;
    let closed = async {
        sender.close().await;
        // Read the peer's remaining data: closing a socket with unread bytes resets the connection,
        // which would lose the last messages sent.
        while let Ok(Some(_)) = receiver.recv().await {}
    };
    let _ = timeout(CLOSE_MAX, closed).await;
}

fn log_broken(limit: &Mutex<LogLimit>, remote: SocketAddr, error: &Error, clock: Clock) {
    let taken = limit.lock().unwrap_or_else(PoisonError::into_inner).take(clock.now());
    if let Some(left_out) = taken {
        tracing::info!(%remote, left_out, "{error}");
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A failed send means that the switchboard has ended.
        let _ = self.freed.send(self.place);
    }
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

/// Maximum frames from all connections that wait for the directory; beyond it the connections wait.
const ARRIVALS_MAX: usize = 256;
/// Maximum bytes of an answer to an administrator in one message; the rest follows in further
/// messages.
const PART_BYTES_MAX: usize = 32 * 1024;
/// Maximum frames queued for one connection; beyond it the connection is closed.
const FRAMES_MAX: usize = 64;
/// Maximum time to send one frame; a connection that takes longer is closed.
const SEND_MAX: Duration = Duration::from_secs(3);
/// Pause after a failed accept call: time for a connection to end and release the resource that the
/// kernel lacked.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Maximum time to close a connection in order.
const CLOSE_MAX: Duration = Duration::from_secs(1);
