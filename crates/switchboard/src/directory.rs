//! The directory: who is there and who drives what. A state machine without sockets or clocks.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use tautline_message::{self as message, Candidate, Control, ProtocolVersions, Refusal};
use tautline_net::{Destination, LogLimit};
use tautline_transport::crypto::PublicKey;
use tautline_units::Instant;

use crate::Config;
use crate::relays::Issuer;
use crate::store::Change;

mod addresses;
mod connection;
mod enrolment;
mod introductions;
mod leases;
mod listing;
mod orders;
mod registration;
mod rivals;
mod roster;

pub use connection::RoundTrip;
use connection::{Connection, Role};
use enrolment::Enrolment;
use orders::Awaiting;
use registration::Told;
use rivals::{Claim, Contender, Rival};

/// Everything the switchboard knows and decides.
///
/// Input comes through `handle_*`; afterwards the outputs are drained with
/// [`poll_output`](Self::poll_output) and the timer is set anew by
/// [`poll_timeout`](Self::poll_timeout).
///
/// What holds at all times: a key has at most one registered connection, the first for as long as it answers; a vehicle
/// has at most one lease, an operator at most one vehicle; a lease ends by [`Control::Release`],
/// by its operator taking another vehicle, or when its operator has had no connection for the
/// grace time, and by nothing else. It outlives the vehicle's absence, and may begin in it: then
/// the operator is told [`Refusal::VehicleAway`], and is introduced when the vehicle comes. Whenever both ends of a
/// lease are registered and one of them is so anew, both are introduced with a new lease name. When one
/// of them tells other candidates, the other is introduced again under the same name, if it tells some too;
/// likewise when they come back and both have it still. What [`Output::Keep`] says must be on disk before what
/// follows it is done: then all this holds across restarts too, and no epoch of a vehicle's leases falls.
#[derive(Debug)]
pub struct Directory {
    lease_grace: Duration,
    ping_interval: Duration,
    connection_timeout: Duration,
    rng: ChaCha20Rng,
    connections: BTreeMap<ConnectionId, Connection>,
    vehicles: BTreeMap<String, Vehicle>,
    operators: BTreeMap<String, Operator>,
    outputs: VecDeque<Output>,
    /// Keys that are not listed.
    unknown: LogLimit,
    /// What signs tokens for relays, if there are any.
    issuer: Option<Issuer>,
    /// The epochs of vehicles that are not listed at present.
    unlisted: BTreeMap<PublicKey, u64>,
    enrolment: Enrolment,
    /// Whose orders are carried out.
    administrator: Option<PublicKey>,
    /// Those who may end drives, by name.
    supervisors: BTreeMap<String, PublicKey>,
    /// The Unix time at [`Instant::ZERO`], by the machine's present setting.
    unix_start: Duration,
    /// Answers of vehicles for which nobody waited.
    unclaimed: u64,
    /// What the newest pong has told.
    round_trip: Option<RoundTrip>,
    /// Those who wait until the connection of their key is found dead or alive.
    contenders: BTreeMap<PublicKey, Contender>,
    /// Machines that came with the key of another one.
    rivals: LogLimit,
}

/// The number of a connection, never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConnectionId(pub u64);

/// What the directory wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Keep this over a restart, before anything that follows is done.
    Keep(Change),
    /// Answer an administrator on this connection.
    Answer {
        /// The connection.
        to: ConnectionId,
        /// With what.
        answer: Answer,
    },
    /// Give those who are [listed](Directory::listed) now places of their own.
    Relist,
    /// Send `message` on this connection.
    Send {
        /// The connection.
        to: ConnectionId,
        /// The message.
        message: Control,
    },
    /// Close this connection once what was sent before is out; nothing is heard from it any more.
    Close {
        /// The connection.
        to: ConnectionId,
    },
}

/// An answer to an administrator.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A copy of what is kept.
    Copy,
    /// Text for people.
    Text(String),
    /// The code of an invitation with this number and this secret.
    Code(u16, [u8; 4]),
}

/// What the directory waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A ping is due.
    Ping,
    /// A connection has been without a word, or without a registration, for too long.
    ConnectionTimeout,
    /// A grace time ends.
    LeaseGrace,
    /// The tokens of a lease are to be given anew.
    RelayTokens,
}

/// A vehicle of the settings.
#[derive(Debug)]
struct Vehicle {
    key: PublicKey,
    presence: Option<Presence>,
    /// Since when it is away, in Unix time; not known before it has been there once.
    away_since: Option<Duration>,
    /// The highest of any lease of it.
    epoch: u64,
    lease: Option<Lease>,
    /// The end of a lease that the vehicle does not know of yet, because it was away.
    pending_release: Option<Control>,
    /// Whose drive a supervisor has ended, and until when the order holds: until then it gets no lease.
    ended: Option<(String, Instant)>,
    /// Who waits for the vehicle's answers to an order.
    awaiting: Vec<Awaiting>,
    /// The newest machine that was refused for having the key of this one.
    rival: Option<Rival>,
}

/// An operator of the settings.
#[derive(Debug)]
struct Operator {
    key: PublicKey,
    presence: Option<Presence>,
    /// The newest machine that was refused for having the key of this one.
    rival: Option<Rival>,
}

/// The addresses at which a registered vehicle or operator can be reached.
#[derive(Debug)]
struct Presence {
    id: ConnectionId,
    addresses: Vec<Destination>,
    /// What it speaks with its peer.
    versions: ProtocolVersions,
    /// Whether it knows what a relay is.
    relays: bool,
    /// Where it may be reached beside; an older build tells none.
    candidates: Vec<Candidate>,
    /// The name of the lease that it has in hand: it has said so, or was introduced under it.
    held: Option<[u8; 16]>,
    /// Where it is, if it says that.
    place: Option<String>,
    /// How many links it has said that it has.
    link_count: u8,
}

/// An operator's right to drive a vehicle; its epoch is the vehicle's.
#[derive(Debug)]
struct Lease {
    operator: String,
    /// The name under which the two have been introduced; none before the first time.
    name: Option<[u8; 16]>,
    /// Since when the operator has it, in Unix time.
    since: Duration,
    /// When it ends, if its operator has no connection.
    ends_at: Option<Instant>,
    /// When both ends get later tokens for their relays.
    renew_at: Option<Instant>,
}

impl Directory {
    /// Returns a directory of those whom `config` lists; nobody is there yet.
    ///
    /// `seed`: lease names grow from it.
    pub fn new(config: &Config, seed: [u8; 32]) -> Self {
        Self {
            lease_grace: config.lease_grace(),
            ping_interval: config.ping_interval(),
            connection_timeout: config.connection_timeout(),
            rng: ChaCha20Rng::from_seed(seed),
            connections: BTreeMap::new(),
            vehicles: config.vehicles.iter().map(|(n, k)| (n.clone(), Vehicle::new(*k))).collect(),
            operators: config
                .operators
                .iter()
                .map(|(n, k)| (n.clone(), Operator::new(*k)))
                .collect(),
            outputs: VecDeque::new(),
            unknown: LogLimit::default(),
            issuer: None,
            unlisted: BTreeMap::new(),
            enrolment: Enrolment::beside(&config.vehicles, &config.operators),
            administrator: None,
            supervisors: config.supervisors.clone(),
            unix_start: Duration::ZERO,
            unclaimed: 0,
            round_trip: None,
            contenders: BTreeMap::new(),
            rivals: LogLimit::default(),
        }
    }

    /// Names relays to both ends of each lease, with tokens of this issuer.
    pub(crate) fn name_relays(&mut self, issuer: Issuer) {
        self.issuer = Some(issuer);
    }

    /// Takes note of the Unix time at [`Instant::ZERO`], which is another once the machine's clock has been set.
    pub fn handle_unix_start(&mut self, unix_start: Duration) {
        self.unix_start = unix_start;
    }

    /// Takes a new connection from `remote`, which has proven to hold `key`.
    pub fn handle_connected(
        &mut self,
        id: ConnectionId,
        key: PublicKey,
        remote: SocketAddr,
        now: Instant,
    ) {
        let mut connection = Connection::new(key, remote, now);
        if self.administrator == Some(key) {
            connection.role = Role::Administrator;
            self.connections.insert(id, connection);
            return;
        }
        if self.supervisors.values().any(|supervisor| *supervisor == key) {
            connection.role = Role::Supervisor;
            self.connections.insert(id, connection);
            return;
        }
        self.connections.insert(id, connection);
        let is_listed = self.listed().any(|listed| listed == key);
        // Who may have been invited says so first.
        if !is_listed && !self.enrolment.is_awaited(now) {
            self.refuse_unknown(id, key, remote, now);
        }
    }

    fn refuse_unknown(
        &mut self,
        id: ConnectionId,
        key: PublicKey,
        remote: SocketAddr,
        now: Instant,
    ) {
        if let Some(left_out) = self.unknown.take(now) {
            tracing::warn!(%key, %remote, left_out, "an unknown key was refused");
        }
        let text = format!(
            "this key is not known here: to let it in, add NAME = \"{key}\" to [vehicles] or \
             [operators] in the switchboard's settings and send it SIGHUP"
        );
        self.turn_away(id, Refusal::NotAllowed, text, now);
    }

    /// Takes a message of a connection.
    pub fn handle_message(&mut self, id: ConnectionId, message: Control, now: Instant) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.heard_at = now;
        match message {
            Control::RegisterVehicle {
                name,
                addresses,
                versions,
                relays,
                candidates,
                held,
                place,
            } => {
                let told = Told { addresses, versions, relays, candidates, held, place };
                self.register(id, Claim::Vehicle(name, told), now);
            }
            Control::RegisterOperator { name, addresses, versions, relays, candidates, held } => {
                let place = None;
                let told = Told { addresses, versions, relays, candidates, held, place };
                self.register(id, Claim::Operator(name, told), now);
            }
            Control::ListVehicles => {
                if self.operator_of(id).is_some() {
                    self.list(id);
                }
            }
            Control::Take { vehicle_name } => {
                if let Some(operator) = self.operator_of(id) {
                    self.take(id, &operator, &vehicle_name, now);
                }
            }
            Control::Release => {
                if let Some(operator) = self.operator_of(id) {
                    self.release(&operator, &format!("operator {operator} has let go"));
                }
            }
            Control::Ping { t } => self.send(id, Control::Pong { t, seen_at: Some(now) }),
            Control::Pong { t, seen_at } => {
                self.round_trip = connection.pong(t, seen_at, now);
                self.handle_alive(id, t, now);
            }
            Control::Enroll { number, secret } => self.enroll(id, number, secret, now),
            Control::Order(order) => match (&connection.role, &order) {
                (Role::Administrator, _)
                | (Role::Supervisor, message::Order::End { .. } | message::Order::Who) => {
                    self.obey_order(id, order, now);
                }
                (
                    Role::Unregistered | Role::Vehicle(_) | Role::Operator(_) | Role::Supervisor,
                    _,
                ) => {
                    let text = "only the holder of the switchboard's own key orders".to_owned();
                    self.turn_away(id, Refusal::NotAllowed, text, now);
                }
            },
            Control::Answered { signed } => match &connection.role {
                Role::Vehicle(name) => {
                    let name = name.clone();
                    self.carry_answer(&name, &signed);
                }
                Role::Unregistered | Role::Operator(_) | Role::Administrator | Role::Supervisor => {
                    let text = "only a vehicle answers orders".to_owned();
                    self.turn_away(id, Refusal::NotAllowed, text, now);
                }
            },
            Control::VehicleList { .. }
            | Control::OrderPart { .. }
            | Control::Enrolled { .. }
            | Control::Ordered { .. }
            | Control::Introduce { .. }
            | Control::Released { .. }
            | Control::Relays { .. }
            | Control::Refused { .. } => {
                let text = "a switchboard says this, it is never told".to_owned();
                self.turn_away(id, Refusal::BadRequest, text, now);
            }
        }
    }

    /// Takes note of bytes that are no message.
    pub fn handle_malformed(&mut self, id: ConnectionId, reason: &str, now: Instant) {
        if self.connections.contains_key(&id) {
            let text = format!("this is no message of the control plane: {reason}");
            self.turn_away(id, Refusal::BadRequest, text, now);
        }
    }

    /// Takes note that a connection has ended.
    pub fn handle_closed(&mut self, id: ConnectionId, now: Instant) {
        let Some(connection) = self.connections.remove(&id) else { return };
        connection.log_latency();
        let key = connection.key;
        match connection.role {
            Role::Supervisor => self.await_no_more(id),
            Role::Unregistered | Role::Administrator => {}
            Role::Vehicle(name) => {
                if let Some(vehicle) = self.vehicles.get_mut(&name)
                    && vehicle.presence.as_ref().is_some_and(|p| p.id == id)
                {
                    vehicle.presence = None;
                    vehicle.away_since = Some(self.unix_start + now.since(Instant::ZERO));
                    tracing::info!(vehicle = name, "vehicle away");
                }
            }
            Role::Operator(name) => {
                if let Some(operator) = self.operators.get_mut(&name)
                    && operator.presence.as_ref().is_some_and(|p| p.id == id)
                {
                    operator.presence = None;
                    tracing::info!(operator = name, "operator away");
                    let ends_at = now + self.lease_grace;
                    if let Some(lease) = self.lease_of(&name) {
                        lease.ends_at = Some(ends_at);
                    }
                }
            }
        }
        self.settle_rivals(id, key, now);
    }

    /// Returns the next thing to be done.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the round trip that the newest message has told of, once.
    pub fn poll_round_trip(&mut self) -> Option<RoundTrip> {
        self.round_trip.take()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) is to be called, and what for.
    pub fn poll_timeout(&self) -> Option<(Instant, Timer)> {
        let connections = self.connections.values().flat_map(|connection| {
            [
                (connection.ping_at, Timer::Ping),
                (connection.times_out_at(self.connection_timeout), Timer::ConnectionTimeout),
            ]
        });
        let leases = self.vehicles.values().filter_map(|vehicle| vehicle.lease.as_ref());
        let graces = leases.filter_map(|lease| Some((lease.ends_at?, Timer::LeaseGrace)));
        let leases = self.vehicles.values().filter_map(|vehicle| vehicle.lease.as_ref());
        let renewals = leases.filter_map(|lease| Some((lease.renew_at?, Timer::RelayTokens)));
        connections.chain(graces).chain(renewals).min()
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        let ids: Vec<ConnectionId> = self.connections.keys().copied().collect();
        for id in ids {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            if connection.times_out_at(self.connection_timeout) <= now {
                tracing::info!(remote = %connection.remote, "a silent connection was given up");
                self.close(id, now);
            } else if connection.ping_at <= now {
                connection.ping(self.ping_interval, now);
                self.send(id, Control::Ping { t: now });
            }
        }
        let over: Vec<String> = self
            .vehicles
            .values()
            .filter_map(|vehicle| vehicle.lease.as_ref())
            .filter(|lease| lease.ends_at.is_some_and(|at| at <= now))
            .map(|lease| lease.operator.clone())
            .collect();
        for operator in over {
            let away = self.lease_grace.as_secs_f64();
            self.release(&operator, &format!("operator {operator} has been away for {away} s"));
        }
        let is_due = |vehicle: &Vehicle| {
            vehicle.lease.as_ref().and_then(|lease| lease.renew_at).is_some_and(|at| at <= now)
        };
        let due = self.vehicles.iter().filter(|(_, vehicle)| is_due(vehicle));
        let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
        for name in due {
            self.tell_relays(&name, now);
        }
    }

    /// Returns the registered operator's name; others are refused.
    fn operator_of(&mut self, id: ConnectionId) -> Option<String> {
        if let Role::Operator(name) = &self.connections.get(&id)?.role {
            return Some(name.clone());
        }
        let text = "register as an operator first".to_owned();
        self.refuse(id, Refusal::NotRegistered, text);
        None
    }

    fn set_role(&mut self, id: ConnectionId, role: Role) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.role = role;
        }
    }

    fn refuse(&mut self, id: ConnectionId, reason_code: Refusal, mut text: String) {
        while text.len() > TEXT_BYTES_MAX {
            text.pop();
        }
        self.send(id, Control::Refused { reason_code, text });
    }

    fn turn_away(&mut self, id: ConnectionId, reason_code: Refusal, text: String, now: Instant) {
        self.refuse(id, reason_code, text);
        self.close(id, now);
    }

    fn close(&mut self, id: ConnectionId, now: Instant) {
        self.outputs.push_back(Output::Close { to: id });
        self.handle_closed(id, now);
    }

    fn send(&mut self, to: ConnectionId, message: Control) {
        self.outputs.push_back(Output::Send { to, message });
    }
}

impl Vehicle {
    fn new(key: PublicKey) -> Self {
        Self {
            key,
            presence: None,
            away_since: None,
            epoch: 0,
            lease: None,
            pending_release: None,
            ended: None,
            awaiting: Vec::new(),
            rival: None,
        }
    }
}

impl Operator {
    fn new(key: PublicKey) -> Self {
        Self { key, presence: None, rival: None }
    }
}

/// The longest text that a message may carry.
const TEXT_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests;
