use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use tautline_net::clock::Clock;
use tautline_net::latency::{self, Leg, Sample};
use tautline_net::{Local, streams};
use tautline_transport::Route;
use tautline_transport::crypto::Identity;
use tautline_transport::relay::{SEATS_OF_STREAMS_FROM, Side};
use tautline_units::Instant;

use crate::config::Config;
use crate::counters::Counters;
use crate::table::{Fate, Table};
use crate::train::{Train, Trains};

/// A relay that listens: a thread's work, from the kernel to the kernel.
///
/// Many datagrams are read at a time, and those of one length to one address are written as one.
pub struct Server {
    poll: Poll,
    sockets: Vec<Socket>,
    streams: streams::Server,
    table: Table,
    clock: Clock,
    trains: Trains,
    answer: Vec<u8>,
    counters: Arc<Mutex<Counters>>,
    told_at: Instant,
    /// Where what its own probes measure is written; without it there are none.
    latency: Option<latency::Log>,
}

struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
}

impl Server {
    /// Opens the sockets, so that ends can call; [`run`](Self::run) answers them.
    ///
    /// `seed`: 32 bytes from the system's randomness.
    ///
    /// # Errors
    /// One line: what is wrong in `config`, or which address cannot be listened on.
    pub fn bind(
        config: &Config,
        identity: &Identity,
        clock: Clock,
        seed: [u8; 32],
    ) -> anyhow::Result<Self> {
        config.validate()?;
        let poll = Poll::new().context("the kernel gives no poller")?;
        let sockets = config.listen.iter().enumerate();
        let sockets = sockets.map(|(index, address)| Socket::open(*address, Token(index), &poll));
        let sockets = sockets.collect::<anyhow::Result<Vec<_>>>()?;
        let inlet = config.shared_port.as_deref();
        let streams =
            streams::Server::open(identity, config.tls, inlet, poll.registry(), sockets.len())?;
        let latency = config
            .latency
            .as_deref()
            .map(|folder| latency::Log::open(folder, config.latency_bytes_max(), clock));
        let latency = latency.transpose()?;
        let unix_start = Duration::from_nanos(clock.unix_nanos(Instant::ZERO));
        let switchboard = config.switchboard_public_key()?;
        let table = Table::new(identity.clone(), switchboard, config.limits(), unix_start, seed);
        for socket in &sockets {
            tracing::info!(listen = %socket.local, key = %identity.public(), "the relay listens");
        }
        if let Some(tls) = streams.address() {
            tracing::info!(%tls, "the relay listens for TLS");
        }
        if let Some(path) = inlet {
            tracing::info!(path = %path.display(), "the relay takes over connections for TLS");
        }
        Ok(Self {
            poll,
            sockets,
            streams,
            table,
            clock,
            trains: Trains::default(),
            answer: Vec::new(),
            counters: Arc::default(),
            told_at: clock.now(),
            latency,
        })
    }

    /// Returns the addresses that are listened on.
    pub fn locals(&self) -> Vec<SocketAddr> {
        self.sockets.iter().map(|socket| socket.local).collect()
    }

    /// Returns where this relay counts, a few times a second.
    pub fn counters(&self) -> Arc<Mutex<Counters>> {
        self.counters.clone()
    }

    /// Forwards until `ending` is set.
    ///
    /// # Errors
    /// When the poller fails.
    pub fn run(mut self, ending: &AtomicBool) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(self.sockets.len() + STREAM_EVENTS);
        let mut buffer = vec![0; PARTS * DATAGRAMS_BYTES_MAX];
        let mut more = false;
        while !ending.load(Ordering::Relaxed) {
            let wait = if more { Duration::ZERO } else { TURN };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                polled => polled.context("the poller failed")?,
            }
            events.iter().for_each(|event| self.streams.wake(event.token()));
            more = self.receive_streams();
            for index in 0..self.sockets.len() {
                more |= self.receive(index, &mut buffer);
            }
            self.note_round_trips();
            self.tell();
        }
        Ok(())
    }

    /// Probes the ends that are due, if what they answer is written down.
    fn probe(&mut self) {
        if self.latency.is_none() {
            return;
        }
        for leg in self.table.due_probes(self.clock.now()) {
            let now = self.clock.now();
            let Some(to) = self.table.write_probe(leg, &mut self.answer, now) else { continue };
            let sent = match self.sockets.get(usize::from(to.socket)) {
                _ if to.stream_index().is_some() => self.streams.send(to, &self.answer, now),
                Some(socket) => socket.send(&self.answer, self.answer.len(), to.remote).is_ok(),
                None => false,
            };
            if !sent {
                self.table.count_unsent(1);
            }
        }
    }

    /// Writes down what was measured.
    fn note_round_trips(&mut self) {
        let Some(latency) = &mut self.latency else { return };
        let unix = |at| Duration::from_nanos(self.clock.unix_nanos(at));
        while let Some(trip) = self.table.poll_round_trip() {
            let leg = match trip.side {
                Side::Initiator => Leg::RelayVehicle,
                Side::Responder => Leg::RelayOperator,
            };
            let link = match trip.socket.checked_sub(SEATS_OF_STREAMS_FROM) {
                Some(stream) => format!("tls-{stream}"),
                None => trip.socket.to_string(),
            };
            latency.note(Sample {
                leg,
                peer: trip.key.to_string().into(),
                link: link.into(),
                sent_at: unix(trip.sent_at),
                seen_at: Some(trip.seen_at.since(Instant::ZERO)),
                back_at: unix(trip.back_at),
                held: Duration::ZERO,
                one_way: trip.one_way,
            });
        }
    }

    /// Takes what one socket has heard, a bounded number of readings; true if more may wait.
    fn receive(&mut self, index: usize, buffer: &mut [u8]) -> bool {
        for _ in 0..READINGS {
            let mut parts = buffer.chunks_mut(DATAGRAMS_BYTES_MAX);
            let mut slices: [IoSliceMut<'_>; PARTS] = std::array::from_fn(|_| {
                IoSliceMut::new(parts.next().expect("the buffer has as many parts"))
            });
            let mut metas = [RecvMeta::default(); PARTS];
            let Socket { udp, state, .. } = &self.sockets[index];
            let read = match state.recv(udp.into(), &mut slices, &mut metas) {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // One datagram's misfortune, such as a peer that has gone, is not the next one's.
                Err(error) => {
                    tracing::debug!(%error, "a socket refused to read");
                    continue;
                }
            };
            let now = self.clock.now();
            for (bytes, meta) in slices.iter().zip(&metas).take(read) {
                let from = Route { socket: index as u8, remote: meta.addr };
                // What the kernel put together of one sender comes apart again here.
                let stride = meta.stride.clamp(1, meta.len.max(1));
                for datagram in bytes[..meta.len].chunks(stride) {
                    self.handle(from, datagram, now);
                }
            }
            let Self { trains, sockets, table, .. } = self;
            trains.flush(&mut |train: &Train| send(sockets, table, train));
        }
        true
    }

    /// Takes what has come over TLS; true if more may wait.
    fn receive_streams(&mut self) -> bool {
        let now = self.clock.now();
        let Self { poll, streams, table, answer, sockets, .. } = self;
        let more = streams.turn(poll.registry(), now);
        streams.take_arrived(|streams, from, datagram| {
            let sent = match table.handle_datagram(from, datagram, answer, now) {
                Fate::Forwarded(to) if to.stream_index().is_some() => {
                    streams.send(to, datagram, now)
                }
                Fate::Forwarded(to) => {
                    let socket = &sockets[usize::from(to.socket)];
                    socket.send(datagram, datagram.len(), to.remote).is_ok()
                }
                Fate::Answered => streams.send(from, answer, now),
                Fate::Dropped => true,
            };
            if !sent {
                table.count_unsent(1);
            }
        });
        while let Some(route) = streams.poll_closed() {
            table.handle_closed(route);
        }
        more
    }

    fn handle(&mut self, from: Route, datagram: &[u8], now: Instant) {
        let Self { table, answer, trains, sockets, streams, .. } = self;
        match table.handle_datagram(from, datagram, answer, now) {
            Fate::Forwarded(to) if to.stream_index().is_some() => {
                if !streams.send(to, datagram, now) {
                    table.count_unsent(1);
                }
            }
            Fate::Forwarded(to) => {
                let most = sockets[usize::from(to.socket)].state.max_gso_segments();
                trains.push(to, datagram, most, &mut |train: &Train| send(sockets, table, train));
            }
            Fate::Answered => {
                let socket = &sockets[usize::from(from.socket)];
                if socket.send(answer, answer.len(), from.remote).is_err() {
                    table.count_unsent(1);
                }
            }
            Fate::Dropped => {}
        }
    }

    /// Lets the table forget, and tells what was counted.
    fn tell(&mut self) {
        let now = self.clock.now();
        if now.since(self.told_at) < TURN {
            return;
        }
        self.told_at = now;
        self.table.handle_unix_start(self.clock.unix_zero());
        self.table.handle_timeout(now);
        self.streams.sweep(|route| self.table.is_proven(route), now);
        self.probe();
        let mut counters = self.table.counters();
        counters.latency_lost += self.latency.as_ref().map_or(0, latency::Log::lost);
        counters.count_streams(self.streams.counters());
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = counters;
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("locals", &self.locals()).finish_non_exhaustive()
    }
}

impl Socket {
    fn open(address: SocketAddr, token: Token, poll: &Poll) -> anyhow::Result<Self> {
        let mut udp = Local::Address(address).open()?;
        let cannot = || format!("the socket on {address} cannot be used");
        let local = udp.local_addr().with_context(cannot)?;
        let state = UdpSocketState::new((&udp).into()).with_context(cannot)?;
        poll.registry().register(&mut udp, token, Interest::READABLE).with_context(cannot)?;
        Ok(Self { udp, state, local })
    }

    fn send(&self, contents: &[u8], segment: usize, destination: SocketAddr) -> io::Result<()> {
        let segment_size = (segment < contents.len()).then_some(segment);
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        self.state.try_send((&self.udp).into(), &transmit)
    }
}

/// Sends a train, by its own socket; datagrams one by one, if the kernel takes no train.
fn send(sockets: &[Socket], table: &mut Table, train: &Train) {
    let socket = &sockets[usize::from(train.to.socket)];
    if socket.send(&train.bytes, train.segment, train.to.remote).is_ok() {
        return;
    }
    if train.datagrams == 1 {
        return table.count_unsent(1);
    }
    for datagram in train.bytes.chunks(train.segment) {
        if socket.send(datagram, datagram.len(), train.to.remote).is_err() {
            table.count_unsent(1);
        }
    }
}

/// How often counters are told and the end is looked for.
const TURN: Duration = Duration::from_millis(100);
/// What of the connections is told of in one turn; the others are in the next.
const STREAM_EVENTS: usize = 64;
/// Readings of one socket before the next has its turn.
const READINGS: usize = 16;
/// Buffers that one reading fills at most: as many as quinn-udp reads.
const PARTS: usize = 32;
/// What the kernel may put together of one sender's datagrams.
const DATAGRAMS_BYTES_MAX: usize = 65_536;
