use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, anyhow};
use mio::net::UdpSocket;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};
use tautline_sim::link::{Link, Seeds};
use tautline_units::{ByteCount, Instant};

use super::config::LinkConfig;
use super::lateness::Lateness;
use super::status::{DirectionStatus, LinkStatus, Status};
use crate::clock::Clock;

/// One emulated link: two sockets and two models.
#[derive(Debug)]
pub(super) struct Relay {
    number: usize,
    name: String,
    listen: SocketAddr,
    target: SocketAddr,
    /// The latest address that sent to `listen`.
    client: Option<SocketAddr>,
    /// From client to target: read at the client's side, written at the target's.
    up: Half,
    /// From target to client.
    down: Half,
    lateness: Lateness,
}

/// One of a link's two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Direction {
    /// From client to target.
    Up,
    /// From target to client.
    Down,
}

/// The two sides of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Where the vehicle sends to.
    Client = 0,
    /// Connected to the operator.
    Target = 1,
}

/// One direction: the socket it is read from, and its model.
#[derive(Debug)]
struct Half {
    socket: UdpSocket,
    readable: bool,
    model: Link<Vec<u8>>,
    dropped: RelayDrops,
}

/// What the relay itself had to drop, outside the model.
#[derive(Clone, Copy, Debug, Default)]
struct RelayDrops {
    /// No client has sent anything yet.
    no_client: u64,
    /// The far end has no socket open (ICMP).
    refused: u64,
    /// The kernel would not take it: full buffers, no route.
    send: u64,
}

/// Datagrams read from one socket in one turn: the others must not starve.
const READS_MAX: usize = 64;

/// Receive and send buffers: a tenth of a second at 80 Mbit/s. The kernel may give less.
const SOCKET_BUFFER_BYTES: usize = 1 << 20;

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Client, Self::Target];
}

impl Relay {
    /// Binds link `number`, with `common` as the seed of what links have in common.
    pub(super) fn bind(number: usize, config: &LinkConfig, common: u64) -> anyhow::Result<Self> {
        let seeds = Seeds { common, ..Seeds::of(config.seed) };
        let models = config.pair()?.links_of(seeds);
        let (up, down) = models.with_context(|| format!("link {:?}", config.name))?;
        let client_side = open(config.listen).map_err(|error| {
            let (address, reason) = (config.listen, reason(&error));
            anyhow!(
                "cannot listen on {address}: {reason}; choose another with links[{number}].listen"
            )
        })?;
        let listen = client_side.local_addr().context("a bound socket has an address")?;
        let target_side = connected_to(config.target).map_err(|error| {
            let (address, reason) = (config.target, reason(&error));
            anyhow!("cannot reach {address}: {reason}; choose another with links[{number}].target")
        })?;
        Ok(Self {
            number,
            name: config.name.clone(),
            listen,
            target: config.target,
            client: None,
            up: Half::new(client_side, up),
            down: Half::new(target_side, down),
            lateness: Lateness::default(),
        })
    }

    pub(super) fn listen_address(&self) -> SocketAddr {
        self.listen
    }

    pub(super) fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    pub(super) fn socket_mut(&mut self, side: Side) -> &mut UdpSocket {
        match side {
            Side::Client => &mut self.up.socket,
            Side::Target => &mut self.down.socket,
        }
    }

    pub(super) fn set_readable(&mut self, side: Side) {
        match side {
            Side::Client => self.up.readable = true,
            Side::Target => self.down.readable = true,
        }
    }

    /// Returns whether a socket may hold more than was read in the last turn.
    pub(super) fn is_readable(&self) -> bool {
        self.up.readable || self.down.readable
    }

    /// Cuts or restores a direction, or both.
    pub(super) fn set_cut(&mut self, direction: Option<Direction>, cut: bool) {
        for half in self.halves(direction) {
            half.model.set_cut(cut);
        }
        tracing::info!(link = self.number, name = self.name, ?direction, cut, "emulated link");
    }

    /// Delays a direction, or both, by so much beside what is configured.
    pub(super) fn set_delay_added(&mut self, direction: Option<Direction>, added: Duration) {
        for half in self.halves(direction) {
            half.model.set_delay_added(added);
        }
        tracing::info!(link = self.number, name = self.name, ?direction, ?added, "emulated link");
    }

    fn halves(&mut self, direction: Option<Direction>) -> impl Iterator<Item = &mut Half> {
        let halves = [(Direction::Up, &mut self.up), (Direction::Down, &mut self.down)];
        let chosen = move |of| direction.is_none_or(|direction| direction == of);
        halves.into_iter().filter(move |(of, _)| chosen(*of)).map(|(_, half)| half)
    }

    pub(super) fn next_departure(&self) -> Option<Instant> {
        let both = [self.up.model.next_departure(), self.down.model.next_departure()];
        both.into_iter().flatten().min()
    }

    /// Reads at most [`READS_MAX`] datagrams from each side into the models.
    pub(super) fn read_turn(&mut self, buffer: &mut [u8], clock: &Clock) {
        if self.up.readable {
            self.up.read_turn(buffer, clock, |from| self.client = Some(from));
        }
        if self.down.readable {
            self.down.read_turn(buffer, clock, |_| ());
        }
    }

    /// Sends what is due.
    pub(super) fn release(&mut self, clock: &Clock) {
        let mut now = clock.now();
        while let Some((due, datagram)) = self.up.model.pop(now) {
            let sent = send(|| self.down.socket.send(&datagram));
            now = clock.now();
            self.up.dropped.count(sent, now.since(due), &mut self.lateness);
        }
        while let Some((due, datagram)) = self.down.model.pop(now) {
            let Some(client) = self.client else {
                self.down.dropped.no_client += 1;
                continue;
            };
            let sent = send(|| self.up.socket.send_to(&datagram, client));
            now = clock.now();
            self.down.dropped.count(sent, now.since(due), &mut self.lateness);
        }
    }

    pub(super) fn status(&self) -> LinkStatus {
        LinkStatus {
            link: self.number,
            name: self.name.clone(),
            cut: self.up.model.is_cut() || self.down.model.is_cut(),
            listen: self.listen,
            target: self.target,
            client: self.client,
            up: self.up.status(),
            down: self.down.status(),
            lateness: (&self.lateness).into(),
        }
    }
}

impl Half {
    fn new(socket: UdpSocket, model: Link<Vec<u8>>) -> Self {
        Self { socket, readable: false, model, dropped: RelayDrops::default() }
    }

    fn read_turn(&mut self, buffer: &mut [u8], clock: &Clock, mut saw: impl FnMut(SocketAddr)) {
        for _ in 0..READS_MAX {
            match self.socket.recv_from(buffer) {
                Ok((bytes, from)) => {
                    saw(from);
                    let datagram = &buffer[..bytes];
                    let len = ByteCount::of(datagram);
                    if let Err(reason) = self.model.push(clock.now(), len, datagram.to_vec()) {
                        tracing::trace!(%reason, bytes, "emulated drop");
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.readable = false;
                    return;
                }
                // Errors of datagrams sent earlier (ICMP) surface here; the socket goes on.
                Err(error) => tracing::trace!(%error, "receive"),
            }
        }
    }

    fn status(&self) -> DirectionStatus {
        let counters = self.model.counters();
        let relay = [
            ("no_client", self.dropped.no_client),
            ("refused", self.dropped.refused),
            ("send", self.dropped.send),
        ];
        let drops = counters.drops().chain(relay);
        DirectionStatus {
            received: counters.pushed,
            received_bytes: counters.pushed_bytes.get(),
            delivered: counters.delivered,
            delivered_bytes: counters.delivered_bytes.get(),
            in_flight: self.model.in_flight(),
            queued_bytes: self.model.queued().get(),
            drops: drops.map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
}

impl RelayDrops {
    fn count(&mut self, sent: io::Result<()>, late: Duration, lateness: &mut Lateness) {
        match sent {
            Ok(()) => lateness.record(late),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => self.refused += 1,
            Err(_) => self.send += 1,
        }
    }
}

/// Sends, and once more if what failed was an earlier datagram: a connected UDP socket tells an
/// ICMP error at the next call, in place of doing it.
fn send(mut attempt: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    match attempt() {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => attempt().map(|_| ()),
        result => result.map(|_| ()),
    }
}

fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(UdpSocket::from_std(socket.into()))
}

fn connected_to(target: SocketAddr) -> io::Result<UdpSocket> {
    let any = match target {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = open(any)?;
    socket.connect(target)?;
    Ok(socket)
}

/// Returns an error of binding or connecting in plain words.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "address in use".to_owned(),
        ErrorKind::AddrNotAvailable => "not an address of this machine".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns what the links have done so far.
pub(super) fn status(relays: &[Relay]) -> Status {
    let mut lateness = Lateness::default();
    for relay in relays {
        lateness.merge(relay.lateness());
    }
    Status { links: relays.iter().map(Relay::status).collect(), lateness: (&lateness).into() }
}
