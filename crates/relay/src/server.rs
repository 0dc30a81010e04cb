use std::io::{self, ErrorKind, IoSliceMut};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use mio::{Events, Interest, Poll, Token};
use tautline_net::clock::Clock;
use tautline_net::latency::{self, Leg, Sample};
use tautline_net::udp::{BUFFER_BYTES, Outgoing, Received, Udp};
use tautline_net::{Local, streams};
use tautline_transport::Route;
use tautline_transport::crypto::Identity;
use tautline_transport::relay::{SEATS_OF_STREAMS_FROM, Side};
use tautline_units::{Ecn, Instant};

use crate::config::Config;
use crate::counters::Counters;
use crate::ends::{End, Ends};
use crate::table::{Fate, Table};
use crate::train::{Train, Trains};

/// A listening relay; one thread runs it.
///
/// It reads many datagrams per system call, and sends those of equal length to one address in one
/// call.
pub struct Server {
    poll: Poll,
    sockets: Sockets,
    streams: streams::Server,
    table: Table,
    clock: Clock,
    trains: Trains,
    answer: Vec<u8>,
    counters: Arc<Mutex<Counters>>,
    told_at: Instant,
    /// Log of the relay's own probes; without it no probes are sent.
    latency: Option<latency::Log>,
}

/// The sockets, and the ends that routes refer to.
struct Sockets {
    all: Vec<Socket>,
    ends: Ends,
}

struct Socket {
    udp: Udp,
    local: SocketAddr,
}

impl Server {
    /// Opens the sockets, so that ends can call; [`run`](Self::run) answers them.
    ///
    /// `seed`: 32 bytes from the system's randomness.
    ///
    /// # Errors
    /// One line: the fault in `config`, the address, path or folder that cannot be used, or that
    /// the system provides no poller.
    pub fn bind(
        config: &Config,
        identity: &Identity,
        clock: Clock,
        seed: [u8; 32],
    ) -> anyhow::Result<Self> {
        config.validate()?;
        let poll = Poll::new().context("cannot create a poller")?;
        let sockets = config.listen.iter().enumerate();
        let sockets = sockets.map(|(index, address)| Socket::open(*address, Token(index), &poll));
        let all = sockets.collect::<anyhow::Result<Vec<_>>>()?;
        let sockets = Sockets { ends: Ends::new(all.len()), all };
        let inlet = config.shared_port.as_deref();
        let streams =
            streams::Server::open(identity, config.tls, inlet, poll.registry(), sockets.all.len())?;
        let latency = config
            .latency
            .as_deref()
            .map(|folder| latency::Log::open(folder, config.latency_bytes_max(), clock));
        let latency = latency.transpose()?;
        let unix_start = Duration::from_nanos(clock.unix_nanos(Instant::ZERO));
        let switchboard = config.switchboard_public_key()?;
        let table = Table::new(identity.clone(), switchboard, config.limits(), unix_start, seed);
        for socket in &sockets.all {
            tracing::info!(listen = %socket.local, key = %identity.public(), "the relay is \
                                                                              listening");
        }
        if let Some(tls) = streams.address() {
            tracing::info!(%tls, "the relay is listening for TLS");
        }
        if let Some(path) = inlet {
            tracing::info!(path = %path.display(), "the relay accepts connections for TLS that \
                                                    are handed over");
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

    /// Returns the bound addresses.
    pub fn locals(&self) -> Vec<SocketAddr> {
        self.sockets.all.iter().map(|socket| socket.local).collect()
    }

    /// Returns the relay's counters, which [`run`](Self::run) updates ten times a second; all are 0
    /// before.
    pub fn counters(&self) -> Arc<Mutex<Counters>> {
        self.counters.clone()
    }

    /// Forwards on the calling thread until `ending` is set, which it notices within 100 ms.
    ///
    /// # Errors
    /// When the poller fails.
    pub fn run(mut self, ending: &AtomicBool) -> anyhow::Result<()> {
        let mut events = Events::with_capacity(self.sockets.all.len() + STREAM_EVENTS);
        let mut buffer = vec![0; PARTS * BUFFER_BYTES];
        let mut more = false;
        while !ending.load(Ordering::Relaxed) {
            let wait = if more { Duration::ZERO } else { TURN };
            match self.poll.poll(&mut events, Some(wait)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                polled => polled.context("the poller failed")?,
            }
            events.iter().for_each(|event| self.streams.wake(event.token()));
            more = self.receive_streams();
            for index in 0..self.sockets.all.len() {
                more |= self.receive(index, &mut buffer);
            }
            self.note_round_trips();
            self.tell();
        }
        Ok(())
    }

    /// Probes the ends that are due, if there is a log for their answers; counts the probes that
    /// cannot be sent.
    fn probe(&mut self) {
        if self.latency.is_none() {
            return;
        }
        for leg in self.table.due_probes(self.clock.now()) {
            let now = self.clock.now();
            let Some(to) = self.table.write_probe(leg, &mut self.answer, now) else { continue };
            let sent = match to.stream_index() {
                Some(_) => self.streams.send(to, &self.answer, now),
                None => self.sockets.send(to, &self.answer, self.answer.len()).is_ok(),
            };
            if !sent {
                self.table.count_unsent(1);
            }
        }
    }

    /// Adds the measured round trips to the latency files, if there are any.
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

    /// Reads a bounded number of times from one socket, and forwards or answers the datagrams;
    /// returns whether more may wait.
    fn receive(&mut self, index: usize, buffer: &mut [u8]) -> bool {
        for _ in 0..READINGS {
            let mut parts = buffer.chunks_mut(BUFFER_BYTES);
            let mut slices: [IoSliceMut<'_>; PARTS] = std::array::from_fn(|_| {
                IoSliceMut::new(parts.next().expect("the buffer has enough parts"))
            });
            let mut received = [None; PARTS];
            match self.sockets.all[index].udp.receive_many(&mut slices, &mut received) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                // An error of one datagram, such as an unreachable peer, does not affect the next.
                Err(error) => {
                    tracing::debug!(%error, "cannot read from a socket");
                    continue;
                }
            }
            let now = self.clock.now();
            for (bytes, received) in slices.iter().zip(received.into_iter().flatten()) {
                let Received { remote, local, .. } = received;
                let Self { sockets, table, .. } = self;
                let end = End { socket: index, local };
                let socket = sockets.ends.number(end, |number| table.has_socket(number));
                for datagram in received.datagrams(bytes) {
                    self.handle(Route { socket, remote }, datagram, now);
                }
            }
            let Self { trains, sockets, table, .. } = self;
            trains.flush(&mut |train: &Train| send(sockets, table, train));
        }
        true
    }

    /// Forwards or answers the datagrams of the connections over TLS, and removes the legs of those
    /// that have ended; returns whether more may wait.
    fn receive_streams(&mut self) -> bool {
        let Self { poll, streams, table, answer, sockets, clock, .. } = self;
        let more = streams.turn(poll.registry(), clock.now());
        // Read after receiving: with an earlier time, the answer to a probe would be early.
        let now = clock.now();
        streams.take_arrived(|streams, from, datagram| {
            let sent = match table.handle_datagram(from, datagram, answer, now) {
                Fate::Forwarded(to) if to.stream_index().is_some() => {
                    streams.send(to, datagram, now)
                }
                Fate::Forwarded(to) => sockets.send(to, datagram, datagram.len()).is_ok(),
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
                let most = sockets.segments_max(to);
                trains.push(to, datagram, most, &mut |train: &Train| send(sockets, table, train));
            }
            Fate::Answered => {
                if sockets.send(from, answer, answer.len()).is_err() {
                    table.count_unsent(1);
                }
            }
            Fate::Dropped => {}
        }
    }

    /// Adopts the machine's current Unix time, removes old entries of the table and connections
    /// over TLS without a proof, sends the probes that are due, and publishes the counters; does
    /// nothing within 100 ms of the last time.
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

impl Sockets {
    /// Sends `bytes` over a route, which the kernel splits into datagrams of `segment` bytes; the
    /// last may be shorter. Fails if the route's end is not assigned.
    fn send(&mut self, to: Route, bytes: &[u8], segment: usize) -> io::Result<()> {
        let end = self.ends.get(to.socket).ok_or(ErrorKind::NotFound)?;
        let socket = self.all.get_mut(end.socket).ok_or(ErrorKind::NotFound)?;
        let segment = (segment < bytes.len()).then_some(segment);
        let (from, to, ecn) = (end.local, to.remote, Ecn::NotEct);
        socket.udp.send(&Outgoing { bytes, segment, to, from, ecn })
    }

    /// Returns the maximum number of datagrams per send call on a route; 1 if its end is not
    /// assigned.
    fn segments_max(&self, to: Route) -> usize {
        let socket = self.ends.get(to.socket).and_then(|end| self.all.get(end.socket));
        socket.map_or(1, |socket| socket.udp.segments_max())
    }
}

impl Socket {
    fn open(address: SocketAddr, token: Token, poll: &Poll) -> anyhow::Result<Self> {
        let udp = Local::Address(address).open()?;
        let cannot = || format!("cannot use the socket on {address}");
        let mut udp = Udp::new(udp).with_context(cannot)?;
        let local = udp.local_addr().with_context(cannot)?;
        let socket = udp.socket_mut();
        poll.registry().register(socket, token, Interest::READABLE).with_context(cannot)?;
        Ok(Self { udp, local })
    }
}

/// Sends a train, or single datagrams if the kernel refuses the train; counts those that cannot be
/// sent.
fn send(sockets: &mut Sockets, table: &mut Table, train: &Train) {
    if sockets.send(train.to, &train.bytes, train.segment).is_ok() {
        return;
    }
    if train.datagrams == 1 {
        return table.count_unsent(1);
    }
    for datagram in train.bytes.chunks(train.segment) {
        if sockets.send(train.to, datagram, datagram.len()).is_err() {
            table.count_unsent(1);
        }
    }
}

/// Interval at which counters are published and the stop flag is checked.
const TURN: Duration = Duration::from_millis(100);
/// Maximum events of connections per turn; the rest follows in the next turn.
const STREAM_EVENTS: usize = 64;
/// Read calls on one socket before the next socket's turn.
const READINGS: usize = 16;
/// Maximum buffers per read call, the same number as in quinn-udp.
const PARTS: usize = 32;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use tautline_transport::stun::{Request, Transaction};

    use super::*;

    #[test]
    fn a_relay_at_all_addresses_answers_from_the_one_that_was_asked() {
        let switchboard = Identity::from_seed(&[2; 32]).public().to_string();
        for any in ["0.0.0.0:0", "[::]:0"] {
            let config = Config {
                listen: vec![any.parse().unwrap()],
                switchboard_key: switchboard.clone(),
                ..Config::default()
            };
            let own = Identity::from_seed(&[1; 32]);
            let Ok(relay) = Server::bind(&config, &own, Clock::start(), [3; 32]) else { continue };
            let [local] = relay.locals()[..] else { panic!("{any}") };
            let ending = Arc::new(AtomicBool::new(false));
            let serving = {
                let ending = ending.clone();
                std::thread::spawn(move || relay.run(&ending))
            };
            let client = UdpSocket::bind("127.0.0.1:0").unwrap();
            client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            for asked in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
                let asked = SocketAddr::new(asked.parse().unwrap(), local.port());
                client.send_to(&Request::new(Transaction([7; 12])).to_bytes(), asked).unwrap();
                let (_, from) = client.recv_from(&mut [0; 100]).unwrap();
                assert_eq!(from, asked, "{any}");
            }
            ending.store(true, Ordering::Relaxed);
            serving.join().unwrap().unwrap();
        }
    }
}
