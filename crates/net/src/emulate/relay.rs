use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, anyhow};
use mio::net::UdpSocket;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};
use tautline_units::{Ecn, Instant};

use super::config::LinkConfig;
use super::lateness::Lateness;
use super::model::{Direction, Model};
use super::packet::{Packet, ecn_of_ip, mark_ip};
use super::status::{DirectionStatus, LinkStatus, Status};
use crate::clock::Clock;
use crate::tun::Device;
use crate::udp::{Outgoing, Udp};

/// One emulated link: two ends, and the model of the packets between them.
#[derive(Debug)]
pub(super) struct Relay {
    number: usize,
    name: String,
    listen: SocketAddr,
    target: SocketAddr,
    /// Latest address that sent to `listen`, and the local address that it used; `None` before the
    /// first.
    client: Option<(SocketAddr, Option<IpAddr>)>,
    /// Socket or device of each side, indexed by [`Side`].
    plugs: [Plug; 2],
    model: Model,
    /// Packets not sent in each direction, indexed by [`Direction`].
    dropped: [RelayDrops; 2],
    lateness: Lateness,
}

/// A side of an emulated link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Socket that receives from the vehicle, or the vehicle's device.
    Client = 0,
    /// Socket connected to the operator, or the operator's device.
    Target = 1,
}

/// Socket or device at one side of a relay.
#[derive(Debug)]
struct Plug {
    kind: Kind,
    readable: bool,
}

#[derive(Debug)]
enum Kind {
    Socket(Udp),
    Device(Device),
}

/// Packets of one direction that passed the model but were not sent, by reason.
#[derive(Clone, Copy, Debug, Default)]
struct RelayDrops {
    /// Packets to the client before it has sent anything, so that its address is unknown.
    no_client: u64,
    /// Packets to a far end that has no open socket (ICMP).
    refused: u64,
    /// Packets that the kernel refused to send for another reason: full buffers, no route.
    send: u64,
}

/// Maximum reads from one side of a link per turn, so that the others do not starve. A read from a
/// socket may yield several datagrams of one sender.
const READS_MAX: usize = 64;

/// Size of the headers of IP and UDP, which a device's packets already contain and
/// `overhead_bytes` adds to datagrams.
const HEADER_BYTES: u64 = 28;

/// Requested size of a socket's receive buffer and of its send buffer: a tenth of a second at 80
/// Mbit/s. The kernel may grant less.
const SOCKET_BUFFER_BYTES: usize = 1 << 20;

impl Side {
    pub(super) const BOTH: [Self; 2] = [Self::Client, Self::Target];
}

impl Relay {
    /// Binds link `number`, with `common` as the seed of the randomness that links share.
    pub(super) fn bind(number: usize, config: &LinkConfig, common: u64) -> anyhow::Result<Self> {
        let (listen, target) = config.addresses()?;
        let model = config.model(common, 0)?;
        let client_side = open(listen).map_err(|error| {
            let reason = reason(&error);
            anyhow!(
                "cannot listen on {listen}: {reason}; choose another with links[{number}].listen"
            )
        })?;
        let bound = client_side.local_addr().context("a bound socket has an address")?;
        let target_side = connected_to(target).map_err(|error| {
            let reason = reason(&error);
            anyhow!("cannot reach {target}: {reason}; choose another with links[{number}].target")
        })?;
        let kinds = [client_side, target_side].map(Kind::Socket);
        Ok(Self::new(number, config, [bound, target], kinds, model))
    }

    /// Connects two devices with these addresses, the vehicle's first.
    pub(super) fn join(
        number: usize,
        config: &LinkConfig,
        common: u64,
        devices: [Device; 2],
        addresses: [IpAddr; 2],
    ) -> anyhow::Result<Self> {
        let model = config.model(common, HEADER_BYTES)?;
        let addresses = addresses.map(|address| SocketAddr::new(address, 0));
        Ok(Self::new(number, config, addresses, devices.map(Kind::Device), model))
    }

    fn new(
        number: usize,
        config: &LinkConfig,
        [listen, target]: [SocketAddr; 2],
        kinds: [Kind; 2],
        model: Model,
    ) -> Self {
        Self {
            number,
            name: config.name.clone(),
            listen,
            target,
            client: None,
            plugs: kinds.map(|kind| Plug { kind, readable: false }),
            model,
            dropped: [RelayDrops::default(); 2],
            lateness: Lateness::default(),
        }
    }

    pub(super) fn addresses(&self) -> [SocketAddr; 2] {
        [self.listen, self.target]
    }

    pub(super) fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Registers a side for readiness events.
    pub(super) fn register(
        &mut self,
        side: Side,
        token: Token,
        registry: &Registry,
    ) -> io::Result<()> {
        match &mut self.plugs[side as usize].kind {
            Kind::Socket(socket) => {
                registry.register(socket.socket_mut(), token, Interest::READABLE)
            }
            Kind::Device(device) => {
                registry.register(&mut SourceFd(&device.as_raw_fd()), token, Interest::READABLE)
            }
        }
    }

    pub(super) fn set_readable(&mut self, side: Side) {
        self.plugs[side as usize].readable = true;
    }

    /// Returns whether a side may hold packets that the last turn did not read.
    pub(super) fn is_readable(&self) -> bool {
        self.plugs.iter().any(|plug| plug.readable)
    }

    /// Cuts or restores `direction`, or both for `None`.
    pub(super) fn set_cut(&mut self, direction: Option<Direction>, cut: bool) {
        for direction in chosen(direction) {
            self.model.set_cut(direction, cut);
        }
        tracing::info!(link = self.number, name = self.name, ?direction, cut, "emulated link");
    }

    /// Sets the delay beyond the configured one, in place of one set before: of `direction`, or of
    /// both for `None`.
    ///
    /// # Errors
    /// A reason, if the model does not support it.
    pub(super) fn set_delay_added(
        &mut self,
        direction: Option<Direction>,
        added: Duration,
    ) -> Result<(), &'static str> {
        for direction in chosen(direction) {
            self.model.set_delay_added(direction, added)?;
        }
        tracing::info!(link = self.number, name = self.name, ?direction, ?added, "emulated link");
        Ok(())
    }

    /// Returns when to call [`Self::release`] next; `None` without packets in transit.
    pub(super) fn next_event(&self) -> Option<Instant> {
        self.model.next_event()
    }

    /// Reads at most [`READS_MAX`] times from each readable side into the model.
    pub(super) fn read_turn(&mut self, buffer: &mut [u8], clock: &Clock) {
        for (side, direction) in [(Side::Client, Direction::Up), (Side::Target, Direction::Down)] {
            if self.plugs[side as usize].readable {
                self.read(side, direction, buffer, clock);
            }
        }
    }

    fn read(&mut self, side: Side, direction: Direction, buffer: &mut [u8], clock: &Clock) {
        let Self { plugs, model, client, .. } = self;
        let plug = &mut plugs[side as usize];
        let mut take = |bytes: &[u8], ecn| {
            let packet = Packet { bytes: bytes.to_vec(), ecn };
            if let Err(reason) = model.push(direction, packet, clock.now()) {
                tracing::trace!(%reason, bytes = bytes.len(), "emulated drop");
            }
        };
        for _ in 0..READS_MAX {
            match plug.kind.recv(buffer, &mut take) {
                Ok(from) if side == Side::Client => *client = from,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    plug.readable = false;
                    return;
                }
                // Errors of datagrams sent earlier (ICMP) appear here; the socket remains usable.
                Err(error) => tracing::trace!(%error, "receive"),
            }
        }
    }

    /// Sends the packets that the model has delivered until now, and records how late each leaves.
    /// A packet that cannot be sent is counted by reason.
    pub(super) fn release(&mut self, clock: &Clock) {
        let mut now = clock.now();
        while let Some((direction, due, packet)) = self.model.pop(now) {
            let sent = match direction {
                Direction::Up => {
                    self.plugs[Side::Target as usize].kind.send(packet, Some((self.target, None)))
                }
                Direction::Down => {
                    let plug = &mut self.plugs[Side::Client as usize].kind;
                    if matches!(plug, Kind::Socket(_)) && self.client.is_none() {
                        self.dropped[direction as usize].no_client += 1;
                        continue;
                    }
                    plug.send(packet, self.client)
                }
            };
            now = clock.now();
            self.dropped[direction as usize].count(sent, now.since(due), &mut self.lateness);
        }
    }

    pub(super) fn status(&self) -> LinkStatus {
        LinkStatus {
            link: self.number,
            name: self.name.clone(),
            cut: self.model.is_cut(),
            listen: self.listen,
            target: self.target,
            client: self.client.map(|(client, _)| client),
            up: self.status_of(Direction::Up),
            down: self.status_of(Direction::Down),
            lateness: (&self.lateness).into(),
        }
    }

    fn status_of(&self, direction: Direction) -> DirectionStatus {
        let mut status = self.model.status(direction);
        let RelayDrops { no_client, refused, send } = self.dropped[direction as usize];
        let relay = [("no_client", no_client), ("refused", refused), ("send", send)];
        status.drops.extend(relay.map(|(name, count)| (name.to_owned(), count)));
        status
    }
}

impl Kind {
    /// Reads once, and passes the datagrams of one sender to `take`. Returns the address of the
    /// sender and the local one that it used; `None` from a device.
    fn recv(
        &self,
        buffer: &mut [u8],
        take: &mut impl FnMut(&[u8], Ecn),
    ) -> io::Result<Option<(SocketAddr, Option<IpAddr>)>> {
        match self {
            Self::Socket(socket) => {
                let received = socket.receive(buffer)?;
                received.datagrams(buffer).for_each(|datagram| take(datagram, received.ecn));
                Ok(Some((received.remote, received.local)))
            }
            Self::Device(device) => {
                let bytes = device.recv(buffer)?;
                let packet = &buffer[..bytes];
                take(packet, ecn_of_ip(packet));
                Ok(None)
            }
        }
    }

    /// Sends to an address, from the local address if given, or through a device.
    fn send(
        &mut self,
        mut packet: Packet,
        to: Option<(SocketAddr, Option<IpAddr>)>,
    ) -> io::Result<()> {
        match (self, to) {
            (Self::Socket(socket), Some((to, from))) => {
                let (bytes, ecn) = (packet.bytes.as_slice(), packet.ecn);
                twice(|| socket.send(&Outgoing { bytes, segment: None, to, from, ecn }))
            }
            (Self::Socket(_), None) => Err(ErrorKind::NotConnected.into()),
            (Self::Device(device), _) => {
                if packet.ecn == Ecn::Ce {
                    mark_ip(&mut packet.bytes);
                }
                device.send(&packet.bytes)
            }
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

/// Sends, and retries once if the error belongs to an earlier datagram: a connected UDP socket
/// reports an ICMP error in place of the next operation.
fn twice(mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    match attempt() {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => attempt(),
        result => result,
    }
}

fn chosen(direction: Option<Direction>) -> impl Iterator<Item = Direction> {
    Direction::BOTH.into_iter().filter(move |each| direction.is_none_or(|one| one == *each))
}

fn open(address: SocketAddr) -> io::Result<Udp> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER_BYTES);
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Udp::new(UdpSocket::from_std(socket.into()))
}

fn connected_to(target: SocketAddr) -> io::Result<Udp> {
    let any = match target {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let mut socket = open(any)?;
    socket.socket_mut().connect(target)?;
    Ok(socket)
}

/// Returns a plain text for an error of binding or connecting.
pub(super) fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "address in use".to_owned(),
        ErrorKind::AddrNotAvailable => "not an address of this machine".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns the current counters of each link, and the lateness of all links together.
pub(super) fn status(relays: &[Relay]) -> Status {
    let mut lateness = Lateness::default();
    for relay in relays {
        lateness.merge(relay.lateness());
    }
    Status { links: relays.iter().map(Relay::status).collect(), lateness: (&lateness).into() }
}
