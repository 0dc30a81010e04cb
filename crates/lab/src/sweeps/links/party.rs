//! The two ends of a run: a vehicle that fills its budget with media, an operator that commands.

use std::net::SocketAddr;

use tautline_sim::world::{self, Clock, Node};
use tautline_transport::wire::Datagram;
use tautline_transport::{Class, Event, Route, Session};
use tautline_units::{Bitrate, ByteCount, Duration, Instant};

/// Is either end, a node of the world.
pub(super) enum Party {
    Vehicle(Vehicle),
    Operator(Operator),
}

/// Sends media units at even intervals, each as large as the budget allows.
pub(super) struct Vehicle {
    session: Session,
    clock: Clock,
    interval: Duration,
    deadline: Duration,
    rate_max: Bitrate,
    budget: Bitrate,
    next_at: Instant,
    unit: Vec<u8>,
    /// Every unit offered to the session, in order.
    pub(super) offered: Vec<Offered>,
    /// Every instant at which a unit was due and the budget zero.
    pub(super) pauses: Vec<Instant>,
    /// Media packets sent until now, per link; kept if departures are.
    media_sent: Option<Vec<u64>>,
    /// Every sealed datagram that left, if they are kept.
    pub(super) departures: Vec<Departure>,
    /// Commands that came: when, and how old.
    pub(super) commands: Vec<(Instant, Duration)>,
}

/// Receives media and sends a command every 20 ms.
pub(super) struct Operator {
    session: Session,
    clock: Clock,
    next_at: Instant,
    /// Which unit came, by its place in [`Vehicle::offered`], and when.
    pub(super) delivered: Vec<(u64, Instant)>,
    /// Every sealed datagram that came, if departures are kept: its link's socket, its number.
    pub(super) arrivals: Option<Vec<(u8, u32, Instant)>>,
}

/// Is a unit that was due and offered; all instants are the world's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    pub(super) at: Instant,
    pub(super) bytes: ByteCount,
    pub(super) accepted: bool,
}

/// Is a datagram that left on a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) at: Instant,
    pub(super) link: u8,
    /// Of the sealed datagram on that link.
    pub(super) number: u32,
    pub(super) bytes: ByteCount,
    /// Whether it held a media packet.
    pub(super) media: bool,
}

/// What a vehicle does beside its session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub(super) units_per_second: u64,
    pub(super) deadline: Duration,
    pub(super) rate_max: Bitrate,
    pub(super) keeps_departures: bool,
}

impl Vehicle {
    pub(super) fn new(session: Session, clock: Clock, source: &Source) -> Self {
        Self {
            session,
            clock,
            interval: Duration::from_nanos(1_000_000_000 / source.units_per_second.max(1)),
            deadline: source.deadline,
            rate_max: source.rate_max,
            budget: Bitrate::ZERO,
            next_at: clock.local(Instant::ZERO),
            unit: Vec::new(),
            offered: Vec::new(),
            pauses: Vec::new(),
            media_sent: source.keeps_departures.then(Vec::new),
            departures: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Offers the unit that is due.
    fn produce(&mut self, now: Instant) {
        if now < self.next_at {
            return;
        }
        self.next_at = (self.next_at + self.interval).max(now);
        let at = self.clock.world(now);
        if self.budget == Bitrate::ZERO {
            self.pauses.push(at);
            return;
        }
        let bytes = self.budget.min(self.rate_max) * self.interval;
        let bytes = bytes.get().max(HEAD_BYTES as u64);
        self.unit.resize(bytes as usize, 0);
        self.unit[..8].copy_from_slice(&(self.offered.len() as u64).to_be_bytes());
        let accepted = self.session.send(Class::Media, &self.unit, self.deadline, now).is_ok();
        self.offered.push(Offered { at, bytes: ByteCount::new(bytes), accepted });
    }

    /// Notes a datagram that just left on the link of this socket.
    fn depart(&mut self, socket: u8, datagram: &[u8], now: Instant) {
        let Some(before) = &mut self.media_sent else { return };
        let Some(number) = sealed_number(datagram) else { return };
        let (at, bytes) = (self.clock.world(now), ByteCount::of(datagram));
        let mut media = false;
        before.resize(before.len().max(self.session.links().count()), 0);
        for (before, link) in before.iter_mut().zip(self.session.links()) {
            // A session that begins anew counts anew.
            media |= *before != link.media.sent && link.route.socket == socket;
            *before = link.media.sent;
        }
        self.departures.push(Departure { at, link: socket, number, bytes, media });
    }

    fn observe(&mut self, now: Instant) {
        let at = self.clock.world(now);
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Budget { media } => self.budget = media,
                Event::Unit { class: Class::Control, bytes, .. } => {
                    let sent = Instant::from_nanos(head(&bytes));
                    self.commands.push((at, at.since(sent)));
                }
                Event::Unit { class: Class::Media, .. }
                | Event::UnitLost { .. }
                | Event::Link { .. }
                | Event::Established => {}
            }
        }
    }
}

impl Operator {
    pub(super) fn new(session: Session, clock: Clock, keeps_arrivals: bool) -> Self {
        Self {
            session,
            clock,
            next_at: clock.local(Instant::ZERO),
            delivered: Vec::new(),
            arrivals: keeps_arrivals.then(Vec::new),
        }
    }

    /// Notes a datagram that just came from the vehicle's end of a link.
    fn arrive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
        let Some(arrivals) = &mut self.arrivals else { return };
        let Some(number) = sealed_number(datagram) else { return };
        arrivals.push((socket_of(from), number, self.clock.world(now)));
    }

    fn produce(&mut self, now: Instant) {
        if now < self.next_at {
            return;
        }
        self.next_at = now + COMMAND_INTERVAL;
        let mut unit = [0; COMMAND_BYTES];
        unit[..8].copy_from_slice(&self.clock.world(now).as_nanos().to_be_bytes());
        // Refused until the first link is up; the session counts it.
        let _ = self.session.send(Class::Control, &unit, COMMAND_DEADLINE, now);
    }

    fn observe(&mut self, now: Instant) {
        let at = self.clock.world(now);
        while let Some(event) = self.session.poll_event() {
            if let Event::Unit { class: Class::Media, bytes, .. } = event {
                self.delivered.push((head(&bytes), at));
            }
        }
    }
}

impl Node for Party {
    fn handle_datagram(&mut self, route: world::Route, datagram: &[u8], now: Instant) {
        let route = Route { socket: route.socket, remote: route.remote };
        if let Self::Operator(operator) = self {
            operator.arrive(route.remote, datagram, now);
        }
        self.session_mut().handle_datagram(route, datagram, now);
        self.observe(now);
    }

    fn poll_transmit(&mut self, buffer: &mut Vec<u8>, now: Instant) -> Option<world::Route> {
        let route = self.session_mut().poll_transmit(buffer, now)?;
        if let Self::Vehicle(vehicle) = self {
            vehicle.depart(route.socket, buffer, now);
        }
        Some(world::Route { socket: route.socket, remote: route.remote })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let (session, next_at) = match self {
            Self::Vehicle(vehicle) => (&vehicle.session, vehicle.next_at),
            Self::Operator(operator) => (&operator.session, operator.next_at),
        };
        let timer = session.poll_timeout().map(|(at, _)| at);
        Some(timer.map_or(next_at, |at| at.min(next_at)))
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.session_mut().handle_timeout(now);
        self.observe(now);
        match self {
            Self::Vehicle(vehicle) => vehicle.produce(now),
            Self::Operator(operator) => operator.produce(now),
        }
        self.observe(now);
    }
}

impl Party {
    fn session_mut(&mut self) -> &mut Session {
        match self {
            Self::Vehicle(vehicle) => &mut vehicle.session,
            Self::Operator(operator) => &mut operator.session,
        }
    }

    fn observe(&mut self, now: Instant) {
        match self {
            Self::Vehicle(vehicle) => vehicle.observe(now),
            Self::Operator(operator) => operator.observe(now),
        }
    }
}

/// The address of the vehicle's end of a link.
pub(super) fn here(socket: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], HERE_PORT + u16::from(socket)))
}

/// The address of the operator's end of a link.
pub(super) fn there(socket: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 9, 9], 5_000 + u16::from(socket)))
}

/// Whose end [`here`] is.
fn socket_of(here: SocketAddr) -> u8 {
    here.port().checked_sub(HERE_PORT).and_then(|socket| u8::try_from(socket).ok()).unwrap_or(0)
}

/// The number of a sealed datagram on its link.
fn sealed_number(datagram: &[u8]) -> Option<u32> {
    match Datagram::parse(datagram) {
        Ok(Datagram::Sealed { number_low, .. }) => Some(number_low),
        Ok(Datagram::Init { .. } | Datagram::Response { .. }) | Err(_) => None,
    }
}

/// The first eight bytes of a unit: what its sender wrote there.
fn head(unit: &[u8]) -> u64 {
    unit.first_chunk().map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes))
}

const HERE_PORT: u16 = 4_000;
/// A unit's number.
const HEAD_BYTES: usize = 8;
const COMMAND_INTERVAL: Duration = Duration::from_millis(20);
const COMMAND_DEADLINE: Duration = Duration::from_millis(250);
const COMMAND_BYTES: usize = 60;
